"""Families of ONNX detectors: input preprocessing and output layout of each.

To add a family, write a module with a subclass of `Family` and list it in `FAMILIES`. Other packages add families
with the entry-point group `probox.detectors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from probox.detect.families.base import Family, FamilyInputs, Signature, Tensor, check_inputs
from probox.detect.families.detr import DeformableDetr, Detr, DFine, RfDetr, RtDetr
from probox.detect.families.one_stage import NanoDet, NanoDetPlus, PicoDet, Ssd, YoloV3, YoloV5, YoloX
from probox.detect.families.suppressed import FasterRCNN, MmDeploy, RtDetrTop, TensorFlow, Torchvision
from probox.detect.families.ultralytics_exports import EndToEnd, UltralyticsRtDetr, YoloV8, YoloV8Seg, check_task
from probox.detect.graph import Graph
from probox.errors import InputError
from probox.support.plugins import load_plugins

__all__ = [
    "FAMILIES", "Family", "Signature", "Tensor", "all_families", "choose_family", "describe_thresholds",
]  # fmt: skip

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (
        Ssd,
        YoloV3,
        YoloV5,
        YoloV8,
        YoloV8Seg,
        EndToEnd,
        UltralyticsRtDetr,
        YoloX,
        NanoDet,
        NanoDetPlus,
        PicoDet,
        FasterRCNN,
        Detr,
        DeformableDetr,
        RfDetr,
        RtDetr,
        DFine,
        MmDeploy,
        RtDetrTop,
        TensorFlow,
        Torchvision,
    )
}
"""Built-in families by name: module and class."""


def all_families() -> dict[str, type[Family]]:
    """Return all families by name, those of plugins last."""
    return FAMILIES | {family.name: family for family in _plugin_families()}


@cache
def _plugin_families() -> tuple[type[Family], ...]:
    taken = ["auto", *FAMILIES]
    return load_plugins("probox.detectors", Family, lambda family: (family.name,), taken, subclasses=True)


def describe_thresholds() -> str:
    """Return the default NMS thresholds, each with the families that use it.

    >>> describe_thresholds()
    '0.45 (yolov5), 0.5 (yolov3), 0.6 (ssd, nanodet, nanodet-plus, picodet), 0.65 (yolox), 0.7 (yolov8, yolov8-seg)'
    """
    by_threshold: dict[float, list[str]] = {}
    for name, family in all_families().items():
        if not family.suppresses:
            by_threshold.setdefault(family.nms_iou, []).append(name)
    return ", ".join(f"{iou:g} ({', '.join(names)})" for iou, names in sorted(by_threshold.items()))


def choose_family(
    signature: Signature,
    name: str = "auto",
    classes: Sequence[str] | None = None,
    *,
    size: tuple[int, int] | None = None,
    graph: Graph | None = None,
) -> Family:
    """Return the family called `name`, or with ``auto`` the only one that fits the graph's outputs.

    Parameters
    ----------
    signature : Signature
        The graph's inputs and outputs.
    name : str
        One of `all_families`, or ``auto``.
    classes : sequence of str, optional
        Class names in the order of the graph's scores. Default: those of the export, or COCO's.
    size : (width, height), optional
        Input size of a graph with dynamic axes. Default: that of the export, or the family's default.
    graph : Graph, optional
        The graph, for tensors inside it.

    Returns
    -------
    Family

    Examples
    --------
    >>> family = choose_family(signature, "yolox")  # doctest: +SKIP
    """
    families = all_families()
    if name != "auto" and name not in families:
        raise InputError(f"expected family to be auto or one of {', '.join(families)}, but got {name!r}")
    check_inputs(signature)
    check_task(signature)
    given = FamilyInputs(signature, classes, size, graph)
    fitting = [family for family in families.values() if family.recognises(signature, graph)]
    if name != "auto":
        try:
            return _make_family(families[name], given)
        except InputError as error:
            others = [family.name for family in fitting]
            if not others or name in others:
                raise
            raise InputError(
                f"outputs {signature.describe()} are those of {' or '.join(others)}, not of {name} ({error.problem})",
                remedy="leave out the family ({option:family})",
            ) from None
    if len(fitting) == 1:
        return _make_family(fitting[0], given)
    made: list[Family] = []
    likely: list[str] = []
    for kind in fitting:
        try:
            made.append(_make_family(kind, given))
            likely.append(kind.name)
        except InputError as error:  # the number of classes would not fit the names
            likely.append(f"{kind.name} ({error.problem})")
    if len(made) == 1:
        return made[0]
    likely = likely or [family.name for family in families.values() if family.matches(signature)]
    these = " or ".join(likely) or "none of " + ", ".join(families)
    remedy = "name the detector's family"
    if fitting and not made:
        remedy += ", or give the names of its classes ({option:classes})"
    remedy += " ({option:family})"
    raise InputError(f"can't tell the family from the outputs {signature.describe()}: {these} would fit", remedy=remedy)


def _make_family(kind: type[Family], given: FamilyInputs) -> Family:
    """Return a family; raise if it does not fit the graph's inputs and outputs."""
    signature = given.signature
    try:
        family = kind(given)
        feeds, _ = family.prepare(np.zeros((32, 32, 3), np.uint8))
        fits = feeds.keys() == {tensor.name for tensor in signature.inputs} and all(
            own in (None, fed)
            for tensor in signature.inputs
            for own, fed in list(zip(tensor.shape, feeds[tensor.name].shape, strict=True))[1:]
        )
    except InputError:
        raise
    except (IndexError, TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(
            f"the inputs {Signature((), signature.inputs).describe()} or the outputs {signature.describe()} "
            f"do not fit the family {kind.name}",
            remedy="name another family ({option:family})"
            + (", or export the model with channels first, [1, 3, H, W]" if signature.channels_last else ""),
        )
    return family

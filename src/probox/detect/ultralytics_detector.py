"""Ultralytics models: class probabilities, candidates and edge distributions before suppression."""

from __future__ import annotations

import importlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.candidates import Candidates, Pixels, Placement, PrototypeMasks, Traits
from probox.detect.dropout import Dropout
from probox.detect.families.base import corners_of_centres, grid
from probox.detect.families.ultralytics_exports import YoloV8
from probox.detect.graph import expect_names
from probox.detect.torch_model import TorchDetector, name_failures, read_torch
from probox.errors import InputError
from probox.fusion.fuse import edge_corners, edge_moments
from probox.support.optional import import_framework
from probox.support.types import Floats
from probox.tables.labels import softmax
from probox.tables.table import check_classes

GREY = 114
"""Grey level around the image on the network's input."""
USUAL_SIZE = 640
_MODULES = re.compile(r"(torch|ultralytics)\.nn\.modules(\.\w+)*|ultralytics\.nn\.tasks|ultralytics\.utils\.(loss|tal)")
"""Modules with the classes of networks and losses that a file may contain."""
_RENAMED = {
    "ultralytics.yolo.utils.IterableSimpleNamespace": "ultralytics.utils.IterableSimpleNamespace",
    "ultralytics.nn.modules.block.Silence": "torch.nn.modules.linear.Identity",
    "ultralytics.nn.tasks.YOLOv10DetectionModel": "ultralytics.nn.tasks.DetectionModel",
    "ultralytics.utils.loss.v10DetectLoss": "ultralytics.utils.loss.E2EDetectLoss",
}
"""Classes by their names in older versions."""
_VALUES = {
    "ultralytics.utils.IterableSimpleNamespace", "numpy.dtype", "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
}  # fmt: skip
"""Classes of settings and numbers that training stores beside a network."""
_TRUSTED = "export it to ONNX, or in Python give UltralyticsDetector(YOLO(FILE)), if you trust the file"


class UltralyticsDetector(TorchDetector):
    """An Ultralytics model that returns candidates before suppression.

    Parameters
    ----------
    model : ultralytics.YOLO, ultralytics.RTDETR or the torch module inside
        YOLOv3u to v10, 11, 12, 26 or RT-DETR, on any device. The model is set to evaluation mode and otherwise
        unchanged. Heads with edge distributions (all YOLOs except 26) predict variances.
    classes : sequence of str, optional
        Class names in the order of the outputs. Default: the model's own.
    dropout : Dropout, optional
        Dropout masks for `sample`. ``layers`` is ``heads``, ``backbone``, a regular expression on module names, or
        ``existing``: the model's own dropout modules, at their own rate.
    batch : int
        Number of images per batch; only images of equal size are batched.
    imgsz : int or (height, width), optional
        Input size as in Ultralytics: the longer side of the image is scaled to it, and the shorter one padded to a
        multiple of the stride. Default: the model's own, or 640.

    Examples
    --------
    >>> detector = UltralyticsDetector(YOLO("yolo11n.pt"))  # doctest: +SKIP
    """

    def __init__(
        self,
        model: Any,
        *,
        classes: Sequence[str] | None = None,
        dropout: Dropout | None = None,
        batch: int = 1,
        imgsz: int | tuple[int, int] | None = None,
    ) -> None:
        network = network_of(model)
        head = network.model[-1]
        self._transformer = hasattr(head, "dec_score_head")
        names = names_of(network.names)
        if classes is not None:
            expect_names(given := check_classes(classes), len(names))
            names = given
        super().__init__(network, dropout, batch)
        self._head = head
        self._stride = 32 if self._transformer else max(int(stride) for stride in head.stride.tolist())
        self._size = _input_size(model, imgsz, self._stride)
        edges = not self._transformer and int(head.reg_max) > 1
        self.family = (
            Traits("RT-DETR", names, "all", suppresses=True, clips_first=False)
            if self._transformer
            else yolo_traits(names, edges, masks=hasattr(head, "proto"))
        )

    @property
    def fingerprint(self) -> str:
        """Return an identifier of the model: weights, masks and input size."""
        return f"{super().fingerprint} at {self._size[0]} x {self._size[1]}"

    def _choose_layers(self, layers: str) -> list[tuple[str, Any]]:
        # The layer that takes the mean of edge distributions has constant weights.
        return [(name, module) for name, module in super()._choose_layers(layers) if ".dfl." not in name]

    def _is_head(self, name: str) -> bool:
        return name.startswith(f"model.{len(self.model.model) - 1}.")

    def _run(self, inputs: Sequence[Any], images: Sequence[Pixels]) -> list[Candidates]:
        import torch

        placed = [letterbox(image, self._size, self._stride, stretch=self._transformer) for image in images]
        weights = next(self.model.parameters())
        pixels = torch.from_numpy(np.stack([canvas.transpose(2, 0, 1) for canvas, _ in placed])).to(weights.device)
        with torch.no_grad(), name_failures(self.family.name, images), _one_to_many(self._head):
            outputs = self.model(pixels.to(weights.dtype) / 255)
        if self._transformer:
            return _query_candidates(outputs, [placement for _, placement in placed])
        size = pixels.shape[3], pixels.shape[2]
        return yolo_candidates(outputs, size, int(self._head.nc), [placement for _, placement in placed])


def yolo_traits(classes: tuple[str, ...], edges: bool, *, masks: bool = False) -> Traits:
    """Return the traits of a YOLO, which applies NMS to unclipped boxes and clips them afterwards."""
    name = "YOLO" if edges else "a YOLO head with reg_max = 1 (YOLO26)"
    return Traits(name, classes, "best", YoloV8.nms_iou, has_edges=edges, has_masks=masks, clips_first=False)


def network_of(model: Any) -> Any:
    """Return the torch module of an Ultralytics model, or the module itself; raise if it predicts no boxes."""
    for network in (model, getattr(model, "model", None)):
        layers: Any = getattr(network, "model", None)
        if (
            not callable(getattr(network, "eval", None))
            or not hasattr(layers, "__getitem__")
            or isinstance(layers, str)
        ):
            continue
        head = layers[-1]
        if hasattr(head, "ne") and hasattr(head, "cv4"):
            raise InputError("oriented boxes (OBB) have no axis-aligned corners", remedy="use a detection model")
        if hasattr(head, "dec_score_head") or (hasattr(head, "reg_max") and hasattr(head, "stride")):
            if getattr(head, "cv2", head) is None:
                raise InputError(
                    "fusion has removed the head that proposes candidates",
                    remedy="load the model again, without fuse()",
                )
            return network
        kind = type(head).__name__
        raise InputError(f"expected a detection model, but got one that ends in {kind}", remedy="use a detect model")
    if isinstance(getattr(model, "model", None), str):
        raise InputError(
            f"{model.model} is an exported model", remedy="run ONNX graphs with probox detect, or load the .pt file"
        )
    raise InputError(f"expected an Ultralytics model, but got {type(model).__name__}", remedy='give YOLO("yolo11n.pt")')


def read_network(file: Path) -> tuple[Any, Any]:
    """Return the network of a .pt file and its training size (``imgsz``), None if the file has none.

    The file is a pickle, which may contain code. Only layers, networks, losses and settings of torch and ultralytics
    are loaded from it, and their constructors are not called.
    """
    torch = import_framework("torch")
    if not hasattr(torch.serialization, "get_unsafe_globals_in_checkpoint"):
        raise InputError(
            f"torch {torch.__version__} can't read this file without executing code in it",
            remedy="install torch 2.6 or newer, or export the model to ONNX",
        )
    try:
        names = torch.serialization.get_unsafe_globals_in_checkpoint(str(file))
    except Exception as error:  # damaged archives raise many types
        raise InputError(f"expected a .pt file of Ultralytics: {str(error).split('. ')[0]:.200}") from None
    refused = sorted(name for name in names if not _allow_class(name))
    legacy = next((name for name in refused if name.startswith("models.yolo.")), None)
    if legacy is not None:  # Ultralytics' loader would download another network instead
        raise InputError(
            f"contains {legacy:.120}: written by the repository of YOLOv3, v5, v7 or v9, not by ultralytics",
            remedy="export it to ONNX with export.py of that repository",
        )
    if refused:
        raise InputError(
            f"contains {refused[0]:.120}, which is not an ultralytics class and may execute code",
            remedy=_TRUSTED,
        )
    # By name and by class: the unpickler looks up the name, and checks the class of the created object.
    content = read_torch(file, [entry for name in names for entry in _allow_class(name)])
    found = (content.get("ema") or content.get("model")) if isinstance(content, Mapping) else content
    if not isinstance(found, torch.nn.Module):
        raise InputError("contains no network", remedy="give a .pt file written by ultralytics")
    if isinstance(content, Mapping) and content.get("modelopt"):
        raise InputError("contains a quantised network", remedy="export it to ONNX")
    network: Any = found.float()
    for module in network.modules():
        if isinstance(module, torch.nn.Upsample) and not hasattr(module, "recompute_scale_factor"):
            module.recompute_scale_factor = None  # missing in files of torch 1.10
    trained = content.get("train_args") if isinstance(content, Mapping) else None
    return network, trained.get("imgsz") if isinstance(trained, Mapping) else None


def _allow_class(name: str) -> list[Any]:
    """Return the entries of ``torch.serialization.safe_globals`` that allow a class."""
    import torch

    if name.startswith("pathlib."):
        kind = PureWindowsPath if name.endswith("WindowsPath") else PurePosixPath
        return [(kind, name)] if name.endswith(("PosixPath", "WindowsPath")) else []
    module, _, attribute = _RENAMED.get(name, name).rpartition(".")
    if f"{module}.{attribute}" not in _VALUES and not _MODULES.fullmatch(module):
        return []
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return []
    if f"{module}.{attribute}" in _VALUES:
        dtypes = [type(np.dtype(np.float64))] if name == "numpy.dtype" else []
        return [(found, name), *dtypes] if found is not None else []
    if not isinstance(found, type) or not (issubclass(found, torch.nn.Module) or found.__module__ == module):
        return []
    # A callable constructor could build a network from a configuration, which executes code.
    empty = _Uncallable(attribute, (), {"__new__": lambda _, *__, kind=found: kind.__new__(kind)})
    return [(empty, name), (found, f"{secrets.token_hex(16)}.{attribute}")]


class _Uncallable(type):
    """Metaclass of classes whose objects are created empty, without their constructor."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise InputError(f"calls the constructor of {cls.__name__}, which may execute code", remedy=_TRUSTED)


def names_of(names: Any) -> tuple[str, ...]:
    """Return class names in order of their numbers, which must be consecutive from 0."""
    numbered = dict(names) if isinstance(names, Mapping) else dict(enumerate(names))
    if sorted(numbered) != list(range(len(numbered))):
        raise InputError(
            f"expected names of the classes 0 to {len(numbered) - 1}, but got {sorted(numbered)!r:.60}",
            remedy="give classes=[...] in the order of their numbers",
        )
    return tuple(str(numbered[number]) for number in range(len(numbered)))


def _input_size(model: Any, imgsz: int | tuple[int, int] | None, stride: int) -> tuple[int, int]:
    """Return the largest width and height of the input, multiples of the stride."""
    chosen: Any = imgsz
    if chosen is None:
        overrides = getattr(model, "overrides", None)
        chosen = (overrides.get("imgsz") if isinstance(overrides, Mapping) else None) or USUAL_SIZE
    numbers = [chosen, chosen] if isinstance(chosen, int) else list(chosen)
    if len(numbers) == 1:
        numbers *= 2
    if len(numbers) != 2 or not all(isinstance(number, int) and number > 0 for number in numbers):
        raise InputError(f"expected imgsz to be a whole number or (height, width), but got {chosen!r:.40}")
    height, width = (max(-(-number // stride) * stride, stride) for number in numbers)
    return width, height


def letterbox(image: Pixels, size: tuple[int, int], stride: int, *, stretch: bool = False) -> tuple[Pixels, Placement]:
    """Return an image as Ultralytics places it on the network's input, and its placement.

    The image is scaled by one factor to fit `size` (width, height) and padded with grey to the next multiple of the
    stride, with the extra pixel below and to the right; or stretched to `size`, as for RT-DETR.
    """
    height, width = image.shape[:2]
    ratio = min(size[1] / height, size[0] / width)
    new = (size[0], size[1]) if stretch else (max(round(width * ratio), 1), max(round(height * ratio), 1))
    spare = ((size[0] - new[0]) % stride, (size[1] - new[1]) % stride)
    left, top = (round(rest / 2 - 0.1) for rest in spare)
    canvas = np.full((new[1] + spare[1], new[0] + spare[0], 3), GREY, np.uint8)
    if new != (width, height):
        import cv2  # same rounding as Ultralytics' preprocessing

        image = cv2.resize(image, new, interpolation=cv2.INTER_LINEAR)
    canvas[top : top + new[1], left : left + new[0]] = image
    return canvas, Placement((new[0] / width, new[1] / height), (float(left), float(top)), (width, height))


@contextmanager
def _one_to_many(head: Any) -> Iterator[None]:
    """Make an end-to-end head (v10, 26) return its one-to-many candidates within a block."""
    before = getattr(head, "end2end", False)
    if not before:
        yield
        return
    head.end2end = False
    try:
        yield
    finally:
        head.end2end = before


def yolo_candidates(
    outputs: Any, size: tuple[int, int], classes: int, placements: Sequence[Placement]
) -> list[Candidates]:
    """Return each image's candidates from a YOLO's outputs in evaluation mode, with variances and masks if predicted.

    `outputs` are decoded boxes and scores (B, 4 + C, N), and a dictionary with the edges' logits ``boxes``
    (B, 4 * bins, N), their feature maps ``feats``, and of segmentation models the prototypes ``proto``. Columns after
    the scores of `classes` are the coefficients of prototypes, and are ignored otherwise. `size` is the width and
    height of the network's input.
    """
    decoded, raw = outputs[0], outputs[1]
    if isinstance(decoded, tuple | list):  # followed by masks
        decoded = decoded[0]
    raw = raw[-1] if isinstance(raw, tuple | list) and isinstance(raw[-1], Mapping) else raw
    raw = raw.get("one2many", raw)
    bins = raw["boxes"].shape[1] // 4
    prototypes = raw["proto"].detach().float().cpu().numpy() if "proto" in raw else None
    rows = decoded.detach().float().cpu().numpy().transpose(0, 2, 1)
    cells, scale = grid(size, [size[0] // level.shape[3] for level in raw["feats"]])
    if rows.shape[1] != len(cells) or rows.shape[2] < 4 + classes:
        got = " x ".join(map(str, rows.shape[1:]))
        raise InputError(
            f"expected {len(cells)} candidates of {4 + classes} numbers from the model, but got {got}",
            remedy="disable end-to-end suppression: end2end = False",
        )
    found = []
    for image, placement in enumerate(placements):
        covariances = None
        if bins > 1:
            logits = raw["boxes"][image].detach().float().cpu().numpy().reshape(4, bins, -1).transpose(2, 0, 1)
            covariances = placement.covariances_to_image(dfl_corners(logits, cells, scale)[1])
        boxes = corners_of_centres(rows[image, :, :4])
        scores = np.ascontiguousarray(rows[image, :, 4 : 4 + classes])
        masks = None
        if prototypes is not None:
            masks = PrototypeMasks(rows[image, :, 4 + classes :], prototypes[image], size, placement)
        found.append(Candidates(placement.boxes_to_image(boxes), scores, covariances, heatmaps=masks))
    return found


def dfl_corners(logits: npt.NDArray[np.float32], cells: Floats, strides: Floats) -> tuple[Floats, Floats]:
    """Return boxes and corner covariances from logits (N, 4, bins) of distances, in strides from the cell centres."""
    return edge_corners((cells + 0.5) * strides[:, None], strides, *edge_moments(softmax(logits)))


def _query_candidates(outputs: Any, placements: Sequence[Placement]) -> list[Candidates]:
    """Return each image's candidates from RT-DETR's boxes (1, B, Q, 4) in 0..1 and logits (1, B, Q, C)."""
    boxes, logits = outputs[1][0][-1], outputs[1][1][-1]
    found = []
    for image, placement in enumerate(placements):
        corners = corners_of_centres(boxes[image].detach().float().cpu().numpy())
        scores = logits[image].detach().float().sigmoid().cpu().numpy()
        found.append(Candidates(corners * np.array(placement.image_size * 2), scores))
    return found

"""torchvision's dictionaries as tables: what its detectors return, and what they are trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from probox.adapters.dictionaries import (
    NO_CLASS,
    Naming,
    expect_entries,
    image_id_of,
    of_image,
    read_found,
    split_background,
)
from probox.adapters.images import image_ids_of, listed, sizes_of, stacked
from probox.adapters.targets import read_target, truth_of
from probox.errors import InputError
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.distributions import AboveOne
from probox.tables.groundtruth import GroundTruth

__all__ = ["from_torchvision", "truth_from_torchvision"]


def from_torchvision(
    outputs: Any,
    *,
    classes: Sequence[str],
    image_ids: Any = None,
    above_one: AboveOne = "limit",
) -> Detections:
    """Return the detections of torchvision's dictionaries.

    Parameters
    ----------
    outputs : dict, or list of them
        Of each image: ``boxes (n, 4)`` in pixels, ``labels (n,)`` and ``scores (n,)``. Optional: ``label_probs``, the
        probabilities of all classes, perhaps with background first (then `labels` and `scores` may be left out), and
        ``covariances`` in any shape that `Detections.from_scores` takes.
    classes : sequence of str
        ``weights.meta["categories"]``, which begins with background, or the names of classes alone. Labels count from 1
        either way, as 0 is background.
    image_ids : int or sequence of int
        The id of each image; by default that of an entry ``image_id``.
    above_one : {"limit", "normalise", "refuse"}
        What happens to `label_probs` that add up to more than 1, see `Detections.from_scores`.

    Examples
    --------
    >>> output = {"boxes": [[10, 20, 50, 60]], "labels": [2], "scores": [0.8]}
    >>> from_torchvision(output, classes=["__background__", "cup", "dog"], image_ids=7).labels.tolist()
    [1]
    """
    results = listed(outputs, isinstance(outputs, Mapping))
    ids = image_ids_of(image_ids, len(results), [image_id_of(result) for result in results])
    naming = _naming(classes)
    images, masks, nameless = [], [], 0
    for number, (image, result) in enumerate(zip(ids, results, strict=True)):
        with of_image(image):
            hint = "this looks like what a detector is trained on: use truth_from_torchvision"
            expect_entries(result, f"outputs[{number}]", ("boxes", "labels", "scores"), no_scores=hint)
            found = read_found(result, naming, "xyxy", None)
        nameless += found.nameless
        images.append(found.rows)
        masks.append(found.masks)
    notes = (f"{nameless} detections of {NO_CLASS}, which is no class, were left out",) if nameless else ()
    return stacked(
        images,
        ids,
        naming.classes or (),
        above_one=above_one,
        masks=[each.get("masks") for each in results],
        notes=notes,
    )


def truth_from_torchvision(
    targets: Any,
    *,
    classes: Sequence[str],
    image_ids: Any = None,
    image_sizes: Any = None,
) -> GroundTruth:
    """Return ground truth of the dictionaries that torchvision's detectors are trained on.

    Parameters
    ----------
    targets : dict, or list of them
        Of each image: ``boxes (n, 4)`` in pixels and ``labels (n,)``. Optional: ``masks (n, H, W)``, whose pixels PDQ
        goes by (without them, those of the boxes; an object whose mask has no pixel is left out), ``iscrowd (n,)``,
        ``area (n,)``, ``image_id``, and the size of the image as ``image_size`` (width, height), or ``size`` or
        ``orig_size`` (height, width).
    classes : sequence of str
        As for `from_torchvision`: labels count from 1.
    image_ids : int or sequence of int
        The id of each image; by default that of an entry ``image_id``.
    image_sizes : mapping of image id to (width, height), Dataset, or (width, height) of each image, optional
        How large images are; goes before what targets say.

    Examples
    --------
    >>> target = {"boxes": [[10, 20, 50, 60]], "labels": [2], "image_id": 7}
    >>> truth_from_torchvision(target, classes=["cup", "dog"], image_sizes=(64, 64))
    GroundTruth(1 image, 1 object, 2 classes)
    """
    results = listed(targets, isinstance(targets, Mapping))
    ids = image_ids_of(image_ids, len(results), [image_id_of(result) for result in results])
    naming = _naming(classes)
    given: dict[int, tuple[int, int]] = {}
    if image_sizes is not None:
        pairs = sizes_of(image_sizes, ids).astype(int).tolist()
        given = {image: (width, height) for image, (width, height) in zip(ids, pairs, strict=True)}
    read, sizes = {}, {}
    for number, (image, result) in enumerate(zip(ids, results, strict=True)):
        with of_image(image):
            expect_entries(result, f"targets[{number}]", ("boxes", "labels"))
            read[image] = read_target(result, naming, size=given.get(image))
        size = read[image].size
        if size is None:
            remedy = "give image_sizes={image id: (width, height)}"
            raise InputError("the size of this image is not known", image=image, remedy=remedy)
        sizes[image] = size
    dataset = Dataset.from_sizes(naming.classes or (), sizes)
    return truth_of(dataset, [read[image] for image in dataset.image_ids.tolist()])


def _naming(classes: Sequence[str]) -> Naming:
    """Return how torchvision names classes: labels count from 1, whether background has a name or not."""
    names, background = split_background(classes)
    if background == "last":
        raise InputError(f"background ({classes[-1]!r}) stands at the end of classes", remedy="put it first")
    return Naming(
        names=names,
        first_label=1,
        background="first",
        zero="torchvision's labels count from 1; where yours count from 0, use Detections.from_scores",
        beyond='give all classes: weights.meta["categories"], or as many names as there are labels',
    )

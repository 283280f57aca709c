"""torchvision's dictionaries as tables: outputs of its detectors, and their training targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

from probox.adapters.image_masks import as_flags, mask_arrays, read_masks
from probox.adapters.image_rows import (
    NO_CLASS,
    ImageRows,
    image_ids_of,
    list_outputs,
    of_image,
    sizes_of,
    stack_rows,
)
from probox.errors import InputError
from probox.notes import InputWarning, Note
from probox.support.types import Array, Bools, Floats, Ints
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections, check_scores
from probox.tables.geometry import (
    BoxFormat,
    boxes_from,
    check_box_format,
    corners_from,
    extents_of,
    pixels_of_boxes,
)
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import AboveOne, background_classes
from probox.tables.masks import Masks
from probox.tables.table import check_classes, frozen, to_numpy

ENTRIES = ("boxes", "labels", "scores", "label_probs", "covariances")
UNCERTAIN, NEAR = ("std", "stds", "var", "covars", "variances"), 0.8
"""Other names for uncertainty, and the least similarity of a misspelt entry to the intended one."""


Size = tuple[int, int]
SIZE_KEYS = {"image_size": True, "orig_size": False, "size": False}
"""Entries of a target with the image's size, and whether width comes first; DETR's sizes are (height, width)."""
OUTSIDE = 1.1
"""Boxes beyond this multiple of the image's size are not merely objects at its border."""
ORDER = "image_size and image_sizes are (width, height); orig_size and size are (height, width)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelNaming:
    """Meaning of label numbers, and the position of background among probabilities."""

    names: tuple[str, ...] | None
    """Names of labels `first_label`, `first_label` + 1, ..., without background; None if unknown."""
    first_label: int
    background: Literal["first", "last"] | None
    zero: str = "leave background out"
    """Remedy for background labels; `beyond` and `next_beyond`: for labels out of range, and for the next number."""
    beyond: str = "check the order and number of classes"
    next_beyond: str | None = None

    @property
    def columns(self) -> Ints:
        """Return the column of each name; -1 for a name that is not a class."""
        real = np.array([name != NO_CLASS for name in self.names or ()], bool)
        return np.where(real, np.cumsum(real) - 1, -1)

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Return the names of columns."""
        return None if self.names is None else tuple(name for name in self.names if name != NO_CLASS)

    def columns_at(self, labels: Any, rows: int, whose: str) -> Ints:
        """Return the columns of labels; -1 for a label that is not a class."""
        numbers = column_of(labels, rows, "labels", np.int64)
        if not rows:
            return numbers
        first, low, high = self.first_label, int(numbers.min()), int(numbers.max())
        last = None if self.names is None else first + len(self.names) - 1
        nothing = 0 if first else None if self.background != "last" or last is None else last + 1
        if nothing is not None and (numbers == nothing).any():
            raise InputError(f"label {nothing} is background, expected the label of an object", remedy=self.zero)
        if last is None:
            if low < first:
                raise InputError(f"expected {whose} labels to begin at {first}, but got {low}")
            return numbers - first
        if low < first or high > last:
            off_by_one = self.next_beyond is not None and high == last + 1
            raise InputError(
                f"expected {whose} labels from {first} to {last}, but got {low if low < first else high}",
                remedy=self.next_beyond if off_by_one else self.beyond,
            )
        return np.asarray(self.columns[numbers - first], np.int64)


def split_background(classes: Sequence[str]) -> tuple[tuple[str, ...], Literal["first", "last"] | None]:
    """Return names without background, and the position of background.

    >>> split_background(["__background__", "cup"])
    (('cup',), 'first')
    """
    names = check_classes(classes)
    at = np.flatnonzero(background_classes(names))
    if not len(at):
        return names, None
    if len(at) == 1 and at[0] == 0:
        return names[1:], "first"
    if len(at) == 1 and at[0] == len(names) - 1:
        return names[:-1], "last"
    raise InputError(f"background ({names[at[-1]]!r}) is in the middle of classes", remedy="put it first")


def expect_entries(given: Any, name: str, keys: Sequence[str], *, no_scores: str | None = None) -> None:
    """Raise unless this is a dictionary with these entries; `label_probs` stand in for labels and scores."""
    remedy: str | None = f"give a list with a dictionary for each image: {', '.join(keys)}"
    if not isinstance(given, Mapping):
        raise InputError(f"expected {name} to be a dictionary, but got {type(given).__name__}", remedy=remedy)
    told = ("scores", "labels") if given.get("label_probs") is not None else ()
    missing = [key for key in keys if given.get(key) is None and key not in told]
    if not missing:
        return
    if "loss_classifier" in given:
        remedy = "put the model into model.eval()"
    elif missing == ["scores"] and no_scores is not None:
        remedy = no_scores
    there = ", ".join(map(repr, given)) or "nothing"
    raise InputError(f"expected {name} to have {missing[0]!r}, but got {there:.80}", remedy=remedy)


def column_of(values: Any, rows: int, name: str, dtype: Any) -> Array:
    """Return an entry with one number for each box."""
    array = to_numpy(values, name)
    if rows == 0 and array.size == 0:
        return np.zeros(0, dtype)
    if array.ndim == 1 and len(array) != rows:
        raise InputError(f"got {rows} boxes, but {len(array)} {name}")
    if dtype is bool and array.dtype.kind != "b":
        return np.asarray(frozen(array, np.int64, (rows,), name) != 0)
    return frozen(array, dtype, (rows,), name)


def image_id_of(holder: Any) -> int | None:
    """Return the `image_id` entry of an output or target; None without one."""
    given = holder.get("image_id") if isinstance(holder, Mapping) else None
    if given is None:
        return None
    number = to_numpy(given, "image_id")
    if number.size != 1 or number.dtype.kind not in "iu":
        raise InputError(
            f"expected image_id to be a whole number, but got {given!r:.40}",
            remedy="number the images, or leave it out",
        )
    return int(number.reshape(()))


def corners_of(given: Any, whose: str, box_format: BoxFormat) -> tuple[Floats, Floats | None]:
    """Return boxes as corners, and their widths and heights if the format has them."""
    boxes = frozen(to_numpy(given, "boxes"), np.float64, (-1, 4), "boxes")
    # torchvision's BoundingBoxes state their own format.
    stated: Any = getattr(getattr(given, "format", None), "name", box_format).lower()
    check_box_format(stated)
    corners, extents = boxes_from(boxes, stated, None)
    turned = np.flatnonzero((corners[:, 2:] < corners[:, :2]).any(axis=1))
    if len(turned):
        raise InputError(
            f"expected x1 <= x2 and y1 <= y2 in {whose} boxes, but got {corners[turned[0]].tolist()}",
            remedy=f'boxes were read as "{stated}"; check box_format=',
        )
    return corners, extents


def read_found(
    given: Mapping[str, Any], naming: LabelNaming, box_format: BoxFormat, covariance_format: BoxFormat | None
) -> ImageRows:
    """Return the rows of one image's dictionary of predictions."""
    whose = "the predictions'"
    _check_spelling(given)
    boxes, extents = corners_of(given["boxes"], whose, box_format)
    count = len(boxes)
    labels, scores, probs, covariances = (
        given.get(name) for name in ("labels", "scores", "label_probs", "covariances")
    )
    named = None if labels is None else naming.columns_at(labels, count, whose)
    stated = None if scores is None else column_of(scores, count, "scores", np.float64)
    if stated is not None:
        check_scores(stated)
    every = None
    if probs is not None:
        every = np.array(to_numpy(probs, "label_probs"))  # copied, because the caller may reuse the buffer
        if every.size == 0 and count == 0:
            every = np.zeros((0, len(naming.classes or ())))
        check_scores(every, "label_probs")
    rows = ImageRows(
        boxes=boxes,
        scores=stated,
        labels=named,
        label_probs=every,
        covariances=corners_from(
            count,
            covariances=covariances,
            covariance_format=None if covariances is None else covariance_format,
            box_format=box_format,
        ),
        extents=extents,
        masks=read_masks(given.get("masks"), count),
    )
    if every is not None and count:
        rows = _with_columns(rows, naming)
    return rows.without_nameless()


def _check_spelling(given: Mapping[str, Any]) -> None:
    """Raise for a misspelt entry, which would otherwise be ignored."""
    for key in given:
        meant = ["covariances"] if key in UNCERTAIN else get_close_matches(str(key), ENTRIES, 1, NEAR)
        if meant and key not in ENTRIES and given.get(meant[0]) is None:
            raise InputError(f"unknown entry {key!r:.40} of predictions", remedy=f"did you mean {meant[0]!r}?")


def _with_columns(rows: ImageRows, naming: LabelNaming) -> ImageRows:
    """Return rows with class probabilities only; missing labels and scores are those of the largest probability."""
    probs, count = rows.label_probs, len(rows.boxes)
    assert probs is not None
    if naming.names is not None and naming.classes is not None:
        # Here labels count in all names, "N/A" included, as probabilities do.
        of_names = np.append(np.flatnonzero(naming.columns >= 0), -1)
        whole = rows if rows.labels is None else dataclasses.replace(rows, labels=of_names[rows.labels])
        probs = whole.without_background(len(naming.names), naming.background).label_probs
        assert probs is not None
        probs = probs[:, naming.columns >= 0]
    labels = rows.labels if rows.labels is not None else probs.argmax(axis=1)
    if labels.max() >= probs.shape[1]:
        raise InputError(
            f"expected label_probs with a column for label {int(labels.max()) + naming.first_label}, but got "
            f"width {probs.shape[1]}",
            remedy="labels count in their columns"
            if naming.first_label
            else "if labels begin at 1, give first_label=1",
        )
    scores = rows.scores if rows.scores is not None else probs[np.arange(count), labels].astype(np.float64)
    return dataclasses.replace(rows, labels=labels, scores=scores, label_probs=probs.astype(np.float32))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """The objects of one image. Labels are columns of classes."""

    image_id: int | None
    size: Size | None
    labels: Ints
    boxes: Floats
    extents: Floats
    masks: Masks | None
    areas: Floats
    crowd: Bools
    empty: int
    """Number of objects left out because their masks have no pixels."""


def read_target(
    given: Mapping[str, Any], naming: LabelNaming, box_format: BoxFormat = "xyxy", size: Size | None = None
) -> Target:
    """Return the objects of one image's target; `size` takes precedence over the target's own size."""
    boxes, extents = corners_of(given["boxes"], "the target's", box_format)
    count = len(boxes)
    labels = naming.columns_at(given["labels"], count, "the target's")
    if (labels < 0).any():
        raise InputError(f"an object has the label of {NO_CLASS}, expected a class", remedy="remove the object")
    flags = _flags(given.get("masks"), count)
    size = _size(given, flags, size)
    _check_boxes(boxes, size)
    areas, crowd = given.get("area"), given.get("iscrowd")
    with np.errstate(over="ignore", invalid="ignore"):  # the table reports such boxes with a better message
        sides = extents_of(boxes) if extents is None else extents
        usual = sides.prod(axis=1)  # default of torchmetrics
    kept = np.arange(count) if flags is None or not count else np.flatnonzero(flags.any(axis=(1, 2)))
    return Target(
        image_id=image_id_of(given),
        size=size,
        labels=labels[kept],
        boxes=boxes[kept],
        extents=sides[kept],
        masks=None if flags is None or not count else Masks.from_arrays(list(flags[kept])),
        areas=(usual if areas is None else column_of(areas, count, "area", np.float64))[kept],
        crowd=(np.zeros(count, bool) if crowd is None else column_of(crowd, count, "iscrowd", bool))[kept],
        empty=count - len(kept),
    )


def truth_of(dataset: Dataset, targets: Sequence[Target]) -> GroundTruth:
    """Return the ground truth of images, which must be in the order of the dataset."""
    masks = []
    for target, shape in zip(targets, dataset.shapes, strict=True):
        shapes = np.broadcast_to(shape, (len(target.boxes), 2))
        masks.append(target.masks or Masks.from_boxes(pixels_of_boxes(target.boxes, shapes)))
    empty = sum(target.empty for target in targets)
    notes = [Note("pixelless-masks", empty)] if empty else []

    def join(name: str, nothing: Array) -> Array:
        return np.concatenate([nothing, *(getattr(target, name) for target in targets)])

    return GroundTruth(
        dataset=dataset,
        image_rows=np.repeat(np.arange(len(targets)), [len(target.boxes) for target in targets]),
        labels=join("labels", np.zeros(0, np.int64)).astype(np.int32),
        boxes=join("boxes", np.zeros((0, 4))),
        masks=Masks.concatenate(masks),
        extents=join("extents", np.zeros((0, 2))),
        areas=join("areas", np.zeros(0)),
        crowd=join("crowd", np.zeros(0, bool)),
        notes=(*notes, *_check_swapped(dataset, targets)),
    )


def _check_swapped(dataset: Dataset, targets: Sequence[Target]) -> list[Note]:
    """Return a warning if most images' boxes reach far outside, but would fit with width and height exchanged."""
    reach = np.array([target.boxes[:, 2:].max(axis=0, initial=0.0) for target in targets]).reshape(-1, 2)
    sizes = dataset.shapes.astype(np.float64)
    outside = (reach > OUTSIDE * sizes + 1).any(axis=1) & (reach <= sizes[:, ::-1] + 1).all(axis=1)
    told = (reach > 0).any(axis=1) & (sizes[:, 0] != sizes[:, 1])
    if not outside.any() or 2 * outside.sum() < told.sum():
        return []
    return [InputWarning("image-sizes-swapped", outside.sum(), total=int(told.sum()), order=ORDER)]


def _flags(masks: Any, rows: int) -> Bools | None:
    """Return the objects' masks (n, H, W); without objects they still determine the image's size."""
    arrays = None if masks is None else mask_arrays(masks, rows)
    return None if arrays is None or 0 in arrays.shape[1:] else as_flags(arrays)


def _size(target: Mapping[str, Any], flags: Bools | None, given: Size | None) -> Size | None:
    """Return width and height: as given, or from the target or its masks."""
    said = {"image_size": given} if given is not None else _said_sizes(target)
    if flags is not None:
        height, width = flags.shape[1:]
        if said and (width, height) not in said.values():
            first = next(iter(said.values()))
            raise InputError(
                f"the image is {first[0]} x {first[1]}, but its masks are {width} x {height}", remedy=ORDER
            )
        return width, height
    if len(set(said.values())) > 1:
        sizes = " and ".join(f"{key} {width} x {height}" for key, (width, height) in said.items())
        raise InputError(
            f"the target has two sizes, {sizes}",
            remedy="give the size that boxes refer to as image_size (width, height)",
        )
    return next(iter(said.values()), None)


def _said_sizes(target: Mapping[str, Any]) -> dict[str, Size]:
    """Return each width and height in a target; image_size takes precedence over all others."""
    entries = {key: target.get(key) for key in SIZE_KEYS}
    entries["canvas_size"] = getattr(target["boxes"], "canvas_size", None)
    said: dict[str, Size] = {}
    for key, entry in entries.items():
        if entry is None:
            continue
        width_first = SIZE_KEYS.get(key, False)
        numbers = to_numpy(entry, key).reshape(-1)
        if numbers.shape != (2,) or numbers.dtype.kind not in "iuf" or not (numbers >= 1).all():
            order = "width, height" if width_first else "height, width"
            raise InputError(f"expected {key} to be {order}, but got {entry!r:.60}")
        first, second = (int(number) for number in numbers)
        said[key] = (first, second) if width_first else (second, first)
    return {"image_size": said["image_size"]} if "image_size" in said else said


def _check_boxes(boxes: Floats, size: Size | None) -> None:
    """Raise for boxes that are fractions of the image size."""
    if not len(boxes):
        return
    if np.abs(boxes).max() <= 1.0 and (size is None or max(size) > 1):
        raise InputError(
            "expected the target's boxes in pixels, but none reaches beyond 1: they look normalised",
            remedy="multiply them, and the predictions', by the image's width and height",
        )


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
        For each image: ``boxes (n, 4)`` in pixels, ``labels (n,)`` and ``scores (n,)``. Optional: ``label_probs``, the
        probabilities of all classes, optionally with background first, ``covariances`` in any shape that
        `Detections.from_scores` takes, and ``masks (n, 1, H, W)``: floats, as of Mask R-CNN, become heatmaps, and
        booleans masks. With `label_probs`, `labels` and `scores` may be omitted.
    classes : sequence of str
        ``weights.meta["categories"]``, which begins with background, or the names of classes only. Labels count from 1
        in both cases; 0 is background.
    image_ids : int or sequence of int
        The id of each image. Default: its entry ``image_id``.
    above_one : {"limit", "normalise", "refuse"}
        Treatment of `label_probs` that sum to more than 1, see `Detections.from_scores`.

    Returns
    -------
    Detections
        The detections of all images.

    Examples
    --------
    >>> output = {"boxes": [[10, 20, 50, 60]], "labels": [2], "scores": [0.8]}
    >>> from_torchvision(output, classes=["__background__", "cup", "dog"], image_ids=7).labels.tolist()
    [1]
    """
    results = list_outputs(outputs, isinstance(outputs, Mapping))
    ids = image_ids_of(image_ids, len(results), [image_id_of(result) for result in results])
    naming = _naming(classes)
    images = []
    for number, (image, result) in enumerate(zip(ids, results, strict=True)):
        with of_image(image):
            hint = "this looks like a training target: use truth_from_torchvision"
            expect_entries(result, f"outputs[{number}]", ("boxes", "labels", "scores"), no_scores=hint)
            images.append(read_found(result, naming, "xyxy", None))
    return stack_rows(images, ids, naming.classes or (), above_one=above_one)


def truth_from_torchvision(
    targets: Any,
    *,
    classes: Sequence[str],
    image_ids: Any = None,
    image_sizes: Any = None,
) -> GroundTruth:
    """Return ground truth from torchvision's training targets.

    Parameters
    ----------
    targets : dict, or list of them
        For each image: ``boxes (n, 4)`` in pixels and ``labels (n,)``. Optional: ``masks (n, H, W)``, ``iscrowd (n,)``,
        ``area (n,)``, ``image_id``, and the size of the image as ``image_size`` (width, height), or ``size`` or
        ``orig_size`` (height, width). PDQ uses the pixels of masks; without masks, those of the boxes. Objects whose
        masks have no pixels are left out.
    classes : sequence of str
        As for `from_torchvision`: labels count from 1.
    image_ids : int or sequence of int
        The id of each image. Default: its entry ``image_id``.
    image_sizes : mapping of image id to (width, height), Dataset, or (width, height) of each image, optional
        Sizes of images; they take precedence over those in targets.

    Returns
    -------
    GroundTruth
        The objects of all images.

    Examples
    --------
    >>> target = {"boxes": [[10, 20, 50, 60]], "labels": [2], "image_id": 7}
    >>> truth_from_torchvision(target, classes=["cup", "dog"], image_sizes=(64, 64))
    GroundTruth(1 image, 1 object, 2 classes)
    """
    results = list_outputs(targets, isinstance(targets, Mapping))
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
            raise InputError("the size of this image is unknown", image=image, remedy=remedy)
        sizes[image] = size
    dataset = Dataset.from_sizes(naming.classes or (), sizes)
    return truth_of(dataset, [read[image] for image in dataset.image_ids.tolist()])


def _naming(classes: Sequence[str]) -> LabelNaming:
    """Return torchvision's naming of classes: labels count from 1, with or without a name for background."""
    names, background = split_background(classes)
    if background == "last":
        raise InputError(f"background ({classes[-1]!r}) is at the end of classes", remedy="put it first")
    return LabelNaming(
        names=names,
        first_label=1,
        background="first",
        zero="torchvision's labels count from 1; for labels that count from 0, use Detections.from_scores",
        beyond='give all classes: weights.meta["categories"], or as many names as there are labels',
    )

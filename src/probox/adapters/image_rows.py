"""Common parts of all adapters: one image's detections as rows, image ids and sizes, and one table of all images."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from probox.adapters.image_masks import ImageMasks, read_masks
from probox.errors import InputError
from probox.notes import Note
from probox.support.types import Array, Floats, Ints
from probox.tables.detections import Detections, label_columns, refuse_text
from probox.tables.geometry import known_sizes
from probox.tables.masks import Masks
from probox.tables.table import frozen, to_numpy

NO_CLASS = "N/A"
"""Name of numbers that COCO never assigned to a class, in torchvision's lists of categories."""
HALF, SAME = 0.5, 1e-3
"""Least fraction of rows in which labels match the probabilities; tolerance of scores (three digits)."""
SHARE = 1.0 + 1e-6
"""No box of a photo ends within the first pixel: if all boxes do, they are fractions of the image size."""


@contextmanager
def of_image(image: int | None, entry: str | None = None) -> Iterator[None]:
    """Add the image id to errors raised inside."""
    try:
        yield
    except InputError as error:
        raise InputError(
            error.problem,
            image=image if error.image is None else error.image,
            entry=error.entry or entry,
            remedy=error.remedy,
        ) from None


def list_outputs(outputs: Any, is_one: bool) -> list[Any]:
    """Return the outputs of several images as a list; with `is_one`, this is the output of one image."""
    if is_one:
        return [outputs]
    if isinstance(outputs, list | tuple):
        return list(outputs)
    raise InputError(
        f"expected the output of an image, or a list of them, but got {type(outputs).__name__}",
        remedy="give the model's output unchanged",
    )


def read_rows(
    get: Callable[[str], Any],
    fields: Mapping[str, Sequence[str]],
    what: str,
    image: int | None,
    remedy: str,
    size: Any = None,
) -> ImageRows:
    """Return one image's rows from the fields of an object; each column is the first existing one of its `fields`.

    Boxes, scores and labels are required. `get` returns a field by name, or None. `what` describes the expected object
    in messages. `size`, height and width of the image if known, must be that of the masks.
    """
    found: dict[str, Any] = {}
    for column, names in fields.items():
        values = next((values for name in names if (values := get(name)) is not None), None)
        if values is None and column in ("boxes", "scores", "labels"):
            raise InputError(f"expected {what} without {names[0]}", image=image, remedy=remedy)
        # Types of boxes and masks of detectron2 and torchvision hold a tensor.
        held = getattr(values, "tensor", values)
        found[column] = held if held is None or column == "masks" else to_numpy(held, names[0])
    with of_image(image):
        found["masks"] = read_masks(found.get("masks"), len(found["boxes"]), size=size)
    return ImageRows(**found)


def check_labels(labels: Array | None, classes: int, name: str, image: int | None, remedy: str) -> None:
    """Raise for labels outside 0 to `classes` - 1."""
    if labels is None:
        return
    wrong = labels[(labels < 0) | (labels >= classes)]
    if wrong.size:
        raise InputError(
            f"expected {name} from 0 to {max(classes, 1) - 1}, but got {wrong[0]:g}", image=image, remedy=remedy
        )


def describe_output(output: Any) -> str:
    """Return a description of an unexpected output: its entries, or its type."""
    return f"{', '.join(map(str, output)) if isinstance(output, Mapping) else type(output).__name__:.80}"


def image_ids_of(given: Any, count: int, known: Sequence[Any] | None = None) -> list[int]:
    """Return the image id of each output: those given, or else the outputs' own (`known`).

    >>> image_ids_of(7, 1), image_ids_of([7, 9], 2), image_ids_of(None, 1, [3])
    ([7], [7, 9], [3])
    """
    if given is None and count:
        if known is None or any(entry is None for entry in known):
            raise InputError(
                "the image ids of the outputs are unknown",
                remedy="give image_ids=, one per image, as in the ground truth",
            )
        given = list(known)
    values = to_numpy([] if given is None else given, "image_ids")
    if count == 0 == values.size:
        return []
    refuse_text(values)
    if values.ndim == 0 or values.shape == (count, 1):
        values = values.reshape(-1)
    if values.ndim != 1 or len(values) != count:
        shape = " x ".join(map(str, values.shape))
        raise InputError(
            f"got outputs of {count} images, but {shape} image ids", remedy="give one image id for each image"
        )
    ids: list[int] = frozen(values, np.int64, (count,), "image_ids").tolist()
    if len(set(ids)) < count:
        twice = next(entry for entry in ids if ids.count(entry) > 1)
        raise InputError("several outputs have this image id", image=twice, remedy="give each image its own id")
    return ids


def probs_of(given: Any, count: int, is_one: bool) -> list[Any]:
    """Return the probabilities given for each output; None for each if none were given.

    For one image's output, they may be an array or a list of one array.

    >>> probs_of([[[0.1, 0.9]]], 1, is_one=True)
    [[[0.1, 0.9]]]
    """
    if given is None:
        return [None] * count
    alone = is_one and to_numpy(given, "probs").ndim < 3
    probs = [given] if alone else list(given)
    if len(probs) != count:
        raise InputError(f"got {count} images, but probs of {len(probs)}", remedy="give one array per image")
    return probs


def sizes_of(image_sizes: Any, ids: Sequence[int]) -> Floats:
    """Return width and height of each image, (I, 2), from a pair, one pair per image, a mapping, or ground truth.

    >>> sizes_of({7: (64, 48)}, [7]).tolist()
    [[64.0, 48.0]]
    """
    known = known_sizes(image_sizes, ids)
    if known is not None:
        return known
    sizes = to_numpy(image_sizes, "image_sizes")
    if sizes.shape == (2,) and len(ids) == 1:
        sizes = sizes[None]
    if sizes.shape != (len(ids), 2) and not (sizes.size == 0 == len(ids)):
        shape = " x ".join(map(str, sizes.shape))
        raise InputError(
            f"expected the size of each of {len(ids)} images, but got {shape}", remedy="give one pair for each image"
        )
    result = frozen(sizes.reshape(-1, 2), np.float64, (len(ids), 2), "image sizes")
    if not (result > 0).all():
        raise InputError(f"expected image sizes above 0, but got {result.min():g}")
    return result


def check_within(boxes: Array, size: Any, image: int, remedy: str) -> None:
    """Raise for boxes that exceed an output's own size (height, width) by more than a tenth."""
    if size is None or boxes.size == 0 or boxes.ndim != 2:
        return
    height, width = (float(side) for side in to_numpy(size, "size").reshape(-1)[:2])
    reach = boxes[:, 2:4].max(axis=0)
    if (reach > 1.1 * np.array([width, height]) + 1).any():
        raise InputError(
            f"expected boxes inside the image of {width:g} x {height:g}, but they reach {reach[0]:.6g}, {reach[1]:.6g}",
            image=image,
            remedy=remedy,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageRows:
    """One image's output, a row per detection: a score and a label each, the scores of all classes, or both.

    Labels count in the classes from 0, or are names of classes. All images of a table have the same columns.
    """

    boxes: Array
    scores: Array | None = None
    labels: Array | None = None
    label_probs: Array | None = None
    covariances: Array | None = None
    extents: Array | None = None
    """Widths and heights, if the box format has them."""
    masks: ImageMasks | None = None
    nameless: int = 0
    """Number of detections without a class, which are left out."""

    def count(self, image: int | None = None) -> int:
        """Return the number of detections; raise where columns differ."""
        count = len(self.boxes) if self.boxes.size else 0
        if count and self.boxes.shape != (count, 4):
            shape = " x ".join(map(str, self.boxes.shape))
            raise InputError(f"expected boxes of shape N x 4, but got {shape}", image=image)
        for name in ("scores", "labels", "label_probs", "covariances"):
            values = getattr(self, name)
            if values is not None and (values.ndim == 0 or len(values) != count):
                got = len(values) if values.ndim else "one number for"
                raise InputError(f"got {count} boxes, but {got} {name}", image=image)
        return count

    def take(self, rows: Ints) -> ImageRows:
        """Return these rows."""
        columns: dict[str, Any] = {
            name: values[rows] for name, values in vars(self).items() if isinstance(values, np.ndarray)
        }
        return dataclasses.replace(self, masks=None if self.masks is None else self.masks.take(rows), **columns)

    def without_nameless(self) -> ImageRows:
        """Return the rows with nonnegative labels, and count the others."""
        if self.labels is None or (self.labels >= 0).all():
            return self
        rows = np.flatnonzero(self.labels >= 0)
        return dataclasses.replace(self.take(rows), nameless=len(self.labels) - len(rows))

    def with_probs(self, probs: Any, classes: int, image: int | None = None) -> ImageRows:
        """Return the rows with class probabilities only: those given, or their own."""
        given = self if probs is None else dataclasses.replace(self, label_probs=to_numpy(probs, "probs"))
        return given.without_background(classes, "last", image)

    def without_background(
        self, classes: int, background: Literal["first", "last"] | None, image: int | None = None
    ) -> ImageRows:
        """Return the rows with probabilities of classes only (N, C), without a background column.

        Labels and scores are compared with both ends, to detect a background at the other end.

        >>> rows = ImageRows(boxes=np.array([[0, 0, 9, 9]]), scores=np.array([0.7]), labels=np.array([1]),
        ...                  label_probs=np.array([[0.1, 0.2, 0.7]]))
        >>> rows.without_background(2, "first", image=7).label_probs.tolist()
        [[0.2, 0.7]]
        """
        count, probs, labels, scores = self.count(image), self.label_probs, self.labels, self.scores
        if probs is None or probs.shape == (count, classes) or count == 0:
            return self
        if background is None or probs.shape != (count, classes + 1):
            shape, remedy = " x ".join(map(str, probs.shape)), "give one column for each class, in the order of classes"
            if probs.shape == (count, classes + 1):
                remedy = 'if one column is background, name it in its place: classes=["background", "cup", ...]'
            perhaps = "" if background is None else f", optionally with background {background}"
            raise InputError(
                f"expected the probabilities of {count} boxes and {classes} classes{perhaps}, but got {shape}",
                image=image,
                remedy=remedy,
            )
        ends = {"first": probs[:, 1:], "last": probs[:, :-1]}
        chosen = ends.pop(background)
        ((name, other),) = ends.items()
        if labels is None or scores is None:
            return dataclasses.replace(self, label_probs=chosen)
        if _share_stated(chosen, labels, scores) < HALF <= _share_stated(other, labels, scores):
            raise InputError(
                f"expected the {background} of {classes + 1} columns to be background, but the {name} one seems to be",
                image=image,
                remedy=f"leave that column out: probs[:, {':-1' if name == 'last' else '1:'}]",
            )
        return dataclasses.replace(self, label_probs=chosen)


def stack_rows(
    images: Sequence[ImageRows],
    ids: Sequence[int],
    classes: Sequence[str],
    *,
    pixels: bool = True,
    **choices: Any,
) -> Detections:
    """Return one table of several images' rows; `choices` go to `Detections.from_scores`.

    With `pixels`, raise if all boxes are fractions of the image size.
    """
    counts = [rows.count(image) for image, rows in zip(ids, images, strict=True)]
    full = [rows for rows, count in zip(images, counts, strict=True) if count]
    boxes = np.concatenate([np.zeros((0, 4)), *(rows.boxes for rows in full)])
    if pixels and len(boxes) and np.abs(boxes).max() <= SHARE:
        raise InputError(
            f"expected boxes in pixels, but none of {len(boxes)} reaches beyond 1: they look normalised",
            remedy="multiply them by the image's size, or use Detections.from_scores(..., normalised=True)",
        )
    scores, labels, probs, covariances = (
        _join_column(full, name) for name in ("scores", "labels", "label_probs", "covariances")
    )
    if covariances is None:
        choices.pop("covariance_format", None)
    notes = []
    if nameless := sum(rows.nameless for rows in images):
        notes.append(Note("nameless-detections", nameless, name=NO_CLASS))
    if not full:
        probs, labels = np.zeros((0, len(classes))), None
    found = Detections.from_scores(
        boxes,
        scores if probs is None else probs,
        labels if probs is None else None,
        classes=classes,
        image_ids=np.repeat(np.asarray(ids, np.int64), counts),
        covariances=covariances,
        notes=notes,
        **choices,
    )
    if columns := _mask_columns(images, counts):
        found = found.replace(**columns)
    if probs is None or labels is None:
        return found
    stated = label_columns(labels, found.classes, len(found), None)
    check_order(probs, stated, scores)
    return found.replace(labels=stated, scores=scores)


def _mask_columns(images: Sequence[ImageRows], counts: Sequence[int]) -> dict[str, Any]:
    """Return the columns of binary masks and of heatmaps, if any image has them."""
    columns: dict[str, Any] = {}
    given = [rows.masks if count else None for rows, count in zip(images, counts, strict=True)]
    binary = [None if masks is None else masks.binary for masks in given]
    heatmaps = [None if masks is None else masks.heatmaps for masks in given]
    if any(masks is not None for masks in binary):
        columns["masks"] = Masks.concatenate(
            [Masks.empty(count) if masks is None else masks for masks, count in zip(binary, counts, strict=True)]
        )
        columns["has_mask"] = np.repeat([masks is not None for masks in binary], counts)
    if any(maps is not None for maps in heatmaps):
        columns["heatmaps"] = tuple(
            heatmap
            for maps, count in zip(heatmaps, counts, strict=True)
            for heatmap in ((None,) * count if maps is None else maps)
        )
    return columns


def _join_column(images: Sequence[ImageRows], name: str) -> Any:
    """Return a column of all images; None if no image has it. Raise if only some do."""
    parts = [getattr(rows, name) for rows in images]
    if all(part is None for part in parts):
        return None
    if any(part is None for part in parts):
        raise InputError(f"some images have {name}, others do not", remedy="give all of them, or omit them")
    shapes = sorted({part.shape[1:] for part in parts})
    if len(shapes) > 1:
        words = " and ".join(" x ".join(["N", *map(str, shape)]) for shape in shapes)
        raise InputError(f"{name} of images differ in shape: {words}", remedy="give all in one shape")
    return np.concatenate(parts)


def _share_stated(probs: Array, labels: Array, scores: Array) -> float:
    """Return the fraction of rows in which the probability of the label equals the score."""
    rows = np.flatnonzero((labels >= 0) & (labels < probs.shape[1])) if labels.dtype.kind in "iu" else np.zeros(0, int)
    same = np.abs(probs[rows, labels[rows]].astype(np.float64) - scores[rows]) <= SAME
    return float(same.sum()) / len(labels) if len(labels) else 1.0


def check_order(probs: Array, labels: Array, scores: Array, least: int = 5) -> None:
    """Raise if probabilities (N, C) rarely match the labels and scores (N,) of their rows.

    With fewer rows than `least`, only labels that are off by one are detected.
    """
    stated = _share_stated(probs, labels, scores)
    for step in (1, -1) if stated == 0.0 else ():
        if _share_stated(probs, labels + step, scores) == 1.0:
            raise InputError(
                f"the scores are the label_probs of label {step:+d}: labels and columns are off by one",
                remedy="let labels count in the columns of label_probs; name a background column in classes",
            )
    agree = int((probs.argmax(axis=1) == labels).sum()) if probs.size else 0
    if len(labels) < least or agree >= HALF * len(labels) or stated >= HALF:
        return
    raise InputError(
        f"label_probs seem to be in another order of classes: the largest one is the label's in only {agree} of "
        f"{len(labels)} detections",
        remedy="bring their columns into the order of classes",
    )

"""torchvision's dictionaries, as its adapters and the metric share them: entries, boxes, labels, and what was found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

from probox.adapters.image_rows import ImageRows
from probox.errors import InputError
from probox.support.types import Array, Floats, Ints
from probox.tables.arguments import check_classes, to_numpy
from probox.tables.from_scores import check_scores
from probox.tables.geometry import BoxFormat, boxes_from, check_box_format, corners_from
from probox.tables.labels import background_classes
from probox.tables.table import frozen

NO_CLASS = "N/A"
"""The name of numbers that COCO never gave to a class, in torchvision's lists of categories."""
ENTRIES = ("boxes", "labels", "scores", "label_probs", "covariances")
UNCERTAIN, NEAR = ("std", "stds", "var", "covars", "variances"), 0.8
"""What others call uncertainty, and how alike two names are of which one is misspelt."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelNaming:
    """What labels count in, and where background stands among probabilities."""

    names: tuple[str, ...] | None
    """Names of labels `first_label`, `first_label` + 1, ..., without background; None where they are unknown."""
    first_label: int
    background: Literal["first", "last"] | None
    zero: str = "leave background out"
    """What to do about labels of background, and below about labels out of range."""
    beyond: str = "check the order and number of classes"
    next_beyond: str | None = None

    @property
    def columns(self) -> Ints:
        """Return the column that each name gets; -1 for what is no class."""
        real = np.array([name != NO_CLASS for name in self.names or ()], bool)
        return np.where(real, np.cumsum(real) - 1, -1)

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Return the names of columns."""
        return None if self.names is None else tuple(name for name in self.names if name != NO_CLASS)

    def columns_at(self, labels: Any, rows: int, whose: str) -> Ints:
        """Return the columns that labels mean; -1 for what is no class."""
        numbers = column_of(labels, rows, "labels", np.int64)
        if not rows:
            return numbers
        first, low, high = self.first_label, int(numbers.min()), int(numbers.max())
        last = None if self.names is None else first + len(self.names) - 1
        nothing = 0 if first else None if self.background != "last" or last is None else last + 1
        if nothing is not None and (numbers == nothing).any():
            raise InputError(f"label {nothing} is background, which is no object", remedy=self.zero)
        if last is None:
            if low < first:
                raise InputError(f"expected {whose} labels to begin at {first}, but got {low}")
            return numbers - first
        if low < first or high > last:
            off_by_one = self.next_beyond is not None and high == last + 1
            raise InputError(
                f"expected {whose} labels to count in {last - first + 1} classes from {first} to {last}, but got "
                f"{low if low < first else high}",
                remedy=self.next_beyond if off_by_one else self.beyond,
            )
        return np.asarray(self.columns[numbers - first], np.int64)


def split_background(classes: Sequence[str]) -> tuple[tuple[str, ...], Literal["first", "last"] | None]:
    """Return names without background, and where it stood.

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
    raise InputError(f"background ({names[at[-1]]!r}) stands in the middle of classes", remedy="put it first")


@contextmanager
def of_image(image: int | None, entry: str | None = None) -> Iterator[None]:
    """Say whose image it was when something inside is wrong."""
    try:
        yield
    except InputError as error:
        raise InputError(
            error.problem,
            image=image if error.image is None else error.image,
            entry=error.entry or entry,
            remedy=error.remedy,
        ) from None


def expect_entries(given: Any, name: str, keys: Sequence[str], *, no_scores: str | None = None) -> None:
    """Raise unless this is a dictionary with these entries; `label_probs` tell labels and scores as well."""
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
    """Return the id that an image says itself."""
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
    """Return boxes as corners, and their widths and heights where these are said."""
    boxes = frozen(to_numpy(given, "boxes"), np.float64, (-1, 4), "boxes")
    # torchvision's own type of boxes says what its four numbers are.
    stated: Any = getattr(getattr(given, "format", None), "name", box_format).lower()
    check_box_format(stated)
    corners, extents = boxes_from(boxes, stated, None)
    turned = np.flatnonzero((corners[:, 2:] < corners[:, :2]).any(axis=1))
    if len(turned):
        raise InputError(
            f"expected x1 <= x2 and y1 <= y2 in {whose} boxes, but got {corners[turned[0]].tolist()}",
            remedy=f'boxes are read as "{stated}": is that what they are (box_format=)?',
        )
    return corners, extents


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageDetections:
    """What was found in one image: corners, columns of classes, and covariances of corners."""

    rows: ImageRows
    extents: Floats | None
    nameless: int
    """How many were of what is no class, and are left out."""
    masks: Any = None
    """True where the predictions have masks, which are not read."""


def read_found(
    given: Mapping[str, Any], naming: LabelNaming, box_format: BoxFormat, covariance_format: BoxFormat | None
) -> ImageDetections:
    """Return what one image's dictionary of predictions says."""
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
        every = np.array(to_numpy(probs, "label_probs"))  # a copy of our own
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
    )
    if every is not None and count:
        rows = _with_columns(rows, naming)
    real = np.flatnonzero(rows.labels >= 0) if rows.labels is not None else np.arange(count)
    return ImageDetections(
        rows=rows if len(real) == count else rows.take(real),
        extents=extents if extents is None else extents[real],
        nameless=count - len(real),
        masks=None if given.get("masks") is None else True,
    )


def _check_spelling(given: Mapping[str, Any]) -> None:
    """Raise for a misspelt entry, which would be ignored."""
    for key in given:
        meant = ["covariances"] if key in UNCERTAIN else get_close_matches(str(key), ENTRIES, 1, NEAR)
        if meant and key not in ENTRIES and given.get(meant[0]) is None:
            raise InputError(f"there is no entry {key!r:.40} in predictions", remedy=f"did you mean {meant[0]!r}?")


def _with_columns(rows: ImageRows, naming: LabelNaming) -> ImageRows:
    """Return rows with probabilities of classes alone; without labels and scores, the largest are."""
    probs, count = rows.label_probs, len(rows.boxes)
    assert probs is not None
    if naming.names is not None and naming.classes is not None:
        # Labels count in all names here, as probabilities do.
        of_names = np.append(np.flatnonzero(naming.columns >= 0), -1)
        whole = rows if rows.labels is None else dataclasses.replace(rows, labels=of_names[rows.labels])
        probs = whole.without_background(len(naming.names), naming.background).label_probs
        assert probs is not None
        probs = probs[:, naming.columns >= 0]
    labels = rows.labels if rows.labels is not None else probs.argmax(axis=1)
    if labels.max() >= probs.shape[1]:
        raise InputError(
            f"label {int(labels.max()) + naming.first_label} has none of the {probs.shape[1]} label_probs",
            remedy="labels count in their columns"
            if naming.first_label
            else "if labels begin at 1, give first_label=1",
        )
    scores = rows.scores if rows.scores is not None else probs[np.arange(count), labels].astype(np.float64)
    return dataclasses.replace(rows, labels=labels, scores=scores, label_probs=probs.astype(np.float32))

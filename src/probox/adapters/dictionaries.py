"""torchvision's dictionaries: what one image's predictions and target say, checked and brought to NumPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.arguments import check_classes
from probox.tables.arrays import to_numpy
from probox.tables.box_formats import BoxFormat, boxes_from, check_box_format
from probox.tables.columns import frozen
from probox.tables.corner_gaussians import corners_from
from probox.tables.distributions import AboveOne, to_distribution
from probox.tables.labels import background_classes
from probox.tables.masks import Masks

__all__ = ["Reading", "Seen"]

SIZE_KEYS = {"image_size": True, "orig_size": False, "size": False}
"""Where a target says how large its image is, and whether width comes first; DETR's sizes are height, width."""

SAME_SCORE = 1e-4
"""How near a score and a label probability are that mean the same."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """One image: its objects and what was found. Labels count in classes without background."""

    image_id: int | None
    size: tuple[int, int] | None
    object_labels: npt.NDArray[np.int64]
    object_boxes: npt.NDArray[np.float64]
    object_extents: npt.NDArray[np.float64] | None
    masks: Masks | None
    areas: npt.NDArray[np.float64] | None
    crowd: npt.NDArray[np.bool_]
    labels: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    boxes: npt.NDArray[np.float64]
    extents: npt.NDArray[np.float64] | None
    label_probs: npt.NDArray[np.float32] | None
    covariances: npt.NDArray[np.float64] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """How dictionaries are read: what labels count in, and what boxes are."""

    classes: tuple[str, ...] | None
    """As they were given, background included."""
    first_label: int
    box_format: BoxFormat
    covariance_format: BoxFormat | None
    above_one: AboveOne

    def __post_init__(self) -> None:
        if self.classes is not None:
            object.__setattr__(self, "classes", check_classes(self.classes))
        check_box_format(self.box_format)
        if self.first_label not in (0, 1):
            raise InputError(f"expected first_label to be 0 or 1, but got {self.first_label!r:.40}")
        if self.above_one not in get_args(AboveOne):
            choices = ", ".join(map(repr, get_args(AboveOne)))
            raise InputError(f"expected above_one to be one of {choices}, but got {self.above_one!r:.40}")
        if self.first_label and self.classes and background_classes(self.classes)[0]:
            raise InputError(
                f"classes begin with {self.classes[0]!r}, so labels count from it and its number is 0",
                remedy="leave first_label out, or the background",
            )

    @property
    def real(self) -> npt.NDArray[np.bool_] | None:
        """Return which of the classes are not background."""
        return None if self.classes is None else ~background_classes(self.classes)

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Return the classes without background."""
        if self.classes is None or self.real is None:
            return None
        return tuple(name for name, real in zip(self.classes, self.real.tolist(), strict=True) if real)

    def read(self, prediction: Any, target: Any, entry: int) -> Seen:
        """Return what one image's two dictionaries say."""
        _expect_mapping(prediction, f"preds[{entry}]", ("boxes", "scores", "labels"))
        _expect_mapping(target, f"target[{entry}]", ("boxes", "labels"))
        try:
            return self._read(prediction, target)
        except InputError as error:
            image = _image_id(target) if error.image is None else error.image
            where = f"update's entry {entry}" if image is None else error.entry
            raise InputError(error.problem, image=image, entry=where, remedy=error.remedy) from None

    def _read(self, prediction: Mapping[str, Any], target: Mapping[str, Any]) -> Seen:
        truth, truth_extents = self._boxes(target, "the target's")
        boxes, extents = self._boxes(prediction, "the predictions'")
        size = _size(target)
        masks, mask_size = _masks(target, len(truth))
        if size is not None and mask_size is not None and size != mask_size:
            raise InputError(
                f"the image is {size[0]} x {size[1]}, but its masks are {mask_size[0]} x {mask_size[1]}",
                remedy="image_size is width, height; orig_size and size are height, width",
            )
        size = size or mask_size
        if len(truth) and truth.max() <= 1.0:
            raise InputError(
                "the target's boxes lie between 0 and 1, where pixels are expected",
                remedy="multiply them, and the predictions', by the image's width and height",
            )
        _check_reach(truth, size)
        probs = self._label_probs(prediction, len(boxes))
        labels, scores = self._named(prediction, probs, len(boxes))
        crowd = target.get("iscrowd")
        areas = target.get("area")
        return Seen(
            image_id=_image_id(target),
            size=size,
            object_labels=self._labels(target, len(truth), "the target's"),
            object_boxes=truth,
            object_extents=truth_extents,
            masks=masks,
            areas=None if areas is None else _column(areas, len(truth), "area", np.float64),
            crowd=np.zeros(len(truth), bool) if crowd is None else _column(crowd, len(truth), "iscrowd", bool),
            labels=labels,
            scores=scores,
            boxes=boxes,
            extents=extents,
            label_probs=probs,
            covariances=corners_from(
                len(boxes),
                covariances=prediction.get("covariances"),
                covariance_format=self.covariance_format if prediction.get("covariances") is not None else None,
                box_format=self.box_format,
            ),
        )

    def _boxes(
        self, given: Mapping[str, Any], whose: str
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]:
        boxes = frozen(to_numpy(given["boxes"], "boxes"), np.float64, (-1, 4), f"{whose} boxes")
        # torchvision's own type of boxes says what its four numbers are.
        stated: Any = getattr(getattr(given["boxes"], "format", None), "name", self.box_format)
        corners, extents = boxes_from(boxes, stated.lower(), None)
        turned = np.flatnonzero((corners[:, 2:] < corners[:, :2]).any(axis=1))
        if len(turned):
            raise InputError(
                f"expected x1 <= x2 and y1 <= y2 in {whose} boxes, but got {corners[turned[0]].tolist()}",
                remedy=f'say what boxes are with box_format= (now "{self.box_format}")',
            )
        return corners, extents

    def _labels(self, given: Mapping[str, Any], rows: int, whose: str) -> npt.NDArray[np.int64]:
        """Return labels that count from 0 in classes without background."""
        labels = _column(given["labels"], rows, f"{whose} labels", np.int64)
        if not len(labels):
            return labels
        low, high = int(labels.min()), int(labels.max())
        if low < self.first_label:
            remedy = "leave out first_label=1 if labels count from 0" if self.first_label else "labels count from 0"
            raise InputError(f"expected {whose} labels to begin at {self.first_label}, but got {low}", remedy=remedy)
        numbers = labels - self.first_label
        if self.classes is None or self.real is None:
            return numbers
        last = len(self.classes) - 1 + self.first_label
        if high > last:
            remedy = "check the order and number of classes"
            if high == last + 1 and not self.first_label and self.real.all():
                remedy = "if they begin at 1, as torchvision's do, give first_label=1"
            raise InputError(
                f"expected {whose} labels to count in {len(self.classes)} classes from {self.first_label} to {last}, "
                f"but got {high}",
                remedy=remedy,
            )
        if not self.real[numbers].all():
            name = self.classes[int(numbers[~self.real[numbers]][0])]
            raise InputError(f"one of {whose} labels is {name!r}, which is no object", remedy="leave background out")
        renumbered: npt.NDArray[np.int64] = np.cumsum(self.real) - 1
        return np.asarray(renumbered[numbers], np.int64)

    def _label_probs(self, prediction: Mapping[str, Any], rows: int) -> npt.NDArray[np.float32] | None:
        """Return probabilities of classes without background; None where there are none."""
        if prediction.get("label_probs") is None:
            return None
        probs = to_numpy(prediction["label_probs"], "label_probs")
        if rows == 0 and probs.size == 0:
            return np.zeros((0, probs.shape[-1] if probs.ndim == 2 else 0), np.float32)
        probs = frozen(probs, np.float32, (rows, -1), "label_probs")
        if self.classes is not None and probs.shape[1] != len(self.classes):
            remedy = "give one probability for each class"
            if probs.shape[1] == len(self.classes) + 1:
                remedy = 'if one is of the background, name it where it stands: classes=["background", "cup", ...]'
            raise InputError(
                f"expected label_probs of {len(self.classes)} classes, but got {probs.shape[1]}", remedy=remedy
            )
        if probs.size and not (probs.min() >= 0.0 and probs.max() <= 1.0):  # NaN is neither
            raise InputError(
                f"expected label_probs between 0 and 1, but got {probs.min():.6g} to {probs.max():.6g}",
                remedy="these may be logits: apply softmax or sigmoid first",
            )
        kept = probs if self.real is None else probs[:, self.real]
        return to_distribution(np.ascontiguousarray(kept), self.above_one)

    def _named(
        self, prediction: Mapping[str, Any], probs: npt.NDArray[np.float32] | None, rows: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the class that each detection names, and its score."""
        if probs is None or prediction.get("labels") is not None:
            labels = self._labels(prediction, rows, "the predictions'")
        else:
            labels = np.argmax(probs, axis=1) if len(probs) else np.zeros(0, np.int64)
        if probs is not None and len(labels) and labels.max() >= probs.shape[1]:
            raise InputError(
                f"label {int(labels.max()) + self.first_label} has none of the {probs.shape[1]} label_probs",
                remedy="labels count in their columns"
                if self.first_label
                else "if labels begin at 1, give first_label=1",
            )
        if prediction.get("scores") is None:
            assert probs is not None  # read() has asked for scores or label_probs
            return labels, probs[np.arange(rows), labels].astype(np.float64)
        scores = _column(prediction["scores"], rows, "scores", np.float64)
        if len(scores) and not (scores.min() >= 0.0 and scores.max() <= 1.0):
            over = scores.max() > 1.0 and scores.max() <= 100.0 and scores.min() >= 0.0
            raise InputError(
                f"expected scores between 0 and 1, but got {scores.min():.6g} to {scores.max():.6g}",
                remedy="divide percentages by 100" if over else "these may be logits: apply softmax or sigmoid first",
            )
        if probs is not None and len(labels):
            _check_columns(probs, labels, scores)
        return labels, scores


def _check_columns(
    probs: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]
) -> None:
    """Raise if scores are the label probabilities of the class beside the one that is named."""
    rows = np.arange(len(labels))
    if (np.abs(probs[rows, labels] - scores) <= SAME_SCORE).any():
        return
    for step in (1, -1):
        beside = labels + step
        inside = (beside >= 0) & (beside < probs.shape[1])
        if inside.all() and (np.abs(probs[rows, beside] - scores) <= SAME_SCORE).all():
            raise InputError(
                f"the scores are the label_probs of label {step:+d}: labels and columns are off by one",
                remedy="let labels count in the columns of label_probs; with a background first, name it in classes",
            )


def _expect_mapping(given: Any, name: str, keys: tuple[str, ...]) -> None:
    remedy = f"give a list with a dictionary for each image: {', '.join(keys)}"
    if not isinstance(given, Mapping):
        raise InputError(f"expected {name} to be a dictionary, but got {type(given).__name__}", remedy=remedy)
    for key in keys:
        if given.get(key) is None and not (key in ("scores", "labels") and given.get("label_probs") is not None):
            there = ", ".join(map(repr, given)) or "nothing"
            raise InputError(f"expected {name} to have {key!r}, but got {there}", remedy=remedy)


def _column(values: Any, rows: int, name: str, dtype: Any) -> npt.NDArray[Any]:
    array = to_numpy(values, name)
    if rows == 0 and array.size == 0:
        return np.zeros(0, dtype)
    if dtype is bool:
        return np.asarray(frozen(array, np.int64, (rows,), name) != 0)
    return frozen(array, dtype, (rows,), name)


def _image_id(target: Mapping[str, Any]) -> int | None:
    given = target.get("image_id")
    if given is None:
        return None
    number = to_numpy(given, "image_id")
    if number.size != 1 or number.dtype.kind not in "iu":
        raise InputError(
            f"expected image_id to be a whole number, but got {given!r:.40}",
            remedy="number the images, or leave it out",
        )
    return int(number.reshape(()))


def _size(target: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return width and height, where the target says them."""
    said = {key: target.get(key) for key in SIZE_KEYS} | {"canvas_size": getattr(target["boxes"], "canvas_size", None)}
    found: dict[str, tuple[int, int]] = {}
    for key, given in said.items():
        if given is None:
            continue
        width_first = SIZE_KEYS.get(key, False)
        numbers = to_numpy(given, key).reshape(-1)
        if numbers.shape != (2,) or numbers.dtype.kind not in "iuf" or not (numbers >= 1).all():
            order = "width, height" if width_first else "height, width"
            raise InputError(f"expected {key} to be {order}, but got {given!r:.60}")
        first, second = (int(number) for number in numbers)
        found[key] = (first, second) if width_first else (second, first)
    if "image_size" not in found and len(set(found.values())) > 1:
        sizes = " and ".join(f"{key} {width} x {height}" for key, (width, height) in found.items())
        raise InputError(
            f"the target says two sizes, {sizes}", remedy="give the one that boxes are in as image_size (width, height)"
        )
    return next(iter(found.values()), None)


def _check_reach(boxes: npt.NDArray[np.float64], size: tuple[int, int] | None) -> None:
    """Raise if objects reach outside the image, but would not in one that is turned."""
    if size is None or not len(boxes):
        return
    reach = boxes[:, 2:].max(axis=0) - 1.0  # a pixel for rounding
    if (reach > size).any() and (reach <= size[::-1]).all():
        raise InputError(
            f"objects reach to {reach[0] + 1:g}, {reach[1] + 1:g} in an image of {size[0]} x {size[1]}: "
            "width and height are swapped",
            remedy="image_size is width, height; orig_size and size are height, width",
        )


def _masks(target: Mapping[str, Any], rows: int) -> tuple[Masks | None, tuple[int, int] | None]:
    """Return the objects' masks, and width and height of their image."""
    if target.get("masks") is None:
        return None, None
    arrays = to_numpy(target["masks"], "masks")
    if arrays.ndim == 4 and arrays.shape[1] == 1:
        arrays = arrays[:, 0]
    if rows == 0 and arrays.size == 0:
        size = (arrays.shape[2], arrays.shape[1]) if arrays.ndim == 3 and min(arrays.shape[1:]) > 0 else None
        return None, size
    if arrays.ndim != 3 or len(arrays) != rows:
        got = " x ".join(map(str, arrays.shape))
        raise InputError(f"expected masks of shape {rows} x H x W, but got {got}", remedy="one mask for each box")
    if arrays.dtype != bool and not np.isin(arrays, (0, 1)).all():
        raise InputError(
            "expected masks of True and False, or of 0 and 1", remedy="compare with a threshold or an id first"
        )
    flags = arrays.astype(bool)
    nothing = Masks.from_boxes(np.array([[0, 0, -1, -1]], np.int32))
    parts = [Masks.from_arrays([flag]) if flag.any() else nothing for flag in flags]
    return Masks.concatenate(parts), (arrays.shape[2], arrays.shape[1])

"""Data types between images, detectors and `detect`: input placement, candidates, masks and traits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.photos import load_photo
from probox.support.optional import require
from probox.support.types import Array, Floats, Ints
from probox.tables.heatmaps import LEAST, WindowHeatmap

if TYPE_CHECKING:
    from probox.detect.families.base import Family

Pixels = npt.NDArray[np.uint8]


def read_image(path: str | Path, size: tuple[int, int] | None = None) -> Pixels:
    """Return an image as (H, W, 3) RGB in upright orientation; raise `InputError` if it can't be read.

    Parameters
    ----------
    path : path
        The photo.
    size : (width, height), optional
        Size according to the ground truth. EXIF orientation is applied unless this size matches the stored pixels.

    Returns
    -------
    (H, W, 3) uint8 array

    Examples
    --------
    >>> read_image("photo.jpg").shape  # doctest: +SKIP
    (426, 640, 3)
    """
    require("PIL.Image", extra="detect", purpose="reading photos needs")
    return load_photo(Path(path), size)


@dataclasses.dataclass(frozen=True)
class Placement:
    """Position of an image on a network's input: ``input = image * scale + offset``, for x and y."""

    scale: tuple[float, float]
    offset: tuple[float, float]
    image_size: tuple[int, int]
    """Width and height of the image."""

    def boxes_to_image(self, boxes: npt.NDArray[np.floating[Any]]) -> Floats:
        """Return boxes ``x1, y1, x2, y2`` of the network input in image pixels."""
        moved = boxes.astype(np.float64) - np.array(self.offset * 2)
        return np.asarray(moved / np.array(self.scale * 2))

    def covariances_to_image(self, covariances: Floats) -> Floats:
        """Return corner covariances (N, 2, 2, 2) of the network input in square pixels of the image."""
        shrink = 1.0 / np.array(self.scale)
        return np.asarray(covariances * np.outer(shrink, shrink))


def place_image(
    image: Pixels,
    size: tuple[int, int],
    *,
    keep_aspect: bool,
    centred: bool = False,
    fill: int = 0,
    round_down: bool = False,
    from_origin: bool = False,
) -> tuple[Pixels, Placement]:
    """Return the image resized to an input of `size` (width, height), and its placement.

    `keep_aspect` scales the image to fit and fills the rest with `fill`, on both sides or (not `centred`) right and
    below; otherwise the image is stretched. `round_down` truncates the new size and ignores the fraction in the scale.
    `from_origin` is passed to `resize`. The placement must equal that of the detector's training.
    """
    height, width = image.shape[:2]
    wide, high = size
    if not keep_aspect:
        stretched = resize(image, size, from_origin=from_origin)
        return stretched, Placement((wide / width, high / height), (0.0, 0.0), (width, height))
    ratio = min(wide / width, high / height)
    whole = int if round_down else round
    new = max(1, min(wide, whole(width * ratio))), max(1, min(high, whole(height * ratio)))
    left, top = ((wide - new[0]) // 2, (high - new[1]) // 2) if centred else (0, 0)
    canvas = np.full((high, wide, 3), fill, np.uint8)
    canvas[top : top + new[1], left : left + new[0]] = resize(image, new, from_origin=from_origin)
    scale = (ratio, ratio) if round_down else (new[0] / width, new[1] / height)
    return canvas, Placement(scale, (float(left), float(top)), (width, height))


def resize(image: Pixels, size: tuple[int, int], *, from_origin: bool = False) -> Pixels:
    """Return an image resized to (width, height) by bilinear interpolation without averaging.

    Samples are at pixel centres, ``(i + 1/2) n / N - 1/2``, as in OpenCV, or with `from_origin` at ``i n / N``, as in
    TensorFlow 1. Use the variant of the detector's training: an offset of half a pixel reduces accuracy.
    """
    height, width = image.shape[:2]
    if (width, height) == size:
        return image
    resized = np.empty((size[1], size[0], 3), np.uint8)
    for channel in range(3):  # single planes are several times as fast as interleaved channels
        values = resize_plane(np.ascontiguousarray(image[:, :, channel]), size, from_origin=from_origin)
        resized[:, :, channel] = np.rint(values, out=values)
    return resized


def resize_plane(plane: Array, size: tuple[int, int], *, from_origin: bool = False) -> npt.NDArray[np.float32]:
    """Return an (H, W) array resized to (width, height), see `resize`."""
    left, right, x = _neighbours(plane.shape[1], size[0], from_origin)
    above, below, y = _neighbours(plane.shape[0], size[1], from_origin)
    rows = plane[above].astype(np.float32)
    rows += (plane[below] - rows) * y[:, None]
    values = rows.take(left, axis=1)
    values += (rows.take(right, axis=1) - values) * x
    return values


def _neighbours(old: int, new: int, from_origin: bool) -> tuple[Ints, Ints, npt.NDArray[np.float32]]:
    """Return the old pixels before and after each new one, and the weight of the second."""
    at = np.arange(new) * (old / new) if from_origin else (np.arange(new) + 0.5) * (old / new) - 0.5
    at = np.clip(at, 0.0, old - 1.0)
    before = np.floor(at).astype(np.int64)
    return before, np.minimum(before + 1, old - 1), (at - before).astype(np.float32)


def pack_heatmaps(heatmaps: Sequence[Any] | None) -> dict[str, Array]:
    """Return the heatmap windows of one image as columns for `unpack_heatmaps`; empty without heatmaps."""
    if heatmaps is None:
        return {}
    windows = [(*heatmap.corner, *heatmap.window.shape) for heatmap in heatmaps]
    heat = [heatmap.window.ravel() for heatmap in heatmaps]
    return {
        "windows": np.array(windows, np.int64).reshape(-1, 4),
        "heat": np.concatenate(heat) if heat else np.zeros(0, np.float16),
    }


def unpack_heatmaps(columns: Mapping[str, Array], size: tuple[int, int]) -> list[WindowHeatmap]:
    """Return the heatmaps of an image of `size` (width, height) from columns; raise ValueError if inconsistent."""
    windows, heat = columns["windows"], columns["heat"]
    corners, extents, limit = windows[:, :2], windows[:, 2:], np.array(size[::-1])
    if not ((corners >= 0) & (extents > 0) & (corners <= limit) & (extents <= limit - corners)).all():
        raise ValueError("a window of a heatmap lies outside the image")
    if int(extents.prod(axis=1).sum()) != len(heat) or not ((heat >= 0) & (heat <= 1)).all():
        raise ValueError("the numbers of a heatmap are not those of its window")
    found, start = [], 0
    for top, left, high, wide in columns["windows"].tolist():
        window = columns["heat"][start : start + high * wide].reshape(high, wide)
        found.append(WindowHeatmap((size[1], size[0]), (top, left), window))
        start += high * wide
    return found


class PrototypeMasks:
    """Heatmaps ``sigmoid(coefficients @ prototypes)`` of candidates, computed for requested rows only.

    Logits are interpolated linearly between prototype pixels, so that the 0.5 contour equals that of Ultralytics'
    masks. Outside its box a heatmap is 0, as Ultralytics crops its masks: pixel i is inside if ``x1 <= i < x2``.
    `coefficients` are (N, P), one row per candidate; `prototypes` (P, h, w) cover the input of `size` (width, height).
    """

    def __init__(self, coefficients: Array, prototypes: Array, size: tuple[int, int], placement: Placement) -> None:
        if coefficients.ndim != 2 or prototypes.ndim != 3 or coefficients.shape[1] != len(prototypes):
            raise ValueError(f"coefficients {coefficients.shape} for prototypes {prototypes.shape}")
        self._coefficients, self._prototypes = coefficients, prototypes
        self._size, self._placement = size, placement

    def __len__(self) -> int:
        return len(self._coefficients)

    def __getitem__(self, rows: Any) -> PrototypeMasks:
        return PrototypeMasks(self._coefficients[rows], self._prototypes, self._size, self._placement)

    def __call__(self, rows: Array, boxes: Floats) -> list[WindowHeatmap]:
        """Return the heatmaps of rows; `boxes` are their boxes in the image."""
        return [self._heatmap(int(row), box) for row, box in zip(rows, boxes, strict=True)]

    def _heatmap(self, row: int, box: Floats) -> WindowHeatmap:
        width, height = self._placement.image_size
        left, right = _pixels_between(box[0], box[2], width)
        top, bottom = _pixels_between(box[1], box[3], height)
        x0, x1, x = self._between(np.arange(left, right), 0)
        y0, y1, y = self._between(np.arange(top, bottom), 1)
        window = self._prototypes[:, y0[0] : y1[-1] + 1, x0[0] : x1[-1] + 1]
        logits = np.tensordot(self._coefficients[row].astype(np.float64), window.astype(np.float64), axes=1)
        rows = logits[y0 - y0[0]] * (1.0 - y)[:, None] + logits[y1 - y0[0]] * y[:, None]
        values = rows[:, x0 - x0[0]] * (1.0 - x) + rows[:, x1 - x0[0]] * x
        heat = np.clip(1.0 / (1.0 + np.exp(-np.clip(values, -60.0, 60.0))), LEAST, 1.0 - LEAST)
        return WindowHeatmap((height, width), (top, left), heat.astype(np.float16))

    def _between(self, pixels: Ints, axis: int) -> tuple[Array, Array, Floats]:
        """Return the prototype pixels before and after each image pixel, and the weight of the second."""
        count = self._prototypes.shape[2 - axis]
        on_input = (pixels + 0.5) * self._placement.scale[axis] + self._placement.offset[axis]
        at = np.clip(on_input * (count / self._size[axis]) - 0.5, 0.0, count - 1.0)
        before = np.floor(at).astype(np.int64)
        return before, np.minimum(before + 1, count - 1), at - before


def _pixels_between(low: float, high: float, count: int) -> tuple[int, int]:
    """Return the first pixel inside and the one after the last; at least one pixel of the image."""
    first = int(np.clip(np.ceil(low), 0, count - 1))
    return first, int(np.clip(np.ceil(high), first + 1, count))


class HeatmapRows(Protocol):
    """Heatmaps of candidates, computed for requested rows only."""

    def __getitem__(self, rows: Any, /) -> HeatmapRows: ...

    def __call__(self, rows: Array, boxes: Floats) -> list[WindowHeatmap]:
        """Return the heatmaps of rows; `boxes` are their boxes in the image."""


Labels = Literal["all", "best"]
LABELS: tuple[str, ...] = get_args(Labels)
"""``all``: a box makes a detection of each class above the score threshold; ``best``: of the best class only."""


class Rows(Protocol):
    """Corner covariances (N, 2, 2, 2), computed for requested rows only: few of thousands survive suppression."""

    def __getitem__(self, rows: Any, /) -> Floats: ...


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Raw predictions of a detector for one image before suppression, in pixels of the image.

    Parameters
    ----------
    boxes : (N, 4) float64
        ``x1, y1, x2, y2``.
    scores : (N, C) float32
        The probability of every class, 0 to 1.
    covariances : (N, 2, 2, 2) float64, optional
        Predicted corner covariances in square pixels, or an object that returns rows of such an array.
    labels : (N,) int64, optional
        Class of each box, if the head predicts one box per class. Default: boxes are shared by all classes.
    heatmaps : HeatmapRows, optional
        Heatmaps of an instance segmentation model.

    Examples
    --------
    >>> candidates = Candidates(np.array([[10.0, 10.0, 50.0, 50.0]]), np.array([[0.9, 0.1]], np.float32))
    >>> len(candidates)
    1
    """

    boxes: Floats
    scores: npt.NDArray[np.float32]
    covariances: Floats | Rows | None = None
    labels: Ints | None = None
    heatmaps: HeatmapRows | None = None

    def __post_init__(self) -> None:
        count = len(self.boxes)
        shapes = {"boxes": (count, 4), "scores": (count, -1), "covariances": (count, 2, 2, 2), "labels": (count,)}
        for name, wanted in shapes.items():
            values = getattr(self, name)
            worked_out_later = name == "covariances" and not isinstance(values, np.ndarray | list | tuple)
            got = wanted if values is None or worked_out_later else np.shape(values)
            if len(got) != len(wanted) or any(own not in (-1, size) for own, size in zip(wanted, got, strict=True)):
                expected = " x ".join("C" if size == -1 else str(size) for size in wanted)
                raise InputError(
                    f"expected {name} of candidates to be {expected}, but got {' x '.join(map(str, got)) or 'a number'}"
                )

    def __len__(self) -> int:
        return len(self.boxes)

    def select(self, rows: Array) -> Candidates:
        """Return these rows.

        Parameters
        ----------
        rows : array
            Row numbers, or a boolean mask.

        Returns
        -------
        Candidates

        Examples
        --------
        >>> candidates = Candidates(np.array([[10.0, 10.0, 50.0, 50.0]]), np.array([[0.9, 0.1]], np.float32))
        >>> len(candidates.select(np.array([False])))
        0
        """
        covariances = None if self.covariances is None else self.covariances[rows]
        labels = None if self.labels is None else self.labels[rows]
        heatmaps = None if self.heatmaps is None else self.heatmaps[rows]
        return Candidates(self.boxes[rows], self.scores[rows], covariances, labels, heatmaps)


class Passes(list[Candidates]):
    """An image's candidates in each pass with dropout masks, and in one pass without."""

    def __init__(self, drawn: Iterable[Candidates], plain: Candidates | None = None) -> None:
        super().__init__(drawn)
        self.plain = plain


@dataclasses.dataclass(frozen=True)
class Traits:
    """Properties of a detector that are needed to turn its candidates into detections.

    Parameters
    ----------
    name : str
        Name of the detector in messages.
    classes : tuple of str
        Names of the columns of its scores.
    labels : {"all", "best"}
        ``all``: a box makes a detection of each class above the score threshold; ``best``: of the best class only.
    nms_iou : float
        IoU threshold of NMS.
    has_edges : bool
        Whether candidates have predicted covariances.
    has_masks : bool
        Whether candidates have heatmaps.
    suppresses : bool
        Whether the model's candidates are final (NMS is built in or not needed).
    clips_first : bool
        Whether boxes are clipped to the image before suppression, not after it.

    Examples
    --------
    >>> Traits("blobs", ("red", "green")).nms_iou
    0.6
    """

    name: str
    classes: tuple[str, ...]
    labels: Labels = "all"
    nms_iou: float = 0.6
    has_edges: bool = False
    has_masks: bool = False
    suppresses: bool = False
    clips_first: bool = True


Described: TypeAlias = "Family | Traits"
"""Description of a runner: a graph family, or traits."""


class Runner(Protocol):
    """Protocol of detectors: `Detector`, a torch detector, or a class of the user.

    An optional attribute `workers` (int) gives the number of threads that may call it at the same time. Without it, all
    calls come from one thread.
    """

    @property
    def family(self) -> Described:
        """The detector's description; `Traits` except for ONNX graphs."""

    @property
    def batch(self) -> int:
        """Maximum number of images per call."""

    @property
    def fingerprint(self) -> str:
        """Identifier of the model and its settings; an interrupted run resumes only if it is unchanged."""

    def candidates(self, images: Sequence[Pixels]) -> list[Candidates]:
        """Return each image's candidates; images are (H, W, 3) RGB of any size, boxes are in their pixels.

        Parameters
        ----------
        images : sequence of (H, W, 3) uint8 arrays
            RGB images.

        Returns
        -------
        list of Candidates
            One per image.
        """

    def sample(self, images: Sequence[Pixels], passes: int, image_ids: Sequence[int]) -> Sequence[Sequence[Candidates]]:
        """Return each image's candidates of several random passes, which are reproducible for an image id.

        Parameters
        ----------
        images : sequence of (H, W, 3) uint8 arrays
            RGB images.
        passes : int
            Number of passes with dropout masks.
        image_ids : sequence of int
            Image ids, which seed the masks.

        Returns
        -------
        list of sequences of Candidates
            Candidates of each pass, for each image.
        """

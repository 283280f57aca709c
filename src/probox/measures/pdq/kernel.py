"""From the tables to the kernel and back: which pairs of an image have any quality, and which of them match."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.convention import Convention
from probox.errors import InputError
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import align_labels
from probox.tables.masks import Masks
from probox.tables.results import PairTable

__all__ = ["assign", "heatmap", "pair_tables", "score_pairs", "settings_of"]

_PLAIN, _GAUSSIAN, _HEATMAP = 0, 1, 2
_SETTINGS = (
    "epsilon", "region_of_interest", "rough_sigmas", "mahalanobis", "min_determinant", "min_probability",
    "single_precision", "snap_zero", "snap_one", "min_quality", "label_weight",
)  # fmt: skip

_MAX_VALUES = 1 << 26
"""How many pixels of a Gaussian box may have a probability of their own: all those of an image up to this size."""

_MAP_BYTES = 1 << 26
"""How much memory given heatmaps may take at a time, or as much as a single one needs."""


def settings_of(convention: Convention) -> _core.Settings:
    """Return what the kernel needs of a convention."""
    settings = _core.Settings()
    for name in _SETTINGS:
        setattr(settings, name, getattr(convention, name))
    settings.mask_background = convention.background == "mask"
    return settings


def score_pairs(
    truth: GroundTruth,
    masks: Masks,
    found: Detections,
    convention: Convention,
    *,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> PairTable:
    """Return the pairs with any quality.

    Parameters
    ----------
    truth : GroundTruth
        The objects.
    masks : Masks
        Their pixels: `truth.masks`, or boxes in their place.
    found : Detections
        Detections of the truth's images only, sorted by image.
    convention : Convention
        The measure's constants; of its choices only those about pixels matter here.
    threads : int
        How many threads share the images. The result does not depend on it.
    progress : callable, optional
        Called with the numbers of images done and in all.
    """
    columns = _Columns(truth, masks, found, convention)
    images = len(truth.image_ids)
    # Several calls, so that a bar can move and Ctrl-C is heard, but none so small that starting threads costs more.
    pieces = min(images, 64, 1 + len(found) // 2000)
    edges = np.linspace(0, images, pieces + 1).astype(int)
    parts: list[tuple[Any, Any, Any]] = []
    for begin, end in itertools.pairwise(columns.refined(edges.tolist())):
        parts.append(_score(columns, begin, end, convention, threads))
        if progress is not None:
            progress(end, images)
    if not parts:
        return PairTable.none()
    detections, objects, qualities = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PairTable(detections=detections, objects=objects, qualities=qualities)


def _score(
    columns: _Columns, begin: int, end: int, convention: Convention, threads: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return detection, object and qualities of the pairs of images begin..end - 1."""
    parts: list[tuple[Any, Any, Any]] = []
    for rows in columns.portions(begin, end):
        arguments = columns.of_images(begin, end, rows)
        try:
            detection, obj, qualities = _core.score_images(settings_of(convention), threads, *arguments)
        except ValueError as error:
            if not str(error).isdigit():
                raise
            raise columns.too_many_pairs(begin + int(str(error))) from None
        parts.append((detection + rows.start, columns.objects[obj + columns.object_offsets[begin]], qualities))
    if len(parts) == 1:
        return parts[0]
    detection, obj, qualities = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((detection, obj))  # one image in several portions: as the kernel would have listed its pairs
    return detection[order], obj[order], qualities[order]


def pair_tables(truth: GroundTruth, found: Detections, convention: Convention, image: int) -> npt.NDArray[np.float64]:
    """Return the five qualities of every pair of one image (row `image`), objects x detections x 5, zeros included.

    Objects without pixels have no row.
    """
    masks = truth.as_box_masks() if convention.box_truth else truth.masks
    columns = _Columns(truth, masks, found, convention.for_rules(truth.dataset.rules))
    return _core.pair_qualities(settings_of(convention), *columns.of_images(image, image + 1))


def assign(
    pair_image: npt.NDArray[np.int64], pairs: PairTable, how: str, kept: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.bool_]:
    """Return which pairs are matches.

    Parameters
    ----------
    pair_image : (K,) int64
        The image of each pair, ascending.
    pairs : PairTable
        Their qualities.
    how : {"optimal", "greedy"}
        Largest total pPDQ, or the best remaining pair again and again.
    kept : (K,) bool, optional
        Pairs to choose from. Default: all.
    """
    rows = np.arange(len(pairs)) if kept is None else np.flatnonzero(kept)
    images = pair_image[rows]
    starts = np.flatnonzero(np.concatenate([[True], images[1:] != images[:-1]])) if len(rows) else np.zeros(0, int)
    offsets = np.concatenate([starts, [len(rows)]]).astype(np.int64)
    matched = np.zeros(len(pairs), dtype=bool)
    matched[rows] = _core.assign_pairs(
        offsets,
        np.ascontiguousarray(pairs.detections[rows]),
        np.ascontiguousarray(pairs.objects[rows]),
        np.ascontiguousarray(pairs.qualities[rows, 0]),
        how == "greedy",
    )
    return matched


def heatmap(
    box: npt.ArrayLike,
    covariances: npt.ArrayLike | None,
    width: int,
    height: int,
    convention: Convention,
) -> npt.NDArray[np.float64]:
    """Return P(x in S), the probability of every pixel of a width x height image to belong to the detected object."""
    corners = np.ascontiguousarray(box, dtype=np.float64)
    given = np.zeros((0, 2, 2)) if covariances is None else np.ascontiguousarray(covariances, dtype=np.float64)
    if given.size and plain_rows(given[None], convention)[0]:
        given = np.zeros((0, 2, 2))
    return _core.heatmap(settings_of(convention), width, height, corners, given)


def plain_rows(covariances: npt.NDArray[np.float64], convention: Convention) -> npt.NDArray[np.bool_]:
    """Return which detections count as boxes without spatial uncertainty."""
    flat = covariances.reshape(len(covariances), 8)
    return np.asarray(~flat.any(axis=1) if convention.sum_zero_is_plain is False else flat.sum(axis=1) == 0.0)


class _Columns:
    """The kernel's view of both tables; slices of it are handed over image by image."""

    def __init__(self, truth: GroundTruth, masks: Masks, found: Detections, convention: Convention) -> None:
        rows = truth.dataset.rows_of(found.image_ids)
        self.truth = truth
        self.objects = np.flatnonzero(masks.pixels > 0)
        self.masks = masks if len(self.objects) == len(masks) else masks.take(self.objects)
        self.object_class = truth.labels[self.objects]
        image_of_object = truth.image_rows[self.objects]
        self.object_offsets = truth.dataset.offsets(image_of_object)
        self.detection_offsets = truth.dataset.offsets(rows)
        self.boxes = found.boxes
        if convention.clip == "corners":
            last = truth.dataset.shapes[rows].astype(np.float64) - 1.0
            self.boxes = np.clip(found.boxes, 0.0, np.concatenate([last, last], axis=1))
        self.label_probs = align_labels(found.label_probs, found.classes, truth.classes)
        self.covariances = np.zeros((0, 2, 2, 2)) if found.covariances is None else found.covariances
        self.kinds = np.zeros(len(found), np.uint8)
        if convention.set_covariance is not None:
            variance = np.eye(2) * convention.set_covariance
            self.covariances = np.ascontiguousarray(np.broadcast_to(variance, (len(found), 2, 2, 2)))
        if len(self.covariances):
            self.kinds = np.where(plain_rows(self.covariances, convention), _PLAIN, _GAUSSIAN).astype(np.uint8)
        self._check_extent(rows, found, convention)
        self.heatmaps = found.heatmaps or (None,) * len(found)
        self.precision = np.float32 if convention.single_precision else np.float64
        for row, given in enumerate(self.heatmaps):
            if given is None:
                continue
            self.kinds[row] = _HEATMAP
            shape = int(truth.dataset.heights[rows[row]]), int(truth.dataset.widths[rows[row]])
            if given.shape != shape:
                raise InputError(
                    f"expected a heatmap of {shape[0]} rows and {shape[1]} columns, but got {given.shape}",
                    file=found.source or None,
                    image=int(found.image_ids[row]),
                    entry=f"detection {int(found.numbers_in_image()[row])}",
                    remedy="store heatmaps at the image's size",
                )

    def _check_extent(self, rows: npt.NDArray[np.int64], found: Detections, convention: Convention) -> None:
        """Raise if a Gaussian box is so unsure, in so large an image, that its heatmap would take gigabytes."""
        shapes = self.truth.dataset.shapes[rows].astype(np.float64)
        large = np.flatnonzero((shapes.prod(axis=1) > _MAX_VALUES) & (self.kinds == _GAUSSIAN))
        if len(large) == 0:
            return
        reach = convention.rough_sigmas if convention.region_of_interest else 9.5  # as the kernel has it
        variances = np.diagonal(self.covariances[large], axis1=2, axis2=3)
        extent = 2.0 * reach * np.sqrt(np.maximum(variances, 0.0)).sum(axis=1) + 8.0
        values = np.minimum(extent, shapes[large]).prod(axis=1)
        if (values > _MAX_VALUES).any():
            row = int(large[np.argmax(values > _MAX_VALUES)])
            raise InputError(
                f"expected a box whose corners are unsure by up to {_MAX_VALUES:,} pixels in all, but got "
                f"{values.max():,.0f}: its heatmap would need {24 * values.max() / 1e9:.1f} GB",
                file=found.source or None,
                image=int(found.image_ids[row]),
                entry=f"detection {int(found.numbers_in_image()[row])}",
                remedy="leave such detections out, or scale image and boxes down",
            )

    def too_many_pairs(self, image: int) -> InputError:
        """Return what to say of an image whose objects and detections nearly all meet."""
        objects, rows = np.diff(self.object_offsets)[image], self.rows_of(image, image + 1)
        return InputError(
            f"{objects:,} objects and {rows.stop - rows.start:,} detections make more than 2^24 pairs with a quality",
            file=self.truth.source or None,
            image=int(self.truth.image_ids[image]),
            remedy="leave out detections of low score, or what stands there many times",
        )

    def rows_of(self, begin: int, end: int) -> slice:
        """Return the rows of the detections of images begin..end - 1."""
        return slice(int(self.detection_offsets[begin]), int(self.detection_offsets[end]))

    def refined(self, edges: list[int]) -> list[int]:
        """Return edges between which heatmaps fit into memory, or lie in one image."""
        if not (self.kinds == _HEATMAP).any():
            return edges
        finer = edges[:1]
        for begin, end in itertools.pairwise(edges):
            size = 0
            for image in range(begin, end):
                wanted = self._map_bytes(self.rows_of(image, image + 1))
                if size + wanted > _MAP_BYTES and image > finer[-1]:
                    finer.append(image)
                    size = 0
                size += wanted
            finer.append(end)
        return finer

    def portions(self, begin: int, end: int) -> list[slice]:
        """Return the detections of images begin..end - 1 in portions whose heatmaps fit into memory."""
        rows = self.rows_of(begin, end)
        if end - begin != 1 or self._map_bytes(rows) <= _MAP_BYTES:
            return [rows]
        portions: list[slice] = []
        start, size = rows.start, 0
        for row in range(rows.start, rows.stop):
            given = self.heatmaps[row]
            wanted = 0 if given is None else 8 * int(given.size)
            if size + wanted > _MAP_BYTES and row > start:
                portions.append(slice(start, row))
                start, size = row, 0
            size += wanted
        return [*portions, slice(start, rows.stop)]

    def _map_bytes(self, rows: slice) -> int:
        """Return what the heatmaps of these detections take at most as the kernel gets them."""
        return sum(8 * int(given.size) for given in self.heatmaps[rows] if given is not None)

    def of_images(self, begin: int, end: int, rows: slice | None = None) -> tuple[Any, ...]:
        """Return the kernel's arguments for images begin..end - 1, or for some rows of the detections of one image."""
        truth, masks = self.truth, self.masks
        objects = slice(int(self.object_offsets[begin]), int(self.object_offsets[end]))
        detections = self.rows_of(begin, end) if rows is None else rows
        runs = slice(int(masks.offsets[objects.start]), int(masks.offsets[objects.stop]))
        given = [
            (row - detections.start, _probabilities(array, self.precision))
            for row, array in enumerate(self.heatmaps[detections], start=detections.start)
            if array is not None
        ]
        offsets = np.clip(self.detection_offsets[begin : end + 1], detections.start, detections.stop)
        return (
            truth.dataset.widths[begin:end],
            truth.dataset.heights[begin:end],
            self.object_offsets[begin : end + 1] - objects.start,
            masks.boxes[objects],
            masks.pixels[objects],
            masks.offsets[objects.start : objects.stop + 1] - runs.start,
            masks.runs[runs],
            self.object_class[objects],
            offsets - detections.start,
            self.boxes[detections],
            self.covariances[detections] if len(self.covariances) else self.covariances,
            self.kinds[detections],
            self.label_probs[detections],
            [array for _, array in given],
            np.array([row for row, _ in given], dtype=np.int64),
        )


def _probabilities(values: npt.NDArray[Any], precision: type[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """Return a stored heatmap as probabilities of the kernel's precision; uint8 counts in 255ths."""
    as_float = np.ascontiguousarray(values, dtype=precision)
    return as_float / precision(255) if values.dtype == np.uint8 else as_float

"""The compiled kernel applied to tables: settings, columns, qualities of pairs, assignment and heatmaps."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.convention import Convention
from probox.errors import InputError
from probox.support.parallel import thread_count, threads_for
from probox.support.types import Bools, Floats, Ints
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.heatmaps import WindowHeatmap, count_stored, window_of
from probox.tables.labels import align_labels
from probox.tables.masks import Masks
from probox.tables.results import PairTable

_AS_GOOD_AS_ALL = 9.5
"""Beyond this many standard deviations a Gaussian has 1e-21 of its mass, which is negligible."""


def reach_sigmas(convention: Convention) -> float:
    """Return the number of standard deviations around its mean within which a corner's distribution is computed."""
    return convention.rough_sigmas if convention.region_of_interest else _AS_GOOD_AS_ALL


def settings_of(convention: Convention) -> _core.Settings:
    """Return the kernel's settings; all come from the convention."""
    return _core.Settings(
        epsilon=convention.epsilon,
        region_of_interest=convention.region_of_interest,
        reach_sigmas=reach_sigmas(convention),
        mahalanobis=convention.mahalanobis,
        min_determinant=convention.min_determinant,
        min_probability=convention.min_probability,
        single_precision=convention.single_precision,
        snap_zero=convention.snap_zero,
        snap_one=convention.snap_one,
        min_quality=convention.min_quality,
        label_weight=convention.label_weight,
        mask_background=convention.background == "mask",
    )


def heatmap(
    box: npt.ArrayLike, covariances: npt.ArrayLike | None, width: int, height: int, convention: Convention
) -> Floats:
    """Return P(x in S), the probability of every pixel of the image to belong to the detected object, (H, W)."""
    corners = np.ascontiguousarray(box, dtype=np.float64)
    given = np.zeros((0, 2, 2)) if covariances is None else np.ascontiguousarray(covariances, dtype=np.float64)
    if given.size and plain_rows(given[None], convention)[0]:
        given = np.zeros((0, 2, 2))
    return _core.heatmap(settings_of(convention), box=corners, covariances=given, width=width, height=height)


def plain_rows(covariances: Floats, convention: Convention) -> Bools:
    """Return which detections count as boxes without covariance."""
    flat = covariances.reshape(len(covariances), 8)
    return np.asarray(~flat.any(axis=1) if convention.sum_zero_is_plain is False else flat.sum(axis=1) == 0.0)


_MAX_VALUES = 1 << 26
"""Limit of pixels with a probability of their own per Gaussian box: an image of this size always fits."""

_MAP_BYTES = 1 << 26
"""Memory for given heatmaps at a time, in bytes; a single larger one is still processed."""


class KernelTables:
    """Both tables as columns for the kernel, which receives slices of them, image by image."""

    def __init__(
        self,
        truth: GroundTruth,
        masks: Masks,
        found: Detections,
        convention: Convention,
        image_rows: Ints | None = None,
    ) -> None:
        rows = truth.dataset.rows_of(found.image_ids) if image_rows is None else image_rows
        self.truth = truth
        self.objects: Ints | None = None  # None: all of them
        self.masks, self.labels, object_rows = masks, truth.labels, truth.image_rows
        if not masks.pixels.all():
            self.objects = np.flatnonzero(masks.pixels > 0)
            self.masks = masks.take(self.objects)
            self.labels, object_rows = truth.labels[self.objects], truth.image_rows[self.objects]
        self.object_offsets = truth.dataset.offsets(object_rows)
        self.detection_offsets = truth.dataset.offsets(rows)
        self.boxes = found.boxes
        if convention.clip == "corners":
            last = truth.dataset.shapes[rows].astype(np.float64) - 1.0
            self.boxes = np.clip(found.boxes, 0.0, np.concatenate([last, last], axis=1))
        self.label_probs = align_labels(found.label_probs, found.classes, truth.classes)
        self.covariances = np.zeros((0, 2, 2, 2)) if found.covariances is None else found.covariances
        self.kinds = np.zeros(len(found), np.uint8)
        if convention.fixed_variance is not None:
            variance = np.eye(2) * convention.fixed_variance
            self.covariances = np.ascontiguousarray(np.broadcast_to(variance, (len(found), 2, 2, 2)))
        if len(self.covariances):
            plain = plain_rows(self.covariances, convention)
            self.kinds = np.where(plain, _core.PLAIN, _core.GAUSSIAN).astype(np.uint8)
            self._check_extent(rows, found, convention)
        self.found_masks = Masks.empty(0)
        if found.masks is not None and found.has_mask is not None:
            found.check_masks(truth.dataset.shapes[rows])
            self.found_masks = found.masks
            self.kinds[found.has_mask] = _core.MASK
        self.heatmaps = found.heatmaps
        self.precision = np.float32 if convention.single_precision else np.float64
        for row, given in enumerate(self.heatmaps or ()):
            if given is None:
                continue
            self.kinds[row] = _core.HEATMAP
            width, height = truth.dataset.shapes[rows[row]].tolist()
            if given.shape != (height, width):
                raise InputError(
                    f"expected a heatmap of {height} rows and {width} columns, but got {given.shape}",
                    **_place_of(found, row),
                    remedy="store heatmaps at the image's size",
                )

    def _check_extent(self, rows: Ints, found: Detections, convention: Convention) -> None:
        """Raise an error if the heatmap of a Gaussian box would take gigabytes: a huge std in a huge image."""
        images = self.truth.dataset
        if int(images.widths.max(initial=0)) * int(images.heights.max(initial=0)) <= _MAX_VALUES:
            return
        shapes = images.shapes[rows].astype(np.float64)
        large = np.flatnonzero((shapes.prod(axis=1) > _MAX_VALUES) & (self.kinds == _core.GAUSSIAN))
        if len(large) == 0:
            return
        variances = np.diagonal(self.covariances[large], axis1=2, axis2=3)
        extent = 2.0 * reach_sigmas(convention) * np.sqrt(np.maximum(variances, 0.0)).sum(axis=1) + 8.0
        values = np.minimum(extent, shapes[large]).prod(axis=1)
        if (values > _MAX_VALUES).any():
            row = int(large[np.argmax(values > _MAX_VALUES)])
            raise InputError(
                f"expected a box whose corners vary over at most {_MAX_VALUES:,} pixels, but got "
                f"{values.max():,.0f}: its heatmap would need {24 * values.max() / 1e9:.1f} GB",
                **_place_of(found, row),
                remedy="remove such detections, or scale image and boxes down",
            )

    def detections_of(self, begin: int, end: int) -> slice:
        """Return the rows of the detections of images begin..end - 1."""
        return slice(int(self.detection_offsets[begin]), int(self.detection_offsets[end]))

    def refine_edges(self, edges: list[int]) -> list[int]:
        """Return finer edges, between which heatmaps fit into memory or belong to a single image."""
        if self.heatmaps is None:
            return edges
        finer = edges[:1]
        for begin, end in itertools.pairwise(edges):
            finer += _split(begin, [self._map_bytes(self.detections_of(row, row + 1)) for row in range(begin, end)])
        return finer

    def portions(self, begin: int, end: int) -> list[slice]:
        """Return the detections of images begin..end - 1 in slices whose heatmaps fit into memory."""
        rows = self.detections_of(begin, end)
        if self.heatmaps is None or end - begin != 1 or self._map_bytes(rows) <= _MAP_BYTES:
            return [rows]
        sizes = [self._map_bytes(slice(row, row + 1)) for row in range(rows.start, rows.stop)]
        return [slice(*ends) for ends in itertools.pairwise([rows.start, *_split(rows.start, sizes)])]

    def _map_bytes(self, rows: slice) -> int:
        """Return an upper bound of the bytes of these detections' heatmaps in the kernel."""
        given = (self.heatmaps or ())[rows]
        return sum(8 * count_stored(heatmap) for heatmap in given)

    def of_images(
        self, begin: int, end: int, rows: slice | None = None
    ) -> tuple[_core.Images, _core.Objects, _core.Found]:
        """Return images begin..end - 1 as the kernel's types, or one image with some of its detections."""
        images, masks = self.truth.dataset, self.masks
        objects = slice(int(self.object_offsets[begin]), int(self.object_offsets[end]))
        detections = self.detections_of(begin, end) if rows is None else rows
        given = [
            (row, *_block(array, self.precision))
            for row, array in enumerate((self.heatmaps or ())[detections])
            if array is not None
        ]
        offsets = self.detection_offsets[begin : end + 1]
        if rows is not None and end - begin == 1:
            offsets = np.minimum(np.maximum(offsets, rows.start), rows.stop)
        return (
            _core.Images(widths=images.widths[begin:end], heights=images.heights[begin:end]),
            _core.Objects(
                offsets=self.object_offsets[begin : end + 1] - objects.start,
                labels=self.labels[objects],
                **masks.kernel_columns(objects),
            ),
            _core.Found(
                offsets=offsets - detections.start,
                boxes=self.boxes[detections],
                covariances=self.covariances[detections] if len(self.covariances) else self.covariances,
                kinds=self.kinds[detections],
                label_probs=self.label_probs[detections].table,
                heatmaps=[block for _, _, block in given],
                heatmap_rows=np.array([row for row, _, _ in given], dtype=np.int64),
                heatmap_corners=np.array([corner for _, corner, _ in given], dtype=np.int32).reshape(-1, 2),
                **self.found_masks.kernel_columns(detections if len(self.found_masks) else None),
            ),
        )


def _place_of(found: Detections, row: int) -> dict[str, Any]:
    return {
        "file": found.source or None,
        "image": int(found.image_ids[row]),
        "entry": f"detection {int(found.numbers_in_image()[row])}",
    }


def _split(first: int, sizes: list[int]) -> list[int]:
    """Return the ends of consecutive groups, starting at `first`, that fit into memory or have one member."""
    ends, total = [], 0
    for place, size in enumerate(sizes, first):
        if total + size > _MAP_BYTES and place > first:
            ends.append(place)
            total = 0
        total += size
    return [*ends, first + len(sizes)]


def _block(
    heatmap: npt.NDArray[Any] | WindowHeatmap, precision: type[np.floating[Any]]
) -> tuple[tuple[int, int], npt.NDArray[np.floating[Any]]]:
    """Return column and row of the first pixel of a heatmap's block, and the block in the kernel's precision.

    uint8 is scaled by 1/255.
    """
    values, (top, left) = window_of(heatmap)
    as_float = np.ascontiguousarray(values, dtype=precision)
    return (left, top), as_float / precision(255) if values.dtype == np.uint8 else as_float


MAX_PAIRS = 1 << 24
"""Limit of pairs with a quality above 0 per image."""

_PairColumns = tuple[Ints, Ints, Floats]


def score_pairs(
    truth: GroundTruth,
    masks: Masks,
    found: Detections,
    convention: Convention,
    *,
    image_rows: Ints | None = None,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> PairTable:
    """Return the pairs of an object and a detection with a quality above 0.

    Parameters
    ----------
    truth : GroundTruth
        The objects.
    masks : Masks
        Their pixels: `truth.masks`, or boxes instead of masks.
    found : Detections
        Detections in images of the ground truth only, sorted by image.
    convention : Convention
        The constants of PDQ; only those about pixels matter here.
    image_rows : (N,) int64, optional
        Image rows of the detections, if already known.
    threads : int
        Number of threads; large images are split, too. The result does not depend on it.
    progress : callable, optional
        Called with the number of finished images and the total.
    """
    tables = KernelTables(truth, masks, found, convention, image_rows)
    settings = settings_of(convention)
    images = len(truth.image_ids)
    if ((tables.kinds == _core.PLAIN) | (tables.kinds == _core.MASK)).all():  # cheap: use threads only for many
        threads = threads_for(len(tables.kinds), threads)
    # Several calls, so that progress and Ctrl-C are handled, but none so small that starting threads dominates.
    pieces = min(images, 64, 1 + len(found) // 2000)
    edges = np.linspace(0, images, pieces + 1).astype(int).tolist() if pieces != 1 else [0, images]
    parts: list[_PairColumns] = []
    for begin, end in itertools.pairwise(tables.refine_edges(edges)):
        parts.append(_score(tables, begin, end, settings, threads))
        if progress is not None:
            progress(end, images)
    if not parts:
        return PairTable.none()
    detections, objects, qualities = _join(parts)
    return PairTable(detections=detections, objects=objects, qualities=qualities)


def _join(parts: list[_PairColumns]) -> _PairColumns:
    if len(parts) == 1:
        return parts[0]
    detections, objects, qualities = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return detections, objects, qualities


def _score(tables: KernelTables, begin: int, end: int, settings: _core.Settings, threads: int) -> _PairColumns:
    """Return detections, objects and qualities of the pairs of images begin..end - 1."""
    parts: list[_PairColumns] = []
    for rows in tables.portions(begin, end):
        try:
            detection, obj, qualities = _core.score_images(
                settings, *tables.of_images(begin, end, rows), max_pairs=MAX_PAIRS, threads=threads
            )
        except _core.TooManyPairsError as error:
            raise _too_many_pairs(tables, begin + error.args[0]) from None
        detection = detection + rows.start if rows.start else detection
        first = int(tables.object_offsets[begin])
        obj = obj + first if first else obj
        parts.append((detection, obj if tables.objects is None else tables.objects[obj], qualities))
    detection, obj, qualities = _join(parts)
    if len(parts) == 1:
        return detection, obj, qualities
    order = np.lexsort((detection, obj))  # an image in several slices: restore the kernel's order of pairs
    return detection[order], obj[order], qualities[order]


def _too_many_pairs(tables: KernelTables, image: int) -> InputError:
    """Return the error for an image in which nearly all objects and detections overlap."""
    truth, rows = tables.truth, tables.detections_of(image, image + 1)
    objects = int(tables.object_offsets[image + 1] - tables.object_offsets[image])
    return InputError(
        f"{objects:,} objects and {rows.stop - rows.start:,} detections make more than "
        f"2^{MAX_PAIRS.bit_length() - 1} pairs with a quality",
        file=truth.source or None,
        image=int(truth.image_ids[image]),
        remedy="remove detections of low score, or duplicates",
    )


def pair_tables(truth: GroundTruth, found: Detections, convention: Convention, image: int) -> Floats:
    """Return the five qualities of every pair of one image (row `image`), (objects, detections, 5), zeros included.

    Objects without pixels have no row.
    """
    masks = truth.as_box_masks() if convention.box_truth else truth.masks
    tables = KernelTables(truth, masks, found, convention.for_rules(truth.dataset.rules))
    return _core.pair_qualities(settings_of(convention), *tables.of_images(image, image + 1))


def assign(pair_image: Ints, pairs: PairTable, how: str, rows: Ints | None = None) -> Bools:
    """Return which pairs are matches, (K,).

    Parameters
    ----------
    pair_image : (K,) int64
        The image of each pair, ascending.
    pairs : PairTable
        Qualities of the pairs.
    how : {"optimal", "greedy"}
        Maximize total pPDQ, or repeatedly take the best remaining pair.
    rows : (K,) int64, optional
        Rows of the pairs to choose from, repeated as often as they take part. Default: each once.
    """
    chosen: slice | Ints = slice(None) if rows is None else rows
    changes = np.flatnonzero(pair_image[1:] != pair_image[:-1]) + 1
    edges = ([0], changes, [len(pair_image)]) if len(pair_image) else ([0],)
    matched: Bools = _core.assign_pairs(
        offsets=np.concatenate(edges),
        detections=pairs.detections[chosen],
        objects=pairs.objects[chosen],
        qualities=np.ascontiguousarray(pairs.qualities[chosen, 0]),
        greedy=how == "greedy",
        threads=thread_count(None),
    )
    return matched

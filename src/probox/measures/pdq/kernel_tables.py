"""From the tables to the kernel: what it is handed, image by image, and what would take too much memory."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.convention import Convention
from probox.errors import InputError
from probox.measures.pdq.heatmap import plain_rows
from probox.measures.pdq.settings import reach_sigmas
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import align_labels
from probox.tables.masks import Masks

__all__ = ["KernelTables"]

_MAX_VALUES = 1 << 26
"""How many pixels of a Gaussian box may have a probability of their own: all those of an image up to this size."""

_MAP_BYTES = 1 << 26
"""How much memory given heatmaps may take at a time, or as much as a single one needs."""


class KernelTables:
    """The kernel's view of both tables; slices of it are handed over image by image."""

    def __init__(
        self,
        truth: GroundTruth,
        masks: Masks,
        found: Detections,
        convention: Convention,
        image_rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        rows = truth.dataset.rows_of(found.image_ids) if image_rows is None else image_rows
        self.truth = truth
        self.objects: npt.NDArray[np.int64] | None = None  # None: all of them
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
        if convention.set_covariance is not None:
            variance = np.eye(2) * convention.set_covariance
            self.covariances = np.ascontiguousarray(np.broadcast_to(variance, (len(found), 2, 2, 2)))
        if len(self.covariances):
            plain = plain_rows(self.covariances, convention)
            self.kinds = np.where(plain, _core.PLAIN, _core.GAUSSIAN).astype(np.uint8)
            self._check_extent(rows, found, convention)
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
                    file=found.source or None,
                    image=int(found.image_ids[row]),
                    entry=f"detection {int(found.numbers_in_image()[row])}",
                    remedy="store heatmaps at the image's size",
                )

    def _check_extent(self, rows: npt.NDArray[np.int64], found: Detections, convention: Convention) -> None:
        """Raise if a Gaussian box is so unsure, in so large an image, that its heatmap would take gigabytes."""
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
                f"expected a box whose corners are unsure by up to {_MAX_VALUES:,} pixels in all, but got "
                f"{values.max():,.0f}: its heatmap would need {24 * values.max() / 1e9:.1f} GB",
                file=found.source or None,
                image=int(found.image_ids[row]),
                entry=f"detection {int(found.numbers_in_image()[row])}",
                remedy="leave such detections out, or scale image and boxes down",
            )

    def detections_of(self, begin: int, end: int) -> slice:
        """Return the rows of the detections of images begin..end - 1."""
        return slice(int(self.detection_offsets[begin]), int(self.detection_offsets[end]))

    def refined(self, edges: list[int]) -> list[int]:
        """Return edges between which heatmaps fit into memory, or lie in one image."""
        if self.heatmaps is None:
            return edges
        finer = edges[:1]
        for begin, end in itertools.pairwise(edges):
            size = 0
            for image in range(begin, end):
                wanted = self._map_bytes(self.detections_of(image, image + 1))
                if size + wanted > _MAP_BYTES and image > finer[-1]:
                    finer.append(image)
                    size = 0
                size += wanted
            finer.append(end)
        return finer

    def portions(self, begin: int, end: int) -> list[slice]:
        """Return the detections of images begin..end - 1 in portions whose heatmaps fit into memory."""
        rows = self.detections_of(begin, end)
        if self.heatmaps is None or end - begin != 1 or self._map_bytes(rows) <= _MAP_BYTES:
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
        return sum(8 * int(given.size) for given in (self.heatmaps or ())[rows] if given is not None)

    def of_images(
        self, begin: int, end: int, rows: slice | None = None
    ) -> tuple[_core.Images, _core.Objects, _core.Found]:
        """Return images begin..end - 1 as the kernel takes them, or one image with some rows of its detections."""
        images, masks = self.truth.dataset, self.masks
        objects = slice(int(self.object_offsets[begin]), int(self.object_offsets[end]))
        detections = self.detections_of(begin, end) if rows is None else rows
        runs = slice(int(masks.offsets[objects.start]), int(masks.offsets[objects.stop]))
        given = [
            (row, _probabilities(array, self.precision))
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
                mask_boxes=masks.boxes[objects],
                mask_pixels=masks.pixels[objects],
                run_offsets=masks.offsets[objects.start : objects.stop + 1] - runs.start,
                runs=masks.runs[runs],
            ),
            _core.Found(
                offsets=offsets - detections.start,
                boxes=self.boxes[detections],
                covariances=self.covariances[detections] if len(self.covariances) else self.covariances,
                kinds=self.kinds[detections],
                label_probs=self.label_probs[detections],
                heatmaps=[array for _, array in given],
                heatmap_rows=np.array([row for row, _ in given], dtype=np.int64),
            ),
        )


def _probabilities(values: npt.NDArray[Any], precision: type[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """Return a stored heatmap as probabilities of the kernel's precision; uint8 counts in 255ths."""
    as_float = np.ascontiguousarray(values, dtype=precision)
    return as_float / precision(255) if values.dtype == np.uint8 else as_float

"""Masks of many objects or detections, as run lengths."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Masks:
    """Masks of N objects, as run lengths.

    Parameters
    ----------
    boxes : (N, 4) int32
        Tight inclusive pixel boxes ``x0, y0, x1, y1``; ``0, 0, -1, -1`` for an empty mask.
    pixels : (N,) int64
        Number of pixels of each mask.
    offsets : (N + 1,) int64
        Start of each object's runs in `runs`. A mask that fills its box has no runs.
    runs : (R, 3) int32
        ``y, x_begin, x_end`` with `x_end` exclusive, sorted by row, then column, not touching.

    Examples
    --------
    >>> Masks.from_boxes(np.array([[0, 0, 9, 4]]))
    Masks(1 masks, 50 pixels)
    """

    boxes: npt.NDArray[np.int32]
    pixels: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    runs: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        for array in (self.boxes, self.pixels, self.offsets, self.runs):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.pixels)

    def __repr__(self) -> str:
        return f"Masks({len(self)} masks, {int(self.pixels.sum())} pixels)"

    @classmethod
    def from_arrays(
        cls, masks: Sequence[npt.NDArray[np.bool_]], corners: Sequence[tuple[int, int]] | None = None
    ) -> Masks:
        """Return the masks of boolean arrays.

        Parameters
        ----------
        masks : sequence of (H, W) bool
            One array per object.
        corners : sequence of (int, int), optional
            Column and row of each array's first pixel in its image. Default: arrays cover whole images.

        Returns
        -------
        Masks
            The masks.

        Examples
        --------
        >>> mask = np.array([[False, True], [True, True]])
        >>> Masks.from_arrays([mask]).runs.tolist(), Masks.from_arrays([mask], [(10, 20)]).runs.tolist()
        ([[0, 1, 2], [1, 0, 2]], [[20, 11, 12], [21, 10, 12]])
        """
        boxes = np.tile(np.array([0, 0, -1, -1], np.int32), (len(masks), 1))
        pixels = np.zeros(len(masks), np.int64)
        offsets = np.zeros(len(masks) + 1, np.int64)
        parts: list[npt.NDArray[np.int32]] = []
        for row, mask in enumerate(masks):
            left, top = (0, 0) if corners is None else corners[row]
            padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)  # so that every run has two edges
            padded[:, 1:-1] = mask
            edges = np.diff(padded, axis=1)
            y, begin = np.nonzero(edges == 1)
            if not len(y):
                continue
            y, begin, end = y + top, begin + left, np.nonzero(edges == -1)[1] + left
            boxes[row] = begin.min(), y.min(), end.max() - 1, y.max()
            pixels[row] = (end - begin).sum()
            if pixels[row] < box_pixels(boxes[row]):
                parts.append(np.stack([y, begin, end], axis=1).astype(np.int32))
                offsets[row + 1] = len(y)
        np.cumsum(offsets, out=offsets)
        runs = np.concatenate(parts) if parts else np.zeros((0, 3), np.int32)
        return cls(boxes, pixels, offsets, runs)

    @classmethod
    def from_boxes(cls, boxes: npt.NDArray[np.int32]) -> Masks:
        """Return masks that fill inclusive pixel boxes.

        Parameters
        ----------
        boxes : (N, 4) int32
            ``x0, y0, x1, y1`` with both ends included.

        Returns
        -------
        Masks
            The masks, without runs.

        Examples
        --------
        >>> Masks.from_boxes(np.array([[0, 0, 9, 4]])).pixels.tolist()
        [50]
        """
        boxes = np.ascontiguousarray(boxes, dtype=np.int32).reshape(-1, 4).copy()
        return cls(boxes, box_pixels(boxes), np.zeros(len(boxes) + 1, np.int64), np.zeros((0, 3), np.int32))

    @classmethod
    def empty(cls, count: int) -> Masks:
        """Return masks without pixels.

        Parameters
        ----------
        count : int
            Number of masks.

        Returns
        -------
        Masks
            The masks.

        Examples
        --------
        >>> Masks.empty(2).boxes.tolist()
        [[0, 0, -1, -1], [0, 0, -1, -1]]
        """
        return cls.from_boxes(np.tile(np.array([0, 0, -1, -1], np.int32), (count, 1)))

    @classmethod
    def concatenate(cls, parts: Sequence[Masks]) -> Masks:
        """Concatenate masks.

        Parameters
        ----------
        parts : sequence of Masks
            Tables of masks.

        Returns
        -------
        Masks
            All masks, in the order of `parts`.

        Examples
        --------
        >>> masks = Masks.from_boxes(np.array([[0, 0, 9, 4]]))
        >>> len(Masks.concatenate([masks, masks]))
        2
        """
        if not parts:
            return cls.empty(0)
        starts = np.cumsum([0] + [len(part.runs) for part in parts])
        offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts[:-1], strict=True)]
        return cls(
            np.concatenate([part.boxes for part in parts]),
            np.concatenate([part.pixels for part in parts]),
            np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
            np.concatenate([part.runs for part in parts]),
        )

    def kernel_columns(self, rows: slice | None = None) -> MaskColumns:
        """Return the masks of these rows, by default of all, as the arguments that the kernel takes."""
        begin, end = (0, len(self)) if rows is None else (rows.start, rows.stop)
        offsets = self.offsets[begin : end + 1]
        return {
            "mask_boxes": self.boxes[begin:end],
            "mask_pixels": self.pixels[begin:end],
            "run_offsets": offsets - offsets[0],
            "runs": self.runs[offsets[0] : offsets[-1]],
        }

    def to_array(self, row: int, height: int, width: int) -> npt.NDArray[np.bool_]:
        """Return the mask of one object as a boolean array.

        Parameters
        ----------
        row : int
            Row of the object.
        height, width : int
            Size of the image in pixels.

        Returns
        -------
        (H, W) bool
            The mask.

        Examples
        --------
        >>> Masks.from_boxes(np.array([[1, 0, 2, 0]])).to_array(0, 2, 4).astype(int).tolist()
        [[0, 1, 1, 0], [0, 0, 0, 0]]
        """
        mask = np.zeros((height, width), dtype=bool)
        left, top, inside = self.in_box(row)
        mask[top : top + inside.shape[0], left : left + inside.shape[1]] = inside
        return mask

    def in_box(self, row: int) -> tuple[int, int, npt.NDArray[np.bool_]]:
        """Return left and top of a mask, and its pixels from there as a boolean array.

        Parameters
        ----------
        row : int
            Row of the object.

        Returns
        -------
        tuple of int, int and (H, W) bool
            Column and row of the box's first pixel in the image, and the mask inside its box.

        Examples
        --------
        >>> Masks.from_boxes(np.array([[1, 0, 2, 0]])).in_box(0)
        (1, 0, array([[ True,  True]]))
        """
        x0, y0, x1, y1 = (int(value) for value in self.boxes[row])
        runs = self.runs[self.offsets[row] : self.offsets[row + 1]]
        if not len(runs):  # no runs: the mask is the box
            return x0, y0, np.ones((y1 - y0 + 1, x1 - x0 + 1), bool)
        steps = np.zeros((y1 - y0 + 1, x1 - x0 + 2), np.int8)
        steps[runs[:, 0] - y0, runs[:, 1] - x0] = 1
        steps[runs[:, 0] - y0, runs[:, 2] - x0] = -1
        return x0, y0, np.cumsum(steps, axis=1, dtype=np.int8)[:, :-1] > 0

    def take(self, rows: npt.NDArray[np.int64]) -> Masks:
        """Return the masks of these rows, in this order.

        Parameters
        ----------
        rows : (K,) int64
            Row numbers.

        Returns
        -------
        Masks
            The chosen masks.

        Examples
        --------
        >>> Masks.from_boxes(np.array([[0, 0, 9, 4], [0, 0, 1, 1]])).take(np.array([1])).pixels.tolist()
        [4]
        """
        counts = (self.offsets[1:] - self.offsets[:-1])[rows]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        source = np.repeat(self.offsets[:-1][rows] - offsets[:-1], counts) + np.arange(offsets[-1])
        return Masks(self.boxes[rows], self.pixels[rows], offsets, self.runs[source])


class MaskColumns(TypedDict):
    """Masks as arguments of the kernel."""

    mask_boxes: npt.NDArray[np.int32]
    mask_pixels: npt.NDArray[np.int64]
    run_offsets: npt.NDArray[np.int64]
    runs: npt.NDArray[np.int32]


def box_pixels(boxes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the number of pixels of inclusive boxes ``x0, y0, x1, y1``."""
    wide = boxes.astype(np.int64)
    return (wide[..., 2] - wide[..., 0] + 1) * (wide[..., 3] - wide[..., 1] + 1)


def count_pixels(
    boxes: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], runs: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Return the number of pixels of masks from their runs, or from their boxes where they have none."""
    ends = np.concatenate([[0], np.cumsum(runs[:, 2].astype(np.int64) - runs[:, 1])])
    return np.where(np.diff(offsets) > 0, ends[offsets[1:]] - ends[offsets[:-1]], box_pixels(boxes))


def unusable_masks(
    boxes: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], runs: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Return which masks are invalid.

    Boxes must not be inverted, start below 0 or be wider than the mask; runs must be inside and in order.

    `offsets` ascend from 0 to the number of runs. An empty mask has the box 0, 0, -1, -1 and no runs.
    """
    empty = (boxes == [0, 0, -1, -1]).all(axis=1)
    inverted = (boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1])
    wrong: npt.NDArray[np.bool_] = ~empty & ((boxes[:, :2] < 0).any(axis=1) | inverted)
    if not len(runs):
        return wrong
    owner = np.repeat(np.arange(len(boxes)), np.diff(offsets))
    y, begin, end = runs.T
    x0, y0, x1, y1 = boxes[owner].T
    bad = (begin >= end) | (y < y0) | (y > y1) | (begin < x0) | (end > x1.astype(np.int64) + 1)
    later = (y[1:] > y[:-1]) | ((y[1:] == y[:-1]) & (begin[1:] > end[:-1])) | (owner[1:] != owner[:-1])
    bad[1:] |= ~later
    wrong[owner[bad]] = True
    some = np.flatnonzero(offsets[1:] > offsets[:-1])
    starts = offsets[:-1][some]
    tight = np.stack([
        np.minimum.reduceat(begin, starts), np.minimum.reduceat(y, starts),
        np.maximum.reduceat(end, starts) - 1, np.maximum.reduceat(y, starts),
    ], axis=1)  # fmt: skip
    wrong[some] |= (tight != boxes[some]).any(axis=1)
    return wrong

"""Object masks as run lengths: which pixels of a row belong to an object, for many objects at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True, eq=False)
class Masks:
    """The pixels of N objects.

    Parameters
    ----------
    boxes : (N, 4) int32
        Tight inclusive pixel boxes ``x0, y0, x1, y1``; ``0, 0, -1, -1`` of a mask without pixels.
    pixels : (N,) int64
        How many pixels each mask has.
    offsets : (N + 1,) int64
        Where each object's runs start in `runs`. A mask that fills its box has no runs: the box says it all.
    runs : (R, 3) int32
        ``y, x_begin, x_end`` with `x_end` exclusive, sorted by row, then column, not touching.
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
    def from_arrays(cls, masks: Sequence[npt.NDArray[np.bool_]]) -> Masks:
        """Return the run lengths of (H, W) boolean arrays, none of them empty."""
        boxes = np.zeros((len(masks), 4), np.int32)
        pixels = np.zeros(len(masks), np.int64)
        offsets = np.zeros(len(masks) + 1, np.int64)
        parts: list[npt.NDArray[np.int32]] = []
        for row, mask in enumerate(masks):
            padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
            padded[:, 1:-1] = mask
            edges = np.diff(padded, axis=1)
            y, begin = np.nonzero(edges == 1)
            _, end = np.nonzero(edges == -1)
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
        """Return masks that fill inclusive pixel boxes."""
        boxes = np.ascontiguousarray(boxes, dtype=np.int32).reshape(-1, 4).copy()
        return cls(boxes, box_pixels(boxes), np.zeros(len(boxes) + 1, np.int64), np.zeros((0, 3), np.int32))

    @classmethod
    def concatenate(cls, parts: Sequence[Masks]) -> Masks:
        """Return the masks of all parts, one after the other."""
        if not parts:
            return cls.from_boxes(np.zeros((0, 4), np.int32))
        starts = np.cumsum([0] + [len(part.runs) for part in parts])
        offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts[:-1], strict=True)]
        return cls(
            np.concatenate([part.boxes for part in parts]),
            np.concatenate([part.pixels for part in parts]),
            np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
            np.concatenate([part.runs for part in parts]),
        )

    def to_array(self, row: int, height: int, width: int) -> npt.NDArray[np.bool_]:
        """Return object `row`'s mask as an (H, W) boolean array."""
        mask = np.zeros((height, width), dtype=bool)
        begin, end = self.offsets[row], self.offsets[row + 1]
        if begin == end:
            x0, y0, x1, y1 = self.boxes[row]
            mask[y0 : y1 + 1, x0 : x1 + 1] = True
        for y, x_begin, x_end in self.runs[begin:end]:
            mask[y, x_begin:x_end] = True
        return mask

    def take(self, rows: npt.NDArray[np.int64]) -> Masks:
        """Return the masks of these rows, in this order."""
        counts = (self.offsets[1:] - self.offsets[:-1])[rows]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        source = np.repeat(self.offsets[:-1][rows] - offsets[:-1], counts) + np.arange(offsets[-1])
        return Masks(self.boxes[rows], self.pixels[rows], offsets, self.runs[source])


def box_pixels(boxes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return how many pixels inclusive boxes ``x0, y0, x1, y1`` hold."""
    wide = boxes.astype(np.int64)
    return (wide[..., 2] - wide[..., 0] + 1) * (wide[..., 3] - wide[..., 1] + 1)


def unusable_masks(
    boxes: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], runs: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Return which masks the kernel could not trust: inverted boxes, runs outside, out of order, or a box not tight.

    `offsets` ascend from 0 to the number of runs. A mask without pixels has the box 0, 0, -1, -1 and no runs.
    """
    empty = (boxes == [0, 0, -1, -1]).all(axis=1)
    wrong: npt.NDArray[np.bool_] = ~empty & ((boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1]))
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

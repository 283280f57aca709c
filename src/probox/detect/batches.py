"""Images that a network may see together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["equal_shapes"]


def equal_shapes(shapes: Sequence[tuple[int, ...]], batch: int) -> Iterator[list[int]]:
    """Yield the rows of images of equal shape, at most `batch` at a time.

    Images of unequal size would be padded to the largest, and what an image gives would depend on its neighbours.

    >>> list(equal_shapes([(4, 6), (6, 4), (4, 6), (4, 6)], 2))
    [[0, 2], [3], [1]]
    """
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for row, shape in enumerate(shapes):
        by_shape.setdefault(tuple(shape), []).append(row)
    for rows in by_shape.values():
        for start in range(0, len(rows), batch):
            yield rows[start : start + batch]

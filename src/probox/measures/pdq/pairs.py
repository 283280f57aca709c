"""Which pairs of a detection and an object have any quality."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.convention import Convention
from probox.errors import InputError
from probox.measures.pdq.kernel_tables import KernelTables
from probox.measures.pdq.settings import settings_of
from probox.support.parallel import threads_for
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks
from probox.tables.results import PairTable

__all__ = ["pair_tables", "score_pairs"]

MAX_PAIRS = 1 << 24
"""How many pairs with a quality an image may have."""

_PairColumns = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]


def score_pairs(
    truth: GroundTruth,
    masks: Masks,
    found: Detections,
    convention: Convention,
    *,
    image_rows: npt.NDArray[np.int64] | None = None,
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
    image_rows : (N,) int64, optional
        The detections' rows of images, where they are known already.
    threads : int
        How many threads share the work, pieces of one image included. The result does not depend on it.
    progress : callable, optional
        Called with the numbers of images done and in all.
    """
    tables = KernelTables(truth, masks, found, convention, image_rows)
    settings = settings_of(convention)
    images = len(truth.image_ids)
    threads = _threads_that_pay(tables, threads)
    # Several calls, so that a bar can move and Ctrl-C is heard, but none so small that starting threads costs more.
    pieces = min(images, 64, 1 + len(found) // 2000)
    edges = np.linspace(0, images, pieces + 1).astype(int).tolist() if pieces != 1 else [0, images]
    parts: list[_PairColumns] = []
    for begin, end in itertools.pairwise(tables.refined(edges)):
        parts.append(_score(tables, begin, end, settings, threads))
        if progress is not None:
            progress(end, images)
    if not parts:
        return PairTable.none()
    columns = parts[0]
    if len(parts) > 1:
        detections, objects, qualities = (np.concatenate(column) for column in zip(*parts, strict=True))
        columns = detections, objects, qualities
    return PairTable(detections=columns[0], objects=columns[1], qualities=columns[2])


def _threads_that_pay(tables: KernelTables, threads: int) -> int:
    """Return how many threads to use: plain boxes cost as little as rows of a table, others far more."""
    return threads_for(len(tables.kinds), threads) if (tables.kinds == _core.PLAIN).all() else threads


def _score(tables: KernelTables, begin: int, end: int, settings: _core.Settings, threads: int) -> _PairColumns:
    """Return detection, object and qualities of the pairs of images begin..end - 1."""
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
    if len(parts) == 1:
        return parts[0]
    detection, obj, qualities = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((detection, obj))  # one image in several portions: as the kernel would have listed its pairs
    return detection[order], obj[order], qualities[order]


def _too_many_pairs(tables: KernelTables, image: int) -> InputError:
    """Return what to say of an image whose objects and detections nearly all meet."""
    truth, rows = tables.truth, tables.detections_of(image, image + 1)
    objects = int(tables.object_offsets[image + 1] - tables.object_offsets[image])
    return InputError(
        f"{objects:,} objects and {rows.stop - rows.start:,} detections make more than "
        f"2^{MAX_PAIRS.bit_length() - 1} pairs with a quality",
        file=truth.source or None,
        image=int(truth.image_ids[image]),
        remedy="leave out detections of low score, or what stands there many times",
    )


def pair_tables(truth: GroundTruth, found: Detections, convention: Convention, image: int) -> npt.NDArray[np.float64]:
    """Return the five qualities of every pair of one image (row `image`), objects x detections x 5, zeros included.

    Objects without pixels have no row.
    """
    masks = truth.as_box_masks() if convention.box_truth else truth.masks
    tables = KernelTables(truth, masks, found, convention.for_rules(truth.dataset.rules))
    return _core.pair_qualities(settings_of(convention), *tables.of_images(image, image + 1))

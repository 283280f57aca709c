"""COCO's greedy matching of detections with objects, kept so that every box measure follows from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.support.parallel import threads_for
from probox.support.words import with_count
from probox.tables.arguments import check_tables
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import column_of_each
from probox.tables.results import DetectionTable, ObjectTable

__all__ = ["AREA_RANGES", "IOU_THRESHOLDS", "MAX_DETECTIONS", "SIZES", "BoxMatches", "match_boxes"]

IOU_THRESHOLDS = np.linspace(0.5, 0.95, 10)
"""The overlaps at which COCO matches; LRP uses the first."""

SIZES = ("all", "small", "medium", "large")
"""Names of the area ranges."""

AREA_RANGES = np.array([[0.0, 1e10], [0.0, 32.0**2], [32.0**2, 96.0**2], [96.0**2, 1e10]])
"""Square pixels, both ends included."""

MAX_DETECTIONS = 100
"""How many detections of an image and class take part, those of the highest scores."""

_RANGES_OF_BITS = np.arange(1 << len(SIZES))[:, None] >> np.arange(len(SIZES)) & 1
"""For each set of area ranges as bits: 1 for those that are in it."""

for _constant in (IOU_THRESHOLDS, AREA_RANGES):
    _constant.flags.writeable = False


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class BoxMatches:
    """What became of every detection and object under COCO's matching.

    All that average precision and LRP need, without boxes: a table of detections (those that take
    part: of a known class, among the 100 best of their image and class), a table of objects, and the
    number of images.

    Parameters
    ----------
    classes : tuple of str
        Class names; `labels` and `object_labels` count in them.
    images : int
        How many images there are, also those without objects or detections.
    image_rows : (N,) int32
        Row of the detection's image, ascending; within an image by label, then rank.
    labels : (N,) int32
        The class.
    scores : (N,) float64
        Its score.
    ranks : (N,) int32
        How many detections of its image and class go before it.
    numbers : (N,) int32
        Its number in its image, counting all detections in the order of their table.
    matched : (N, 4) uint16
        Bit t of column a: it has a match at IoU threshold t when only objects of area range a count.
    ignored : (N, 4) uint16
        Bit t of column a: it is neither right nor wrong there (its match is a crowd or outside the
        range; or it has none and is outside the range itself).
    ious : (N, 4) float64
        Overlap with its match at the first threshold, 0.5; NaN without one.
    matched_objects : (N,) int32
        Number in its image of its match at IoU 0.5, area range all; -1 without one.
    object_labels : (M,) int32
        The class of each object.
    object_counts : (M,) uint8
        Bit a: it counts in area range a.
    left_out : int
        Detections whose class or image the truth does not know.
    """

    classes: tuple[str, ...]
    images: int
    image_rows: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]
    ranks: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.int32]
    matched: npt.NDArray[np.uint16]
    ignored: npt.NDArray[np.uint16]
    ious: npt.NDArray[np.float64]
    matched_objects: npt.NDArray[np.int32]
    object_labels: npt.NDArray[np.int32]
    object_counts: npt.NDArray[np.uint8]
    left_out: int = 0

    def __post_init__(self) -> None:
        for values in vars(self).values():
            if isinstance(values, np.ndarray):
                values.flags.writeable = False

    def __len__(self) -> int:
        """Return the number of detections that take part."""
        return len(self.image_rows)

    def __repr__(self) -> str:
        counts = {"detection": len(self), "object": len(self.object_labels), "image": self.images}
        return f"BoxMatches({', '.join(with_count(n, noun) for noun, n in counts.items())})"

    def objects_per_class(self) -> npt.NDArray[np.int64]:
        """Return how many objects of each class count in each area range, (C, 4)."""
        kinds = len(_RANGES_OF_BITS)  # of objects: in which of the area ranges they count
        places = self.object_labels.astype(np.int64) * kinds + self.object_counts
        counts = np.bincount(places, minlength=len(self.classes) * kinds).reshape(-1, kinds)
        return np.asarray(counts @ _RANGES_OF_BITS)

    def by_score(self, threads: int | None = None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return rows by class, then descending score (ties by image, then rank), and where each class starts."""
        return _core.score_order(self.labels, self.scores, len(self.classes), threads_for(len(self), threads))


def match_boxes(
    truth: GroundTruth, found: Detections, *, threads: int | None = None, call: str = "match_boxes"
) -> BoxMatches:
    """Match detections with objects as COCO does, at ten IoU thresholds and for four area ranges at once.

    In each image and class, detections take objects in the order of their scores, the earlier row
    first among equals, at most 100 of them. At threshold t a detection takes, of the objects still
    free with IoU >= t, the one it overlaps most. Crowds and objects outside the area range are
    taken only when nothing else is left and make the detection ignored; a crowd takes any number, and
    its IoU is the share of the detection that lies in it.

    Classes are matched by name with synonyms. A detection's class is the one it states, or its most probable one
    among the truth's. Detections of classes or images that the truth does not have are left out, and counted in
    `BoxMatches.left_out`.

    Parameters
    ----------
    truth : GroundTruth
        What is there.
    found : Detections
        What was found: stated class, score, box.
    threads : int, optional
        Default: as many as the process may use. The result is the same to the bit for any number.
    call : str
        What the user called, for messages.

    Examples
    --------
    >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
    >>> found = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
    >>> float(match_boxes(truth, found).ious[0, 0])
    0.9
    """
    check_tables(truth, found, call)
    labels, scores = found.named_classes(truth.classes)
    named = Named(truth.dataset.rows_of(found.image_ids), labels, found.boxes, found.extents, scores)
    return match_columns(truth.dataset, named, truth, threads=threads)


class Named(NamedTuple):
    """The columns of detections that boxes are matched by, image rows and labels being the truth's."""

    image_rows: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int32]
    boxes: npt.NDArray[np.float64]
    extents: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]


def match_columns(
    dataset: Dataset,
    found: Named | DetectionTable,
    there: GroundTruth | ObjectTable,
    *,
    threads: int | None = None,
    iou_thresholds: npt.NDArray[np.float64] = IOU_THRESHOLDS,
) -> BoxMatches:
    """Match detections that name image rows and classes of the data set (-1: none of them), as `match_boxes` does."""
    columns = _core.match_boxes(
        image_rows=found.image_rows,
        labels=found.labels,
        boxes=found.boxes,
        extents=found.extents,
        scores=found.scores,
        object_offsets=dataset.offsets(there.image_rows),
        object_labels=there.labels,
        object_boxes=there.boxes,
        object_extents=there.extents,
        object_areas=there.areas,
        object_crowd=there.crowd,
        iou_thresholds=iou_thresholds,
        area_ranges=AREA_RANGES,
        max_detections=MAX_DETECTIONS,
        threads=threads_for(len(found.labels), threads),
    )
    areas, crowd = there.areas, there.crowd
    counted = (areas[:, None] >= AREA_RANGES[:, 0]) & (areas[:, None] <= AREA_RANGES[:, 1]) & ~crowd[:, None]
    return BoxMatches(
        classes=dataset.classes,
        images=len(dataset),
        object_labels=there.labels,
        object_counts=np.packbits(counted, axis=1, bitorder="little")[:, 0],
        left_out=int(np.count_nonzero((found.image_rows < 0) | (found.labels < 0))),
        **columns,
    )


def mean_of_defined(values: npt.NDArray[np.float64]) -> float:
    """Return the mean of what is not NaN; NaN when nothing is left."""
    defined = values[~np.isnan(values)]
    # What `mean` computes; its own checks take longer than adding up a few classes.
    return float(np.add.reduce(defined) / defined.size) if defined.size else float("nan")


def size_index(size: str) -> int:
    """Return the column of the area range called `size`."""
    if size not in SIZES:
        raise InputError(f"expected size to be one of {', '.join(SIZES)}, got {size!r}")
    return SIZES.index(size)


def class_index(classes: Sequence[str], name: str) -> int:
    """Return the row of the class called `name`, in any of its spellings."""
    row = classes.index(name) if name in classes else int(column_of_each([name], classes)[0])
    if row < 0:
        raise InputError(f"there is no class {name!r}", remedy=f"choose one of {', '.join(classes)}")
    return row

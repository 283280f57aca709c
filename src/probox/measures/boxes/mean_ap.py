"""COCO's average precision and recall."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from functools import partial

import numpy as np

from probox import _core
from probox.convention import Convention
from probox.errors import InputError
from probox.measures.boxes.matching import (
    COCO_RULES,
    PREFIXES,
    SIZES,
    BoxMatches,
    BoxRules,
    Geometry,
    class_index,
    image_precision,
    keys_for,
    match_boxes,
    matches_by,
    mean_of_defined,
    means_of_defined,
    resampled_precision,
    size_index,
)
from probox.measures.measure import (
    Column,
    Evaluated,
    Groups,
    ImageColumns,
    Measure,
    Need,
    Resampled,
    Summary,
    Weights,
    groups_of,
)
from probox.support.parallel import threads_for
from probox.support.types import Floats, Ints
from probox.tables.dataset import FREQUENCIES
from probox.tables.detections import Detections
from probox.tables.flat import NumberTable, named_once
from probox.tables.groundtruth import GroundTruth

RECALL_POINTS = np.linspace(0.0, 1.0, 101)
"""Recalls at which precision is evaluated."""


def coco_labels(rules: BoxRules = COCO_RULES) -> dict[str, str]:
    """Return the names of the values of `AveragePrecisionResult.summary` in pycocotools.

    >>> coco_labels()["AR_10"], coco_labels(BoxRules(iou_thresholds=(0.5, 0.7), max_detections=(300,)))["mAP"]
    ('AR @[ IoU=0.50:0.95 | area=all | maxDets=10 ]', 'AP @[ IoU=0.50,0.70 | area=all | maxDets=300 ]')
    """

    def label(name: str, iou: str = rules.iou_words(), size: str = "all", limit: int = rules.most) -> str:
        return f"{name} @[ IoU={iou} | area={size} | maxDets={limit} ]"

    return {
        "mAP": label("AP"),
        "AP50": label("AP", "0.50"),
        "AP75": label("AP", "0.75"),
        **{f"AP_{size}": label("AP", size=size) for size in SIZES[1:]},
        **{f"AR_{limit}": label("AR", limit=limit) for limit in rules.max_detections},
        **{f"AR_{size}": label("AR", size=size) for size in SIZES[1:]},
        **{key: f"{label('AP')[:-2]} | freq={name} ]" for key, name in BY_FREQUENCY.items() if rules.frequencies},
    }


AT_IOU = {"AP50": 0.5, "AP75": 0.75}
"""Averages at one IoU threshold."""

BY_FREQUENCY = dict(zip(("APr", "APc", "APf"), FREQUENCIES, strict=True))
"""LVIS' averages over rare, common and frequent classes."""

_AVERAGES = (None, *AT_IOU.values())
"""The IoU thresholds of averages; None: all."""

_CLASSES_AT_ONCE = 256
"""Classes whose precision tables are in memory at a time."""

Tables = Callable[[int, int], tuple[Floats, Floats, Floats]]


@dataclasses.dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Precision against recall of one class, at 101 recalls; higher is better.

    Parameters
    ----------
    recall : (101,) float64
        0, 0.01 .. 1.
    precision : (101,) float64
        The highest precision at this recall or above; 0 where the recall is not reached.
    score : (101,) float64
        The score at which the recall is reached; NaN where it is not reached.
    """

    recall: Floats
    precision: Floats
    score: Floats


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AveragePrecisionResult:
    """Average precision and recall: overall, by object size, per class. All are fractions; higher is better.

    For an IoU threshold t and a class with n objects, sort the detections by score. TP(k) and FP(k) count the right and
    wrong ones among the first k. With recall TP(k)/n and precision TP(k)/(TP(k) + FP(k)),

        AP_t = (1/101) sum over r in {0, 0.01 .. 1} of max{precision(k) : recall(k) >= r}.

    AP is its mean over the IoU thresholds, mAP the mean of AP over the classes with objects. AR is the recall of all
    detections, averaged likewise. Undefined values are NaN.

    Parameters
    ----------
    classes : tuple of str
        Class names.
    objects : (C, 4) int64
        Number of objects of each class in each area range (all, small, medium, large).
    recall : (T, C, 4, L) float64
        Recall by IoU threshold, class, area range, and limit of detections per image; by default (10, C, 4, 3).
    ap : (3, C, 4) float64
        Average precision over all IoU thresholds, at 0.50 and at 0.75, by class and area range.
    tables : callable
        ``tables(start, stop)`` returns values for a range of classes: interpolated precision, the scores at which the
        recalls are reached (NaN where they are not), both (T, 101, stop - start, 4), and `recall`.
    rules : BoxRules
        IoU thresholds, limits of detections and area ranges.

    Examples
    --------
    >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
    >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
    >>> round(average_precision(truth, detections).ap75, 3)
    1.0
    """

    classes: tuple[str, ...]
    objects: Ints
    recall: Floats
    ap: Floats
    tables: Tables
    rules: BoxRules = COCO_RULES

    @classmethod
    def from_matches(cls, matches: BoxMatches, *, threads: int | None = None) -> AveragePrecisionResult:
        """Return the result of existing matches.

        Parameters
        ----------
        matches : BoxMatches
            Outcomes of detections and objects.
        threads : int, optional
            Number of threads. Default: all available.

        Returns
        -------
        AveragePrecisionResult

        Examples
        --------
        >>> from probox.measures.boxes import match_boxes
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> AveragePrecisionResult.from_matches(match_boxes(truth, detections))
        AveragePrecisionResult(mAP=0.9000, AP50=1.0000, AP75=1.0000)
        """
        order, offsets = matches.by_score(threads)
        objects = matches.objects_per_class()
        tables = partial(_tables, matches, order, offsets, objects, threads)
        return cls.from_tables(matches.classes, objects, tables, matches.rules)

    @classmethod
    def from_tables(
        cls, classes: tuple[str, ...], objects: Ints, tables: Tables, rules: BoxRules = COCO_RULES
    ) -> AveragePrecisionResult:
        """Return the result of precision tables, computed for a few classes at a time.

        The tables of a class take 65 kB. A small file with many class names would otherwise exhaust the memory.
        """
        shape = (len(classes), len(SIZES))
        ap = np.full((len(_AVERAGES), *shape), np.nan)
        recall = np.empty((len(rules.iou_thresholds), *shape, len(rules.max_detections)))
        places = [slice(None) if iou is None else _only(rules.row_of(iou)) for iou in _AVERAGES]
        pieces = -(-len(classes) // _CLASSES_AT_ONCE)
        # Pieces of similar size: NumPy sums a single class in another order than several, which changes rounding.
        edges = np.linspace(0, len(classes), pieces + 1).astype(int).tolist()
        for start, stop in itertools.pairwise(edges):
            precision, _, recall[:, start:stop] = tables(start, stop)
            for (row, chosen), size in itertools.product(enumerate(places), range(len(SIZES))):
                values = precision[chosen, :, :, size]
                if not len(values):  # not one of the thresholds: undefined
                    continue
                ap[row, start:stop, size] = np.add.reduce(values, axis=(0, 1)) / (values.shape[0] * values.shape[1])
        return cls(classes=classes, objects=objects, recall=recall, ap=ap, tables=tables, rules=rules)

    @property
    def precision(self) -> Floats:
        """Interpolated precision by IoU threshold, recall, class, area range, (T, 101, C, 4); 32 kB per class."""
        return self.tables(0, len(self.classes))[0]

    @property
    def score(self) -> Floats:
        """The score at which that recall is reached, NaN where it is not, (T, 101, C, 4); 32 kB per class."""
        return self.tables(0, len(self.classes))[1]

    @property
    def map(self) -> float:
        """Mean average precision over the IoU thresholds, by default 0.50, 0.55 .. 0.95."""
        return mean_of_defined(self._ap())

    @property
    def ap50(self) -> float:
        """Mean average precision at IoU 0.50; NaN if that is not one of the thresholds."""
        return mean_of_defined(self._ap(average=1))

    @property
    def ap75(self) -> float:
        """Mean average precision at IoU 0.75; NaN if that is not one of the thresholds."""
        return mean_of_defined(self._ap(average=2))

    @property
    def ap_small(self) -> float:
        """Mean average precision on small objects, by default of at most 32 x 32 square pixels."""
        return mean_of_defined(self._ap("small"))

    @property
    def ap_medium(self) -> float:
        """Mean average precision on medium objects, by default between 32 x 32 and 96 x 96 square pixels."""
        return mean_of_defined(self._ap("medium"))

    @property
    def ap_large(self) -> float:
        """Mean average precision on large objects, by default of at least 96 x 96 square pixels."""
        return mean_of_defined(self._ap("large"))

    @property
    def ar_1(self) -> float:
        """Average recall with one detection per image and class; NaN if 1 is not one of the limits."""
        return mean_of_defined(self._ar(limit=1))

    @property
    def ar_10(self) -> float:
        """Average recall with ten detections per image and class; NaN if 10 is not one of the limits."""
        return mean_of_defined(self._ar(limit=10))

    @property
    def ar_100(self) -> float:
        """Average recall with a hundred detections per image and class; NaN if 100 is not one of the limits."""
        return mean_of_defined(self._ar(limit=100))

    @property
    def ar_small(self) -> float:
        """Average recall on small objects."""
        return mean_of_defined(self._ar("small"))

    @property
    def ar_medium(self) -> float:
        """Average recall on medium objects."""
        return mean_of_defined(self._ar("medium"))

    @property
    def ar_large(self) -> float:
        """Average recall on large objects."""
        return mean_of_defined(self._ar("large"))

    def _ap(self, size: str = "all", average: int = 0) -> Floats:
        """Return the average precision of each class; `average` is an index of `_AVERAGES`."""
        return self.ap[average, :, size_index(size)]

    def _ar(self, size: str = "all", limit: int | None = None) -> Floats:
        """Return the average recall of each class at a limit of detections, by default the last one."""
        limits = self.rules.max_detections
        if limit is not None and limit not in limits:
            return np.full(len(self.classes), np.nan)
        column = -1 if limit is None else limits.index(limit)
        per_class: Floats = self.recall[:, :, size_index(size), column].mean(axis=0)
        return per_class

    def by_frequency(self) -> dict[str, float]:
        """Return LVIS' mean average precision of rare, common and frequent classes.

        Returns
        -------
        dict of str to float
            APr, APc and APf, NaN without such classes; empty if frequencies of classes are unknown.

        Examples
        --------
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> truth = truth.replace(dataset=truth.dataset.replace(rules="lvis", frequencies=["r"]))
        >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> round(average_precision(truth, detections).by_frequency()["APr"], 3)
        0.9
        """
        return {key: float(value[0]) for key, value in _by_frequency(self.rules, self._ap()[None]).items()}

    def summary(self) -> dict[str, float]:
        """Return COCO's values in their usual order: twelve by default, AR for each limit of detections.

        Returns
        -------
        dict of str to float
            Values by name, ``mAP`` first; NaN if undefined. For LVIS, also those of `by_frequency`.

        Examples
        --------
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> round(average_precision(truth, detections).summary()["mAP"], 3)
        0.9
        """
        return {
            "mAP": self.map,
            "AP50": self.ap50,
            "AP75": self.ap75,
            "AP_small": self.ap_small,
            "AP_medium": self.ap_medium,
            "AP_large": self.ap_large,
            **{f"AR_{limit}": mean_of_defined(self._ar(limit=limit)) for limit in self.rules.max_detections},
            "AR_small": self.ar_small,
            "AR_medium": self.ar_medium,
            "AR_large": self.ar_large,
            **self.by_frequency(),
        }

    def per_class(self) -> NumberTable:
        """Return a table with one row per class; NaN for classes without objects.

        Returns
        -------
        NumberTable
            AP, AP50, AP75 and AR by class.

        Examples
        --------
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> len(average_precision(truth, detections).per_class())
        1
        """
        columns = {
            "objects": self.objects[:, 0],
            "AP": self._ap(),
            "AP50": self._ap(average=1),
            "AP75": self._ap(average=2),
            **{f"AP_{size}": self._ap(size) for size in SIZES[1:]},
            **{f"AR_{limit}": self._ar(limit=limit) for limit in self.rules.max_detections},
            **{f"AR_{size}": self._ar(size) for size in SIZES[1:]},
        }
        return NumberTable("class", named_once(self.classes), columns)

    def per_size(self) -> NumberTable:
        """Return a table with one row per area range: means over the classes that have objects in it.

        Returns
        -------
        NumberTable
            The same columns by area range.

        Examples
        --------
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> len(average_precision(truth, detections).per_size())
        4
        """
        columns = {
            "mAP": [mean_of_defined(self._ap(size)) for size in SIZES],
            "AP50": [mean_of_defined(self._ap(size, 1)) for size in SIZES],
            "AP75": [mean_of_defined(self._ap(size, 2)) for size in SIZES],
            f"AR_{self.rules.most}": [mean_of_defined(self._ar(size)) for size in SIZES],
        }
        means = {name: np.array(values) for name, values in columns.items()}
        return NumberTable("size", SIZES, {"objects": self.objects.sum(axis=0), **means})

    def curve(self, name: str, iou: float = 0.5, *, size: str = "all") -> PrecisionRecallCurve:
        """Return the precision-recall curve of a class at one IoU threshold.

        Parameters
        ----------
        name : str
            The class.
        iou : float
            One of the IoU thresholds, by default 0.50, 0.55 .. 0.95.
        size : {"all", "small", "medium", "large"}
            Size of the objects that count.

        Returns
        -------
        PrecisionRecallCurve
            Precision and score at 101 recalls.

        Examples
        --------
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> float(average_precision(truth, detections).curve("cup").precision[0].round(6))
        1.0
        """
        place = self.rules.row_of(iou)
        if place is None:
            raise InputError(f"expected iou to be one of {self.rules.iou_words()}, got {iou!r}")
        row = class_index(self.classes, name)
        precision, score, _ = self.tables(row, row + 1)
        at = (place, slice(None), 0, size_index(size))
        return PrecisionRecallCurve(RECALL_POINTS.copy(), precision[at].copy(), score[at].copy())

    def __repr__(self) -> str:
        return f"AveragePrecisionResult(mAP={self.map:.4f}, AP50={self.ap50:.4f}, AP75={self.ap75:.4f})"


def _by_frequency(rules: BoxRules, of_classes: Floats) -> dict[str, Floats]:
    """Return the means over the classes of each frequency of average precisions (R, C), if frequencies are known."""
    names = BY_FREQUENCY.items() if rules.frequencies else ()
    return {key: means_of_defined(of_classes[:, rules.classes_of(name)]) for key, name in names}


def _tables(
    matches: BoxMatches, order: Ints, offsets: Ints, objects: Ints, threads: int | None, start: int, stop: int
) -> tuple[Floats, Floats, Floats]:
    """Return precision, score and recall of a range of classes; `order` and `offsets` cover all classes."""
    own, rules = offsets[start : stop + 1], matches.rules
    precision, score, recall = _core.precision_at_recall(
        order=order[own[0] : own[-1]],
        offsets=own - own[0],
        scores=matches.scores,
        ranks=matches.ranks,
        matched=matches.matched,
        ignored=matches.ignored,
        objects=objects[start:stop],
        thresholds=len(rules.levels),
        recall_points=RECALL_POINTS,
        limits=np.array(rules.max_detections, np.int64),
        threads=threads_for(int(own[-1] - own[0]) + RECALL_POINTS.size * (stop - start), threads),
    )
    return rules.select_averaged(precision), rules.select_averaged(score), rules.select_averaged(recall)


def _only(row: int | None) -> slice:
    """Return a slice with this row only; without it, an empty one."""
    return slice(0, 0) if row is None else slice(row, row + 1)


def average_precision(
    truth: GroundTruth,
    detections: Detections,
    *,
    convention: Convention | None = None,
    geometry: Geometry = "box",
    threads: int | None = None,
) -> AveragePrecisionResult:
    """Compute mean average precision as the COCO challenge does.

    Parameters
    ----------
    truth : GroundTruth
        Ground truth.
    detections : Detections
        Detections with class, score and box.
    convention : Convention, optional
        Its `iou_thresholds`, `max_detections` and `area_ranges` are used. Default: those of COCO.
    geometry : {"box", "mask"}
        IoU of boxes or of masks, as for `match_boxes`.
    threads : int, optional
        Number of threads. Default: all available.

    Returns
    -------
    AveragePrecisionResult
        Average precision and recall: overall, by size, per class.

    Examples
    --------
    >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
    >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
    >>> average_precision(truth, detections)
    AveragePrecisionResult(mAP=0.9000, AP50=1.0000, AP75=1.0000)
    """
    matches = match_boxes(
        truth, detections, convention=convention, geometry=geometry, threads=threads, call="average_precision"
    )
    return AveragePrecisionResult.from_matches(matches, threads=threads)


def _result(evaluated: Evaluated, geometry: Geometry) -> AveragePrecisionResult:
    return evaluated.average_precision if geometry == "box" else evaluated.mask_average_precision


def _summary(geometry: Geometry, evaluated: Evaluated) -> Summary:
    precision = _result(evaluated, geometry)
    numbers = {"mAP": precision.map, "AP50": precision.ap50, "AP75": precision.ap75}
    return keys_for(geometry, numbers | precision.by_frequency())


def _per_class(geometry: Geometry, evaluated: Evaluated) -> Groups:
    table = _result(evaluated, geometry).per_class().columns
    columns = {"mAP": table["AP"], "AP50": table["AP50"], "AP75": table["AP75"]}
    return groups_of(evaluated.classes, keys_for(geometry, columns))


def _per_size(geometry: Geometry, evaluated: Evaluated) -> Groups:
    """Return mAP, AP50 and AP75 of each size; its mAP is COCO's AP_small, AP_medium or AP_large."""
    table = _result(evaluated, geometry).per_size().columns
    return groups_of(SIZES[1:], keys_for(geometry, {name: table[name][1:] for name in ("mAP", "AP50", "AP75")}))


def _per_image(geometry: Geometry, evaluated: Evaluated) -> ImageColumns:
    """Return the summary of each image alone."""
    matches = matches_by(evaluated, geometry)
    precision = image_precision(matches, evaluated.object_images, RECALL_POINTS)
    rules, undefined = matches.rules, np.full(precision.shape[1], np.nan)
    at = {key: rules.row_of(iou) for key, iou in AT_IOU.items()}
    columns = {"mAP": precision[-1]} | {key: undefined if row is None else precision[row] for key, row in at.items()}
    return keys_for(geometry, columns)


def _resampled_classes(geometry: Geometry, evaluated: Evaluated, weights: Weights) -> tuple[Resampled, Floats]:
    matches = matches_by(evaluated, geometry)
    precision = resampled_precision(matches, evaluated.object_images, weights, RECALL_POINTS)
    of_classes = precision.mean(axis=1)
    numbers = {"mAP": means_of_defined(of_classes)}
    for key, iou in AT_IOU.items():
        row = matches.rules.row_of(iou)
        numbers[key] = np.full(len(weights), np.nan) if row is None else means_of_defined(precision[:, row])
    return keys_for(geometry, numbers | _by_frequency(matches.rules, of_classes)), of_classes


def _mean_ap(name: str, geometry: Geometry, headline: Column, need: Need) -> Measure:
    others = (Column(key=PREFIXES[geometry] + key) for key in AT_IOU)
    by_frequency = (Column(key=PREFIXES[geometry] + key, optional=True) for key in BY_FREQUENCY)
    return Measure(
        name=name,
        needs=frozenset({need}),
        columns=(headline, *others, *by_frequency),
        summary=partial(_summary, geometry),
        per_class=partial(_per_class, geometry),
        per_size=partial(_per_size, geometry),
        per_image=partial(_per_image, geometry),
        leads=True,
        standard=geometry == "box",
        resampled=lambda evaluated, weights: _resampled_classes(geometry, evaluated, weights)[0],
        resampled_classes=partial(_resampled_classes, geometry),
    )


MEAN_AP = _mean_ap("map", "box", Column(key="mAP", heading="mAP", hint="COCO's mean average precision"), "boxes")

MASK_MEAN_AP = _mean_ap(
    "map-mask",
    "mask",
    Column(key="mask_mAP", heading="mask mAP", hint="COCO's mean average precision, by IoU of masks"),
    "masks",
)

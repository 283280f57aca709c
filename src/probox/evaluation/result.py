"""The result of an evaluation, and the metrics and analyses it offers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from probox.convention import BOX_FIELDS, Convention
from probox.errors import InputError
from probox.evaluation.group_tables import (
    COUNTS,
    GroupTable,
    ImageTable,
    asked_columns,
    counts_of,
    counts_per_image,
    image_table,
    with_measures,
)
from probox.evaluation.parts import Keep, Part
from probox.evaluation.verdicts import ThresholdChoice, judge
from probox.measures import registry
from probox.measures.boxes.matching import (
    SIZES,
    BoxMatches,
    BoxRules,
    Geometry,
    check_geometry,
    match_columns,
    matches_by,
)
from probox.measures.boxes.mean_ap import AveragePrecisionResult
from probox.measures.boxes.optimal_lrp import LRPResult
from probox.measures.measure import Groups, Measure
from probox.measures.pdq.pdq_measure import PDQ, by_class, by_size, sums_per_image
from probox.notes import InputWarning, Note, as_notes, notes_at_threshold, notes_of_images
from probox.support.formatting import with_count
from probox.tables.dataset import Dataset
from probox.tables.flat import named_once
from probox.tables.masks import Masks
from probox.tables.results import DetectionTable, ObjectTable, OverlapTable, PairTable, Verdict, renumber_pairs
from probox.tables.table import expect_path

if TYPE_CHECKING:
    from probox.analysis.diagnosis import Diagnosis
    from probox.analysis.loss_breakdown import Confusion
    from probox.analysis.resampling import Intervals
    from probox.analysis.thresholds import BestThreshold
    from probox.evaluation.kept import Kept, Total
    from probox.measures.matched import MatchedPairs
    from probox.plots import Plots

SomeTable = TypeVar("SomeTable", ObjectTable, DetectionTable)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Evaluation:
    """Result of `probox.evaluate`, which `probox.load` reads back: metrics, and the tables behind them.

    `objects`, `detections` and `pairs` are tables that refer to the images of `dataset`; everything else is derived
    from them. Evaluations of different images can be added: ``a + b``. With ``keep="matches"`` or ``"summary"`` there
    are no tables: numbers are bit-identical, and methods that need tables raise `InputError`.

    Parameters
    ----------
    convention : Convention
        The convention of the evaluation.
    dataset : Dataset
        Images and classes of the ground truth.
    objects : ObjectTable
        Outcome of each object.
    detections : DetectionTable
        Outcome of each detection.
    pairs : PairTable
        Qualities of all pairs that could be matched.
    masks : Masks
        The objects' pixels as scored.
    overlaps : OverlapTable
        IoU of masks of detections and objects; empty if no metric of masks was requested.
    measures : tuple of str
        Names of the metrics in `summary`, in the registry's order.
    inputs : tuple of str
        Input files, ground truth first.
    input_notes : tuple of Note
        Data that was excluded or replaced; `notes` and `warnings` have more.
    version : str
        Version of probox that computed the result.
    part : Part, optional
        The part of an evaluation; None for a whole one.
    threshold_choice : ThresholdChoice, optional
        Label thresholds from ``at_threshold("auto")``, which only PDQ uses; detections not above the threshold of their
        image are ignored.
    kept : Kept, optional
        Replacement of tables that were not kept.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["probabilistic"])
    >>> round(result.pdq, 4), round(result.summary()["mAP"], 4), result.tp, result.fp, result.fn
    (0.5757, 0.6245, 145, 22, 19)
    >>> missed = result.objects.verdicts == probox.tables.results.Verdict.FN
    >>> result.objects.boxes[missed].shape
    (19, 4)
    """

    convention: Convention
    dataset: Dataset
    objects: ObjectTable
    detections: DetectionTable
    pairs: PairTable
    masks: Masks
    overlaps: OverlapTable = dataclasses.field(default_factory=OverlapTable.none)
    measures: tuple[str, ...] = dataclasses.field(default_factory=registry.standard_names)
    inputs: tuple[str, ...] = ()
    input_notes: tuple[Note, ...] = ()
    version: str = ""
    part: Part | None = None
    threshold_choice: ThresholdChoice | None = None
    kept: Kept | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_notes", as_notes(self.input_notes))
        if self.kept is not None:
            return
        # Tables show image and class names: those of this evaluation's dataset, also after `dataclasses.replace`.
        for name in ("objects", "detections"):
            table = getattr(self, name)
            if table.dataset is not self.dataset:
                object.__setattr__(self, name, table.replace(dataset=self.dataset))

    @property
    def keep(self) -> Keep:
        """Return the size of the result: ``"all"``, ``"matches"`` or ``"summary"``."""
        return "all" if self.kept is None else self.kept.keep

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the ground truth's classes."""
        return self.dataset.classes

    @property
    def has_pairs(self) -> bool:
        """Return whether PDQ matching was computed."""
        return registry.need_pairs(self.measures)

    @property
    def has_overlaps(self) -> bool:
        """Return whether IoU of masks was computed."""
        return registry.need_masks(self.measures)

    # --- numbers ---

    def summary(self) -> dict[str, float]:
        """Return the requested metrics by column key.

        They are fractions, and errors are not inverted: ``PDQ`` 0.5757 and ``moLRP`` 0.4115 appear in tables as 57.57
        and, under ``1-moLRP``, 58.85. Undefined numbers are NaN.

        Returns
        -------
        dict of str to float
            Numbers by column key.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"])
        >>> round(result.summary()["PDQ"], 4)
        0.5757
        """
        summary: dict[str, float] = {}
        for measure in registry.measures_called(self.measures):
            summary.update(self.summary_of(measure))
        return summary

    def summary_of(self, measure: Measure) -> dict[str, float]:
        """Return the numbers of one metric, requested or not.

        Parameters
        ----------
        measure : Measure
            A metric of the registry.

        Returns
        -------
        dict of str to float
            Numbers by column key.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> from probox.measures.registry import measures_called
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"])
        >>> round(result.summary_of(measures_called(["nees"])[0])["NEES"], 2)
        6.59
        """
        if self.kept is not None and measure is PDQ:
            return self.kept.overall.summary(self.convention)
        return measure.summary(self)

    @property
    def pdq(self) -> float:
        """Return PDQ: the sum of the matches' pPDQ over TP + FP + FN; NaN if there is nothing to score."""
        return self.summary_of(PDQ)["PDQ"]

    @property
    def tp(self) -> int:
        """Return the number of true positives of PDQ: detections matched with an object."""
        return int(self.summary_of(PDQ)["TP"])

    @property
    def fp(self) -> int:
        """Return the number of false positives of PDQ: unmatched detections."""
        return int(self.summary_of(PDQ)["FP"])

    @property
    def fn(self) -> int:
        """Return the number of false negatives of PDQ: unmatched objects."""
        return int(self.summary_of(PDQ)["FN"])

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of images, objects and detections, regardless of their outcome."""
        if self.kept is None:
            counts = {"objects": int(self.objects.countable.sum()), "detections": len(self.detections)}
        else:
            counted = self.kept.overall.count_by_name()
            counts = {name: counted[name] for name in COUNTS}
        return {"images": len(self.dataset), **counts}

    @property
    def counts_in_words(self) -> str:
        """Return the number of images, objects and detections as text."""
        nouns = {"images": "image", "objects": "object", "detections": "detection"}
        return ", ".join(with_count(n, nouns[what]) for what, n in self.counts.items())

    def coco(self, geometry: Geometry = "box") -> dict[str, float]:
        """Return COCO's metrics in the order of pycocotools: twelve by default, AR for each limit of detections.

        They are fractions: ``mAP``, ``AP50``, ``AP75``, ``AP_small``, ``AP_medium``, ``AP_large``, ``AR_1``, ``AR_10``,
        ``AR_100``, ``AR_small``, ``AR_medium`` and ``AR_large``. Undefined numbers are NaN, for which pycocotools has
        -1.

        Parameters
        ----------
        geometry : {"box", "mask"}
            IoU of boxes or of masks; masks need the metric ``map-mask`` or ``lrp-mask``.

        Returns
        -------
        dict of str to float
            The metrics.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> round(evaluate(demo.truth, demo.detectors["probabilistic"]).coco()["AP50"], 3)
        0.778
        """
        of_boxes = check_geometry(geometry) == "box"
        result = self.average_precision if of_boxes else self.mask_average_precision
        return result.summary()

    def intervals(
        self,
        measures: str | Collection[str] | None = None,
        *,
        replicates: int = 1000,
        seed: int = 0,
        level: float = 0.95,
    ) -> Intervals:
        """Return a confidence interval of each number by the bootstrap over images.

        Each replicate draws as many images as there are, with replacement. Matches are made per image, so the numbers
        equal an evaluation of the drawn images. ``docs/comparing.md`` defines the intervals.

        Parameters
        ----------
        measures : collection of str, or str, optional
            Metric names, also as one comma-separated text, or ``"all"``. Default: those that the evaluation holds.
        replicates : int
            Number of replicates.
        seed : int
            Random seed; the same seed gives the same intervals, for any number of threads.
        level : float
            Confidence level, between 0 and 1.

        Returns
        -------
        Intervals
            Intervals by column, and notes.

        Examples
        --------
        >>> import probox
        >>> from probox.demo import make_demo
        >>> demo = make_demo()
        >>> result = probox.evaluate(demo.truth, demo.detectors["probabilistic"])
        >>> pdq = result.intervals()["PDQ"]
        >>> pdq.low < result.pdq < pdq.high
        True
        """
        from probox.analysis.resampling import bootstrap

        return bootstrap(self, measures, replicates=replicates, seed=seed, level=level)

    def threshold_curve(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return PDQ, TP, FP and FN at the label thresholds 0, 0.01 .. 0.99; NaN below the evaluation's own threshold.

        Returns
        -------
        dict of str to (100,) float64
            The columns ``threshold``, ``PDQ``, ``TP``, ``FP`` and ``FN``.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> curve = evaluate(demo.truth, demo.detectors["probabilistic"]).threshold_curve()
        >>> float(curve["threshold"][curve["PDQ"].argmax()])
        0.66
        """
        if not self.has_pairs:
            raise InputError("PDQ was not measured", remedy="evaluate again with {option:measures=all}")
        from probox.evaluation.kept import find_curve

        curve = find_curve(self) if self.kept is None else self.kept.curve
        return curve.columns(self.convention)

    @property
    def box_rules(self) -> BoxRules:
        """Return IoU thresholds, limits of detections and area ranges of the convention."""
        return BoxRules.of(self.convention, self.dataset)

    @property
    def recorded_convention(self) -> Convention:
        """Return the convention for JSON, with the limits of detections that the ground truth's format decides."""
        return self.convention.replace(max_detections=self.box_rules.max_detections)

    @cached_property
    def box_matches(self) -> BoxMatches:
        """Return COCO's matches by IoU of boxes, from which mAP and LRP follow."""
        return self._match("box")

    @cached_property
    def average_precision(self) -> AveragePrecisionResult:
        """Return COCO's average precision and recall."""
        return self._average_precision("box")

    @cached_property
    def lrp(self) -> LRPResult:
        """Return localisation recall precision, on the paper's grid of thresholds."""
        return self._lrp("box")

    @cached_property
    def mask_matches(self) -> BoxMatches:
        """Return COCO's matches by IoU of masks, from which mAP and LRP of masks follow."""
        return self._match("mask")

    @cached_property
    def mask_average_precision(self) -> AveragePrecisionResult:
        """Return COCO's average precision and recall of masks."""
        return self._average_precision("mask")

    @cached_property
    def mask_lrp(self) -> LRPResult:
        """Return localisation recall precision of masks, on the paper's grid of thresholds."""
        return self._lrp("mask")

    def _average_precision(self, geometry: Geometry) -> AveragePrecisionResult:
        if self.kept is not None:
            return self.kept.columns_of(geometry).average_precision(self.classes, self.box_rules)
        return AveragePrecisionResult.from_matches(matches_by(self, geometry))

    def _lrp(self, geometry: Geometry) -> LRPResult:
        if self.kept is not None:
            return self.kept.columns_of(geometry).lrp(self.classes)
        return LRPResult.from_matches(matches_by(self, geometry))

    def _match(self, geometry: Geometry) -> BoxMatches:
        if self.kept is not None:
            return self.kept.columns_of(geometry).box_matches(self.classes, self.box_rules)
        if geometry == "mask" and not self.has_overlaps:
            raise InputError("metrics of masks were not measured", remedy="evaluate with {option:measures=map-mask}")
        overlaps = self.overlaps if geometry == "mask" else None
        return match_columns(self.dataset, self.detections, self.objects, self.box_rules, overlaps)

    @cached_property
    def matched_pairs(self) -> MatchedPairs:
        """Return the pairs on which covariances and labels are scored: COCO's matches at an IoU of 0.5."""
        from probox.measures.matched import MatchedPairs

        return MatchedPairs.of(self)

    @property
    def object_images(self) -> npt.NDArray[np.int64]:
        """Return the row of each object's image."""
        return self.objects.image_rows if self.kept is None else self.kept.object_images()

    @property
    def scored_against(self) -> str | None:
        """Return the regions of PDQ and metrics of masks: ``"masks"``, or ``"boxes"`` if every mask fills its box.

        None if none of them was measured or there are no objects.
        """
        if self.kept is not None:
            return self.kept.scored_against
        if not (self.has_pairs or self.has_overlaps) or not len(self.masks):
            return None
        return "masks" if len(self.masks.runs) else "boxes"

    def known_of_objects(self) -> tuple[npt.NDArray[Any], dict[str, npt.NDArray[Any]]]:
        """Return the number of objects per image, and columns with the known properties of objects, by image.

        Returns
        -------
        tuple of (images,) int64 and dict of str to array
            The counts, and the columns.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> counts, columns = evaluate(demo.truth, demo.detectors["probabilistic"]).known_of_objects()
        >>> len(columns["labels"]), int(counts.sum())
        (164, 164)
        """
        if self.kept is not None:
            return self.kept.known_of_objects()
        counts = np.bincount(self.objects.image_rows, minlength=len(self.dataset))
        names = ("labels", "boxes", "extents", "areas", "crowd", "pixels", "mask_boxes", "ignored")
        return counts, {name: getattr(self.objects, name) for name in names}

    @cached_property
    def image_sums(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the sums of PDQ per image."""
        return sums_per_image(self) if self.kept is None else self.kept.image_sums(self.convention)

    def per_class(self) -> GroupTable:
        """Return the summary of each class; false positives count under their predicted class.

        The table is a dictionary by class, with `to_frame()` and `to_arrow()`. ``objects`` and ``detections`` count all
        rows: a matched detection under its object's class, an unmatched one under its predicted class. ``mAP`` is the
        class's average precision over COCO's ten IoU thresholds, ``moLRP`` its optimal LRP. Only metrics that are
        defined per class appear; standard metrics that were not requested have NaN and counts of 0.

        Returns
        -------
        GroupTable
            Numbers by class.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> classes = evaluate(demo.truth, demo.detectors["probabilistic"]).per_class()
        >>> len(classes) == len(demo.truth.classes)
        True
        """
        if len(set(self.classes)) < len(self.classes):  # duplicate names get rows of their own: "cup", "cup (2)"
            return dataclasses.replace(self, dataset=self.dataset.replace(classes=named_once(self.classes))).per_class()
        totals = () if self.kept is None else self.kept.classes
        return GroupTable("class", self._groups("per_class", self.classes, totals), asked_columns(self.measures))

    def per_size(self) -> GroupTable:
        """Return the summary of small, medium and large objects; false positives count by the area of their box.

        The sizes are COCO's, including both limits: an object of exactly 32 x 32 pixels is small and medium. The table
        is like that of `per_class`; ``mAP`` is COCO's AP_small, AP_medium and AP_large, ``moLRP`` the mean over classes
        of the optimal LRP among objects of the size. Only metrics that are defined per size appear; standard metrics
        that were not requested have NaN and counts of 0.

        Returns
        -------
        GroupTable
            Numbers by size.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> list(evaluate(demo.truth, demo.detectors["probabilistic"]).per_size())
        ['small', 'medium', 'large']
        """
        totals = () if self.kept is None else self.kept.sizes
        return GroupTable("size", self._groups("per_size", SIZES[1:], totals), asked_columns(self.measures))

    def _groups(self, grouped: str, names: Sequence[str], totals: Sequence[Total]) -> Groups:
        """Return the summary of each class or size, from tables or totals."""
        if self.kept is None:
            counts = {"per_class": by_class, "per_size": by_size}[grouped](counts_of, self)
            return with_measures(self, counts, lambda measure: getattr(measure, grouped))

        def summaries(measure: Measure) -> Any:
            if measure is PDQ:
                return lambda _: {
                    name: total.summary(self.convention) for name, total in zip(names, totals, strict=True)
                }
            return getattr(measure, grouped)

        counted = [total.count_by_name() for total in totals]
        groups: Groups = {name: {key: own[key] for key in COUNTS} for name, own in zip(names, counted, strict=True)}
        return with_measures(self, groups, summaries)

    def per_image(self) -> ImageTable:
        """Return the metrics of each image: id, counts, and the `summary` it would have as the only image.

        ``per_image()[7]["PDQ"]`` is the number of image 7, ``per_image().columns["PDQ"]`` has those of all images.
        `to_frame()` and `to_arrow()` add file names. ``objects`` and ``detections`` count all rows, regardless of their
        outcome. Qualities are NaN without true positives, and PDQ is NaN if there is nothing to score. Sums of
        qualities, which add up over images, are under ``sum_pPDQ``, ``sum_spatial`` and so on.

        ``mAP`` and ``moLRP`` are those of ``select_images([image_id]).summary()``: means over the classes with objects
        in the image, NaN if there are none, even with detections. The mAP of all images is not their mean, because it
        ranks the detections of a class over all images; moLRP chooses one threshold per class for all of them.

        Only metrics that are defined per image appear; standard metrics that were not requested have NaN and counts of
        0.

        Returns
        -------
        ImageTable
            Numbers by image id.
        Examples
        --------
        >>> from probox import Detections, GroundTruth, evaluate
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48), 9: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> found = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> images = evaluate(truth, found, measures=["map", "lrp"]).per_image().columns
        >>> images["mAP"].round(6).tolist(), images["moLRP"].round(6).tolist()
        ([0.9, nan], [0.2, nan])
        """
        if self.kept is None:
            counts = counts_per_image(self.detections, self.objects, len(self.dataset))
        else:
            counts = {name: self.kept.sums[name].astype(np.int64) for name in COUNTS}
        return image_table(self, self.measures, counts)

    def at_threshold(self, threshold: float | Literal["auto"]) -> Evaluation:
        """Return the evaluation of the detections whose highest label probability is above `threshold`.

        Equals an evaluation with ``label_threshold=threshold``, but repeats only the matching, without pixels.
        `threshold` must not be below the evaluation's own.

        With ``"auto"``, PDQ uses a threshold chosen by cross-fitting: images are split into five folds, and the
        threshold of each fold is the one with the best PDQ on the other folds. (Wenkel et al., Sensors 2021, 21, 4350,
        choose it on the images they report on.) `threshold_choice` has the thresholds, and the one to use for new
        images. mAP, moLRP and other metrics use all detections.

        Parameters
        ----------
        threshold : float or "auto"
            Label threshold, 0 to 1.

        Returns
        -------
        Evaluation
            The evaluation at the threshold.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"])
        >>> result.at_threshold(0.7).fp < result.fp
        True
        """
        if self.threshold_choice is not None:
            return self if threshold == "auto" else self.of_all_detections().at_threshold(threshold)
        own = self.convention.fixed_threshold
        if threshold == "auto":
            if own is not None:
                raise InputError(
                    f"expected an evaluation of all detections, but this one excludes those not above {own:g}",
                    remedy="evaluate with {option:label_threshold=auto}, or without one",
                )
            from probox.analysis.thresholds import cross_fit_threshold

            return self._with_choice(cross_fit_threshold(self))
        if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number):
            raise InputError(f'expected threshold to be a number between 0 and 1 or "auto", got {threshold!r:.40}')
        threshold = float(threshold)
        if own is not None and threshold < own:
            raise InputError(
                f"expected threshold to be at least {own:g}, because this evaluation excludes all detections not above "
                f"{own:g}, but got {threshold:g}",
                remedy="evaluate with this label_threshold, or without one",
            )
        kept = self.detections.confidences > np.float32(threshold)
        return dataclasses.replace(
            self.keeping(kept),
            convention=self.convention.replace(label_threshold=threshold),
            part=self.part,  # still a part, since every part has an evaluation at this threshold
            input_notes=notes_at_threshold(self.input_notes, int((~kept).sum()), threshold),
        )

    def of_all_detections(self) -> Evaluation:
        """Return the evaluation before label thresholds were chosen; itself, unless it is at threshold ``"auto"``.

        Returns
        -------
        Evaluation
            The evaluation of all detections.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"])
        >>> result.at_threshold("auto").of_all_detections().pdq == result.pdq
        True
        """
        return self if self.threshold_choice is None else self._with_choice(None)

    def expect_one_threshold(self, call: str) -> None:
        """Raise if each image has its own label threshold.

        Parameters
        ----------
        call : str
            Name of the function in the message.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> evaluate(demo.truth, demo.detectors["probabilistic"]).expect_one_threshold("diagnose")
        """
        if self.threshold_choice is not None:
            number = self.threshold_choice.on_all
            raise InputError(
                f'{call} expects one label threshold for all images, but this evaluation has "auto"',
                remedy="evaluate without it"
                if number is None
                else f"evaluate with {{option:label_threshold={number:.4g}}}",
            )

    def _with_choice(self, choice: ThresholdChoice | None) -> Evaluation:
        """Return the evaluation with a choice of thresholds, which decides the detections of PDQ."""
        convention = self.convention.replace(label_threshold=None if choice is None else "auto")
        return dataclasses.replace(self, convention=convention, threshold_choice=choice).rematch()

    def keeping(self, kept: npt.NDArray[np.bool_]) -> Evaluation:
        """Return the evaluation of some of its detections; matching is repeated, without pixels.

        Parameters
        ----------
        kept : (N,) bool
            Detections to keep.

        Returns
        -------
        Evaluation
            The evaluation of the kept detections.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"])
        >>> len(result.keeping(result.detections.scores > 0.5).detections) < len(result.detections)
        True
        """
        numbers = np.where(kept, np.cumsum(kept) - 1, -1)
        part = dataclasses.replace(
            self,
            detections=self.detections.take(np.flatnonzero(kept)),
            pairs=renumber_pairs(self.pairs, numbers),
            overlaps=renumber_pairs(self.overlaps, numbers),
            part=None,
        )
        return part.rematch() if part.has_pairs else part

    def rematch(self) -> Evaluation:
        """Return the evaluation with matches, outcomes and qualities computed again from the pairs.

        Returns
        -------
        Evaluation
            The evaluation with new outcomes.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"])
        >>> result.rematch().pdq == result.pdq
        True
        """
        pairs, table = self.pairs, self.detections
        if self.threshold_choice is None:
            objects, detections = judge(self.objects, table, pairs, self.convention)
        else:
            kept = self.threshold_choice.keeps(table.confidences, table.image_rows)
            pairs = pairs.take(np.flatnonzero(kept[pairs.detections]))
            objects, detections = judge(self.objects, table, pairs, self.convention)
            detections = detections.replace(verdicts=np.where(kept, detections.verdicts, Verdict.IGNORED))
        return dataclasses.replace(self, objects=objects, detections=detections)

    # --- analyses, imported lazily because they are in higher layers ---

    @property
    def plot(self) -> Plots:
        """Return the plots of this evaluation, such as ``result.plot.thresholds()``; see `probox.plots.Plots`."""
        from probox.plots import Plots

        return Plots(self)

    def diagnose(
        self,
        *,
        thresholds_for: Sequence[str] = ("pdq",),
        replicates: int = 1000,
        seed: int = 0,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Diagnosis:
        """Explain the score, check the covariances and suggest fixes; see `probox.diagnose`.

        Parameters
        ----------
        thresholds_for, replicates, seed, threads, progress
            As for `probox.diagnose`.

        Returns
        -------
        Diagnosis
            Summary, tables and notes.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> diagnosis = evaluate(demo.truth, demo.detectors["probabilistic"]).diagnose(replicates=100)
        >>> round(diagnosis.budget.pdq, 4)
        0.5757
        """
        from probox.analysis.diagnosis import diagnose

        return diagnose(
            self,
            thresholds_for=thresholds_for,
            replicates=replicates,
            seed=seed,
            threads=threads,
            progress=progress,
        )

    def confusion(self) -> Confusion:
        """Return the confusion matrix of PDQ's matches, background included.

        Returns
        -------
        Confusion
            The matrix, also as a table.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"])
        >>> result.confusion().tp == result.tp
        True
        """
        from probox.analysis.loss_breakdown import confusion

        return confusion(self)

    def best_threshold(self, measure: str = "pdq") -> BestThreshold:
        """Return the best label threshold of a metric, chosen on these images; see `probox.best_threshold`.

        Parameters
        ----------
        measure : str
            Name of the metric.

        Returns
        -------
        BestThreshold
            The threshold, and all metrics with and without it.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> best = evaluate(demo.truth, demo.detectors["probabilistic"]).best_threshold()
        >>> best.value >= best.now
        True
        """
        from probox.analysis.thresholds import best_threshold

        return best_threshold(self, measure)

    # --- warnings and notes ---

    @cached_property
    def warnings(self) -> tuple[InputWarning, ...]:
        """Return problems of the input that lower the metrics or make them meaningless, with the likely cause."""
        read = (note for note in self.input_notes if isinstance(note, InputWarning))
        if self.kept is not None:
            return (*self.kept.find_warnings(self.convention, self.measures), *read)
        from probox.evaluation.input_checks import check_evaluation

        return (*check_evaluation(self), *read)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return notes on excluded or replaced data, on what metrics exclude, and on too small samples."""
        read = [note for note in self.input_notes if not isinstance(note, InputWarning)]
        if self.kept is not None:
            return tuple(read)
        chosen = [] if self.threshold_choice is None else [Note("text", text=str(self.threshold_choice))]
        measured = [measure.notes(self) for measure in registry.measures_called(self.measures) if measure.notes]
        return (*read, *chosen, *dict.fromkeys(note for notes in measured for note in as_notes(notes)))

    @property
    def comparability(self) -> tuple[Note, ...]:
        """Return what differs from evaluations with published values of COCO and PDQ, as notes; empty if nothing does.

        Each has the code ``not-standard``, the field of the convention (or ``images``) and the difference in words.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"], iou_thresholds=[0.5], measures="map")
        >>> [str(note) for note in result.comparability]
        ['IoU thresholds 0.50 instead of 0.50:0.95']
        """
        words = self.convention.deviations(self.dataset.rules)
        if self.scored_against == "boxes":
            words["box_truth"] = "box truth instead of masks"
        without_pdq, only_pdq = "pdq" not in self.measures, self.measures == ("pdq",)
        others = {*BOX_FIELDS, "label_threshold"} | ({"box_truth"} if self.has_overlaps else set())
        for name in list(words):
            if (without_pdq and name not in others) or (only_pdq and name in BOX_FIELDS):
                del words[name]
        for note in self.input_notes:
            if note.code == "restricted":
                words["images"] = f"images: {note.count:,} of the ground truth's {dict(note.fields)['total']:,}"
        if self.part is not None:
            words["part"] = f"images: {self.part}"
        return tuple(Note("not-standard", field=name, words=text) for name, text in words.items())

    # --- merging and parts ---

    def __add__(self, other: Evaluation) -> Evaluation:
        if not isinstance(other, Evaluation):
            return NotImplemented
        from probox.evaluation.merge import merge

        return merge([self, other], complete=False)

    def select_images(self, images: npt.ArrayLike) -> Evaluation:
        """Return the evaluation of some images.

        Equals an evaluation with ``truth.select_images(images)``, but repeats only the matching, without pixels.

        Parameters
        ----------
        images : sequence of int
            Image ids.

        Returns
        -------
        Evaluation
            The evaluation of these images.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"])
        >>> result.select_images(demo.truth.image_ids[:3]).counts["images"]
        3
        """
        rows = self.dataset.chosen_rows(images)
        there = np.flatnonzero(np.isin(self.objects.image_rows, rows))
        found = np.flatnonzero(np.isin(self.detections.image_rows, rows))
        new_object, new_detection = (np.full(len(table), -1) for table in (self.objects, self.detections))
        new_object[there], new_detection[found] = np.arange(len(there)), np.arange(len(found))
        notes = notes_of_images(self.input_notes, len(rows), len(self.dataset))
        part = dataclasses.replace(
            self,
            dataset=self.dataset.take(rows),
            objects=_renumber(self.objects.take(there), rows),
            detections=_renumber(self.detections.take(found), rows),
            pairs=renumber_pairs(self.pairs, new_detection, new_object),
            overlaps=renumber_pairs(self.overlaps, new_detection, new_object),
            masks=self.masks.take(there),
            part=None,
            threshold_choice=None if self.threshold_choice is None else self.threshold_choice.take(rows),
            input_notes=notes,
        )
        empty = count_empty_masks(part)
        if empty and len(rows) < len(self.dataset):
            part = dataclasses.replace(part, input_notes=(*notes, unscored_objects(empty, self.convention)))
        return part.rematch() if part.has_pairs else part

    def without_labels(self) -> Evaluation:
        """Return the evaluation without the probabilities of all classes; computed metrics do not change.

        Returns
        -------
        Evaluation
            The evaluation without ``detections.label_probs``.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"]).without_labels()
        >>> result.detections.label_probs is None
        True
        """
        return dataclasses.replace(self, detections=self.detections.replace(label_probs=None))

    def save(self, folder: str | Path) -> None:
        """Write the result to a folder; `probox.load` reads it back, bit-identical.

        Parameters
        ----------
        folder : str or path
            Folder to write to.

        Examples
        --------
        >>> result.save("results/ssd")  # doctest: +SKIP
        """
        from probox.evaluation.storage import save_results

        expect_path(folder, "folder", "name the folder to write to")
        save_results({Path(folder): self})

    @classmethod
    def load(cls, folder: str | Path) -> Evaluation:
        """Return the result in a folder; the same as `probox.load`.

        Parameters
        ----------
        folder : str or path
            Folder that `save` wrote.

        Returns
        -------
        Evaluation
            The result.

        Examples
        --------
        >>> result = Evaluation.load("results/ssd")  # doctest: +SKIP
        """
        from probox.evaluation.storage import load

        return load(folder)

    def to_bytes(self) -> bytes:
        """Return the result as bytes with a checksum, for example for queues and `torch.distributed`.

        Returns
        -------
        bytes
            Input of `probox.from_bytes`.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> result = evaluate(demo.truth, demo.detectors["probabilistic"])
        >>> Evaluation.from_bytes(result.to_bytes()).pdq == result.pdq
        True
        """
        from probox.evaluation.storage import to_bytes

        return to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Evaluation:
        """Return the result in bytes from `to_bytes`, bit-identical; the same as `probox.from_bytes`.

        Parameters
        ----------
        data : bytes
            Output of `to_bytes`.

        Returns
        -------
        Evaluation
            The result.

        Examples
        --------
        >>> result = Evaluation.from_bytes(data)  # doctest: +SKIP
        """
        from probox.evaluation.storage import from_bytes

        return from_bytes(data)

    def expect_tables(self, file: str | None = None) -> None:
        """Raise if the tables were not kept.

        Parameters
        ----------
        file : str, optional
            Name of the result in the message.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> from probox import evaluate
        >>> demo = make_demo()
        >>> evaluate(demo.truth, demo.detectors["probabilistic"]).expect_tables()
        """
        if self.kept is not None:
            raise InputError(
                f"contains only the {self.keep} of an evaluation, not its tables",
                file=file,
                remedy="evaluate again with {option:keep=all}",
            )

    # --- text ---

    def __repr__(self) -> str:
        kept = "" if self.kept is None else f", {self.keep}"
        return f"Evaluation(PDQ {self.pdq:.4f}, {self.counts_in_words}, {self.convention.name}{kept})"

    def _repr_html_(self) -> str:
        from probox.evaluation.text import evaluation_html

        return evaluation_html(self)

    def __str__(self) -> str:
        from probox.evaluation.text import comparability_words, summary_text

        text = summary_text([("", self.summary())], self.convention, against=self.scored_against)
        text += "" if self.part is None else f"; {self.part}"
        standard = comparability_words(self.comparability)
        return "\n".join(
            [text, *filter(None, [standard]), *(note.with_label() for note in (*self.warnings, *self.notes))]
        )


def unscored_objects(count: int, convention: Convention) -> Note:
    """Return the note on objects without pixels in the image, which PDQ ignores."""
    return Note("objects-outside" if convention.box_truth else "empty-masks", count)


def count_empty_masks(evaluation: Evaluation) -> int:
    """Return the number of objects without pixels; crowd regions are not objects."""
    return int((~evaluation.objects.crowd & (evaluation.masks.pixels == 0)).sum())


def _renumber(table: SomeTable, rows: npt.NDArray[np.int64]) -> SomeTable:
    """Return a table whose image rows are indices of `rows`."""
    return table.replace(image_rows=np.searchsorted(rows, table.image_rows))

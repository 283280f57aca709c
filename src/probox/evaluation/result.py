"""The result of an evaluation, and every number that follows from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
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
from probox.evaluation.kept import Kept, Total, find_curve
from probox.evaluation.parts import Keep, Part
from probox.evaluation.verdicts import ThresholdChoice, judge
from probox.measures import registry
from probox.measures.boxes.matching import SIZES, BoxMatches, match_columns
from probox.measures.boxes.mean_ap import AveragePrecisionResult
from probox.measures.boxes.optimal_lrp import LRPResult
from probox.measures.matched import MatchedPairs
from probox.measures.measure import Groups, Measure
from probox.measures.pdq.pdq_measure import PDQ, by_class, by_size, sums_per_image
from probox.notes import InputWarning, Note, as_notes, notes_at_threshold, notes_of_images
from probox.support.formatting import with_count
from probox.tables.dataset import Dataset
from probox.tables.flat import named_once
from probox.tables.groundtruth import Masks
from probox.tables.results import DetectionTable, ObjectTable, PairTable, Verdict
from probox.tables.table import expect_path

if TYPE_CHECKING:
    from probox.analysis.diagnosis import Diagnosis
    from probox.analysis.loss_breakdown import Confusion
    from probox.analysis.resampling import Intervals
    from probox.analysis.thresholds import BestThreshold
    from probox.plots import Plots

SomeTable = TypeVar("SomeTable", ObjectTable, DetectionTable)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """The result of `probox.evaluate`, which `probox.load` brings back: numbers, and the tables that they follow from.

    `objects`, `detections` and `pairs` are tables with one row each, and point at the images of `dataset`; everything
    else is derived from them. Two evaluations of different images add up: ``a + b``. With ``keep="matches"`` or
    ``"summary"`` there are no tables: numbers are bit-identical, and what needs tables raises `InputError`.

    Parameters
    ----------
    convention : Convention
        What produced the numbers.
    dataset : Dataset
        The truth's images and classes.
    objects : ObjectTable
        What became of each object.
    detections : DetectionTable
        What became of each detection.
    pairs : PairTable
        The qualities of all pairs that could be matched.
    masks : Masks
        The objects' pixels as they were scored.
    measures : tuple of str
        What `summary` holds: names of the registry's measures, in its order.
    inputs : tuple of str
        The files that were read, truth first.
    input_notes : tuple of Note
        What reading and evaluating left out or replaced; `notes` and `warnings` have more.
    version : str
        The probox that made it.
    part : Part, optional
        Of what it is a part; None where it is a whole.
    threshold_choice : ThresholdChoice, optional
        The label thresholds that ``at_threshold("auto")`` chose, which PDQ alone goes by; detections that are not above
        that of their image are ignored.
    kept : Kept, optional
        What stands for the tables where they were not kept.

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
        # Tables of people know images and classes by name: those of this evaluation, however it was made.
        for name in ("objects", "detections"):
            table = getattr(self, name)
            if table.dataset is not self.dataset:
                object.__setattr__(self, name, table.replace(dataset=self.dataset))

    @property
    def keep(self) -> Keep:
        """Return how much of the evaluation is kept: ``"all"``, ``"matches"`` or ``"summary"``."""
        return "all" if self.kept is None else self.kept.keep

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the ground truth's classes."""
        return self.dataset.classes

    @property
    def has_pairs(self) -> bool:
        """Return whether PDQ matching was computed."""
        return registry.need_pairs(self.measures)

    # --- numbers ---

    def summary(self) -> dict[str, float]:
        """Return the numbers of the measures that were asked for, by the keys of their columns.

        They are fractions, not per cent, and errors as they are: ``PDQ`` 0.5757, ``moLRP`` 0.4115, which tables show as
        57.57 and, under ``1-moLRP``, 58.85. Undefined numbers are NaN.
        """
        summary: dict[str, float] = {}
        for measure in registry.measures_called(self.measures):
            summary.update(self.summary_of(measure))
        return summary

    def summary_of(self, measure: Measure) -> dict[str, float]:
        """Return the numbers of one measure of the registry, also of one that was not asked for."""
        if self.kept is not None and measure is PDQ:
            return self.kept.overall.summary(self.convention)
        return measure.summary(self)

    @property
    def pdq(self) -> float:
        """Return PDQ: the sum of the matches' pPDQ over TP + FP + FN; NaN if there is nothing to score."""
        return self.summary_of(PDQ)["PDQ"]

    @property
    def tp(self) -> int:
        """Return how many detections are matched with an object."""
        return int(self.summary_of(PDQ)["TP"])

    @property
    def fp(self) -> int:
        """Return how many detections are matched with none."""
        return int(self.summary_of(PDQ)["FP"])

    @property
    def fn(self) -> int:
        """Return how many objects are matched with no detection."""
        return int(self.summary_of(PDQ)["FN"])

    @property
    def counts(self) -> dict[str, int]:
        """Return how many images, objects and detections there are, whatever became of them."""
        if self.kept is None:
            counts = {"objects": int(self.objects.countable.sum()), "detections": len(self.detections)}
        else:
            counted = self.kept.overall.count_by_name()
            counts = {name: counted[name] for name in COUNTS}
        return {"images": len(self.dataset), **counts}

    @property
    def counts_in_words(self) -> str:
        """Return how many images, objects and detections there are, as people read it."""
        nouns = {"images": "image", "objects": "object", "detections": "detection"}
        return ", ".join(with_count(n, nouns[what]) for what, n in self.counts.items())

    def coco(self) -> dict[str, float]:
        """Return COCO's twelve numbers in the order of pycocotools: AP and AR overall, at overlaps, limits and sizes.

        They are fractions: ``mAP``, ``AP50``, ``AP75``, ``AP_small``, ``AP_medium``, ``AP_large``, ``AR_1``, ``AR_10``,
        ``AR_100``, ``AR_small``, ``AR_medium`` and ``AR_large``. Undefined numbers are NaN, where pycocotools has -1.
        """
        return self.average_precision.summary()

    def intervals(
        self,
        measures: str | Collection[str] | None = None,
        *,
        replicates: int = 1000,
        seed: int = 0,
        level: float = 0.95,
    ) -> Intervals:
        """Return a confidence interval of each number by the bootstrap over images.

        A replicate draws as many images as there are, with replacement, and is measured as if it were the data set;
        nothing is matched again, and the number is exactly what evaluating those images would give.
        ``docs/comparing.md`` says how intervals follow from the replicates.

        Parameters
        ----------
        measures : collection of str, or str, optional
            Names, also in one text between commas, or ``"all"``. Default: those that the evaluation holds.
        replicates : int
            How often images are drawn.
        seed : int
            The same seed gives the same intervals, for any number of threads.
        level : float
            Confidence level, between 0 and 1.

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
        """Return PDQ, TP, FP and FN above the label thresholds 0, 0.01 .. 0.99; NaN where detections are gone."""
        if not self.has_pairs:
            raise InputError("PDQ was not measured", remedy="evaluate with PDQ among the measures")
        curve = find_curve(self) if self.kept is None else self.kept.curve
        return curve.columns(self.convention)

    @cached_property
    def box_matches(self) -> BoxMatches:
        """Return who matches whom by the overlap of boxes, as COCO matches: what mAP and LRP follow from."""
        if self.kept is not None:
            return self.kept.box_columns.box_matches(self.classes)
        return match_columns(self.dataset, self.detections, self.objects)

    @cached_property
    def average_precision(self) -> AveragePrecisionResult:
        """Return COCO's average precision and recall of the same detections."""
        if self.kept is not None:
            return self.kept.box_columns.average_precision(self.classes)
        return AveragePrecisionResult.from_matches(self.box_matches)

    @cached_property
    def lrp(self) -> LRPResult:
        """Return localisation recall precision of the same detections, on the paper's grid of thresholds."""
        if self.kept is not None:
            return self.kept.box_columns.lrp(self.classes)
        return LRPResult.from_matches(self.box_matches)

    @cached_property
    def matched_pairs(self) -> MatchedPairs:
        """Return the pairs by which scoring rules judge covariances and labels: COCO's, at an overlap of 0.5."""
        return MatchedPairs.of(self)

    @property
    def object_images(self) -> npt.NDArray[np.int64]:
        """Return the row of each object's image."""
        return self.objects.image_rows if self.kept is None else self.kept.box_columns.object_images()

    @property
    def scored_against(self) -> str | None:
        """Return what PDQ compares detections with: ``"masks"``, or ``"boxes"`` if every mask fills its box.

        None if PDQ was not measured or there are no objects.
        """
        if self.kept is not None:
            return self.kept.scored_against
        if not self.has_pairs or not len(self.masks):
            return None
        return "masks" if len(self.masks.runs) else "boxes"

    def known_of_objects(self) -> tuple[npt.NDArray[Any], dict[str, npt.NDArray[Any]]]:
        """Return how many objects each image has, and columns with what is known of them, by image."""
        if self.kept is not None:
            return self.kept.known_of_objects()
        counts = np.bincount(self.objects.image_rows, minlength=len(self.dataset))
        names = ("labels", "boxes", "extents", "areas", "crowd", "pixels", "mask_boxes", "ignored")
        return counts, {name: getattr(self.objects, name) for name in names}

    @cached_property
    def image_sums(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return what PDQ adds up, image by image."""
        return sums_per_image(self) if self.kept is None else self.kept.image_sums(self.convention)

    def per_class(self) -> GroupTable:
        """Return the summary of each class; a false positive belongs to the class that the detector names.

        It is a dictionary by class, shows itself as a table, and has `to_frame()` and `to_arrow()`. ``objects`` and
        ``detections`` count all of the class: a detection is of its object's class or, without one, of the class that
        it names. ``mAP`` is the class's average precision over COCO's ten overlaps, ``moLRP`` its optimal LRP. It
        holds the measures that are defined for a class; of standard ones that were not asked for, NaN and counts of 0.
        """
        if len(set(self.classes)) < len(self.classes):  # each has a row of its own: "cup", "cup (2)"
            return dataclasses.replace(self, dataset=self.dataset.replace(classes=named_once(self.classes))).per_class()
        totals = () if self.kept is None else self.kept.classes
        return GroupTable("class", self._groups("per_class", self.classes, totals), asked_columns(self.measures))

    def per_size(self) -> GroupTable:
        """Return the summary of small, medium and large objects; a false positive counts by its own box's area.

        The sizes are COCO's, both ends included: an object of exactly 32 x 32 pixels is small and medium. A table as
        that of `per_class`; ``mAP`` is COCO's AP_small, AP_medium and AP_large, ``moLRP`` the mean over classes of the
        optimal LRP among objects of the size. It holds the measures that are defined for a size; of standard ones that
        were not asked for, NaN and counts of 0.
        """
        totals = () if self.kept is None else self.kept.sizes
        return GroupTable("size", self._groups("per_size", SIZES[1:], totals), asked_columns(self.measures))

    def _groups(self, grouped: str, names: Sequence[str], totals: Sequence[Total]) -> Groups:
        """Return the summary of each class or size, from the tables or, without them, from totals."""
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
        """Return the numbers of each image alone: id, counts, and what `summary` would hold if it were the only image.

        ``per_image()[7]["PDQ"]`` is the number of image 7, ``per_image().columns["PDQ"]`` has those of all images. It
        shows itself as a table, and has `to_frame()` and `to_arrow()`, which add file names. ``objects`` and
        ``detections`` count all of an image, whatever became of them. An image without true positives has no averages
        of qualities (NaN), one without anything to score no PDQ. The qualities' sums, which add up over images, are
        under ``sum_pPDQ``, ``sum_spatial`` and so on.

        ``mAP`` and ``moLRP`` are those of ``select_images([image_id]).summary()``: the means over the classes that have
        objects in the image, NaN if none has, also if there are detections. The mAP of all images is not their mean: it
        ranks the detections of a class over all images, and moLRP chooses one threshold for a class in all of them.

        It holds the measures that are defined for an image; of standard ones that were not asked for, NaN and counts
        of 0.

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
        """Return the evaluation of the detections whose highest label probability is greater than `threshold`.

        The same as evaluating anew with ``label_threshold=threshold``, without touching pixels. Detections that this
        evaluation left out cannot come back, so `threshold` must not be below its own.

        With ``"auto"``, PDQ has a threshold that is chosen by cross-fitting: images are split into five folds, and
        the detections of each are those above the threshold at which PDQ is best on the images of the others (Wenkel et
        al., Sensors 2021, 21, 4350, choose on the images they report on). `threshold_choice` has the thresholds, and
        the one to use for new images. mAP, moLRP and other metrics are of all detections.
        """
        if self.threshold_choice is not None:
            return self if threshold == "auto" else self.of_all_detections().at_threshold(threshold)
        own = self.convention.fixed_threshold
        if threshold == "auto":
            if own is not None:
                raise InputError(
                    f"expected an evaluation of all detections, but this one left out those that are not above {own:g}",
                    remedy="evaluate with {option:label_threshold=auto}, or without one",
                )
            from probox.analysis.thresholds import cross_fit_threshold

            return self._with_choice(cross_fit_threshold(self))
        if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number):
            raise InputError(f'expected threshold to be a number between 0 and 1 or "auto", got {threshold!r:.40}')
        threshold = float(threshold)
        if own is not None and threshold < own:
            raise InputError(
                f"expected threshold to be at least {own:g}, since this evaluation left out all detections that are "
                f"not above {own:g}, but got {threshold:g}",
                remedy="evaluate with this label_threshold, or without one",
            )
        kept = self.detections.confidences > np.float32(threshold)
        return dataclasses.replace(
            self.keeping(kept),
            convention=self.convention.replace(label_threshold=threshold),
            part=self.part,  # all parts can be had at this threshold
            input_notes=notes_at_threshold(self.input_notes, int((~kept).sum()), threshold),
        )

    def of_all_detections(self) -> Evaluation:
        """Return the evaluation before label thresholds were chosen: itself, unless it is at threshold ``"auto"``."""
        return self if self.threshold_choice is None else self._with_choice(None)

    def expect_one_threshold(self, call: str) -> None:
        """Raise if each image has a label threshold of its own, which `call` cannot do with."""
        if self.threshold_choice is not None:
            number = self.threshold_choice.on_all
            raise InputError(
                f'{call} expects one label threshold for all images, but this evaluation has "auto"',
                remedy="evaluate without it"
                if number is None
                else f"evaluate with {{option:label_threshold={number:.4g}}}",
            )

    def _with_choice(self, choice: ThresholdChoice | None) -> Evaluation:
        """Return the evaluation of all detections, of which PDQ takes those that a choice of thresholds keeps."""
        convention = self.convention.replace(label_threshold=None if choice is None else "auto")
        return dataclasses.replace(self, convention=convention, threshold_choice=choice).rematch()

    def keeping(self, kept: npt.NDArray[np.bool_]) -> Evaluation:
        """Return the evaluation of some of its detections, matched anew without touching pixels."""
        renumbered = np.cumsum(kept) - 1
        pairs = self.pairs.take(np.flatnonzero(kept[self.pairs.detections]))
        part = dataclasses.replace(
            self,
            detections=self.detections.take(np.flatnonzero(kept)),
            pairs=pairs.replace(detections=renumbered[pairs.detections]),
            part=None,
        )
        return part.rematch() if part.has_pairs else part

    def rematch(self) -> Evaluation:
        """Return the evaluation with matches, verdicts and qualities chosen anew from the pairs."""
        pairs, table = self.pairs, self.detections
        if self.threshold_choice is None:
            objects, detections = judge(self.objects, table, pairs, self.convention)
        else:
            kept = self.threshold_choice.keeps(table.confidences, table.image_rows)
            pairs = pairs.take(np.flatnonzero(kept[pairs.detections]))
            objects, detections = judge(self.objects, table, pairs, self.convention)
            detections = detections.replace(verdicts=np.where(kept, detections.verdicts, Verdict.IGNORED))
        return dataclasses.replace(self, objects=objects, detections=detections)

    # --- analyses: imported when they are called, since they stand in higher layers ---

    @property
    def plot(self) -> Plots:
        """Return the plots of this evaluation: ``result.plot.thresholds()`` and others, see `probox.plots.Plots`."""
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
        """Explain the numbers, check the covariances and name remedies: see `probox.diagnose`."""
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
        """Count which classes are taken for which, background included."""
        from probox.analysis.loss_breakdown import confusion

        return confusion(self)

    def best_threshold(self, measure: str = "pdq") -> BestThreshold:
        """Return the label threshold at which a metric is best, chosen on these images: see `probox.best_threshold`."""
        from probox.analysis.thresholds import best_threshold

        return best_threshold(self, measure)

    # --- warnings and notes ---

    @cached_property
    def warnings(self) -> tuple[InputWarning, ...]:
        """Return what makes the numbers low or meaningless, with the likely cause; nothing for sound input."""
        read = (note for note in self.input_notes if isinstance(note, InputWarning))
        if self.kept is not None:
            return (*self.kept.find_warnings(self.convention, self.measures), *read)
        from probox.evaluation.input_checks import check_evaluation

        return (*check_evaluation(self), *read)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return what was left out or replaced, what numbers leave out, and what is too little to tell."""
        read = [note for note in self.input_notes if not isinstance(note, InputWarning)]
        if self.kept is not None:
            return tuple(read)
        chosen = [] if self.threshold_choice is None else [Note("text", text=str(self.threshold_choice))]
        measured = [measure.notes(self) for measure in registry.measures_called(self.measures) if measure.notes]
        return (*read, *chosen, *dict.fromkeys(note for notes in measured for note in as_notes(notes)))

    # --- together ---

    def __add__(self, other: Evaluation) -> Evaluation:
        if not isinstance(other, Evaluation):
            return NotImplemented
        from probox.evaluation.merge import merge

        return merge([self, other], complete=False)

    def select_images(self, images: npt.ArrayLike) -> Evaluation:
        """Return the evaluation of these images alone, given by their ids (a list or an array).

        The same as evaluating anew with ``truth.select_images(images)``, without touching pixels.
        """
        rows = self.dataset.chosen_rows(images)
        there = np.flatnonzero(np.isin(self.objects.image_rows, rows))
        found = np.flatnonzero(np.isin(self.detections.image_rows, rows))
        new_object, new_detection = (np.full(len(table), -1) for table in (self.objects, self.detections))
        new_object[there], new_detection[found] = np.arange(len(there)), np.arange(len(found))
        pairs = self.pairs.take(np.flatnonzero(new_detection[self.pairs.detections] >= 0))
        notes = notes_of_images(self.input_notes, len(rows), len(self.dataset))
        part = dataclasses.replace(
            self,
            dataset=self.dataset.take(rows),
            objects=_renumber(self.objects.take(there), rows),
            detections=_renumber(self.detections.take(found), rows),
            pairs=pairs.replace(detections=new_detection[pairs.detections], objects=new_object[pairs.objects]),
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
        """Return the evaluation without the probabilities of all classes; numbers that were measured stay."""
        return dataclasses.replace(self, detections=self.detections.replace(label_probs=None))

    def save(self, folder: str | Path) -> None:
        """Write everything into a folder; `probox.load` brings it back, bit-identical."""
        from probox.evaluation.storage import save_results

        expect_path(folder, "folder", "name the folder to write to")
        save_results({Path(folder): self})

    @classmethod
    def load(cls, folder: str | Path) -> Evaluation:
        """Return what `save` wrote; the same as `probox.load`."""
        from probox.evaluation.storage import load

        return load(folder)

    def to_bytes(self) -> bytes:
        """Return everything as bytes, with a checksum: for queues and collectives, as `torch.distributed` has them."""
        from probox.evaluation.storage import to_bytes

        return to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Evaluation:
        """Return what `to_bytes` returned, bit-identical; the same as `probox.from_bytes`."""
        from probox.evaluation.storage import from_bytes

        return from_bytes(data)

    def expect_tables(self, file: str | None = None) -> None:
        """Raise if the tables were not kept; `file` is where the result was stored."""
        if self.kept is not None:
            raise InputError(
                f"holds the {self.keep} of an evaluation, not its tables",
                file=file,
                remedy="evaluate anew with {option:keep=all}",
            )

    # --- words ---

    def __repr__(self) -> str:
        kept = "" if self.kept is None else f", {self.keep}"
        return f"Evaluation(PDQ {self.pdq:.4f}, {self.counts_in_words}, {self.convention.name}{kept})"

    def _repr_html_(self) -> str:
        from probox.evaluation.text import evaluation_html

        return evaluation_html(self)

    def __str__(self) -> str:
        from probox.evaluation.text import summary_text

        text = summary_text([("", self.summary())], self.convention, against=self.scored_against)
        text += "" if self.part is None else f"; {self.part}"
        return "\n".join([text, *(note.with_label() for note in (*self.warnings, *self.notes))])


def unscored_objects(count: int, convention: Convention) -> Note:
    """Return the note on objects that PDQ leaves out because there is nothing of them in the image."""
    return Note("objects-outside" if convention.box_truth else "empty-masks", count)


def count_empty_masks(evaluation: Evaluation) -> int:
    """Return how many objects have no pixel; regions to ignore are no objects."""
    return int((~evaluation.objects.crowd & (evaluation.masks.pixels == 0)).sum())


def _renumber(table: SomeTable, rows: npt.NDArray[np.int64]) -> SomeTable:
    """Return a table whose image rows count among some rows."""
    return table.replace(image_rows=np.searchsorted(rows, table.image_rows))

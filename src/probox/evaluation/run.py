"""From tables to an `Evaluation`: all images in one call, or a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.inputs import Images, read_inputs
from probox.evaluation.joining import join_evaluations, without_labels
from probox.evaluation.notes import empty_mask_note, threshold_note, unknown_image_note
from probox.evaluation.result import Evaluation
from probox.evaluation.verdicts import matched_columns
from probox.files.reading import Paths
from probox.measures.pdq.kernel import plain_rows, score_pairs
from probox.measures.registry import measure_names, named_measures, need_pairs
from probox.options import Settings, resolve_settings, takes_settings
from probox.support.parallel import thread_count, threads_at_most
from probox.support.words import some_names
from probox.tables.arguments import check_classes, check_tables, expect
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import align_labels, background_classes, repeated_classes, unknown_classes
from probox.tables.masks import Masks
from probox.tables.results import DetectionTable, ObjectTable, PairTable, unmatched
from probox.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Evaluator", "evaluate"]

Progress = Callable[[int, int], None]


@takes_settings
def evaluate(
    truth: GroundTruth | Paths,
    found: Detections | Paths,
    *,
    convention: str | Convention | None = None,
    measures: str | Sequence[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    images: Images | None = None,
    repair: bool = False,
    **settings: Unpack[Settings],
) -> Evaluation:
    """Measure detections against ground truth: PDQ, mAP and moLRP, or the measures that are asked for.

    Keywords are called what the options of ``probox evaluate`` are called; those that are None leave the convention as
    it is.

    Parameters
    ----------
    truth : GroundTruth or path
        What is there: a table, or the file that holds it, as for `read_truth`.
    found : Detections or path
        What the detector says, or its file, as for `read_detections`; detections of images that the truth does not have
        are left out. A Parquet file larger than memory is for `evaluate_parquet`.
    convention : str or Convention, optional
        ``"reference"`` (default), ``"paper"``, ``"challenge"``, or your own; the keywords below change it.
    measures : sequence of str, or str, optional
        What the summary holds, by the names of `probox.measures.registry.MEASURES`, also in one text between commas, or
        ``"all"``; default: ``"pdq,map,lrp"``. Without ``"pdq"`` no pixel is looked at, and nobody is matched with
        anybody.
    threads : int, optional
        How many threads share the work; default: as many as there are processors. No number depends on it.
    progress : callable, optional
        Called with the numbers of images done and in all.
    images : sequence of int, or str, optional
        These images alone: their ids, or a file of them, or ids in one text between commas.
    repair : bool
        In a file of detections, replace covariances that are not symmetric or not positive semi-definite by the nearest
        that are. Tables hold none.
    preset : {"reference", "paper", "challenge"}, optional
        The same as `convention`, in the word of the command line.
    assignment : {"optimal", "greedy"}, optional
        How detections are matched with objects.
    background : {"box", "mask"}, optional
        The background of an object is everything outside its box, or outside its mask.
    box_truth : bool, optional
        Replace every object's mask by its annotated box.
    fixed_variance : float, optional
        Give every corner this variance (square pixels) on both axes, instead of its own.
    label_threshold : float or "auto", optional
        Keep detections whose highest label probability is greater. ``"auto"``: for PDQ alone, by a threshold that is
        chosen for each image on others, see `Evaluation.at_threshold`.
    label_weight : float, optional
        The weight of the label in pPDQ, 0 to 1.
    clip : {"none", "corners"}, optional
        ``"corners"`` moves box corners that lie outside the image onto its border first.
    object_filter : bool, optional
        Ignore small objects; default: as the truth asks.

    Returns
    -------
    Evaluation
        Numbers (``result.pdq``, ``result.summary()``), the tables behind them, and what is odd (``result.notes``);
        ``print(result)`` shows a row of the paper's Table 1.

    Raises
    ------
    InputError
        What is wrong with a file or an argument, in one line.

    Examples
    --------
    >>> import probox
    >>> truth = probox.GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    >>> found = probox.Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 40, 40]], label_probs=[[0.81]])
    >>> round(probox.evaluate(truth, found).pdq, 6)  # a perfect box: only the label costs
    0.9
    >>> round(probox.evaluate(truth, found, preset="paper", label_weight=1, measures="pdq").pdq, 6)
    0.81
    """
    asked = resolve_settings(evaluate, convention, settings, auto=True)
    chosen = _without_auto(asked)
    wanted = _known_measures(measures)
    with threads_at_most(thread_count(threads)):
        truth, found = read_inputs(truth, found, "evaluate", images=images, repair=repair)
    resolved = chosen.for_rules(truth.dataset.rules)
    kept, image_rows, numbers, notes = _to_score(truth, found, chosen)
    masks = truth.as_box_masks() if chosen.box_truth else truth.masks
    if not masks.pixels.all():
        empty = int((~truth.crowd & (masks.pixels == 0)).sum())  # regions to ignore are nobody's objects
        if empty:
            notes.append(empty_mask_note(empty, box_truth=chosen.box_truth))
    ignored = _ignored_objects(masks, resolved)
    if need_pairs(wanted):
        many = thread_count(threads)
        pairs = score_pairs(truth, masks, kept, resolved, image_rows=image_rows, threads=many, progress=progress)
        of_objects, of_detections = matched_columns(ignored, image_rows, pairs, chosen.assignment)
    else:
        pairs, of_objects, of_detections = PairTable.none(), unmatched(len(truth)), unmatched(len(kept))
    result = Evaluation(
        convention=chosen,
        dataset=truth.dataset,
        objects=_object_table(truth, masks, ignored, of_objects),
        detections=_detection_table(truth, kept, image_rows, numbers, resolved, of_detections),
        pairs=pairs,
        masks=masks,
        measures=wanted,
        inputs=tuple(name for name in (truth.source, found.source) if name),
        plain_notes=(*truth.notes, *found.notes, *notes),
        version=__version__,
    )
    return result if asked is chosen else result.at_threshold("auto")


class Evaluator:
    """Evaluates a few images at a time, in any order, as a training loop or a large file wants it.

    Parameters
    ----------
    classes : sequence of str
        The truth's classes.
    convention, measures, threads
        As for `evaluate`.
    keep_labels : bool
        Keep the probabilities of all classes, 4 bytes per detection and class: what diagnoses and rules about labels
        need.
    **settings
        ``preset``, ``label_threshold`` and so on, as for `evaluate`.

    Examples
    --------
    >>> import probox
    >>> evaluator = probox.Evaluator(["cup"])
    >>> for image_id in (7, 3):
    ...     truth = probox.GroundTruth.from_boxes(["cup"], {image_id: (64, 48)}, [image_id], [[10, 20, 40, 40]], [0])
    ...     found = probox.Detections(
    ...         classes=["cup"], image_ids=[image_id], boxes=[[10, 20, 40, 40]], label_probs=[[1]])
    ...     evaluator.update(truth, found)
    >>> evaluator.result().pdq
    1.0
    """

    @takes_settings
    def __init__(
        self,
        classes: Sequence[str],
        *,
        convention: str | Convention | None = None,
        measures: str | Sequence[str] | None = None,
        threads: int | None = None,
        keep_labels: bool = True,
        **settings: Unpack[Settings],
    ) -> None:
        self.convention = resolve_settings(Evaluator, convention, settings, auto=True)
        self.classes = check_classes(classes)
        self.measures = _known_measures(measures)
        self.threads = thread_count(threads)
        self.keep_labels = keep_labels
        self._parts: list[Evaluation] = []
        self._images: set[int] = set()

    def update(self, truth: GroundTruth, found: Detections, *, progress: Progress | None = None) -> None:
        """Add images, their objects and detections; each image once.

        Parameters
        ----------
        truth : GroundTruth
            Some images with all their objects, of the evaluator's classes.
        found : Detections
            What was found in these images; detections in others are left out and counted.
        progress : callable, optional
            Called with the numbers of images done and in all.
        """
        check_tables(truth, found, "update")
        if truth.classes != self.classes:
            raise InputError(
                "expected truth of the evaluator's classes", remedy="build all tables with the same classes"
            )
        part = evaluate(
            truth,
            found,
            convention=_without_auto(self.convention),
            measures=self.measures,
            threads=self.threads,
            progress=progress,
        )
        self._add(part if self.keep_labels else without_labels(part))

    def merge(self, other: Evaluator) -> None:
        """Add everything that another evaluator has seen, say one of another process."""
        expect(other, Evaluator, "other")
        for part in other._parts:
            self._add(part)

    def result(self) -> Evaluation:
        """Return the evaluation of everything so far: to the bit what one call of `evaluate` would give."""
        if not self._parts:
            nothing = GroundTruth.from_boxes(self.classes, {}, [], np.zeros((0, 4)), [])
            none = Detections(
                classes=self.classes,
                image_ids=np.zeros(0, np.int64),
                boxes=np.zeros((0, 4)),
                label_probs=np.zeros((0, len(self.classes)), np.float32),
            )
            return evaluate(nothing, none, convention=_without_auto(self.convention), measures=self.measures)
        joined = join_evaluations(self._parts)
        return joined.at_threshold("auto") if self.convention.label_threshold == "auto" else joined

    def _add(self, part: Evaluation) -> None:
        mine = _without_auto(self.convention), self.classes, self.measures
        if (part.convention, part.classes, part.measures) != mine:
            raise InputError("evaluators of different conventions, classes or measures do not merge")
        for image_id in part.dataset.image_ids.tolist():
            if image_id in self._images:
                raise InputError("the image was added before", image=image_id, remedy="add each image once")
        self._images.update(part.dataset.image_ids.tolist())
        self._parts.append(part)


def _without_auto(convention: Convention) -> Convention:
    """Return the convention by which all detections are scored, of which a label threshold is chosen later."""
    return convention.replace(label_threshold=None) if convention.label_threshold == "auto" else convention


def _known_measures(measures: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the wanted measures in the registry's order, so that the order of asking makes no other result."""
    wanted = named_measures(measures)
    return tuple(name for name in measure_names() if name in wanted)


def _to_score(
    truth: GroundTruth, found: Detections, convention: Convention
) -> tuple[Detections, npt.NDArray[np.int64], npt.NDArray[np.int64], list[str]]:
    """Return the detections that take part, by image, their image rows and numbers; and what to say of the others."""
    image_rows, numbers, rows, in_order = _core.group_by_image(found.image_ids, truth.image_ids)
    known = len(rows)
    notes = [] if known == len(found) else [unknown_image_note(len(found) - known)]
    if convention.fixed_threshold is not None:
        sure = found.label_probs.max(axis=1, initial=0.0) > np.float32(convention.fixed_threshold)
        rows = rows[sure[rows]]
    notes += label_notes(known - len(rows), found.classes, truth.classes, convention)
    if in_order and len(rows) == len(found):
        return found, image_rows, numbers, notes
    return found.take(rows), image_rows[rows], numbers[rows], notes


def label_notes(
    below: int, found_classes: Sequence[str], truth_classes: Sequence[str], convention: Convention
) -> list[str]:
    """Say how many detections are below the label threshold, and which classes the truth does not know."""
    notes: list[str] = []
    if convention.fixed_threshold is not None and below:
        notes.append(threshold_note(below, convention.fixed_threshold))
    return [*notes, *_class_notes(tuple(found_classes), tuple(truth_classes))]


@lru_cache(maxsize=16)  # the same classes come again and again, and there may be thousands
def _class_notes(found_classes: tuple[str, ...], truth_classes: tuple[str, ...]) -> tuple[str, ...]:
    """Say which of the detector's classes count for nothing."""
    notes: list[str] = []
    unknown = [found_classes[column] for column in unknown_classes(found_classes, truth_classes)]
    if unknown:
        notes.append(
            f"{len(unknown)} classes are unknown to the truth, their probabilities are dropped: {some_names(unknown)}"
        )
    repeated = [found_classes[column] for column in repeated_classes(found_classes, truth_classes)]
    if repeated:
        notes.append(
            f"{len(repeated)} classes are named again by a later column, which counts alone; the probabilities of "
            f"the earlier ones are dropped: {some_names(repeated)}"
        )
    return tuple(notes)


def _ignored_objects(masks: Masks, convention: Convention) -> npt.NDArray[np.bool_]:
    """Return which objects PDQ passes over."""
    if not convention.object_filter:
        # An object without pixels cannot be found, so PDQ ignores it like a small one.
        return np.asarray(masks.pixels == 0)
    extent = masks.boxes[:, 2:] - masks.boxes[:, :2]
    narrow, flat = extent[:, 0] <= convention.min_width, extent[:, 1] <= convention.min_height
    return np.asarray(narrow | flat | (masks.pixels <= convention.min_pixels))


def _object_table(
    truth: GroundTruth, masks: Masks, ignored: npt.NDArray[np.bool_], matched: dict[str, npt.NDArray[Any]]
) -> ObjectTable:
    return ObjectTable(
        dataset=truth.dataset,
        image_rows=truth.image_rows,
        ids=truth.ids,
        labels=truth.labels,
        boxes=truth.boxes,
        extents=truth.extents,
        areas=truth.areas,
        crowd=truth.crowd,
        pixels=masks.pixels,
        mask_boxes=masks.boxes,
        ignored=ignored,
        **matched,
    )


def _detection_table(
    truth: GroundTruth,
    kept: Detections,
    image_rows: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    convention: Convention,
    matched: dict[str, npt.NDArray[Any]],
) -> DetectionTable:
    n = len(kept)
    given = kept.has_heatmap
    covariances = np.zeros((n, 2, 2, 2))
    if convention.fixed_variance is not None:
        covariances[~given] = np.eye(2) * convention.fixed_variance
    elif kept.covariances is not None:
        # Which sums count as 0 is a matter of the convention; the table says what was scored.
        plain = plain_rows(kept.covariances, convention)
        spread = kept.covariances[plain].any()
        covariances = np.where(plain[:, None, None, None], 0.0, kept.covariances) if spread else kept.covariances
    named, scores = kept.named_classes(truth.classes)
    background = background_classes(kept.classes)
    probs = kept.label_probs
    best = probs.max(axis=1, initial=0.0)
    return DetectionTable(
        dataset=truth.dataset,
        image_rows=image_rows,
        numbers=numbers,
        labels=named,
        scores=scores,
        confidences=best,
        costs=probs[:, ~background].max(axis=1, initial=0.0) if background.any() else best,
        boxes=kept.boxes,
        extents=kept.extents,
        covariances=covariances,
        heatmaps=given,
        label_probs=align_labels(probs, kept.classes, truth.classes),
        **matched,
    )

"""`evaluate`: an `Evaluation` from ground truth and detections, tables or files; `Evaluator`: image by image."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.inputs import (
    Images,
    Pieces,
    SharedTruth,
    TablePieces,
    label_notes,
    open_inputs,
    unknown_images,
)
from probox.evaluation.parts import Keep, Part, check_keep, hash_ids, images_of_part, measures_to_keep, parse_part
from probox.evaluation.result import Evaluation, count_empty_masks, unscored_objects
from probox.evaluation.verdicts import matched_columns
from probox.files.reading import Paths
from probox.measures.boxes.mask_overlaps import masks_of_detections, overlaps_of_masks
from probox.measures.boxes.matching import BoxRules, judged_detections
from probox.measures.boxes.mean_ap import average_precision
from probox.measures.measure import counted_notes
from probox.measures.pdq.kernel import plain_rows, score_pairs
from probox.measures.registry import (
    measure_names,
    named_measures,
    need_labels,
    need_masks,
    need_pairs,
    without_masks,
)
from probox.notes import UNJUDGED, Note
from probox.options import Settings, resolve_settings, takes_settings
from probox.support.parallel import thread_count, threads_at_most
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import align_labels, background_classes
from probox.tables.masks import Masks
from probox.tables.results import DetectionTable, ObjectTable, OverlapTable, PairTable, unmatched_columns
from probox.tables.table import check_classes, check_tables, expect
from probox.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Unpack

Progress = Callable[[int, int], None]


@takes_settings
def evaluate(
    truth: SharedTruth | Paths,
    detections: Detections | Paths,
    *,
    part: str | tuple[int, int] | None = None,
    keep: Keep = "all",
    convention: str | Convention | None = None,
    measures: str | Sequence[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    image_ids: Images | None = None,
    repair: bool = False,
    **settings: Unpack[Settings],
) -> Evaluation:
    """Evaluate detections against ground truth: PDQ, mAP and moLRP, or the requested metrics.

    Keywords are named like the options of ``probox evaluate``. A keyword of None does not change the convention.

    Detections in Parquet may be larger than memory: row groups are read one by one, each with its part of the ground
    truth. Only the result grows with the file: about 200 bytes per detection and 56 per pair, or less with `keep`. All
    numbers are bit-identical to those of tables in memory. Probabilities of all classes are kept only if a metric needs
    them, for example with ``measures="all"``.

    Parameters
    ----------
    truth : GroundTruth or path
        Ground truth, or its file, as for `read_truth`.
    detections : Detections or path
        Detections to evaluate, or their file, as for `read_detections`; for Parquet also a folder of shards, or the URL
        of either. Detections in images that the ground truth does not have are excluded and counted in a note.
    part : str or (int, int), optional
        ``"3/16"`` or ``(3, 16)``: the third of sixteen ranges of images, by ascending id. Give all of `truth` and
        `detections`; `probox.merge` merges the parts. Default: all images.
    keep : {"all", "matches", "summary"}
        Size of the result: all tables, about 200 bytes per detection; about 10 bytes per detection, for PDQ, mAP and
        LRP; or sums only, for PDQ.
    convention : str or Convention, optional
        ``"reference"`` (default), ``"paper"``, ``"challenge"``, or your own; the settings below modify it.
    measures : sequence of str, or str, optional
        Metrics, by the names of `probox.measures.registry.MEASURES`, also as one comma-separated text, or ``"all"``.
        Default: ``"pdq,map,lrp"``. Without ``"pdq"``, there is no matching by pixels.
    threads : int, optional
        Number of threads. Default: number of processors. Results do not depend on it.
    progress : callable, optional
        Called with the number of finished images and of all images.
    image_ids : sequence of int, or str, optional
        Images to evaluate: their ids, a file of ids, or a comma-separated text. Parts are parts of these.
    repair : bool
        In a file of detections, replace covariances that are not symmetric or not positive semi-definite with the
        nearest valid ones. Tables never have such covariances.
    preset : {"reference", "paper", "challenge"}, optional
        Same as `convention`, by the name of the command-line option.
    assignment : {"optimal", "greedy"}, optional
        Matching algorithm.
    background : {"box", "mask"}, optional
        Background of an object: everything outside its box, or outside its mask.
    box_truth : bool, optional
        Replace each object's mask with its annotated box.
    fixed_variance : float, optional
        Replace the covariance of each corner with this variance on both axes [square pixels].
    label_threshold : float or "auto", optional
        Keep detections whose highest label probability is above it. ``"auto"``: for PDQ only, a threshold per image
        chosen on other images, see `Evaluation.at_threshold`.
    label_weight : float, optional
        Weight of the label in pPDQ, 0 to 1.
    clip : {"none", "corners"}, optional
        ``"corners"`` first moves box corners outside the image to its border.
    object_filter : bool, optional
        Ignore small objects. Default: as the ground truth's format requires.
    iou_thresholds : sequence of float, optional
        IoU thresholds of mAP and AR, ascending. Default: 0.50, 0.55 .. 0.95.
    max_detections : sequence of int, optional
        Limits of detections per image and class, ascending: matching and AP use the last, AR each. Default: (1, 10,
        100), or for LVIS (300,) per image.
    area_ranges : sequence of (float, float), optional
        Smallest and largest area of small, medium and large objects [square pixels]. Default: COCO's.

    Returns
    -------
    Evaluation
        Metrics (``result.pdq``, ``result.summary()``), tables, warnings and notes (``result.notes``). ``print(result)``
        shows one row of metrics.

    Raises
    ------
    InputError
        A problem in a file or an argument, in one line.

    Examples
    --------
    >>> import probox
    >>> truth = probox.GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    >>> detections = probox.Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 40, 40]], label_probs=[[0.81]])
    >>> round(probox.evaluate(truth, detections).pdq, 6)  # a perfect box; the label has probability 0.81
    0.9
    >>> round(probox.evaluate(truth, detections, preset="paper", label_weight=1, measures="pdq").pdq, 6)
    0.81

    Parts can be evaluated in any order on any number of machines, and merged:

    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> truth, detections = demo.truth, demo.detectors["probabilistic"]
    >>> parts = [probox.evaluate(truth, detections, part=f"{number}/3") for number in (3, 1, 2)]
    >>> probox.merge(parts).summary() == probox.evaluate(truth, detections).summary()
    True
    """
    asked = resolve_settings(evaluate, convention, settings, auto=True)
    chosen = without_auto(asked)
    kept = check_keep(keep)
    number, of = (1, 1) if part is None else parse_part(part)
    known = known_measures(measures)
    wanted = measures_to_keep(known, kept, asked=measures is not None)
    if asked is not chosen and (part is not None or kept != "all"):
        raise InputError(
            f'label_threshold="auto" needs the tables of all images, got {"part" if part is not None else "keep"}',
            remedy='give a number, or call at_threshold("auto") on the merged result',
        )
    with threads_at_most(thread_count(threads)):
        given = open_inputs(truth, detections, image_ids=image_ids, repair=repair)
    if not given.has_pixels:
        many = len(given.detections) if isinstance(given, TablePieces) else 1
        known, wanted = without_masks(known, many), without_masks(wanted, many)
    if isinstance(given, TablePieces) and part is None and kept == "all":
        tables = given.truth, given.detections
        result = evaluate_tables(*tables, chosen, wanted, threads=threads, progress=progress)
        if chosen.fixed_threshold is not None and "map" in wanted and not isinstance(detections, Detections):
            note = Note(
                "unthresholded-map", value=100 * average_precision(*tables, convention=chosen, threads=threads).map
            )
            result = dataclasses.replace(result, input_notes=(*result.input_notes, note))
    else:
        own = images_of_part(given.image_ids, number, of)
        result, scored, empty = _evaluate_pieces(given, own, kept, chosen, wanted, threads, progress)
        unjudged = [note for note in result.input_notes if note.code in UNJUDGED]
        notes = given.notes(scored, empty, chosen, unjudged=unjudged, first=number == 1)
        left_out = [name for name in known if name not in wanted]
        if left_out:  # metrics that the kept columns do not determine
            notes = (*notes, Note("sums-kept", names=" and ".join(left_out)))
        record = None if part is None else Part((number,), of, hash_ids(given.image_ids), given.identity())
        result = dataclasses.replace(result, input_notes=notes, inputs=given.inputs, part=record)
    return result if asked is chosen else result.at_threshold("auto")


def _evaluate_pieces(
    given: Pieces,
    image_ids: npt.NDArray[np.int64],
    keep: Keep,
    convention: Convention,
    measures: tuple[str, ...],
    threads: int | None,
    progress: Progress | None,
) -> tuple[Evaluation, int, int]:
    """Return the evaluation of all pieces, the number of scored detections, and of objects without pixels."""
    from probox.evaluation.kept import drop_tables
    from probox.evaluation.merge import merge_evaluations

    # Label probabilities may be the largest column. They are kept if a metric needs them or they are in memory anyway.
    keep_labels = isinstance(given, TablePieces) or need_labels(measures)
    pieces: list[Evaluation] = []
    done = scored = empty = 0

    def show(done_of_piece: int, _: int) -> None:
        if progress is not None:
            progress(done + done_of_piece, len(image_ids))

    for truth, detections in given.pieces(image_ids, whole=keep == "all"):
        piece = evaluate_tables(truth, detections, convention, measures, threads=threads, progress=progress and show)
        scored += len(piece.detections)
        empty += count_empty_masks(piece)
        if keep != "all":
            piece = drop_tables(piece, keep, find_warnings=not pieces)
        elif not keep_labels:
            piece = piece.without_labels()
        pieces.append(piece)
        done += len(truth.image_ids)
        show(0, 0)
    return merge_evaluations(pieces), scored, empty


def evaluate_tables(
    truth: GroundTruth,
    found: Detections,
    convention: Convention,
    measures: tuple[str, ...],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Return the evaluation of two tables; ``label_threshold="auto"`` must be resolved before."""
    resolved = convention.for_rules(truth.dataset.rules)
    kept, image_rows, numbers, notes = _to_score(truth, found, convention)
    masks = truth.as_box_masks() if convention.box_truth else truth.masks
    if not masks.pixels.all():
        empty = int((~truth.crowd & (masks.pixels == 0)).sum())  # crowd regions are not objects
        if empty:
            notes.append(unscored_objects(empty, convention))
    ignored = _ignored_objects(masks, resolved)
    if need_pairs(measures):
        many = thread_count(threads)
        pairs = score_pairs(truth, masks, kept, resolved, image_rows=image_rows, threads=many, progress=progress)
        of_objects, of_detections = matched_columns(ignored, image_rows, pairs, convention.assignment)
    else:
        pairs, of_objects, of_detections = PairTable.none(), unmatched_columns(len(truth)), unmatched_columns(len(kept))
    overlaps, areas = OverlapTable.none(), None
    if need_masks(measures):
        masked = kept.with_binary_masks()
        own = masks_of_detections(masked, truth.dataset.shapes[image_rows])
        labels, _ = kept.named_classes(truth.classes)
        overlaps = overlaps_of_masks(truth.dataset, image_rows, labels, own, truth, masks, threads=threads)
        areas = kept.extents.prod(axis=1) if masked.areas is None else masked.areas
    return Evaluation(
        convention=convention,
        dataset=truth.dataset,
        objects=_object_table(truth, masks, ignored, of_objects),
        detections=_detection_table(truth, kept, image_rows, numbers, resolved, {**of_detections, "areas": areas}),
        pairs=pairs,
        masks=masks,
        overlaps=overlaps,
        measures=measures,
        inputs=tuple(name for name in (truth.source, found.source) if name),
        input_notes=(*truth.notes, *found.notes, *notes),
        version=__version__,
    )


def without_auto(convention: Convention) -> Convention:
    """Return the convention without an automatic label threshold, which is chosen after scoring all detections."""
    return convention.replace(label_threshold=None) if convention.label_threshold == "auto" else convention


def known_measures(measures: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the requested metrics in the registry's order, so that the order of the request has no effect."""
    wanted = named_measures(measures)
    return tuple(name for name in measure_names() if name in wanted)


def _to_score(
    truth: GroundTruth, found: Detections, convention: Convention
) -> tuple[Detections, npt.NDArray[np.int64], npt.NDArray[np.int64], list[Note]]:
    """Return the detections to score, by image, with image rows and numbers, and notes on the others."""
    image_rows, numbers, rows, in_order = _core.group_by_image(found.image_ids, truth.image_ids)
    known = len(rows)
    notes = [] if known == len(found) else [unknown_images(found.image_ids, truth.dataset)]
    if truth.dataset.partly_annotated:
        rows, excluded = _judged_rows(truth, found, rows, image_rows, convention)
        notes += excluded
        known = len(rows)
    if convention.fixed_threshold is not None:
        above = found.label_probs.max(axis=1, initial=0.0) > np.float32(convention.fixed_threshold)
        rows = rows[above[rows]]
    notes += label_notes(known - len(rows), found.classes, truth.classes, convention)
    if in_order and len(rows) == len(found):
        return found, image_rows, numbers, notes
    return found.take(rows), image_rows[rows], numbers[rows], notes


def _judged_rows(
    truth: GroundTruth,
    found: Detections,
    rows: npt.NDArray[np.int64],
    image_rows: npt.NDArray[np.int64],
    convention: Convention,
) -> tuple[npt.NDArray[np.int64], list[Note]]:
    """Return the rows of detections that can be judged, and notes on the others."""
    labels, scores = found.named_classes(truth.classes)
    most = BoxRules.of(convention, truth.dataset).most
    within, checked = judged_detections(truth, most, image_rows[rows], labels[rows], scores[rows])
    notes = [
        Note("surplus-detections", int((~within).sum()), most=most),
        Note("unchecked-classes", int((within & ~checked).sum())),
    ]
    return rows[within & checked], counted_notes(*notes)


def _ignored_objects(masks: Masks, convention: Convention) -> npt.NDArray[np.bool_]:
    """Return the objects that PDQ ignores."""
    if not convention.object_filter:
        # An object without pixels cannot be detected, so PDQ ignores it like a small one.
        return np.asarray(masks.pixels == 0)
    extent = masks.boxes[:, 2:] - masks.boxes[:, :2]
    narrow, flat = extent[:, 0] <= convention.min_width, extent[:, 1] <= convention.min_height
    return np.asarray(narrow | flat | (masks.pixels <= convention.min_pixels))


def _object_table(
    truth: GroundTruth, masks: Masks, ignored: npt.NDArray[np.bool_], matched: dict[str, npt.NDArray[Any]]
) -> ObjectTable:
    own = {name: getattr(truth, name) for name in ("image_rows", "ids", "labels", "boxes", "extents", "areas", "crowd")}
    columns: dict[str, Any] = own | {"pixels": masks.pixels, "mask_boxes": masks.boxes, "ignored": ignored}
    return ObjectTable(dataset=truth.dataset, **columns, **matched)


def _detection_table(
    truth: GroundTruth,
    kept: Detections,
    image_rows: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    convention: Convention,
    matched: dict[str, Any],
) -> DetectionTable:
    n = len(kept)
    given = kept.has_heatmap
    covariances = np.zeros((n, 2, 2, 2))
    if convention.fixed_variance is not None:
        covariances[~given] = np.eye(2) * convention.fixed_variance
    elif kept.covariances is not None:
        # The convention decides which covariances count as 0; the table holds those that were scored.
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
        masks=np.zeros(n, bool) if kept.has_mask is None else kept.has_mask & ~given,
        label_probs=align_labels(probs, kept.classes, truth.classes),
        **matched,
    )


class Evaluator:
    """Evaluates images in batches, in any order, for example in a training loop.

    Parameters
    ----------
    classes : sequence of str
        Classes of the ground truth.
    convention, measures, threads
        As for `evaluate`.
    keep_labels : bool
        Keep the probabilities of all classes: at most 4 bytes per detection and class, and 20 bytes per detection with
        one score. Diagnoses and label metrics need them.
    **settings
        ``preset``, ``label_threshold`` and other settings, as for `evaluate`.

    Examples
    --------
    >>> import probox
    >>> evaluator = probox.Evaluator(["cup"])
    >>> for image_id in (7, 3):
    ...     truth = probox.GroundTruth.from_boxes(["cup"], {image_id: (64, 48)}, [image_id], [[10, 20, 40, 40]], [0])
    ...     detections = probox.Detections(
    ...         classes=["cup"], image_ids=[image_id], boxes=[[10, 20, 40, 40]], label_probs=[[1]])
    ...     evaluator.update(truth, detections)
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
        self.measures = known_measures(measures)
        self.threads = thread_count(threads)
        self.keep_labels = keep_labels
        self._parts: list[Evaluation] = []
        self._images: set[int] = set()
        self._has_pixels = False

    def update(self, truth: GroundTruth, detections: Detections, *, progress: Progress | None = None) -> None:
        """Add images with their objects and detections; each image once.

        Parameters
        ----------
        truth : GroundTruth
            Some images with all their objects, of the evaluator's classes.
        detections : Detections
            Detections in these images; those in other images are excluded and counted in a note.
        progress : callable, optional
            Called with the number of finished images and of all images.

        Examples
        --------
        >>> evaluator = Evaluator(["cup"])
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
        >>> evaluator.update(truth, Detections(classes=["cup"], image_ids=[], boxes=[], label_probs=np.zeros((0, 1))))
        >>> evaluator.result().fn
        1
        """
        check_tables(truth, detections, "update")
        if truth.classes != self.classes:
            problem = "expected ground truth with the evaluator's classes"
            raise InputError(problem, remedy="build all tables with the same classes")
        convention = without_auto(self.convention)
        self._has_pixels |= detections.has_pixels
        part = evaluate_tables(truth, detections, convention, self.measures, threads=self.threads, progress=progress)
        self._add(part if self.keep_labels else part.without_labels())

    def merge(self, other: Evaluator) -> None:
        """Add all images of another evaluator, for example of another process.

        Parameters
        ----------
        other : Evaluator
            An evaluator with the same convention, classes and metrics, and other images.

        Examples
        --------
        >>> evaluator, other = Evaluator(["cup"]), Evaluator(["cup"])
        >>> evaluator.merge(other)
        """
        expect(other, Evaluator, "other")
        self._has_pixels |= other._has_pixels
        for part in other._parts:
            self._add(part)

    def result(self) -> Evaluation:
        """Return the evaluation of all images so far, bit-identical to one call of `evaluate`.

        Returns
        -------
        Evaluation
            The result with its tables and notes.

        Examples
        --------
        >>> Evaluator(["cup"]).result().counts
        {'images': 0, 'objects': 0, 'detections': 0}
        """
        if not self._parts:
            nothing = GroundTruth.from_boxes(self.classes, {}, [], np.zeros((0, 4)), [])
            none = Detections(
                classes=self.classes,
                image_ids=np.zeros(0, np.int64),
                boxes=np.zeros((0, 4)),
                label_probs=np.zeros((0, len(self.classes)), np.float32),
            )
            return evaluate_tables(nothing, none, without_auto(self.convention), self.measures)
        from probox.evaluation.merge import merge_evaluations

        merged = merge_evaluations(self._parts)
        if not self._has_pixels:
            merged = dataclasses.replace(
                merged,
                measures=without_masks(merged.measures, len(merged.detections)),
                overlaps=OverlapTable.none(),
                detections=merged.detections.replace(areas=None),
            )
        return merged.at_threshold("auto") if self.convention.label_threshold == "auto" else merged

    def _add(self, part: Evaluation) -> None:
        mine = without_auto(self.convention), self.classes, self.measures
        if (part.convention, part.classes, part.measures) != mine:
            raise InputError("evaluators of different conventions, classes or metrics do not merge")
        first = self._parts[0].dataset if self._parts else part.dataset
        if (part.dataset.rules, part.dataset.frequencies) != (first.rules, first.frequencies):
            raise InputError(
                "expected ground truth of one kind", remedy="give all tables the same rules and frequencies"
            )
        for image_id in part.dataset.image_ids.tolist():
            if image_id in self._images:
                raise InputError("the image was added before", image=image_id, remedy="add each image once")
        self._images.update(part.dataset.image_ids.tolist())
        self._parts.append(part)

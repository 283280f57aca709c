"""`evaluate`: from ground truth and detections, tables or files, to an `Evaluation`; `Evaluator`: image by image."""

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
from probox.evaluation.kept import drop_tables
from probox.evaluation.merge import merge_evaluations
from probox.evaluation.parts import Keep, Part, check_keep, hash_ids, images_of_part, measures_to_keep, parse_part
from probox.evaluation.result import Evaluation, count_empty_masks, unscored_objects
from probox.evaluation.verdicts import matched_columns
from probox.files.reading import Paths
from probox.measures.boxes.mean_ap import average_precision
from probox.measures.pdq.kernel import plain_rows, score_pairs
from probox.measures.registry import measure_names, named_measures, need_labels, need_pairs
from probox.notes import Note
from probox.options import Settings, resolve_settings, takes_settings
from probox.support.parallel import thread_count, threads_at_most
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth, Masks
from probox.tables.labels import align_labels, background_classes
from probox.tables.results import DetectionTable, ObjectTable, PairTable, unmatched_columns
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
    """Measure detections against ground truth: PDQ, mAP and moLRP, or the measures that are asked for.

    Keywords have the names of the options of ``probox evaluate``; those that are None leave the convention as it is.

    Detections in Parquet may be larger than memory: row groups are read one after the other, each with its part of the
    ground truth. What grows with the file is the result: about 200 bytes per detection and 56 per pair, or less with
    `keep`. Every number is bit-identical to that of tables in memory. Probabilities of all classes are kept only if a
    measure needs them, ``measures="all"`` for one.

    Parameters
    ----------
    truth : GroundTruth or path
        Ground truth, or its file, as for `read_truth`.
    detections : Detections or path
        Detections to evaluate, or their file, as for `read_detections`; for Parquet also a folder of shards, or the URL
        of either. Detections in images that the ground truth does not have are left out and counted.
    part : str or (int, int), optional
        ``"3/16"`` or ``(3, 16)``: the third of sixteen ranges of images, by ascending id. Give all of `truth` and
        `detections`; `probox.merge` makes one result of all parts. Default: all images.
    keep : {"all", "matches", "summary"}
        How much is kept: all tables, about 200 bytes a detection; about 10 bytes a detection, for PDQ, mAP and LRP; or
        sums alone, for PDQ.
    convention : str or Convention, optional
        ``"reference"`` (default), ``"paper"``, ``"challenge"``, or your own; the keywords below change it.
    measures : sequence of str, or str, optional
        What the summary holds, by the names of `probox.measures.registry.MEASURES`, also in one text between commas, or
        ``"all"``; default: ``"pdq,map,lrp"``. Without ``"pdq"`` no PDQ matching is done.
    threads : int, optional
        How many threads share the work; default: as many as there are processors. No number depends on it.
    progress : callable, optional
        Called with the numbers of images done and in all.
    image_ids : sequence of int, or str, optional
        These images alone: their ids, or a file of them, or ids in one text between commas. Parts are parts of these.
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
        Numbers (``result.pdq``, ``result.summary()``), the tables behind them, warnings and notes (``result.notes``);
        ``print(result)`` shows a row of the paper's Table 1.

    Raises
    ------
    InputError
        What is wrong with a file or an argument, in one line.

    Examples
    --------
    >>> import probox
    >>> truth = probox.GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    >>> detections = probox.Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 40, 40]], label_probs=[[0.81]])
    >>> round(probox.evaluate(truth, detections).pdq, 6)  # a perfect box: only the label costs
    0.9
    >>> round(probox.evaluate(truth, detections, preset="paper", label_weight=1, measures="pdq").pdq, 6)
    0.81

    Parts, evaluated in any order by any number of machines, make the result of one:

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
            remedy='give a number, or call at_threshold("auto") of the whole result',
        )
    with threads_at_most(thread_count(threads)):
        given = open_inputs(truth, detections, image_ids=image_ids, repair=repair)
    if isinstance(given, TablePieces) and part is None and kept == "all":
        tables = given.truth, given.detections
        result = evaluate_tables(*tables, chosen, wanted, threads=threads, progress=progress)
        if chosen.fixed_threshold is not None and "map" in wanted and not isinstance(detections, Detections):
            note = Note("unthresholded-map", value=100 * average_precision(*tables, threads=threads).map)
            result = dataclasses.replace(result, input_notes=(*result.input_notes, note))
    else:
        own = images_of_part(given.image_ids, number, of)
        result, scored, empty = _evaluate_pieces(given, own, kept, chosen, wanted, threads, progress)
        notes = given.notes(scored, empty, chosen, first=number == 1)
        left_out = [name for name in known if name not in wanted]
        if left_out:  # they do not follow from what is kept
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
    """Return the evaluation of all pieces, how many detections were scored and how many objects have no pixel."""
    # The one column whose rows may be long is kept if a measure needs it, or all of it is in memory anyway.
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
    """Return the evaluation of two tables, without a threshold that is chosen."""
    resolved = convention.for_rules(truth.dataset.rules)
    kept, image_rows, numbers, notes = _to_score(truth, found, convention)
    masks = truth.as_box_masks() if convention.box_truth else truth.masks
    if not masks.pixels.all():
        empty = int((~truth.crowd & (masks.pixels == 0)).sum())  # regions to ignore are nobody's objects
        if empty:
            notes.append(unscored_objects(empty, convention))
    ignored = _ignored_objects(masks, resolved)
    if need_pairs(measures):
        many = thread_count(threads)
        pairs = score_pairs(truth, masks, kept, resolved, image_rows=image_rows, threads=many, progress=progress)
        of_objects, of_detections = matched_columns(ignored, image_rows, pairs, convention.assignment)
    else:
        pairs, of_objects, of_detections = PairTable.none(), unmatched_columns(len(truth)), unmatched_columns(len(kept))
    return Evaluation(
        convention=convention,
        dataset=truth.dataset,
        objects=_object_table(truth, masks, ignored, of_objects),
        detections=_detection_table(truth, kept, image_rows, numbers, resolved, of_detections),
        pairs=pairs,
        masks=masks,
        measures=measures,
        inputs=tuple(name for name in (truth.source, found.source) if name),
        input_notes=(*truth.notes, *found.notes, *notes),
        version=__version__,
    )


def without_auto(convention: Convention) -> Convention:
    """Return the convention by which all detections are scored, of which a label threshold is chosen later."""
    return convention.replace(label_threshold=None) if convention.label_threshold == "auto" else convention


def known_measures(measures: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the wanted measures in the registry's order, so that the order of asking makes no other result."""
    wanted = named_measures(measures)
    return tuple(name for name in measure_names() if name in wanted)


def _to_score(
    truth: GroundTruth, found: Detections, convention: Convention
) -> tuple[Detections, npt.NDArray[np.int64], npt.NDArray[np.int64], list[Note]]:
    """Return the detections that take part, by image, their image rows and numbers; and notes on the others."""
    image_rows, numbers, rows, in_order = _core.group_by_image(found.image_ids, truth.image_ids)
    known = len(rows)
    notes = [] if known == len(found) else [unknown_images(found.image_ids, truth.dataset)]
    if convention.fixed_threshold is not None:
        sure = found.label_probs.max(axis=1, initial=0.0) > np.float32(convention.fixed_threshold)
        rows = rows[sure[rows]]
    notes += label_notes(known - len(rows), found.classes, truth.classes, convention)
    if in_order and len(rows) == len(found):
        return found, image_rows, numbers, notes
    return found.take(rows), image_rows[rows], numbers[rows], notes


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
    own = {name: getattr(truth, name) for name in ("image_rows", "ids", "labels", "boxes", "extents", "areas", "crowd")}
    columns: dict[str, Any] = own | {"pixels": masks.pixels, "mask_boxes": masks.boxes, "ignored": ignored}
    return ObjectTable(dataset=truth.dataset, **columns, **matched)


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


class Evaluator:
    """Evaluates a few images at a time, in any order, as in a training loop.

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

    def update(self, truth: GroundTruth, detections: Detections, *, progress: Progress | None = None) -> None:
        """Add images, their objects and detections; each image once.

        Parameters
        ----------
        truth : GroundTruth
            Some images with all their objects, of the evaluator's classes.
        detections : Detections
            Detections in these images; those in others are left out and counted.
        progress : callable, optional
            Called with the numbers of images done and in all.
        """
        check_tables(truth, detections, "update")
        if truth.classes != self.classes:
            problem = "expected truth of the evaluator's classes"
            raise InputError(problem, remedy="build all tables with the same classes")
        convention = without_auto(self.convention)
        part = evaluate_tables(truth, detections, convention, self.measures, threads=self.threads, progress=progress)
        self._add(part if self.keep_labels else part.without_labels())

    def merge(self, other: Evaluator) -> None:
        """Add everything that another evaluator has seen, say one of another process."""
        expect(other, Evaluator, "other")
        for part in other._parts:
            self._add(part)

    def result(self) -> Evaluation:
        """Return the evaluation of everything so far: bit-identical to one call of `evaluate`."""
        if not self._parts:
            nothing = GroundTruth.from_boxes(self.classes, {}, [], np.zeros((0, 4)), [])
            none = Detections(
                classes=self.classes,
                image_ids=np.zeros(0, np.int64),
                boxes=np.zeros((0, 4)),
                label_probs=np.zeros((0, len(self.classes)), np.float32),
            )
            return evaluate_tables(nothing, none, without_auto(self.convention), self.measures)
        merged = merge_evaluations(self._parts)
        return merged.at_threshold("auto") if self.convention.label_threshold == "auto" else merged

    def _add(self, part: Evaluation) -> None:
        mine = without_auto(self.convention), self.classes, self.measures
        if (part.convention, part.classes, part.measures) != mine:
            raise InputError("evaluators of different conventions, classes or measures do not merge")
        for image_id in part.dataset.image_ids.tolist():
            if image_id in self._images:
                raise InputError("the image was added before", image=image_id, remedy="add each image once")
        self._images.update(part.dataset.image_ids.tolist())
        self._parts.append(part)

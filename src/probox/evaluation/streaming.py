"""Evaluating Parquet files part by part: what is in memory at a time is one row group and the result so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from probox.convention import Convention
from probox.evaluation.inputs import Images, image_ids_in
from probox.evaluation.notes import empty_mask_note
from probox.evaluation.result import Evaluation
from probox.evaluation.run import Evaluator, Progress, label_notes
from probox.files.reading import Paths
from probox.formats.draft import repair_note, repaired, unknown_images_note
from probox.formats.parquet.detections import DetectionFile, known_rows
from probox.formats.parquet.truth import TruthFile
from probox.measures.registry import need_labels
from probox.options import Settings, resolve_settings, takes_settings
from probox.tables.arguments import expect_path
from probox.tables.dataset import chosen_ids
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["evaluate_parquet"]


@takes_settings
def evaluate_parquet(
    truth: GroundTruth | Paths,
    path: Paths,
    *,
    convention: str | Convention | None = None,
    measures: str | Sequence[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    repair: bool = False,
    images: Images | None = None,
    **settings: Unpack[Settings],
) -> Evaluation:
    """Measure the detections of a Parquet file, which may be larger than memory.

    Every number is to the bit that of `evaluate`. Row groups are read one after the other, each with its part of the
    truth; images without detections take part too. What grows with the file is the result alone: about 200 bytes per
    detection and 56 per pair, however many classes there are. Probabilities of all classes are kept only if a measure
    asks for them, ``measures="all"`` for one.

    Parameters
    ----------
    truth : GroundTruth or path
        What is there: a table, or a Parquet file of ground truth, of which parts are read as they are needed.
    path : path
        The Parquet file of detections; those in images that the truth does not have are left out and counted.
    convention, measures, threads
        As for `evaluate`.
    progress : callable, optional
        Called with the numbers of images done and in all.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite by the nearest that are.
    images : sequence of int, or str, optional
        Evaluate these images of the truth alone, as for `evaluate`.
    **settings
        ``preset``, ``label_threshold`` and so on, as for `evaluate`.

    Examples
    --------
    >>> import probox
    >>> result = probox.evaluate_parquet("truth.parquet", "detections.parquet")  # doctest: +SKIP
    """
    chosen = resolve_settings(evaluate_parquet, convention, settings)
    expect_path(path, remedy="give the name of a Parquet file; tables go to evaluate(truth, found)")
    if not isinstance(truth, GroundTruth):
        expect_path(truth, "truth", "give a table or the name of a Parquet file")
    there = truth if isinstance(truth, GroundTruth) else TruthFile(truth)
    image_ids = there.image_ids
    wanted = image_ids if images is None else chosen_ids(image_ids_in(images), image_ids, file=there.source or None)
    file = DetectionFile(path)
    evaluator = Evaluator(there.classes, convention=chosen, measures=measures, threads=threads)
    evaluator.keep_labels = need_labels(evaluator.measures)  # the one column whose rows may be long
    done = kept = changed = 0
    unknown_rows = unknown_images = 0
    for draft, is_last in file.read_in_order():
        # Every image of the truth up to the group's last one, with detections or without, belongs to this part.
        up_to = len(image_ids)
        if not is_last:
            up_to = int(np.searchsorted(image_ids, draft.image_ids[-1], side="right"))
        part, unknown = known_rows(draft, image_ids[done:up_to])
        unknown_rows += len(unknown)
        unknown_images += len(np.unique(unknown))
        part, _ = known_rows(part, wanted)
        here = image_ids[done:up_to] if images is None else np.intersect1d(image_ids[done:up_to], wanted)
        if repair and part.covariances is not None:
            covariances, count = repaired(part.covariances)
            part = part.replace(covariances=covariances)
            changed += count
        kept += len(part)
        evaluator.update(
            there.select_images(here),
            part.to_table(),
            progress=_shifted(progress, done, len(image_ids)),
        )
        done = up_to
        if progress is not None:
            progress(done, len(image_ids))
    result = evaluator.result()
    notes = [*there.notes, *file.notes]
    if unknown_rows:
        notes.append(unknown_images_note(unknown_rows, unknown_images))
    if changed:
        notes.append(repair_note(changed))
    empty = int((~result.objects.crowd & (result.masks.pixels == 0)).sum())
    if empty:
        notes.append(empty_mask_note(empty, box_truth=chosen.box_truth))
    notes += label_notes(kept - len(result.detections), file.classes, there.classes, chosen)
    inputs = tuple(name for name in (there.source, file.name) if name)
    return dataclasses.replace(result, plain_notes=tuple(notes), inputs=inputs)


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _part: progress(before + done, total)

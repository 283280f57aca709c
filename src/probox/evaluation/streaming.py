"""Evaluating Parquet files part by part: what is in memory at a time is one row group and the result so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.evaluation.inputs import Images, image_ids_in
from probox.evaluation.notes import empty_mask_note
from probox.evaluation.result import Evaluation
from probox.evaluation.run import Evaluator, Progress, label_notes
from probox.files.reading import Paths
from probox.formats.draft import Draft, repair_note, repaired, unknown_images_note
from probox.formats.parquet.sets import open_detections, open_truth
from probox.measures.registry import need_labels
from probox.options import Settings, resolve_settings, takes_settings
from probox.tables.arguments import expect_path
from probox.tables.dataset import chosen_ids
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["evaluate_parquet"]

TOGETHER = 1024
"""So many images without detections are evaluated at a time."""

Ids = npt.NDArray[np.int64]


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
    """Measure the detections of a Parquet file or of a set of such files, which may be larger than memory.

    Every number is to the bit that of `evaluate`. Row groups are read one after the other, each with its part of the
    truth; images without detections take part too. What grows with the file is the result alone: about 200 bytes per
    detection and 56 per pair, however many classes there are. Probabilities of all classes are kept only if a measure
    asks for them, ``measures="all"`` for one.

    Parameters
    ----------
    truth : GroundTruth or path
        What is there: a table, or ground truth in Parquet, of which parts are read as they are needed.
    path : path
        Detections in Parquet: a file, a folder of shards, or the URL of either. Those in images that the truth does not
        have are left out and counted.
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
    there = truth if isinstance(truth, GroundTruth) else open_truth(truth)
    image_ids = there.image_ids
    wanted = image_ids if images is None else chosen_ids(image_ids_in(images), image_ids, file=there.source or None)
    file = open_detections(path)
    evaluator = Evaluator(there.classes, convention=chosen, measures=measures, threads=threads)
    evaluator.keep_labels = need_labels(evaluator.measures)  # the one column whose rows may be long
    found_in, counts = file.image_counts()
    unknown = ~np.isin(found_in, image_ids)
    empty_handed = np.setdiff1d(wanted, found_in)
    done = kept = changed = 0

    def update(here: Ids, part: Draft) -> None:
        nonlocal done
        table, shown = part.to_table(), _shifted(progress, done, len(wanted))
        evaluator.update(there.select_images(here), table, progress=shown)
        done += len(here)
        if progress is not None:
            progress(done, len(wanted))

    for part in file.pieces(np.intersect1d(found_in, wanted)):
        if repair and part.covariances is not None:
            covariances, count = repaired(part.covariances)
            part = part.replace(covariances=covariances)
            changed += count
        kept += len(part)
        # Images in which nothing was found go along with those around them, as far as they are no more than a few.
        here = np.unique(part.image_ids)
        begin, end = np.searchsorted(empty_handed, here[[0, -1]])
        end = min(end, begin + len(here) + TOGETHER)
        update(np.union1d(here, empty_handed[begin:end]), part)
        empty_handed = np.delete(empty_handed, slice(begin, end))
    nothing = file.read_images(np.zeros(0, np.int64))
    for begin in range(0, max(len(empty_handed), int(done == 0)), TOGETHER):
        update(empty_handed[begin : begin + TOGETHER], nothing)
    result = evaluator.result()
    notes = [*there.notes, *file.notes]
    if unknown.any():
        notes.append(unknown_images_note(int(counts[unknown].sum()), int(unknown.sum())))
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

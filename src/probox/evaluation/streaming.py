"""Evaluating Parquet files part by part: what is in memory at a time is one row group and the result so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.evaluation.inputs import Images, image_ids_in
from probox.evaluation.notes import empty_mask_note, said_by_part
from probox.evaluation.result import Evaluation
from probox.evaluation.run import Evaluator, Progress, label_notes
from probox.files.reading import Paths
from probox.formats.draft import repair_note, repaired, unknown_images_note
from probox.formats.parquet.sets import is_parquet_source, open_detections, open_truth
from probox.formats.reading import read_truth
from probox.measures.registry import need_labels
from probox.options import Settings, resolve_settings, takes_settings
from probox.tables.arguments import expect_path
from probox.tables.dataset import chosen_ids
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ParquetInputs", "empty_masks", "evaluate_parquet", "shifted"]

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
    chosen = resolve_settings(evaluate_parquet, convention, settings, auto=True)
    expect_path(path, remedy="give the name of a Parquet file; tables go to evaluate(truth, found)")
    if not isinstance(truth, GroundTruth):
        expect_path(truth, "truth", "give a table or the name of a Parquet file")
    given = ParquetInputs(truth, path, images=images, repair=repair)
    evaluator = Evaluator(given.classes, convention=chosen, measures=measures, threads=threads)
    evaluator.keep_labels = need_labels(evaluator.measures)  # the one column whose rows may be long
    done = 0
    for there, found in given.pieces(given.wanted):
        evaluator.update(there, found, progress=shifted(progress, done, len(given.wanted)))
        done += len(there.image_ids)
        if progress is not None:
            progress(done, len(given.wanted))
    result = evaluator.result()
    notes = given.notes(len(result.detections), empty_masks(result), chosen)
    return dataclasses.replace(result, plain_notes=notes, inputs=given.inputs)


class ParquetInputs:
    """Ground truth, and detections in Parquet, of which a piece at a time is read.

    Parameters
    ----------
    truth : GroundTruth or path
        What is there: a table, or a file of any format; parts of one in Parquet are read as they are needed.
    path : path
        Detections in Parquet: a file, a folder of shards, or the URL of either.
    images : sequence of int, or str, optional
        These images of the truth alone.
    repair : bool
        Replace covariances that are none by the nearest valid ones.
    """

    def __init__(
        self, truth: GroundTruth | Paths, path: Paths, *, images: Images | None = None, repair: bool = False
    ) -> None:
        if isinstance(truth, GroundTruth):
            self.truth: Any = truth
        else:
            self.truth = open_truth(truth) if is_parquet_source(truth) else read_truth(truth)
        self.file = open_detections(path)
        self.classes: tuple[str, ...] = self.truth.classes
        image_ids = self.truth.image_ids
        source = self.truth.source or None
        self.wanted: Ids = image_ids if images is None else chosen_ids(image_ids_in(images), image_ids, file=source)
        self.inputs = tuple(name for name in (self.truth.source, self.file.name) if name)
        self._repair = repair
        self._found_in, self._counts = self.file.image_counts()
        self._unknown = ~np.isin(self._found_in, image_ids)
        self._read = self._changed = 0

    def pieces(self, image_ids: Ids) -> Iterator[tuple[GroundTruth, Detections]]:
        """Yield the tables of these images, some images at a time; there is at least one piece.

        Images in which nothing was found go along with those around them, as far as they are no more than a few.
        """
        empty_handed = np.setdiff1d(image_ids, self._found_in)
        left = np.ones(len(empty_handed), bool)
        self._read = self._changed = pieces = 0
        for part in self.file.pieces(np.intersect1d(self._found_in, image_ids)):
            if self._repair and part.covariances is not None:
                covariances, count = repaired(part.covariances)
                part = part.replace(covariances=covariances)
                self._changed += count
            self._read += len(part)
            here = np.unique(part.image_ids)
            begin, end = np.searchsorted(empty_handed, here[[0, -1]])
            along = begin + np.flatnonzero(left[begin:end])[: len(here) + TOGETHER]
            left[along] = False
            pieces += 1
            yield self.truth.select_images(np.union1d(here, empty_handed[along])), part.to_table()
        rest = empty_handed[left]
        for begin in range(0, max(len(rest), int(pieces == 0)), TOGETHER):
            nothing = self.file.read_images(np.zeros(0, np.int64)).to_table()
            yield self.truth.select_images(rest[begin : begin + TOGETHER]), nothing

    def notes(self, scored: int, empty: int, convention: Convention, *, first: bool = True) -> tuple[str, ...]:
        """Return what is to be said of the images whose pieces were read last.

        Parameters
        ----------
        scored : int
            How many of the detections that were read took part.
        empty : int
            How many objects have no pixel.
        convention : Convention
            How they were scored.
        first : bool
            Say what is counted in all of the files, too: of parts that are joined later, one does.
        """
        notes = [*said_by_part((*self.truth.notes, *self.file.notes), first=first)]
        if self._unknown.any() and first:
            notes.append(unknown_images_note(int(self._counts[self._unknown].sum()), int(self._unknown.sum())))
        if self._changed:
            notes.append(repair_note(self._changed))
        if empty:
            notes.append(empty_mask_note(empty, box_truth=convention.box_truth))
        return (*notes, *label_notes(self._read - scored, self.file.classes, self.classes, convention))


def empty_masks(evaluation: Evaluation) -> int:
    """Return how many objects have no pixel; regions to ignore are nobody's objects."""
    return int((~evaluation.objects.crowd & (evaluation.masks.pixels == 0)).sum())


def shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Return what tells the progress of one piece as that of all of them."""
    if progress is None:
        return None
    return lambda done, _part: progress(before + done, total)

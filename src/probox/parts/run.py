"""Evaluating a part of the images, and keeping as much of it as is wanted."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from probox.convention import Convention
from probox.evaluation.inputs import Images
from probox.evaluation.joining import join_evaluations, without_labels
from probox.evaluation.part import Part, hash_of_ids
from probox.evaluation.result import Evaluation
from probox.evaluation.run import Progress, evaluate
from probox.evaluation.streaming import empty_masks, shifted
from probox.files.reading import Paths
from probox.measures.registry import named_measures, need_labels
from probox.options import Settings, resolve_settings, takes_settings
from probox.parts.compact import CompactEvaluation, compacted, join_compact
from probox.parts.inputs import open_inputs
from probox.parts.keep import Keep, expect_keep, kept_measures
from probox.parts.split import images_of_part, parsed_part
from probox.parts.storage import Result
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["evaluate_part"]


@takes_settings
def evaluate_part(
    truth: GroundTruth | Paths,
    found: Detections | Paths,
    part: str | tuple[int, int] | None = None,
    *,
    keep: Keep = "all",
    convention: str | Convention | None = None,
    measures: str | Sequence[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    images: Images | None = None,
    repair: bool = False,
    **settings: Unpack[Settings],
) -> Result:
    """Measure one part of the truth's images; `join` makes one result of all parts, whoever made them.

    Parameters
    ----------
    truth, found : tables or paths
        As for `evaluate`: all of them, not those of the part alone.
    part : str or (int, int), optional
        ``"3/16"`` or ``(3, 16)``: the third of sixteen ranges of images, by ascending id. Default: all images.
    keep : {"all", "matches", "summary"}
        How much is kept: an `Evaluation` with its tables, about 200 bytes a detection; about 10 bytes a detection, for
        PDQ, mAP and LRP; or sums alone, for PDQ. The latter two are a `CompactEvaluation`.
    convention, measures, threads, progress, images, repair, **settings
        As for `evaluate`. `images` are shared out among the parts.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> truth, found = demo.truth, demo.detectors["unsure"]
    >>> parts = [probox.evaluate_part(truth, found, f"{number}/3") for number in (3, 1, 2)]
    >>> probox.join(parts).summary() == probox.evaluate(truth, found).summary()
    True
    """
    chosen = resolve_settings(evaluate_part, convention, settings)
    kept = expect_keep(keep)
    number, of = (1, 1) if part is None else parsed_part(part)
    wanted = kept_measures(named_measures(measures), kept, asked=measures is not None)
    inputs = open_inputs(truth, found, images=images, repair=repair, whole=kept == "all")
    own = images_of_part(inputs.wanted, number, of)
    # The one column whose rows may be long is kept if a measure needs it, or all of it is in memory anyway.
    gathered = _Gathered(kept, keep_labels=inputs.in_memory or need_labels(wanted))
    done = 0
    for there, seen in inputs.pieces(own):
        shown = shifted(progress, done, len(own))
        gathered.add(evaluate(there, seen, convention=chosen, measures=wanted, threads=threads, progress=shown))
        done += len(there.image_ids)
        if progress is not None:
            progress(done, len(own))
    result = gathered.result()
    notes = (*inputs.notes(gathered.scored, gathered.empty, chosen, first=number == 1), *_left(measures, wanted))
    record = None
    if part is not None:
        record = Part((number,), of, hash_of_ids(inputs.wanted), inputs.identity(repair=repair))
    return dataclasses.replace(result, plain_notes=notes, inputs=inputs.inputs, part=record)


class _Gathered:
    """The results of pieces, as much of them as is kept."""

    def __init__(self, keep: Keep, *, keep_labels: bool) -> None:
        self._keep = keep
        self._keep_labels = keep_labels
        self._tables: list[Evaluation] = []
        self._compact: list[CompactEvaluation] = []
        self.scored = self.empty = 0

    def add(self, piece: Evaluation) -> None:
        """Take what is kept of one more piece."""
        self.scored += len(piece.detections)
        self.empty += empty_masks(piece)
        if self._keep != "all":
            self._compact.append(compacted(piece, self._keep, look=not self._compact))
        else:
            self._tables.append(piece if self._keep_labels else without_labels(piece))

    def result(self) -> Result:
        """Return one result of all pieces."""
        if self._compact:
            return join_compact(self._compact)
        return self._tables[0] if len(self._tables) == 1 else join_evaluations(self._tables)


def _left(measures: Any, wanted: Sequence[str]) -> list[str]:
    """Say which measures were not taken because they do not follow from what is kept."""
    left = [name for name in named_measures(measures) if name not in wanted]
    return [f"sums alone are kept, from which {' and '.join(left)} do not follow"] if left else []

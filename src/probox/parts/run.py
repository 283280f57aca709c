"""Evaluating a part of the images, and keeping as much of it as is wanted."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probox.convention import Convention
from probox.evaluation.inputs import Images, read_inputs
from probox.evaluation.notes import is_counted
from probox.evaluation.part import Part, hash_of_ids
from probox.evaluation.result import Evaluation
from probox.evaluation.run import Progress, evaluate
from probox.files.reading import Paths
from probox.options import Settings, resolve_settings, takes_settings
from probox.parts.identity import hash_of_inputs, hash_of_table
from probox.parts.keep import Keep, expect_keep
from probox.parts.split import images_of_part, parsed_part
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
) -> Evaluation:
    """Measure one part of the truth's images; `join` makes one result of all parts, whoever made them.

    Parameters
    ----------
    truth, found : tables or paths
        As for `evaluate`: all of them, not those of the part alone.
    part : str or (int, int), optional
        ``"3/16"`` or ``(3, 16)``: the third of sixteen ranges of images, by ascending id. Default: all images.
    keep : {"all", "matches", "summary"}
        How much is kept.
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
    assert kept == "all"
    given: dict[str, Any] = {"convention": chosen, "measures": measures, "threads": threads, "progress": progress}
    there, seen = read_inputs(truth, found, "evaluate_part", images=images, repair=repair)
    result = evaluate(*_tables_of_part(there, seen, number, of), **given)
    return result if part is None else dataclasses.replace(result, part=_record(there, seen, number, of, repair))


def _tables_of_part(truth: GroundTruth, found: Detections, number: int, of: int) -> tuple[GroundTruth, Detections]:
    """Return what one part is about.

    What counts something in all of the file, and detections in images that the truth does not have, belong to the first
    part alone: counts of parts add up.
    """
    if of == 1:
        return truth, found
    ids = images_of_part(truth.image_ids, number, of)
    there = dataclasses.replace(truth.select_images(ids), notes=_own(truth.notes, number))
    own = np.isin(found.image_ids, ids)
    if number == 1:
        own |= truth.dataset.rows_of(found.image_ids) < 0
    seen = found.select(own)
    return there, dataclasses.replace(seen, notes=_own(found.notes, number))


def _own(notes: Sequence[str], number: int) -> tuple[str, ...]:
    return tuple(note for note in notes if number == 1 or not is_counted(note))


def _record(truth: GroundTruth, found: Detections, number: int, of: int, repair: bool) -> Part:
    inputs = hash_of_inputs(hash_of_table(truth), hash_of_table(found), repair=repair)
    return Part((number,), of, hash_of_ids(truth.image_ids), inputs)

"""What a worker does for one part: take it from the folder of finished parts, or evaluate it and put it there."""

from __future__ import annotations

import dataclasses
from typing import Any

from probox.distributed.inputs import held, tables_of_part
from probox.distributed.kept import PartsFolder, part_name
from probox.errors import InputError
from probox.evaluation.evaluate import evaluate
from probox.evaluation.inputs import hash_inputs, hash_table, read_inputs
from probox.evaluation.merge import merge
from probox.evaluation.parts import Part
from probox.evaluation.storage import from_bytes
from probox.formats.reading import read_truth
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["RESUME", "PartResult", "Plan", "error_in_seeing", "join_parts", "run_part", "state_of"]

RESUME = "run again with resume=True, which does what is missing"
"""What to do after a failure if finished parts are kept."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What all tasks of a run have in common; it is sent with each.

    Parameters
    ----------
    of : int
        How many parts there are.
    whole : str
        The hash of the ids of all images.
    inputs : str
        What tells the inputs from others, as far as is known before they are read.
    truth, found : str or None
        Where they are; None if each task is sent its tables.
    truth_by_need, found_by_need : bool
        Whether a worker reads its own images alone.
    images : array or None
        The ids of the images to evaluate, if not all.
    repair : bool
        Whether covariances that are none are replaced.
    given : dict
        How to measure.
    folder : PartsFolder or None
        Where finished parts are kept.
    """

    of: int
    whole: str
    inputs: str
    truth: str | None
    found: str | None
    truth_by_need: bool
    found_by_need: bool
    images: Any
    repair: bool
    given: dict[str, Any]
    folder: PartsFolder | None


@dataclasses.dataclass(frozen=True)
class PartResult:
    """What a task made, or found already made."""

    value: Any
    state: str
    """``"evaluated"``, ``"kept"``, or ``"damaged"``: evaluated, since what was kept of it could not be used."""


def run_part(plan: Plan, job: tuple[int, Any]) -> PartResult:
    """Return one part, from the folder of parts if it is there, and keep it there if it is not."""
    number, tables = job
    if plan.folder is None:
        return PartResult(_evaluated(plan, number, tables), "evaluated")
    plan.folder.check_seen()
    name = part_name(number, plan.of)
    data = plan.folder.read(name)
    kept = None if data is None else _usable(plan, number, data)
    if kept is not None:
        return PartResult(kept, "kept")
    value = _evaluated(plan, number, tables)
    try:
        plan.folder.check_seen()  # a run that is over wants nothing any more
        plan.folder.write(name, value.to_bytes())
    except InputError as error:
        remedy = f"{error.remedy}; {RESUME}" if error.remedy else RESUME
        entry = f"part {number} of {plan.of}"
        raise InputError(error.problem, file=error.file, entry=entry, remedy=remedy) from None
    return PartResult(value, "evaluated" if data is None else "damaged")


def _usable(plan: Plan, number: int, data: bytes) -> Any:
    """Return the part that was kept as these bytes; None if they are damaged, or of another part."""
    try:
        value = from_bytes(data)
    except InputError:
        return None
    part = value.part
    mine = part is not None and (part.numbers, part.of, part.whole) == ((number,), plan.of, plan.whole)
    return value if mine else None


def _evaluated(plan: Plan, number: int, tables: Any) -> Any:
    """Return a part of the images, with the threads of one task: tasks share the processors."""
    given = {**plan.given, "threads": 1}
    key = f"{plan.inputs} {plan.whole}"
    if tables is None and plan.found_by_need:
        truth: Any = plan.truth
        if not plan.truth_by_need:
            truth = held(key, lambda: read_truth(str(plan.truth)))
        more = {"images": plan.images, "repair": plan.repair}
        return evaluate(truth, str(plan.found), part=(number, plan.of), **more, **given)
    if tables is None:
        there, seen, inputs = held(key, lambda: _read(plan))
        tables = tables_of_part(there, seen, number, plan.of)
    else:
        inputs = plan.inputs
    part = Part((number,), plan.of, plan.whole, inputs)
    return dataclasses.replace(evaluate(*tables, **given), part=part)


def _read(plan: Plan) -> tuple[GroundTruth, Detections, str]:
    """Return both tables whole, and a hash of them: where machines have other files at the same place, joins notice."""
    more: dict[str, Any] = {"images": plan.images, "repair": plan.repair}
    truth, found = read_inputs(str(plan.truth), str(plan.found), "evaluate", **more)
    return truth, found, hash_inputs(hash_table(truth), hash_table(found), repair=plan.repair)


def state_of(result: PartResult) -> str:
    """Return how a part came about."""
    return result.state


def join_parts(results: list[PartResult]) -> PartResult:
    """Return some parts as one, which may still be a part of the whole."""
    return PartResult(merge([result.value for result in results], complete=False), "joined")


def error_in_seeing(folder: PartsFolder) -> InputError | None:
    """Return what keeps this process from using the folder of parts."""
    try:
        folder.check_seen()
    except InputError as error:
        return error
    return None

"""Calls of the kernel: valid ones recorded while probox works on small tables, then changed argument by argument."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.strategies import with_box_masks

import probox
from probox import Convention, Detections, GroundTruth, _core
from probox.formats.coco import write_coco_results
from probox.formats.rvc1_detections import write_rvc1
from probox.measures.pdq.kernel import heatmap, pair_tables
from probox.tables.label_probs import LabelProbs

from . import seeds
from .hostile import FLOATS, hostile_array, hostile_value
from .mutate import NUMBERS, mutate_bytes

__all__ = ["FUNCTIONS", "REFUSALS", "Call", "make_call", "recorded_calls", "use_call"]

REFUSALS = (ValueError, TypeError, IndexError, OverflowError, MemoryError, _core.TooManyPairsError)
"""What a call with hostile arguments may raise."""

FUNCTIONS = sorted(
    name
    for name in dir(_core)
    if not name.startswith("_") and callable(getattr(_core, name)) and name != "TooManyPairsError"
)

MOST = 8
"""How many recorded calls of a function are kept."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A function or class of the kernel and its arguments, of which some may be calls of classes."""

    name: str
    given: tuple[Any, ...]
    named: dict[str, Any]

    def run(self, before: Callable[[], None] = lambda: None) -> Any:
        """Make the objects that it takes, do what is wanted before it, and call it."""
        given = [_made(value) for value in self.given]
        named = {name: _made(value) for name, value in self.named.items()}
        before()
        return getattr(_core, self.name)(*given, **named)


def _made(value: Any) -> Any:
    return value.run() if isinstance(value, Call) else value


# --- valid calls ---


@contextlib.contextmanager
def _recording(calls: dict[str, list[Call]]) -> Iterator[None]:
    """Keep what the kernel is called with."""
    made: list[tuple[Any, Call]] = []

    def copied(value: Any) -> Any:
        for thing, call in made:
            if thing is value:
                return call
        if isinstance(value, list):
            return [copied(entry) for entry in value]
        return np.array(value) if isinstance(value, np.ndarray) else value

    def wrapped(name: str) -> Callable[..., Any]:
        function = getattr(_core, name)

        def call(*given: Any, **named: Any) -> Any:
            kept = Call(name, tuple(map(copied, given)), {key: copied(value) for key, value in named.items()})
            if len(calls.setdefault(name, [])) < MOST:
                calls[name].append(kept)
            result = function(*given, **named)
            if isinstance(function, type):
                made.append((result, kept))
            return result

        return call

    with contextlib.ExitStack() as stack:
        for name in FUNCTIONS:
            stack.enter_context(patch.object(_core, name, wrapped(name)))
        yield


@cache
def recorded_calls() -> dict[str, list[Call]]:
    """Return valid calls of every function and class of the kernel."""
    calls: dict[str, list[Call]] = {}
    with _recording(calls):
        with tempfile.TemporaryDirectory() as folder:
            _read_and_write(Path(folder))
        _evaluate()
        _call_directly()
    return calls


def _read_and_write(folder: Path) -> None:
    files: dict[str, bytes] = {
        "truth.json": json.dumps(seeds.TRUTH).encode(),
        "results.json": json.dumps(seeds.RESULTS).encode(),
        "rvc1.json": json.dumps(seeds.RVC1_HEATMAPS).encode(),
        **{name: seeds.npy(array) for name, array in seeds.heatmaps().items()},
        **{f"challenge/{name}": data for name, data in seeds.challenge_files().items()},
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    truth = probox.read_truth(folder / "truth.json")
    probox.read_truth(folder / "challenge")
    for name in ("results.json", "rvc1.json"):
        found = probox.read_detections(folder / name, truth)
        probox.evaluate(truth, found, threads=1).summary()
        probox.evaluate(truth, found, convention="paper", background="mask", assignment="greedy", threads=2)
        if name == "results.json":  # which has no heatmaps
            write_coco_results(folder / "written.json", found, truth)
        write_rvc1(folder / "written.json", found, truth)
        pair_tables(truth, found, Convention(), 0)


def _evaluate() -> None:
    """Evaluate enough rows that sorting and assignment take the ways of large tables."""
    rng = np.random.default_rng(3)

    def boxes(count: int) -> np.ndarray:
        corners = rng.uniform(0, 30, (count, 2))
        return np.concatenate([corners, corners + rng.uniform(2, 12, (count, 2))], axis=1)

    truth = GroundTruth.from_boxes(
        ["cup", "dog"], {1: (48, 40), 2: (64, 44)}, [1] * 20 + [2] * 4, boxes(24), [0, 1] * 12
    )
    scores = rng.uniform(0.05, 0.95, 48).round(1)
    found = Detections(
        classes=["cup", "dog"], image_ids=[1] * 40 + [2] * 8, boxes=boxes(48),
        label_probs=np.stack([scores, 1 - scores], axis=1), covariances=np.tile(np.eye(2) * 2 + 0.5, (48, 2, 1, 1)),
    )  # fmt: skip
    masked = with_box_masks(truth, found)
    for measures in (("map-mask",), ("pdq", "map", "lrp"), ("pmb-nll",)):
        probox.evaluate(truth, masked, measures=measures, threads=2).summary()
    box, covariance = found.boxes[0], found.covariances
    assert covariance is not None
    heatmap(box, covariance[0], 48, 40, Convention())
    heatmap(box, None, 48, 40, Convention.preset("paper"))


def _call_directly() -> None:
    """Call what a few tables do not lead to."""
    rng = np.random.default_rng(4)
    boxes = np.sort(rng.uniform(0, 20, (24, 2, 2)), axis=1).reshape(24, 4)
    groups, order = np.arange(24) % 3, rng.permutation(24)
    label_probs = rng.dirichlet((1.0, 1.0, 1.0), 24)
    _core.cluster_sequentially(boxes, 0.3, labels=groups, label_probs=label_probs, label_similarity=0.5)
    stands_for = _core.suppress(boxes, groups, order, 0.3)
    survivors = np.flatnonzero(stands_for == np.arange(24))
    _core.members_of_survivors(boxes=boxes, groups=groups, stands_for=stands_for, survivors=survivors, iou=0.3)
    costs = rng.normal(0, 3, (6, 8))
    costs[2, 3] = np.inf
    _core.k_best_assignments(costs, rng.normal(0, 3, 6), 9)
    rows = {
        "order": order, "offsets": np.array([0, 10, 10, 24]), "image_rows": (np.arange(24) % 4).astype(np.int32),
        "scores": rng.random(24).round(1), "right": (np.arange(24) % 3).astype(np.uint16),
        "wrong": (np.arange(24) % 2).astype(np.uint16) * 1023, "object_offsets": np.array([0, 3, 5, 9]),
        "object_images": (np.arange(9) % 4).astype(np.int32), "weights": rng.integers(0, 3, (5, 4)), "threads": 2,
    }  # fmt: skip
    _core.resampled_precision(**rows, thresholds=10, recall_points=np.linspace(0, 1, 11))  # type: ignore[arg-type]
    _core.resampled_lrp(**rows, errors=rng.random(24), score_thresholds=np.linspace(0, 1, 7), slack=0.5)  # type: ignore[arg-type]
    matrix = np.zeros((9, 3), np.float32)
    _core.fill_rows_of_integers(matrix, first=1, columns=[np.arange(7, dtype=np.int32)] * 3, divisor=7.0, threads=2)
    _core.fill_rows_of_floats(matrix, first=0, columns=[rng.random(9).astype(np.float32)] * 3, divisor=1.0, threads=2)
    scores, labels = rng.random(9), np.arange(9, dtype=np.int32) % 4
    for label_probs in (LabelProbs.from_scores(scores, labels, 12), LabelProbs(rng.random((9, 4)))):
        table = label_probs.table
        _core.row_ranges(table)
        _core.best_labels(table)
        _core.label_values(table, np.arange(9), labels.astype(np.int64))
        _core.expand_labels(table)
    _core.read_file(0, 3, 2)
    _core.bivariate_cdf(0.5, -1.5, 0.95)
    _core.normal_cdf_table(0.25)
    _core.use_instruction_set(_core.instruction_sets()[0])


# --- changed calls ---

LARGE = (2**20, 2**40)


def make_call(rng: Random) -> dict[str, bytes]:
    """Return the file that says which call is made; the seed in it decides everything about its arguments."""
    return {"file": f"{rng.choice(FUNCTIONS)} {rng.randrange(2**62)}".encode()}


def use_call(path: Path) -> None:
    """Make the call that a file says; its result is read to the last byte."""
    name, seed = path.read_text().split()
    rng = Random(int(seed))
    _core.use_instruction_set(rng.choice(_core.instruction_sets()))
    call = _copied(rng.choice(recorded_calls()[name]))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        call = _changed(rng, call)
    late = rng.random() < 0.15
    with contextlib.suppress(*REFUSALS), np.errstate(all="ignore"):
        _read(call.run(lambda: _change_in_place(rng, call) if late else None))


def _read(result: Any) -> None:
    for value in result.values() if isinstance(result, dict) else result if isinstance(result, tuple) else ():
        _read(value)
    if isinstance(result, np.ndarray):
        assert len(result.tobytes()) == result.nbytes


def _changed(rng: Random, call: Call) -> Call:
    """Return a call of which one argument is another."""
    places: list[int | str] = [*range(len(call.given)), *call.named]
    if not places:
        return Call(call.name, (_hostile(rng, 0),), {})
    place = rng.choice(places)
    given, named = list(call.given), dict(call.named)
    holder: Any = given if isinstance(place, int) else named
    holder[place] = _hostile(rng, holder[place])
    if isinstance(place, str) and rng.random() < 0.02:
        del named[place]
    return Call(call.name, tuple(given), named)


def _hostile(rng: Random, value: Any) -> Any:
    if isinstance(value, Call):
        return _changed(rng, value) if rng.random() < 0.97 else rng.choice((None, 1, value.name))
    if rng.random() < 0.02:
        return rng.choice((None, [], "x", b"", object(), 1.5, np.zeros(3)))
    if isinstance(value, np.ndarray):
        return _hostile_array(rng, value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((int(rng.choice(NUMBERS)), rng.randrange(-2, 40), value + 1, -value))
    if isinstance(value, float):
        return rng.choice((float(rng.choice(FLOATS)), value + 0.1, -value))
    if isinstance(value, bytes):
        return mutate_bytes(rng, value)
    if isinstance(value, list):
        changed = [*value, *value[: rng.randrange(2)]][: rng.choice((0, 1, None, None, None))]
        if changed:
            at = rng.randrange(len(changed))
            changed[at] = _hostile(rng, changed[at])
        return changed
    return rng.choice(("", "x" * 300, "\ud800", *_core.instruction_sets())) if isinstance(value, str) else value


def _hostile_array(rng: Random, array: np.ndarray) -> np.ndarray:
    """Return an array that is hostile by what it holds, or by where and how it lies in memory."""
    if len(array) > array.size + 1000:  # rows without columns, made here before
        return array
    kind = rng.randrange(16)
    if kind == 0:
        return _misaligned(array)
    if kind == 1:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if kind == 2:
        return array[::-1]
    if kind == 3:
        return np.broadcast_to(array[:1], array.shape)
    if kind == 4:
        return array.astype(array.dtype.newbyteorder())
    if kind == 5:
        locked = array.copy()
        locked.flags.writeable = False
        return locked
    if kind == 6:
        shape = [rng.choice((1, side)) for side in array.shape]
        shape[rng.randrange(len(shape))] = rng.choice(LARGE)
        shape[rng.randrange(len(shape))] = 0
        return np.zeros(shape if 0 in shape else 0, array.dtype)
    if kind == 7 and array.dtype == bool:
        return np.full(array.shape, 2 + rng.randrange(200), np.uint8).view(bool)
    if kind == 8 and len(array):
        return np.concatenate([array] * rng.choice((2, 5)))
    changed = hostile_array(rng, array)
    return _misaligned(changed) if rng.random() < 0.1 else changed


def _misaligned(array: np.ndarray) -> np.ndarray:
    """Return the same numbers at an address that is no multiple of their size."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    moved = memory[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def _change_in_place(rng: Random, call: Call) -> None:
    """Change an array that the kernel's objects hold already."""
    arrays = [
        value for value in _leaves(call) if isinstance(value, np.ndarray) and value.flags.writeable and value.size
    ]
    if arrays:
        array = rng.choice(arrays)
        array[tuple(rng.randrange(side) for side in array.shape)] = hostile_value(rng, array.dtype)


def _copied(value: Any) -> Any:
    if isinstance(value, Call):
        given = tuple(map(_copied, value.given))
        return Call(value.name, given, {name: _copied(part) for name, part in value.named.items()})
    return value.copy() if isinstance(value, np.ndarray) else value


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Call):
        for part in (*value.given, *value.named.values()):
            yield from _leaves(part)
    else:
        yield value

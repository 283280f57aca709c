"""Analyses whose pieces are worked out elsewhere, in another order: the same to the bit."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.amounts import others_slow
from tests.worlds import boxes_truth, simulated

from probox import Detections, Evaluation, GroundTruth, compare, evaluate
from probox.analysis.diagnosis import diagnose
from probox.calibration import Fitted, fit
from probox.errors import InputError


class Elsewhere:
    """Does pieces as another process would, the last first: all that it is given and returns is sent as bytes."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self.pieces: list[str] = []

    def __call__(self, function: Callable[..., Any], items: Sequence[Any], /, *shared: Any) -> Iterator[Any]:
        there = pickle.loads(pickle.dumps((function, shared)))
        self.pieces += [function.__name__] * len(items)
        found = [pickle.dumps(there[0](pickle.loads(pickle.dumps(item)), *there[1])) for item in reversed(items)]
        return iter([pickle.loads(one) for one in reversed(found)])


World = tuple[GroundTruth, dict[str, Detections], dict[str, Evaluation]]


@pytest.fixture(scope="module")
def world() -> World:
    truth = boxes_truth(40)
    found = {
        "one": simulated(truth, false_per_image=1, miss_rate=0.1),
        "two": simulated(truth, seed=3, sigma=6.0, reported=7.0),
    }
    return truth, found, {name: evaluate(truth, own) for name, own in found.items()}


def in_bits(value: Any) -> Any:
    """Return a result with numbers that are equal only if every bit is; NaN too."""
    if isinstance(value, dict):
        return {key: in_bits(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [in_bits(one) for one in value]
    return float(value).hex() if isinstance(value, float | np.floating) else value


def fitted_bits(fitted: Fitted) -> Any:
    assert fitted.gain is not None
    assert fitted.held_out is not None
    table = fitted.held_out
    arrays = [table.boxes, table.covariances, table.label_probs, table.scores]
    changes = [dataclasses.asdict(c) for c in (*fitted.gain.changes.values(), *fitted.gain.over_constant.values())]
    return in_bits([fitted.calibration.to_json(), changes, list(fitted.notes), [array.tobytes() for array in arrays]])


@pytest.mark.parametrize("at_once", others_slow([3, 1, 64]))
def test_intervals_and_comparisons(world: World, at_once: int) -> None:
    _, _, results = world
    elsewhere = Elsewhere(at_once)
    there = results["one"].intervals("all", replicates=20, mapper=elsewhere)
    assert in_bits(there.to_dict()) == in_bits(results["one"].intervals("all", replicates=20).to_dict())
    assert len(elsewhere.pieces) == min(at_once, 20)
    there, here = (compare(results, per_class=True, replicates=20, **more) for more in ({"mapper": elsewhere}, {}))
    assert in_bits(there.to_dict()) == in_bits(here.to_dict())
    assert {"_drawn_numbers", "_swapped_numbers"} < set(elsewhere.pieces)


def test_diagnoses(world: World) -> None:
    _, _, results = world
    elsewhere = Elsewhere(4)
    choices: dict[str, Any] = {"replicates": 20, "thresholds_for": ["lrp"]}
    there, here = (diagnose(results["one"], **choices, **more) for more in ({"mapper": elsewhere}, {}))
    assert in_bits(there.to_dict()) == in_bits(here.to_dict())
    assert len(elsewhere.pieces) >= 14


def test_diagnoses_of_plain_boxes_and_of_nothing(world: World) -> None:
    truth, found, _ = world
    for own in (found["one"].replace(covariances=None), found["one"].select(np.zeros(len(found["one"]), bool))):
        result = evaluate(truth, own)
        there, here = (diagnose(result, replicates=20, **more) for more in ({"mapper": Elsewhere(4)}, {}))
        assert in_bits(there.to_dict()) == in_bits(here.to_dict())


@pytest.mark.parametrize("method", ["scale", "isotonic", "constant"])
def test_calibrations(world: World, method: str) -> None:
    truth, found, _ = world
    elsewhere = Elsewhere(4)
    choices: dict[str, Any] = {"method": method, "labels": "temperature", "resamples": 50, "folds": 3}
    there, here = (fit(truth, found["one"], **choices, **more) for more in ({"mapper": elsewhere}, {}))
    assert fitted_bits(there) == fitted_bits(here)
    fits = {"scale": 2, "isotonic": 4 + 1, "constant": 1}[method]
    assert elsewhere.pieces.count("fitted") == fits
    assert elsewhere.pieces.count("_parts_of") == 12 * (2 if method == "constant" else 3)


def test_a_fit_that_cannot_be_made(world: World) -> None:
    truth, found, _ = world
    for mapper in ({}, {"mapper": Elsewhere(4)}):
        with pytest.raises(InputError, match="nothing to fit a sigma to"):
            fit(truth, found["one"].select(np.zeros(len(found["one"]), bool)), **mapper)
    # Objects are found in one image alone: the whole suffices, but not without its fold.
    first = found["one"].select(found["one"].image_ids == truth.image_ids[0])
    notes = [fit(truth, first, folds=3, **mapper).notes for mapper in ({}, {"mapper": Elsewhere(4)})]
    assert notes[0] == notes[1]
    assert "no gain can be told: without the images of one fold" in notes[0][-1]


@pytest.mark.parametrize("more", [{}, {"mapper": Elsewhere(4)}], ids=["here", "elsewhere"])
def test_progress_counts_all_of_them(world: World, more: dict[str, Any]) -> None:
    truth, found, results = world
    steps: list[tuple[int, int]] = []
    fit(truth, found["one"], folds=3, progress=lambda *step: steps.append(step), **more)
    assert steps == [(n, 7) for n in range(1, 8)]
    one_by_one = Elsewhere(1)  # so that progress is told after each
    fit(truth, found["one"], folds=3, mapper=one_by_one)
    assert one_by_one.pieces.count("fitted") == 7
    compare(results, replicates=20, progress=lambda *step: steps.append(step), **more)
    assert steps[-1] == (40, 40)

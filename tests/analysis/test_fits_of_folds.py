"""Fits without one fold each: progress, and those that cannot be made."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds import boxes_truth, simulated

from probox import Detections, GroundTruth, compare, evaluate
from probox.calibration import fit
from probox.errors import InputError

World = tuple[GroundTruth, Detections]


@pytest.fixture(scope="module")
def world() -> World:
    truth = boxes_truth(40)
    return truth, simulated(truth, false_per_image=1, miss_rate=0.1)


def test_a_fit_that_cannot_be_made(world: World) -> None:
    truth, found = world
    with pytest.raises(InputError, match="nothing to fit a sigma to"):
        fit(truth, found.select(np.zeros(len(found), bool)))
    # Objects are found in one image alone: the whole suffices, but not without its fold.
    first = found.select(found.image_ids == truth.image_ids[0])
    assert fit(truth, first, folds=3).notes[-1].code == "no-gain-of-folds"


def test_progress_counts_all_of_them(world: World) -> None:
    truth, found = world
    steps: list[tuple[int, int]] = []
    fit(truth, found, folds=3, progress=lambda *step: steps.append(step))
    assert steps == [(n, 7) for n in range(1, 8)]
    other = simulated(truth, seed=3, sigma=6.0, reported=7.0)
    results = {"one": evaluate(truth, found), "two": evaluate(truth, other)}
    compare(results, replicates=20, progress=lambda *step: steps.append(step))
    assert steps[-1] == (40, 40)

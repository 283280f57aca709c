"""Every instruction set that the loops over pixels are compiled for gives the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from benchmarks.workloads import jittered, simulated_truth
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_covariance, random_world

from probox import Convention, Detections, GroundTruth, _core
from probox.measures.pdq.kernel import heatmap, score_pairs

SETS = _core.instruction_sets()


@pytest.fixture(autouse=True)
def best_afterwards() -> Iterator[None]:
    yield
    _core.use_instruction_set(SETS[0])


def with_each(compute: Callable[[], np.ndarray]) -> list[bytes]:
    """Return the bytes of what `compute` returns under each instruction set."""
    results = []
    for name in SETS:
        _core.use_instruction_set(name)
        results.append(np.ascontiguousarray(compute()).tobytes())
    return results


def test_plain_loops_are_everywhere_and_come_last() -> None:
    assert SETS[-1] == "portable"
    assert set(SETS) <= {"avx512", "avx2", "baseline", "portable"}


def test_the_best_one_is_used_and_another_can_be_chosen() -> None:
    assert _core.use_instruction_set("portable") == SETS[0]
    assert _core.use_instruction_set(SETS[0]) == "portable"
    with pytest.raises(ValueError, match="lacks that instruction set"):
        _core.use_instruction_set("abacus")


@pytest.mark.parametrize("preset", ["reference", "paper"])
@examples(60)
@given(seed=st.integers(0, 2**32 - 1))
def test_heatmaps_have_the_same_bits(preset: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    width, height = (int(n) for n in rng.integers(1, 150, 2))
    x, y = np.sort(rng.uniform(-20, width + 20, 2)), np.sort(rng.uniform(-20, height + 20, 2))
    covariances = np.stack([random_covariance(rng), random_covariance(rng)])
    convention = Convention.preset(preset)
    results = with_each(lambda: heatmap([x[0], y[0], x[1], y[1]], covariances, width, height, convention))
    assert len(set(results)) == 1


@pytest.mark.parametrize("preset", ["reference", "paper"])
@pytest.mark.parametrize("changes", [{}, {"background": "mask"}, {"epsilon": 1e-30}, {"single_precision": False}])
@examples(15)
@given(seed=st.integers(0, 2**32 - 1))
def test_qualities_of_pairs_have_the_same_bits(preset: str, changes: dict[str, object], seed: int) -> None:
    truth, found = random_world(seed)
    convention = Convention.preset(preset, **changes).for_rules("coco")
    order = np.argsort(truth.dataset.rows_of(found.image_ids), kind="stable")
    results = with_each(lambda: score_pairs(truth, truth.masks, found.select(order), convention).qualities)
    assert len(set(results)) == 1


def large_boxes(kind: str) -> tuple[GroundTruth, Detections]:
    truth = simulated_truth(4)
    return truth, jittered(truth, kind, per_image=20)


@pytest.mark.parametrize("kind", ["plain", "diagonal", "full"])
def test_large_boxes_have_the_same_bits(kind: str) -> None:
    truth, found = large_boxes(kind)
    convention = Convention().for_rules("coco")
    results = with_each(lambda: score_pairs(truth, truth.masks, found, convention).qualities)
    assert len(set(results)) == 1
    assert len(results[0]) > 8 * 5 * 50

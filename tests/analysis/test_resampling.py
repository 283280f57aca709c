"""Replicates in blocks: the same random numbers and the same bits, however they are cut and wherever they are made."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds import boxes_truth, simulated

from probox import Evaluation, evaluate
from probox.analysis import resampling
from probox.analysis.resampling import (
    DRAWS,
    MORE_SWAPS,
    SWAPS,
    Block,
    blocks_of,
    drawn_block,
    drawn_images,
    swapped_block,
    swapped_images,
)
from probox.measures.measure import Measure
from probox.measures.registry import MEASURES

SIZES = [2, 3, 12, 77, 1000]


def drawn_at_once(images: int, replicates: int, seed: int) -> np.ndarray:
    chosen = np.random.default_rng([seed, DRAWS]).integers(0, images, (replicates, images))
    return np.stack([np.bincount(row, minlength=images) for row in chosen])


@pytest.mark.parametrize("images", SIZES)
def test_draws_are_those_of_one_stream(images: int) -> None:
    whole = drawn_at_once(images, 23, 5)
    np.testing.assert_array_equal(np.concatenate(list(drawn_images(images, 23, 5))), whole)
    blocks = [Block(0, 1), Block(1, 4), Block(4, 5), Block(5, 16), Block(16, 23)]
    for order in (blocks, blocks[::-1], [blocks[2], blocks[4], blocks[2], blocks[3], blocks[0]]):
        for block in order:
            np.testing.assert_array_equal(drawn_block(block, images, 5), whole[block.start : block.stop])
    # Another seed, and another number of images, go on nowhere else.
    np.testing.assert_array_equal(drawn_block(Block(4, 6), images, 6), drawn_at_once(images, 6, 6)[4:])
    np.testing.assert_array_equal(drawn_block(Block(6, 8), images + 1, 6), drawn_at_once(images + 1, 8, 6)[6:])


@pytest.mark.parametrize("images", SIZES)
@pytest.mark.parametrize("what_for", [SWAPS, MORE_SWAPS])
def test_swaps_are_those_of_one_stream(images: int, what_for: int) -> None:
    whole = np.random.default_rng([5, what_for]).random((23, images)) < 0.5
    np.testing.assert_array_equal(np.concatenate(list(swapped_images(images, 23, 5, what_for))), whole)
    for block in (Block(0, 1), Block(7, 20), Block(1, 7), Block(22, 23)):
        np.testing.assert_array_equal(swapped_block(block, images, 5, what_for), whole[block.start : block.stop])


def test_an_interruption_leaves_no_half_drawn_block(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn_block(Block(0, 3), 40, 0)
    with monkeypatch.context() as patch:
        patch.setattr(resampling.np, "arange", lambda *_: 1 / 0)  # after the numbers were taken
        with pytest.raises(ZeroDivisionError):
            drawn_block(Block(3, 5), 40, 0)
    np.testing.assert_array_equal(drawn_block(Block(5, 6), 40, 0), drawn_at_once(40, 6, 0)[5:])


@pytest.mark.parametrize(
    ("replicates", "images", "at_least", "expected"),
    [
        (1000, 10, 1, [(0, 1000)]),
        (10, 10, 4, [(0, 3), (3, 6), (6, 9), (9, 10)]),
        (3, 10, 8, [(0, 1), (1, 2), (2, 3)]),
        (5, 2_000_000, 1, [(0, 2), (2, 4), (4, 5)]),
        (0, 10, 3, []),
    ],
)
def test_blocks(replicates: int, images: int, at_least: int, expected: list[tuple[int, int]]) -> None:
    assert blocks_of(replicates, images, at_least) == expected


@pytest.fixture(scope="module")
def measured() -> Evaluation:
    truth = boxes_truth(67)
    return evaluate(truth, simulated(truth, false_per_image=1, miss_rate=0.1), measures="all")


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_a_replicate_does_not_depend_on_others(measured: Evaluation, measure: Measure) -> None:
    assert measure.resampled is not None
    weights = drawn_block(Block(0, 12), len(measured.dataset), 0)
    whole = measure.resampled(measured, weights)
    for cuts in ([1, 2, 3], [5], [4, 8], [11]):
        parts = [measure.resampled(measured, part) for part in np.split(weights, cuts)]
        for key, values in whole.items():
            np.testing.assert_array_equal(np.concatenate([part[key] for part in parts]), values, err_msg=key)

"""Random draws and swaps: uniform, independent, and the same however replicates are cut into blocks."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds import boxes_truth, simulated

from probox import Evaluation, evaluate
from probox.analysis.resampling import (
    DRAWS,
    SWAPS,
    Block,
    cut_blocks,
    draw_block,
    draw_images,
    random_words,
    stream_key,
    swap_block,
)
from probox.measures.measure import Measure
from probox.measures.registry import MEASURES

SIZES = [2, 3, 12, 77, 1000]
SEEDS = [0, 1, 2, 2**32, 2**70 + 1]


def test_words_are_those_of_the_definition() -> None:
    def mix(word: int) -> int:
        word = (word ^ word >> 16) * 0x7FEB352D % 2**32
        word = (word ^ word >> 15) * 0x846CA68B % 2**32
        return word ^ word >> 16

    def step(key: int, number: int) -> int:
        return mix(key ^ mix((number + 0x9E3779B9) % 2**32))

    key = step(step(SWAPS, 7), 5)  # a seed of two words
    assert stream_key(5 * 2**32 + 7, SWAPS) == key
    words = random_words(key, Block(998, 1001), 50)
    assert words.tolist() == [[step(step(key, r), image) for image in range(50)] for r in range(998, 1001)]
    # These are on the page, too: a change moves every interval.
    assert random_words(stream_key(0, DRAWS), Block(0, 1), 3).tolist() == [[725753817, 2820623602, 2774981801]]


@pytest.mark.parametrize("images", SIZES)
def test_draws_and_swaps_do_not_depend_on_blocks(images: int) -> None:
    drawn, swapped = draw_block(Block(0, 23), images, 5), swap_block(Block(0, 23), images, 5)
    np.testing.assert_array_equal(np.concatenate(list(draw_images(images, 23, 5))), drawn)
    for block in (Block(16, 23), Block(0, 1), Block(7, 20), Block(1, 7), Block(22, 23)):
        np.testing.assert_array_equal(draw_block(block, images, 5), drawn[block.start : block.stop])
        np.testing.assert_array_equal(swap_block(block, images, 5), swapped[block.start : block.stop])
    assert (drawn.sum(axis=1) == images).all()


def z_of_chi_square(counts: np.ndarray) -> float:
    """Return by how many standard deviations counts that should be equal differ from it."""
    expected, degrees = counts.mean(), counts.size - 1
    return float((((counts - expected) ** 2).sum() / expected - degrees) / np.sqrt(2 * degrees))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("images", [2, 7, 206, 1000])
def test_every_image_is_drawn_and_swapped_as_often(images: int, seed: int) -> None:
    drawn, swapped = draw_block(Block(0, 4000), images, seed), swap_block(Block(0, 4000), images, seed)
    assert abs(z_of_chi_square(drawn.sum(axis=0))) < 4.5
    squares = (swapped.sum(axis=0) - 2000) ** 2 / 1000  # a binomial's variance is 4000 / 4
    assert abs((squares.sum() - images) / np.sqrt(2 * images)) < 4.5
    # An image is drawn k times as often as the binomial distribution has it: left out with (1 - 1/n)^n.
    left_out = (1 - 1 / images) ** images
    assert abs((drawn == 0).mean() - left_out) < 4.5 * np.sqrt(left_out * (1 - left_out) / drawn.size)
    assert abs(swapped.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(swapped.size)


@pytest.mark.parametrize("seed", SEEDS)
def test_replicates_images_seeds_and_streams_are_independent(seed: int) -> None:
    block, images = Block(0, 2000), 200
    words = random_words(stream_key(seed, DRAWS), block, images)
    others = {
        "next replicate": (words[:-1], words[1:]),
        "replicate after 64": (words[:-64], words[64:]),
        "next image": (words[:, :-1], words[:, 1:]),
        "diagonal": (words[:-1, :-1], words[1:, 1:]),
        "antidiagonal": (words[:-1, 1:], words[1:, :-1]),
        "next seed": (words, random_words(stream_key(seed + 1, DRAWS), block, images)),
        "other stream": (words, random_words(stream_key(seed, SWAPS), block, images)),
    }
    for name, (one, other) in others.items():
        a, b = one.ravel(), other.ravel()
        together = np.bincount((a >> 28).astype(np.int64) * 16 + (b >> 28).astype(np.int64), minlength=256)
        assert abs(z_of_chi_square(together)) < 4.5, name
        assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / np.sqrt(len(a)), name
        bits = np.unpackbits((a ^ b).view(np.uint8)).reshape(len(a), 32).mean(axis=0)
        assert np.abs(bits - 0.5).max() < 5 * 0.5 / np.sqrt(len(a)), name


@pytest.mark.parametrize(
    ("replicates", "images", "expected"),
    [(1000, 10, [(0, 1000)]), (5, 2_000_000, [(0, 2), (2, 4), (4, 5)]), (0, 10, [])],
)
def test_blocks(replicates: int, images: int, expected: list[tuple[int, int]]) -> None:
    assert cut_blocks(replicates, images) == expected


@pytest.fixture(scope="module")
def measured() -> Evaluation:
    truth = boxes_truth(67)
    return evaluate(truth, simulated(truth, false_per_image=1, miss_rate=0.1), measures="all")


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_a_replicate_does_not_depend_on_others(measured: Evaluation, measure: Measure) -> None:
    assert measure.resampled is not None
    weights = draw_block(Block(0, 12), len(measured.dataset), 0)
    whole = measure.resampled(measured, weights)
    for cuts in ([1, 2, 3], [5], [4, 8], [11]):
        parts = [measure.resampled(measured, part) for part in np.split(weights, cuts)]
        for key, values in whole.items():
            np.testing.assert_array_equal(np.concatenate([part[key] for part in parts]), values, err_msg=key)

"""Who is matched with whom where few of many pairs have a quality: what a table with every cell gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples

from probox import _core


def assign(objects, detections, qualities, *, offsets=None, greedy=False, threads=1) -> np.ndarray:
    return _core.assign_pairs(
        offsets=np.array([0, len(objects)]) if offsets is None else offsets,
        detections=detections,
        objects=objects,
        qualities=qualities,
        greedy=greedy,
        threads=threads,
    )


def make_table(seed: int, objects: int, detections: int) -> np.ndarray:
    """Return qualities of which few are above 0, at least one in each row and column; often many are equal."""
    rng = np.random.default_rng(seed)
    table = rng.random((objects, detections))
    if rng.random() < 0.7:  # sums of 0.1 and 0.2 are rounded, those of quarters are not
        table = (1 + rng.integers(0, 3, table.shape)) / rng.choice([4.0, 10.0])
    if rng.random() < 0.2:
        table = 10.0 ** -rng.integers(0, 300, table.shape)
    kept = rng.random(table.shape) < rng.choice([0.0, 0.02, 0.05])
    kept[np.arange(objects), rng.integers(0, detections, objects)] = True
    kept[rng.integers(0, objects, detections), np.arange(detections)] = True
    return np.where(kept, table, 0.0)


@pytest.mark.parametrize("greedy", [False, True])
@examples(150)
@given(seed=st.integers(0, 2**32 - 1), objects=st.integers(20, 120), detections=st.integers(52, 120))
def test_cells_without_a_pair_need_not_be_seen(greedy, seed, objects, detections):
    table = make_table(seed, objects, detections)
    if seed % 2:
        table = table.T.copy()
    rows, columns = np.nonzero(table)
    apart = 1000 * columns + 5  # numbers need not be close to each other
    matched = assign(rows, apart, table[rows, columns], greedy=greedy)
    all_rows, all_columns = np.divmod(np.arange(table.size), table.shape[1])
    whole = assign(all_rows, all_columns, table.ravel(), greedy=greedy)
    np.testing.assert_array_equal(matched, whole.reshape(table.shape)[rows, columns])


@pytest.mark.parametrize("shape", [(1500, 3000), (3000, 1500)])
@pytest.mark.parametrize("chained", [False, True])
def test_more_cells_than_a_table_may_have(shape, chained):
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(sum(shape))
    rows = np.concatenate([np.arange(shape[0]), np.arange(shape[1]) * shape[0] // shape[1]])
    columns = np.concatenate([np.arange(shape[0]) * shape[1] // shape[0], np.arange(shape[1])])
    if chained:  # all compete with all, by way of others
        rows = np.concatenate([rows, np.arange(shape[0])])
        columns = np.concatenate([columns, (np.arange(shape[0]) + 1) * shape[1] // shape[0] % shape[1]])
    rows, columns = np.unique(np.stack([rows, columns]), axis=1)
    table = np.zeros(shape)
    table[rows, columns] = rng.random(len(rows))
    matched = assign(rows, columns, table[rows, columns])
    assert len(set(rows[matched].tolist())) == len(set(columns[matched].tolist())) == matched.sum()
    best = table[linear_sum_assignment(table, maximize=True)].sum()
    assert table[rows, columns][matched].sum() == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("greedy", [False, True])
def test_images_are_assigned_alike_by_any_number_of_threads(greedy):
    tables = [make_table(seed, 20 + seed % 50, 52 + seed % 30) for seed in range(120)]
    pairs = [np.nonzero(table) for table in tables]
    rows, columns = (np.concatenate([pair[axis] for pair in pairs]) for axis in (0, 1))
    qualities = np.concatenate([table[pair] for table, pair in zip(tables, pairs, strict=True)])
    offsets = np.concatenate([[0], np.cumsum([len(pair[0]) for pair in pairs])])
    assert len(rows) > 3 * 4096
    alone = [assign(*pair, table[pair], greedy=greedy) for table, pair in zip(tables, pairs, strict=True)]
    for threads in (1, 2, 7):
        together = assign(rows, columns, qualities, offsets=offsets, greedy=greedy, threads=threads)
        np.testing.assert_array_equal(together, np.concatenate(alone))


def test_nobody_to_assign():
    nothing = np.zeros(0, np.int64)
    assert assign(nothing, nothing, np.zeros(0), offsets=np.zeros(1, np.int64), threads=4).tolist() == []
    assert assign(nothing, nothing, np.zeros(0), offsets=np.zeros(3, np.int64), threads=4).tolist() == []

"""Label probabilities that a Parquet file leaves out, because class and score say them: found out row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from probox import Detections, _core

pq = pytest.importorskip("pyarrow.parquet")

from tests.readers import read_parquet  # noqa: E402

from probox.formats import write_parquet  # noqa: E402

PIECE = 1 << 16
"""How many rows are looked at together."""


def spread(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, classes and the probabilities that follow from them."""
    rng = np.random.default_rng(1)
    scores, labels = rng.random(count), rng.integers(0, 3, count).astype(np.int32)
    return scores, labels, np.array(_core.spread_scores(scores, labels, 3, 1))


@pytest.mark.parametrize("odd", [None, 0, PIECE - 1, PIECE, PIECE + 1, PIECE + 4])
def test_one_row_that_says_more_brings_all_probabilities(tmp_path: Path, odd: int | None) -> None:
    scores, labels, probs = spread(PIECE + 5)
    if odd is not None:
        probs[odd, (labels[odd] + 1) % 3] = 0.0
    found = Detections(
        classes=["cup", "dog", "car"],
        image_ids=np.arange(len(scores)) // 100,
        boxes=np.tile([1.0, 2.0, 3.0, 4.0], (len(scores), 1)),
        label_probs=probs,
        labels=labels,
        scores=scores,
    )
    write_parquet(tmp_path / "d.parquet", found)
    assert ("prob_0" in pq.read_schema(tmp_path / "d.parquet").names) == (odd is not None)
    again = read_parquet(tmp_path / "d.parquet")
    assert again.label_probs.tobytes() == found.label_probs.tobytes()
    assert again.scores.tobytes() == found.scores.tobytes()


@pytest.mark.parametrize("count", [1, 4095, 4096, 4097, 8193])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_score_is_its_class_s_and_the_others_share_the_rest(count: int, threads: int) -> None:
    rng = np.random.default_rng(count)
    scores, labels = rng.random(count), rng.integers(0, 4, count).astype(np.int32)
    expected = np.repeat((1.0 - scores)[:, None] / 3, 4, axis=1)
    expected[np.arange(count), labels] = scores
    np.testing.assert_array_equal(_core.spread_scores(scores, labels, 4, threads), expected.astype(np.float32))
    np.testing.assert_array_equal(
        _core.spread_scores(scores, labels * 0, 1, threads), scores.astype(np.float32)[:, None]
    )


@pytest.mark.parametrize("label", [-1, 3])
def test_a_class_that_there_is_not_is_refused(label: int) -> None:
    with pytest.raises(ValueError, match="labels must count in columns"):
        _core.spread_scores(np.array([0.5]), np.array([label], np.int32), 3, 1)

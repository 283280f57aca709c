"""PDQ of resampled images: what joined copies of the images' evaluations give."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_world

import probox
from probox import Evaluation
from probox.convention import Convention
from probox.evaluation.merge import merge_evaluations
from probox.measures.measure import Summary
from probox.measures.pdq.pdq_measure import PDQ, pdq_resampled, pdq_summary


def copied(evaluation: Evaluation, counts: list[int]) -> Summary:
    """Return the summary of an evaluation in which image i is there counts[i] times."""
    parts = []
    for image_id, count in zip(evaluation.dataset.image_ids.tolist(), counts, strict=True):
        alone = evaluation.select_images([image_id])
        for _ in range(count):
            dataset = dataclasses.replace(alone.dataset, image_ids=np.array([len(parts)]))
            parts.append(dataclasses.replace(alone, dataset=dataset))
    if not parts:
        return dict.fromkeys(("PDQ", "pPDQ", "spatial", "label", "foreground", "background"), np.nan) | {
            "TP": 0, "FP": 0, "FN": 0,
        }  # fmt: skip
    return pdq_summary(merge_evaluations(parts))


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 3), min_size=4, max_size=4), st.booleans())
@examples(40)
def test_weights_are_copies(seed: int, counts: list[int], by_confidence: bool) -> None:
    truth, found = random_world(seed)
    convention = Convention.preset("reference", confidence_denominator=by_confidence)
    evaluation = probox.evaluate(truth, found, convention=convention, measures=["pdq"])
    n = len(truth.image_ids)
    weights = np.array([counts[:n], [1] * n])
    numbers = pdq_resampled(evaluation, weights)
    assert list(numbers) == [column.key for column in PDQ.columns]
    for row, expected in enumerate((copied(evaluation, counts[:n]), evaluation.summary())):
        got = {key: float(values[row]) for key, values in numbers.items()}
        assert got == pytest.approx(expected, rel=1e-12, nan_ok=True)

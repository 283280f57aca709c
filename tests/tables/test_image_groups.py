"""Rows by image, as the kernel groups them: the same as sorting and searching in NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from probox import Dataset, Detections, _core

ids = st.lists(st.sampled_from([-(2**61), -5, 0, 3, 4, 7, 2**61]), max_size=20).map(lambda x: np.array(x, np.int64))


def detections_of(image_ids: npt.NDArray[np.int64]) -> Detections:
    n = len(image_ids)
    return Detections(classes=["cup"], image_ids=image_ids, boxes=np.ones((n, 4)), label_probs=np.ones((n, 1)))


@given(ids, ids, st.booleans())
def test_as_sorting_says(image_ids: npt.NDArray[np.int64], some: npt.NDArray[np.int64], tidy: bool) -> None:
    known = np.unique(some)
    image_ids = np.sort(image_ids) if tidy else image_ids
    rows, numbers, order, in_order = _core.group_by_image(image_ids, known)
    dataset = Dataset(classes=["cup"], image_ids=known, widths=[9] * len(known), heights=[9] * len(known))
    np.testing.assert_array_equal(rows, dataset.rows_of(image_ids))
    there = np.flatnonzero(rows >= 0)
    np.testing.assert_array_equal(order, there[np.argsort(rows[there], kind="stable")])
    np.testing.assert_array_equal(numbers, np.where(rows >= 0, detections_of(image_ids).numbers_in_image(), -1))
    assert in_order == np.array_equal(order, np.arange(len(image_ids)))
    ascending = rows[order]
    starts = np.searchsorted(ascending, np.arange(len(known) + 1))
    np.testing.assert_array_equal(dataset.offsets(ascending), starts)
    assert dataset.offsets(ascending).dtype == np.int64

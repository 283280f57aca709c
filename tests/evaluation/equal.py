"""When two evaluations are the same."""

from __future__ import annotations

import numpy as np

from probox import Evaluation

TABLES = ("dataset", "objects", "detections", "pairs", "overlaps")


def assert_equal(one: Evaluation, other: Evaluation, rtol: float = 0.0) -> None:
    """Assert that two evaluations are the same: tables, masks, convention and numbers, unless told to the last bit."""
    assert one.convention == other.convention
    assert one.classes == other.classes
    for table in TABLES:
        mine, theirs = getattr(one, table).columns(), getattr(other, table).columns()
        assert mine.keys() == theirs.keys()
        for name, column in mine.items():
            if isinstance(column, np.ndarray):
                assert column.dtype == theirs[name].dtype, (table, name)
            if isinstance(column, np.ndarray) and column.dtype == np.float64:
                np.testing.assert_allclose(column, theirs[name], rtol=rtol, atol=0, err_msg=f"{table}.{name}")
            else:
                np.testing.assert_array_equal(column, theirs[name], err_msg=f"{table}.{name}")
    for name in ("boxes", "pixels", "offsets", "runs"):
        np.testing.assert_array_equal(getattr(one.masks, name), getattr(other.masks, name))
    mine, theirs = one.summary(), other.summary()
    assert mine.keys() == theirs.keys()
    np.testing.assert_allclose([*mine.values()], [*theirs.values()], rtol=rtol, atol=0)

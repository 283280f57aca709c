"""When two evaluations are the same."""

from __future__ import annotations

import numpy as np

from probox import Evaluation

TABLES = ("dataset", "objects", "detections", "pairs")


def assert_equal(one: Evaluation, other: Evaluation) -> None:
    """Assert that two evaluations are the same to the last bit: tables, masks, convention and numbers."""
    assert one.convention == other.convention
    assert one.classes == other.classes
    for table in TABLES:
        mine, theirs = getattr(one, table).columns(), getattr(other, table).columns()
        assert mine.keys() == theirs.keys()
        for name, column in mine.items():
            if isinstance(column, np.ndarray):
                assert column.dtype == theirs[name].dtype, (table, name)
            np.testing.assert_array_equal(column, theirs[name], err_msg=f"{table}.{name}")
    for name in ("boxes", "pixels", "offsets", "runs"):
        np.testing.assert_array_equal(getattr(one.masks, name), getattr(other.masks, name))
    np.testing.assert_equal(one.summary(), other.summary())

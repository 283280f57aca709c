"""Columns as data frames of other libraries, which are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.support.optional import require

__all__ = ["LIBRARIES", "arrow_table", "data_frame", "missing"]

LIBRARIES = ("pandas", "polars")
"""Libraries of data frames, the first one that is installed being taken where nobody says which."""

Columns = Mapping[str, npt.NDArray[Any]]


def data_frame(columns: Columns, library: str | None = None) -> Any:
    """Return columns as a data frame; texts are object arrays, whole numbers that may be missing masked arrays.

    Parameters
    ----------
    columns : mapping of str to array
        Columns of equal length. NaN, masked numbers and None are missing: nulls, where the library knows them.
    library : {"pandas", "polars"}, optional
        Default: pandas if it is installed, else polars.
    """
    if library is not None and library not in LIBRARIES:
        known = " or ".join(map(repr, LIBRARIES))
        raise InputError(f"expected library to be {known}, but got {library!r:.40}", remedy="use to_arrow() for others")
    for name in (library,) if library else LIBRARIES:
        try:
            return (_pandas if name == "pandas" else _polars)(import_module(name), columns)
        except ImportError:
            continue
    if library:
        raise InputError(
            f"a data frame needs {library}, which cannot be imported", remedy=f"install it with: pip install {library}"
        )
    raise InputError(
        "a data frame needs pandas or polars", remedy="install one with: pip install pandas (or: pip install polars)"
    )


def arrow_table(columns: Columns) -> Any:
    """Return columns as a table of Arrow; what is missing is null."""
    pa = require("pyarrow", extra="parquet", purpose="a table of Arrow needs")
    arrays = {}
    for name, values in columns.items():
        if values.dtype == object:
            arrays[name] = pa.array(values.tolist(), pa.string())
        else:
            arrays[name] = pa.array(np.ma.getdata(values), mask=missing(values))
    return pa.table(arrays)


def missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return where a column has no value."""
    if values.dtype == object:
        return np.fromiter((value is None for value in values), bool, len(values))
    if np.issubdtype(values.dtype, np.floating):
        return np.asarray(np.isnan(values))
    return np.ma.getmaskarray(values)


def _pandas(pd: Any, columns: Columns) -> Any:
    def made(values: npt.NDArray[Any]) -> Any:
        if isinstance(values, np.ma.MaskedArray):
            whole = np.ma.getdata(values).astype(np.int64)
            return pd.arrays.IntegerArray(whole, np.ma.getmaskarray(values).copy())
        return values

    return pd.DataFrame({name: made(values) for name, values in columns.items()}, copy=True)


def _polars(pl: Any, columns: Columns) -> Any:
    def made(name: str, values: npt.NDArray[Any]) -> Any:
        if values.dtype == object:
            return pl.Series(name, values.tolist(), dtype=pl.String)
        series = pl.Series(name, np.array(np.ma.getdata(values)), nan_to_null=True)
        gone = missing(values)
        return series.scatter(np.flatnonzero(gone), None) if isinstance(values, np.ma.MaskedArray) else series

    return pl.DataFrame([made(name, values) for name, values in columns.items()])

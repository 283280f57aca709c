"""What is not written, and what is needed to write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.parquet.tables import some_detections
from tests.readers import read_parquet

from probox import InputError
from probox.formats import read_detections, read_truth, write_parquet


def test_heatmaps_are_refused(golden_dir: Path, tmp_path: Path) -> None:
    truth = read_truth(golden_dir / "probseg" / "ground_truth.json")
    found = read_detections(golden_dir / "probseg" / "detections.json", truth)
    with pytest.raises(InputError, match="cannot hold heatmaps; write RVC1"):
        write_parquet(tmp_path / "d.parquet", found)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.parquet"
    write_parquet(path, some_detections(seed=1))
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        write_parquet(path, some_detections(seed=2))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(tmp_path / "d.parquet", some_detections())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for call in (
        lambda: read_parquet(tmp_path / "d.parquet"),
        lambda: read_truth(tmp_path / "d.parquet"),
        lambda: write_parquet(tmp_path / "e.parquet", some_detections()),
    ):
        with pytest.raises(InputError, match=r"pip install 'probox\[parquet\]'"):
            call()
    monkeypatch.setitem(sys.modules, "pyarrow", pa)
    monkeypatch.setattr(pa, "__version__", "14.0.2")
    with pytest.raises(InputError, match=r"pyarrow 18 or newer, but got 14\.0\.2"):
        read_parquet(tmp_path / "d.parquet")

"""What the fuzzer found, kept by name: each of these once ended in a traceback, an abort or a wrong number."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.readers import read_parquet, read_parquet_truth

from probox import InputError, read_detections, write_parquet
from probox.formats.parquet import shards as parquet_shards
from probox.formats.rvc1_heatmaps import HeatmapFile

from . import seeds


def parquet(path: Path, table: str, *, words: Any = None, **columns: Any) -> Path:
    """Write the seed's table with other words or columns."""
    write_parquet(path, seeds.truth() if table == "truth" else seeds.detections())
    whole = pq.read_table(path)
    for name, values in columns.items():
        whole = whole.set_column(whole.schema.get_field_index(name), name, values)
    said = json.loads(whole.schema.metadata[b"probox"]) | (words if isinstance(words, dict) else {})
    text = words if isinstance(words, bytes) else json.dumps(said).encode()
    pq.write_table(whole.replace_schema_metadata({b"probox": text}), path)
    return path


def floats(path: Path, table: str, column: str, row: int, value: float) -> Path:
    """Write the seed's table with one value of a column changed."""
    write_parquet(path, seeds.truth() if table == "truth" else seeds.detections())
    values = pq.read_table(path).column(column).cast(pa.float64()).to_pylist()
    values[row] = value
    return parquet(path, table, **{column: pa.array(values, pa.float64())})


def refused(path: Path, table: str = "detections") -> str:
    with pytest.raises(InputError) as raised:
        read_parquet_truth(path) if table == "truth" else read_parquet(path)
    assert raised.value.file == str(path)
    return str(raised.value)


@pytest.mark.parametrize("table", ["truth", "detections"])
@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 60_000])
def test_deep_words(tmp_path: Path, table: str, text: bytes) -> None:
    assert "expected JSON under the key 'probox'" in refused(parquet(tmp_path / "f", table, words=text), table)


def test_category_ids_of_more_than_64_bits(tmp_path: Path) -> None:
    path = parquet(tmp_path / "f", "truth", words={"category_ids": [3, 10**30]})
    assert "'category_ids' in the metadata to fit 64 bits" in refused(path, "truth")


def test_a_filter_that_is_neither_yes_nor_no(tmp_path: Path) -> None:
    path = parquet(tmp_path / "f", "truth", words={"filter_small": "false"})
    assert "'filter_small' in the metadata to be true or false" in refused(path, "truth")


@pytest.mark.parametrize("found", ["x" * 5000, [10**300] * 500, True, 1.0])
def test_a_format_that_is_no_number(tmp_path: Path, found: Any) -> None:
    text = refused(parquet(tmp_path / "f", "detections", words={"format": found}))
    assert "is of format " in text
    assert len(text) < 400


@pytest.mark.parametrize(
    ("table", "column", "row", "value", "message"),
    [
        ("detections", "score", 1, np.nan, "row 1: score: expected a finite number, but got nan"),
        ("detections", "score", 0, np.inf, "row 0: score: expected a finite number, but got inf"),
        ("detections", "width", 2, -1.0, "row 2: width: expected a finite number, at least 0, but got -1.0"),
        ("detections", "height", 0, np.nan, "row 0: height: expected a finite number, at least 0, but got nan"),
        ("truth", "area", 3, np.nan, "row 3: area: expected a finite number, at least 0, but got nan"),
        ("truth", "area", 0, -1.0, "row 0: area: expected a finite number, at least 0, but got -1.0"),
        ("truth", "y1", 2, np.inf, "row 2: y1: expected a finite number, but got inf"),
        ("truth", "width", 1, -2.0, "row 1: width: expected a finite number, at least 0, but got -2.0"),
    ],
)
def test_values_that_are_no_measurements(
    tmp_path: Path, table: str, column: str, row: int, value: float, message: str
) -> None:
    assert message in refused(floats(tmp_path / "f", table, column, row, value), table)


def test_rows_are_counted_in_the_file(tmp_path: Path) -> None:
    path = floats(tmp_path / "f", "detections", "score", 2, np.nan)
    pq.write_table(pq.read_table(path), path, row_group_size=1)
    last = int(seeds.detections().image_ids.max())
    with pytest.raises(InputError, match="row 2: score"):
        read_parquet(path, image_ids=[last])


def test_covariances_whose_product_overflows(tmp_path: Path) -> None:
    """A warning of NumPy's is no message for a user."""
    path = tmp_path / "r.json"
    covars = [[[4, 1e300], [1e300, 2]], [[9, 0], [0, 1]]]
    path.write_text(json.dumps([seeds.RESULTS[0] | {"covars": covars}]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="expected finite covariances"):
            read_detections(path, seeds.truth())


def test_a_heatmap_whose_name_fills_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    words = json.loads(json.dumps(seeds.RVC1_HEATMAPS))
    words["detections"][0][0]["masks_file"] = "x" * 100_000
    path.write_text(json.dumps(words))
    with pytest.raises(InputError) as raised:
        read_detections(path, seeds.truth())
    assert len(str(raised.value)) < 1500 + len(str(path))


def test_a_heatmap_whose_header_is_a_call(tmp_path: Path) -> None:
    """The message had the address of an object in it, another one each time."""
    header = b"{'descr': f(), 'fortran_order': False, 'shape': (1, 2, 2), }".ljust(117) + b"\n"
    path = tmp_path / "b.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(InputError, match="is not a usable") as raised:
        HeatmapFile.open(path)
    assert "object at" not in str(raised.value)


def test_statistics_that_end_the_process() -> None:
    """Asked for the statistics of this file, in which one bit is wrong, pyarrow ends the process."""
    path = Path(__file__).parent / "found" / "metadata.parquet"
    script = (
        "import sys, probox\n"
        "for ids in (None, [4, 9]):\n"
        "    try: probox.read_truth(sys.argv[1], image_ids=ids)\n"
        "    except probox.InputError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"{path}: cannot be read as Parquet") == 2


def test_statistics_that_lie(tmp_path: Path) -> None:
    """Images are found where they are, not where the statistics of a row group say."""
    path = tmp_path / "f"
    write_parquet(path, seeds.detections())
    data = path.read_bytes()
    ids = seeds.detections().image_ids
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    largest = int(ids.max()).to_bytes(8, "little")
    assert largest in data[footer:]
    path.write_bytes(data[:footer] + data[footer:].replace(largest, int(ids.min()).to_bytes(8, "little")))
    assert len(read_parquet(path, image_ids=[int(ids.max())])) == int((ids == ids.max()).sum())


def test_statistics_cut_short_do_not_end_the_process(tmp_path: Path) -> None:
    """pyarrow ends the process when it is asked for them, directly or by a filter."""
    path = tmp_path / "f"
    write_parquet(path, seeds.detections())
    data = path.read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    start = data[: -8 - len(footer)]
    smallest = int(seeds.detections().image_ids.min())
    full = b"\x08" + smallest.to_bytes(8, "little")
    assert full in footer
    footer = footer.replace(full, b"\x04" + smallest.to_bytes(4, "little"))
    path.write_bytes(start + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    script = f"import probox; probox.read_detections({str(path)!r}, image_ids=[{smallest}])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, "cannot be read as Parquet" in done.stderr) == (1, True)


def test_more_rows_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal values take no space: 100,000 rows in a few kilobytes."""
    path = tmp_path / "f"
    write_parquet(path, seeds.detections())
    whole = pq.read_table(path)
    pq.write_table(whole.take(pa.array(np.zeros(100_000, np.int64))), path)
    assert path.stat().st_size < 40_000
    assert len(read_parquet(path)) == 100_000
    monkeypatch.setattr(parquet_shards, "ALWAYS_FINE", 1 << 20)
    assert "bytes of numbers, but has" in refused(path)


def test_file_names_of_parquet_that_are_not_utf8(tmp_path: Path) -> None:
    write_parquet(tmp_path / "truth.parquet", seeds.truth())
    rows = pq.read_table(tmp_path / "truth.parquet").num_rows
    names = pa.array([b"a\xff"] * rows, pa.binary()).view(pa.string())
    path = parquet(tmp_path / "truth.parquet", "truth", file_name=names)
    with pytest.raises(InputError, match="file_name: expected UTF-8 text"):
        read_parquet_truth(path)

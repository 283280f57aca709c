"""Printed numbers as decimals: 32-bit integers in every file, whichever pyarrow wrote it, and every bit back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.formats.parquet.tables import assert_same, by_image, some_detections
from tests.readers import read_parquet, read_parquet_truth

from probox import Detections, GroundTruth, InputError
from probox.formats import write_parquet
from probox.formats.parquet import shards as columns

NEVER = 10**6
WRITERS = {"as this pyarrow does": None, "as pyarrow 18 does": NEVER}


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write as the pyarrow at hand writes, and as one that knows no small decimals."""
    version = WRITERS[request.param]
    if version is not None:
        monkeypatch.setattr(columns, "OLDEST_WITH_DECIMAL32", version)


def printed(n: int = 60) -> Detections:
    """Return detections whose numbers have a few digits, some of them negative."""
    found = some_detections(n, seed=3)
    return Detections(
        classes=found.classes,
        image_ids=found.image_ids,
        boxes=np.round(found.boxes - 50, 2),
        label_probs=np.round(found.label_probs, 4),
    )


def physical_types(path: Path) -> dict[str, str]:
    schema = pq.ParquetFile(path).schema
    return {schema.column(i).name: schema.column(i).physical_type for i in range(len(schema))}


@pytest.mark.usefixtures("writer")
def test_every_bit_comes_back(tmp_path: Path) -> None:
    found = printed()
    write_parquet(tmp_path / "d.parquet", found)
    kinds = physical_types(tmp_path / "d.parquet")
    assert {kinds[name] for name in ("x1", "y1", "x2", "y2", "prob_0", "prob_4")} == {"INT32"}
    assert_same(by_image(found), read_parquet(tmp_path / "d.parquet"))


@pytest.mark.usefixtures("writer")
def test_every_bit_of_truth_comes_back(tmp_path: Path) -> None:
    """Images without objects are rows with gaps, in columns of decimals too."""
    images = dict.fromkeys(range(5), (640, 480))
    boxes = np.round(np.random.default_rng(4).uniform(0, 400, (12, 4)).cumsum(axis=1) / 4, 2)
    truth = GroundTruth.from_boxes(["cup", "dog"], images, np.repeat([0, 2, 4], 4), boxes, np.arange(12) % 2)
    write_parquet(tmp_path / "t.parquet", truth)
    assert physical_types(tmp_path / "t.parquet")["x1"] == "INT32"
    assert_same(truth, read_parquet_truth(tmp_path / "t.parquet"))


@given(
    integers=st.lists(st.integers(1 - 10**9, 10**9 - 1), max_size=9),
    scale=st.integers(0, 9),
    start=st.integers(0, 3),
    known=st.booleans(),
)
@examples(100)
def test_integers_come_back(integers: list[int], scale: int, start: int, known: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not known:
            patch.setattr(columns, "OLDEST_WITH_DECIMAL32", NEVER)
        array = columns.decimal_array(np.array(integers, np.int32), scale)
    assert columns.are_small_decimals(array.type)
    assert [int(value.scaleb(scale)) for value in array.to_pylist()] == integers
    assert columns.integers_of(array.slice(start)).tolist() == integers[start:]


def forged(value: int, rows: int) -> pa.Array:
    """Return decimals that are no decimals of nine digits, though they say so: Arrow does not look."""
    content = value.to_bytes(16, "little", signed=True) * rows
    return pa.Array.from_buffers(pa.decimal128(9, 2), rows, [None, pa.py_buffer(content)])


@pytest.mark.parametrize("value", [10**9, -(10**9), 2**31, 2**63, -(2**63), 2**64, -(2**64), 2**100])
def test_of_too_many_digits_no_part_is_taken(value: int) -> None:
    with pytest.raises(pa.ArrowInvalid, match="more digits"):
        columns.integers_of(forged(value, 3))


@pytest.mark.parametrize("names", [["x1"], ["prob_0", "prob_1"]], ids=["alone", "together"])
def test_a_file_with_too_many_digits_is_refused(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "d.parquet"
    write_parquet(path, some_detections(9, classes=2))
    table = pq.read_table(path)
    for name in names:
        table = table.set_column(table.schema.get_field_index(name), name, forged(2 * 10**9, 9))
    pq.write_table(table, path)
    with pytest.raises(InputError, match="more digits than its column declares") as raised:
        read_parquet(path)
    assert str(raised.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("kind", "small"),
    [
        (pa.decimal128(9, 9), True),
        (pa.decimal128(9, 0), True),
        (pa.decimal128(10, 2), False),
        (pa.decimal128(9, -2), False),
        (pa.decimal256(9, 2), False),
        (pa.int32(), False),
    ],
    ids=str,
)
def test_which_decimals_are_small(kind: pa.DataType, small: bool) -> None:
    assert columns.are_small_decimals(kind) == small

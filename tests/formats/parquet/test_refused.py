"""Files that are damaged or not what they should be are told from good ones, in one line."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.formats.parquet.tables import assert_same, by_image, some_detections
from tests.readers import read_parquet, read_parquet_truth

from probox import GroundTruth, InputError
from probox.formats import write_parquet
from probox.formats.parquet.shards import footer_of
from probox.tables.masks import Masks


def rewritten(path: Path, change: Callable[[pa.Table, dict[str, Any]], pa.Table]) -> None:
    """Change a file's table and words in place."""
    table = pq.read_table(path)
    words = json.loads(table.schema.metadata[b"probox"])
    changed = change(table, words)
    pq.write_table(changed.replace_schema_metadata({"probox": json.dumps(words)}), path)


def with_column(name: str, values: Any) -> Callable[[pa.Table, dict[str, Any]], pa.Table]:
    return lambda table, words: table.set_column(table.schema.get_field_index(name), name, values)


def with_word(name: str, value: Any) -> Callable[[pa.Table, dict[str, Any]], pa.Table]:
    def change(table: pa.Table, words: dict[str, Any]) -> pa.Table:
        words[name] = value
        return table

    return change


N = 40


def with_sizes(value: float) -> Callable[[pa.Table, dict[str, Any]], pa.Table]:
    return lambda t, w: t.append_column("width", [[value] * N]).append_column("height", [[value] * N])


def with_scores(value: float) -> Callable[[pa.Table, dict[str, Any]], pa.Table]:
    return lambda t, w: t.append_column("score", [[value] * N])


BAD_DETECTIONS: dict[str, tuple[Callable[..., pa.Table], str]] = {
    "no image_id": (lambda t, w: t.drop_columns(["image_id"]), "expected a column 'image_id'"),
    "no x2": (lambda t, w: t.drop_columns(["x2"]), "expected a column 'x2'"),
    "no boxes": (lambda t, w: t.drop_columns(["x1", "y1", "x2", "y2"]), "expected a column 'x1'"),
    "no label": (lambda t, w: t.drop_columns(["label"]), "expected a column 'label'"),
    "a probability column is missing": (lambda t, w: t.drop_columns(["prob_3"]), "expected a column 'prob_3'"),
    "no probabilities, no scores": (
        lambda t, w: t.drop_columns([f"prob_{i}" for i in range(5)]), "expected a column 'score'",
    ),
    "half a covariance": (lambda t, w: t.append_column("cov1_xx", [[1.0] * N]), "expected a column 'cov1_xy'"),
    "half a size": (lambda t, w: t.append_column("width", [[1.0] * N]), "expected a column 'height'"),
    "sizes that are none": (with_sizes(math.nan), "row 0: width: expected a finite number, at least 0, but got nan"),
    "endless sizes": (with_sizes(math.inf), "row 0: width: expected a finite number, at least 0, but got inf"),
    "sizes below 0": (with_sizes(-4.0), "row 0: width: expected a finite number, at least 0, but got -4"),
    "sizes of other boxes": (with_sizes(1e6), "image 0: detection 0: expected the box's width and .*leave sizes out"),
    "scores that are none": (with_scores(math.nan), "row 0: score: expected a finite number, but got nan"),
    "endless scores": (with_scores(math.inf), "row 0: score: expected a finite number, but got inf"),
    "scores above 1": (with_scores(87.5), "image 0: detection 0: expected a score between 0 and 1, but got 87.5"),
    "a column twice": (lambda t, w: t.append_column("x1", [[1.0] * N]), "has the column 'x1' twice"),
    "text": (with_column("y1", [["a"] * N]), "y1: expected double, but the column is string"),
    "broken image ids": (with_column("image_id", [[0.5] * N]), "image_id: expected int64, but the column is double"),
    "lists": (with_column("prob_0", [[[0.5, 0.5]] * N]), "prob_0: expected float, but the column is list<"),
    "a gap": (with_column("x1", [[None] + [1.0] * (N - 1)]), "x1: expected a number in every row, but 1 are missing"),
    "gaps in probabilities": (with_column("prob_2", [[None] * 2 + [0.0] * (N - 2)]), "prob_2: .* but 2 are missing"),
    "huge labels": (with_column("label", [[2**40] * N]), "label: expected int32, but got .*1099511627776 not in range"),
    "unknown labels": (with_column("label", [[5] * N]), "image 0: expected a label below 5, but got 5"),
    "negative labels": (with_column("label", [[-1] * N]), "image 0: expected a label below 5, but got -1"),
    "unsorted": (with_column("image_id", [list(range(N, 0, -1))]), "image 39: expected rows by ascending image_id"),
    "nan box": (with_column("x1", [[float("nan")] * N]), "image 0: detection 0: expected four finite box corners"),
    "inverted box": (with_column("x1", [[1e6] * N]), "expected x1 <= x2"),
    "probability of 2": (with_column("prob_0", [[2.0] * N]), "expected label probabilities between 0 and 1, but got 2"),
    "classes missing": (lambda t, w: (w.pop("classes"), t)[1], "expected 'classes' in the metadata to be a"),
    "classes of numbers": (with_word("classes", [1, 2, 3, 4, 5]), "expected 'classes' in the metadata"),
    "notes of numbers": (with_word("notes", [1]), "'notes' in the metadata: expected notes"),
    "future": (with_word("format", 2), "is of format 2, this probox reads 1; use a newer probox, or write it with"),
    "no format": (lambda t, w: (w.pop("format"), t)[1], "is of format None"),
    "truth": (with_word("table", "truth"), "expected detections, but this file holds ground truth"),
    "something else": (with_word("table", ["x"]), "expected detections, but this file holds something else"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_DETECTIONS)
def test_bad_detections(tmp_path: Path, name: str) -> None:
    change, message = BAD_DETECTIONS[name]
    path = tmp_path / "d.parquet"
    write_parquet(path, some_detections(N))
    rewritten(path, change)
    with pytest.raises(InputError, match=message) as raised:
        read_parquet(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


BAD_PIXELS: dict[str, tuple[Callable[..., pa.Table], str]] = {
    "no has_mask": (lambda t, w: t.drop_columns(["has_mask"]), "expected a column 'has_mask'"),
    "a run outside": (with_column("run_end", [[[9], [], []]]), "image 1: row 0: expected runs by row and column"),
    "a run too few": (
        with_column("run_end", pa.array([[], [], []], pa.list_(pa.int32()))), "run_end: expected as many numbers as in",
    ),
    "an endless area": (with_column("area", [[math.inf, 0.0, 0.0]]), "expected an area that is finite and at least 0"),
    "no block": (lambda t, w: t.drop_columns(["block_x"]), "expected a column 'block_x'"),
    "a block outside": (with_column("block_x", [[0, 6, 0]]), "image 2: row 1: expected a block of a heatmap inside"),
    "a block before": (with_column("block_y", [[0, -1, 0]]), "image 2: row 1: expected a block of a heatmap inside"),
    "a huge block": (with_column("block_width", [[0, 2**31 - 1, 0]]), "image 2: row 1: expected a block of a heatmap"),
    "a huge image": (with_column("heatmap_width", [[0, 2**31 - 1, 0]]), "row 1: expected a block of a heatmap inside"),
    "a negative image": (with_column("heatmap_width", [[0, -8, 0]]), "row 1: expected a block of a heatmap inside"),
    "a byte too few": (with_column("heatmap", [[b"", b"1" * 5, b""]]), "row 1: .* with one byte per pixel"),
    "bytes of no heatmap": (with_column("heatmap", [[b"1", b"1" * 6, b""]]), "row 0: .* with one byte per pixel"),
    "text": (with_column("heatmap", [["", "1" * 6, ""]]), "heatmap: expected bytes in every row, but .* is str"),
    "a gap": (with_column("heatmap", pa.array([None, b"1" * 6, b""])), "heatmap: expected bytes in every row"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PIXELS)
def test_bad_masks_and_heatmaps(tmp_path: Path, name: str) -> None:
    change, message = BAD_PIXELS[name]
    path = tmp_path / "d.parquet"
    heatmap = np.zeros((5, 8), np.uint8)
    heatmap[1:3, 2:5] = 9
    boxes = np.array([[0, 0, 3, 0], [0, 0, 1, 1], [0, 0, 1, 1]], np.int32)
    masks = Masks(boxes, np.array([4, 4, 4]), np.array([0, 1, 1, 1]), np.array([[0, 0, 4]], np.int32))
    write_parquet(path, some_detections(3, image_ids=[1, 2, 3], heatmaps=[None, heatmap, None], masks=masks))
    rewritten(path, change)
    with pytest.raises(InputError, match=message) as raised:
        read_parquet(path)
    assert str(raised.value).startswith(f"{path}: ")


def objects(name: str, change: Callable[[list[Any]], Any]) -> Callable[[pa.Table, dict[str, Any]], pa.Table]:
    """Change the values of the objects of a column, in the order of the file."""

    def apply(table: pa.Table, words: dict[str, Any]) -> pa.Table:
        column = table.column(name)
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        values = column.to_pylist()
        there = [row for row, value in enumerate(table.column("class").to_pylist()) if value is not None]
        for row, value in zip(there, change([values[row] for row in there]), strict=True):
            values[row] = value
        return table.set_column(table.schema.get_field_index(name), name, pa.array(values, column.type))

    return apply


BAD_TRUTH: dict[str, tuple[Callable[..., pa.Table], str]] = {
    "no class": (lambda t, w: t.drop_columns(["class"]), "expected a column 'class'"),
    "no runs": (lambda t, w: t.drop_columns(["run_end"]), "expected a column 'run_end'"),
    "a run too few": (objects("run_end", lambda v: [v[0][:-1], *v[1:]]), "run_end: expected as many numbers as in"),
    "runs out of order": (objects("run_y", lambda v: [v[0][::-1], *v[1:]]), "object 0: expected runs by row"),
    "a run outside": (objects("run_end", lambda v: [[e + 9 for e in v[0]], *v[1:]]), "expected runs by row and column"),
    "an empty run": (objects("run_begin", lambda v: [[e + 3 for e in v[0]], *v[1:]]), "expected runs by row"),
    "a loose box": (objects("mask_x1", lambda v: [x + 1 for x in v]), "expected runs by row and column"),
    "an inside-out box": (objects("mask_x1", lambda v: [-9 for _ in v]), "expected runs by row and column"),
    "missing runs": (objects("run_y", lambda v: [None, *v[1:]]), "run_y: expected a list .* with 1 missing"),
    "missing box": (objects("x1", lambda v: [None, *v[1:]]), "x1: expected a number in every row"),
    "unknown class": (objects("class", lambda v: [7 for _ in v]), "image 3: object 0: expected a class below 2"),
    "no width": (with_column("image_width", [[None] * 4]), "image_width: expected a number in every row"),
    "widths differ": (with_column("image_width", pa.array([9, 8, 7, 7], pa.int32())), "rows of one image differ in"),
    "a mask outside": (with_column("image_width", pa.array([2] * 4, pa.int32())), "the mask reaches outside the image"),
    "names of numbers": (with_column("file_name", pa.array([1] * 4)), "file_name: expected text, but the col"),
    "unsorted": (with_column("image_id", pa.array([4, 2, 1, 0])), "expected rows by ascending image_id"),
    "category ids": (with_word("category_ids", [1]), "expected category_ids of shape 2, but got 1"),
    "category ids beyond int64": (with_word("category_ids", [1, 2**63]), "'category_ids' .* to fit 64 bits"),
    "category ids far beyond": (with_word("category_ids", [1, 2**80]), "'category_ids' .* to fit 64 bits"),
    "category ids twice": (with_word("category_ids", [1, 1]), "the category id 1 is given to several classes"),
    "an object without class": (objects("class", lambda v: [None, *v[1:]]), "image 3: row 1: class: an object has no"),
    "no classes at all": (objects("class", lambda v: [None] * len(v)), "image 3: row 1: class: an object has no class"),
    "an area of NaN": (objects("area", lambda v: [math.nan, *v[1:]]), "row 1: area: .* at least 0, but got nan"),
    "an endless area": (objects("area", lambda v: [*v[:2], math.inf]), "row 3: area: .* at least 0, but got inf"),
    "an area below 0": (objects("area", lambda v: [-4.0, *v[1:]]), "row 1: area: .* at least 0, but got -4"),
    "an inverted box": (objects("x1", lambda v: [99.0, *v[1:]]), "image 3: object 0: expected x1 <= x2 and y1 <= y2"),
    "a box far away": (objects("x2", lambda v: [*v[:2], 1e12]), "image 3: object 2: expected box corners to be finite"),
    "category names": (with_word("category_ids", ["a", "b"]), "expected 'category_ids' in the metadata"),
    "detections": (with_word("table", "detections"), "expected ground truth, but this file holds detections"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TRUTH)
def test_bad_truth(tmp_path: Path, name: str) -> None:
    change, message = BAD_TRUTH[name]
    ring = np.ones((6, 8), bool)
    ring[1:-1, 2:-2] = False
    full = np.ones((6, 8), bool)
    truth = GroundTruth.from_masks(["cup", "dog"], [(3, [ring, full, ring], [0, 1, 1])], shapes={1: (4, 9)})
    path = tmp_path / "t.parquet"
    write_parquet(path, truth)
    rewritten(path, change)
    with pytest.raises(InputError, match=message) as raised:
        read_parquet_truth(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


def test_not_a_file_of_probox(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    with pytest.raises(InputError, match="no such file"):
        read_parquet(path)
    path.write_text("{}")
    with pytest.raises(InputError, match="expected a Parquet file"):
        read_parquet(path)
    pq.write_table(pa.table({"image_id": [1]}), path)
    with pytest.raises(InputError, match="is a Parquet file, but was not written by probox"):
        read_parquet(path)
    pq.write_table(pa.table({"image_id": [1]}).replace_schema_metadata({"probox": "[1"}), path)
    with pytest.raises(InputError, match="expected JSON under the key 'probox'"):
        read_parquet_truth(path)


@given(data=st.data())
@examples(150)
def test_damaged_files(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Cut short or with a byte changed anywhere: words, or a table that passes every check; never anything else.

    Pages carry checksums: a change in the data itself is always noticed.
    """
    path = tmp_path_factory.mktemp("damaged") / "d.parquet"
    found = by_image(some_detections(30, 3, covariances=np.tile(np.eye(2) / 3, (30, 2, 1, 1))))
    write_parquet(path, found)
    good = path.read_bytes()
    footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    at = data.draw(st.integers(4, len(good) - 1))
    if data.draw(st.booleans()):
        bad = good[:at]
    else:
        bad = good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :]
    path.write_bytes(bad)
    again, error = None, ""
    try:
        again = read_parquet(path)
    except InputError as raised:
        error = str(raised)
    if again is None:
        assert error.startswith(f"{path}: ")
        assert "\n" not in error
    else:
        assert len(bad) == len(good)
        if at < footer:
            assert_same(found, again)


@pytest.mark.parametrize(("length", "footer"), [(0, b""), (12, b"PAR1footer.."), (13, b""), (2**32 - 1, b"")])
def test_a_footer_is_no_longer_than_what_is_before_its_length(length: int, footer: bytes) -> None:
    assert footer_of(io.BytesIO(b"PAR1footer.." + length.to_bytes(4, "little") + b"PAR1")) == footer

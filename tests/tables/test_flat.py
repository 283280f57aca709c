"""Tables as people read them: names of columns, what is missing, and the libraries that take them."""

from __future__ import annotations

import csv
import io
import sys

import numpy as np
import pytest

from probox import Detections, GroundTruth, InputError
from probox.tables import flat
from probox.tables.flat import FlatTable, maybe_missing, text_column

LIBRARIES = ("pandas", "polars")
COLUMNS = {
    "name": text_column(["cup", None, 'a "b", <i>\n']),
    "share": np.array([0.1, np.nan, 1.0]),
    "partner": maybe_missing(np.array([4, -1, 0])),
    "count": np.array([1, 2, 3]),
    "yes": np.array([True, False, True]),
}
EXPECTED = {
    "name": ["cup", None, 'a "b", <i>\n'],
    "share": [0.1, None, 1.0],
    "partner": [4, None, 0],
    "count": [1, 2, 3],
    "yes": [True, False, True],
}


def plain(frame: object) -> dict[str, list[object]]:
    """Return a frame of any library as lists, None for what is missing."""
    if type(frame).__module__.startswith("pandas"):
        return {name: [None if gone else v for v, gone in zip(c, c.isna(), strict=True)] for name, c in frame.items()}
    return frame.to_dict(as_series=False)  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_have_every_value(library: str) -> None:
    pytest.importorskip(library)
    frame = FlatTable(COLUMNS).to_frame(library)
    assert type(frame).__module__.startswith(library)
    assert plain(frame) == EXPECTED
    assert [str(frame[name].dtype).lower() for name in ("share", "partner", "count")] == ["float64", "int64", "int64"]


def test_arrow_has_every_value() -> None:
    pytest.importorskip("pyarrow")
    assert FlatTable(COLUMNS).to_arrow().to_pydict() == EXPECTED


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_without_rows_keep_their_columns(library: str) -> None:
    pytest.importorskip(library)
    empty = FlatTable({name: values[:0] for name, values in COLUMNS.items()})
    assert list(empty.to_frame(library).columns) == list(COLUMNS)
    assert len(empty.to_frame(library)) == 0
    assert "0 of" not in empty._repr_html_()


def test_a_frame_is_a_copy() -> None:
    pytest.importorskip("pandas")
    found = Detections(classes=["cup"], image_ids=[7], boxes=[[1, 2, 3, 4]], label_probs=[[0.5]])
    frame = found.to_frame("pandas")
    frame.loc[0, "x1"] = 99.0
    assert found.boxes[0, 0] == 1
    assert not found.boxes.flags.writeable


def test_pandas_comes_before_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    assert type(FlatTable(COLUMNS).to_frame()).__module__.startswith("pandas")
    pytest.importorskip("polars")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert type(FlatTable(COLUMNS).to_frame()).__module__.startswith("polars")


def test_neither_library_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in LIBRARIES:
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=r"needs pandas or polars; install one with: pip install pandas \(or: pip"):
        FlatTable(COLUMNS).to_frame()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_that_is_not_there_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=f"needs {library}, which cannot be imported; install it with: .*pip install"):
        FlatTable(COLUMNS).to_frame(library)


def test_arrow_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        InputError, match=r"a table of Arrow needs pyarrow; install it with: .*pip install 'probox\[parq"
    ):
        FlatTable(COLUMNS).to_arrow()


def test_other_libraries_are_refused() -> None:
    with pytest.raises(InputError, match="expected library to be 'pandas' or 'polars', but got 'spark'; use to_arrow"):
        FlatTable(COLUMNS).to_frame("spark")


def test_csv_has_every_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat, "CHUNK", 2)  # more than one
    text = b"".join(FlatTable(COLUMNS).csv_chunks()).decode()
    heading, *rows = csv.reader(io.StringIO(text, newline=""))
    assert heading == list(EXPECTED)
    expected = zip(*EXPECTED.values(), strict=True)
    assert rows == [["" if value is None else str(value) for value in row] for row in expected]


def test_html_is_escaped_and_has_the_first_rows() -> None:
    shown = FlatTable(COLUMNS, title="<script>")._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "a &quot;b&quot;, &lt;i&gt;\\n" in shown
    assert "<i>" not in shown
    assert "<script" not in shown
    many = FlatTable({"n": np.arange(12345)})._repr_html_()
    assert "10 of 12,345 rows" in many
    assert many.count("<tr>") == 11
    assert "color:" not in many.replace("currentColor", "")


def test_text_is_short() -> None:
    assert str(FlatTable({"name": text_column(["x" * 99])})).splitlines()[1] == "x" * 57 + "..."


def test_a_column_that_is_not_there_is_said() -> None:
    with pytest.raises(InputError, match="unknown column 'colour'; use one of name, share"):
        FlatTable(COLUMNS)["colour"]


# --- tables of detections and truth ---


def found_of(**more: object) -> Detections:
    return Detections(
        classes=["cup", "dog"],
        image_ids=[9, 7],
        boxes=[[10, 20, 50, 60], [1, 2, 3, 4]],
        label_probs=[[0.2, 0.75], [0.5, 0.25]],
        **more,  # type: ignore[arg-type]
    )


def test_detections_are_flat() -> None:
    covariances = [[[[4, 1], [1, 9]], [[16, -2], [-2, 25]]], np.zeros((2, 2, 2))]
    table = found_of(covariances=covariances).flat(label_probs=True)
    expected = {
        "image_id": [9, 7], "class": ["dog", "cup"], "class_index": [1, 0], "score": [0.75, 0.5],
        "x1": [10, 1], "y1": [20, 2], "x2": [50, 3], "y2": [60, 4],
        "sigma_x1": [2, 0], "sigma_y1": [3, 0], "sigma_x2": [4, 0], "sigma_y2": [5, 0],
        "tl_xx": [4, 0], "tl_xy": [1, 0], "tl_yy": [9, 0], "br_xx": [16, 0], "br_xy": [-2, 0], "br_yy": [25, 0],
        "p_cup": [np.float32(0.2), 0.5], "p_dog": [0.75, 0.25],
    }  # fmt: skip
    assert {name: values.tolist() for name, values in table.columns.items()} == expected


def test_detections_have_the_columns_that_they_know() -> None:
    assert list(found_of().flat().columns) == ["image_id", "class", "class_index", "score", "x1", "y1", "x2", "y2"]
    given = found_of(heatmaps=[None, np.ones((2, 2))]).flat()
    assert given["heatmap"].tolist() == [False, True]


def test_classes_of_one_name_have_a_column_each() -> None:
    found = Detections(classes=["cup", "cup"], image_ids=[1], boxes=[[1, 2, 3, 4]], label_probs=[[0.25, 0.5]])
    table = found.flat(label_probs=True)
    assert [table[name].tolist() for name in ("p_cup", "p_cup (2)")] == [[0.25], [0.5]]


def test_truth_is_flat() -> None:
    truth = GroundTruth.from_boxes(["cup", "dog"], {7: (64, 48), 9: (9, 9)}, [7], [[10, 20, 40, 40]], [1])
    table = {name: values.tolist() for name, values in truth.flat().columns.items()}
    pixels = truth.masks.pixels.tolist()
    assert table == {
        "image_id": [7], "object_id": truth.ids.tolist(), "class": ["dog"], "class_index": [1],
        "x1": [10], "y1": [20], "x2": [40], "y2": [40], "area": truth.areas.tolist(), "pixels": pixels,
        "crowd": [False],
    }  # fmt: skip
    images = truth.dataset.flat()
    assert {name: values.tolist() for name, values in images.columns.items()} == {
        "image_id": [7, 9], "width": [64, 9], "height": [48, 9],
    }  # fmt: skip
    with pytest.raises(InputError, match="GroundTruth has no probabilities of classes; leave label_probs out"):
        truth.to_frame(label_probs=True)


def test_file_names_stand_beside_ids_where_they_are_known() -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (64, 48), 9: (9, 9)}, [9, 7], [[1, 2, 3, 4]] * 2, [0, 0])
    named = truth.replace(dataset=truth.dataset.replace(file_names=["a.jpg", ""]))
    assert named.flat()["file_name"].tolist() == ["a.jpg", None]
    assert list(named.flat().columns)[:2] == ["image_id", "file_name"]

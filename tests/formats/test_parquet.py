"""Parquet files: every bit comes back, parts can be read alone, and damaged files are told from good ones."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import random_world

from probox import Detections, GroundTruth, InputError
from probox.formats import read_detections, read_truth
from probox.formats.parquet import writing as parquet_writing
from probox.formats.parquet.detections import DetectionFile, read_parquet
from probox.formats.parquet.file import ParquetFile
from probox.formats.parquet.truth import read_parquet_truth
from probox.formats.parquet.writing import write_parquet
from probox.tables.masks import Masks


def assert_same(one: Any, other: Any, *, but: tuple[str, ...] = ("source",)) -> None:
    """Compare two tables bit for bit, column by column, types included."""
    for field in dataclasses.fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if field.name in but:
            continue
        if isinstance(left, Masks):
            for name in ("boxes", "pixels", "offsets", "runs"):
                assert_same_bits(getattr(left, name), getattr(right, name), name)
        elif isinstance(left, np.ndarray):
            assert_same_bits(left, right, field.name)
        else:
            assert left == right, field.name


def assert_same_bits(left: np.ndarray, right: np.ndarray, name: str) -> None:
    assert left.dtype == right.dtype, name
    assert left.shape == right.shape, name
    assert left.tobytes() == right.tobytes(), name


def by_image(found: Detections) -> Detections:
    return found.select(np.argsort(found.image_ids, kind="stable"))


def some_detections(n: int = 40, classes: int = 5, seed: int = 0, **changes: Any) -> Detections:
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 300, (n, 2))
    columns: dict[str, Any] = {
        "classes": [f"class {i}" for i in range(classes)],
        "image_ids": rng.integers(0, 9, n) * 3,
        "boxes": np.concatenate([corner, corner + rng.uniform(0, 90, (n, 2))], axis=1),
        "label_probs": rng.dirichlet(np.ones(classes), n).astype(np.float32) * np.float32(0.99),
    }
    return Detections(**(columns | changes))


# --- round trips ---


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_random_tables_come_back(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("round")
    truth, found = random_world(seed, heatmaps=False)
    write_parquet(folder / "d.parquet", found)
    write_parquet(folder / "t.parquet", truth)
    assert_same(by_image(found), read_parquet(folder / "d.parquet"), but=("source", "heatmaps"))
    assert_same(truth, read_parquet_truth(folder / "t.parquet"))


@given(
    seed=st.integers(0, 2**32 - 1),
    digits=st.integers(0, 7),
    kind=st.sampled_from(["boxes", "sizes", "both"]),
    classes=st.integers(1, 4),
)
@settings(max_examples=60)
def test_printed_numbers_come_back(
    tmp_path_factory: pytest.TempPathFactory, seed: int, digits: int, kind: str, classes: int
) -> None:
    path = tmp_path_factory.mktemp("digits") / "d.parquet"
    rng = np.random.default_rng(seed)
    found = some_detections(int(rng.integers(0, 30)), classes, seed)
    low = np.round(found.boxes[:, :2], digits)
    sizes = np.round(found.boxes[:, 2:] - found.boxes[:, :2], digits)
    columns: dict[str, Any] = {"boxes": np.concatenate([low, low + sizes], axis=1)}
    if kind != "boxes":
        columns["sizes"] = sizes if kind == "sizes" else sizes + rng.uniform(0, 1, sizes.shape)
    columns["label_probs"] = np.floor(found.label_probs * 10.0**digits) / 10.0**digits
    table = Detections(classes=found.classes, image_ids=found.image_ids, **columns)
    write_parquet(path, table)
    assert_same(by_image(table), read_parquet(path))


def test_every_column_says_what_the_table_says(tmp_path: Path) -> None:
    """Labels that are not the most probable, scores of their own, signed zeros, covariances not quite symmetric."""
    plain = some_detections(30)
    rng = np.random.default_rng(1)
    covariances = np.zeros((30, 2, 2, 2))
    covariances[::2] = np.eye(2) * rng.uniform(1, 9, (15, 1, 1, 1))
    covariances[::2, 1, 1, 0] = 1e-9
    boxes = plain.boxes.copy()
    boxes[3, 0] = -0.0
    found = dataclasses.replace(
        plain,
        boxes=boxes,
        covariances=covariances,
        labels=rng.integers(0, 5, 30),
        scores=rng.random(30),
        sizes=boxes[:, 2:] - boxes[:, :2] + rng.uniform(0, 1, (30, 2)),
        source="elsewhere.json",
        notes=("3 were left out",),
    )
    write_parquet(tmp_path / "d.parquet", found)
    again = read_parquet(tmp_path / "d.parquet")
    assert_same(by_image(found), again)
    assert again.source == str(tmp_path / "d.parquet")
    names = pq.read_schema(tmp_path / "d.parquet").names
    assert {"score", "width", "height", "x2", "cov2_yx"} < set(names)
    assert "cov1_yx" not in names


def test_one_bit_off_is_not_left_out(tmp_path: Path) -> None:
    """Sizes and corners that nearly follow from each other, and scores that nearly are the probability, are kept."""
    plain = by_image(some_detections(20))
    low, sizes = plain.boxes[:, :2], plain.sizes
    high = low + sizes
    high[7, 1] = np.nextafter(high[7, 1], np.inf)
    scores = plain.scores.copy()
    scores[5] = np.nextafter(scores[5], 1)
    for changes in (
        {"boxes": np.concatenate([low, high], axis=1), "sizes": sizes},
        {"sizes": np.nextafter(sizes, 0)},
        {"scores": scores},
    ):
        found = dataclasses.replace(plain, **changes)
        write_parquet(tmp_path / "d.parquet", found)
        assert_same(found, read_parquet(tmp_path / "d.parquet"))


@pytest.mark.parametrize("covariances", [None, np.zeros((40, 2, 2, 2))])
def test_no_covariances_are_not_zero_covariances(tmp_path: Path, covariances: Any) -> None:
    write_parquet(tmp_path / "d.parquet", some_detections(covariances=covariances))
    assert (read_parquet(tmp_path / "d.parquet").covariances is None) == (covariances is None)


@pytest.mark.parametrize("classes", [0, 1, 3])
def test_no_detections(tmp_path: Path, classes: int) -> None:
    found = some_detections(0, classes)
    write_parquet(tmp_path / "d.parquet", found)
    assert_same(found, read_parquet(tmp_path / "d.parquet"))


def test_empty_truth(tmp_path: Path) -> None:
    for images in ({}, {5: (30, 20), 7: (8, 9)}):
        truth = GroundTruth.from_boxes(["cup"], images, [], np.zeros((0, 4)), [])
        write_parquet(tmp_path / "t.parquet", truth)
        assert_same(truth, read_parquet_truth(tmp_path / "t.parquet"))


def test_truth_of_every_kind(truth: GroundTruth, tmp_path: Path, golden_dir: Path) -> None:
    """File names, category ids, crowds, areas; and challenge truth, whose small objects are ignored."""
    for table in (
        truth,
        read_truth(golden_dir / "rvc1" / "gt"),
        read_truth(golden_dir / "mixed" / "ground_truth.json"),
    ):
        write_parquet(tmp_path / "t.parquet", table)
        assert_same(table, read_parquet_truth(tmp_path / "t.parquet"))
        assert_same(table, read_truth(tmp_path / "t.parquet"))


def test_single_scores_need_no_probabilities(truth: GroundTruth, write: Callable[..., Path], tmp_path: Path) -> None:
    """What the reader of COCO results spread over classes is spread again, to the bit."""
    rng = np.random.default_rng(3)
    rows = [
        {"image_id": int(i), "category_id": int(c), "bbox": [1.3, 2.7, w, 3.1], "score": s}
        for i, c, w, s in zip(
            rng.choice([4, 9], 50), rng.choice([3, 7], 50), rng.random(50), rng.random(50), strict=True
        )
    ]
    found = read_detections(write(rows), truth)
    write_parquet(tmp_path / "d.parquet", found)
    assert pq.read_schema(tmp_path / "d.parquet").names == ["image_id", "x1", "y1", "width", "height", "label", "score"]
    assert_same(by_image(found), read_parquet(tmp_path / "d.parquet"))


def test_real_files(coco_dir: Path, tmp_path: Path) -> None:
    """NanoDet on 206 images: every bit, a fifth of the JSON's size; and the truth with its masks."""
    import gzip

    truth = read_truth(coco_dir / "val2017_masks_206.json")
    source = coco_dir / "results" / "nanodet_m_416_206.rvc1.json.gz"
    found = read_detections(source, truth)
    write_parquet(tmp_path / "d.parquet", found)
    write_parquet(tmp_path / "t.parquet", truth)
    assert_same(found, read_detections(tmp_path / "d.parquet", truth))
    assert_same(truth, read_truth(tmp_path / "t.parquet"))
    assert 5 * os.path.getsize(tmp_path / "d.parquet") < len(gzip.decompress(source.read_bytes()))


# --- the contract of the columns ---


def test_other_tools_read_the_numbers(tmp_path: Path) -> None:
    """Printed numbers are decimals, others floats; pandas and friends need nothing of probox to read either."""
    printed = Detections(
        classes=["cup", "dog"],
        image_ids=[2, 1, 2],
        boxes=[[1.25, 2, 3.5, 4], [0, 0, 1, 1], [5, 5, 6, 6]],
        label_probs=[[0.125, 0.03], [0.5, 0.25], [0.75, 0.1]],
        covariances=np.full((3, 2, 2, 2), 1 / 3),
    )
    write_parquet(tmp_path / "d.parquet", printed)
    table = pq.read_table(tmp_path / "d.parquet")
    assert table.column("image_id").to_pylist() == [1, 2, 2]
    assert [float(value) for value in table.column("x1").to_pylist()] == [0, 1.25, 5]
    assert [str(value) for value in table.column("prob_1").to_pylist()] == ["0.250", "0.030", "0.100"]
    assert table.schema.field("cov1_xx").type == pa.float64()
    words = json.loads(table.schema.metadata[b"probox"])
    assert (words["format"], words["table"], words["classes"]) == (1, "detections", ["cup", "dog"])


def test_a_file_of_another_writer(tmp_path: Path) -> None:
    """Plain types, several row groups, no statistics, columns in another order: all that the contract asks for."""
    table = pa.table({
        "label": pa.array([1, 0, 1], pa.int8()),
        "prob_1": pa.array([0.5, 0.25, 1.0]), "prob_0": pa.array([0.5, 0.5, 0.0]),
        "x1": [1, 2, 3], "y1": [1.5, 2.0, 3.0], "x2": pa.array([4, 5, 6], pa.float32()), "y2": [4.0, 5.0, 6.0],
        "comment": ["a", "b", "c"],
        "image_id": pa.array([7, 8, 8], pa.int32()),
    })  # fmt: skip
    words = {"format": 1, "table": "detections", "classes": ["cup", "dog"]}
    path = tmp_path / "d.parquet"
    with pq.ParquetWriter(
        path, table.schema.with_metadata({"probox": json.dumps(words)}), write_statistics=False
    ) as writer:
        writer.write_table(table.replace_schema_metadata({"probox": json.dumps(words)}), row_group_size=1)
    found = read_parquet(path)
    assert found.image_ids.tolist() == [7, 8, 8]
    assert found.label_probs.tolist() == [[0.5, 0.5], [0.5, 0.25], [0, 1]]
    assert found.boxes.tolist() == [[1, 1.5, 4, 4], [2, 2, 5, 5], [3, 3, 6, 6]]
    assert found.scores.tolist() == [0.5, 0.5, 1]
    assert read_parquet(path, image_ids=[8]).boxes.tolist() == found.boxes[1:].tolist()


def test_row_groups_are_whole_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writing, "GROUP_BYTES", 700)
    found = some_detections(200, seed=5, image_ids=np.repeat([3, 1, 8, 4, 9, 20], [1, 90, 4, 5, 80, 20]))
    path = tmp_path / "d.parquet"
    write_parquet(path, found)
    file = pq.ParquetFile(path)
    groups = [file.read_row_group(g, ["image_id"]).column(0).to_pylist() for g in range(file.num_row_groups)]
    assert [i for group in groups for i in group] == sorted(found.image_ids.tolist())
    assert [sorted(set(group)) for group in groups] == [[1], [3, 4, 8], [9], [20]]
    assert_same(by_image(found), read_parquet(path))


def test_some_images_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writing, "GROUP_BYTES", 400)
    found = by_image(some_detections(300, seed=6))
    write_parquet(tmp_path / "d.parquet", found)
    wanted = [24, 3, 77]
    assert_same(found.select(np.isin(found.image_ids, wanted)), read_parquet(tmp_path / "d.parquet", image_ids=wanted))
    assert len(read_parquet(tmp_path / "d.parquet", image_ids=[])) == 0
    seen: list[list[int]] = []
    read = ParquetFile.read

    def watched(self: Any, columns: Any, groups: Any = None, **options: Any) -> Any:
        if columns != ["image_id"]:  # which tells the row groups of an image
            seen.append(list(groups))
        return read(self, columns, groups, **options)

    monkeypatch.setattr(ParquetFile, "read", watched)
    read_parquet(tmp_path / "d.parquet", image_ids=[24])
    assert {group for groups in seen for group in groups} == {
        DetectionFile(tmp_path / "d.parquet")._file.row_groups - 1
    }


def test_objects_without_pixels(tmp_path: Path) -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (9, 9)}, [1, 1], [[2, 2, 4, 4], [20, 2, 24, 4]], [0, 0])
    assert truth.masks.pixels.tolist() == [9, 0]
    write_parquet(tmp_path / "truth.parquet", truth)
    assert_same(read_parquet_truth(tmp_path / "truth.parquet"), truth)


def test_some_images_of_truth_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writing, "GROUP_BYTES", 300)
    truth, _ = random_world(12, max_images=9)
    write_parquet(tmp_path / "t.parquet", truth)
    for wanted in ([], truth.image_ids[:1], truth.image_ids[1::2], truth.image_ids[[-1, 0, -1]]):
        assert_same(truth.select_images(wanted), read_parquet_truth(tmp_path / "t.parquet", image_ids=wanted))
    with pytest.raises(InputError, match=r"t\.parquet: image 5000: there is no such image"):
        read_parquet_truth(tmp_path / "t.parquet", image_ids=[*truth.image_ids[-2:], 5000])


# --- what is refused ---


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
    with pytest.raises(InputError, match=r"pyarrow 22 or newer, but got 14\.0\.2"):
        read_parquet(tmp_path / "d.parquet")


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
    "notes of numbers": (with_word("notes", [1]), "expected 'notes' in the metadata"),
    "future": (with_word("format", 2), "is of format 2, this probox reads 1"),
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
    "category ids twice": (with_word("category_ids", [1, 1]), "the category id 1 stands for several classes"),
    "an object without class": (objects("class", lambda v: [None, *v[1:]]), "image 3: row 1: class: an object has no"),
    "no classes at all": (objects("class", lambda v: [None] * len(v)), "image 3: row 1: class: an object has no class"),
    "an area that is none": (objects("area", lambda v: [math.nan, *v[1:]]), "row 1: area: .* at least 0, but got nan"),
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
    with pytest.raises(InputError, match="is a Parquet file, but not one of probox"):
        read_parquet(path)
    pq.write_table(pa.table({"image_id": [1]}).replace_schema_metadata({"probox": "[1"}), path)
    with pytest.raises(InputError, match="expected JSON under the key 'probox'"):
        read_parquet_truth(path)


@given(data=st.data())
@settings(max_examples=150)
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

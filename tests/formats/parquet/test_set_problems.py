"""Sets that do not go together are told from good ones, in one line that names the shard."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.parquet.tables import by_image, some_detections
from tests.readers import read_parquet, read_parquet_truth

from probox import GroundTruth, InputError, evaluate, read_detections, read_truth
from probox.formats import write_parquet
from probox.formats.parquet.sets import open_detections

FOUND = by_image(some_detections(60, seed=3, image_ids=np.repeat(np.arange(6), 10)))
TRUTH = GroundTruth.from_boxes(
    ["cup", "dog"], dict.fromkeys(range(6), (64, 48)), range(6), [[10, 20, 40, 40]] * 6, [0] * 6
)
SHARD = "part-00001-of-00003.parquet"


@pytest.fixture
def found(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "found", FOUND, shards=3)
    return tmp_path / "found"


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "truth", TRUTH, shards=3)
    return tmp_path / "truth"


def refused(call: Callable[[], Any], message: str, place: Path) -> None:
    """Check that a call raises a message of one line about a place."""
    with pytest.raises(InputError, match=message) as raised:
        call()
    assert str(raised.value).startswith(f"{place}: ")
    assert "\n" not in str(raised.value)


def rewritten(path: Path, change: Callable[[pa.Table, dict[str, Any]], pa.Table]) -> None:
    table = pq.read_table(path, partitioning=None)
    words = json.loads(table.schema.metadata[b"probox"])
    changed = change(table, words)
    pq.write_table(changed.replace_schema_metadata({"probox": json.dumps(words)}), path)


def test_a_shard_more(found: Path) -> None:
    write_parquet(found / "camera=x.parquet", FOUND.replace(image_ids=FOUND.image_ids + 100))
    assert len(read_parquet(found)) == 120


def test_a_shard_too_few(found: Path) -> None:
    (found / SHARD).unlink()
    refused(lambda: read_parquet(found), "is missing: the set is incomplete; write the set again", found / SHARD)


def test_a_shard_that_changes_while_the_set_is_read(found: Path) -> None:
    opened = open_detections(found)
    write_parquet(found / SHARD, read_parquet(found / SHARD).replace(notes=("x",)))
    refused(opened.read, "was changed while it was read; run the command again", found / SHARD)


@pytest.mark.parametrize("length", [0, 3, 200, -1])
def test_a_truncated_shard(found: Path, truth: Path, length: int) -> None:
    for folder, read in ((found, read_parquet), (truth, read_parquet_truth)):
        path = folder / SHARD
        path.write_bytes(path.read_bytes()[:length])
        refused(lambda: read(folder), "cannot be read as Parquet|expected a Parquet file", path)  # noqa: B023


def test_damaged_rows(found: Path) -> None:
    path = found / SHARD
    data = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(0).column(2).data_page_offset
    data[start + 40] ^= 255
    path.write_bytes(data)
    refused(lambda: read_parquet(found), "cannot be read as Parquet", path)


def test_rows_that_no_table_takes(found: Path) -> None:
    path = found / SHARD

    def change(table: pa.Table, words: dict[str, Any]) -> pa.Table:
        return table.set_column(table.schema.get_field_index("x1"), "x1", [[1e6] * len(table)])

    rewritten(path, change)
    refused(lambda: read_parquet(found), "image 2: .*expected x1 <= x2", path)
    refused(lambda: read_detections(found, TRUTH), "image 2: .*expected x1 <= x2", path)
    refused(lambda: evaluate(TRUTH, found), "image 2: .*expected x1 <= x2", path)


def test_an_image_in_two_shards(found: Path, truth: Path) -> None:
    for folder, read in ((found, read_parquet), (truth, read_parquet_truth)):
        (folder / "part-9.parquet").write_bytes((folder / SHARD).read_bytes())
        refused(
            lambda: read(folder),  # noqa: B023
            r"image 2: the image is also in .*part-9\.parquet; keep each image in one shard",
            folder / SHARD,
        )


def with_word(name: str, value: Any) -> Callable[[pa.Table, dict[str, Any]], pa.Table]:
    def change(table: pa.Table, words: dict[str, Any]) -> pa.Table:
        words[name] = value
        return table

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_word("classes", ["a", "b", "c", "d", "e"]), r"has other classes than .*part-00000-of-00003\.parquet"),
        (with_word("table", "truth"), "expected detections, but this file holds ground truth"),
        (with_word("format", 2), "is of format 2, this probox reads 1"),
        (
            lambda table, words: table.append_column("cov1_xx", [[1.0] * len(table)]),
            r"differs in having covariances from .*part-00000-of-00003\.parquet",
        ),
        (
            lambda table, words: table.append_column("mask_x0", [[1] * len(table)]),
            r"differs in having masks from .*part-00000-of-00003\.parquet",
        ),
        (
            lambda table, words: table.append_column("heatmap", [[b""] * len(table)]),
            r"differs in having heatmaps from .*part-00000-of-00003\.parquet",
        ),
        (lambda table, words: table.drop_columns(["image_id"]), "expected a column 'image_id'"),
    ],
)
def test_shards_that_differ(found: Path, change: Callable[..., pa.Table], message: str) -> None:
    rewritten(found / SHARD, change)
    refused(lambda: read_parquet(found), message, found / SHARD)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("category_ids", [5, 6], "has other category ids than"),
        ("filter_small", True, "has another filter_small setting than"),
        ("classes", ["dog", "cup"], "has other classes than"),
    ],
)
def test_truth_that_differs(truth: Path, name: str, value: Any, message: str) -> None:
    rewritten(truth / SHARD, with_word(name, value))
    refused(lambda: read_truth(truth), message, truth / SHARD)


def test_a_shard_without_rows_goes_with_any(found: Path) -> None:
    """What a worker found nothing in has no covariances to show."""
    covariances = np.tile(np.eye(2) * 4, (60, 2, 1, 1))
    write_parquet(found, FOUND.replace(covariances=covariances), shards=3)
    write_parquet(found / "part-a.parquet", FOUND.select(np.zeros(0, np.int64)))
    again = read_parquet(found)
    np.testing.assert_array_equal(again.covariances, covariances)


def test_folders_without_shards(tmp_path: Path, found: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(lambda: read_parquet(empty), "expected Parquet files in this folder, but found none", empty)
    refused(lambda: read_parquet(tmp_path / "nowhere"), "no such file", tmp_path / "nowhere")
    with pytest.raises(InputError, match="empty: "):
        read_truth(empty)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    pq.write_table(pa.table({"a": [1]}), foreign / "part-0.parquet")
    refused(lambda: read_truth(foreign), "is a Parquet file, but was not written by probox", foreign / "part-0.parquet")
    (foreign / "part-0.parquet").write_text("no")
    refused(lambda: read_truth(foreign), "expected a Parquet file", foreign / "part-0.parquet")
    refused(lambda: read_truth(found), "holds detections", found / "part-00000-of-00003.parquet")


def test_a_file_that_may_not_be_read(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    original = os.open

    def forbid(path: Any, *args: Any, **options: Any) -> int:
        if str(path).endswith(SHARD):
            raise PermissionError(13, "Permission denied")
        return original(path, *args, **options)

    monkeypatch.setattr(os, "open", forbid)
    refused(lambda: read_parquet(found), "cannot be read: Permission denied; check its permissions", found / SHARD)


def test_row_groups_of_half_images(tmp_path: Path, found: Path) -> None:
    """Another tool cuts where it likes: such shards are read, but not piece by piece."""
    pq.write_table(pq.read_table(found / SHARD, partitioning=None), found / SHARD, row_group_size=3)
    np.testing.assert_array_equal(read_parquet(found).boxes, FOUND.boxes)
    np.testing.assert_array_equal(read_parquet(found, image_ids=[3]).boxes, FOUND.boxes[30:40])
    refused(lambda: evaluate(TRUTH, found), "row groups of whole images", found / SHARD)


def test_wanted_images_that_there_are_not(truth: Path) -> None:
    refused(lambda: read_parquet_truth(truth, image_ids=[1, 77]), "image 77: unknown image", truth)
    assert len(read_parquet_truth(truth, image_ids=[]).dataset) == 0

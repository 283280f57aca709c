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
from tests.strategies import random_world

from probox import GroundTruth, InputError, evaluate_parquet, read_detections, read_truth
from probox.formats import read_parquet, read_parquet_truth, write_parquet
from probox.formats.parquet.index import UNFINISHED
from probox.formats.parquet.shards import INDEX

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


def without_index(folder: Path) -> Path:
    (folder / INDEX).unlink()
    return folder


def rewritten(path: Path, change: Callable[[pa.Table, dict[str, Any]], pa.Table]) -> None:
    table = pq.read_table(path, partitioning=None)
    words = json.loads(table.schema.metadata[b"probox"])
    changed = change(table, words)
    pq.write_table(changed.replace_schema_metadata({"probox": json.dumps(words)}), path)


def test_a_shard_too_many(found: Path) -> None:
    write_parquet(found / "camera=x.parquet", FOUND.replace(image_ids=FOUND.image_ids + 100))
    refused(
        lambda: read_parquet(found),
        r"is not in the index of the set; write the set again, or delete _index\.parquet",
        found / "camera=x.parquet",
    )
    assert len(read_parquet(without_index(found))) == 120


def test_a_shard_too_few(found: Path) -> None:
    (found / SHARD).unlink()
    refused(lambda: read_parquet(found), "is missing, but the index of the set lists it; write", found / SHARD)
    assert len(read_parquet(without_index(found))) == 40


def test_a_shard_of_another_size(found: Path) -> None:
    with open(found / SHARD, "ab") as file:
        file.write(b"\0")
    refused(lambda: read_parquet(found), "bytes, but the index of the set says .*; write the set again", found / SHARD)


def test_another_shard_of_the_same_size(found: Path) -> None:
    """Its footer tells, when it is opened."""
    path = found / SHARD
    data, other = path.read_bytes(), found.parent / "other.parquet"
    write_parquet(other, read_parquet(path).replace(notes=("x",)))
    changed = other.read_bytes()
    path.write_bytes(data.replace(b"probox_digest", b"PROBOX_digest"))
    assert len(changed) != len(data)
    assert len(read_parquet(found, image_ids=[0, 5])) == 20
    refused(lambda: read_parquet(found), "was changed since the index of the set was written", path)
    refused(lambda: read_parquet(found, image_ids=[2]), "was changed since the index", path)


@pytest.mark.parametrize("length", [0, 3, 200, -1])
def test_a_truncated_shard(found: Path, truth: Path, length: int) -> None:
    for folder, read in ((found, read_parquet), (truth, read_parquet_truth)):
        path = without_index(folder) / SHARD
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
    path = without_index(found) / SHARD

    def change(table: pa.Table, words: dict[str, Any]) -> pa.Table:
        return table.set_column(table.schema.get_field_index("x1"), "x1", [[1e6] * len(table)])

    rewritten(path, change)
    refused(lambda: read_parquet(found), "image 2: .*expected x1 <= x2", path)
    refused(lambda: read_detections(found, TRUTH), "image 2: .*expected x1 <= x2", path)
    refused(lambda: evaluate_parquet(TRUTH, found), "image 2: .*expected x1 <= x2", path)


def test_an_image_in_two_shards(found: Path, truth: Path) -> None:
    for folder, read in ((found, read_parquet), (truth, read_parquet_truth)):
        (folder / "part-9.parquet").write_bytes((folder / SHARD).read_bytes())
        refused(
            lambda: read(without_index(folder)),  # noqa: B023
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
            r"is alone in having covariances or none, unlike .*part-00000-of-00003\.parquet",
        ),
        (lambda table, words: table.drop_columns(["image_id"]), "expected a column 'image_id'"),
    ],
)
def test_shards_that_differ(found: Path, change: Callable[..., pa.Table], message: str) -> None:
    rewritten(without_index(found) / SHARD, change)
    refused(lambda: read_parquet(found), message, found / SHARD)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("category_ids", [5, 6], "numbers its categories otherwise than"),
        ("filter_small", True, "goes by other rules than"),
        ("classes", ["dog", "cup"], "has other classes than"),
    ],
)
def test_truth_that_differs(truth: Path, name: str, value: Any, message: str) -> None:
    rewritten(without_index(truth) / SHARD, with_word(name, value))
    refused(lambda: read_truth(truth), message, truth / SHARD)


def test_a_shard_without_rows_goes_with_any(found: Path) -> None:
    """What a worker found nothing in has no covariances to show."""
    covariances = np.tile(np.eye(2) * 4, (60, 2, 1, 1))
    write_parquet(found, FOUND.replace(covariances=covariances), shards=3)
    write_parquet(without_index(found) / "part-a.parquet", FOUND.select(np.zeros(0, np.int64)))
    again = read_parquet(found)
    np.testing.assert_array_equal(again.covariances, covariances)


def test_folders_without_shards(tmp_path: Path, found: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(lambda: read_parquet(empty), "expected Parquet files in this folder, but there are none", empty)
    refused(lambda: read_parquet(tmp_path / "nowhere"), "no such file", tmp_path / "nowhere")
    with pytest.raises(InputError, match="empty: "):
        read_truth(empty)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    pq.write_table(pa.table({"a": [1]}), foreign / "part-0.parquet")
    refused(lambda: read_truth(foreign), "is a Parquet file, but not one of probox", foreign / "part-0.parquet")
    (foreign / "part-0.parquet").write_text("no")
    refused(lambda: read_truth(foreign), "expected a Parquet file", foreign / "part-0.parquet")
    refused(lambda: read_truth(found), "expected ground truth, but this set holds detections", found)
    refused(lambda: read_truth(without_index(found)), "holds detections", found / "part-00000-of-00003.parquet")


def test_a_file_that_may_not_be_read(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    original = os.open

    def forbid(path: Any, *args: Any, **options: Any) -> int:
        if str(path).endswith(SHARD):
            raise PermissionError(13, "Permission denied")
        return original(path, *args, **options)

    monkeypatch.setattr(os, "open", forbid)
    refused(lambda: read_parquet(found), "cannot be read: Permission denied; check its permissions", found / SHARD)


def spoiled_index(found: Path, change: Callable[[pa.Table, dict[str, Any]], pa.Table]) -> Path:
    rewritten(found / INDEX, change)
    return found / INDEX


def moved(name: str, at: int, value: int) -> Callable[[pa.Table, dict[str, Any]], pa.Table]:
    def change(table: pa.Table, words: dict[str, Any]) -> pa.Table:
        column = table.column(name).to_pylist()
        column[at] = value
        return table.set_column(table.schema.get_field_index(name), name, pa.array(column, table.column(name).type))

    return change


def without_shards(table: pa.Table, words: dict[str, Any]) -> pa.Table:
    words["shards"] = words["shards"][:2]
    return table


UNSOUND: dict[str, Callable[..., pa.Table]] = {
    "a shard that there is not": moved("shard", 5, 3),
    "a shard before the first": moved("shard", 5, -1),
    "a group before the first": moved("group", 5, -1),
    "no rows": moved("rows", 5, 0),
    "too many rows": moved("rows", 5, 11),
    "rows that make up for others": lambda t, w: moved("rows", 5, 20)(moved("rows", 4, 0)(t, w), w),
    "unsorted": moved("image_id", 5, 0),
    "an image twice": moved("image_id", 3, 4),
    "a column too few": lambda t, w: t.drop_columns(["group"]),
    "broken ids": lambda t, w: t.set_column(0, "image_id", pa.array([0.5] * len(t))),
    "shards cut off": without_shards,
    "no shards": with_word("shards", []),
    "shards that are none": with_word("shards", [{"name": "x"}]),
    "classes that are none": with_word("classes", [1, 2]),
    "another table": with_word("table", "detections"),
    "of something else": with_word("of", "photos"),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_an_index_that_is_none(found: Path, name: str) -> None:
    place = spoiled_index(found, UNSOUND[name])
    refused(lambda: read_parquet(found), r"cannot be read as the index of a set.*or delete _index\.parquet", place)


def test_an_index_of_the_future(found: Path) -> None:
    refused(lambda: read_parquet(found), "is of format 2", spoiled_index(found, with_word("format", 2)))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"hello"])
def test_an_index_that_is_damaged(found: Path, content: bytes) -> None:
    (found / INDEX).write_bytes(content)
    refused(lambda: read_parquet(found), "cannot be read as the index of a set", found / INDEX)


def test_an_index_that_lies(found: Path, truth: Path) -> None:
    """It is sound, and its shards are as it says; what is read is compared with it all the same."""
    swap: Callable[..., pa.Table] = lambda t, w: t.set_column(0, "image_id", pa.array([0, 1, 2, 7, 8, 9]))  # noqa: E731
    spoiled_index(found, swap)
    refused(lambda: read_parquet(found), "holds other images than the index of the set says", found / SHARD)
    refused(lambda: read_parquet(found, image_ids=[7]), "holds other images than the index", found / SHARD)
    spoiled_index(truth, swap)
    refused(lambda: read_truth(truth), "holds other images than the index of the set says", truth / SHARD)


def test_the_index_knows_other_classes(found: Path) -> None:
    spoiled_index(found, with_word("classes", ["a", "b", "c", "d", "e"]))
    refused(
        lambda: read_parquet(found),
        "has other classes than the index of the set says",
        found / SHARD.replace("1", "0", 1),
    )


def test_a_set_that_was_not_finished(found: Path) -> None:
    (found / INDEX).write_bytes(UNFINISHED)
    refused(lambda: read_parquet(found), "the set is not complete: .*; write the set again", found / INDEX)


def test_row_groups_of_half_images(tmp_path: Path, found: Path) -> None:
    """Another tool cuts where it likes: such shards are read, but not piece by piece."""
    pq.write_table(pq.read_table(found / SHARD, partitioning=None), found / SHARD, row_group_size=3)
    np.testing.assert_array_equal(read_parquet(without_index(found)).boxes, FOUND.boxes)
    np.testing.assert_array_equal(read_parquet(found, image_ids=[3]).boxes, FOUND.boxes[30:40])
    refused(lambda: evaluate_parquet(TRUTH, found), "row groups of whole images", found / SHARD)


def test_wanted_images_that_there_are_not(truth: Path) -> None:
    refused(lambda: read_parquet_truth(truth, image_ids=[1, 77]), "image 77: there is no such image", truth)
    assert len(read_parquet_truth(truth, image_ids=[]).dataset) == 0
    random_truth, _ = random_world(12, max_images=9)
    assert len(random_truth.dataset) > 3

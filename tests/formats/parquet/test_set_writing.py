"""What a set looks like that is written here, and what it may take the place of."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.parquet.tables import assert_same, by_image, some_detections
from tests.readers import read_parquet, read_parquet_truth
from tests.strategies import random_world

from probox import Detections, GroundTruth, InputError
from probox.formats import write_parquet
from probox.formats.parquet.format import _borders
from probox.notes import Note
from probox.tables.masks import Masks


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_shards_hold_whole_images_by_ascending_ids(tmp_path: Path) -> None:
    found = some_detections(400, seed=5, image_ids=np.random.default_rng(0).integers(0, 90, 400))
    assert write_parquet(tmp_path / "set", found, shards=16) == ()
    assert names(tmp_path / "set") == [f"part-{number:05d}-of-00016.parquet" for number in range(16)]
    ids = [pq.read_table(p).column("image_id").to_numpy() for p in sorted((tmp_path / "set").glob("part-*"))]
    assert all(before[-1] < after[0] for before, after in pairwise(ids))
    rows = [len(part) for part in ids]
    assert sum(rows) == 400
    assert 25 - 12 < min(rows) <= max(rows) < 25 + 12


def test_images_without_objects_are_shared_out_too(tmp_path: Path) -> None:
    images = list(range(40))
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys(images, (9, 9)), [3], [[1, 1, 4, 4]], [0])
    write_parquet(tmp_path / "truth", truth, shards=8)
    rows = [pq.read_metadata(path).num_rows for path in sorted((tmp_path / "truth").glob("part-*"))]
    assert rows == [5] * 8
    assert_same(truth, read_parquet_truth(tmp_path / "truth"))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(1, 50))
def test_every_shard_has_an_image_and_about_its_share(rows: list[int], shards: int) -> None:
    borders = list(_borders(np.concatenate([[0], np.cumsum(rows)]), shards))
    assert borders[0][0] == 0
    assert borders[-1][1] == len(rows)
    assert all(one[1] == other[0] for one, other in pairwise(borders))
    assert all(begin < end for begin, end in borders)
    assert len(borders) == min(shards, len(rows))
    counts = np.maximum(rows, 1)
    largest = max(int(counts[begin:end].sum()) for begin, end in borders)
    assert largest <= counts.sum() / len(borders) + counts.max()


@pytest.mark.parametrize(("images", "shards"), [(3, 9), (1, 2), (0, 2)])
def test_fewer_images_than_shards(tmp_path: Path, images: int, shards: int) -> None:
    found = some_detections(images * 4, image_ids=np.repeat(np.arange(images), 4))
    notes = write_parquet(tmp_path / "set", found, shards=shards)
    assert notes == (Note("fewer-shards", max(1, images), wanted=shards, images=images),)
    assert len(names(tmp_path / "set")) == max(1, images)
    assert_same(by_image(found), read_parquet(tmp_path / "set"))


@pytest.mark.parametrize("shards", [0, -1, 1.5, "4", True])
def test_a_number_of_shards_that_is_none(tmp_path: Path, shards: Any) -> None:
    with pytest.raises(InputError, match=r"expected argument `shards` to be a whole number, at least 1, but got"):
        write_parquet(tmp_path / "set", some_detections(), shards=shards)
    assert names(tmp_path) == []


def test_a_set_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    write_parquet(tmp_path / "set", some_detections(seed=1), shards=5)
    found = some_detections(seed=2)
    write_parquet(tmp_path / "set", found, shards=np.int64(2))
    assert names(tmp_path / "set") == ["part-00000-of-00002.parquet", "part-00001-of-00002.parquet"]
    assert names(tmp_path) == ["set"]
    assert_same(by_image(found), read_parquet(tmp_path / "set"))


def test_without_an_exchange_of_folders_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probox.files.output._swap", lambda one, other: False)
    write_parquet(tmp_path / "set", some_detections(seed=1), shards=5)
    found = some_detections(seed=2)
    write_parquet(tmp_path / "set", found, shards=2)
    assert names(tmp_path) == ["set"]
    assert_same(by_image(found), read_parquet(tmp_path / "set"))

    def fail(source: Any, target: Any) -> None:
        if Path(source).name == "part-00002-of-00003.parquet":
            raise OSError(5, "Input/output error")
        original(source, target)

    original = os.replace
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match=r"part-00002-of-00003\.parquet: cannot be written: Input/output error"):
        write_parquet(tmp_path / "set", some_detections(seed=3), shards=3)
    assert_same(by_image(found), read_parquet(tmp_path / "set"))
    assert names(tmp_path) == ["set"]


def test_a_set_that_lost_a_shard_can_be_written_again(tmp_path: Path) -> None:
    found = some_detections(seed=2)
    write_parquet(tmp_path / "set", found, shards=3)
    (tmp_path / "set" / "part-00001-of-00003.parquet").unlink()
    write_parquet(tmp_path / "set", found, shards=3)
    assert_same(by_image(found), read_parquet(tmp_path / "set"))


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    write_parquet(tmp_path / "set", some_detections(), shards=2)
    assert len(names(tmp_path / "set")) == 2
    write_parquet(tmp_path / "a" / "b" / "set", some_detections(), shards=2)
    assert len(names(tmp_path / "a" / "b" / "set")) == 2


def refused(message: str, place: Path, table: Detections | GroundTruth | None = None) -> None:
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=message) as raised:
        write_parquet(place, some_detections() if table is None else table, shards=2)
    assert "\n" not in str(raised.value)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    assert [name for name in names(place.parent) if name.startswith(".")] == []


def test_what_is_not_replaced(tmp_path: Path) -> None:
    truth, _ = random_world(12)
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "1.png").write_bytes(b"png")
    refused("photos: is not empty, and probox did not write its files; choose another name", photos)
    hand = tmp_path / "hand"
    hand.mkdir()
    write_parquet(hand / "part-0.parquet", some_detections())
    refused("hand: is not empty, and probox did not write its files", hand)
    own = tmp_path / "own"
    write_parquet(own, some_detections(), shards=2)
    refused("own: exists and does not contain ground truth in Parquet", own, truth)
    (own / "notes.txt").write_text("mine")
    refused(r"own/notes\.txt: is in the way: not part of the set", own)
    (own / "notes.txt").unlink()
    (own / "part-00000-of-00002.parquet").write_bytes(b"mine")
    refused("own: exists and does not contain detections in Parquet", own)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="file: is a file, expected a folder to write to"):
        write_parquet(tmp_path / "file", some_detections(), shards=2)
    with pytest.raises(InputError, match=r"own: cannot be written: it is a folder"):
        write_parquet(own, some_detections())


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = some_detections(seed=1)
    write_parquet(tmp_path / "set", found, shards=3)
    original = pq.ParquetWriter.write_table
    calls = []

    def fail(self: Any, *args: Any, **options: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        original(self, *args, **options)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(InputError, match="set: cannot be written: No space left"):
        write_parquet(tmp_path / "set", some_detections(seed=2), shards=4)
    assert_same(by_image(found), read_parquet(tmp_path / "set"))
    assert names(tmp_path) == ["set"]


def test_what_a_killed_run_left_is_not_in_the_way(tmp_path: Path) -> None:
    """A hidden folder is that of a run if it has the marker of one: without, it is the user's."""
    folder, found = tmp_path / "set", some_detections(seed=2)
    write_parquet(folder, some_detections(seed=1), shards=2)
    left = folder / ".set.0123abcd.part"
    (left / "files").mkdir(parents=True)
    (left / "files" / "part-00000-of-00001.parquet").write_bytes(b"half a file")
    with pytest.raises(InputError, match=r"part-00000-of-00001\.parquet: is in the way"):
        write_parquet(folder, found, shards=1)
    assert (left / "files" / "part-00000-of-00001.parquet").exists()
    (left / "made-by-probox").touch()
    (folder / ".set.probox.lock").touch()
    write_parquet(folder, found, shards=1)
    assert_same(by_image(found), read_parquet(folder))
    assert not left.exists()


def test_what_comes_meanwhile_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody puts a file into the folder while the set is made."""
    found = some_detections(seed=1)
    write_parquet(tmp_path / "set", found, shards=2)
    original = pq.ParquetWriter.write_table

    def and_meanwhile(self: Any, *args: Any, **options: Any) -> None:
        (tmp_path / "set" / "notes.txt").write_text("mine")
        original(self, *args, **options)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", and_meanwhile)
    with pytest.raises(InputError, match=r"set/notes\.txt: is in the way"):
        write_parquet(tmp_path / "set", some_detections(seed=2), shards=2)
    assert (tmp_path / "set" / "notes.txt").read_text() == "mine"
    assert_same(by_image(found), read_parquet(tmp_path / "set"))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 12))
def test_borders_are_those_nearest_to_a_fair_share(rows: list[int], shards: int) -> None:
    offsets = np.cumsum([0, *rows])
    ends = np.cumsum([0, *(max(1, count) for count in rows)])
    shards = min(shards, len(rows))
    begin = 0
    for number, border in enumerate(list(_borders(offsets, shards))[:-1], 1):
        fair = int(np.argmin(np.abs(ends - ends[-1] * number / shards)))
        assert border == (begin, min(max(fair, begin + 1), len(rows) - (shards - number)))
        begin = border[1]


def test_masks_and_heatmaps_of_a_set(tmp_path: Path) -> None:
    found = some_detections(4, image_ids=[1, 2, 3, 4])
    found = found.replace(
        heatmaps=[np.full((4, 4), 7, np.uint8), None, None, None], masks=Masks.from_boxes(np.array([[0, 0, 3, 3]] * 4))
    )
    assert write_parquet(tmp_path / "set", found, shards=2) == ()
    read = read_parquet(tmp_path / "set")
    assert_same(found, read, but=("source", "heatmaps"))
    assert [heatmap is None for heatmap in read.heatmaps] == [False, True, True, True]
    assert read_parquet(tmp_path / "set", image_ids=[4, 2]).masks.pixels.tolist() == [16, 16]

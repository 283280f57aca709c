"""Sets of many files: the same table to the bit as one file, read whole, by images and piece by piece."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.evaluation.equal import assert_equal
from tests.formats.parquet.tables import assert_same, by_image, some_detections
from tests.readers import read_parquet, read_parquet_truth
from tests.strategies import random_world

from probox import Detections, GroundTruth, InputError, evaluate, read_detections, read_truth
from probox.formats import write_parquet
from probox.formats.parquet import writing as parquet_writing
from probox.formats.parquet.sets import open_detections, open_truth
from probox.formats.parquet.shards import Shard, is_parquet_source
from probox.notes import Note

SMALL = 300
"""Bytes of a row group: a few detections."""


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writing, "GROUP_BYTES", SMALL)


def world(seed: int = 12) -> tuple[GroundTruth, Detections]:
    return random_world(seed, heatmaps=False, max_images=9)


def by_hand(folder: Path, tables: dict[str, Detections | GroundTruth]) -> Path:
    """Put files together as any other tool would: no index, any names."""
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_parquet(folder / name, table)
    return folder


def interleaved(folder: Path, found: Detections) -> Path:
    """Put every other image with detections into each of two partitions of a hive."""
    ids = np.unique(found.image_ids)
    parts = {odd: found.select(np.isin(found.image_ids, ids[odd::2])) for odd in (0, 1)}
    return by_hand(folder, {f"rain=no/camera={odd}/part-0.parquet": part for odd, part in parts.items()})


@given(seed=st.integers(0, 2**32 - 1), shards=st.integers(1, 12), group_bytes=st.sampled_from([1, SMALL, 1 << 20]))
@examples(12)
def test_a_set_is_its_file(tmp_path_factory: pytest.TempPathFactory, seed: int, shards: int, group_bytes: int) -> None:
    truth, found = world(seed)
    folder = tmp_path_factory.mktemp("set")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_writing, "GROUP_BYTES", group_bytes)
        for name, table in (("truth", truth), ("found", found)):
            write_parquet(folder / f"{name}.parquet", table)
            write_parquet(folder / name, table, shards=shards)
    assert_same(read_truth(folder / "truth.parquet"), read_truth(folder / "truth"))
    assert_same(read_parquet(folder / "found.parquet"), read_parquet(folder / "found"))
    assert_same(read_detections(folder / "found.parquet", truth), read_detections(folder / "found", truth))
    some = truth.image_ids[::2]
    assert_same(truth.select_images(some), read_parquet_truth(folder / "truth", image_ids=some))
    assert_same(read_parquet(folder / "found.parquet", image_ids=some), read_parquet(folder / "found", image_ids=some))
    whole = evaluate(truth, read_detections(folder / "found.parquet", truth))
    parts = evaluate(folder / "truth", folder / "found")
    assert_equal(parts, whole.without_labels())
    assert parts.notes == whole.notes


@pytest.mark.parametrize("seed", [3, 12, 40])
def test_partitions_whose_images_interleave(tmp_path: Path, seed: int) -> None:
    """Key folders just group, and names that begin with _ or . are no shards."""
    truth, found = world(seed)
    write_parquet(tmp_path / "found.parquet", found)
    folder = interleaved(tmp_path / "found", found)
    (folder / "_SUCCESS").write_text("")
    (folder / "rain=no" / ".part-0.parquet.crc").write_bytes(b"1234")
    (folder / ".part-9.parquet").write_bytes(b"half of")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part-7.parquet").write_bytes(b"half of")
    ids = truth.image_ids
    there = by_hand(
        tmp_path / "truth", {"b.parquet": truth.select_images(ids[::2]), "a/x.parquet": truth.select_images(ids[1::2])}
    )
    assert open_detections(folder).shards == 2
    assert_same(read_parquet(tmp_path / "found.parquet"), read_parquet(folder))
    assert_same(truth, read_truth(there))
    assert_same(truth.select_images(ids[2:5]), read_parquet_truth(there, image_ids=ids[2:5]))
    one = evaluate(truth, tmp_path / "found.parquet")
    other = evaluate(there, folder)
    assert_equal(one, other)


def test_shards_that_store_numbers_differently_come_together(tmp_path: Path) -> None:
    """One has decimals, sizes and scores, the other leaves out what follows from the rest."""
    plain = some_detections(30, seed=1, image_ids=np.repeat([1, 2, 3], 10))
    printed = some_detections(20, seed=2, image_ids=np.repeat([4, 5], 10))
    boxes = np.round(printed.boxes, 2)
    sizes = np.round(boxes[:, 2:] - boxes[:, :2], 2)
    boxes[:, 2:] = boxes[:, :2] + sizes
    odd = printed.replace(boxes=boxes, extents=sizes, scores=np.linspace(0.1, 0.9, 20))
    by_hand(tmp_path / "set", {"a.parquet": odd, "b.parquet": plain})
    again = read_parquet(tmp_path / "set")
    whole = Detections.concatenate([plain, odd])
    assert_same(whole, again, but=("source", "notes"))


def test_pieces_are_row_groups_of_whole_images(tmp_path: Path) -> None:
    found = some_detections(200, seed=5, image_ids=np.arange(200) % 40)
    write_parquet(tmp_path / "found.parquet", found)
    write_parquet(tmp_path / "found", found, shards=4)
    interleaved(tmp_path / "hive", found)
    wanted = np.array([0, 7, 8, 31, 77])
    for name in ("found.parquet", "found", "hive"):
        opened = open_detections(tmp_path / name)
        for ids in (None, wanted, np.zeros(0, np.int64)):
            pieces = list(opened.pieces(ids))
            seen = [np.unique(piece.image_ids) for piece in pieces]
            assert all(len(piece) for piece in pieces)
            assert all((np.diff(piece.image_ids) >= 0).all() for piece in pieces)
            expected = found if ids is None else found.select(np.isin(found.image_ids, ids))
            assert sorted(int(i) for part in seen for i in part) == np.unique(expected.image_ids).tolist()
            tables = [piece.to_table() for piece in pieces]
            if tables:
                assert_same(by_image(expected), by_image(Detections.concatenate(tables)), but=("source", "notes"))
        assert len(list(opened.pieces())) > 10
        ids, counts = opened.image_counts()
        assert ids.tolist() == list(range(40))
        assert counts.tolist() == [5] * 40


def spoil_rows(path: Path) -> None:
    """Damage all columns of a shard but the first, the image ids."""
    data, metadata = bytearray(path.read_bytes()), pq.read_metadata(path)
    for group in range(metadata.num_row_groups):
        for column in range(1, metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            begin = min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
            data[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(data)


def test_only_what_is_needed_is_read(tmp_path: Path) -> None:
    """Rows of shards without a wanted image may be damaged, as long as they are not asked for."""
    truth, _ = world(12)
    found = some_detections(60, seed=5, image_ids=np.repeat(np.arange(6), 10))
    write_parquet(tmp_path / "found", found, shards=3)
    write_parquet(tmp_path / "truth", truth, shards=3)
    ids = read_parquet_truth(tmp_path / "truth" / "part-00001-of-00003.parquet").image_ids
    for name in ("found", "truth"):
        for number in (0, 2):
            spoil_rows(tmp_path / name / f"part-0000{number}-of-00003.parquet")
    assert_same(truth.select_images(ids), read_parquet_truth(tmp_path / "truth", image_ids=ids))
    assert_same(found.select(np.isin(found.image_ids, [2, 3])), read_parquet(tmp_path / "found", image_ids=[3, 2, 99]))
    assert len(open_detections(tmp_path / "found").read_images(np.array([99]))) == 0
    with pytest.raises(InputError, match=r"part-00002-of-00003\.parquet: cannot be read as Parquet"):
        read_parquet(tmp_path / "found", image_ids=[3, 4])
    with pytest.raises(InputError, match=r"part-00000-of-00003\.parquet: cannot be read as Parquet"):
        read_parquet(tmp_path / "found")


def test_row_groups_without_a_wanted_image_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = some_detections(60, seed=5, image_ids=np.repeat(np.arange(12), 5))
    write_parquet(tmp_path / "found", found, shards=2)
    opened = open_detections(tmp_path / "found")
    opened.image_counts()
    read: list[list[int]] = []
    original = Shard.read

    def watch(self: Shard, columns: list[str], groups: list[int], **options: object) -> object:
        table = original(self, columns, groups, **options)
        if "image_id" in columns:
            read.append(sorted(set(table.column("image_id").to_pylist())))
        return table

    monkeypatch.setattr(Shard, "read", watch)
    assert [set(piece.image_ids.tolist()) for piece in opened.pieces(np.array([0, 11]))] == [{0}, {11}]
    assert [{0, 11} & set(images) for images in read] == [{0}, {11}]
    assert sum(map(len, read)) < 12


def test_a_set_may_be_read_while_its_pieces_are_taken(tmp_path: Path) -> None:
    found = some_detections(60, seed=5, image_ids=np.repeat(np.arange(12), 5))
    write_parquet(tmp_path / "found", found, shards=3)
    opened = open_detections(tmp_path / "found")
    for piece in opened.pieces():
        others = np.setdiff1d(np.arange(12), piece.image_ids)
        assert len(opened.read_images(others)) + len(piece) == 60


def test_a_fingerprint_tells_content(tmp_path: Path) -> None:
    found = some_detections(40, seed=1)
    write_parquet(tmp_path / "a", found, shards=3)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    prints = [open_detections(tmp_path / name).fingerprint() for name in "ab"]
    assert prints[0] == prints[1]
    assert len(prints[0]) == 64
    boxes = found.boxes.copy()
    boxes[7, 0] = np.nextafter(boxes[7, 0], 0)  # one bit, in columns of the same size
    write_parquet(tmp_path / "a", found.replace(boxes=boxes, extents=None), shards=3)
    assert open_detections(tmp_path / "a").fingerprint() != prints[0]
    write_parquet(tmp_path / "one.parquet", found)
    shutil.copy(tmp_path / "one.parquet", tmp_path / "two.parquet")
    one, two = (open_detections(tmp_path / f"{name}.parquet").fingerprint() for name in ("one", "two"))
    assert one == two != prints[0]
    truth, _ = world()
    write_parquet(tmp_path / "t", truth, shards=2)
    assert open_truth(tmp_path / "t").fingerprint() not in (one, *prints)


def test_notes_are_said_once(tmp_path: Path) -> None:
    found = some_detections(40).replace(notes=("from elsewhere", "3 were left out"))
    write_parquet(tmp_path / "set", found, shards=4)
    assert read_parquet(tmp_path / "set").notes == found.notes
    assert next(open_detections(tmp_path / "set").pieces()).notes == found.notes


def test_what_is_in_parquet_and_what_is_not(tmp_path: Path, golden_dir: Path) -> None:
    found = some_detections()
    write_parquet(tmp_path / "found.parquet", found)
    interleaved(tmp_path / "hive", found)
    (tmp_path / "empty").mkdir()
    assert is_parquet_source(tmp_path / "found.parquet")
    assert is_parquet_source(tmp_path / "hive")
    assert is_parquet_source("s3://bucket/found")
    assert not is_parquet_source(tmp_path / "empty")
    assert not is_parquet_source(tmp_path / "nowhere")
    assert not is_parquet_source(golden_dir / "bbox" / "ground_truth.json")
    sequence = tmp_path / "challenge" / "000000"
    sequence.mkdir(parents=True)
    (sequence / "labels.json").write_text("{}")
    write_parquet(tmp_path / "challenge" / "found.parquet", found)
    assert not is_parquet_source(tmp_path / "challenge")  # truth of the challenge, with what was found there


def test_linked_folders_belong_to_a_set(tmp_path: Path) -> None:
    found = some_detections(40)
    interleaved(tmp_path / "hive", found)
    (tmp_path / "hive" / "rain=no" / "camera=1").rename(tmp_path / "elsewhere")
    try:
        (tmp_path / "hive" / "rain=no" / "camera=1").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "hive" / "rain=no" / "again").symlink_to(tmp_path / "hive")
    except OSError:
        pytest.skip("no links on this system")
    assert_same(by_image(found), read_parquet(tmp_path / "hive"))


def test_an_image_without_detections_is_evaluated_wherever_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where pieces do not ascend, and where more images have none than go together."""
    monkeypatch.setattr("probox.evaluation.inputs.TOGETHER", 2)
    images = list(range(40))
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys(images, (64, 48)), images, [[10, 20, 40, 40]] * 40, [0] * 40)
    at = [7, 8, 20, 33]
    found = Detections(
        classes=["cup"], image_ids=at, boxes=np.tile([10.0, 20, 40, 40], (4, 1)), label_probs=np.full((4, 1), 0.9)
    )
    interleaved(tmp_path / "hive", found)
    write_parquet(tmp_path / "truth", truth, shards=3)
    seen: list[int] = []
    result = evaluate(tmp_path / "truth", tmp_path / "hive", progress=lambda done, total: seen.append(done))
    assert result.dataset.image_ids.tolist() == images
    assert (result.tp, result.fp, result.fn) == (4, 0, 36)
    assert seen == sorted(seen)
    assert seen[-1] == 40
    some = evaluate(tmp_path / "truth", tmp_path / "hive", image_ids=[1, 7, 39])
    assert (some.dataset.image_ids.tolist(), some.tp, some.fn) == ([1, 7, 39], 1, 2)


def test_unknown_images_are_counted(tmp_path: Path) -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48), 2: (64, 48)}, [1], [[10, 20, 40, 40]], [0])
    found = Detections(
        classes=["cup"], image_ids=[1, 5, 6, 6], boxes=np.tile([10.0, 20, 40, 40], (4, 1)),
        label_probs=np.full((4, 1), 0.9),
    )  # fmt: skip
    write_parquet(tmp_path / "found", found, shards=3)
    result = evaluate(truth, tmp_path / "found")
    assert result.notes == (Note("unknown-images", 3, images=2),)
    assert (result.tp, result.fn) == (1, 0)

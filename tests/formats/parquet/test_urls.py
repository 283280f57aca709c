"""Sets and files that are named by URLs, in a file system that fsspec keeps in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats.parquet.tables import assert_same, by_image, some_detections
from tests.readers import read_parquet, read_parquet_truth
from tests.strategies import random_world

from probox import InputError, evaluate, read_detections, read_truth
from probox.formats import write_parquet
from probox.formats.parquet.sets import open_detections

fsspec = pytest.importorskip("fsspec")

FOUND = by_image(some_detections(60, seed=3, image_ids=np.repeat(np.arange(6), 10)))
SET = "memory://bucket/found"


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def files(memory: Any, folder: str = "/bucket/found") -> list[str]:
    return sorted(name.removeprefix(f"{folder}/") for name in memory.find(folder))


def refused(call: Callable[[], Any], message: str, start: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        call()
    assert str(raised.value).startswith(start)
    assert "\n" not in str(raised.value)


def test_a_set_at_a_url_is_its_file(memory: Any, tmp_path: Path) -> None:
    truth, found = random_world(12, heatmaps=False, max_images=9)
    write_parquet(tmp_path / "found.parquet", found)
    write_parquet("memory://bucket/truth", truth, shards=3)
    write_parquet(SET, found, shards=4)
    assert len(files(memory)) == 4
    assert_same(truth, read_truth("memory://bucket/truth"))
    assert_same(truth.select_images(truth.image_ids[1:3]), read_parquet_truth(
        "memory://bucket/truth", image_ids=truth.image_ids[1:3]
    ))  # fmt: skip
    one = read_detections(tmp_path / "found.parquet", truth)
    assert_same(one, read_detections(f"{SET}/", truth))
    assert evaluate("memory://bucket/truth", SET).pdq == evaluate(truth, one).pdq
    assert evaluate("memory://bucket/truth", SET).pdq == evaluate(truth, one).pdq
    write_parquet(tmp_path / "set", found, shards=4)
    assert open_detections(SET).fingerprint() == open_detections(tmp_path / "set").fingerprint()
    assert open_detections(f"file://{tmp_path}/set").shards == 4


def test_a_file_at_a_url(memory: Any) -> None:
    write_parquet("memory://bucket/found.parquet", FOUND)
    assert_same(FOUND, read_parquet("memory://bucket/found.parquet"))
    write_parquet("memory://bucket/found.parquet", FOUND)
    memory.pipe("/bucket/photo.parquet", b"mine")
    refused(
        lambda: write_parquet("memory://bucket/photo.parquet", FOUND),
        "exists and does not contain detections in Parquet", "memory://bucket/photo.parquet: ",
    )  # fmt: skip
    refused(lambda: read_parquet("memory://bucket/photo.parquet"), "expected a Parquet file", "memory://bucket/photo")
    refused(lambda: write_parquet("memory://bucket", FOUND), "cannot be written: it is a folder", "memory://bucket: ")


def test_partitions(memory: Any) -> None:
    for odd in (0, 1):
        part = FOUND.select(np.flatnonzero(FOUND.image_ids % 2 == odd))
        write_parquet(f"{SET}/camera={odd}/part-0.parquet", part)
    memory.pipe("/bucket/found/_SUCCESS", b"")
    assert_same(FOUND, read_parquet(SET))
    assert_same(FOUND.select(np.flatnonzero(FOUND.image_ids == 3)), read_parquet(SET, image_ids=[3]))


def test_a_shard_that_is_missing_or_damaged(memory: Any) -> None:
    write_parquet(SET, FOUND, shards=3)
    place = "/bucket/found/part-00000-of-00003.parquet"
    memory.pipe(place, b"\0" * memory.size(place))
    refused(lambda: read_parquet(SET), "expected a Parquet file", f"{SET}/part-00000-of-00003.parquet: ")
    memory.rm_file(place)
    refused(lambda: read_parquet(SET), "is missing: the set is incomplete", f"{SET}/part-00000-of-00003.parquet: ")


def test_a_set_takes_the_place_of_an_earlier_one(memory: Any) -> None:
    write_parquet(SET, some_detections(seed=1), shards=5)
    write_parquet(SET, FOUND, shards=2)
    assert files(memory) == ["part-00000-of-00002.parquet", "part-00001-of-00002.parquet"]
    assert_same(FOUND, read_parquet(SET))
    truth, _ = random_world(12)
    refused(lambda: write_parquet(SET, truth, shards=2), "exists and does not contain ground truth", SET)
    memory.pipe("/bucket/found/photo.png", b"mine")
    refused(lambda: write_parquet(SET, FOUND, shards=2), "is in the way", f"{SET}/photo.png: ")
    refused(
        lambda: write_parquet("memory://bucket", FOUND, shards=2),
        "is not empty, and probox did not write",
        "memory://bucket",
    )
    write_parquet("memory://bucket/one.parquet", FOUND)
    refused(lambda: write_parquet("memory://bucket/one.parquet", FOUND, shards=2), "is a file, expected", "memory:")


def test_a_run_that_is_stopped_leaves_a_set_that_says_so(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be moved into place there: what is half new must not be read, but may be written again."""
    import pyarrow.parquet as pq

    write_parquet(SET, some_detections(seed=1), shards=3)
    original = pq.ParquetWriter.write_table
    calls: list[int] = []

    def fail(self: Any, *args: Any, **options: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        original(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", fail)
        with pytest.raises(KeyboardInterrupt):
            write_parquet(SET, FOUND, shards=3)
    refused(lambda: read_parquet(SET), "is missing: the set is incomplete; write the set again", SET)
    write_parquet(SET, FOUND, shards=2)
    assert_same(FOUND, read_parquet(SET))
    assert len(files(memory)) == 2


def test_urls_that_lead_nowhere(memory: Any) -> None:
    refused(lambda: read_truth("memory://nowhere/truth"), "no such file or folder; check the URL", "memory://nowhere")
    refused(lambda: read_truth("nothing://bucket/truth"), "unknown scheme 'nothing'", "nothing://")
    refused(lambda: read_truth(Path("memory://bucket/truth")), "looks like a URL that became a path", "memory:/bucket")
    refused(lambda: write_parquet(Path("s3://b/x"), FOUND), "give URLs as text", "s3:/b/x")


def test_a_scheme_without_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    refused(
        lambda: read_truth("s3://bucket/truth"), r"the scheme 's3' needs a driver .*pip install s3fs", "s3://bucket"
    )


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(InputError, match=r"URLs need fsspec; install it with: .*'probox\[distributed\]'"):
        read_truth(SET)
    write_parquet(tmp_path / "set", FOUND, shards=2)  # folders do without
    assert_same(FOUND, read_parquet(tmp_path / "set"))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError("Access Denied"), "cannot be read: Access Denied; check its permissions"),
        (RuntimeError("no\nroute"), "cannot be read: no route; check the URL and the connection"),
        (TimeoutError(), "cannot be read: TimeoutError"),
    ],
)
def test_what_drivers_raise(memory: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str) -> None:
    write_parquet(SET, FOUND, shards=2)

    def fail(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(type(memory), "open", fail)
        refused(lambda: read_parquet(SET), message, SET)
        refused(lambda: write_parquet("memory://b/x.parquet", FOUND), message.replace("read", "written"), "memory:")
    with monkeypatch.context() as patch:
        patch.setattr(type(memory), "find", fail)
        refused(lambda: read_parquet(SET), message, SET)

"""Reading: gzip by isal and by zlib give the same, and an input is looked at before it is read."""

from __future__ import annotations

import gzip
import os
import threading
import zlib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox import InputError, _core
from probox.files import reading
from probox.files.reading import Source

TEXT = b'[{"image_id": 1, "bbox": [1.5, 2.25, 3, 4]}]' * 200
GOOD = gzip.compress(TEXT, mtime=0)

FILES: dict[str, bytes] = {
    "good": GOOD,
    "of nothing": gzip.compress(b""),
    "several members": GOOD + gzip.compress(b"more") + GOOD,
    "zeros behind": GOOD + bytes(20),
    "more behind": GOOD + b"more",
    "a second member cut short": GOOD + GOOD[:30],
    "a second member damaged": GOOD + GOOD[:-8] + bytes(8),
    "header alone": b"\x1f\x8b",
    "cut short": GOOD[:-20],
    "without its last byte": GOOD[:-1],
    "wrong checksum": GOOD[:-8] + b"\0\0\0\0" + GOOD[-4:],
    "wrong length": GOOD[:-4] + b"\0\0\0\1",
    "other method": GOOD[:2] + b"\7" + GOOD[3:],
    "flags that must be 0": GOOD[:3] + b"\xe0" + GOOD[4:],
    "flag of a checksum": GOOD[:3] + b"\2" + GOOD[4:],
    "flag of a name": GOOD[:3] + b"\10" + GOOD[4:],
    "damaged": GOOD[:30] + b"\xff\xff\xff" + GOOD[33:],
    "larger than it may be": gzip.compress(bytes(100_000)),
}


@pytest.fixture(params=["isal", "zlib"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "isal":
        pytest.importorskip("isal")
    else:
        monkeypatch.setattr(reading, "_import_isal", lambda: None)
    return str(request.param)


def outcome(data: bytes, limit: int = 50_000) -> bytes | str:
    try:
        return reading.unpack(data, "file.gz", limit)
    except InputError as error:
        return str(error)


def by_zlib(data: bytes) -> bytes | str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_import_isal", lambda: None)
        return outcome(data)


EXPECTED: dict[str, bytes | str] = {
    "good": TEXT,
    "of nothing": b"",
    "several members": TEXT + b"more" + TEXT,
    "zeros behind": TEXT,
    "more behind": "file.gz: something follows the gzip data; download it again",
    "cut short": "file.gz: the gzip data is cut short; download it again",
    "wrong checksum": "file.gz: the gzip data is damaged (Error -3 while decompressing data: incorrect data check); "
    "download it again",
    "larger than it may be": f"file.gz: expands to more than 50,000 bytes from {len(FILES['larger than it may be'])}; "
    "decompress it first if you trust it",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_read(library: str, name: str) -> None:
    assert outcome(FILES[name]) == EXPECTED[name]


@pytest.mark.parametrize("name", FILES)
def test_both_say_the_same(name: str) -> None:
    pytest.importorskip("isal")
    assert outcome(FILES[name]) == by_zlib(FILES[name])


@given(st.data())
def test_both_say_the_same_of_damaged_files(data: st.DataObject) -> None:
    pytest.importorskip("isal")
    file = bytearray(GOOD + data.draw(st.sampled_from([b"", GOOD, bytes(3)])))
    for _ in range(data.draw(st.integers(1, 3))):
        file[data.draw(st.integers(2, len(file) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(file[: data.draw(st.integers(2, len(file)))])
    assert outcome(cut) == by_zlib(cut)


@pytest.mark.parametrize("spare", [-1, 0, 1])
def test_the_limit_is_exact(library: str, spare: int) -> None:
    found = outcome(GOOD, len(TEXT) + spare)
    assert found == TEXT if spare >= 0 else "expands to more than" in str(found)


@given(content=st.binary(max_size=3000))
def test_what_is_written_is_read_by_both(content: bytes) -> None:
    file = reading.pack(content)
    assert file == gzip.compress(content, 6, mtime=0)  # whatever is installed
    assert zlib.decompress(file, wbits=31) == content
    assert outcome(file) == content
    assert by_zlib(file) == content


def test_isal_is_used_where_it_is_installed() -> None:
    pytest.importorskip("isal")
    assert reading._import_isal() is import_module("isal.isal_zlib")


def test_a_pipe_is_looked_at_and_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[gzip.compress(b" [1, 2]")])
    writer.start()
    source = Source(tmp_path / "pipe")
    assert (source.head, source.first_character) == (b" [1, 2]", "[")
    assert source.content() == source.content() == b" [1, 2]"
    writer.join()


def test_several_threads_read_a_large_file(tmp_path: Path) -> None:
    content = np.random.default_rng(1).bytes(reading._LARGE + 12_345)
    (tmp_path / "file").write_bytes(content)
    assert reading.read_regular(tmp_path / "file") == content
    with open(tmp_path / "file", "rb") as file:
        file.read(5)
        for threads in (1, 3):
            assert _core.read_file(file.fileno(), len(content), threads) == content
        assert _core.read_file(file.fileno(), len(content) + 1, 3) is None  # it was longer a moment ago
        assert _core.read_file(file.fileno(), 0, 3) == b""
    assert _core.read_file(-1, 5, 1) is None


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_the_beginning_is_enough(tmp_path: Path, pack: type[bytes]) -> None:
    path = tmp_path / "file"
    path.write_bytes(pack(b"\n{" + b" " * (1 << 20) + b"}"))
    source = Source(path)
    assert (len(source.head), source.first_character) == (1 << 16, "{")
    path.write_bytes(pack(b" " * (1 << 17) + b"[]"))  # unless there is nothing but white space
    assert Source(path).first_character == "["


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    assert (Source(tmp_path).is_folder, Source(tmp_path).head, Source(tmp_path).first_character) == (True, b"", "")
    (tmp_path / "damaged").write_bytes(b"\x1f\x8b" + b"damaged" * 5)
    (tmp_path / "pointer").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    messages = {
        "missing": "no such file",
        "bad\0name": "cannot be read",
        "damaged": "gzip data is",
        "pointer": "pointer: is a Git LFS pointer, not the file itself; fetch it with git lfs pull",
    }
    for name, message in messages.items():
        source = Source(tmp_path / name)
        assert source.head == b""
        with pytest.raises(InputError, match=message):
            _ = source.first_character

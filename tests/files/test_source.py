"""An input is looked at before it is read: a pipe only once, a file only at its beginning."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest

from probox import InputError
from probox.files.source import Source


def test_a_pipe_is_looked_at_and_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[gzip.compress(b" [1, 2]")])
    writer.start()
    source = Source(tmp_path / "pipe")
    assert (source.head, source.first_character) == (b" [1, 2]", "[")
    assert source.content() == source.content() == b" [1, 2]"
    writer.join()


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

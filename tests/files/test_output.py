"""Output files appear all together or not at all: a failure leaves what was there before."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from probox import InputError
from probox.files.output import hold_signals, json_bytes, write_files


def test_a_failing_writer(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")

    def fail(file: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write_files({tmp_path / "a": b"after", tmp_path / "new" / "b": fail})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "before"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for path, message in [
        (tmp_path / "folder", "it is a folder"),
        (tmp_path / "file" / "x", "File exists|Not a directory"),
        (tmp_path / "no" / "such" / "x", "No such file"),
        (tmp_path / ("x" * 300), "File name too long"),
    ]:
        with pytest.raises(InputError, match=message):
            write_files({path: b""})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_files_get_the_usual_rights(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_files({tmp_path / "written": b""})
    assert (tmp_path / "written").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_names_that_end_in_gz_are_compressed() -> None:
    for name, packed in {"a.json.gz": True, "A.JSON.GZ": True, "a.json": False, "gz": False}.items():
        assert json_bytes(Path(name), b"{}").startswith(b"\x1f\x8b") == packed


def test_every_signal_arrives_after_it_was_held() -> None:
    seen: list[int] = []
    before = {
        number: signal.signal(number, lambda got, _: seen.append(got)) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with hold_signals():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
                signal.raise_signal(number)
            assert seen == []
        assert seen == [signal.SIGINT, signal.SIGTERM]
        signal.raise_signal(signal.SIGTERM)  # the handlers are those of before
        assert seen[2:] == [signal.SIGTERM]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Archives that are damaged or none, and files that are no files."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.amounts import some_of

from probox import Evaluation, InputError
from probox.evaluation.storage import COLUMNS, WORDS

from .conftest import read, refused, write

# --- damaged archives ---


def test_damaged_archives(tmp_path: Path, evaluation: Evaluation) -> None:
    """With a byte changed anywhere, cut short anywhere: the same evaluation, or one line."""
    evaluation.save(tmp_path)
    good = (tmp_path / COLUMNS).read_bytes()
    rng = np.random.default_rng(7)
    refusals, places = 0, some_of(600)
    for place in rng.choice(len(good), places, replace=False).tolist():
        bad = bytearray(good)
        bad[place] ^= 1 << int(rng.integers(8))
        (tmp_path / COLUMNS).write_bytes(bad if rng.random() < 0.8 else good[:place])
        try:
            again = Evaluation.load(tmp_path)
        except InputError:
            assert str(tmp_path) in refused(tmp_path)
            refusals += 1
        else:
            assert again.summary() == evaluation.summary()
    assert refusals > places / 2


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x05\x06" + b"\0" * 18, b"\x93NUMPY", b"\x80\x04."])
def test_no_archives(tmp_path: Path, evaluation: Evaluation, content: bytes) -> None:
    evaluation.save(tmp_path)
    (tmp_path / COLUMNS).write_bytes(content)
    assert str(tmp_path / COLUMNS) in refused(tmp_path)


def test_a_missing_archive(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path)
    (tmp_path / COLUMNS).unlink()
    assert "no such file; evaluate again" in refused(tmp_path)


def test_members_that_are_not_needed_are_not_read(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path)
    words, arrays = read(tmp_path)
    write(tmp_path, words, arrays, **{"more.npy": b"\0" * (64 << 20)})
    script = "import resource, sys; from probox import Evaluation; Evaluation.load(sys.argv[1]);" + (
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for _ in range(2):
        out = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, timeout=60, check=True)
        peaks.append(int(out.stdout))
        write(tmp_path, words, arrays)
    assert peaks[0] < peaks[1] + 32_000, peaks


def test_columns_that_expand_too_far(tmp_path: Path, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation.save(tmp_path)
    words, arrays = read(tmp_path)
    write(tmp_path, words, arrays | {"images.file_name": np.zeros(2, "<U4000000")})
    monkeypatch.setattr("probox.evaluation.archive.ALWAYS_FINE", 1 << 20)
    assert "tables.npz: expands to 32,0" in refused(tmp_path)


def test_a_header_that_declares_more_than_there_is(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path)
    with zipfile.ZipFile(tmp_path / COLUMNS) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    text = members["pairs.object.npy"]
    members["pairs.object.npy"] = text.replace(b"(%d,), }         " % len(evaluation.pairs), b"(99999999,), }  ")
    assert len(members["pairs.object.npy"]) != 0
    assert members["pairs.object.npy"] != text
    with zipfile.ZipFile(tmp_path / COLUMNS, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert "pairs.object" in refused(tmp_path)


# --- special files ---


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("name", [WORDS, COLUMNS])
def test_pipes_are_not_waited_for(tmp_path: Path, evaluation: Evaluation, name: str) -> None:
    evaluation.save(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    script = "import sys; from probox import Evaluation; Evaluation.load(sys.argv[1])"
    out = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, timeout=60)
    assert b"InputError" in out.stderr
    message = f"contains no {WORDS}" if name == WORDS else "expected a file, but this is a pipe; evaluate again"
    assert message.encode() in out.stderr


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
def test_devices_and_folders(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path)
    (tmp_path / COLUMNS).unlink()
    (tmp_path / COLUMNS).symlink_to("/dev/zero")
    assert "expected a file, but this is a device; evaluate again" in refused(tmp_path)
    (tmp_path / COLUMNS).unlink()
    (tmp_path / COLUMNS).mkdir()
    assert "expected a file, but this is a folder; evaluate again" in refused(tmp_path)


def test_no_folder(tmp_path: Path) -> None:
    assert "none: no such folder; give a folder that" in refused(tmp_path / "none")
    assert "no such folder" in refused(tmp_path / "nul\0")
    assert "no such folder" in refused(tmp_path / ("n" * 300))  # which is too long for a name
    assert f"contains no {WORDS}" in refused(tmp_path)

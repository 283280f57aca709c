"""`probox detect --shards`: the same detections as in one file, in a set of several."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.readers import read_parquet

from probox.cli import main
from probox.formats.parquet.sets import open_detections

pytest.importorskip("pyarrow")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(done.value.code or 0), out, " ".join(err.split())


def test_a_folder_of_shards(
    capsys: pytest.CaptureFixture[str], ssd: Path, names: Path, photos: Path, tmp_path: Path
) -> None:
    line = ("detect", ssd, "--images", photos, "--classes", names, "--threads", 1)
    assert run(capsys, *line, "--out", tmp_path / "found.parquet")[0] == 0
    status, out, err = run(capsys, *line, "--out", tmp_path / "found", "--shards", 3, "--json")
    assert status == 0, err
    assert json.loads(out)["out"] == str(tmp_path / "found")
    one, several = read_parquet(tmp_path / "found.parquet"), read_parquet(tmp_path / "found")
    assert len(one)
    for name in ("image_ids", "boxes", "label_probs", "scores"):
        np.testing.assert_array_equal(getattr(one, name), getattr(several, name))
    assert open_detections(tmp_path / "found").shards == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "found", "found.parquet", "names.txt", "photos", "ssd.onnx",
    ]  # fmt: skip
    assert run(capsys, *line, "--out", tmp_path / "found", "--shards", 2)[0] == 0  # an earlier set is replaced
    assert open_detections(tmp_path / "found").shards == 2


def test_a_url(
    capsys: pytest.CaptureFixture[str], ssd: Path, names: Path, photos: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    pytest.importorskip("fsspec")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    line = ("detect", ssd, "--images", photos, "--classes", names, "--threads", 1)
    status, _, err = run(capsys, *line, "--out", f"file://{tmp_path}/found", "--shards", 2)
    assert status == 0, err
    assert len(read_parquet(tmp_path / "found"))
    assert list((tmp_path / "here").iterdir()) == []


def test_what_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], ssd: Path, names: Path, photos: Path, tmp_path: Path
) -> None:
    line = ("detect", ssd, "--images", photos, "--classes", names, "--threads", 1)
    for more, message in (
        (("--out", photos, "--shards", 2), "is not empty, and is no set that probox wrote"),
        (("--out", photos), "--out is a folder"),
        (("--shards", 2), "--shards needs --out"),
        (("--out", tmp_path / "x", "--shards", 0), "0 is not in the range"),
    ):
        status, _, err = run(capsys, *line, *more)
        assert (status in (1, 2), message in err) == (True, True), err
    (photos / "3.png").rename(photos / "cat.png")
    status, _, err = run(capsys, *line, "--out", tmp_path / "found", "--shards", 2)
    assert (status, "Parquet would hold ids of images alone" in err) == (1, True)
    assert not (tmp_path / "found").exists()

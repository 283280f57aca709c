"""`probox detect` as people call it."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from probox.cli import main


def _run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(done.value.code or 0), out, err


def test_a_folder_becomes_a_file(
    capsys: pytest.CaptureFixture[str], ssd: Path, names: Path, photos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "found.json"
    status, printed, words = _run(
        capsys, "detect", ssd, "--images", photos, "--out", out, "--classes", names, "--threads", 1
    )
    assert status == 0
    assert printed == ""
    assert "4 images" in " ".join(words.split())
    assert len(json.loads(out.read_text())["detections"]) == 4


def test_json_says_what_happened(
    capsys: pytest.CaptureFixture[str], ssd: Path, names: Path, photos: Path, tmp_path: Path
) -> None:
    (photos / "99.jpg").write_bytes(b"oops")
    graph = tmp_path / "masked.onnx"
    status, printed, words = _run(
        capsys, "detect", ssd, "--images", photos, "--out", tmp_path / "f.coco.json", "--classes", names, "--json",
        "--uncertainty", "mc-dropout", "--passes", 3, "--dropout-rate", 0.2, "--dropout-layers", "box",
        "--save-graph", graph, "--batch", 4, "--threads", 1,
    )  # fmt: skip
    assert status == 0
    said = json.loads(printed)
    assert said["family"] == "ssd"
    assert said["images"] == 5
    assert said["dropout_layers"] == ["box.depthwise", "box.point"]
    assert "99.jpg" in said["skipped"][0]
    assert "99.jpg" in words
    cost = said["cost"]
    assert cost["plain"] >= cost["masked"] > 0
    assert f"went from {cost['plain']} to {cost['masked']}" in " ".join(words.split())
    kept = onnx.load(str(graph))
    onnx.checker.check_model(kept)
    assert [tensor.name for tensor in kept.graph.input[1:]] == [f"probox_dropout_{number}_mask" for number in (0, 1)]
    entries = json.loads((tmp_path / "f.coco.json").read_text())
    assert said["detections"] == len(entries) > 0
    assert all(len(entry["all_scores"]) == 3 and len(entry["covars"]) == 2 for entry in entries)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--out", "x.json"), 1, "--classes"),  # three classes are not COCO's
        (("--out", "x.txt"), 1, "file name"),
        (("--out", "x.json", "--family", "yolov9"), 2, "yolov9"),
        (("--out", "x.json", "--uncertainty", "edge-distribution", "--classes", "NAMES"), 1, "edges"),
        (("--out", "x.json", "--save-graph", "g.onnx", "--classes", "NAMES"), 2, "mc-dropout"),
        (("--out", "x.json", "--dropout-rate", "1.5"), 2, "1.5"),
        (("--out", "x.json", "--recipe", "paper", "--min-std", "2"), 1, "no part of the paper's recipe"),
        (
            ("--out", "x.json", "--classes", "NAMES", "--uncertainty", "mc-dropout", "--dropout-layers", "existing"),
            1,
            "ssd.onnx: the graph has no Dropout nodes",
        ),
    ],
)
def test_mistakes_are_one_line(
    capsys,
    ssd: Path,
    names: Path,
    photos: Path,
    tmp_path: Path,
    monkeypatch,
    arguments,
    status: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(names) if argument == "NAMES" else argument for argument in arguments]
    got, printed, words = _run(capsys, "detect", ssd, "--images", photos, *given)
    assert got == status
    assert message in words
    assert printed == ""
    if status == 1:
        assert len(words.strip().splitlines()) == 1


def test_help_loads_no_runtime() -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom probox.cli import main\n"
        "try:\n main(['detect', '--help'])\nexcept SystemExit:\n pass\n"
        "assert not {'onnx', 'onnxruntime', 'PIL', 'torch'} & set(sys.modules), 'loaded too much'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

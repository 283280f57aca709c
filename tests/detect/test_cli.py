"""`probox detect` as people call it."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from detect_graphs import small_yolo

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
    assert cost["plain"] - cost["disappear"] == cost["remain"] == cost["masked"] - cost["appear"]
    changed = f"{cost['disappear']} disappear and {cost['appear']} appear"
    assert f"{cost['remain']} of {cost['plain']} detections above 0.5 remain, {changed}" in " ".join(words.split())
    kept = onnx.load(str(graph))
    onnx.checker.check_model(kept)
    assert [tensor.name for tensor in kept.graph.input[1:]] == [f"probox_dropout_{number}_mask" for number in (0, 1)]
    entries = json.loads((tmp_path / "f.coco.json").read_text())
    assert said["detections"] == len(entries) > 0
    assert all(len(entry["all_scores"]) == 3 and len(entry["covars"]) == 2 for entry in entries)


def test_without_out_the_file_is_called_like_the_model(
    capsys: pytest.CaptureFixture[str], ssd: Path, names: Path, photos: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = ("detect", ssd, "--images", photos, "--classes", names, "--threads", 1)
    assert _run(capsys, *line)[0] == 0
    entries = json.loads((tmp_path / "ssd.coco.json").read_text())
    assert {entry["image_id"] for entry in entries} == {3, 7, 12, 20}
    status, _, words = _run(capsys, *line)
    assert status == 1
    assert "ssd.coco.json: is already there; give its name with --out to replace it" in " ".join(words.split())
    (photos / "3.png").rename(photos / "cat.png")
    status, _, words = _run(capsys, *line)
    assert status == 0
    assert "note: images are counted from 0" in words
    assert "add --truth FILE to use its image ids" in " ".join(words.split())
    assert json.loads((tmp_path / "ssd.rvc1.json").read_text())["img_names"] == ["12.png", "20.png", "7.png", "cat.png"]
    status, _, words = _run(capsys, *line, "--out", "x.coco.json")
    assert status == 1
    assert "add --truth FILE, which knows their ids, or write .rvc1.json" in " ".join(words.split())


def test_photos_may_follow_as_a_shell_writes_them(
    capsys: pytest.CaptureFixture[str], names: Path, photos: Path, tmp_path: Path
) -> None:
    model = small_yolo(tmp_path / "m.onnx", shape=("n", 3, "h", "w"), out_shape=("n", 7, "cells"))
    out = tmp_path / "found.coco.json"
    line = ["detect", model, "--family", "yolov8", "--classes", names, "--out", out, "--json", "--threads", 1]
    chosen = ["--images", photos / "3.png", photos / "7.png", "--images", photos / "20.png"]
    status, printed, _ = _run(capsys, *line, *chosen, "--size", "96x64", "--batch", 2)
    assert status == 0
    said = json.loads(printed)
    assert said["images"] == 3
    assert said["notes"][0].startswith("COCO results hold numbers of classes: 1 is cup")
    assert "add --truth FILE" in said["notes"][0]
    wide = out.read_text()
    assert _run(capsys, *line, *chosen, "--size", "64", "--workers", 3)[0] == 0
    assert out.read_text() != wide


def test_options_of_another_uncertainty_are_said(
    capsys: pytest.CaptureFixture[str], ssd: Path, names: Path, photos: Path, tmp_path: Path
) -> None:
    line = ["detect", ssd, "--images", photos / "3.png", "--classes", names, "--out", tmp_path / "x.json", "--json"]
    mistaken = ["--relative-std", 0.5, "--passes", 20]  # what they are by default would be a mistake as well
    said = json.loads(_run(capsys, *line, "--uncertainty", "nms-clusters", *mistaken)[1])["notes"]
    assert said[:2] == [
        "warning: --relative-std changes nothing here: it is for --uncertainty constant",
        "warning: --passes changes nothing here: it is for --uncertainty mc-dropout",
    ]
    said = json.loads(_run(capsys, *line, "--uncertainty", "constant", "--relative-std", 0.5)[1])["notes"]
    assert not [note for note in said if "changes nothing" in note]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--out", "x.json", "--size", "0x5"), 2, "expected a size such as 640x480, or 640"),
        (("--out", "x.json", "--size", "64x64x3"), 2, "expected a size such as 640x480, or 640"),
        (("--out", "x.json", "--size", "64", "--classes", "NAMES"), 1, "the graph's input is 32 x 32"),
        (("--out", "x.json", "--workers", "0"), 2, "--workers"),
        (("--out", "x.json", "--truth", "nowhere.json"), 1, "nowhere.json"),
        (("--out", "x.json", "--images", "nowhere"), 1, "nowhere: no such file or folder"),
        (("--out", "x.json"), 1, "--classes"),  # three classes are not COCO's
        (("--out", "x.txt"), 1, "file name"),
        (("--out", "x.json", "--family", "yolov9"), 2, "yolov9"),
        (("--out", "x.json", "--uncertainty", "edge-distribution", "--classes", "NAMES"), 1, "edges"),
        (("--out", "x.json", "--save-graph", "g.onnx", "--classes", "NAMES"), 2, "mc-dropout"),
        (("--out", "x.json", "--dropout-rate", "1.5"), 2, "1.5"),
        (
            ("--out", "x.json", "--recipe", "paper", "--min-std", "2"),
            1,
            "--shrinkage and --border pin do not belong to the paper's recipe",
        ),
        (("--out", "x.json", "--recipe", "paper", "--border", "pin"), 1, "--border pin do not belong to the paper's"),
        (("--out", "x.json", "--uncertainty", "mc-dropout", "--dropout-layers", " "), 1, "but got nothing"),
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

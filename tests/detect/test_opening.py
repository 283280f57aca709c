"""Which detector a name means; no framework is needed here."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from probox.cli import main
from probox.detect import Detector
from probox.detect.factory import files_of, open_detector, split_model
from probox.errors import InputError

CLASSES = ("cup", "dog", "car")


@pytest.mark.parametrize(
    ("model", "kind", "rest"),
    [
        ("torchvision:ssd300", "torchvision", "ssd300"),
        ("ultralytics:runs/best.pt", "ultralytics", "runs/best.pt"),
        (r"ultralytics:C:\runs\best.pt", "ultralytics", r"C:\runs\best.pt"),
        ("transformers:a:b", "transformers", "a:b"),
        (r"C:\models\yolox.onnx", "onnx", r"C:\models\yolox.onnx"),
        ("c:yolox.onnx", "onnx", "c:yolox.onnx"),
        ("models/a:b.onnx", "onnx", "models/a:b.onnx"),
        ("yolox.onnx", "onnx", "yolox.onnx"),
        ("python:own.py:make", "python", "own.py:make"),
    ],
)
def test_what_stands_before_a_colon_names_the_framework(model: str, kind: str, rest: str) -> None:
    assert split_model(model) == (kind, rest)


def test_a_file_that_is_there_is_itself(ssd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ssd, "torchvision:ssd300")
    detector = open_detector("torchvision:ssd300", classes=CLASSES, threads=1)
    assert isinstance(detector, Detector)
    assert detector.family.name == "ssd"
    assert files_of("torchvision:ssd300") == (Path("torchvision:ssd300"),)


def test_files_that_an_output_must_not_replace() -> None:
    assert files_of("ultralytics:best.pt") == (Path("best.pt"),)
    assert files_of("torchvision:ssd300", "w.pth") == (Path("w.pth"),)
    assert files_of("python:a/own.py:make") == (Path("a/own.py"),)


@pytest.mark.parametrize(
    ("model", "choices", "message"),
    [
        ("torchvison:ssd300", {}, "expected a model as FILE.onnx, torchvision:NAME"),
        ("https://example.org/y.onnx", {}, "nothing is downloaded"),
        ("torchvision:", {}, "nothing stands after 'torchvision:'"),
        ("nowhere.onnx", {}, "nowhere.onnx: no such file; probox downloads no models: check the path"),
        ("yolov8n.pt", {}, "yolov8n.pt: no such file; probox downloads no models: write ultralytics: before the path"),
        ("yolov8n", {}, "yolov8n: no such file; probox downloads no models: name a model as FILE.onnx, torchvision"),
        ("nowhere.onnx", {"weights": "w.pth"}, "hold their weights themselves"),
        ("nowhere.onnx", {"device": "cuda"}, "chooses its device itself"),
        ("nowhere.onnx", {"batch": 0}, "batch of at least 1"),
        ("ultralytics:best.pt", {"weights": "w.pth"}, "hold their weights themselves"),
        ("transformers:folder", {"family": "ssd"}, "no graphs of the family ssd"),
        ("transformers:folder", {"size": (64, 64)}, "resize images as they were trained"),
        ("torchvision:ssd300", {"size": (64, 64)}, "resize images as they were trained"),
        ("python:nowhere.py:make", {}, "a file that is there"),
    ],
)
def test_what_cannot_be_opened_is_said(model: str, choices: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        open_detector(model, **choices)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "remedy"), [("best.pt", "ultralytics:"), ("w.pth", "torchvision:NAME"), ("folder", "transformers:")]
)
def test_files_of_frameworks_lead_to_their_form(tmp_path: Path, name: str, remedy: str) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        path = path / "config.json"
    path.write_bytes(b"{}")
    with pytest.raises(InputError, match=remedy):
        open_detector(str(tmp_path / name))


@pytest.mark.parametrize(
    "model", ["m.onnx", "best.pt", "ultralytics:best.pt", "torchvision:ssd300", "transformers:dir"]
)
def test_a_pointer_of_git_lfs_is_named(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    for name in ("m.onnx", "best.pt", "w.pth", "dir/model.safetensors"):
        (tmp_path / name).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    weights = "w.pth" if model.startswith("torchvision") else None
    with pytest.raises(InputError, match=r": is a Git LFS pointer, not the file itself; fetch it with git lfs pull"):
        open_detector(model, weights=weights)


@pytest.mark.torch
@pytest.mark.parametrize("missing", ["torch", "torchvision"])
def test_a_framework_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    if missing == "torchvision":
        pytest.importorskip("torch")
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == missing else there(name, *rest)
    )
    with pytest.raises(InputError, match=f"needs {missing}; install it with: .*pip install {missing}"):
        open_detector("torchvision:ssd300", weights="w.pth")


def _own(tmp_path: Path, code: str) -> str:
    (tmp_path / "own.py").write_text(code)
    return f"python:{tmp_path / 'own.py'}:make"


@pytest.mark.parametrize(
    ("code", "choices", "message"),
    [
        ("def make(): return 1/0", {}, "make fails: ZeroDivisionError"),
        ("import nowhere_at_all", {}, "make fails: ModuleNotFoundError"),
        ("x = 1", {}, "has no function make"),
        ("make = 1", {}, "has no function make"),
        ("def make(): return 3", {}, "has no family, batch, fingerprint, candidates, sample"),
        ("def make(batch=1): return 3", {"batch": 2, "device": "cpu"}, "make takes no device"),
        ("def make(): return 3", {"family": "ssd"}, "make takes no family"),
    ],
)
def test_ones_own_that_does_not_fit_is_said(tmp_path: Path, code: str, choices: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_detector(_own(tmp_path, code), **choices)


def test_ones_own_gets_what_was_given(tmp_path: Path) -> None:
    code = "from types import SimpleNamespace as N\n"
    code += "def make(**given): return N(family=1, batch=1, fingerprint='', candidates=1, sample=1, given=given)\n"
    with pytest.raises(InputError, match="takes no"):  # names must stand in the signature
        open_detector(_own(tmp_path, code), threads=3)
    named = code.replace("**given)", "threads=0, weights='')").replace("given=given", "given=(threads, weights)")
    assert open_detector(_own(tmp_path, named), threads=3).given == (3, "")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("torchvison:x",), 1, "expected a model as"),
        (("nowhere.onnx", "--weights", "w.pth"), 1, "leave out --weights"),
        (("nowhere.onnx", "--device", "tpu"), 2, "tpu"),
        (("torchvision:ssd300", "--save-graph", "g.onnx", "--uncertainty", "mc-dropout"), 2, "needs an ONNX model"),
        (("torchvision:ssd300", "--weights", "found.json"), 1, "found.json"),
    ],
)
def test_the_command_line_says_it_in_flags(
    capsys: pytest.CaptureFixture[str],
    photos: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    status: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as done:
        main(["detect", *arguments, "--images", str(photos), "--out", "found.json"])
    assert done.value.code == status
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "found.json").exists()

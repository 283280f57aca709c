"""Which detector a name means; no framework is needed here."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from detect_graphs import small_yolo
from onnx import helper, numpy_helper

import probox
from probox.detect import Candidates, Detector, Options, Traits, detect
from probox.detect.factory import files_of, open_detector, split_model
from probox.errors import InputError

from .conftest import Run

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
        ("torchvision:", {}, "expected a model name after 'torchvision:'"),
        ("nowhere.onnx", {}, "nowhere.onnx: no such file; probox downloads no models: check the path"),
        ("yolov8n.pt", {}, "yolov8n.pt: no such file; probox downloads no models: write ultralytics: before the path"),
        ("yolov8n", {}, "yolov8n: no such file; probox downloads no models: name a model as FILE.onnx, torchvision"),
        ("nowhere.onnx", {"weights": "w.pth"}, "include their weights"),
        ("nowhere.onnx", {"device": "cuda"}, "chooses its device itself"),
        ("nowhere.onnx", {"batch": 0}, "batch of at least 1"),
        ("ultralytics:best.pt", {"weights": "w.pth"}, "include their weights"),
        ("transformers:folder", {"family": "ssd"}, "a graph family (ssd) does not apply"),
        ("transformers:folder", {"size": (64, 64)}, "use the input size of their training"),
        ("torchvision:ssd300", {"size": (64, 64)}, "use the input size of their training"),
        ("python:nowhere.py:make", {}, "an existing file"),
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
        ("def make(): return 3", {}, "lacks family, batch, fingerprint, candidates, sample"),
        ("def make(batch=1): return 3", {"batch": 2, "device": "cpu"}, "make does not accept device"),
        ("def make(): return 3", {"family": "ssd"}, "make does not accept family"),
    ],
)
def test_ones_own_that_does_not_fit_is_said(tmp_path: Path, code: str, choices: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_detector(_own(tmp_path, code), **choices)


def test_ones_own_gets_what_was_given(tmp_path: Path) -> None:
    code = "from types import SimpleNamespace as N\n"
    code += "def make(**given): return N(family=1, batch=1, fingerprint='', candidates=1, sample=1, given=given)\n"
    with pytest.raises(InputError, match="does not accept"):  # names must stand in the signature
        open_detector(_own(tmp_path, code), threads=3)
    named = code.replace("**given)", "threads=0, weights='')").replace("given=given", "given=(threads, weights)")
    assert open_detector(_own(tmp_path, named), threads=3).given == (3, "")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("torchvison:x",), 1, "expected a model as"),
        (("nowhere.onnx", "--weights", "w.pth"), 1, "leave out the file of weights (--weights FILE)"),
        (("nowhere.onnx", "--device", "tpu"), 2, "tpu"),
        (("torchvision:ssd300", "--save-graph", "g.onnx", "--uncertainty", "mc-dropout"), 2, "needs an ONNX model"),
        (("torchvision:ssd300", "--weights", "found.json"), 1, "found.json"),
    ],
)
def test_the_command_line_says_it_in_flags(
    run: Run, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple, status: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, said = run(*arguments, "--images", photos, "--out", "found.json")
    assert code == status
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "found.json").exists()


ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "own_detector.py"


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("own_detector_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ran(example: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    folder = tmp_path_factory.mktemp("own")
    return folder, example.main(folder)


def test_the_example_finds_what_it_drew(ran: tuple[Path, dict[str, float]], example: Any) -> None:
    folder, scores = ran
    assert min(scores.values()) > 0.4
    assert scores["constant"] > scores["none"]
    truth = example.draw_photos(folder / "photos")
    found = probox.read_detections(folder / "nms-clusters.coco.json", truth)
    assert (found.covariances[:, :, 0, 0] > 0).all()
    assert probox.evaluate(truth, found).summary()["FN"] == 0


def test_the_command_line_gives_the_same_file(ran: tuple[Path, dict[str, float]], run: Run) -> None:
    folder, _ = ran
    for uncertainty in ("nms-clusters", "mc-dropout"):
        out, options = (
            folder / "cli.coco.json",
            ("--score-threshold", 0.3, "--passes", 10, "--uncertainty", uncertainty),
        )
        assert run(f"python:{EXAMPLE}:make", "--images", folder / "photos", "--out", out, *options)[0] == 0
        assert out.read_bytes() == (folder / f"{uncertainty}.coco.json").read_bytes()


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "own-detector.md").read_text(encoding="utf-8")
    code = EXAMPLE.read_text(encoding="utf-8")
    shown = [block.split("```")[0] for block in page.split("```python\n")[1:]]
    assert len(shown) >= 2
    for block in shown:
        assert block in code


class Scripted:
    batch, fingerprint, family = 1, "", Traits("scripted", ("cup", "dog"))

    def __init__(self, *arrays: Any) -> None:
        self.arrays = arrays

    def candidates(self, images: Any) -> list[Candidates]:
        return [Candidates(*self.arrays) for _ in images]


IMAGE = np.zeros((40, 40, 3), np.uint8)
BOX = np.array([[1.0, 2.0, 20.0, 30.0]])


def test_traits_have_the_defaults_of_families() -> None:
    found = detect(Scripted(BOX, np.array([[0.2, 0.7]], np.float32)), [IMAGE], [3], Options())[0]
    assert found.labels.tolist() == [1, 0]  # "all": both classes are likely enough
    assert found.boxes.tolist() == [BOX[0].tolist()] * 2


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((BOX[:, :3], np.ones((1, 2))), "boxes of candidates to be 1 x 4, but got 1 x 3"),
        ((BOX, np.ones(2)), "scores of candidates to be 1 x C, but got 2"),
        ((BOX, np.ones((2, 2))), "scores of candidates to be 1 x C, but got 2 x 2"),
        ((BOX, np.ones((1, 2)), np.ones((1, 4))), "covariances of candidates to be 1 x 2 x 2 x 2, but got 1 x 4"),
        ((BOX, np.ones((1, 2)), None, np.zeros((1, 1))), "labels of candidates to be 1, but got 1 x 1"),
        ((BOX, np.ones((1, 3), np.float32)), "label_probs"),  # another number of classes than its traits name
    ],
)
def test_candidates_of_the_wrong_shape_are_said(arrays: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        detect(Scripted(*arrays), [IMAGE], [3], Options(label_mode="best"))


PHOTO = np.random.default_rng(2).integers(0, 255, (100, 200, 3), dtype=np.uint8)


def test_batches_are_stacked_and_split(tmp_path: Path) -> None:
    path = small_yolo(tmp_path / "m.onnx")
    tall = np.full((200, 100, 3), 90, np.uint8)
    images = [PHOTO, tall, PHOTO[::-1]]
    detector = Detector(path, classes=CLASSES, batch=2, threads=1)
    assert detector.batch == 2
    alone = Detector(path, classes=CLASSES, threads=1)
    for found, expected in zip(detector.candidates(images), alone.candidates(images), strict=True):
        np.testing.assert_allclose(found.boxes, expected.boxes, rtol=1e-5)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)


@pytest.mark.parametrize("declared", [("n", 7, 84), (1, 7, 84), ("a", 7, "b")])
def test_a_graph_that_mixes_the_images_of_a_batch_runs_one_at_a_time(tmp_path: Path, declared: tuple) -> None:
    path = small_yolo(tmp_path / "m.onnx", out_shape=declared, keeps_batch=False)
    detector = Detector(path, family="yolov8", classes=CLASSES, batch=2, threads=1)
    assert detector.batch == 1
    first, second = detector.candidates([PHOTO, PHOTO[::-1]])
    assert first.scores.shape == second.scores.shape == (84, 3)
    assert not np.array_equal(first.scores, second.scores)


def test_a_graph_whose_images_colour_each_other_runs_one_at_a_time(tmp_path: Path) -> None:
    # Shapes are right, but a tenth of every number is the mean over the batch.
    path = small_yolo(tmp_path / "m.onnx")
    model = onnx.load(str(path))
    model.graph.node[-1].output[0] = "own"
    for name, value in (("most", 0.9), ("little", 0.1)):
        model.graph.initializer.append(numpy_helper.from_array(np.float32(value), name))
    model.graph.node.extend(
        [
            helper.make_node("ReduceMean", ["own"], ["mean"], axes=[0], keepdims=1),
            helper.make_node("Mul", ["own", "most"], ["mostly"]),
            helper.make_node("Mul", ["mean", "little"], ["shared"]),
            helper.make_node("Add", ["mostly", "shared"], ["output0"]),
        ]
    )
    onnx.save(model, str(path))
    assert Detector(path, classes=CLASSES, batch=2, threads=1).batch == 1


def test_half_precision_goes_in_and_comes_out_as_single(tmp_path: Path) -> None:
    half, single = (small_yolo(tmp_path / f"{half}.onnx", half=half) for half in (True, False))
    found, expected = (Detector(path, classes=CLASSES, batch=2).candidates([PHOTO])[0] for path in (half, single))
    assert found.scores.dtype == np.float32
    assert found.boxes.dtype == np.float64
    np.testing.assert_allclose(found.scores, expected.scores, atol=5e-3)
    np.testing.assert_allclose(found.boxes, expected.boxes, atol=0.5)


def test_a_graph_that_takes_any_size_gets_what_is_asked_for(tmp_path: Path) -> None:
    path = small_yolo(tmp_path / "m.onnx", shape=("n", 3, "h", "w"), out_shape=("n", 7, "cells"))
    asked = Detector(path, family="yolov8", classes=CLASSES, size=(96, 64))
    assert len(asked.candidates([PHOTO])[0]) == 12 * 8 + 6 * 4 + 3 * 2
    assert asked.fingerprint != Detector(path, family="yolov8", classes=CLASSES, size=(64, 96)).fingerprint
    named = Detector(path, family="yolov8", classes=CLASSES[::-1], size=asked.family.input_size())
    assert asked.fingerprint != named.fingerprint
    fixed = small_yolo(tmp_path / "f.onnx")
    with pytest.raises(InputError, match="expected the graph's input size 64 x 64, but got 96 x 64"):
        Detector(fixed, classes=CLASSES, size=(96, 64))


def test_a_fixed_batch_is_kept(ssd: Path) -> None:
    assert Detector(ssd, classes=CLASSES, batch=8).batch == 1


def test_workers_share_the_threads_and_find_the_same(tmp_path: Path) -> None:
    path = small_yolo(tmp_path / "m.onnx")
    images = [np.random.default_rng(seed).integers(0, 255, (80, 90, 3), dtype=np.uint8) for seed in range(12)]
    alone = Detector(path, classes=CLASSES, threads=1)
    shared = Detector(path, classes=CLASSES, threads=2, workers=2)
    assert (alone.workers, shared.workers) == (1, 2)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda image: shared.candidates([image])[0], images))
    for one, expected in zip(found, alone.candidates(images), strict=True):
        np.testing.assert_array_equal(one.boxes, expected.boxes)
        np.testing.assert_array_equal(one.scores, expected.scores)


@pytest.mark.parametrize("given", [{"workers": 0}, {"batch": 0}])
def test_nothing_runs_with_none(tmp_path: Path, given: dict[str, int]) -> None:
    with pytest.raises(InputError, match="at least 1"):
        Detector(small_yolo(tmp_path / "m.onnx"), classes=CLASSES, **given)

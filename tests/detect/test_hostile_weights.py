"""Files of weights and models that hide code: nothing in them runs, whatever was imported before."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import frameworks
from tests.adapters.tiny_models import save_legacy_yolo

from probox.detect.factory import open_detector
from probox.detect.torch_model import read_weights
from probox.detect.ultralytics_detector import read_network
from probox.errors import InputError

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.folder,)


WAYS = {
    "archive": {},
    "names on the stack": {"pickle_protocol": 4},
    "no archive": {"_use_new_zipfile_serialization": False},
    "pickle": None,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("read", [read_network, read_weights])
def test_hidden_code_does_not_run(tmp_path: Path, way: str, read: Any) -> None:
    torch = frameworks.torch()
    path, made = tmp_path / "best.pt", tmp_path / "made"
    content = {"model": Payload(made)}
    if WAYS[way] is None:
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, **WAYS[way])
    with pytest.raises(InputError):
        read(path)
    assert not made.exists()
    unsafe = pickle.loads(path.read_bytes()) if WAYS[way] is None else torch.load(path, weights_only=False)
    assert made.exists(), unsafe


def test_a_network_of_the_yolov5_repository_is_named(tmp_path: Path) -> None:
    frameworks.torch()
    save_legacy_yolo(tmp_path / "yolov5s.pt")
    with pytest.raises(InputError) as caught:
        read_network(tmp_path / "yolov5s.pt")
    assert str(caught.value) == (
        "contains models.yolo.DetectionModel: written by the repository of YOLOv3, v5, v7 or v9, not by ultralytics; "
        "export it to ONNX with export.py of that repository"
    )


def test_classes_that_other_code_allows_are_not_made(tmp_path: Path) -> None:
    torch = frameworks.torch()
    torch.save({"w": torch.ones(1), "hidden": Payload(tmp_path / "made")}, tmp_path / "w.pth")
    with torch.serialization.safe_globals([os.mkdir, (os.mkdir, "posix.mkdir")]):
        with pytest.raises(InputError, match="may execute code when read"):
            read_weights(tmp_path / "w.pth")
        assert os.mkdir in torch.serialization.get_safe_globals()
    assert not (tmp_path / "made").exists()


@pytest.mark.slow
def test_a_folder_of_transformers_with_hidden_code_is_refused(tmp_path: Path) -> None:
    frameworks.transformers()
    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / name).write_text("{}")
    frameworks.torch().save({"w": Payload(tmp_path / "made")}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pytorch_model.bin: contains objects that may execute code"):
        open_detector(f"transformers:{tmp_path}")
    assert not (tmp_path / "made").exists()


PROGRAM = """
import os, sys, warnings
warnings.simplefilter("ignore")
import torch
from tests.torchvision_shim import load_torchvision
load_torchvision()
import ultralytics
from ultralytics.nn.tasks import DetectionModel
from ultralytics.utils.loss import v8DetectionLoss
from ultralytics.utils import IterableSimpleNamespace, DEFAULT_CFG
import numpy as np, pathlib

class Payload:
    def __init__(self, *call): self.call = call
    def __reduce__(self): return self.call

from probox.detect.factory import open_detector
from probox.errors import InputError

model = ultralytics.YOLO("yolov8n.yaml")
model.model.args = DEFAULT_CFG
model.model.criterion = v8DetectionLoss(model.model)
model.save("whole.pt")
content = torch.load("whole.pt", weights_only=False)
content |= {
    "train_args": {"imgsz": 96, "save_dir": pathlib.PosixPath("runs")},
    "best_fitness": np.float64(0.5),
    "args": IterableSimpleNamespace(imgsz=96),
}
torch.save(content, "whole.pt")
opened = open_detector("ultralytics:whole.pt", threads=1)
assert "at 96 x 96" in opened.fingerprint
(found,) = opened.candidates([np.zeros((64, 64, 3), np.uint8)])
assert len(found) == (12 * 12 + 6 * 6 + 3 * 3), len(found)

recipe = {
    "nc": 1, "backbone": [[-1, 1, "Conv", [8, 3, 2]]], "head": [],
    "activation": "__import__('os').mkdir('made')",
}
hostile = {
    "function": Payload(os.mkdir, ("made",)),
    "evaluated": Payload(eval, ("__import__('os').mkdir('made')",)),
    "recipe": Payload(DetectionModel, (recipe,)),
    "attribute": Payload(getattr, ("", "join")),
}
for name, payload in hostile.items():
    torch.save(content | {"more": payload}, "best.pt")
    try:
        open_detector("ultralytics:best.pt")
    except InputError as error:
        print(name, error)
    assert not os.path.exists("made"), name
try:
    torch.save({"model": hostile["recipe"]}, "best.pt")
    torch.load("best.pt", weights_only=False)
except Exception:
    pass
assert os.path.exists("made")  # the recipe would do it
"""


@pytest.mark.slow
def test_a_file_of_ultralytics_runs_nothing_though_ultralytics_was_imported_before(tmp_path: Path) -> None:
    frameworks.ultralytics()
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if name != "ULTRALYTICS_SAFE_LOAD"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "best.pt: " in line]
    assert [line.split()[0] for line in lines] == ["function", "evaluated", "recipe", "attribute"]
    assert "best.pt: holds posix.mkdir, which is not an ultralytics class and may execute code; export it" in lines[0]
    assert "best.pt: calls the constructor of DetectionModel, which may execute code; export it" in lines[2]

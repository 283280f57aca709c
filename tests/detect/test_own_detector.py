"""The example of one's own detector, as its page shows it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import probox
from probox.cli import main
from probox.detect import Candidates, Options, Traits, detect
from probox.errors import InputError

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


def test_the_command_line_gives_the_same_file(ran: tuple[Path, dict[str, float]]) -> None:
    folder, _ = ran
    for uncertainty in ("nms-clusters", "mc-dropout"):
        with pytest.raises(SystemExit) as done:
            main(
                [
                    "detect", f"python:{EXAMPLE}:make", "--images", str(folder / "photos"), "--score-threshold", "0.3",
                    "--passes", "10", "--uncertainty", uncertainty, "--out", str(folder / "cli.coco.json"),
                ]
            )  # fmt: skip
        assert not done.value.code
        assert (folder / "cli.coco.json").read_bytes() == (folder / f"{uncertainty}.coco.json").read_bytes()


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "own-detector.md").read_text(encoding="utf-8")
    code = EXAMPLE.read_text(encoding="utf-8")
    shown = [block.split("```")[0] for block in page.split("```python\n")[1:]]
    assert len(shown) >= 2
    for block in shown:
        assert block in code


class Scripted:
    """A runner that says what it is told to."""

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

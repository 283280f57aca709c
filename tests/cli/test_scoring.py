"""Every option of scoring reaches the numbers of every command that scores, and is what Python calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.in_process import run

import probox
from probox import Convention, InputError
from probox.measures.boxes.mean_ap import coco_labels

WORDS: dict[str, dict[str, Any]] = {
    "most": {
        "preset": "challenge", "assignment": "greedy", "background": "mask", "fixed_variance": 3.0,
        "label_threshold": 0.4, "label_weight": 0.6, "clip": "corners", "object_filter": True,
    },
    "others": {"preset": "paper", "box_truth": True, "label_threshold": 0.4, "object_filter": True, "clip": "corners"},
}  # fmt: skip
"""Together, and none of them without a say: see the first test."""

COMMANDS = {
    "evaluate": ["evaluate", "TRUTH", "FOUND"],
    "table": ["table", "TRUTH", "FOUND"],
    "draw": ["draw", "FOUND", "--truth", "TRUTH", "--out", "pictures", "--crowded", "1"],
    "calibrate": ["calibrate", "fit", "TRUTH", "FOUND", "--method", "constant", "--target", "nll", "--folds", "2",
                  "--out", "c.json"],
}  # fmt: skip


@pytest.fixture(scope="module")
def files(golden_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return truth, and detections of which one has a covariance that is none."""
    folder = tmp_path_factory.mktemp("scoring")
    told = json.loads((golden_dir / "mixed" / "detections.json").read_text())
    found = next(entry for image in told["detections"] for entry in image if "covars" in entry)
    found["covars"][0] = [[9.0, 4.0], [3.0, 9.0]]
    (folder / "found.json").write_text(json.dumps(told))
    return golden_dir / "mixed" / "ground_truth.json", folder / "found.json"


def flags(words: dict[str, Any]) -> list[str]:
    """Return words of Python as the command line has them."""
    typed = []
    for word, value in words.items():
        typed += [f"--{word.replace('_', '-')}"] + ([] if value is True else [str(value)])
    return typed


def pdq(files: tuple[Path, Path], words: dict[str, Any], **more: Any) -> float:
    return probox.evaluate(*files, measures="pdq", repair=True, **words, **more).pdq


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_each_word_has_a_say(files: tuple[Path, Path], words: dict[str, Any]) -> None:
    everything = pdq(files, words)
    for left_out in words:
        assert pdq(files, {word: value for word, value in words.items() if word != left_out}) != everything, left_out
    with pytest.raises(InputError, match="repair=True"):
        probox.evaluate(*files)


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_give_the_numbers_of_python(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    files: tuple[Path, Path],
    command: str,
    words: dict[str, Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"TRUTH": files[0], "FOUND": files[1]}
    line = [places.get(word, word) for word in COMMANDS[command]]
    if command == "calibrate":
        words = {word: value for word, value in words.items() if word != "fixed_variance"}
    some = probox.read_truth(files[0]).image_ids[:30].tolist()
    typed = ["--repair", "--threads", "1", *flags(words)]
    want = pdq(files, words)
    if command != "draw":
        typed += ["--image-ids", ",".join(map(str, some))]
        want = pdq(files, words, image_ids=some)
        assert want != pdq(files, words)
    code, out, err = run(*line, *typed, "--json")
    assert code == 0, err
    told = json.loads(out)
    if command == "calibrate":
        assert told["held_out"]["gain"]["PDQ"]["before"] == pytest.approx(want)
        return
    told = told["rows"][0] if command == "table" else told
    assert told["summary"]["PDQ"] == pytest.approx(want)
    if command != "table":
        changes = {"max_detections": (1, 10, 100)} | {word: value for word, value in words.items() if word != "preset"}
        assert told["convention"] == Convention.preset(words["preset"], **changes).to_dict()
    code, _, err = run(*line, *flags(words), "--json")
    assert code == 1
    assert "with --repair" in err


def test_no_command_is_no_mistake() -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "probox demo" in out
    assert "evaluate " in out


OWN_RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "lists": (
        "--iou-thresholds 0.5,0.6 --max-detections 1,300",
        {"iou_thresholds": (0.5, 0.6), "max_detections": (1, 300)},
    ),
    "a range": ("--iou-thresholds 0.3:0.7:0.1", {"iou_thresholds": np.linspace(0.3, 0.7, 5)}),
    "sizes": (
        "--area-ranges large=2500:1e10,medium=1024:2500",
        {"area_ranges": ((0.0, 1024.0), (1024.0, 2500.0), (2500.0, 1e10))},
    ),
}


@pytest.mark.parametrize("case", OWN_RULES)
def test_own_rules_of_map(files: tuple[Path, Path], case: str) -> None:
    typed, words = OWN_RULES[case]
    truth, found = map(str, files)
    expected = probox.evaluate(*files, repair=True, **words)
    (name,) = {*words} - {"max_detections"}
    told = json.loads(run("evaluate", truth, found, "--repair", "--coco", "--json", *typed.split())[1])
    assert Convention.from_dict(told["convention"]) == expected.recorded_convention
    assert told["coco"] == pytest.approx({k: None if np.isnan(v) else v for k, v in expected.coco().items()})
    assert list(told["coco"]) == list(expected.coco())
    assert [note["message"] for note in told["comparability"]] == list(map(str, expected.comparability))
    assert name in {note["fields"]["field"] for note in told["comparability"]}
    rows = json.loads(run("table", truth, found, "--repair", "--json", *typed.split())[1])["rows"]
    assert rows[0]["comparability"] == told["comparability"]
    line = f"not comparable with published values: {', '.join(map(str, expected.comparability))}"
    assert line in run("evaluate", truth, found, "--repair", *typed.split())[1]
    for style in ("text", "github"):
        _, out, notes = run("table", truth, found, "--repair", "--format", style, *typed.split())
        assert line in (out if style == "github" else notes)
    printed = run("evaluate", truth, found, "--repair", "--coco", *typed.split())[1]
    for label in coco_labels(expected.box_rules).values():
        assert label in printed


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("--iou-thresholds half", "expected a value like 0.5,0.75 or 0.5:0.95:0.05, got 'half'."),
        ("--iou-thresholds 0.5:0.95", "expected a value like 0.5,0.75 or 0.5:0.95:0.05"),
        ("--iou-thresholds 0.5:0.95:0.1", "expected a value like 0.5,0.75 or 0.5:0.95:0.05"),
        ("--iou-thresholds 0.5:0.9:0", "expected a value like 0.5,0.75 or 0.5:0.95:0.05"),
        ("--iou-thresholds 0.5:nan:0.1", "expected a value like 0.5,0.75 or 0.5:0.95:0.05"),
        ("--iou-thresholds 0:1:1e-300", "expected a value like 0.5,0.75 or 0.5:0.95:0.05"),
        ("--iou-thresholds 0.75,0.5", "iou_thresholds to ascend, got (0.75, 0.5)"),
        ("--iou-thresholds 0.5,1.5", "iou_thresholds to be above 0 and at most 1"),
        ("--max-detections 1.5", "expected a value like 1,10,100, got '1.5'."),
        ("--max-detections 0", "max_detections to ascend from 1"),
        ("--area-ranges 0:9", "expected a value like small=0:1024,medium=1024:9216, got '0:9'."),
        ("--area-ranges tiny=0:9", "expected a value like small=0:1024,medium=1024:9216, got 'tiny=0:9'."),
        ("--area-ranges small=9:0", "area_ranges from low to high"),
    ],
)
def test_wrong_rules_of_map(files: tuple[Path, Path], typed: str, message: str) -> None:
    code, _, errors = run("evaluate", *map(str, files), *typed.split())
    assert code == 2
    option, _ = typed.split()
    assert f"Invalid value for '{option}': expected " in " ".join(errors.split())
    assert message in " ".join(errors.split())

"""Every option of scoring reaches the numbers of every command that scores, and is what Python calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.in_process import run

import probox
from probox import Convention, InputError

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
        assert told["convention"] == Convention.preset(**{"name": words["preset"]}).replace(
            **{word: value for word, value in words.items() if word != "preset"}
        ).to_dict()  # fmt: skip
    code, _, err = run(*line, *flags(words), "--json")
    assert code == 1
    assert "with --repair" in err


def test_no_command_is_no_mistake() -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "probox demo" in out
    assert "evaluate " in out

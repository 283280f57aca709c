"""The words of scoring: one list, from which functions and commands have theirs."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pickle
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import probox
import probox.cli
from probox import Convention, InputError
from probox.calibration import fit
from probox.cli import cli
from probox.convention import PRESETS
from probox.errors import KeywordError
from probox.notes import Note
from probox.options import WORDS

FUNCTIONS = (probox.evaluate, probox.Evaluator, probox.PDQ, fit)
SCORING = {
    ("evaluate",): (),
    ("table",): (),
    ("calibrate", "fit"): ("fixed_variance", "iou_thresholds", "area_ranges"),
    ("draw",): (),
}
"""Commands that score files, and what has no meaning for them."""

GENERAL = {"preset", "repair", "threads"}


def command_of(names: tuple[str, ...]) -> click.Command:
    found: Any = cli
    for name in names:
        found = found.get_command(click.Context(found), name)
    return found


def test_keywords_are_fields_and_are_written_down_once() -> None:
    fields = {field.name for field in dataclasses.fields(Convention)}
    assert {word for word in WORDS if word != "preset"} <= fields


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_functions_take_every_word(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    assert {word for word in WORDS if parameters[word].kind is inspect.Parameter.KEYWORD_ONLY} == set(WORDS)
    assert {"convention", "threads"} <= set(parameters)
    assert not any(entry.kind is inspect.Parameter.VAR_KEYWORD for entry in parameters.values())


def test_the_docstring_lists_every_word() -> None:
    told = inspect.getdoc(probox.evaluate) or ""  # from 3.13 on, docstrings are kept without their indentation
    listed = {word for words in re.findall(r"^([\w, ]+) : ", told, re.M) for word in words.split(", ")}
    assert set(inspect.signature(probox.evaluate).parameters) <= listed


@pytest.mark.parametrize("names", SCORING, ids=" ".join)
def test_commands_take_every_word(names: tuple[str, ...]) -> None:
    options = {entry.name: entry for entry in command_of(names).params if isinstance(entry, click.Option)}
    for word in WORDS:
        if word in SCORING[names]:
            assert word not in options
            continue
        assert options[word].opts == [f"--{word.replace('_', '-')}"]
    assert set(options) >= GENERAL
    if names != ("draw",):
        assert options["image_ids"].opts == ["--image-ids"]


def test_no_command_scores_without_these_options() -> None:
    """All that call an evaluation have them but the built-in scene."""
    scoring = set()
    for path in Path(probox.cli.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        if named & {"evaluate", "fit", "perform"}:
            scoring.add(path.stem)
            assert ("scoring_options" in named) == (path.stem not in ("demo", "scoring"))
    assert scoring == {"calibrate", "demo", "draw", "scoring"}


TRUTH = probox.GroundTruth.from_boxes(["cup"], {7: (64, 48), 9: (64, 48)}, [7, 9], [[10, 20, 40, 40]] * 2, [0, 0])
FOUND = probox.Detections(
    classes=["cup"], image_ids=[7, 9], boxes=[[10, 20, 40, 40], [12, 21, 44, 40]], label_probs=[[0.81], [0.4]]
)


def scored(**words: Any) -> probox.Evaluation:
    return probox.evaluate(TRUTH, FOUND, **words)


def test_words_make_the_convention() -> None:
    words: dict[str, Any] = {
        "preset": "paper", "assignment": "greedy", "background": "mask", "box_truth": True, "fixed_variance": 4.0,
        "label_threshold": 0.5, "label_weight": 0.25, "clip": "corners", "object_filter": True,
        "iou_thresholds": (0.5, 0.75), "max_detections": (300,), "area_ranges": ((0, 9), (9, 99), (99, 999)),
    }  # fmt: skip
    want = Convention.preset(words.pop("preset"), **words)
    assert want.fixed_variance == 4.0
    assert scored(preset="paper", **words).convention == want
    assert scored(convention="paper", **words).convention == want
    assert scored(convention=PRESETS["paper"].replace(label_weight=0.9), **words).convention == want
    assert probox.Evaluator(["cup"], preset="paper", **words).convention == want
    assert scored(**dict.fromkeys(WORDS)).convention == scored().convention == PRESETS["reference"]
    assert scored(fixed_variance=4).convention == scored(fixed_variance=np.float32(4)).convention


def test_measures_in_a_text() -> None:
    assert scored(measures="lrp, PDQ").measures == scored(measures=["pdq", "lrp"]).measures == ("pdq", "lrp")
    assert scored(measures=" All ").measures == scored(measures="all").measures
    assert scored().intervals("pdq", replicates=2).columns.keys() >= {"PDQ"}
    assert "mAP" not in scored().intervals("pdq", replicates=2).columns


def test_some_images() -> None:
    one = probox.evaluate(TRUTH.select_images([9]), FOUND.select([1]))
    for image_ids in ([9], "9", np.array([9])):
        assert scored(image_ids=image_ids).summary() == pytest.approx(one.summary(), nan_ok=True)
    assert scored(image_ids="9").notes == (Note("restricted", 1, total=2),)
    assert scored(image_ids="7,9").pdq == scored().pdq
    with pytest.raises(InputError, match="image_ids: expected image ids, but got 'nine'"):
        scored(image_ids="nine")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "letters swapped": (
        {"lable_threshold": 0.5},
        "not know the keyword `lable_threshold`; did you mean label_threshold?",
    ),
    "a part of a word": ({"threshold": 0.5}, "did you mean label_threshold?"),
    "an own keyword": ({"thread": 2}, "did you mean threads?"),
    "no word at all": (
        {"iou": 0.5},
        "not know the keyword `iou`; use one of part, keep, convention, measures, .*, preset, .*, clip",
    ),
    "another field": ({"epsilon": 1e-12}, r'give convention=probox.Convention.preset\("reference", epsilon=...\)'),
    "a method": ({"per_class": True}, r"call result.per_class\(\)"),
    "two starts": ({"preset": "paper", "convention": "paper"}, "expected `preset` or `convention`, but got both"),
    "off by None": (
        {"convention": Convention(label_threshold=0.5), "label_threshold": None},
        "label_threshold=None does not remove the convention's label_threshold of 0.5",
    ),
    "a preset that is none": (
        {"preset": "papre"},
        "one of reference, paper, challenge, got 'papre'; did you mean paper?",
    ),
    "an empty convention": ({"convention": ""}, "expected preset to be one of"),
    "a word of another option": ({"background": "greedy"}, "expected background to be 'box' or 'mask', got 'greedy'"),
    "per cent": ({"label_threshold": 50}, "expected label_threshold between 0 and 1, got 50"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_words(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scored(**words)


def test_an_unknown_keyword_is_also_what_python_would_raise() -> None:
    for call in (scored, partial(probox.Evaluator, ["cup"]), probox.PDQ, partial(fit, TRUTH, FOUND)):
        with pytest.raises(TypeError, match="did you mean label_weight"):
            call(label_wieght=0.5)
    with pytest.raises(KeywordError, match="has no field `label_wieght`; did you mean label_weight") as caught:
        Convention.preset("paper", label_wieght=0.5)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), KeywordError)


def test_a_fixed_variance_leaves_nothing_to_calibrate() -> None:
    for words in ({"fixed_variance": 4}, {"convention": Convention(fixed_variance=4)}):
        with pytest.raises(InputError, match="a fixed variance of 4 leaves no std to fit"):
            fit(TRUTH, FOUND, **words)

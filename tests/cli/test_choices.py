"""What an option may be is told by the room that knows, not typed again in the command."""

from __future__ import annotations

import ast
from pathlib import Path

import click
import pytest

import probox.cli
from probox.analysis import ranking
from probox.cli import cli
from probox.convention import CHOICES, PRESETS
from probox.detect import FAMILIES, UNCERTAINTIES, Options
from probox.evaluation.text import STYLES
from probox.pictures.style import PALETTES

COMMANDS = sorted(Path(probox.cli.__file__).parent.glob("*.py"))


def option(command: str, name: str) -> click.Parameter:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    return next(parameter for parameter in found.params if name in parameter.opts)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_no_command_types_choices_again(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "Choice":
            words = [part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)]
            assert len(words) <= 1, f"line {node.lineno} types {words}"


@pytest.mark.parametrize(
    ("command", "name", "words"),
    [
        ("evaluate", "--preset", list(PRESETS)),
        ("table", "--preset", list(PRESETS)),
        ("table", "--format", [*STYLES, "github"]),
        ("evaluate", "--assignment", CHOICES["assignment"]),
        ("evaluate", "--background", CHOICES["background"]),
        ("evaluate", "--clip", CHOICES["clip"]),
        ("detect", "--family", ["auto", *FAMILIES]),
        ("detect", "--uncertainty", UNCERTAINTIES),
        ("draw", "--colours", list(PALETTES)),
    ],
)
def test_an_option_takes_what_its_room_knows(command: str, name: str, words: list[str]) -> None:
    kind = option(command, name).type
    assert isinstance(kind, click.Choice)
    assert list(kind.choices) == list(words)


def test_images_are_chosen_in_every_way_there_is() -> None:
    for name, words in ranking.CHOICES.items():
        found = option("draw", f"--{name}")
        assert isinstance(found, click.Option)
        assert found.help == f"Draw the N images {words}."


def test_defaults_are_the_librarys() -> None:
    for name, field in (
        ("--passes", "passes"),
        ("--score-threshold", "score_threshold"),
        ("--max-detections", "max_detections"),
    ):
        assert option("detect", name).default == getattr(Options(), field)

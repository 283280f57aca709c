"""The choices of options are those of the layer that knows them; help lists options by group."""

from __future__ import annotations

import ast
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import probox.cli
from probox.analysis import ranking
from probox.cli import COMMANDS, cli, shared_options
from probox.cli.shared_options import GroupedCommand
from probox.convention import CHOICES, PRESETS
from probox.detect import FAMILIES, UNCERTAINTIES, Options
from probox.evaluation.text import STYLES
from probox.pictures.style import PALETTES

MODULES = sorted(Path(probox.cli.__file__).parent.glob("*.py"))


def option(command: str, name: str) -> click.Parameter:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    return next(parameter for parameter in found.params if name in parameter.opts)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
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
    for name, (most, quantity) in ranking.CHOICES.items():
        found = option("draw", f"--{name}")
        assert isinstance(found, click.Option)
        assert found.help == f"Draw the N images with {most} {quantity}."


def test_defaults_are_the_librarys() -> None:
    for name, field in (
        ("--passes", "passes"),
        ("--score-threshold", "score_threshold"),
        ("--max-detections", "max_detections"),
    ):
        assert option("detect", name).default == getattr(Options(), field)


def test_help_lists_options_by_group() -> None:
    @click.command(cls=GroupedCommand)
    @shared_options.option("--first", group="One")
    @shared_options.option("--second", group="Two", hidden=True)
    @shared_options.option("--third", group="Three")
    @shared_options.option("--fourth", group="One")
    @click.option("--plain")
    def command(**given: str) -> None: ...

    text = CliRunner().invoke(command, ["--help"]).output
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["One:", "Three:", "Options:"]
    places = [text.index(f"--{name}") for name in ("first", "fourth", "third", "plain", "help")]
    assert places == sorted(places)
    assert "--second" not in text


def test_long_commands_list_every_option_in_a_group() -> None:
    context = click.Context(cli)
    for name in COMMANDS:
        found = cli.get_command(context, name)
        assert found is not None
        for command in found.commands.values() if isinstance(found, click.Group) else [found]:
            options = [entry for entry in command.params if isinstance(entry, click.Option)]
            if len(options) > 10:
                assert isinstance(command, GroupedCommand), name
                assert all(getattr(entry, "group", None) for entry in options), name

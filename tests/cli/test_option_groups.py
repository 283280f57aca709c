"""Help texts whose options are listed by group."""

from __future__ import annotations

import click
from click.testing import CliRunner

from probox.cli import COMMANDS, cli
from probox.cli.shared_options import GroupedCommand, option


def test_help_lists_options_by_group() -> None:
    @click.command(cls=GroupedCommand)
    @option("--first", group="One")
    @option("--second", group="Two", hidden=True)
    @option("--third", group="Three")
    @option("--fourth", group="One")
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

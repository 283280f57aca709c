"""Shell completion: values of options, and `probox completion`, which prints the script of a shell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_PROBOX_COMPLETE"
"""Environment variable that the shell's script sets to ask probox for completions."""


def complete_files(context: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Use the shell's completion of files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(text, type="file")]


def complete_named(context: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete the file of NAME=FILE; shells that split words at = ask for the file alone."""
    from click.shell_completion import CompletionItem

    name, equals, path = text.partition("=")
    if not equals or os.path.exists(name):
        return complete_files(context, parameter, text)
    folder, start = os.path.split(path)
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    return [
        CompletionItem(f"{name}={os.path.join(folder, entry.name)}{'/' if entry.is_dir() else ''}")
        for entry in entries
        if entry.name.startswith(start) and (start or not entry.name.startswith("."))
    ]


def complete_measures(context: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete the last name of a comma-separated list."""
    from click.shell_completion import CompletionItem

    from probox.measures.registry import measure_names

    *before, start = text.split(",")
    names = (*measure_names(), *(() if before else ("all",)))
    chosen = "".join(f"{name}," for name in before)
    return [
        CompletionItem(chosen + name) for name in names if name.startswith(start.strip().lower()) and name not in before
    ]


def make_script(shell: str, cli: click.Command) -> str:
    """Return the script that a shell runs once to complete `probox`."""
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    # The base class's method: bash's own starts bash to get its version, and fails without it.
    text = ShellComplete.source(kind(cli, {}, "probox", VARIABLE))
    if shell == "bash":
        # Keeping the order of choices needs bash 4.4; macOS has 3.2.
        usual = "complete -o nosort -F _probox_completion probox"
        assert usual in text
        text = text.replace(usual, f"{usual} 2>/dev/null ||\n    {usual.replace('-o nosort ', '')}")
    return text


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print a shell completion script for commands, options, choices and files.

    Run one of the first three commands once, then open a new shell. For zsh, the script must come after compinit. The
    last command enables completion in the current shell only.

    \b
    Examples:
      probox completion bash >> ~/.bashrc
      probox completion zsh >> ~/.zshrc
      probox completion fish > ~/.config/fish/completions/probox.fish
      eval "$(probox completion bash)"
    """
    click.echo(make_script(shell, context.find_root().command), nl=False)

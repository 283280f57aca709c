"""`probox completion`: the lines by which a shell completes commands, options and files."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_PROBOX_COMPLETE"
"""Set by the shell's script when it asks probox what could come next."""


def script(shell: str, cli: click.Command) -> str:
    """Return what a shell has to run once to complete `probox`."""
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    # Of the base class: that of bash would start bash first, to see which it is, and complain if there is none.
    text = ShellComplete.source(kind(cli, {}, "probox", VARIABLE))
    if shell == "bash":
        # The order of choices is ours where bash can keep it, which is since 4.4; macOS still has 3.2.
        usual = "complete -o nosort -F _probox_completion probox"
        assert usual in text
        text = text.replace(usual, f"{usual} 2>/dev/null ||\n    {usual.replace('-o nosort ', '')}")
    return text


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options, choices and files with the Tab key.

    Install it once, then open a new shell.

    \b
    bash:  probox completion bash >> ~/.bashrc
    zsh:   probox completion zsh >> ~/.zshrc        (below the line with compinit)
    fish:  probox completion fish > ~/.config/fish/completions/probox.fish

    \b
    For this shell alone:
      eval "$(probox completion bash)"
    """
    click.echo(script(shell, context.find_root().command), nl=False)

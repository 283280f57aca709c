"""The command line. Commands are imported when called; distributions add entry points to `probox.commands`."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click

from probox.errors import InputError, ProboxError
from probox.support.formatting import nearest_word, printable
from probox.support.optional import pip_command
from probox.support.plugins import PluginWarning, find_plugins, load_plugin, name_distribution
from probox.version import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from click.shell_completion import CompletionItem

__all__ = ["main"]

# name: (module and command in it, summary). Modules are imported only when their command runs, so that `probox --help`
# stays fast whatever a command needs.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("probox.cli.demo:command", "Evaluate two synthetic detectors; needs no files."),
    "evaluate": ("probox.cli.evaluate:command", "Evaluate detections: PDQ, mAP, moLRP and other metrics."),
    "merge": ("probox.cli.merge:command", "Merge the results of `evaluate --part`."),
    "table": ("probox.cli.evaluate:table_command", "Print a table with a row per detection file."),
    "diagnose": ("probox.cli.diagnose:command", "Diagnose results: loss breakdown, calibration, possible gains."),
    "compare": ("probox.cli.compare:command", "Compare results with bootstrap intervals and permutation tests."),
    "validate": ("probox.cli.convert:validate_command", "Check input files for errors and likely mistakes."),
    "convert": ("probox.cli.convert:command", "Convert detections or ground truth to another format."),
    "detect": ("probox.cli.detect:command", "Run a detector on photos: ONNX, torch or Python."),
    "fuse": ("probox.cli.fuse:command", "Fuse the detections of several detectors."),
    "calibrate": ("probox.cli.calibrate:command", "Calibrate standard deviations and label probabilities."),
    "rank": ("probox.cli.rank:command", "Rank images by predictive uncertainty."),
    "draw": ("probox.cli.draw:command", "Draw images with objects and detections."),
    "plot": ("probox.cli.report:plot_command", "Plot results."),
    "report": ("probox.cli.report:command", "Write an interactive HTML report."),
    "completion": ("probox.cli.completion:command", "Print a shell completion script."),
}

TASKS = {
    "Evaluate": ("evaluate", "merge", "table", "validate", "convert"),
    "Explain and show": ("diagnose", "compare", "draw", "plot", "report", "rank"),
    "Add uncertainty": ("detect", "fuse", "calibrate"),
}
"""Commands by task, as `probox --help` lists them; all others come last."""

INSTALLED_BY = {"experiment": "./experiments"}
"""Commands of this project's other distributions, with the folder that pip installs them from in a clone."""


def _added_commands() -> dict[str, EntryPoint]:
    """Return the commands of other distributions by name, without importing them."""
    return {entry.name: entry for entry in find_plugins("probox.commands") if entry.name not in COMMANDS}


def _help_texts() -> dict[str, str]:
    """Return the summary of each command."""
    added = {name: f"Added by {name_distribution(entry)}." for name, entry in _added_commands().items()}
    return {name: text for name, (_, text) in COMMANDS.items()} | added


ALLOCATIONS = 50_000
"""New objects between two garbage collections. Importing modules creates many permanent objects: with Python's default
of 700, a short command would spend a tenth of its time on collections."""


class _Commands(click.Group):
    """A group that imports its commands on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_help_texts())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command
        if cmd_name in COMMANDS:
            command = resolve_name(COMMANDS[cmd_name][0])
            return command
        if (entry := _added_commands().get(cmd_name)) is not None:
            command = load_plugin(entry, click.Command)
            return command
        if cmd_name in INSTALLED_BY and not ctx.resilient_parsing:
            raise InputError(
                f"{cmd_name} is a command of another distribution",
                remedy=f"install it in a clone of probox with: {pip_command()} install {INSTALLED_BY[cmd_name]}",
            )
        return None

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _end_with_reader():  # --help and --version print here
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _end_with_reader():
            return super().invoke(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        # The group's own way would import every command for its help.
        there = [CompletionItem(name, help=text) for name, text in _help_texts().items() if name.startswith(incomplete)]
        return there + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = nearest_word(args[0], [*_help_texts(), *INSTALLED_BY])
            if near is None or near in error.message:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        texts = _help_texts()
        tasks = {task: [(name, texts.pop(name)) for name in names] for task, names in TASKS.items()}
        for task, rows in (tasks | {"Other": list(texts.items())}).items():
            with formatter.section(task):
                formatter.write_dl([(f"{name:10}", text) for name, text in rows])  # one width for all sections


@contextmanager
def _end_with_reader() -> Iterator[None]:
    """Exit with status 0 if the reader of the output closes it (`| head`); click would exit with 1."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(0) from None


def _cite(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Print the bibliography and exit."""
    if wanted and not context.resilient_parsing:
        from probox.cli.console import format_bibliography

        click.echo(format_bibliography())
        context.exit()


@click.group(cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="probox")
@click.option(
    "--cite",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_cite,
    help="Show BibTeX entries to cite and exit.",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Evaluate probabilistic object detectors: scores, diagnosis, comparison and calibration.

    Detections may have a covariance for each box corner and a probability for each class. Metrics include PDQ, mAP,
    moLRP and calibration errors. `probox COMMAND --help` describes a command.

    \b
    Examples:
      probox demo
      probox evaluate instances_val2017.json detections.json --out results
      probox diagnose results
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(args: list[str] | None = None) -> None:
    """Run the command line. Exit status: 0 success, 1 invalid input, 2 wrong usage."""
    _replace_closed_streams()
    usual = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS, *usual[1:])
    try:
        with _exit_on_sigterm(), _warn_in_one_line():
            _main(args)
    finally:
        gc.set_threshold(*usual)


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that unfinished output and hidden folders are removed."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _warn_in_one_line() -> Iterator[None]:
    """Print warnings about plug-ins in one line, like other messages."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, PluginWarning):
            usual(message, category, *place, **more)
            return
        with suppress(OSError):  # standard error has no reader
            click.echo(f"probox: warning: {printable(str(message))}", err=True)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _replace_closed_streams() -> None:
    """Replace closed streams (`>&-`) by null devices: an output file could get their number, and receive messages."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _main(args: list[str] | None) -> None:
    try:
        status = cli.main(args=args, prog_name="probox", standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted", 130)
    except click.ClickException as error:
        error.message = printable(error.message)  # type: ignore[misc]  # it may quote arguments
        with suppress(OSError):  # standard error has no reader
            error.show()
        sys.exit(error.exit_code)
    except ProboxError as error:
        from probox.cli.console import as_option

        _fail(error.message(as_option) if isinstance(error, InputError) else str(error), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except MemoryError:
        _fail("out of memory; process fewer images at a time, or convert the files to Parquet first", 1)
    except OSError as error:
        _fail(_describe(error), 1)
    sys.exit(status if isinstance(status, int) else 0)


def _describe(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _fail(message: str, status: int) -> Any:
    with suppress(OSError):  # standard error has no reader
        click.echo(f"probox: {printable(' '.join(message.split()))}", err=True)
    sys.exit(status)

"""Output of commands: results on standard output, notes and progress on standard error, and the bibliography."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probox.errors import spell_options
from probox.notes import Note, as_notes
from probox.support.formatting import one_line, plain_json, printable, printable_json
from probox.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

_FLAGS = {"classes": "--classes FILE", "truth": "--truth FILE", "weights": "--weights FILE"}
"""Options that differ from the keyword, or need a placeholder for their value."""


def as_option(name: str, value: str) -> str:
    """Return a keyword as an option of the command line.

    >>> as_option("label_threshold", "auto"), as_option("repair", "True"), as_option("target", "pdq")
    ('--label-threshold auto', '--repair', '--target pdq')
    """
    flag = _FLAGS.get(name) or f"--{name.replace('_', '-')}"
    return flag if value in ("", "True") else f"{flag.split()[0]} {value}"


def file_title(path: str) -> str:
    """Return the title of a detection file: its name without endings.

    >>> file_title("results/ssd.json.gz")
    'ssd'
    """
    from probox.formats.registry import last_endings

    title = Path(path).name
    for ending in last_endings():
        title = title.removesuffix(ending)
    return title or "detections"


def make_console(**settings: Any) -> Console:
    """Return a console that prints text from files without control characters."""
    # Imported when needed: rich would take a tenth of the time of a short command.
    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            """Exit if standard output has no reader; drop messages if standard error has none."""
            if not self.stderr:
                raise  # rich calls this while it handles the error
            _drop_stderr()

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            """Yield segments with escaped control characters."""
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    return PlainConsole(highlight=False, emoji=False, **settings)


def _drop_stderr() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def results() -> Console:
    """Return the console of standard output, for results; it respects `NO_COLOR`."""
    return make_console()


def table_width() -> int | None:
    """Return the width of the terminal, for tables; None if standard output is a file or pipe."""
    return results().width if sys.stdout.isatty() else None


def words() -> Console:
    """Return the console of standard error, for everything else."""
    return make_console(stderr=True)


def note(text: str) -> None:
    """Print a message on standard error, in one line."""
    line = text.lstrip("\n")
    space = text[: len(text) - len(line)]
    try:
        click.echo(printable(space + one_line(spell_options(line, as_option))), err=True)
    except BrokenPipeError:  # standard error has no reader: drop this message and later ones
        _drop_stderr()


def print_notes(notes: Iterable[Note | str], title: str = "") -> None:
    """Print notes and warnings on standard error, one per line."""
    for one in as_notes(notes):
        note(f"{title}{one.with_label(as_option)}")


def print_text(text: str) -> None:
    """Print a result, such as a table, unwrapped."""
    click.echo(printable(text))


def print_json(value: Any) -> None:
    """Print one JSON object: NaN and infinities as null, notes as objects with code, message and fields."""
    import json

    text = json.dumps(plain_json(value), ensure_ascii=False, allow_nan=False, default=_describe_note)
    click.echo(printable_json(text))


def _describe_note(note: Note) -> Any:
    return plain_json(note.to_dict(as_option))


def print_outcome(described: dict[str, Any], notes: Iterable[Note | str], *lines: str, as_json: bool) -> None:
    """Print the outcome of a command: one JSON object that ends with the notes, or notes and lines of text."""
    if as_json:
        print_json(described | {"notes": as_notes(notes)})
    else:
        print_notes(notes)
        for line in lines:
            note(line)


@contextmanager
def progress_bar(description: str, *, quiet: bool = False) -> Iterator[Any]:
    """Yield a callable ``progress(done, total)``; it draws a bar if standard error is a terminal."""
    if quiet or not sys.stderr.isatty() or not (console := words()).is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(), console=console, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task(description, total=None, count="")  # the total is unknown before the first call

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, count=f"{done:,}/{total:,}")

        yield progress


YEAR = 2026
"""Year of this version, as in LICENSE."""

_ENTRIES = r"""
@misc{probox,
  author = {{The probox developers}},
  title = {probox: evaluation of probabilistic object detectors},
  year = {YEAR},
  note = {Version VERSION}
}

@inproceedings{hall2020probabilistic,
  author = {Hall, David and Dayoub, Feras and Skinner, John and Zhang, Haoyang and Miller, Dimity and Corke, Peter
            and Carneiro, Gustavo and Angelova, Anelia and S{\"u}nderhauf, Niko},
  title = {Probabilistic Object Detection: Definition and Evaluation},
  booktitle = {IEEE/CVF Winter Conference on Applications of Computer Vision (WACV)},
  year = {2020},
  eprint = {1811.10800},
  archiveprefix = {arXiv}
}

@inproceedings{lin2014microsoft,
  author = {Lin, Tsung-Yi and Maire, Michael and Belongie, Serge and Hays, James and Perona, Pietro
            and Ramanan, Deva and Doll{\'a}r, Piotr and Zitnick, C. Lawrence},
  title = {Microsoft {COCO}: Common Objects in Context},
  booktitle = {European Conference on Computer Vision (ECCV)},
  year = {2014}
}

@inproceedings{oksuz2018localization,
  author = {Oksuz, Kemal and Cam, Baris Can and Akbas, Emre and Kalkan, Sinan},
  title = {Localization Recall Precision ({LRP}): A New Performance Metric for Object Detection},
  booktitle = {European Conference on Computer Vision (ECCV)},
  year = {2018}
}
"""


def format_bibliography() -> str:
    """Return BibTeX entries of probox and of the papers of its standard metrics.

    >>> print(format_bibliography().splitlines()[0])
    % PDQ: hall2020probabilistic. mAP: lin2014microsoft. moLRP: oksuz2018localization. The software: probox.
    """
    which = {"PDQ": "hall2020probabilistic", "mAP": "lin2014microsoft", "moLRP": "oksuz2018localization"}
    words = " ".join(f"{what}: {key}." for what, key in which.items())
    entries = _ENTRIES.replace("YEAR", str(YEAR)).replace("VERSION", __version__)
    return f"% {words} The software: probox.\n{entries}".rstrip()

"""What commands print: results to standard output, notes and progress to standard error, and what to cite."""

from __future__ import annotations

import json
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
"""Options that are not called like the keyword, or need a word on their value."""


def as_option(name: str, value: str) -> str:
    """Return a keyword as the command line writes it.

    >>> as_option("label_threshold", "auto"), as_option("repair", "True"), as_option("target", "pdq")
    ('--label-threshold auto', '--repair', '--target pdq')
    """
    flag = _FLAGS.get(name) or f"--{name.replace('_', '-')}"
    return flag if value in ("", "True") else f"{flag.split()[0]} {value}"


def file_title(path: str) -> str:
    """Return what to call a detections file: its name without endings.

    >>> file_title("results/ssd.json.gz")
    'ssd'
    """
    from probox.formats.registry import last_endings

    title = Path(path).name
    for ending in last_endings():
        title = title.removesuffix(ending)
    return title or "detections"


def make_console(**settings: Any) -> Console:
    """Return a console on which only the program itself moves the cursor and chooses colours."""
    # Loaded when something is printed for people: with --json, rich would be a fifteenth of a short command's time.
    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            """End the command when standard output has no reader; drop messages when standard error has none."""
            if not self.stderr:
                raise  # rich calls this while it handles the error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            """Yield what is shown, names from files made harmless."""
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    return PlainConsole(highlight=False, emoji=False, **settings)


def results() -> Console:
    """Return the console for results: standard output; `NO_COLOR` is honoured."""
    return make_console()


def table_width() -> int | None:
    """Return how wide tables may be: as wide as the terminal; None where results go into a file or a program."""
    return results().width if sys.stdout.isatty() else None


def words() -> Console:
    """Return the console for everything else: standard error."""
    return make_console(stderr=True)


def note(text: str) -> None:
    """Print a text for people on standard error, in one line."""
    line = text.lstrip("\n")
    space = text[: len(text) - len(line)]
    words().print(space + one_line(spell_options(line, as_option)), markup=False, soft_wrap=True)


def print_notes(notes: Iterable[Note | str], title: str = "") -> None:
    """Print notes and warnings on standard error, a line each."""
    for one in as_notes(notes):
        note(f"{title}{one.with_label(as_option)}")


def print_text(text: str) -> None:
    """Print a result, such as a table, as it is."""
    results().print(text, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON object and nothing else; NaN and infinities become null, notes their code, message and fields."""
    text = json.dumps(plain_json(value), ensure_ascii=False, allow_nan=False, default=_describe_note)
    click.echo(printable_json(text))


def _describe_note(note: Note) -> Any:
    return plain_json(note.to_dict(as_option))


def print_outcome(described: dict[str, Any], notes: Iterable[Note | str], *lines: str, as_json: bool) -> None:
    """Print what a command did: one JSON object that ends with the notes, or notes and lines for people."""
    if as_json:
        print_json(described | {"notes": as_notes(notes)})
    else:
        print_notes(notes)
        for line in lines:
            note(line)


@contextmanager
def progress_bar(description: str, *, quiet: bool = False) -> Iterator[Any]:
    """Give a callable ``progress(done, total)`` that draws a bar, or nothing when standard error is no terminal."""
    if quiet or not (console := words()).is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(), console=console, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task(description, total=None, count="")  # how many there are is not known yet

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, count=f"{done:,}/{total:,}")

        yield progress


YEAR = 2026
"""Of this version, as in LICENSE."""

_ENTRIES = r"""
@misc{probox,
  author = {{The probox developers}},
  title = {probox: measure, make and show probabilistic object detections},
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
    """Return the entries for probox and for the papers of its standard measures.

    >>> print(format_bibliography().splitlines()[0])
    % PDQ: hall2020probabilistic. mAP: lin2014microsoft. moLRP: oksuz2018localization. The software: probox.
    """
    which = {"PDQ": "hall2020probabilistic", "mAP": "lin2014microsoft", "moLRP": "oksuz2018localization"}
    words = " ".join(f"{what}: {key}." for what, key in which.items())
    entries = _ENTRIES.replace("YEAR", str(YEAR)).replace("VERSION", __version__)
    return f"% {words} The software: probox.\n{entries}".rstrip()

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

from probox.support.plain_json import plain_json
from probox.support.words import one_line, printable, printable_json
from probox.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "file_title",
    "format_bibliography",
    "in_flags",
    "make_console",
    "note",
    "print_json",
    "progress_bar",
    "results",
    "say_notes",
    "table_width",
    "warnings_of",
    "words",
]

_FLAGS = (
    ("read them with repair=True", "use --repair"),
    ('evaluate with label_threshold="auto"', "evaluate with --label-threshold auto"),
    ("evaluate with label_threshold=", "evaluate with --label-threshold "),
    ('with clip="corners"', "with --clip corners"),
    ("truth.select_images(ids), result.select_images(ids)", "--image-ids IDS"),
    ("cannot hold heatmaps; write RVC1 instead", "cannot hold heatmaps; use --to rvc1"),
    ("give the ground truth, to write them too", "add --truth FILE to write them too"),
    ("give the names of its classes", "name them with --classes FILE, one per line"),
    ("name another family", "name another family with --family"),
    ("name the detector's family", "name it with --family"),
    ("give a file of weights", "give one with --weights FILE"),
    ("leave out the file of weights", "leave out --weights"),
    ("leave out the family", "leave out --family"),
    ("min_std, prior_std, shrinkage and", "--min-std, --prior-std, --shrinkage and"),
    ('border="pin"', "--border pin"),
    ('leave border out, or use target="pdq"', "leave --border out, or use --target pdq"),
    ('leave them out, or write recipe="probox"', "leave them out, or --recipe paper"),
    ("leave out the size", "leave out --size"),
    ("leave out the device", "leave out --device"),
    ("give it as the file of weights", "give it as --weights"),
    ("check the folder and the file", "check --images and --truth"),
    ("give the ground truth, which knows their ids", "add --truth FILE, which knows their ids"),
    ("give the ground truth to use its", "add --truth FILE to use its"),
    ('use method="constant" or method="learned"', "use --method constant or --method learned"),
    ('use method="constant"', "use --method constant"),
    ("leave the target out, or use another method", "leave --target out, or use another --method"),
    ("give the ground truth of these images", "add --truth FILE"),
    ("say on which truth it was run", "say on which truth it was run with --truth"),
    ('evaluate anew with keep="all"', "evaluate anew with --keep all"),
    ('evaluate with keep="all"', "evaluate with --keep all"),
    ('use keep="all"', "use --keep all"),
    ('use keep="matches"', "use --keep matches"),
    ('evaluate with keep="matches"', "evaluate with --keep matches"),
    ("run again with resume=True", "run again with --resume"),
    ("go on with them with resume=True", "go on with them with --resume"),
    ("keep parts in a folder that all machines share", "name one with --parts-dir that all machines share"),
    ("or at a URL, or nowhere", "also a URL, or write --parts-dir none"),
)
"""What the library advises, and the same for the command line."""


def in_flags(text: str) -> str:
    """Return a message with what to do said in flags instead of Python.

    >>> in_flags("1 is no covariance; read them with repair=True")
    '1 is no covariance; use --repair'
    """
    for python, flag in _FLAGS:
        text = text.replace(python, flag)
    return text


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
    """Say something to people, on standard error, in one line."""
    line = text.lstrip("\n")
    space = text[: len(text) - len(line)]
    words().print(space + one_line(in_flags(line)), markup=False, soft_wrap=True)


def say_notes(evaluation: Any, title: str = "", *, skip: str = "") -> None:
    """Say what is odd about an evaluation's input, what was left out or replaced, and what its numbers leave out.

    `skip` is a kind of warning that does not matter to what is shown.
    """
    from probox.evaluation.notes import label_note

    for oddity in evaluation.oddities:
        if oddity.kind == skip:
            continue
        note(f"{title}warning: {oddity}")
    for text in (*evaluation.plain_notes, *evaluation.remarks):
        note(f"{title}{label_note(text)}")


def warnings_of(evaluation: Any, *, skip: str = "") -> list[dict[str, str]]:
    """Return the warnings about an evaluation's input, for JSON, but those of a kind."""
    from probox.evaluation.notes import is_warning

    found = [(one.kind, one.text, one.remedy) for one in evaluation.oddities if one.kind != skip]
    found += [("input file", *text.split("; ", 1)) for text in evaluation.plain_notes if is_warning(text)]
    return [{"kind": kind, "text": text, "remedy": in_flags(remedy)} for kind, text, remedy in found]


def print_json(value: Any) -> None:
    """Print one JSON object and nothing else; NaN and infinities become null."""
    text = json.dumps(plain_json(value), ensure_ascii=False, allow_nan=False)
    click.echo(printable_json(text))


@contextmanager
def progress_bar(description: str, *, quiet: bool = False) -> Iterator[Any]:
    """Give a callable ``progress(done, total)`` that draws a bar, or nothing when standard error is no terminal."""
    if quiet:
        yield lambda done, total: None
        return
    console = words()
    if not console.is_terminal:
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

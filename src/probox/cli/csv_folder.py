"""Where `probox evaluate --csv DIR` writes tables: into DIR for one file, into DIR/NAME for several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from probox.errors import InputError

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation
    from probox.tables.flat import FlatTable

__all__ = ["check_csv_folder", "csv_folders", "csv_option", "write_csv_folder"]

COMMAND = "evaluate --csv"

csv_option = click.option(
    "--csv",
    "csv_folder",
    type=click.Path(),
    metavar="DIR",
    help="Write numbers, groups, detections and objects as CSV.",
)


def csv_folders(target: str, names: Sequence[str]) -> list[str]:
    """Return where the tables of each result go."""
    return [target] if len(names) == 1 else [str(Path(target) / name) for name in names]


def check_csv_folder(target: str, names: Sequence[str]) -> None:
    """Raise if the tables of these results could not be written there, or would lie among those of another kind of run.

    Tables of one file in DIR, and of several in folders of it, would look like those of one run.
    """
    from probox.files.output import check_output_folder, list_files_written

    wanted = _file_names(names)
    check_output_folder(target, COMMAND, wanted)
    depths = {len(path.relative_to(target).parts) for path in list_files_written(Path(target), COMMAND)[:-1]}
    if depths - {1 if len(names) == 1 else 2}:
        held, now = ("several files", "one") if len(names) == 1 else ("one file", "several")
        raise InputError(
            f"holds tables of {held}, among which those of {now} would be lost",
            file=target,
            remedy="choose another folder, or remove these tables first",
        )


def write_csv_folder(target: str, results: Mapping[str, Evaluation]) -> None:
    """Write the tables of all results, all of them or none."""
    from probox.evaluation.group_tables import csv_tables
    from probox.files.output import output_folder

    with output_folder(target, COMMAND, names=_file_names(list(results))) as folder:
        for name, evaluation in results.items():
            prefix = "" if len(results) == 1 else f"{name}/"
            for table, flat in csv_tables(evaluation, name).items():
                folder.write(f"{prefix}{table}.csv", _writer(flat))


def _file_names(names: Sequence[str]) -> list[str]:
    from probox.evaluation.group_tables import CSV_TABLES

    prefixes = [""] if len(names) == 1 else [f"{name}/" for name in names]
    return [f"{prefix}{table}.csv" for prefix in prefixes for table in CSV_TABLES]


def _writer(table: FlatTable) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        for chunk in table.csv_chunks():
            file.write(chunk)

    return write

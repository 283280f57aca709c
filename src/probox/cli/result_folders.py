"""Where `probox evaluate` and `probox merge` write results and tables: in DIR, or in DIR/NAME."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from probox.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from probox.convention import Convention
    from probox.evaluation.result import Evaluation
    from probox.tables.flat import FlatTable

COMMAND = "evaluate --csv"


def refuse_other_runs(
    out: Path,
    names: Sequence[str],
    convention: Convention,
    measures: Sequence[str],
    image_ids: npt.NDArray[np.int64],
    classes: Sequence[str],
) -> None:
    """Raise if results that are to stay in `out` were not measured as new ones will be; `names` are replaced.

    Other files in the folders of `names` are left alone.
    """
    from probox.evaluation.folders import find_results
    from probox.evaluation.storage import WORDS, check_place, load

    if out.exists() and not out.is_dir():
        raise InputError("is a file, expected a folder to write to", file=str(out), remedy="choose another name")
    remedy = "keep this run in another folder, or remove that result first"
    if (out / WORDS).is_file():
        raise InputError(f"holds a result itself ({WORDS}), which would hide those in it", file=str(out), remedy=remedy)
    for name in names:
        check_place(out / name)
    for folder in find_results([str(out)]):
        if folder == out or folder.name in names:
            continue
        there = load(folder)
        differs = {
            f"by convention {there.convention.describe()}, not {convention.describe()}": there.convention != convention,
            f"for {' and '.join(there.measures)}, not {' and '.join(measures)}": set(there.measures) != set(measures),
            "on other images": not np.array_equal(there.dataset.image_ids, image_ids),
            "for other classes": tuple(there.classes) != tuple(classes),
        }
        for how, true in differs.items():
            if true:
                raise InputError(f"holds a result that was measured {how}", file=str(folder), remedy=remedy)


def keep_results(out: Path, results: Mapping[str, Evaluation]) -> None:
    """Write results to `out`, a folder each, all of them or none; the folder keeps their order."""
    from probox.evaluation.folders import count_positions
    from probox.evaluation.storage import save_results

    save_results({out / name: result for name, result in results.items()}, count_positions(out, list(results)))


def list_csv_folders(target: str, names: Sequence[str]) -> list[str]:
    """Return where the tables of each result go."""
    return [target] if len(names) == 1 else [str(Path(target) / name) for name in names]


def check_csv_folder(target: str, names: Sequence[str]) -> None:
    """Raise if the tables of these results could not be written there, or would lie among those of another kind of run.

    Tables of one file in DIR, and of several in folders of it, would look like those of one run.
    """
    from probox.files.output import check_output_folder, list_files_written

    wanted = _list_files(names)
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

    with output_folder(target, COMMAND, names=_list_files(list(results))) as folder:
        for name, evaluation in results.items():
            prefix = "" if len(results) == 1 else f"{name}/"
            for table, flat in csv_tables(evaluation, name).items():
                folder.write(f"{prefix}{table}.csv", _make_writer(flat))


def _list_files(names: Sequence[str]) -> list[str]:
    from probox.evaluation.group_tables import CSV_TABLES

    prefixes = [""] if len(names) == 1 else [f"{name}/" for name in names]
    return [f"{prefix}{table}.csv" for prefix in prefixes for table in CSV_TABLES]


def _make_writer(table: FlatTable) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        for chunk in table.csv_chunks():
            file.write(chunk)

    return write

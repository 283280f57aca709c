"""Where `probox evaluate --out DIR` keeps results: in DIR/NAME, and never two kinds of runs in one DIR."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from probox.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from probox.convention import Convention
    from probox.evaluation.result import Evaluation

__all__ = ["keep_results", "refuse_other_runs"]


def refuse_other_runs(
    out: Path,
    names: Sequence[str],
    convention: Convention,
    measures: Sequence[str],
    image_ids: npt.NDArray[np.int64],
    classes: Sequence[str],
) -> None:
    """Raise if results that are to stay in `out` were not measured as new ones will be; `names` are replaced.

    Files in the folders of `names` that are of no result are not.
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

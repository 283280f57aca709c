"""`probox merge`: merge results of parts of the images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from probox.cli.console import note, print_json, print_notes, print_text, table_width
from probox.cli.shared_options import json_option
from probox.errors import InputError
from probox.support.formatting import with_count

if TYPE_CHECKING:
    from probox.convention import Convention
    from probox.evaluation.result import Evaluation
    from probox.support.types import Ints


PARTS = "give folders written by `probox evaluate --part K/N --out DIR`"


@click.command("merge")
@click.argument("parts", nargs=-1, required=True, type=click.Path(), metavar="PART_DIR...")
@click.option("--out", required=True, type=click.Path(), metavar="DIR", help="Write merged results to DIR/NAME.")
@click.option("--incomplete", is_flag=True, help="Allow missing parts; the result is a part, too.")
@json_option
def command(parts: tuple[str, ...], out: str, incomplete: bool, as_json: bool) -> None:
    """Merge results of `probox evaluate --part`, in any order.

    The merged result is bit-identical to a single run. PART_DIR is a folder of `probox evaluate --out`, or one result
    in it. Results of different images with equal settings can be merged, too (docs/cluster.md).

    \b
    Examples:
      probox evaluate truth.json detections.json --part 1/2 --out parts/1
      probox evaluate truth.json detections.json --part 2/2 --out parts/2
      probox merge parts/* --out results
    """
    from probox.evaluation.merge import merge
    from probox.evaluation.text import summary_text

    groups = _groups(parts)
    merged: dict[str, Any] = {}
    for name, folders in groups.items():
        merged[name] = merge(folders, complete=not incomplete)
    first = next(iter(merged.values()))
    place = Path(out)
    if "" in merged:
        _refuse_hiding(place)
        place, merged = place.parent, {place.name: first}
    else:
        refuse_other_runs(place, list(merged), first.convention, first.measures, first.dataset.image_ids, first.classes)
    _refuse_inputs(place, merged, groups)
    keep_results(place, merged)
    if as_json:
        described = [
            {
                "name": name,
                "summary": result.summary(),
                "counts": result.counts,
                "parts": len(folders),
                "part": None if result.part is None else str(result.part),
                "out": str(place / name),
                "comparability": result.comparability,
                "notes": result.notes,
                "warnings": result.warnings,
            }
            for (name, result), folders in zip(merged.items(), groups.values(), strict=True)
        ]
        print_json(described[0] if len(described) == 1 else {"results": described})
        return
    named = [("" if len(merged) == 1 else name, result.summary()) for name, result in merged.items()]
    standard = [one for result in merged.values() for one in result.comparability]
    text = summary_text(
        named, first.convention, against=first.scored_against, comparability=standard, width=table_width()
    )
    print_text(text)
    for (name, result), folders in zip(merged.items(), groups.values(), strict=True):
        title = f"{name}: " if len(merged) > 1 else ""
        what = "" if result.part is None else f"; {result.part}"
        counted = f"{with_count(len(folders), 'part')}, {with_count(len(result.dataset), 'image')}"
        note(f"{title}{counted}{what}; wrote {place / name}")
        print_notes([*result.warnings, *result.notes], title)


def _groups(parts: tuple[str, ...]) -> dict[str, list[Path]]:
    """Return the folders to merge by the name of the result; the name of a given result is empty."""
    from probox.evaluation.folders import find_results
    from probox.evaluation.storage import WORDS

    groups: dict[str, list[Path]] = {}
    given: dict[str, list[str]] = {}
    for text in parts:
        path = Path(text)
        if not path.is_dir():
            raise InputError("no such folder", file=text, remedy=PARTS)
        alone = (path / WORDS).is_file()
        inside = find_results([text])
        if inside == [path] and not alone:
            raise InputError("contains no results", file=text, remedy=PARTS)
        for folder in inside:
            name = "" if alone else folder.name
            groups.setdefault(name, []).append(folder)
            given.setdefault(name, []).append(text)
    if "" in given and len(given) > 1:
        others = next(texts for name, texts in given.items() if name)
        raise InputError(
            f"is a result, but {others[0]} is a folder of results",
            file=given[""][0],
            remedy="give results only, or folders of results only",
        )
    for name, texts in given.items():
        there = set(texts)
        without = [text for text in parts if text not in there]
        if without:
            raise InputError(
                f"contains no result {name!r}, but {texts[0]} does",
                file=without[0],
                remedy="evaluate the same detection files for each part",
            )
    return groups


def _refuse_hiding(place: Path) -> None:
    """Raise if the folder contains results, which a result in the folder itself would hide."""
    from probox.evaluation.storage import WORDS

    inside = next(iter(sorted(place.glob(f"*/{WORDS}"))), None) if place.is_dir() else None
    if inside is not None:
        raise InputError("would be hidden by a result in --out", file=str(inside.parent), remedy="choose another --out")


def _refuse_inputs(place: Path, merged: dict[str, Any], groups: dict[str, list[Path]]) -> None:
    """Raise if a merged result would replace one of its parts."""
    given = {folder.resolve() for folders in groups.values() for folder in folders}
    for name in merged:
        if (place / name).resolve() in given:
            raise InputError("would replace one of the parts", file=str(place / name), remedy="choose another --out")


def refuse_other_runs(
    out: Path,
    names: Sequence[str],
    convention: Convention,
    measures: Sequence[str],
    image_ids: Ints,
    classes: Sequence[str],
) -> None:
    """Raise if other results in `out` have other settings than the new ones; results of `names` are replaced.

    Other files in the folders of `names` are not changed.
    """
    from probox.evaluation.folders import find_results
    from probox.evaluation.storage import WORDS, check_place, load
    from probox.measures.registry import asks_for_all, need_masks

    if out.exists() and not out.is_dir():
        raise InputError("is a file, expected a folder to write to", file=str(out), remedy="choose another name")
    remedy = "choose another --out, or remove that result"
    optional = {name for name in measures if need_masks([name])} if asks_for_all(measures) else set()
    if (out / WORDS).is_file():
        raise InputError(f"contains a result itself ({WORDS}), which would hide others", file=str(out), remedy=remedy)
    for name in names:
        check_place(out / name)
    for folder in find_results([str(out)]):
        if folder == out or folder.name in names:
            continue
        there = load(folder)
        differs = {
            f"another convention, expected '{convention.describe()}', got '{there.convention.describe()}'": (
                there.convention != convention
            ),
            f"other metrics, expected {', '.join(measures)}, got {', '.join(there.measures)}": (
                set(there.measures) - optional != set(measures) - optional
            ),
            "other images": not np.array_equal(there.dataset.image_ids, image_ids),
            "other classes": tuple(there.classes) != tuple(classes),
        }
        for how, true in differs.items():
            if true:
                raise InputError(f"contains a result with {how}", file=str(folder), remedy=remedy)


def keep_results(out: Path, results: Mapping[str, Evaluation]) -> None:
    """Write each result to a folder in `out`, all or none, with their order."""
    from probox.evaluation.folders import count_positions
    from probox.evaluation.storage import save_results

    save_results({out / name: result for name, result in results.items()}, count_positions(out, list(results)))

"""`probox rank`: rank images by predictive uncertainty, for active learning."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probox.analysis.ranking import AGGREGATES, UNCERTAINTIES
from probox.cli.console import note, print_json, print_notes
from probox.cli.scoring import label_threshold_option
from probox.cli.shared_options import GroupedCommand, input_option, json_option, option_group, output_option
from probox.errors import InputError
from probox.files.output import Kind
from probox.files.reading import file_head
from probox.notes import Note
from probox.support.formatting import csv_text, printable, with_count
from probox.support.text_table import grid

if TYPE_CHECKING:
    from probox.analysis.ranking import Ranking
    from probox.tables.detections import Detections

ranking_option = option_group("Ranking")

STYLES = ("text", "csv")

_NUMBERS = 3
"""Number of columns before the file names."""


@click.command("rank", cls=GroupedCommand, context_settings={"show_default": True})
@click.argument("detections", type=click.Path())
@input_option(
    "--image-ids",
    metavar="IDS",
    help="Rank these images only: ids separated by commas, or a file with a JSON list or an id per line.",
)
@input_option("--truth", type=click.Path(), metavar="FILE", help="Read images and file names from this ground truth.")
@ranking_option("--by", type=click.Choice(list(UNCERTAINTIES)), default="entropy", help="Uncertainty (above).")
@ranking_option(
    "--aggregate", type=click.Choice(list(AGGREGATES)), default="sum", help="Aggregate the detections of an image."
)
@label_threshold_option("Use only detections with a label probability above T.", auto=False, group="Ranking")
@ranking_option("--top", type=click.IntRange(min=1), help="List the first N images only.")
@output_option("--out", type=click.Path(), metavar="FILE", help="Write image ids to FILE, as a JSON list.")
@output_option("--format", "style", type=click.Choice(STYLES), default=STYLES[0], help="Format of the table.")
@json_option
def command(
    detections: str,
    by: str,
    aggregate: str,
    label_threshold: float | None,
    top: int | None,
    image_ids: str | None,
    truth: str | None,
    out: str | None,
    style: str,
    as_json: bool,
) -> None:
    """Rank images by predictive uncertainty, for active learning. Ground truth is optional.

    The most uncertain images come first, images without detections last. By default, the uncertainties of an image's
    detections are added, which prefers crowded images: set --label-threshold (docs/ranking.md).

    \b
    Uncertainties (--by):
      entropy  of the label probabilities and background, in nats
      margin   1 - (p1 - p2) of the two most probable labels, background included
      spread   mean std of the edges / side of the box; needs covariances

    \b
    Examples:
      probox rank detections.json --label-threshold 0.1 --top 50 --out next.json
      probox rank detections.parquet --by spread --aggregate mean --format csv
      probox evaluate truth.json detections.json --image-ids next.json
    """
    from probox.analysis.ranking import rank
    from probox.evaluation.inputs import parse_image_ids
    from probox.files.output import check_not_input, check_replaceable, write_files

    if out is not None:
        check_not_input(out, (detections, truth, image_ids))
        check_replaceable(out, IDS, folder=True)
    table, known, names, notes = _read(detections, truth)
    wanted = known if image_ids is None else list(parse_image_ids(image_ids, "--image-ids"))
    if truth is not None and image_ids is not None:
        unknown = sorted(set(wanted) - set(known))
        if unknown:
            raise InputError("not in the ground truth", file="--image-ids", image=unknown[0], remedy="leave it out")
    if not wanted:
        raise InputError("no detections to rank", file=detections)
    everything = rank(table, by, aggregate=aggregate, label_threshold=label_threshold, image_ids=wanted)
    notes += everything.notes
    if empty := int((everything.detections == 0).sum()):
        notes.append(Note("images-last", empty, total=len(everything)))
    ranking = everything if top is None else everything.top(top)
    if out is not None:
        write_files({Path(out): MARK + json.dumps(ranking.image_ids.tolist())[1:].encode() + b"\n"})
    rows = _rows(ranking, names)
    if as_json:
        settings = {"by": by, "aggregate": aggregate, "label_threshold": label_threshold}
        print_json({"detections": detections, **settings, "images": rows, "notes": notes, "output": out})
        return
    cells = _cells(rows, by, ".17g" if style == "csv" else ".4f")
    words = len(cells[0]) > _NUMBERS
    click.echo(printable(csv_text(cells)) if style == "csv" else grid(cells, names=False, words=words))
    print_notes(notes)
    if out is not None:
        note(f"wrote {with_count(len(ranking), 'image id')} to {out}")


def _read(path: str, truth: str | None) -> tuple[Detections, list[int], dict[int, str], list[Note]]:
    """Return the detections, the ids of all known images, their file names, and notes."""
    from probox.files.reading import Source
    from probox.formats import read_detections, read_truth
    from probox.formats.registry import format_of_detections
    from probox.formats.rvc1_detections import RVC1_DETECTIONS
    from probox.pictures.standalone import read_standalone

    if truth is not None:
        dataset = read_truth(truth).dataset
        ids = dataset.image_ids.tolist()
        return read_detections(path, dataset), ids, dict(zip(ids, dataset.file_names, strict=True)), []
    alone = read_standalone(path, None)
    numbered = format_of_detections(Source(path)) is RVC1_DETECTIONS
    notes = [Note("images-numbered")] if numbered else []
    return alone.detections, list(alone.sizes), {}, notes


def _rows(ranking: Ranking, names: dict[int, str]) -> list[dict[str, Any]]:
    columns = zip(ranking.image_ids.tolist(), ranking.values.tolist(), ranking.detections.tolist(), strict=True)
    rows = []
    for image_id, value, n in columns:
        row = {"image_id": image_id, "value": value, "detections": n}
        rows.append({**row, "file_name": names[image_id]} if names.get(image_id) else row)
    return rows


def _cells(rows: list[dict[str, Any]], by: str, digits: str) -> list[list[str]]:
    named = any("file_name" in row for row in rows)
    cells = [["image", by, "detections", *(["file"] if named else [])]]
    for row in rows:
        value = "" if math.isnan(row["value"]) else format(row["value"], digits)
        cells.append([str(row["image_id"]), value, str(row["detections"]), *([row.get("file_name", "")] * named)])
    return cells


MARK = b"[\t"
"""Start of a list that `probox rank` wrote: valid JSON, with a tab that other programs do not write."""
IDS = Kind("image ids that `probox rank` wrote", lambda path: file_head(path).startswith(MARK))

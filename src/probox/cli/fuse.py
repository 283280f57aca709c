"""`probox fuse`: several detectors' files into one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from probox.cli.console import note, notes_as_json, print_json, print_notes
from probox.cli.detection_options import border_option, fusion_options, out_option
from probox.cli.shared_options import (
    GroupedCommand,
    Named,
    json_option,
    make_titles,
    named_argument,
    option_group,
)
from probox.fusion.fuse import LABEL_AFFINITIES
from probox.fusion.gaussian import pinned_note

cluster_option = option_group("Clusters")


@click.command("fuse", cls=GroupedCommand, context_settings={"show_default": True})
@click.argument("truth", type=click.Path())
@named_argument("members", "DETECTIONS")
@out_option()
@cluster_option(
    "--iou", type=click.FloatRange(0, 1, min_open=True), default=0.7, help="Least IoU with the mean box of a cluster."
)
@cluster_option(
    "--label-affinity", type=click.Choice(LABEL_AFFINITIES), default="same", help="Labels that may form one cluster."
)
@cluster_option(
    "--label-similarity",
    type=click.FloatRange(0, 1),
    default=0.5,
    help="Least similarity of label distributions with --label-affinity similar.",
)
@fusion_options
@border_option
@json_option
def command(
    truth: str,
    members: tuple[Named, ...],
    out: Path,
    as_json: bool,
    **settings: Any,
) -> None:
    """Fuse the detections of several detectors, or passes of one, into probabilistic detections.

    Detections that overlap and agree become one, whose corners have the members' mean and covariance. TRUTH tells
    images and classes; its objects are not looked at. A file that is there is replaced if it holds detections, but
    never one of those that are fused. Nothing is scored. NAME=DETECTIONS gives a file a name to be called by.

    \b
    probox fuse instances_val2017.json ssd.json yolo.json rcnn.json --out ensemble.json
    probox fuse instances_val2017.json SSD=results/17.json YOLO=results/18.json --out ensemble.json
    """
    from probox.files.output import check_not_input
    from probox.formats import read_detections, read_truth
    from probox.formats.registry import check_output, write_detections
    from probox.fusion import fuse_detections

    check_output(out)
    paths, names = [member.path for member in members], make_titles(members)
    check_not_input(out, (truth, *paths))
    table = read_truth(truth)
    sizes = dict(zip(table.image_ids.tolist(), map(tuple, table.dataset.shapes.tolist()), strict=True))
    fused = fuse_detections(
        [read_detections(path, table) for path in paths],
        image_sizes=sizes,
        **settings,
    )
    notes = list(write_detections(out, fused, table))
    if settings["border"] == "pin" and fused.covariances is not None:
        size = table.dataset.shapes[table.dataset.rows_of(fused.image_ids)].astype(float)
        notes.append(pinned_note(fused.boxes, fused.covariances, size))
    if as_json:
        told = {"out": str(out), "members": paths, "names": names, "detections": len(fused)}
        print_json(told | {"notes": notes_as_json(notes)})
        return
    print_notes(notes)
    note(f"wrote {len(fused):,} detections of {len(members)} members ({', '.join(names)}) to {out}")

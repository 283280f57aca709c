"""`probox fuse`: fuse the files of several detectors; and options of commands that write detections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from probox.cli.console import print_outcome
from probox.cli.shared_options import (
    GroupedCommand,
    Named,
    json_option,
    make_titles,
    named_argument,
    option_group,
    output_option,
)
from probox.files.reading import is_url
from probox.formats.registry import endings_in_words
from probox.fusion.fuse import LABEL_AFFINITIES
from probox.fusion.gaussian import BORDERS, Spread, pinned_note
from probox.support.formatting import with_count

cluster_option = option_group("Clusters")
uncertainty_option = option_group("Uncertainty")
fusion_option = option_group("Fusion")
AT_LEAST_ZERO = click.FloatRange(0)


border_option = uncertainty_option(
    "--border",
    type=click.Choice(BORDERS),
    default="keep",
    show_default=True,
    help="Keep the std of edges at the image border, or pin it to half their distance to the border: higher PDQ, but "
    "overconfident.",
)


def fusion_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of fusion; `probox.fusion` has keywords of the same names."""
    for add in (
        fusion_option("--shrinkage", type=AT_LEAST_ZERO, default=Spread.shrinkage,
                      help="Weight --prior-std like this number of members."),
        fusion_option("--prior-std", type=AT_LEAST_ZERO, default=Spread.prior_std,
                      help="Prior std: a fraction of the box's sides."),
        fusion_option("--min-std", type=AT_LEAST_ZERO, default=Spread.min_std, help="Minimum std of a corner [px]."),
        fusion_option("--absent-counts/--absent-ignored", default=True,
                      help="Count members without the detection as score 0, or ignore them."),
        fusion_option("--min-members", type=click.IntRange(1), default=1,
                      help="Keep detections with at least N members."),
    ):  # fmt: skip
        command = add(command)
    return command


class PathOrUrl(click.Path):
    """A path, or the URL of a Parquet file; URLs stay text, as a path would drop a slash."""

    def __init__(self, *, dir_okay: bool) -> None:
        super().__init__(dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path, or a URL as text."""
        return value if is_url(value) else super().convert(value, param, ctx)


def out_option(
    default: str = "", *, required: bool = True, folders: bool = False, json: str = "RVC1"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option --out; if it is not required, `default` describes the default name.

    `json` is the format of a name that ends in .json.
    """
    return output_option(
        "--out",
        required=required,
        type=PathOrUrl(dir_okay=folders),
        help=f"Write detections to this file: {endings_in_words(json)}; JSON also as .gz.{default}",
    )


@click.command("fuse", cls=GroupedCommand, context_settings={"show_default": True})
@click.argument("truth", type=click.Path())
@named_argument("members", "DETECTIONS")
@out_option()
@cluster_option(
    "--iou", type=click.FloatRange(0, 1, min_open=True), default=0.7, help="Minimum IoU with a cluster's mean box."
)
@cluster_option(
    "--label-affinity", type=click.Choice(LABEL_AFFINITIES), default="same", help="Labels allowed in one cluster."
)
@cluster_option(
    "--label-similarity",
    type=click.FloatRange(0, 1),
    default=0.5,
    help="--label-affinity similar: minimum overlap of label distributions.",
)
@fusion_options
@border_option
@json_option
def command(truth: str, members: tuple[Named, ...], out: Path, as_json: bool, **settings: Any) -> None:
    """Fuse the detections of several detectors, or passes of one, into probabilistic detections.

    Overlapping detections with matching labels form a cluster. The fused detection has the mean and the covariance of
    the cluster's corners (docs/fusion.md). Only images and classes are read from TRUTH.

    \b
    Examples:
      probox fuse instances_val2017.json ssd.json yolo.json rcnn.json --out ensemble.json
      probox fuse instances_val2017.json SSD=results/17.json YOLO=results/18.json --out ensemble.parquet
      probox fuse instances_val2017.json ssd.json yolo.json --iou 0.6 --min-members 2 --out ensemble.json
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
    fused = fuse_detections([read_detections(path, table) for path in paths], image_sizes=sizes, **settings)
    notes = [*fused.notes, *write_detections(out, fused, table)]
    if settings["border"] == "pin" and fused.covariances is not None:
        size = table.dataset.shapes[table.dataset.rows_of(fused.image_ids)].astype(float)
        notes.append(pinned_note(fused.boxes, fused.covariances, size))
    print_outcome(
        {"out": str(out), "members": paths, "names": names, "detections": len(fused)},
        notes,
        f"wrote {with_count(len(fused), 'detection')} of {with_count(len(members), 'member')} "
        f"({', '.join(names)}) to {out}",
        as_json=as_json,
    )

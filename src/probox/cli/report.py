"""`probox report`: an HTML page of tables, plots and images."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import click

from probox.cli.console import note, notes_as_json, print_json, print_notes, progress_bar
from probox.cli.shared_options import (
    GroupedCommand,
    Named,
    input_option,
    json_option,
    load_named,
    named_argument,
    output_option,
)


@click.command("report", cls=GroupedCommand)
@named_argument("results", "RESULT_DIR")
@input_option("--truth", type=click.Path(), metavar="FILE", help="Show masks and file names of this truth.")
@input_option("--images", type=click.Path(), metavar="DIR", help="Copy photos from DIR.  [default: no photos]")
@input_option(
    "--detections",
    type=click.Path(),
    multiple=True,
    metavar="FILE",
    help="Read heatmaps from FILE (see above); one for each RESULT_DIR, in order.",
)
@output_option("--out", type=click.Path(), metavar="DIR", required=True, help="Write the page to DIR.")
@output_option("--title", default="probox report", metavar="TEXT", show_default=True, help="Heading of the page.")
@output_option("--embed", is_flag=True, help="Write one file; DIR may be a file name that ends in .html.")
@json_option
def command(
    results: tuple[Named, ...],
    truth: str | None,
    images: str | None,
    detections: tuple[str, ...],
    out: str,
    title: str,
    embed: bool,
    as_json: bool,
) -> None:
    """Write an interactive HTML page with tables, plots and every image of the evaluations in RESULT_DIR.

    RESULT_DIR is a folder that `probox evaluate --out` wrote, or a folder of such folders; all must have been
    measured on the same truth. NAME=RESULT_DIR gives one another name. The page opens from disk in any browser,
    without a server or the network.

    Heatmaps of probabilistic segmentation are not kept in RESULT_DIR: name the files that were evaluated with
    --detections to see them.

    The page goes into a new folder or replaces an earlier report, whose files are known by a list in the folder; other
    files there are left alone. If anything fails, the earlier report stays.

    \b
    probox report results --images val2017 --out report
    probox report results/ssd results/yolo --images val2017 --out report.html --embed
    probox report A=results/ssd B=elsewhere/ssd --out report
    """
    from probox.errors import InputError
    from probox.evaluation.folders import read_again
    from probox.explorer.page import write_report
    from probox.files.output import list_files_written
    from probox.formats import read_truth

    started = time.perf_counter()
    loaded = load_named(results)
    if detections and len(detections) != len(loaded):
        raise InputError(
            f"expected one --detections for each of {len(loaded)} results, but got {len(detections)}",
            remedy="give them in the order of the results",
        )
    shown = read_truth(truth) if truth is not None else None
    found = [read_again(path, one, shown) for path, one in zip(detections, loaded.values(), strict=bool(detections))]
    with progress_bar("photos", quiet=as_json) as progress:
        page, notes = write_report(
            loaded, out, images=images, truth=shown, detections=found, title=title, embed=embed, progress=progress
        )
    alone = Path(out) == page  # one file, by its name
    size = _bytes([page] if alone else list_files_written(page.parent, "report"))
    seconds = time.perf_counter() - started
    if as_json:
        told = {"page": str(page), "bytes": size, "seconds": seconds, "results": list(loaded)}
        print_json(told | {"notes": notes_as_json(notes)})
        return
    print_notes(notes)
    note(f"{size / 1e6:.1f} MB in {seconds:.1f} s; open {Path(page)}")


def _bytes(paths: list[Path]) -> int:
    """Return how much files take; one that another run is just replacing counts nothing."""
    size = 0
    for path in paths:
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size

"""`probox report` and `probox plot`: an HTML report with tables, plots and images; and plots alone."""

from __future__ import annotations

import io
import time
from contextlib import suppress
from pathlib import Path

import click

from probox.cli.console import note, print_json, print_outcome, progress_bar
from probox.cli.shared_options import (
    GroupedCommand,
    Named,
    input_option,
    json_option,
    load_named,
    named_argument,
    output_option,
)
from probox.pictures.style import ENDINGS
from probox.support.formatting import with_count


@click.command("report", cls=GroupedCommand)
@named_argument("results", "RESULT_DIR")
@input_option("--truth", type=click.Path(), metavar="FILE", help="Show masks and file names of this ground truth.")
@input_option("--images", type=click.Path(), metavar="DIR", help="Copy photos from this folder.  [default: no photos]")
@input_option(
    "--detections",
    type=click.Path(),
    multiple=True,
    metavar="FILE",
    help="Read masks and heatmaps from the evaluated FILE; repeat it once per result, in order.",
)
@output_option("--out", type=click.Path(), metavar="DIR", required=True, help="Write the report to DIR.")
@output_option("--title", default="probox report", metavar="TEXT", show_default=True, help="Heading of the report.")
@output_option("--embed", is_flag=True, help="Write a single file; --out may end in .html.")
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
    """Write an interactive HTML report with tables, plots and every image.

    The report opens in any browser and works offline (docs/explorer.md). All results must have the same ground truth.

    RESULT_DIR is a folder written by `probox evaluate --out DIR`: DIR/NAME, or DIR with several results. NAME= gives
    a result another name.

    \b
    Examples:
      probox report results --images val2017 --out report
      probox report results/ssd results/yolo --images val2017 --out report.html --embed
      probox report base=results/ssd new=results/yolo --out report
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
            f"expected one --detections for each of {with_count(len(loaded), 'result')}, got {len(detections)}",
            remedy="repeat the option in the order of the results",
        )
    shown = read_truth(truth) if truth is not None else None
    tables = [read_again(path, one, shown) for path, one in zip(detections, loaded.values(), strict=bool(detections))]
    with progress_bar("photos", quiet=as_json) as progress:
        page, notes = write_report(
            loaded, out, images=images, truth=shown, detections=tables, title=title, embed=embed, progress=progress
        )
    size = 0
    for path in [page] if Path(out) == page else list_files_written(page.parent, "report"):  # --embed with a file name
        with suppress(FileNotFoundError):  # another run replaces it now
            size += path.stat().st_size
    seconds = time.perf_counter() - started
    described = {"page": str(page), "bytes": size, "seconds": seconds, "results": list(loaded)}
    line = f"{size / 1e6:.1f} MB in {seconds:.1f} s; open {page}"
    print_outcome(described, notes, line, as_json=as_json)


@click.command("plot")
@named_argument("results", "RESULT_DIR")
@output_option("--out", type=click.Path(), metavar="DIR", required=True, help="Write plots to DIR.")
@output_option(
    "--format", "ending", type=click.Choice(ENDINGS), default=ENDINGS[0], show_default=True,
    help="Write plots in this file format."
)  # fmt: skip
@output_option("--dark", is_flag=True, help="Use a dark background.")
@json_option
def plot_command(results: tuple[Named, ...], out: str, ending: str, dark: bool, as_json: bool) -> None:
    """Plot one or several results.

    Plots show distributions of the qualities, metrics over the label threshold, precision and recall, calibration,
    classes and sizes. Each result has a line or colour (docs/pictures.md).

    RESULT_DIR is a folder written by `probox evaluate --out DIR`: DIR/NAME, or DIR with several results. NAME= gives
    a result another name.

    \b
    Examples:
      probox plot results --out plots
      probox plot results/ssd results/yolo --out plots --format pdf
      probox plot base=results/ssd new=results/yolo --out plots --dark
    """
    from probox.files.output import output_folder
    from probox.support.optional import require

    require("matplotlib", extra="report").use("Agg")
    from probox.plots import PLOTS, breakdown, draw_all, quietly

    loaded = load_named(results)
    named = {"": next(iter(loaded.values()))} if len(loaded) == 1 else loaded
    names = {name: f"{name}.{ending}" for name in PLOTS}
    written: list[dict[str, str]] = []
    with (
        quietly(),
        output_folder(out, "plot", names=names.values()) as folder,
        progress_bar("plots", quiet=as_json) as progress,
    ):
        for name, figure in draw_all(named, dark=dark):
            progress(len(written), len(PLOTS))
            plot = io.BytesIO()
            figure.savefig(plot, format=ending)
            written.append({"name": name, "file": str(folder.write(names[name], plot.getvalue()))})
        progress(len(written), len(written))  # some plots do not apply to all results
    reason = breakdown.why_not(named)
    if as_json:
        left_out = [] if reason is None else [{"name": breakdown.DIFFERENCE.name, "reason": reason}]
        print_json({"plots": written, "left_out": left_out})
        return
    note(f"wrote {with_count(len(written), 'plot')} to {out}")
    if len(named) > 1 and reason is not None:
        note(f"note: skipped plot {breakdown.DIFFERENCE.name}: {reason}")

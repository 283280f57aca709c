"""`probox plot`: every plot of one evaluation or several."""

from __future__ import annotations

import io

import click

from probox.cli.console import note, print_json, progress_bar
from probox.cli.shared_options import Named, json_option, load_named, named_argument, output_option
from probox.pictures.style import ENDINGS


@click.command("plot")
@named_argument("results", "RESULT_DIR")
@output_option("--out", type=click.Path(), metavar="DIR", required=True, help="Write plots to DIR.")
@output_option(
    "--format", "ending", type=click.Choice(ENDINGS), default=ENDINGS[0], show_default=True,
    help="File format of plots."
)  # fmt: skip
@output_option("--dark", is_flag=True, help="Draw light lines on a dark background.")
@json_option
def command(results: tuple[Named, ...], out: str, ending: str, dark: bool, as_json: bool) -> None:
    """Plot evaluations: one line or colour for each RESULT_DIR.

    Quality distributions, spatial against label quality, foreground against background, what a label
    threshold does, precision and recall, classes, sizes and others. RESULT_DIR is a folder that
    `probox evaluate --out` wrote, or a folder of such folders; NAME=RESULT_DIR gives one another name.

    All plots appear when the last is drawn. Those that an earlier `probox plot` wrote are replaced; any other file of
    the same name is refused.

    \b
    probox plot results --out plots
    probox plot results/ssd results/yolo --out plots --format pdf
    probox plot A=results/ssd B=elsewhere/ssd --out plots
    """
    from probox.files.output import output_folder
    from probox.support.optional import require

    require("matplotlib", extra="report").use("Agg")
    from probox.plots import PLOTS, breakdown, draw_all, quietly

    loaded = load_named(results)
    named = {"": next(iter(loaded.values()))} if len(loaded) == 1 else loaded
    names = {name: f"{name}.{ending}" for name in PLOTS}
    written: list[tuple[str, str]] = []
    with (
        quietly(),
        output_folder(out, "plot", names=names.values()) as folder,
        progress_bar("plots", quiet=as_json) as progress,
    ):
        for name, figure in draw_all(named, dark=dark):
            progress(len(written), len(PLOTS))
            plot = io.BytesIO()
            figure.savefig(plot, format=ending)
            written.append((name, str(folder.write(names[name], plot.getvalue()))))
        progress(len(written), len(written))  # not every plot fits every result
    reason = breakdown.why_not(named)
    if as_json:
        left_out = [] if reason is None else [{"name": breakdown.DIFFERENCE.name, "reason": reason}]
        print_json({"plots": [{"name": name, "file": path} for name, path in written], "left_out": left_out})
        return
    note(f"{len(written)} plots written to {out}")
    if len(named) > 1 and reason is not None:
        note(f"note: {breakdown.DIFFERENCE.name} left out: {reason}")

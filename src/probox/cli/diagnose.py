"""`probox diagnose`: loss breakdown, calibration of standard deviations, and possible gains."""

from __future__ import annotations

import io
from typing import Any

import click

from probox.cli.console import as_option, note, print_json, print_text, progress_bar, table_width
from probox.cli.scoring import measures_option, parse_measures, threads_option
from probox.cli.shared_options import (
    GroupedCommand,
    Named,
    json_option,
    load_named,
    named_argument,
    option_group,
    output_option,
)

analysis_option = option_group("Analysis")

PLOTS = ("budget", "coverage", "pit", "reliability", "sparsification", "sigma-error", "thresholds")
"""Plots written by --out, in addition to the possible gains."""


@click.command("diagnose", cls=GroupedCommand, context_settings={"show_default": True})
@named_argument("folders", "RESULT_DIR")
@measures_option(
    "Find the best label threshold of these metrics too, separated by commas.",
    name="--thresholds-for",
    group="Analysis",
    default="pdq",
    callback=parse_measures,
)
@analysis_option("--replicates", type=click.IntRange(min=2), default=1000, help="Draw N bootstrap replicates.")
@analysis_option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
@output_option("--out", type=click.Path(), metavar="DIR", help="Write plots and tables (CSV) to DIR.")
@output_option("--dark", is_flag=True, help="Use a dark background for plots.")
@json_option
@threads_option
def command(folders: tuple[Named, ...], out: str | None, dark: bool, as_json: bool, **settings: Any) -> None:
    """Diagnose results: loss breakdown, calibration of standard deviations, and possible gains.

    Prints a summary, then tables: the loss breakdown, the gain of each possible fix, and the calibration of standard
    deviations, labels and scores. Standard deviations are compared with the best constant (docs/diagnosis.md).

    RESULT_DIR is a folder written by `probox evaluate --out DIR`: DIR/NAME, or DIR with several results. NAME= gives
    a result another name.

    \b
    Examples:
      probox diagnose results
      probox diagnose results/ssd results/yolo --out diagnosis --json
      probox diagnose results --thresholds-for lrp,d-ece
    """
    from probox.analysis.diagnosis import diagnose

    if out is not None:
        from probox.support.optional import require

        require("matplotlib", extra="report").use("Agg")
    loaded = load_named(folders)
    diagnoses: dict[str, Any] = {}
    for name, evaluation in loaded.items():
        with progress_bar(name, quiet=as_json) as progress:
            diagnoses[name] = diagnose(evaluation, progress=progress, **settings)
    described = {"results": [{"name": name, **diagnosis.to_dict()} for name, diagnosis in diagnoses.items()]}
    if out is not None:
        _write(out, loaded, diagnoses, described, dark)
    if as_json:
        print_json(described)
        return
    from probox.analysis.diagnosis_text import diagnosis_text

    for number, (name, diagnosis) in enumerate(diagnoses.items()):
        score = f"PDQ {100 * loaded[name].pdq:.2f}" if loaded[name].has_pairs else "PDQ not measured"
        title = f"{name}: {score}, {loaded[name].convention.describe()}"
        print_text(("\n" if number else "") + f"{title}\n\n{diagnosis_text(diagnosis, table_width(), as_option)}")
    if out is not None:
        note(f"wrote plots and tables to {out}")


def _write(out: str, loaded: dict[str, Any], diagnoses: dict[str, Any], described: Any, dark: bool) -> None:
    """Write tables of each result, and plots of all results."""
    import json

    import matplotlib.pyplot as plt
    import numpy as np

    from probox.analysis.diagnosis_text import diagnosis_tables
    from probox.analysis.loss_breakdown import TITLES
    from probox.evaluation.text import label_results
    from probox.files.output import output_folder
    from probox.plots import PLOTS as ALL
    from probox.plots import quietly
    from probox.plots.breakdown import draw_what_if
    from probox.support.formatting import plain_json

    files: dict[str, bytes] = {"diagnosis.json": json.dumps(plain_json(described), indent=1).encode()}
    for name, diagnosis in diagnoses.items():
        # The result's name in file names prevents confusion with tables of earlier runs.
        prefix = name.replace("/", "-")
        files |= {f"{prefix}-{table}": text.encode() for table, text in diagnosis_tables(diagnosis).items()}
    shown = {"": next(iter(loaded.values()))} if len(loaded) == 1 else label_results(loaded)
    with quietly():
        for plot in PLOTS:
            if not ALL[plot].fits(shown):
                continue
            files[f"{plot}.png"] = _png(np.ravel(ALL[plot].draw(shown, dark=dark))[0].figure)
        answers = {name: {TITLES[a.key]: a.pdq for a in diagnosis.what_if} for name, diagnosis in diagnoses.items()}
        if any(answers.values()):
            now = {name: loaded[name].pdq for name in diagnoses}
            files["what-if.png"] = _png(draw_what_if(answers, now, dark=dark).figure)
    plt.close("all")
    with output_folder(out, "diagnose", names=files) as folder:
        for name, content in files.items():
            folder.write(name, content)


def _png(figure: Any) -> bytes:
    plot = io.BytesIO()
    figure.savefig(plot, format="png")
    return plot.getvalue()

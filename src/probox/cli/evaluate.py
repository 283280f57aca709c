"""`probox evaluate`: metrics of detection files, as a summary or as the paper's Table 1."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from probox.cli.console import (
    as_option,
    note,
    notes_as_json,
    print_json,
    print_notes,
    progress_bar,
    results,
    table_width,
)
from probox.cli.result_folders import (
    check_csv_folder,
    keep_results,
    list_csv_folders,
    refuse_other_runs,
    write_csv_folder,
)
from probox.cli.scoring import (
    Scoring,
    keep_option,
    measures_option,
    open_measure,
    parse_measures,
    part_option,
    scoring_options,
)
from probox.cli.shared_options import (
    GroupedCommand,
    Named,
    dask_option,
    json_option,
    make_titles,
    named_argument,
    option_group,
    output_option,
)
from probox.evaluation.group_tables import COUNTS, is_filled
from probox.evaluation.parts import Keep
from probox.evaluation.text import (
    STYLES,
    escape,
    format_table,
    list_directions,
    measured_words,
    render_table,
    shown_columns,
    summary_text,
    threshold_words,
)
from probox.measures.boxes.matching import AREA_RANGES, SIZES
from probox.measures.matched import FEW_PAIRS
from probox.measures.registry import measure_names, measures_called, standard_names
from probox.notes import InputWarning, Note
from probox.support.formatting import some_names, with_count

if TYPE_CHECKING:
    from probox.analysis.resampling import Intervals
    from probox.evaluation.result import Evaluation
    from probox.evaluation.text import Limits

metric_option = option_group("Metrics")


class _Command(GroupedCommand):
    """A command whose --thresholds takes any number of numbers: ``--thresholds 0.5 0.05``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        for before, arg in zip([None, *args], args, strict=False):
            if _is_number(arg) and before != "--thresholds" and "--thresholds" in spread and _is_number(spread[-1]):
                spread.append("--thresholds")
            spread.append(arg)
        return super().parse_args(ctx, spread)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@click.command("evaluate", cls=_Command)
@click.argument("truth", type=click.Path())
@named_argument("detections", "DETECTIONS")
@measures_option(
    f"Metrics, separated by commas: {', '.join(measure_names())}; or `all`.  [default: {','.join(standard_names())}]",
    group="Metrics",
    callback=parse_measures,
)
@metric_option("--per-class", is_flag=True, help="Add a table of classes.")
@metric_option("--per-size", is_flag=True, help="Add a table of small, medium and large objects.")
@metric_option("--coco", is_flag=True, help="Add COCO's twelve numbers: AP, AP50, AP75, AR and of sizes.")
@metric_option("--intervals", is_flag=True, help="Add 95% bootstrap confidence intervals.")
@metric_option(
    "--thresholds",
    multiple=True,
    type=click.FloatRange(0.0, 1.0),
    metavar="T...",
    help="Print a table with a row per file and threshold: detections with a label probability above T.",
)
@scoring_options(auto=True)
@output_option(
    "--format",
    "style",
    type=click.Choice([*STYLES, "github"]),
    help="Print a table with a row per file, best values marked; github: a job summary in Markdown.",
)
@output_option("--out", type=click.Path(), metavar="DIR", help="Keep the evaluation of each file in DIR/NAME.")
@output_option(
    "--csv",
    "csv_folder",
    type=click.Path(),
    metavar="DIR",
    help="Write numbers, groups, detections and objects as CSV files.",
)
@json_option
@part_option
@keep_option
@dask_option
@click.pass_context
def command(
    context: click.Context,
    truth: str,
    detections: tuple[Named, ...],
    scoring: Scoring,
    measures: tuple[str, ...] | None,
    per_class: bool,
    per_size: bool,
    coco: bool,
    intervals: bool,
    thresholds: tuple[float, ...],
    style: str | None,
    part: tuple[int, int] | None,
    keep: Keep,
    out: str | None,
    dask: str | None,
    csv_folder: str | None,
    as_json: bool,
) -> None:
    """Evaluate one or several files of DETECTIONS on TRUTH.

    TRUTH is COCO ground truth (.json, .json.gz), Parquet, a folder of challenge sequences, or labels of YOLO
    (data.yaml, or data.yaml:test for another part than val), Pascal VOC, KITTI or Open Images. DETECTIONS are COCO
    results, RVC1, Parquet, or files as those formats have them. Formats are detected by content. Parquet files may
    be larger than memory. A warning names the likely cause of suspicious input.

    --thresholds and --format print the paper's Table 1; `probox table` is the same as --format text. For a job summary
    on GitHub, append --format github to $GITHUB_STEP_SUMMARY.

    --out keeps each result in DIR/NAME. NAME is that of the file without .json, .gz or .parquet, unless you give
    another: NAME=DETECTIONS. Results of the same names are replaced in one step, all of them or none; others in DIR
    must have been measured alike, on the same images. If DIR cannot be replaced as a whole (the current folder, a mount
    point, beside folders of your own, a system other than Linux), `kill -9` can leave old and new results there.

    --csv writes summary.csv, per_class.csv, per_size.csv, per_image.csv, confusion.csv, detections.csv and objects.csv
    into DIR, or for several files into DIR/NAME each: numbers in full, fractions instead of per cent, undefined values
    empty.

    --part 3/16 evaluates the third of sixteen ranges of images, for many machines. `probox merge` makes one result of
    all parts, bit-identical to that of one machine. --keep matches is for results that are larger than memory: about 10
    bytes a detection, for PDQ, mAP and LRP; --keep summary keeps sums only, for PDQ.

    --dask shares the work over the processes of this machine (local, or local:4 for four of them) or over a running
    cluster: the address of its scheduler, or its scheduler file. Every number is bit-identical to that of one
    process. With --out, finished parts are kept in DIR.partial: after a crash, the same command does what is missing.

    \b
    probox evaluate instances_val2017.json detections.json
    probox evaluate instances_val2017.json detections.json --measures map --coco
    probox evaluate data.yaml runs/detect/predict/labels
    probox evaluate truth.json ssd.json YOLO=results/17.json --label-threshold 0.5 --out results
    probox evaluate truth.json ssd.json --label-threshold auto
    probox evaluate truth.json ssd.json yolo.json --thresholds 0.5 0.05 --format latex
    probox evaluate truth.json unsure.json --measures nll,energy,coverage --per-class
    probox evaluate instances_val2017.json detections.json --image-ids ids.json
    probox evaluate truth.parquet found.parquet --part 3/16 --keep matches --out parts/3
    probox evaluate truth/ found/ --dask tcp://head:8786 --out results
    """
    import probox.evaluation.evaluate  # noqa: F401  (the time that is reported is without loading it)
    from probox.evaluation.inputs import share_truth

    started = time.perf_counter()
    scoring = dataclasses.replace(scoring, measures=measures, part=part, keep=keep)
    if style is None and (thresholds or context.info_name == "table"):
        style = "text"
    _check_usage(scoring, dask, csv_folder, thresholds, style, groups=per_class or per_size, coco=coco)
    paths, names = [given.path for given in detections], make_titles(detections)
    there = share_truth(truth, paths)
    if out is not None:
        kept, image_ids = scoring.measures_to_keep, scoring.select_ids(there)
        refuse_other_runs(Path(out), names, scoring.convention, kept, image_ids, there.classes)
    if csv_folder is not None:
        check_csv_folder(csv_folder, names)
    rows: dict[str, Any] = {}
    with open_measure(there, truth, scoring, dask, out) as measure:
        for path, name in zip(paths, names, strict=True):
            with progress_bar(name, quiet=as_json) as progress:
                rows[name] = measure(path, name, progress)
        if out is not None:
            keep_results(Path(out), rows)
    if csv_folder is not None:
        write_csv_folder(csv_folder, rows)
    groups = {name: _groups(evaluation, per_class, per_size) for name, evaluation in rows.items()}
    if style is not None:
        _print_table(rows, paths, thresholds, style, scoring, groups, intervals=intervals, coco=coco, as_json=as_json)
    elif as_json:
        _print_json(rows, paths, groups, intervals=intervals, coco=coco)
    else:
        titled = [("" if len(rows) == 1 and detections[0].name is None else name) for name in names]
        _print_summary(rows, titled, scoring, groups, intervals=intervals, coco=coco)
    if not as_json and (style is None or out or csv_folder):
        kept_in = f"; kept in {', '.join(str(Path(out) / name) for name in names)}" if out else ""
        tables = f"; tables in {', '.join(list_csv_folders(csv_folder, names))}" if csv_folder else ""
        note(f"{time.perf_counter() - started:.2f} s{kept_in}{tables}")


def _check_usage(
    scoring: Scoring,
    dask: str | None,
    csv_folder: str | None,
    thresholds: tuple[float, ...],
    style: str | None,
    *,
    groups: bool,
    coco: bool,
) -> None:
    """Raise if options do not go together."""
    keep = scoring.keep
    if thresholds and scoring.convention.label_threshold is not None:
        raise click.UsageError(
            "--label-threshold is one threshold for all rows, --thresholds a row for each: give one of the two"
        )
    if scoring.convention.label_threshold == "auto" and (scoring.part is not None or keep != "all" or dask is not None):
        flag = "--part" if scoring.part is not None else "--dask" if dask is not None else f"--keep {keep}"
        raise click.UsageError(
            f"--label-threshold auto needs the tables of all images, which {flag} does not have: leave out one of both"
        )
    if coco and "map" not in (scoring.measures or standard_names()):
        raise click.UsageError("--coco shows the numbers of map: add it to --measures")
    if coco and keep == "summary":
        raise click.UsageError("--coco needs the matches of boxes, which --keep matches and --keep all keep")
    if csv_folder is not None and keep != "all":
        raise click.UsageError("--csv writes tables, which --keep all keeps")
    if thresholds and keep != "all":
        raise click.UsageError("--thresholds needs tables, which --keep all keeps")
    if thresholds and (groups or coco):
        raise click.UsageError("--thresholds prints one table: leave out --per-class, --per-size and --coco")
    if style == "csv" and (groups or coco):
        raise click.UsageError("--format csv prints one table: use --csv for those of --per-class and --per-size")


def _print_json(
    rows: dict[str, Evaluation], paths: list[str], groups: dict[str, list[_Groups]], *, intervals: bool, coco: bool
) -> None:
    """Print one object per file."""
    described = [_as_dict(name, path, rows[name]) for name, path in zip(rows, paths, strict=True)]
    for row, evaluation in zip(described, rows.values(), strict=True):
        own = groups[row["name"]]
        row.update({name: summaries for name, _, summaries in own})
        row["notes"] += notes_as_json(_group_notes(evaluation, own))
        row.update({"coco": evaluation.coco()} if coco else {})
    for row, found in zip(described, _compute_intervals(rows.values()) if intervals else (), strict=False):
        row["intervals"] = found.to_dict()
        row["notes"] += notes_as_json(found.notes)
    print_json(described[0] if len(described) == 1 else {"results": described})


def _print_summary(
    rows: dict[str, Evaluation],
    titles: list[str],
    scoring: Scoring,
    groups: dict[str, list[_Groups]],
    *,
    intervals: bool,
    coco: bool,
) -> None:
    """Print a table with how to read it, those of groups, and notes."""
    found = _compute_intervals(rows.values()) if intervals else None
    named = [(title, evaluation.summary()) for title, evaluation in zip(titles, rows.values(), strict=True)]
    against = next(iter(rows.values())).scored_against
    text = summary_text(named, scoring.convention, _limits(found), against=against, width=table_width())
    for table in (text, *_extra_tables(rows, groups, scoring, "text", coco=coco)):
        results().print(table if table is text else f"\n{table}", markup=False, soft_wrap=True)
    for name, evaluation in rows.items():
        title = f"{name}: " if len(rows) > 1 else ""
        note(f"{title}{evaluation.counts_in_words}" + ("" if evaluation.part is None else f"; {evaluation.part}"))
        print_notes([*evaluation.warnings, *evaluation.notes, *_group_notes(evaluation, groups[name])], title)
    _say_intervals(found)


def _print_table(
    rows: dict[str, Evaluation],
    paths: list[str],
    thresholds: tuple[float, ...],
    style: str,
    scoring: Scoring,
    groups: dict[str, list[_Groups]],
    *,
    intervals: bool,
    coco: bool,
    as_json: bool,
) -> None:
    """Print the paper's Table 1: a row per file and threshold."""
    # With --thresholds no row is of all detections.
    skip = "false-positives-dominate" if thresholds else ""
    cut = [
        (name, path, threshold, rows[name] if threshold is None else rows[name].at_threshold(threshold))
        for name, path in zip(rows, paths, strict=True)
        for threshold in thresholds or (None,)
    ]
    measured = [evaluation for *_, evaluation in cut]
    convention, against = scoring.convention, measured[0].scored_against
    found = _compute_intervals(measured) if intervals else None
    if as_json:
        described: list[dict[str, Any]] = [
            {
                "name": name,
                "detections": path,
                "threshold": threshold,
                "summary": evaluation.summary(),
                "warnings": notes_as_json(_warnings_but(rows[name], skip)),
                **_describe_choice(evaluation),
                **{key: summaries for key, _, summaries in groups[name]},
                **({"coco": evaluation.coco()} if coco else {}),
            }
            for name, path, threshold, evaluation in cut
        ]
        for row, own in zip(described, found or (), strict=False):
            row["intervals"] = own.to_dict()
        print_json({"rows": described, "convention": convention.to_dict(), "scored_against": against})
        return
    for name, evaluation in rows.items():
        notes = [*_warnings_but(evaluation, skip), *evaluation.notes]
        if thresholds and "map" in evaluation.measures:
            notes.append(Note("unthresholded-map", value=100 * evaluation.average_precision.map))
        print_notes(notes, f"{name}: ")
    titled = [(name if t is None else f"{name} ({t:g})", evaluation.summary()) for name, _, t, evaluation in cut]
    above = threshold_words(convention)
    if thresholds:
        above = f"{thresholds[0]:g}" if len(set(thresholds)) == 1 else "threshold"
    markup = "markdown" if style == "github" else style
    heading = "Approach (threshold)" if thresholds else "Approach"
    text = format_table(titled, markup, heading=heading, limits=_limits(found), width=table_width(), threshold=above)
    parts = [list_directions(shown_columns(titled)), measured_words(convention, against)]
    reading = "; ".join(part for part in [*parts, with_count(len(measured[0].dataset), "image")] if part)
    tables = [text, *_extra_tables(rows, groups, scoring, markup, coco=coco)]
    if style == "github":
        tables = ["### Evaluation", text, f"<sub>{reading}</sub>", *tables[1:], *_alerts(rows, skip)]
    results().print("\n\n".join(tables), markup=False, soft_wrap=True)
    _say_intervals(found)
    note(reading)


def _warnings_but(evaluation: Evaluation, skip: str) -> list[InputWarning]:
    """Return the warnings about an evaluation's input but those with the code `skip`."""
    return [warning for warning in evaluation.warnings if warning.code != skip]


def _alerts(rows: dict[str, Evaluation], skip: str) -> list[str]:
    """Return warnings about each file as GitHub's Markdown shows them."""
    return [
        f"> [!WARNING]\n> {escape(name, 'markdown')}: {escape(one.spell(as_option), 'markdown')}"
        for name, evaluation in rows.items()
        for one in _warnings_but(evaluation, skip)
    ]


def _extra_tables(
    rows: dict[str, Evaluation], groups: dict[str, list[_Groups]], scoring: Scoring, style: str, *, coco: bool
) -> list[str]:
    """Return tables of classes and sizes of each file, and COCO's numbers."""
    threshold, tables = threshold_words(scoring.convention), []
    for name, own in groups.items():
        for _, heading, summaries in own:
            title = f"{heading} ({name})" if len(rows) > 1 else heading
            filled = [(group, summary) for group, summary in summaries.items() if is_filled(summary)]
            if filled:
                look: dict[str, Any] = {"mark_best": False, "by_metric": False, "width": table_width()}
                tables.append(format_table(filled, style, heading=title, threshold=threshold, **look))
    return [*tables, _coco_table(rows, threshold, style)] if coco else tables


def _compute_intervals(evaluations: Iterable[Evaluation]) -> list[Intervals]:
    """Return the intervals of each evaluation."""
    from probox.analysis.resampling import bootstrap

    return [bootstrap(evaluation) for evaluation in evaluations]


def _limits(intervals: Sequence[Intervals] | None) -> list[Limits] | None:
    """Return what tables show of intervals."""
    return None if intervals is None else [own.limits() for own in intervals]


def _say_intervals(intervals: Sequence[Intervals] | None) -> None:
    """Print how intervals were made, and notes on them, each once."""
    if not intervals:
        return
    first = intervals[0]
    if first.images > 1:
        note(f"[{100 * first.level:g} % intervals]: {first.replicates:,} draws of {first.images:,} images")
    print_notes(dict.fromkeys(one for own in intervals for one in own.notes))


def _coco_table(rows: dict[str, Evaluation], threshold: str | None, style: str) -> str:
    """Return COCO's twelve numbers, a row each, in the order and the words of pycocotools."""
    from probox.measures.boxes.mean_ap import COCO_LABELS

    heading = "COCO [%], higher is better" + ("" if threshold is None else f", scores > {threshold}")
    numbers = [evaluation.coco() for evaluation in rows.values()]
    lines = [
        [label, *("-" if math.isnan(own[key]) else f"{100 * own[key]:.2f}" for own in numbers)]
        for key, label in COCO_LABELS.items()
    ]
    return render_table([[heading, *(rows if len(rows) > 1 else [""])], *lines], 1, style, table_width())


_Groups = tuple[str, str, dict[str, dict[str, float]]]
"""Name in JSON, heading, and summaries by group."""


def _groups(evaluation: Evaluation, per_class: bool, per_size: bool) -> list[_Groups]:
    """Return the groups that were asked for."""
    measured = {*COUNTS, *evaluation.summary()}
    found = []
    for name, heading, asked in (("per_class", "Class", per_class), ("per_size", "Size", per_size)):
        groups = getattr(evaluation, name)() if asked else {}
        kept = {group: {key: own[key] for key in own if key in measured} for group, own in groups.items()}
        found += [(name, heading, kept)] if asked else []
    return found


def _group_notes(evaluation: Evaluation, groups: list[_Groups]) -> list[Note]:
    """Return notes on classes and sizes with too few pairs for measures of pairs, and on measures without groups."""
    notes: list[Note] = []
    per_class, per_size = (any(name == own for name, _, _ in groups) for own in ("per_class", "per_size"))
    asked = measures_called(evaluation.measures)
    for name, wanted in (("class", per_class), ("size", per_size)):
        without = [measure.name for measure in asked if wanted and getattr(measure, f"per_{name}") is None]
        if without:
            notes.append(Note("no-groups", names=", ".join(without), group=name))
    if all(measure.standard for measure in asked):
        return notes
    pairs = evaluation.matched_pairs
    few = []
    if per_class:
        counts = np.bincount(pairs.labels, minlength=len(evaluation.classes))
        few += [name for name, n in zip(evaluation.classes, counts, strict=True) if 0 < n < FEW_PAIRS]
    if per_size:
        inside = [(pairs.areas >= low) & (pairs.areas <= high) for low, high in AREA_RANGES[1:]]
        few += [name for name, own in zip(SIZES[1:], inside, strict=True) if 0 < own.sum() < FEW_PAIRS]
    if few:
        notes.append(Note("few-pairs-in-groups", len(few), least=FEW_PAIRS, names=some_names(few)))
    return notes


def _describe_choice(evaluation: Evaluation) -> dict[str, Any]:
    """Return the label thresholds that were chosen, for JSON; nothing where none were."""
    choice = evaluation.threshold_choice
    return {} if choice is None else {"label_threshold": choice.to_dict()}


def _as_dict(name: str, path: str, evaluation: Evaluation) -> dict[str, Any]:
    return {
        "detections": path,
        "summary": evaluation.summary(),
        "convention": evaluation.convention.to_dict(),
        "scored_against": evaluation.scored_against,
        **_describe_choice(evaluation),
        "counts": evaluation.counts,
        **({} if evaluation.part is None else {"part": str(evaluation.part)}),
        "notes": notes_as_json(evaluation.notes),
        "warnings": notes_as_json(evaluation.warnings),
        "name": name,
    }

"""`probox evaluate` and `probox table`: metrics of detection files."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import numpy as np

from probox.cli.console import as_option, note, print_json, print_notes, print_text, progress_bar, table_width
from probox.cli.scoring import (
    Scoring,
    keep_option,
    map_option,
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
from probox.errors import InputError
from probox.evaluation import text
from probox.evaluation.group_tables import COUNTS, CSV_TABLES, csv_tables, is_filled
from probox.measures.boxes.matching import PREFIXES, SIZES, Geometry, in_area_ranges
from probox.measures.registry import measure_names, measures_called, standard_names
from probox.notes import Note
from probox.support.formatting import some_names, with_count

if TYPE_CHECKING:
    from probox.analysis.resampling import Intervals
    from probox.evaluation.result import Evaluation
    from probox.evaluation.text import Limits
    from probox.tables.flat import FlatTable

CSV_COMMAND = "evaluate --csv"
metric_option = option_group("Metrics")

COCO_METRICS: dict[str, Geometry] = {"map": "box", "map-mask": "mask"}
"""Metrics whose COCO numbers --coco prints."""

HIERARCHICAL = ("map", "lrp", "map-mask", "lrp-mask")
"""Metrics of each class on its own, for which --hierarchy may repeat an object."""


class _Command(GroupedCommand):
    """A command whose --thresholds takes several numbers: ``--thresholds 0.5 0.05``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        for before, arg in zip([None, *args], args, strict=False):
            if _is_number(arg) and before != "--thresholds" and "--thresholds" in spread and _is_number(spread[-1]):
                spread.append("--thresholds")
            spread.append(arg)
        return super().parse_args(ctx, spread)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; the help of `probox table` refers to that of `probox evaluate`."""
        if self.name != "table":
            super().format_options(ctx, formatter)


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
@metric_option("--per-class", is_flag=True, help="Add a table with a row per class.")
@metric_option("--per-size", is_flag=True, help="Add a table with rows for small, medium and large objects.")
@metric_option("--coco", is_flag=True, help="Add COCO's twelve numbers: AP and AR by IoU, size and detection limit.")
@metric_option("--intervals", is_flag=True, help="Add 95% bootstrap confidence intervals.")
@metric_option(
    "--thresholds",
    multiple=True,
    type=click.FloatRange(0.0, 1.0),
    metavar="T...",
    help="Print a row per file and threshold, for detections with a label probability above T.",
)
@scoring_options(auto=True)
@map_option(
    "--hierarchy",
    type=click.Path(),
    metavar="FILE",
    help="Count objects and detections for their superclasses, too: the class hierarchy of Open Images.",
)
@output_option(
    "--format",
    "style",
    type=click.Choice([*text.STYLES, "github"]),
    help="Print a table with a row per file and marked best values; github: Markdown for $GITHUB_STEP_SUMMARY.",
)
@output_option("--out", type=click.Path(), metavar="DIR", help="Write the result of each file to DIR/NAME.")
@output_option(
    "--csv",
    "csv_folder",
    type=click.Path(),
    metavar="DIR",
    help="Write metrics, classes, sizes, images, detections and objects as CSV files to DIR.",
)
@json_option
@part_option
@keep_option
@dask_option
def command(
    truth: str,
    detections: tuple[Named, ...],
    scoring: Scoring,
    thresholds: tuple[float, ...],
    style: str | None,
    out: str | None,
    dask: str | None,
    csv_folder: str | None,
    hierarchy: str | None,
    as_json: bool,
    **tables: bool,
) -> None:
    """Evaluate one or several detection files on ground truth.

    TRUTH and DETECTIONS may be COCO, YOLO, Pascal VOC, KITTI, Open Images, RVC1 or Parquet. The format is detected
    from the content; for YOLO, name data.yaml (docs/formats.md). probox warns about suspicious input.

    Results are named after their files, or by NAME=. Use --part, --keep or --dask for data sets larger than memory
    (docs/cluster.md).

    \b
    Examples:
      probox evaluate instances_val2017.json detections.json
      probox evaluate data.yaml runs/detect/predict/labels
      probox evaluate truth.json ssd.json YOLO=results/17.json --label-threshold 0.5 --out results
      probox evaluate truth.json ssd.json yolo.json --thresholds 0.5 0.05 --format latex
      probox evaluate truth.json detections.json --measures nll,energy,coverage --per-class
      probox evaluate truth.parquet detections.parquet --dask local --keep matches --out results
    """
    import probox.evaluation.evaluate  # noqa: F401  (imported before the clock starts)
    from probox import formats
    from probox.evaluation.inputs import share_truth

    started = time.perf_counter()
    if style is None and (thresholds or click.get_current_context().info_name == "table"):
        style = "text"
    if hierarchy is not None:
        scoring = _without_others(scoring, dask)
    _check_usage(scoring, dask, csv_folder, thresholds, style, tables)
    paths, names = [given.path for given in detections], make_titles(detections)
    expanded = None if hierarchy is None else formats.expand_classes(formats.read_truth(truth), hierarchy)
    there = share_truth(truth, paths) if expanded is None else expanded
    if out is not None:
        from probox.cli.merge import keep_results, refuse_other_runs

        kept, image_ids = scoring.measures_to_keep, scoring.select_ids(there)
        refuse_other_runs(Path(out), names, scoring.convention, kept, image_ids, there.classes)
    if csv_folder is not None:
        _check_csv_folder(csv_folder, names)
    rows: dict[str, Any] = {}
    with open_measure(there, truth, scoring, dask, out) as measure:
        for path, name in zip(paths, names, strict=True):
            with progress_bar(name, quiet=as_json) as progress:
                if expanded is None or hierarchy is None:
                    rows[name] = measure(path, name, progress)
                else:
                    found = formats.read_detections(path, expanded, repair=scoring.repair)
                    found = formats.expand_classes(found, hierarchy)
                    rows[name] = scoring.evaluate(expanded, found, progress)
        if out is not None:
            keep_results(Path(out), rows)
    if csv_folder is not None:
        _write_csv_folder(csv_folder, rows)
    printer = _Printer(rows, paths, scoring, **tables)
    if style is not None:
        printer.print_table(thresholds, style, as_json=as_json)
    elif as_json:
        printer.print_json()
    else:
        printer.print_summary(titled=len(rows) > 1 or detections[0].name is not None)
    if not as_json and (style is None or out or csv_folder):
        saved_to = f"; saved to {', '.join(str(Path(out) / name) for name in names)}" if out else ""
        folders = [str(Path(csv_folder) / name) for name in names] if csv_folder and len(names) > 1 else [csv_folder]
        tables_in = f"; tables in {', '.join(map(str, folders))}" if csv_folder else ""
        note(f"{time.perf_counter() - started:.2f} s{saved_to}{tables_in}")


table_command = copy.copy(command)
table_command.name = "table"
table_command.help = """Print a table with a row per detection file, as in Table 1 of the PDQ paper.

    Does the same as `probox evaluate --format text` and takes all its options: see `probox evaluate --help`.

    \b
    Examples:
      probox table truth.json ssd.json YOLO=results/17.json
      probox table truth.json ssd.json yolo.json --thresholds 0.5 0.05 --format latex
      probox table truth.json ssd.json yolo.json --measures pdq,nll --intervals --format markdown
    """


def _without_others(scoring: Scoring, dask: str | None) -> Scoring:
    """Return the options with metrics that allow a class hierarchy."""
    allowed = [name for name in measure_names() if name in HIERARCHICAL]
    others = [name for name in scoring.measures or () if name not in allowed]
    if others:
        raise click.UsageError(
            f"--hierarchy counts an object for several classes, not possible in {', '.join(others)}: "
            f"use --measures with some of {', '.join(allowed)}."
        )
    if dask is not None:
        raise click.UsageError("--hierarchy does not apply to the workers of --dask: leave out one of the two.")
    standard = tuple(name for name in standard_names() if name in allowed)
    return dataclasses.replace(scoring, measures=scoring.measures or standard)


def _check_usage(
    scoring: Scoring,
    dask: str | None,
    csv_folder: str | None,
    thresholds: tuple[float, ...],
    style: str | None,
    tables: dict[str, bool],
) -> None:
    """Raise for options that exclude each other."""
    keep, threshold = scoring.keep, scoring.convention.label_threshold
    flag = "--part" if scoring.part is not None else "--dask" if dask is not None else f"--keep {keep}"
    coco = tables["coco"]
    several = coco or tables["per_class"] or tables["per_size"]
    problems = {
        "--label-threshold applies one threshold to all rows, --thresholds makes a row for each: give one of the two": (
            thresholds and threshold is not None
        ),
        f"--label-threshold auto needs the tables of all images, so it excludes {flag}: leave out one of the two": (
            threshold == "auto" and flag != "--keep all"
        ),
        "--coco needs the metric map or map-mask: add it to --measures": (
            coco and not {*COCO_METRICS} & {*(scoring.measures or standard_names())}
        ),
        "--coco needs the matches of boxes: use --keep matches or --keep all": coco and keep == "summary",
        "--csv needs tables of all detections: use --keep all": csv_folder is not None and keep != "all",
        "--thresholds needs tables of all detections: use --keep all": thresholds and keep != "all",
        "--thresholds prints one table: leave out --per-class, --per-size and --coco": thresholds and several,
        "--format csv prints one table: use --csv DIR for classes and sizes": style == "csv" and several,
    }
    for problem, wrong in problems.items():
        if wrong:
            raise click.UsageError(problem)


@dataclasses.dataclass(frozen=True, eq=False)
class _Printer:
    """Results by name, and the tables to print."""

    rows: dict[str, Evaluation]
    paths: list[str]
    scoring: Scoring
    per_class: bool
    per_size: bool
    coco: bool
    intervals: bool

    def print_json(self) -> None:
        """Print one object per file."""
        described = []
        for (name, evaluation), path in zip(self.rows.items(), self.paths, strict=True):
            row = {
                "detections": path,
                "summary": evaluation.summary(),
                "convention": evaluation.recorded_convention.to_dict(),
                "scored_against": evaluation.scored_against,
                **_describe_choice(evaluation),
                "counts": evaluation.counts,
                "comparability": evaluation.comparability,
                **({} if evaluation.part is None else {"part": str(evaluation.part)}),
                "notes": [*evaluation.notes, *self._group_notes(evaluation)],
                "warnings": evaluation.warnings,
                "name": name,
                **self._describe_groups(name),
            }
            for own in self._compute_intervals([evaluation]):
                row |= {"intervals": own.to_dict(), "notes": [*row["notes"], *own.notes]}
            described.append(row)
        print_json(described[0] if len(described) == 1 else {"results": described})

    def print_summary(self, *, titled: bool) -> None:
        """Print the summary, tables of groups, and notes."""
        intervals = self._compute_intervals(self.rows.values())
        named = [(name if titled else "", evaluation.summary()) for name, evaluation in self.rows.items()]
        against = next(iter(self.rows.values())).scored_against
        convention, width = self.scoring.convention, table_width()
        standard = self._comparability()
        summary = text.summary_text(
            named, convention, _limits(intervals), against=against, comparability=standard, width=width
        )
        print_text("\n\n".join([summary, *self._extra_tables("text")]))
        for name, evaluation in self.rows.items():
            title = f"{name}: " if len(self.rows) > 1 else ""
            note(f"{title}{evaluation.counts_in_words}" + ("" if evaluation.part is None else f"; {evaluation.part}"))
            print_notes([*evaluation.warnings, *evaluation.notes, *self._group_notes(evaluation)], title)
        _print_intervals(intervals)

    def print_table(self, thresholds: tuple[float, ...], style: str, *, as_json: bool) -> None:
        """Print a row per file and threshold, as in Table 1 of the paper."""
        # With --thresholds, no row uses all detections.
        skip = "false-positives-dominate" if thresholds else ""
        warnings = {
            name: [warning for warning in evaluation.warnings if warning.code != skip]
            for name, evaluation in self.rows.items()
        }
        cut = [
            (name, path, threshold, evaluation if threshold is None else evaluation.at_threshold(threshold))
            for (name, evaluation), path in zip(self.rows.items(), self.paths, strict=True)
            for threshold in thresholds or (None,)
        ]
        convention, against = self.scoring.convention, cut[0][-1].scored_against
        intervals = self._compute_intervals(evaluation for *_, evaluation in cut)
        if as_json:
            described: list[dict[str, Any]] = [
                {
                    "name": name,
                    "detections": path,
                    "threshold": threshold,
                    "summary": evaluation.summary(),
                    "warnings": warnings[name],
                    "comparability": evaluation.comparability,
                    **_describe_choice(evaluation),
                    **self._describe_groups(name),
                }
                for name, path, threshold, evaluation in cut
            ]
            for row, own in zip(described, intervals, strict=False):
                row["intervals"] = own.to_dict()
            recorded = next(iter(self.rows.values())).recorded_convention
            print_json({"rows": described, "convention": recorded.to_dict(), "scored_against": against})
            return
        for name, evaluation in self.rows.items():
            notes = [*warnings[name], *evaluation.notes]
            if thresholds and "map" in evaluation.measures:
                notes.append(Note("unthresholded-map", value=100 * evaluation.average_precision.map))
            print_notes(notes, f"{name}: ")
        titled = [(name if t is None else f"{name} ({t:g})", evaluation.summary()) for name, _, t, evaluation in cut]
        above = text.threshold_words(convention)
        if thresholds:
            above = f"{thresholds[0]:g}" if len(set(thresholds)) == 1 else "threshold"
        markup = "markdown" if style == "github" else style
        heading = "Approach (threshold)" if thresholds else "Approach"
        look: dict[str, Any] = {"limits": _limits(intervals), "width": table_width(), "threshold": above}
        tables = [text.format_table(titled, markup, heading=heading, **look), *self._extra_tables(markup)]
        parts = [text.list_directions(text.shown_columns(titled)), text.measured_words(convention, against)]
        standard = text.comparability_words(one for *_, evaluation in cut for one in evaluation.comparability)
        reading = "; ".join(part for part in [*parts, with_count(len(cut[0][-1].dataset), "image")] if part)
        if style == "github":
            alerts = [
                f"> [!WARNING]\n> {text.escape(name, 'markdown')}: {text.escape(one.spell(as_option), 'markdown')}"
                for name, own in warnings.items()
                for one in own
            ]
            below = [f"<sub>{line}</sub>" for line in (reading, standard) if line]
            tables = ["### Evaluation", tables[0], *below, *tables[1:], *alerts]
        print_text("\n\n".join(tables))
        _print_intervals(intervals)
        note(reading)
        if standard:
            note(standard)

    def _comparability(self) -> list[Note]:
        """Return the differences of all results from evaluations with published values."""
        return [one for evaluation in self.rows.values() for one in evaluation.comparability]

    @functools.cached_property
    def _groups(self) -> dict[str, list[tuple[str, str, dict[str, dict[str, float]]]]]:
        """Key in JSON, heading and summaries by group, of each requested table of groups, by file."""
        shown = (("per_class", "Class", self.per_class), ("per_size", "Size", self.per_size))
        return {
            name: [(key, heading, _select_numbers(evaluation, key)) for key, heading, asked in shown if asked]
            for name, evaluation in self.rows.items()
        }

    def _describe_groups(self, name: str) -> dict[str, Any]:
        """Return metrics of groups and COCO's numbers, for JSON."""
        groups: dict[str, Any] = {key: summaries for key, _, summaries in self._groups[name]}
        return groups | {key: self.rows[name].coco(geometry) for key, geometry in self._coco_tables().items()}

    def _coco_tables(self) -> dict[str, Geometry]:
        """Return the tables of COCO's numbers, by key in JSON; none if they were not requested."""
        held = [name for name in COCO_METRICS if all(name in result.measures for result in self.rows.values())]
        return {PREFIXES[COCO_METRICS[name]] + "coco": COCO_METRICS[name] for name in held if self.coco}

    def _group_notes(self, evaluation: Evaluation) -> list[Note]:
        """Return notes on groups with few matched pairs, and on metrics without groups."""
        notes: list[Note] = []
        asked = measures_called(evaluation.measures)
        for name, wanted in (("class", self.per_class), ("size", self.per_size)):
            without = [measure.name for measure in asked if wanted and getattr(measure, f"per_{name}") is None]
            if without:
                notes.append(Note("no-groups", names=", ".join(without), group=name))
        if all(measure.standard or "masks" in measure.needs for measure in asked):  # without matched pairs
            return notes
        from probox.measures.matched import FEW_PAIRS

        pairs = evaluation.matched_pairs
        few = []
        if self.per_class:
            counts = np.bincount(pairs.labels, minlength=len(evaluation.classes))
            few += [name for name, n in zip(evaluation.classes, counts, strict=True) if 0 < n < FEW_PAIRS]
        if self.per_size:
            inside = in_area_ranges(pairs.areas, evaluation.convention.area_ranges)
            few += [name for name, own in zip(SIZES[1:], inside, strict=True) if 0 < own.sum() < FEW_PAIRS]
        if few:
            notes.append(Note("few-pairs-in-groups", len(few), least=FEW_PAIRS, names=some_names(few)))
        return notes

    def _extra_tables(self, style: str) -> list[str]:
        """Return tables of classes and sizes, and COCO's numbers."""
        threshold = text.threshold_words(self.scoring.convention)
        look: dict[str, Any] = {"mark_best": False, "by_metric": False, "width": table_width(), "threshold": threshold}
        tables = []
        for name, groups in self._groups.items():
            for _, heading, summaries in groups:
                title = f"{heading} ({name})" if len(self.rows) > 1 else heading
                filled = [(group, summary) for group, summary in summaries.items() if is_filled(summary)]
                if filled:
                    tables.append(text.format_table(filled, style, heading=title, **look))
        return tables + [self._coco_table(geometry, threshold, style) for geometry in self._coco_tables().values()]

    def _coco_table(self, geometry: Geometry, threshold: str | None, style: str) -> str:
        """Return COCO's numbers, in the order and with the labels of pycocotools."""
        from probox.measures.boxes.mean_ap import coco_labels

        heading = ("COCO" if geometry == "box" else "COCO, masks") + " [%], higher is better"
        heading += "" if threshold is None else f", scores > {threshold}"
        numbers = [evaluation.coco(geometry) for evaluation in self.rows.values()]
        first = next(iter(self.rows.values()))
        lines = [
            [label, *("-" if math.isnan(own[key]) else f"{100 * own[key]:.2f}" for own in numbers)]
            for key, label in coco_labels(first.box_rules).items()
        ]
        return text.render_table(
            [[heading, *(self.rows if len(self.rows) > 1 else [""])], *lines], 1, style, table_width()
        )

    def _compute_intervals(self, evaluations: Iterable[Evaluation]) -> list[Intervals]:
        """Return the intervals of each result, if requested."""
        if not self.intervals:
            return []
        from probox.analysis.resampling import bootstrap

        return [bootstrap(evaluation) for evaluation in evaluations]


def _select_numbers(evaluation: Evaluation, table: str) -> dict[str, dict[str, float]]:
    """Return counts and summary metrics of each class or size."""
    measured = {*COUNTS, *evaluation.summary()}
    groups = getattr(evaluation, table)()
    return {group: {key: own[key] for key in own if key in measured} for group, own in groups.items()}


def _limits(intervals: list[Intervals]) -> list[Limits] | None:
    """Return the limits that tables show."""
    return [own.limits() for own in intervals] or None


def _print_intervals(intervals: list[Intervals]) -> None:
    """Print how the intervals were computed, and their notes, each once."""
    if intervals and (first := intervals[0]).images > 1:
        note(
            f"[{100 * first.level:g}% intervals]: {first.replicates:,} bootstrap replicates of {first.images:,} images"
        )
    print_notes(dict.fromkeys(one for own in intervals for one in own.notes))


def _describe_choice(evaluation: Evaluation) -> dict[str, Any]:
    """Return the label thresholds that `auto` chose, for JSON."""
    choice = evaluation.threshold_choice
    return {} if choice is None else {"label_threshold": choice.to_dict()}


def _check_csv_folder(target: str, names: Sequence[str]) -> None:
    """Raise if the tables cannot be written there, or would be mixed with those of another kind of run.

    Tables of one file are in DIR, those of several files in folders of DIR; together they would look like one run.
    """
    from probox.files.output import check_output_folder, list_files_written

    check_output_folder(target, CSV_COMMAND, _csv_files(names))
    depths = {len(path.relative_to(target).parts) for path in list_files_written(Path(target), CSV_COMMAND)[:-1]}
    if depths - {1 if len(names) == 1 else 2}:
        held, now = ("several files", "one") if len(names) == 1 else ("one file", "several")
        raise InputError(
            f"contains tables of {held}, cannot add tables of {now}",
            file=target,
            remedy="choose another folder, or remove the tables",
        )


def _csv_files(names: Sequence[str]) -> list[str]:
    """Return the names of the CSV files; several results have a folder each."""
    return [f"{name}/{table}.csv" if len(names) > 1 else f"{table}.csv" for name in names for table in CSV_TABLES]


def _write_csv_folder(target: str, results: dict[str, Evaluation]) -> None:
    """Write the tables of all results, all of them or none."""
    from probox.files.output import output_folder

    names = _csv_files(list(results))
    tables = (table for name, evaluation in results.items() for table in csv_tables(evaluation, name).values())
    with output_folder(target, CSV_COMMAND, names=names) as folder:
        for name, table in zip(names, tables, strict=True):
            folder.write(name, functools.partial(_write_csv, table))


def _write_csv(table: FlatTable, file: BinaryIO) -> None:
    file.writelines(table.csv_chunks())

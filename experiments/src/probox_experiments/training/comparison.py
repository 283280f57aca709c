"""Training study: one small detector, eight losses of its boxes, synthetic scenes with known standard deviations."""

from __future__ import annotations

import csv
import dataclasses
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.support.optional import require
from probox_experiments.claims import Claim, Floats, ResultTable, not_measured
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, GREEN, GREY, ORANGE, SKY, VERMILION, Axes, Figure, new_figure, set_log_axes
from probox_experiments.running import Run
from probox_experiments.training.arms import (
    ARMS,
    LEVELS,
    PPDQ_ARMS,
    Arm,
    Interval,
    Settings,
    find_arm,
    interval_of,
    level_column,
    mixed_corners,
)
from probox_experiments.training.scenes import KINDS, OCCLUDED, OUTLINE, SHARP, SIDE, draw_scenes, render

# --- Claims, written before the first run, with intervals over seeds ---

MARGIN = 0.005
"""Tolerance of PDQ and mAP, 0.5 points, for differences that are not significant."""
CORRELATION = 0.9
WIDER = 0.95
COVERAGE, COVERAGE_OFF = 0.9, 0.02
BASELINE = "l1-constant"

PRESETS = {"PDQ": "reference", "PDQ_paper": "paper"}

WHY_SIGMAS = (
    "Except for the division by the object's pixels, -log pPDQ is the log score of every pixel, whose expectation is "
    "best at the true std. The division gives small objects a larger weight, and the best std is slightly larger. "
    "1 - pPDQ gives bad pairs a smaller weight, and the best std is smaller. Both effects increase for small objects "
    "(`proper`). The detector's own error adds to that of the scenes."
)


def claims_of_training(table: ResultTable) -> list[Claim]:
    """Return the claims on both forms of the loss."""
    claims: list[Claim] = []
    names = set(table["arm"].tolist())
    for form in PPDQ_ARMS:
        if form in names:
            others = [arm.name for arm in ARMS if arm.name in names and arm.name not in PPDQ_ARMS]
            claims += [
                _at_least_every_other(table, form, others),
                _same_boxes(table, form, others),
                *([_more_than_a_constant(table, form)] if BASELINE in names else []),
                _correlation(table, form),
                _occluded_is_wider(table, form),
                _coverage(table, form),
            ]
    if len(set(table["seed"].tolist())) < 2:
        return [not_measured(claim.claim, "an interval over seeds: two repeats or more") for claim in claims]
    return claims


def _column(table: ResultTable, arm: str, column: str) -> Floats:
    """Return a column of an arm by seed."""
    rows = table.where(arm=arm)
    return np.asarray(rows[column][np.argsort(rows["seed"])], dtype=np.float64)


def _difference(table: ResultTable, form: str, other: str, column: str) -> Interval:
    """Return the paired difference of two arms over seeds."""
    return interval_of(_column(table, form, column) - _column(table, other, column))


def _numbers(intervals: Mapping[str, Interval]) -> dict[str, float]:
    return {
        name: value
        for what, of in intervals.items()
        for name, value in ((what, of.mean), (f"{what}, low", of.low), (f"{what}, high", of.high))
    }


def _at_least_every_other(table: ResultTable, form: str, others: list[str]) -> Claim:
    differences = {(column, arm): _difference(table, form, arm, column) for column in PRESETS for arm in others}
    worse = [key for key, of in differences.items() if of.high < 0 or of.low < -MARGIN]
    shown = "; ".join(
        f"`{preset}`: " + ", ".join(f"{arm} {differences[column, arm].in_points()}" for arm in others)
        for column, preset in PRESETS.items()
    )
    lost = ", ".join(f"{find_arm(arm).title} (`{PRESETS[column]}`)" for column, arm in worse)
    return Claim(
        f"Trained with {find_arm(form).title}, PDQ is at least that of every other arm",
        not worse and bool(others),
        f"difference to other arms in points, with 95% intervals over seeds: {shown}",
        f"for every other arm and preset, no interval below 0 or reaching below -{100 * MARGIN:g}",
        _numbers({f"{column} minus {arm}": of for (column, arm), of in differences.items()}),
        f"Failed against: {lost}." if worse else "",
    )


def _same_boxes(table: ResultTable, form: str, others: list[str]) -> Claim:
    differences = {arm: _difference(table, form, arm, "mAP") for arm in others}
    return Claim(
        f"Trained with {find_arm(form).title}, mAP is at most {100 * MARGIN:g} points below that of any other arm",
        bool(others) and all(of.low >= -MARGIN for of in differences.values()),
        "difference of mAP to other arms in points: "
        + ", ".join(f"{arm} {of.in_points()}" for arm, of in differences.items()),
        f"no interval reaching below -{100 * MARGIN:g}",
        _numbers({f"mAP minus {arm}": of for arm, of in differences.items()}),
    )


def _more_than_a_constant(table: ResultTable, form: str) -> Claim:
    differences = {column: _difference(table, form, BASELINE, column) for column in PRESETS}
    return Claim(
        f"Trained with {find_arm(form).title}, PDQ is higher than with L1 and the best constant std",
        all(of.low > 0 for of in differences.values()),
        "difference in points: "
        + ", ".join(f"{of.in_points()} (`{PRESETS[column]}`)" for column, of in differences.items()),
        "both intervals above 0",
        _numbers(differences),
    )


def _correlation(table: ResultTable, form: str) -> Claim:
    logarithms = interval_of(_column(table, form, "log_sigma_correlation"))
    beside = interval_of(_column(table, form, "sigma_correlation"))
    ratio = interval_of(_column(table, form, "sigma_ratio"))
    return Claim(
        f"Trained with {find_arm(form).title}, predicted and true log std correlate above {CORRELATION:g}",
        logarithms.low > CORRELATION,
        f"correlation of their logarithms {logarithms}; of the std {beside}; median of predicted over true {ratio}",
        f"interval of the logarithms' correlation above {CORRELATION:g}",
        _numbers({"log std correlation": logarithms, "std correlation": beside, "ratio": ratio}),
    )


def _occluded_is_wider(table: ResultTable, form: str) -> Claim:
    share = interval_of(_column(table, form, "occluded_wider"))
    hidden, seen = (interval_of(_column(table, form, name)).mean for name in ("occluded_sigma", "sharp_sigma"))
    return Claim(
        f"Trained with {find_arm(form).title}, the std is larger across an occluded edge than across a sharp edge",
        share.low > WIDER,
        f"fraction of corners with one of each {share}; mean std {hidden:.2f} and {seen:.2f} pixels",
        f"interval above {WIDER:g}",
        _numbers({"fraction": share}) | {"occluded": hidden, "sharp": seen},
    )


def _coverage(table: ResultTable, form: str) -> Claim:
    share = interval_of(_column(table, form, "coverage_90"))
    return Claim(
        f"Trained with {find_arm(form).title}, 90% intervals cover 90% of true edges, within 2 points",
        abs(share.low - COVERAGE) <= COVERAGE_OFF and abs(share.high - COVERAGE) <= COVERAGE_OFF,
        f"{share}",
        f"interval between {COVERAGE - COVERAGE_OFF:.2f} and {COVERAGE + COVERAGE_OFF:.2f}",
        _numbers({"coverage": share}),
        WHY_SIGMAS,
    )


# --- Figure: PDQ, standard deviations, differences and coverage of every arm ---

COLOURS = {
    "l1": GREY,
    "l1-constant": GREY,
    "nll": VERMILION,
    "energy": ORANGE,
    "crps": GREEN,
    "dmm": "#CC79A7",
    "ppdq-log": BLUE,
    "ppdq-plain": SKY,
}
MAX_GAP = 2.0
"""Largest distance in points of PDQ between arms in the plot; farther arms are written at the border."""
FAR = 10.0
"""Larger differences in points are written instead of drawn."""


def draw_training(table: ResultTable) -> Figure:
    """Draw PDQ by arm and seed, predicted against true standard deviations, and the coverage of 90% intervals."""
    arms = [arm for arm in ARMS if arm.name in set(table["arm"].tolist())]
    figure = new_figure(9.6, 6.6)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.25, 1.0], height_ratios=[1.0, 0.92])
    _by_arm(figure.add_subplot(grid[0, 0]), table, arms, "PDQ", "PDQ by loss, test scenes", far="l1")
    _sigmas(figure.add_subplot(grid[0, 1]), table, arms)
    _differences(figure.add_subplot(grid[1, 0]), table, arms)
    spread = [arm for arm in arms if arm.spread != "none"]
    coverage = figure.add_subplot(grid[1, 1])
    coverage.axvspan(88, 92, color="#EDEDED", zorder=0.5)
    coverage.axvline(90, color=GREY, lw=0.9, zorder=0.6)
    _by_arm(coverage, table, spread, "coverage_90", "Coverage of 90% intervals", label="true edges inside (%)")
    return figure


def _by_arm(
    axes: Axes, table: ResultTable, arms: list[Arm], column: str, title: str, *, label: str = "", far: str = ""
) -> None:
    """Draw a row of points per arm, one per seed, and their mean with its interval."""
    rest = [100.0 * table.where(arm=arm.name)[column] for arm in arms if arm.name != far]
    low = min((values.min() for values in rest), default=0.0)
    for row, arm in enumerate(arms):
        values = 100.0 * table.where(arm=arm.name)[column]
        colour = COLOURS[arm.name]
        mean = interval_of(values)
        if arm.name == far and rest and values.max() < low - MAX_GAP:
            words = f"\N{LEFTWARDS ARROW} {mean.mean:.1f}"
            axes.text(0.01, row, words, transform=axes.get_yaxis_transform(), color=colour, fontsize=8.5, va="center")
            continue
        axes.plot(values, np.full(len(values), row + 0.22), "o", ms=3.2, color=colour, alpha=0.65, mew=0)
        _draw_interval(axes, values, row - 0.08, colour, lw=2.2, ms=5)
    axes.set_yticks(range(len(arms)), [arm.title for arm in arms])
    axes.set_ylim(len(arms) - 0.4, -0.6)
    axes.set_xlabel(label or f"{column} (%): seeds, and mean with 95% interval")
    axes.set_title(title)


def _draw_interval(
    axes: Axes, values: Floats, y: float, colour: str, *, lw: float, ms: float, label: str | None = None
) -> None:
    """Draw the mean of values, one per seed, and its interval."""
    mean = interval_of(values)
    if len(values) > 1:
        axes.plot([mean.low, mean.high], [y, y], color=colour, lw=lw, solid_capstyle="round")
    axes.plot(mean.mean, y, "D", ms=ms, color=colour, label=label)


def _differences(axes: Axes, table: ResultTable, arms: list[Arm]) -> None:
    """Draw paired differences of PDQ and mAP between each arm and the reference arm."""
    names = [arm.name for arm in arms]
    beside = next((name for name in PPDQ_ARMS if name in names), names[0])
    axes.axvline(0, color=GREY, lw=0.9, zorder=0.6)
    own = table.where(arm=beside)
    for row, arm in enumerate(arms):
        if arm.name == beside:
            continue
        rows = table.where(arm=arm.name)
        for column, colour, up in (("PDQ", BLUE, -0.16), ("mAP", VERMILION, 0.16)):
            values = 100.0 * (rows[column] - own[column])
            mean = interval_of(values)
            if abs(mean.mean) > FAR:
                words = f"{column} {mean.mean:+.1f}"
                axes.text(
                    0.02, row + up, words, transform=axes.get_yaxis_transform(), color=colour, fontsize=8, va="center"
                )
                continue
            axes.plot(values, np.full(len(values), row + up), "o", ms=2.8, color=colour, alpha=0.5, mew=0)
            label = column if row == len(arms) - 1 else None
            _draw_interval(axes, values, row + up, colour, lw=2.0, ms=4.4, label=label)
    axes.set_yticks(range(len(arms)), [arm.title for arm in arms])
    axes.set_ylim(len(arms) - 0.4, -0.6)
    title = next(arm.title for arm in arms if arm.name == beside)
    axes.set_xlabel(f"difference to {title} in points, with 95% intervals")
    axes.set_title("Paired differences over seeds")
    axes.legend(loc="lower left", handlelength=1.0)


def _sigmas(axes: Axes, table: ResultTable, arms: list[Arm]) -> None:
    """Draw the mean predicted against the true standard deviation, a line per arm that learns it."""
    true = np.array([float(level_column(number).removeprefix("sigma_at_")) for number in range(len(LEVELS) - 1)])
    axes.plot([0.4, 4.0], [0.4, 4.0], color="#C9C9C9", lw=4, label="correct", solid_capstyle="round", zorder=1)
    for arm in arms:
        if arm.spread != "learned":
            continue
        rows = table.where(arm=arm.name)
        predicted = np.array([rows[level_column(number)].mean() for number in range(len(LEVELS) - 1)])
        own: dict[str, Any] = {"color": COLOURS[arm.name], "label": arm.title}
        bold = arm.name in PPDQ_ARMS or arm.name == "nll"
        axes.plot(true, predicted, marker="o", ms=3.6 if bold else 2.6, lw=1.8 if bold else 1.0, **own)
    set_log_axes(axes, [0.5, 1.0, 2.0, 3.0])
    axes.set_xlabel("true std of an edge (pixels)")
    axes.set_ylabel("predicted std")
    axes.set_title("Predicted and true std")
    axes.legend(loc="upper left", fontsize=7.5, handlelength=1.8)


# --- The experiment ---

EXTRA = "torch"
NAMES = tuple(arm.name for arm in ARMS)


def training(
    *,
    arms: Sequence[str] = NAMES,
    repeats: int = 5,
    seed: int = 0,
    settings: Settings | None = None,
    run: Run | None = None,
) -> ResultTable:
    """Train the same detector with several losses of its boxes and standard deviations, several times.

    Parameters
    ----------
    arms : sequence of str
        Names in `probox_experiments.training.arms.ARMS`.
    repeats : int
        Number of seeds. All arms of a seed have the same initial weights and the same scenes in the same order.
    seed : int
        Seeds are 100 * seed, 100 * seed + 1, ...
    settings : Settings, optional
        Hyperparameters.
    run : Run, optional
        Threads, progress, checkpoint. Every training uses one thread, so that results do not depend on the number of
        threads; trainings run in parallel.

    Returns
    -------
    ResultTable
        `seed`, `arm`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`, and metrics of the standard deviations from `measure_found`.
    """
    torch = require("torch", extra=EXTRA, purpose="experiment training needs")
    from probox_experiments.training.detector import measure_arm

    run, chosen = run or Run(), settings or Settings()
    used = {name: dataclasses.asdict(find_arm(name)) for name in arms}
    # The arm that reuses another's boxes comes last.
    ordered = sorted(arms, key=lambda name: find_arm(name).spread == "constant")
    points = [{"seed": 100 * seed + number, "arm": name} for number in range(repeats) for name in ordered]

    def point(seed: int, arm: str) -> dict[str, float]:
        return measure_arm(find_arm(arm), seed, chosen)

    return run.table(
        "training",
        points,
        point,
        at_once=True,
        settings=dataclasses.asdict(chosen),
        arms=used,
        torch=torch.__version__,
    )


TRAINING = Experiment(
    name="training",
    section="none",
    varied="loss of boxes and standard deviations of one small detector, trained from scratch",
    claim="pPDQ gives at least the PDQ of every other loss at the same mAP, and correct standard deviations",
    function=training,
    judge=claims_of_training,
    draw=draw_training,
    extra=EXTRA,
    in_all=False,
    own_presets=True,
)


# --- Tables of the training experiment as Markdown, from its CSV file ---

Row = Mapping[str, str]

COLUMNS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "PDQ": ("PDQ", lambda value: f"{100 * value:.2f}"),
    "PDQ_paper": ("PDQ, `paper`", lambda value: f"{100 * value:.2f}"),
    "mAP": ("mAP", lambda value: f"{100 * value:.2f}"),
    "moLRP": ("moLRP", lambda value: f"{100 * value:.2f}"),
    "log_sigma_correlation": ("correlation", lambda value: f"{value:.3f}"),
    "sigma_ratio": ("ratio", lambda value: f"{value:.3f}"),
    "coverage_90": ("coverage of 90%", lambda value: f"{100 * value:.1f}"),
    "NLL": ("NLL", lambda value: f"{value:.3f}"),
    "energy": ("energy", lambda value: f"{value:.3f}"),
    "occluded_wider": ("occluded wider", lambda value: f"{100 * value:.1f}"),
}
"""Heading and format of the columns; some are empty without covariance."""


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of the experiment's CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_table(path: Path) -> ResultTable:
    """Return the table of an experiment's CSV file, with numeric columns where possible."""
    rows = read_rows(path)
    return ResultTable({name: _parse_column([row[name] for row in rows]) for name in rows[0]})


def _parse_column(texts: Sequence[str]) -> list[float] | list[str]:
    try:
        return [_number(text) for text in texts]
    except ValueError:
        return list(texts)


def claim_list(claims: Sequence[Claim]) -> str:
    """Return a list of claims with their results."""
    return "\n".join(
        f"- **{claim.result.capitalize()}**: {claim.claim}. Measured: {claim.measured}. Required: {claim.required}."
        for claim in claims
    )


def arm_table(rows: Sequence[Row]) -> str:
    """Return a line per arm: means over seeds, for PDQ and mAP with half the 95% interval."""
    lines = _head("loss")
    for arm in ARMS:
        own = [row for row in rows if row["arm"] == arm.name]
        if own:
            lines.append(_line([arm.title], [_mean(name, [_number(row[name]) for row in own]) for name in COLUMNS]))
    return "\n".join(lines)


def seed_table(rows: Sequence[Row]) -> str:
    """Return a line per arm and seed."""
    lines = _head("loss", "seed")
    for arm in ARMS:
        for row in rows:
            if row["arm"] == arm.name:
                shown = [_shown(name, _number(row[name])) for name in COLUMNS]
                lines.append(_line([arm.title, row["seed"]], shown))
    return "\n".join(lines)


def _head(*first: str) -> list[str]:
    names = [title for title, _ in COLUMNS.values()]
    return [_line(first, names), _line(["---"] * len(first), ["---:"] * len(names))]


def _line(first: Sequence[str], rest: Sequence[str]) -> str:
    return f"| {' | '.join([*first, *rest])} |"


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _shown(name: str, value: float) -> str:
    return "" if math.isnan(value) else COLUMNS[name][1](value)


def _mean(name: str, values: Sequence[float]) -> str:
    mean = interval_of(values)
    text = _shown(name, mean.mean)
    if name in ("PDQ", "PDQ_paper", "mAP") and math.isfinite(mean.high):
        text += f" \N{PLUS-MINUS SIGN} {100 * (mean.high - mean.mean):.2f}"
    return text


SHOWN = 4
"""Number of scenes in the figure."""
RADIUS = 2.0
"""Radius of ellipses in standard deviations; they contain 86% of a corner's probability."""


def training_scenes(
    *,
    arms: Sequence[str] = ("nll", *PPDQ_ARMS),
    seed: int = 0,
    images: int = 150,
    settings: Settings | None = None,
    run: Run | None = None,
) -> ResultTable:
    """Train some arms once, and return every edge of the first test scenes.

    Returns
    -------
    ResultTable
        `arm`, `scenes` and `scenes_seed` (number and seed of the scenes), `image`, `object`, `edge` (0 to 3: x1, y1,
        x2, y2), `kind`, `nominal`, `true`, `sigma`; `mean` and `predicted`, the predicted mean and standard deviation.
    """
    require("torch", extra=EXTRA, purpose="experiment training-scenes needs")
    from probox.evaluation.evaluate import evaluate
    from probox_experiments.training.arms import Edges
    from probox_experiments.training.detector import found_by

    run, chosen = run or Run(), settings or Settings()
    rows: list[dict[str, Any]] = []
    for done, name in enumerate(arms):
        if run.progress is not None:
            run.progress(done, len(arms))
        scenes, found, _ = found_by(find_arm(name), 100 * seed, chosen)
        edges = Edges.of(scenes, evaluate(scenes.truth, found, measures=("map",), threads=run.threads))
        for place in np.flatnonzero(scenes.image_rows[edges.objects] < images).tolist():
            row = int(edges.objects[place])
            rows += [
                {
                    "arm": name,
                    "scenes": scenes.count,
                    "scenes_seed": scenes.seed,
                    "image": int(scenes.image_rows[row]),
                    "object": row,
                    "edge": edge,
                    "kind": KINDS[int(scenes.kinds[row, edge])],
                    "nominal": float(scenes.nominal[row, edge]),
                    "true": float(scenes.boxes[row, edge]),
                    "sigma": float(scenes.sigmas[row, edge]),
                    "mean": float(edges.means[place, edge]),
                    "predicted": float(edges.predicted[place, edge]),
                }
                for edge in range(4)
            ]
    if run.progress is not None:
        run.progress(len(arms), len(arms))
    return ResultTable.from_rows(rows)


def claims_of_training_scenes(table: ResultTable) -> list[Claim]:
    """Return the claims on single edges after one training with each form of the loss."""
    claims = []
    for form in PPDQ_ARMS:
        rows = table.where(arm=form)
        if not len(rows):
            continue
        correlation = float(np.corrcoef(np.log(rows["predicted"]), np.log(rows["sigma"]))[0, 1])
        title = find_arm(form).title
        occluded, sharp = mixed_corners(rows["kind"], rows["predicted"], KINDS[OCCLUDED], KINDS[SHARP])
        share = float(np.mean(occluded > sharp)) if len(sharp) else np.nan
        claims += [
            Claim(
                f"Trained once with {title}, predicted and true log std correlate above {CORRELATION:g}",
                correlation > CORRELATION,
                f"correlation of the logarithms {correlation:.3f}, {len(rows):,} edges",
                f"above {CORRELATION:g}",
                {"log std correlation": correlation},
            ),
            Claim(
                f"Trained once with {title}, the std is larger across an occluded edge than across a sharp edge",
                share > WIDER,
                f"fraction {share:.3f} of {len(sharp)} corners with one of each",
                f"above {WIDER:g}",
                {"fraction": share},
            ),
        ]
    return claims


def draw_training_scenes(table: ResultTable) -> Figure:
    """Draw scenes with the ellipses of one arm, and predicted against true standard deviations of all arms."""
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(table["arm"].tolist()))
    shown = next((name for name in PPDQ_ARMS if name in names), names[0])
    figure = new_figure(9.6, 6.4)
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.0, 1.12])
    above, below = parts
    own = table.where(arm=shown)
    chosen = _select_scenes(own)
    pictures = render(draw_scenes(int(own["scenes"][0]), int(own["scenes_seed"][0])))
    for axes, image in zip(np.ravel(above.subplots(1, SHOWN)), chosen, strict=False):
        _scene(axes, pictures[image], own.where(image=image))
        axes.set_title(f"scene {image + 1}")
    above.legend(
        handles=[
            Line2D([], [], color=BLUE, lw=1.6, label=f"predicted ({find_arm(shown).title}), ellipses of 2 std"),
            Line2D([], [], color=ORANGE, lw=1.4, ls="--", label="correct: nominal corners and std"),
            Line2D([], [], color=VERMILION, lw=1.3, ls=":", label="true box"),
        ],
        loc="outside lower center",
        ncols=3,
    )
    for axes, name in zip(np.ravel(below.subplots(1, len(names), sharey=True, squeeze=False)), names, strict=True):
        _scatter(axes, table.where(arm=name), find_arm(name).title)
    return figure


def _select_scenes(rows: ResultTable) -> list[int]:
    """Return the first images with the most kinds of edges and the most objects."""
    images = np.unique(rows["image"])
    worth = []
    for image in images.tolist():
        kinds = rows.where(image=image)["kind"].tolist()
        worth.append(len(set(kinds)) * 10 + len(kinds))
    order = np.argsort(-np.array(worth), kind="stable")
    return sorted(images[order[:SHOWN]].tolist())


def _scene(axes: Axes, picture: npt.NDArray[np.uint8], rows: ResultTable) -> None:
    from matplotlib.patches import Ellipse, Rectangle

    axes.imshow(picture.transpose(1, 2, 0), extent=(0, SIDE, SIDE, 0), interpolation="nearest")
    for number in np.unique(rows["object"]).tolist():
        own = rows.where(object=number)
        true, right, mean = (own[name] + OUTLINE for name in ("true", "nominal", "mean"))
        sides = (true[2] - true[0], true[3] - true[1])
        axes.add_patch(Rectangle((true[0], true[1]), *sides, fill=False, ec=VERMILION, lw=1.3, ls=":"))
        looks: tuple[tuple[Any, Any, dict[str, Any]], ...] = (
            (right, own["sigma"], {"ec": ORANGE, "lw": 1.4, "ls": "--"}),
            (mean, own["predicted"], {"ec": BLUE, "lw": 1.6}),
        )
        for place, sigmas, look in looks:
            for first in (0, 2):
                size = 2 * RADIUS * sigmas[first : first + 2]
                axes.add_patch(Ellipse((place[first], place[first + 1]), *size.tolist(), fill=False, **look))
    axes.set(xticks=[], yticks=[], xlim=(0, SIDE), ylim=(SIDE, 0))
    axes.grid(False)


def _scatter(axes: Axes, rows: ResultTable, title: str) -> None:
    colours = dict(zip(KINDS, (GREY, GREEN, BLUE, ORANGE), strict=True))
    # All sharp edges have the same standard deviation; jitter makes them visible.
    aside = np.exp(np.random.default_rng(0).uniform(-0.08, 0.08, len(rows)))
    axes.plot([0.3, 6], [0.3, 6], color="#C9C9C9", lw=3, zorder=1)
    for kind in KINDS:
        now = rows["kind"] == kind
        x = rows["sigma"][now] * (aside[now] if kind == KINDS[SHARP] else 1.0)
        axes.plot(x, rows["predicted"][now], "o", ms=2.4, mew=0, alpha=0.55, color=colours[kind], label=kind)
    set_log_axes(axes, [0.5, 1.0, 2.0, 4.0])
    axes.set(xlim=(0.38, 4.4), ylim=(0.25, 6.5), xlabel="true std of an edge (pixels)")
    axes.set_ylabel("predicted std")
    correlation = np.corrcoef(np.log(rows["predicted"]), np.log(rows["sigma"]))[0, 1]
    axes.set_title(f"{title}: correlation {correlation:.2f}")
    axes.legend(loc="lower right", markerscale=2.0, handlelength=1.0)


TRAINING_SCENES = Experiment(
    name="training-scenes",
    section="none",
    varied="sharp, blurred, occluded and faded edges of test scenes, predicted by detectors of `training`",
    claim="the predicted standard deviation of an edge corresponds to its visible ambiguity",
    function=training_scenes,
    judge=claims_of_training_scenes,
    draw=draw_training_scenes,
    extra=EXTRA,
    in_all=False,
    own_presets=True,
)


if __name__ == "__main__":
    given = read_rows(Path(sys.argv[1]))
    claims = claim_list(claims_of_training(read_table(Path(sys.argv[1]))))
    print(f"{arm_table(given)}\n\n{claims}\n\n{seed_table(given)}")

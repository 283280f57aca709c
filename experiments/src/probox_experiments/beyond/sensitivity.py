"""Sensitivity of metrics: the response of every metric to twenty degradations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from probox.errors import InputError
from probox.measures.registry import measure_names, without_masks
from probox.tables.groundtruth import GroundTruth
from probox_experiments.beyond.perturbations import (
    BASE,
    BOXES,
    CONFIDENCE,
    COUNTS,
    LABELS,
    LIMIT,
    PERTURBATIONS,
    SIGMAS,
    CalibratedDetector,
    Cell,
    Matrix,
    claim_detected,
    claim_unchanged,
    claim_undetected,
    has_repeats,
    list_cells,
)
from probox_experiments.claims import (
    EXACT,
    Claim,
    Judgement,
    ResultTable,
    column_of,
    judge_presets,
    not_measured,
)
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, GREY, VERMILION, Axes, Figure, new_figure
from probox_experiments.running import Run
from probox_experiments.synthetic import fingerprint, first_images, pixel_aligned, synthetic_truth

# --- Figure: matrix of perturbations and metrics ---

FULL = 100.0
"""Number of standard errors from which cells have full colour and the same text."""
PALEST = 0.25
"""Opacity of a cell at the limit of detection."""


def draw_sensitivity(table: ResultTable) -> Figure:
    """Draw a row per change and a column per metric with z in each cell; detected changes are coloured."""
    matrix = Matrix(table)
    rows, columns = matrix.perturbations, matrix.measures
    figure = new_figure(2.2 + 0.39 * max(len(columns), 14), 1.9 + 0.27 * max(len(rows), 4))
    axes = figure.add_subplot()
    axes.grid(visible=False)
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            _draw_cell(axes, x, y, matrix[column, row])
    _draw_groups(axes, rows, len(columns))
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), [_heading(column) for column in columns], rotation=60, ha="left", va="bottom")
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0, pad=2, top=False, bottom=False, labeltop=True, labelbottom=False)
    for tick in axes.get_xticklabels():
        tick.set_rotation_mode("anchor")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(f"Sensitivity: paired differences in standard errors over {matrix.repeats} repeats", pad=10)
    _draw_legend(figure)
    return figure


def _draw_cell(axes: Axes, x: int, y: int, cell: Cell) -> None:
    from matplotlib.patches import Rectangle

    strength = _strength(cell)
    colour = {1: BLUE, -1: VERMILION, 0: GREY}[cell.harm]
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fc="#FFFFFF", ec="#E4E4E4", lw=0.6))
    if strength:
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fc=colour, ec="white", lw=0.6, alpha=strength))
    ink = "white" if strength > 0.62 else "#333333" if cell.seen else "#8A8A8A"
    axes.text(x, y + 0.02, _words(cell.z), ha="center", va="center", fontsize=6.8, color=ink)


def _strength(cell: Cell) -> float:
    """Return the opacity of a cell: 0 below the limit, then increasing with the logarithm of z."""
    if not cell.seen:
        return 0.0
    fraction = math.log(min(abs(cell.z), FULL) / LIMIT) / math.log(FULL / LIMIT)
    return PALEST + (1.0 - PALEST) * fraction


def _words(z: float) -> str:
    """Return the text of z in a cell.

    >>> _words(0.0), _words(-0.31), _words(14.2), _words(999.0), _words(float("nan"))
    ('0', '.3', '14', '99+', '')
    """
    if math.isnan(z):
        return ""
    size = abs(z)
    if size == 0.0:
        return "0"
    if size < 0.95:
        return f"{size:.1f}".removeprefix("0") if size >= 0.05 else "<.1"
    return f"{size:.0f}" if size < FULL - 0.5 else "99+"


def _heading(column: str) -> str:
    """Return the name of a metric without its bins and overlaps; PDQ with its preset.

    >>> _heading("D-ECE@50/10w"), _heading("PDQ_paper"), _heading("PMB_NLL"), _heading("coverage_90")
    ('D-ECE', 'PDQ, paper', 'PMB-NLL', 'coverage')
    """
    if column.startswith("PDQ_"):
        return f"PDQ, {column.removeprefix('PDQ_')}"
    return column.split("@")[0].split("/")[0].replace("coverage_90", "coverage").replace("_", "-")


def _draw_groups(axes: Axes, rows: tuple[str, ...], columns: int) -> None:
    """Draw lines between changes of boxes, standard deviations, labels and counts."""
    end = 0
    for group in (BOXES, SIGMAS, LABELS, COUNTS):
        end += sum(one.name in rows for one in group)
        if 0 < end < len(rows):
            axes.plot([-0.5, columns - 0.5], [end - 0.5, end - 0.5], color="#333333", lw=1.0, solid_capstyle="butt")


def _draw_legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    looks = (
        (BLUE, "detected, metric got worse"),
        (VERMILION, "detected, metric improved"),
        (GREY, "detected, without direction"),
    )
    handles = [Patch(fc=colour, ec="none", alpha=0.8, label=words) for colour, words in looks]
    handles.append(Patch(fc="white", ec="#C9C9C9", label=f"below {LIMIT:g}: not detected; 0: equal values"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, handlelength=1.2, columnspacing=1.4)


# --- The experiment ---

FACTORS = ("std x 1/4", "std x 1/2", "std x 2", "std x 4")
OF_BOXES = ("mAP", "moLRP")
OF_LABELS = ("Brier", "ignorance", "D-ECE@50/10w", "LaECE@50/25w", "LaACE@50", "OCE@50", "QGC@50", "MUE@50")
PROPER = ("NLL", "energy", "CRPS")
CALIBRATION = ("NEES", "coverage_90", "PIT", "M-QCE", "ENCE/10m", "sharpness")
ORDER = ("AUSE", "Spearman")
OF_PAIRS = (*PROPER, *CALIBRATION, "Brier", "ignorance", *ORDER)
"""Metrics of matched pairs only."""
SHARPENED, LESS_CONFIDENT = "labels sharpened", "confidences x 0.8"
UNCERTAIN, CONFIDENT = "false, uncertain", "false, confident"


def which_notices_what(
    truth: GroundTruth | None = None,
    *,
    perturbations: Sequence[str] | None = None,
    images: int = 60,
    repeats: int = 8,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Degrade the detections of a calibrated detector, one property at a time, and compute all metrics.

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`.
    perturbations : sequence of str, optional
        Some of the names of `PERTURBATIONS`. Default: all.
    images : int
        Number of images, the first of the ground truth.
    repeats, seed : int
        Number of random draws of detections, and their seed. All perturbations of a repeat change the same detections.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `perturbation` ("none" first), `repeat`; the headline of every metric; PDQ, `pPDQ` and `TP` under every preset.
    """
    run = run or Run()
    known = {perturbation.name: perturbation for perturbation in PERTURBATIONS}
    names = list(known) if perturbations is None else list(perturbations)
    for name in names:
        if name not in known:
            raise InputError(f"unknown perturbation {name!r}", remedy=f"choose from: {', '.join(known)}")
    objects = pixel_aligned(first_images(synthetic_truth() if truth is None else truth, images))

    def point(perturbation: str, repeat: int) -> dict[str, float]:
        drawn = CalibratedDetector().detect(objects, seed=[seed, repeat])
        if perturbation != BASE:
            drawn = known[perturbation].change(drawn, objects, np.random.default_rng([seed, repeat, 1]))
        return run.measure(objects, drawn.found, also=("pPDQ", "TP"), measures=measures)

    measures = list(without_masks(measure_names()))  # simulated detections are boxes
    points = [{"perturbation": name, "repeat": repeat} for repeat in range(repeats) for name in [BASE, *names]]
    return run.table("which-notices-what", points, point, truth=fingerprint(objects), seed=seed, all_measures=measures)


def _numbers(table: ResultTable) -> Claim:
    """Return the claim that PDQ is defined everywhere: other claims ignore cells without numbers."""

    def judge(preset: str, column: str) -> Judgement:
        missing = float(np.isnan(table[column]).sum())
        return not missing, f"{missing:g} under `{preset}`", {preset: missing}

    words = "PDQ is defined for all changes"
    return judge_presets(words, table, "none", judge, shown="undefined: {}", between=", ")


def claims_of_sensitivity(table: ResultTable) -> list[Claim]:
    """Return the claims that follow from the definitions of the metrics, and expectations."""
    matrix = Matrix(table)
    boxes, sigmas, counts = ([one.name for one in group] for group in (BOXES, SIGMAS, COUNTS))
    every = [one.name for one in PERTURBATIONS]
    return [
        _numbers(table),
        claim_unchanged(
            "Metrics of boxes without covariance and of labels are identical for all changes of std",
            matrix,
            {(*OF_BOXES, *OF_LABELS): sigmas},
        ),
        claim_detected(
            "PDQ, proper scores and calibration metrics detect std of a quarter, half, twice or four times the true "
            "value",
            matrix,
            {("PDQ", *PROPER, *CALIBRATION, "PMB_NLL"): FACTORS},
        ),
        claim_unchanged(
            "AUSE and Spearman's correlation are identical for a common factor of all std, and for a correlation of x "
            "and y",
            matrix,
            {ORDER: (*FACTORS, "correlated")},
        ),
        claim_detected(
            "AUSE and Spearman's correlation get worse if std are shuffled or constant",
            matrix,
            {ORDER: ("std shuffled", "std constant")},
            harm=1,
        ),
        claim_unchanged(
            "mAP is identical for lower confidences in the same order, mAP and moLRP for uncertain false positives",
            matrix,
            {("mAP",): (LESS_CONFIDENT, UNCERTAIN), ("moLRP",): (UNCERTAIN,)},
        ),
        claim_undetected(
            "Metrics of matched pairs do not detect duplicates, misses and false positives",
            matrix,
            {OF_PAIRS: counts},
        ),
        claim_detected(
            "PDQ, mAP, moLRP, QGC and PMB-NLL get worse with duplicates, misses and confident false positives, OCE "
            "with misses",
            matrix,
            {("PDQ", *OF_BOXES, "QGC@50", "PMB_NLL"): ("duplicates", "misses", CONFIDENT), ("OCE@50",): ("misses",)},
            harm=1,
        ),
        _root_of_confidence(matrix, sums=False),
        _root_of_confidence(matrix, sums=True),
        claim_detected(
            "PDQ improves with sharpened labels",
            matrix,
            {("PDQ",): (SHARPENED,)},
            harm=-1,
            explanation="If classes have probabilities q, sum q sqrt(p) has its maximum at p proportional to q "
            "squared, which corresponds to a temperature of 1/2: PDQ rewards overconfident labels.",
        ),
        claim_detected(
            "Brier score and ignorance of matched pairs improve with sharpened labels",
            matrix,
            {("Brier", "ignorance"): (SHARPENED,)},
            harm=-1,
            explanation="Pairs are matched within classes, so these scores contain correct labels only, and the most "
            "confident correct label scores best.",
        ),
        claim_detected(
            "QGC, LaACE and MUE improve with uncertain false positives",
            matrix,
            {("QGC@50", "LaACE@50", "MUE@50"): (UNCERTAIN,)},
            harm=-1,
            explanation="They are means over detections, and false positives of low confidence are calibrated.",
        ),
        claim_detected("PMB-NLL gets worse with every change", matrix, {("PMB_NLL",): every}, harm=1),
        claim_detected(
            "NLL and energy score get worse with every change of boxes and std, CRPS with all but the correlation",
            matrix,
            {
                ("NLL", "energy"): [*boxes, *sigmas],
                ("CRPS",): [name for name in (*boxes, *sigmas) if name != "correlated"],
            },
            harm=1,
        ),
        claim_detected("PDQ detects every change", matrix, {("PDQ",): every}),
        claim_detected(
            "PDQ gets worse with every change except sharpened labels",
            matrix,
            {("PDQ",): [name for name in every if name != SHARPENED]},
            harm=1,
            explanation="The foreground loss uses the object's pixels, which do not fill its box, the background loss "
            "all pixels outside the box. A shrunk box loses few pixels of the object and reduces the background loss. "
            "Objects that fill their boxes gain little or nothing.",
        ),
        _each_change_is_detected(matrix),
        _each_metric_misses_one(matrix),
        _never_better(matrix),
    ]


def _root_of_confidence(matrix: Matrix, *, sums: bool) -> Claim:
    """Return the claim on PDQ, or the sum of pPDQ, if all confidences are multiplied by one factor."""
    what = "The sum of the matches' pPDQ" if sums else "PDQ"
    required = f"relative error at most {EXACT:g}"
    explanation = (
        "Matches count at any quality. `paper` has no minimum quality, so rounding decides whether a pair of quality "
        "1e-100 is a match, and each match removes a false positive and a miss."
    )

    def judge(preset: str, column: str) -> Judgement:
        before, after = matrix.values(column, LESS_CONFIDENT)
        if sums:
            pairs_before, pairs_after = matrix.values(column_of("TP", preset), LESS_CONFIDENT)
            before, after = before * pairs_before, after * pairs_after
        off = float(np.abs(after / before - math.sqrt(CONFIDENCE)).max())
        return off <= EXACT, f"{off:.2g} under `{preset}`", {preset: off}

    return judge_presets(
        f"{what} under confidences x {CONFIDENCE:g} is sqrt({CONFIDENCE:g}) of its value before",
        matrix.table if len(matrix.values("repeat", LESS_CONFIDENT)[0]) else ResultTable({}),
        required,
        judge,
        key="pPDQ" if sums else "PDQ",
        missing=required,
        shown="largest error: {}",
        between=", ",
        explanation="" if sums else explanation,
    )


def _each_change_is_detected(matrix: Matrix) -> Claim:
    claim = "Every change is detected by a metric other than PDQ and PMB-NLL"
    required = f"|z| of at least {LIMIT:g} for at least one of them"
    others = [name for name in matrix.measures if not name.startswith("PDQ") and name != "PMB_NLL"]
    cells = {name: matrix.cells(others, [name]) for name in matrix.perturbations}
    seen = {name: sum(cell.seen for cell in of) for name, of in cells.items() if of}
    if not seen or not has_repeats(matrix):
        return not_measured(claim, required)
    least = min(seen, key=lambda name: seen[name])
    measured = f"fewest, {seen[least]} of {len(cells[least])}, detect `{least}`"
    return Claim(claim, min(seen.values()) > 0, measured, required, {k: float(v) for k, v in seen.items()})


def _each_metric_misses_one(matrix: Matrix) -> Claim:
    claim = "Every metric except PDQ and PMB-NLL does not detect some change"
    required = f"|z| below {LIMIT:g} for at least one change"
    seen = {}
    for measure in matrix.measures:
        cells = [cell for cell in matrix.every() if cell.measure == measure]
        if cells:
            seen[measure] = (sum(cell.seen for cell in cells), len(cells))
    others = {name: of for name, of in seen.items() if not name.startswith("PDQ") and name != "PMB_NLL"}
    if not others or not has_repeats(matrix):
        return not_measured(claim, required)
    ranked = sorted(seen.items(), key=lambda item: -item[1][0])
    return Claim(
        claim,
        all(count < of for count, of in others.values()),
        "detected: " + ", ".join(f"{name} {count} of {of}" for name, (count, of) in ranked),
        required,
        {name: float(count) for name, (count, _) in ranked},
    )


def _never_better(matrix: Matrix) -> Claim:
    claim = "NLL, energy score, CRPS and PMB-NLL improve with no change"
    required = f"none of their cells improves with |z| of at least {LIMIT:g}"
    cells = matrix.cells((*PROPER, "PMB_NLL"), matrix.perturbations)
    if not cells or not has_repeats(matrix):
        return not_measured(claim, required)
    better = [cell for cell in matrix.every() if cell.better]
    wrong = [cell for cell in cells if cell.better]
    return Claim(
        claim,
        not wrong,
        f"{len(wrong)} of {len(cells)} cells{': ' * bool(wrong)}{list_cells(wrong)}",
        required,
        {f"{cell.measure} by {cell.perturbation}": cell.z for cell in better},
        f"Metrics that improve although the detector got worse: {', '.join(map(str, better)) or 'none'}.",
    )


WHICH_NOTICES_WHAT = Experiment(
    name="which-notices-what",
    section="none",
    varied="one property of a calibrated detector at a time, in twenty ways, for all metrics",
    claim="each metric detects the changes that its definition implies",
    function=which_notices_what,
    judge=claims_of_sensitivity,
    draw=draw_sensitivity,
)

"""Which measure notices what? Twenty changes for the worse, and what every measure makes of each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from probox.errors import InputError
from probox.measures.registry import measure_names
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
    claim_blind,
    claim_noticed,
    claim_unchanged,
    has_repeats,
    list_cells,
)
from probox_experiments.claims import (
    EXACT,
    Claim,
    ResultTable,
    Verdict,
    column_of,
    judge_presets,
    not_measured,
)
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, GREY, VERMILION, Axes, Figure, new_figure
from probox_experiments.running import Run
from probox_experiments.synthetic import fingerprint, first_images, pixel_aligned, synthetic_truth

# --- The matrix of perturbations and measures as a picture ---

FULL = 100.0
"""From so many standard errors on colours are full, and numbers are not told apart."""
PALEST = 0.25
"""How much of its colour a cell has that has just been noticed."""


def draw_sensitivity(table: ResultTable) -> Figure:
    """Draw a row for each change and a column for each measure: z in each cell, coloured where it is noticed."""
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
    axes.set_title(f"What notices what: paired differences in standard errors over {matrix.repeats} repeats", pad=10)
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
    """Return how much colour a cell has: none below the limit, then by the logarithm of z."""
    if not cell.seen:
        return 0.0
    share = math.log(min(abs(cell.z), FULL) / LIMIT) / math.log(FULL / LIMIT)
    return PALEST + (1.0 - PALEST) * share


def _words(z: float) -> str:
    """Return z as a cell shows it.

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
    """Return the name of a measure without its bins and overlaps; PDQ with its preset.

    >>> _heading("D-ECE@50/10w"), _heading("PDQ_paper"), _heading("PMB_NLL"), _heading("coverage_90")
    ('D-ECE', 'PDQ, paper', 'PMB-NLL', 'coverage')
    """
    if column.startswith("PDQ_"):
        return f"PDQ, {column.removeprefix('PDQ_')}"
    return column.split("@")[0].split("/")[0].replace("coverage_90", "coverage").replace("_", "-")


def _draw_groups(axes: Axes, rows: tuple[str, ...], columns: int) -> None:
    """Draw lines between changes of boxes, sigmas, labels and counts."""
    end = 0
    for group in (BOXES, SIGMAS, LABELS, COUNTS):
        end += sum(one.name in rows for one in group)
        if 0 < end < len(rows):
            axes.plot([-0.5, columns - 0.5], [end - 0.5, end - 0.5], color="#333333", lw=1.0, solid_capstyle="butt")


def _draw_legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    looks = (
        (BLUE, "noticed, the number got worse"),
        (VERMILION, "noticed, but the number got better"),
        (GREY, "noticed, neither is better"),
    )
    handles = [Patch(fc=colour, ec="none", alpha=0.8, label=words) for colour, words in looks]
    handles.append(Patch(fc="white", ec="#C9C9C9", label=f"below {LIMIT:g}: not noticed; 0: the same number"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, handlelength=1.2, columnspacing=1.4)


# --- Which measure notices what? Twenty changes for the worse, and what every measure makes of each ---

FACTORS = ("sigmas x 1/4", "sigmas x 1/2", "sigmas x 2", "sigmas x 4")
OF_PLAIN_BOXES = ("mAP", "moLRP")
OF_LABELS = ("Brier", "ignorance", "D-ECE@50/10w", "LaECE@50/25w", "LaACE@50", "OCE@50", "QGC@50", "MUE@50")
PROPER = ("NLL", "energy", "CRPS")
HONESTY = ("NEES", "coverage_90", "PIT", "M-QCE", "ENCE/10m", "sharpness")
ORDER = ("AUSE", "Spearman")
OF_PAIRS = (*PROPER, *HONESTY, "Brier", "ignorance", *ORDER)
"""Measures that look at matched pairs and nothing else."""
SHARPENED, LESS_SURE, UNSURE, SURE = "labels sharpened", "confidences x 0.8", "false, unsure", "false, sure"


def which_notices_what(
    truth: GroundTruth | None = None,
    *,
    perturbations: Sequence[str] | None = None,
    images: int = 60,
    repeats: int = 8,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Change the detections of an honest detector in one thing at a time, and measure them by all measures.

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`.
    perturbations : sequence of str, optional
        Some of the names of `PERTURBATIONS`. Default: all.
    images : int
        The first so many images are used.
    repeats, seed : int
        How often detections are drawn, and where that begins. All perturbations of a repeat change the same detections.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `perturbation` ("none" first), `repeat`; the headline of every measure by its key, PDQ, `pPDQ` and `TP` under
        every preset.
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
        return run.measure(objects, drawn.found, also=("pPDQ", "TP"), measures=measure_names())

    points = [{"perturbation": name, "repeat": repeat} for repeat in range(repeats) for name in [BASE, *names]]
    measures = list(measure_names())
    return run.table("which-notices-what", points, point, truth=fingerprint(objects), seed=seed, all_measures=measures)


def _numbers(table: ResultTable) -> Claim:
    """Judge that there is something to compare: cells without numbers are left out of all other claims."""

    def judge(preset: str, column: str) -> Verdict:
        missing = float(np.isnan(table[column]).sum())
        return not missing, f"{missing:g} under `{preset}`", {preset: missing}

    words = "PDQ is a number whatever is done"
    return judge_presets(words, table, "none", judge, shown="not a number: {}", between=", ")


def claims_of_sensitivity(table: ResultTable) -> list[Claim]:
    """Judge what follows from the definitions of the measures, and what was hoped for."""
    matrix = Matrix(table)
    boxes, sigmas, counts = ([one.name for one in group] for group in (BOXES, SIGMAS, COUNTS))
    every = [one.name for one in PERTURBATIONS]
    return [
        _numbers(table),
        claim_unchanged(
            "Measures of plain boxes and of labels give the same number whatever becomes of sigmas",
            matrix,
            {(*OF_PLAIN_BOXES, *OF_LABELS): sigmas},
        ),
        claim_noticed(
            "Sigmas a quarter, half, twice or four times what they should be are noticed by PDQ, proper scores and "
            "measures of honesty",
            matrix,
            {("PDQ", *PROPER, *HONESTY, "PMB_NLL"): FACTORS},
        ),
        claim_unchanged(
            "AUSE and Spearman's correlation see no factor common to all sigmas, and no correlation of x and y",
            matrix,
            {ORDER: (*FACTORS, "correlated")},
        ),
        claim_noticed(
            "AUSE and Spearman's correlation get worse by sigmas that are shuffled or all alike",
            matrix,
            {ORDER: ("sigmas shuffled", "sigmas constant")},
            harm=1,
        ),
        claim_unchanged(
            "mAP does not see lower confidences in the same order; mAP and moLRP do not see unsure false positives",
            matrix,
            {("mAP",): (LESS_SURE, UNSURE), ("moLRP",): (UNSURE,)},
        ),
        claim_blind(
            "Measures of matched pairs do not notice duplicates, misses and false positives",
            matrix,
            {OF_PAIRS: counts},
        ),
        claim_noticed(
            "PDQ, mAP, moLRP, QGC and PMB-NLL get worse by duplicates, misses and sure false positives, OCE by misses",
            matrix,
            {("PDQ", *OF_PLAIN_BOXES, "QGC@50", "PMB_NLL"): ("duplicates", "misses", SURE), ("OCE@50",): ("misses",)},
            harm=1,
        ),
        _root_of_confidence(matrix, sums=False),
        _root_of_confidence(matrix, sums=True),
        claim_noticed(
            "PDQ gets better by sharpened labels",
            matrix,
            {("PDQ",): (SHARPENED,)},
            harm=-1,
            explanation="If classes have probabilities q, sum q sqrt(p) is greatest for p as q squared, which is what "
            "a temperature of 1/2 makes of q: PDQ pays for labels that are surer than they should be.",
        ),
        claim_noticed(
            "Brier score and ignorance of matched pairs get better by sharpened labels",
            matrix,
            {("Brier", "ignorance"): (SHARPENED,)},
            harm=-1,
            explanation="Pairs are made within classes: of all labels, these scores see those that are right, and of "
            "these the surest is the best.",
        ),
        claim_noticed(
            "QGC, LaACE and MUE get better by unsure false positives",
            matrix,
            {("QGC@50", "LaACE@50", "MUE@50"): (UNSURE,)},
            harm=-1,
            explanation="They are means over detections: nonsense that is unsure of itself is right about itself.",
        ),
        claim_noticed("PMB-NLL gets worse by every change", matrix, {("PMB_NLL",): every}, harm=1),
        claim_noticed(
            "NLL and energy score get worse by every change of boxes and sigmas, CRPS by all but the correlation",
            matrix,
            {
                ("NLL", "energy"): [*boxes, *sigmas],
                ("CRPS",): [name for name in (*boxes, *sigmas) if name != "correlated"],
            },
            harm=1,
        ),
        claim_noticed("PDQ notices every change", matrix, {("PDQ",): every}),
        claim_noticed(
            "PDQ gets worse by every change but that of sharpened labels",
            matrix,
            {("PDQ",): [name for name in every if name != SHARPENED]},
            harm=1,
            explanation="The foreground loss looks at the pixels of an object, which does not fill its box, the "
            "background loss at everything outside of the box. A box that is drawn in loses few pixels of the object, "
            "and has less outside that could be wrong. Objects that fill their boxes gain little by it, or nothing.",
        ),
        _each_is_noticed(matrix),
        _each_is_blind(matrix),
        _never_better(matrix),
    ]


def _root_of_confidence(matrix: Matrix, *, sums: bool) -> Claim:
    """Return the claim about PDQ, or the sum of pPDQ, under confidences that all are lower by one factor."""
    what = "The sum of the matches' pPDQ" if sums else "PDQ"
    required = f"at most {EXACT:g} of it off"
    explanation = (
        "A match counts however low its quality. Under `paper`, which has no least quality, rounding decides whether a "
        "pair of quality 1e-100 is a match, and each match takes a false positive and a miss away."
    )

    def judge(preset: str, column: str) -> Verdict:
        before, after = matrix.values(column, LESS_SURE)
        if sums:
            pairs_before, pairs_after = matrix.values(column_of("TP", preset), LESS_SURE)
            before, after = before * pairs_before, after * pairs_after
        off = float(np.abs(after / before - math.sqrt(CONFIDENCE)).max())
        return off <= EXACT, f"{off:.2g} under `{preset}`", {preset: off}

    return judge_presets(
        f"{what} under confidences x {CONFIDENCE:g} is sqrt({CONFIDENCE:g}) of what it was",
        matrix.table if len(matrix.values("repeat", LESS_SURE)[0]) else ResultTable({}),
        required,
        judge,
        key="pPDQ" if sums else "PDQ",
        missing=required,
        shown="largest distance: {}",
        between=", ",
        explanation="" if sums else explanation,
    )


def _each_is_noticed(matrix: Matrix) -> Claim:
    claim = "Every change is noticed by a measure other than PDQ and PMB-NLL"
    required = f"|z| of at least {LIMIT:g} for one of them at least"
    others = [name for name in matrix.measures if not name.startswith("PDQ") and name != "PMB_NLL"]
    cells = {name: matrix.cells(others, [name]) for name in matrix.perturbations}
    seen = {name: sum(cell.seen for cell in of) for name, of in cells.items() if of}
    if not seen or not has_repeats(matrix):
        return not_measured(claim, required)
    least = min(seen, key=lambda name: seen[name])
    measured = f"fewest, {seen[least]} of {len(cells[least])}, notice `{least}`"
    return Claim(claim, min(seen.values()) > 0, measured, required, {k: float(v) for k, v in seen.items()})


def _each_is_blind(matrix: Matrix) -> Claim:
    claim = "Every measure but PDQ and PMB-NLL fails to notice some change"
    required = f"|z| below {LIMIT:g} for one change at least"
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
        "noticed: " + ", ".join(f"{name} {count} of {of}" for name, (count, of) in ranked),
        required,
        {name: float(count) for name, (count, _) in ranked},
    )


def _never_better(matrix: Matrix) -> Claim:
    claim = "NLL, energy score, CRPS and PMB-NLL get better by no change"
    required = f"none of their cells has |z| of at least {LIMIT:g} for the better"
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
        f"Numbers that get better though the detector got worse: {', '.join(map(str, better)) or 'none'}.",
    )


WHICH_NOTICES_WHAT = Experiment(
    name="which-notices-what",
    section="none: ours",
    varied="one thing at a time of an honest detector, in twenty ways, for all measures",
    claim="what each measure can see and what it cannot, as its definition says",
    function=which_notices_what,
    judge=claims_of_sensitivity,
    draw=draw_sensitivity,
)

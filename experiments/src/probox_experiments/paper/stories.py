"""What uncertainty in the right and in the wrong place is worth: appendices A.2 and A.4 of the paper, told again.

The paper shows photos with the detections of MC-Dropout SSD, YOLOv3 and FRCNN X+FPN, which are not public. Here objects
and detections are made up so that each story can be told with numbers that are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from probox.errors import InputError
from probox_experiments.claims import EXACT, Claim, ResultTable, close_enough, column_of, not_measured, presets_in
from probox_experiments.experiment import Experiment
from probox_experiments.paper.closed_form import agrees, foreground_background
from probox_experiments.paper.story_scenes import (
    EDGES,
    SCENES,
    Story,
    detections,
    draw_stories,
    list_stories,
    scene_truth,
)
from probox_experiments.running import Run

BOTH = "both"
TOLD_OF_LABELS = ("chair", "pizza")
NUMBERS = ("foreground", "background", "spatial", "label", "TP", "FP")

SNAPPED = 1e-8
"""The spatial quality from which on preset `reference` sees none."""


def tell_stories(
    *, sure: float = 0.5, error: float = 6.0, correlation: float = 0.8, run: Run | None = None
) -> ResultTable:
    """Measure detections that are unsure where they err, elsewhere, or nowhere (A.2), and such with labels (A.4).

    Parameters
    ----------
    sure : float
        The standard deviation of an edge that a detection is sure of, in pixels.
    error : float
        How far off the one wrong edge or corner is in the stories about edges and corners, and how unsure an edge is.
    correlation : float
        Between x and y of the wrong corner; its opposite, too.
    run : Run, optional
        How points are measured.

    Returns
    -------
    ResultTable
        `story`, `detection`; the box, `sigma_left` and so on, `correlation` (of the corner that has one),
        `probability` of the object's class, `IoU`, `AP50` (A.4 only); `PDQ`, `foreground`, `background`, `spatial`,
        `label`, `TP`, `FP`, each also `..._paper`; `by_hand_foreground_paper`, `by_hand_background_paper`. The
        detection called both is two at once.
    """
    for name, value, low, high in (("sure", sure, 0.0, 100.0), ("error", error, 0.0, 40.0)):
        if not low < value <= high:
            raise InputError(f"expected {name} above {low:g} and at most {high:g} pixels, but got {value:g}")
    if not 0.0 < correlation < 1.0:
        raise InputError(f"expected correlation between 0 and 1, but got {correlation:g}")
    run = run or Run()
    each_told = list_stories(sure, error, correlation)
    told = {(one.story, one.detection): [one] for one in each_told}
    told |= {(story, BOTH): [one for one in each_told if one.story == story] for story in TOLD_OF_LABELS}

    def point(story: str, detection: str) -> dict[str, Any]:
        shown = told[story, detection]
        truth, found = scene_truth(shown[0].scene), detections(shown)
        measured = run.measure(truth, found, also=NUMBERS, measures=())
        return {**_describe(shown, run), **measured, **_worked_out(shown, run)}

    points = [{"story": story, "detection": detection} for story, detection in told]
    return run.table("stories", points, point, sure=sure, error=error, correlation=correlation)


def _describe(told: Sequence[Story], run: Run) -> dict[str, float]:
    """Return what the detection is; nothing if it is two at once."""
    from probox.measures.boxes import average_precision

    one = told[0] if len(told) == 1 else None
    box = [math.nan] * 4 if one is None else one.box.tolist()
    sigmas = [math.nan] * 4 if one is None else [float(sigma) for sigma in one.sigmas]
    ap50 = math.nan
    if told[0].story in TOLD_OF_LABELS:
        ap50 = average_precision(scene_truth(told[0].scene), detections(list(told)), threads=run.threads).ap50
    return {
        **dict(zip(("x1", "y1", "x2", "y2"), box, strict=True)),
        **{f"sigma_{edge}": sigma for edge, sigma in zip(EDGES, sigmas, strict=True)},
        "correlation": math.nan if one is None else sum(one.correlations),
        "probability": math.nan if one is None else one.probability,
        "IoU": math.nan if one is None else one.overlap,
        "AP50": ap50,
    }


def _worked_out(told: Sequence[Story], run: Run) -> dict[str, float]:
    """Return foreground and background quality of a single detection under `paper`, by hand."""
    if "paper" not in run.presets:
        return {}
    both = (math.nan, math.nan)
    if len(told) == 1:
        both = foreground_background(told[0].probability_map(), SCENES[told[0].scene]())
    return {column_of(f"by_hand_{name}", "paper"): value for name, value in zip(NUMBERS[:2], both, strict=True)}


def claims_of_stories(table: ResultTable) -> list[Claim]:
    """Judge every story, and all numbers under `paper` by those that were worked out by hand."""
    if len(table) < TOLD:
        return [not_measured("Every story comes out as it is told", f"all {TOLD} detections of the stories")]
    right = ("general", "on the right edges")
    return [
        agrees(
            "Foreground and background quality of every detection are those worked out by hand",
            table,
            ("foreground", "background"),
        ),
        _geometric_means(table),
        _leads(
            "General: a box that misses an arm and goes too far below the feet does worse with little uncertainty than "
            "with uncertainty on these two edges",
            table,
            right,
            ("general", "little uncertainty"),
        ),
        _leads(
            "General: the same uncertainty in y instead of x, or at the other corner, is worth less",
            table,
            right,
            ("general", "x and y exchanged"),
            ("general", "corners exchanged"),
        ),
        _wrong_edges(table),
        _directions(table),
        _over_confident(table),
        _better_box_loses(table),
        *_labels(table),
        _corners(table, "corner too near", 1),
        _corners(table, "corner too far", -1),
    ]


TOLD = 54
"""How many rows there are: each story needs all of its detections."""
Place = tuple[str, str]


def _value(table: ResultTable, place: Place, column: str) -> float:
    """Return a number of a detection; NaN if it is not there."""
    found = table.where(story=place[0], detection=place[1])
    return float(found[column][0]) if len(found) and column in found else math.nan


def _geometric_means(table: ResultTable) -> Claim:
    """Judge pPDQ = sqrt(FG BG Q_L) where a detection alone is a true positive."""
    claim = "pPDQ is the square root of foreground, background and label quality multiplied"
    alone = table.take(table["detection"] != BOTH)
    apart: dict[str, float] = {}
    for preset, column in presets_in(alone).items():
        matched = alone.take(alone[column_of("TP", preset)] == 1)
        if not len(matched):
            continue
        foreground, background, label = (
            matched[column_of(name, preset)] for name in ("foreground", "background", "label")
        )
        distance = np.abs(matched[column] - np.sqrt(foreground * background * matched["probability"]))
        labels = np.abs(label - matched["probability"])
        apart[f"`{preset}`"] = float(np.maximum(distance, labels).max(initial=0.0))
    if not apart:
        return not_measured(claim, "PDQ of a true positive")
    return close_enough(claim, apart)


def _leads(claim: str, table: ResultTable, best: Place, *others: Place) -> Claim:
    """Return the claim that a detection has the higher PDQ under every preset."""
    shown: list[str] = []
    numbers: dict[str, float] = {}
    holds = True
    for preset, column in presets_in(table).items():
        lead, rest = _value(table, best, column), [_value(table, other, column) for other in others]
        holds &= all(lead > value + EXACT for value in rest)
        shown.append(f"{lead:.3f} against {', '.join(f'{value:.3f}' for value in rest)} under `{preset}`")
        numbers |= {f"{best[1]}, {preset}": lead, f"next, {preset}": max(rest)}
    if not shown:
        return not_measured(claim, "PDQ")
    return Claim(claim, holds, "PDQ " + "; ".join(shown), "higher, under every preset", numbers)


def _grid(table: ResultTable, story: str, column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a number for each wrong edge, in rows, and each unsure one."""
    places = [[(story, f"{wrong} wrong, {unsure} unsure") for unsure in EDGES] for wrong in EDGES]
    return np.array([[_value(table, place, column) for place in row] for row in places])


EDGE_STORIES = ("edge too near", "edge too far")


def _wrong_edges(table: ResultTable) -> Claim:
    """Judge that uncertainty is worth most on the edge that is wrong, whichever it is."""
    claim = (
        "If one edge is wrong, uncertainty on that edge is worth more than the same on any other, for all four edges"
    )
    least: dict[str, float] = {}
    for preset, column in presets_in(table).items():
        for story in EDGE_STORIES:
            grid = _grid(table, story, column)
            others = np.where(np.eye(4, dtype=bool), -np.inf, grid).max(axis=1)
            least[f"{story}, {preset}"] = float((np.diag(grid) - others).min())
    if not least:
        return not_measured(claim, "PDQ")
    return Claim(
        claim,
        all(lead > EXACT for lead in least.values()),
        "least lead: " + ", ".join(f"{words} {lead:.3f}" for words, lead in least.items()),
        "above 0 in all 8 rows of 4, under every preset",
        least,
    )


def _directions(table: ResultTable) -> Claim:
    """Judge that a scene turned or mirrored has the same PDQ: by the same, the opposite or a neighbouring edge."""
    claim = "Which of the four edges it is makes no difference: turned and mirrored scenes have the same PDQ"
    turns = np.array([[(unsure - wrong) % 4 for unsure in range(4)] for wrong in range(4)])
    apart: dict[str, float] = {}
    for preset, column in presets_in(table).items():
        grids = [_grid(table, story, column) for story in EDGE_STORIES]
        kinds = ([0], [2], [1, 3])
        apart[preset] = max(float(np.ptp(grid[np.isin(turns, kind)])) for grid in grids for kind in kinds)
    if "paper" not in apart:
        return not_measured(claim, "PDQ under `paper`")
    return Claim(
        claim,
        apart["paper"] <= EXACT,
        "largest difference: " + ", ".join(f"{value:.2g} under `{preset}`" for preset, value in apart.items()),
        f"at most {EXACT:g} under `paper`",
        apart,
        "Under `reference` the two neighbours differ: a corner's map stays below 1 right of its region of interest and "
        "below it, is 1 where both, and so goes with the shape of the region.",
    )


def _over_confident(table: ResultTable) -> Claim:
    """Judge that uncertainty elsewhere does not save a detection that is sure of its wrong edge."""
    claim = "Over-confident: uncertainty on three edges does not help if the fourth is sure and wrong: a false positive"
    sure, unsure = ("over-confident", "sure of the wrong edge"), ("over-confident", "unsure of it, too")
    shown: list[str] = []
    numbers: dict[str, float] = {}
    holds = True
    for preset in presets_in(table):
        if preset == "paper":  # the equations leave a little of everything
            spatial, other = (_value(table, place, "spatial_paper") for place in (sure, unsure))
            holds &= spatial <= SNAPPED < other
            shown.append(f"spatial quality {spatial:.1g} under `paper`, {other:.3f} if unsure of it")
        else:
            false, other = _value(table, sure, column_of("FP", preset)), _value(table, unsure, column_of("TP", preset))
            holds &= false == 1 and other == 1
            shown.append(f"{false:.0f} false positive under `{preset}`, {other:.0f} true positive if unsure of it")
        numbers[f"PDQ, {preset}"] = _value(table, sure, column_of("PDQ", preset))
    if not shown:
        return not_measured(claim, "PDQ")
    required = f"a false and a true positive; spatial quality at most {SNAPPED:g}, and above, under `paper`"
    return Claim(claim, holds, "; ".join(shown), required, numbers)


def _better_box_loses(table: ResultTable) -> Claim:
    """Judge that too much uncertainty costs more than a poorer box."""
    good, poor = ("under-confident", "good box, unsure edge"), ("under-confident", "poorer box, honest")
    lead = _leads(
        "Under-confident: a nearly perfect box with one very unsure edge does worse than a poorer box with honest "
        "uncertainty",
        table,
        poor,
        good,
    )
    if lead.holds is None:
        return lead
    overlaps = (_value(table, good, "IoU"), _value(table, poor, "IoU"))
    return Claim(
        lead.claim,
        lead.holds and overlaps[0] > overlaps[1],
        f"IoU {overlaps[0]:.3f} and {overlaps[1]:.3f}, {lead.measured}",
        "a higher IoU, and a lower PDQ under every preset",
        {**lead.numbers, "IoU, unsure": overlaps[0], "IoU, honest": overlaps[1]},
    )


def _labels(table: ResultTable) -> list[Claim]:
    """Judge that a better box outweighs a surer label, for PDQ but not for AP50 (A.4)."""
    surer, better = ([(story, which) for story in TOLD_OF_LABELS] for which in ("surer label", "better box"))
    leads = [
        _leads(
            f"Labels: the {story} with the better box has the higher pPDQ, though its label is less sure", table, b, a
        )
        for story, a, b in zip(TOLD_OF_LABELS, surer, better, strict=True)
    ]
    ap50 = [_value(table, place, "AP50") for place in (*surer, *better)]
    false = _value(table, surer[0], "FP")
    claim = (
        "Labels: the chair with the surer label is a false positive under `reference`, that with the better box is not"
    )
    counted = Claim(
        claim,
        false == 1 and _value(table, better[0], "TP") == 1,
        f"{false:.0f} false positive, and {_value(table, better[0], 'TP'):.0f} true positive",
        "one each",
        {"FP": false},
    )
    return [
        *leads,
        counted if "reference" in presets_in(table) else not_measured(claim, "PDQ under `reference`"),
        Claim(
            "Labels: AP50 counts all four as entirely correct",
            all(value >= 1 - EXACT for value in ap50),
            f"AP50 {', '.join(f'{value:.6g}' for value in ap50)}",
            "1",
            {"lowest AP50": min(ap50)},
        ),
        _claim_matched(table),
    ]


def _claim_matched(table: ResultTable) -> Claim:
    """Judge that of two detections the better placed is matched, where mAP takes the surer."""
    claim = "Labels: of both at once the better box is matched, not the surer label, and PDQ is half of its pPDQ"
    apart: dict[str, float] = {}
    for preset, column in presets_in(table).items():
        for story in TOLD_OF_LABELS:
            both, better = (story, BOTH), (story, "better box")
            label = _value(table, both, column_of("label", preset)) - _value(table, better, "probability")
            half = _value(table, both, column) - _value(table, better, column) / 2
            apart[f"{story}, {preset}"] = max(abs(label), abs(half))
    if not apart:
        return not_measured(claim, "PDQ")
    return Claim(
        claim,
        all(value <= EXACT for value in apart.values()),
        f"label quality and PDQ differ from that by at most {max(apart.values()):.2g}",
        f"at most {EXACT:g}, under every preset",
        apart,
    )


def _corners(table: ResultTable, story: str, sign: int) -> Claim:
    """Judge what a correlation is worth at a corner that errs along the diagonal.

    A pixel is covered if the corner lies up *and* left of it, which is the more probable the more both go together, at
    every pixel. So foreground quality rises with the correlation and background quality falls.
    """
    near = story == "corner too near"
    claim = (
        f"Correlation: a corner too {'near' if near else 'far'} by as much in x as in y does better with "
        f"{'positive' if near else 'negative'} correlation; at both corners the foreground gains by a positive one and "
        "the background loses"
    )
    rows = table.where(story=story)
    shown: list[str] = []
    numbers: dict[str, float] = {}
    holds = True
    for preset, column in presets_in(rows).items():
        by_sign = [rows.take(np.sign(rows["correlation"]) == each) for each in (1, -1)]
        gains = {
            name: by_sign[0][each] - by_sign[1][each]
            for name, each in (
                ("PDQ", column),
                ("foreground", column_of("foreground", preset)),
                ("background", column_of("background", preset)),
            )
        }
        wanted = {"PDQ": sign, "foreground": 1, "background": -1}
        holds &= all(bool((wanted[name] * gain > EXACT).all()) and len(gain) == 2 for name, gain in gains.items())
        worst = {name: float(gain[np.argmin(wanted[name] * gain)]) for name, gain in gains.items()}
        shown.append(", ".join(f"{name} {value:+.3f}" for name, value in worst.items()) + f" under `{preset}`")
        numbers |= {f"{name}, {preset}": value for name, value in worst.items()}
    if not shown:
        return not_measured(claim, "PDQ")
    return Claim(
        claim,
        holds,
        "a positive correlation changes " + "; ".join(shown),
        f"PDQ {'+' if sign > 0 else '-'}, foreground +, background -, at both corners, under every preset",
        numbers,
    )


STORIES = Experiment(
    name="stories",
    section="A.2, A.4",
    varied="where made-up detections are unsure, beside where they are wrong, and how sure they are of labels",
    claim="uncertainty pays on the edge that is wrong, and nowhere else; a better box outweighs a surer label",
    function=tell_stories,
    judge=claims_of_stories,
    draw=draw_stories,
)

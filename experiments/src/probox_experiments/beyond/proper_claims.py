"""Claims on proper and improper scores, and their figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import (
    Claim,
    Floats,
    Mean,
    ResultTable,
    column_of,
    equals,
    mean_of,
    not_measured,
    peak_of,
    presets_in,
)
from probox_experiments.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    Axes,
    Figure,
    new_figure,
    set_log_ticks,
)
from probox_experiments.synthetic import boxes_truth

# --- Detections whose errors and labels follow known distributions ---


SCALE = 3.0
"""Scale of the errors of all four edges in pixels; the standard deviation of Gaussian errors."""
FREEDOM = 2.5
"""Degrees of freedom of Student's t: its variance is 5 times the squared scale, its fourth moment is infinite."""

ERRORS: Mapping[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "laplace": lambda rng, shape: rng.laplace(size=shape),
    "student": lambda rng, shape: rng.standard_t(FREEDOM, shape),
}
"""The distributions of errors, of scale 1."""


def _steps(step: float, first: int, last: int) -> tuple[float, ...]:
    return tuple(round(SCALE * math.exp(step * number), 4) for number in range(first, last + 1))


SIGMAS = {"gaussian": _steps(0.08, -2, 2), "laplace": _steps(0.1, 1, 7), "student": _steps(0.12, 1, 10)}
"""Grid of reported standard deviations, around the expected optima."""

MARGIN = 150
"""Distance from a box to the border of its image in pixels."""
LAST_PIXEL = np.array([0.0, 0.0, 1.0, 1.0])
"""Boxes end with their last pixel, one before their far edges."""
LOW = frozenset(("NLL", "energy", "CRPS", "PMB_NLL", "Brier", "ignorance"))
"""Scores for which lower is better."""
NAMED = ("object's", "likelier")
"""Class named by detections: with the object's class, matching within classes finds every object."""
OBJECTS = 20
"""Number of objects in the study of labels; fractions are multiples of 1/20."""


def drawn_around_boxes(errors: str, side: int, boxes: int, seed: tuple[int, int]) -> tuple[GroundTruth, Floats]:
    """Return objects, and the boxes (x1, y1, x2, y2, the far edges) around which their edges were drawn."""
    rng = np.random.default_rng([*seed, list(ERRORS).index(errors), side])
    image = side + 2 * MARGIN
    first = MARGIN + rng.random((boxes, 1, 2))  # anywhere in a pixel
    means = np.concatenate([first, first + side], axis=1)
    edges = (means + SCALE * ERRORS[errors](rng, means.shape)).clip(0, image)
    while (turned := edges[:, 1] - edges[:, 0] < 1).any():  # an object has at least one pixel
        row, axis = np.nonzero(turned)
        again = means[row, :, axis] + SCALE * ERRORS[errors](rng, (len(row), 2))
        edges[row, :, axis] = again.clip(0, image)
    corners = edges.reshape(-1, 4)
    touched = np.concatenate([np.floor(corners[:, :2]), np.ceil(corners[:, 2:]) - 1], axis=1)
    each = np.arange(boxes)
    truth = boxes_truth(("object",), touched.astype(np.int32), image, image_ids=each, image_rows=each)
    return truth.replace(boxes=corners - LAST_PIXEL, extents=corners[:, 2:] - corners[:, :2]), means.reshape(-1, 4)


def report_sigma(means: Floats, sigma: float) -> Detections:
    return Detections(
        classes=("object",),
        image_ids=np.arange(len(means)),
        boxes=means - LAST_PIXEL,
        extents=means[:, 2:] - means[:, :2],
        label_probs=np.ones((len(means), 1), np.float32),
        covariances=np.broadcast_to(sigma**2 * np.eye(2), (len(means), 2, 2, 2)),
    )


def draw_labels(share: float, probability: float, named: str) -> tuple[GroundTruth, Detections]:
    """Return objects of class A (a fraction) and B, and perfect boxes with equal label probabilities."""
    labels = (np.arange(OBJECTS) >= round(share * OBJECTS)).astype(np.int32)
    pixels = np.tile(np.array([4, 4, 7, 7], np.int32), (OBJECTS, 1))
    each = np.arange(OBJECTS)
    truth = boxes_truth(("A", "B"), pixels, 12, image_ids=each, image_rows=each, labels=labels)
    found = Detections(
        classes=truth.classes,
        image_ids=each,
        boxes=pixels.astype(np.float64),
        extents=np.full((OBJECTS, 2), 4.0),
        label_probs=np.tile([probability, 1 - probability], (OBJECTS, 1)),
        labels=labels if named == NAMED[0] else np.full(OBJECTS, int(probability < 0.5), np.int32),
    )
    return truth, found


# --- Claims on reported label probabilities ---


def best_probability(share: npt.ArrayLike) -> Floats:
    """Return the p that maximizes q sqrt(p) + (1 - q) sqrt(1 - p), for a class that is right with probability q."""
    q = np.asarray(share, dtype=np.float64)
    return np.asarray(q**2 / (q**2 + (1 - q) ** 2))


def claims_of_labels(table: ResultTable) -> list[Claim]:
    """Return the claims on the best reported probability for PDQ, Brier score and ignorance."""
    labels = table.where(study="label")
    rows, likelier = labels.where(named=NAMED[0]), labels.where(named=NAMED[1])
    q, p = labels["share"], labels["probability"]
    return [
        equals(
            "Of perfect boxes whose class is A with probability q, and reported with p, PDQ is q sqrt(p) + (1 - q) "
            "sqrt(1 - p)",
            labels,
            {"PDQ": q * np.sqrt(p) + (1 - q) * np.sqrt(1 - p)},
        ),
        _label_choice(
            "PDQ is best with p = q^2 / (q^2 + (1 - q)^2), not with q: it is not proper, and rewards overconfidence",
            rows,
            list(presets_in(rows).values()),
            best_probability,
            _cost_of_calibration(rows),
        ),
        _label_choice("Brier score and ignorance are best with p = q", rows, ["Brier", "ignorance"], np.asarray),
        _label_choice(
            "If pairs are matched within classes, and detections name the likelier class, Brier score and ignorance "
            "are best with the highest p",
            likelier.take(likelier["share"] > 0.5),
            ["Brier", "ignorance"],
            lambda share: np.full(np.shape(share), likelier["probability"].max(initial=0.0)),
            "Objects of the other class are unmatched and do not count.",
        ),
    ]


def best_reports(rows: ResultTable, score: str) -> dict[float, float]:
    """Return the reported probability with the best score for each fraction q."""
    sign = -1.0 if score in LOW else 1.0
    best = {}
    for share in np.unique(rows["share"]).tolist():
        one = rows.where(share=share)
        best[share] = float(one["probability"][np.argmax(sign * one[score])])
    return best


def _label_choice(
    words: str,
    rows: ResultTable,
    scores: Sequence[str],
    predicted: Callable[[Floats], Floats],
    explanation: str = "",
) -> Claim:
    """Return the claim that scores are best with the predicted probability, within the grid's resolution."""
    grid = np.unique(rows["probability"])
    if len(grid) < 3 or not scores:
        return not_measured(words, "three probabilities or more")
    step = float(np.diff(grid).max())
    described, off = [], {}
    for score in scores:
        best = best_reports(rows, score)
        wanted = predicted(np.array(list(best)))
        off[score] = float(np.abs(np.array(list(best.values())) - wanted).max())
        described.append(f"{score}: " + ", ".join(f"{p:g} for q = {q:g}" for q, p in best.items()))
    return Claim(
        words,
        all(distance <= step * (1 + 1e-9) for distance in off.values()),
        "; ".join(described),
        f"within a grid step of {step:.3g} of the predicted p",
        {f"largest difference, {score}": distance for score, distance in off.items()},
        explanation,
    )


def _cost_of_calibration(rows: ResultTable) -> str:
    """Return a sentence on the largest cost of reporting q, for fractions that are among the probabilities."""
    lost: dict[float, float] = {}
    for column in presets_in(rows).values():
        for share in np.unique(rows["share"]).tolist():
            one = rows.where(share=share)
            calibrated = one[column][np.isclose(one["probability"], share)]
            if len(calibrated):
                lost[share] = max(lost.get(share, 0.0), 1 - float(calibrated[0]) / float(one[column].max()))
    if not lost:
        return ""
    worst = max(lost, key=lambda share: lost[share])
    return f"Reporting q costs up to {100 * lost[worst]:.2g}% of PDQ, most for q = {worst:g}."


# --- Claims on reported standard deviations ---


PROPER_SCORES = ("NLL", "energy", "CRPS", "PMB_NLL", "log_pPDQ")
"""Scores that are expected to be best at the true standard deviation of Gaussian errors."""
PAPER, REFERENCE = column_of("PDQ", "paper"), column_of("PDQ", "reference")

IN_WORDS = {
    "NLL": "NLL",
    "energy": "the energy score",
    "CRPS": "CRPS",
    "PMB_NLL": "PMB-NLL",
    "log_pPDQ": "the mean logarithm of pPDQ",
    PAPER: "PDQ under `paper`",
    REFERENCE: "PDQ under `reference`",
}
OF_ERRORS = {
    "gaussian": f"Gaussian errors of std {SCALE:g}",
    "laplace": f"Laplace errors of scale {SCALE:g}",
    "student": f"Student errors of scale {SCALE:g}",
}

PREDICTED = {
    ("gaussian", PAPER): 2.9,
    ("gaussian", REFERENCE): 3.13,
    ("laplace", "NLL"): 4.24,
    ("laplace", "PMB_NLL"): 4.24,
    ("laplace", "energy"): 3.88,
    ("laplace", "CRPS"): 3.55,
    ("laplace", PAPER): 4.22,
    ("laplace", REFERENCE): 4.87,
    ("student", PAPER): 4.2,
    ("student", "NLL"): 5.4,
    ("student", "energy"): 3.6,
    ("student", "CRPS"): 3.93,
    ("student", REFERENCE): 5.84,
}
"""Predicted standard deviations for objects 100 pixels wide. The first, and the first three of Student errors, are
guesses from before the theory of module `proper`. PDQ's others follow from the theory, CRPS's from its derivative,
NLL's from the root mean square error, and the energy score's from many draws of errors."""
SAME = 3.0
"""Tolerance of proper scores in standard errors. With five scores and 2, one run in five would fail by chance."""
TOLERANCE = 0.05
"""Relative tolerance of predicted standard deviations, or two standard errors if that is more."""
WHY = {
    (
        "student",
        PAPER,
    ): "The prediction was a guess. For a single straight edge the best value is 5.04, for objects of 30 pixels 4.2.",
    (
        "student",
        "NLL",
    ): "The best value for NLL is the root mean square error, 6.7 in expectation. Boxes with an IoU below 0.5 are "
    "unmatched, and small samples contain few outliers.",
    ("student", "energy"): "The prediction was a guess. For four independent edges the best value is 4.5.",
}

RATIOS = {"paper": (1.0, 0.45), "reference": (1.061, 0.6)}
"""PDQ's best over the true standard deviation: the first number minus the second times std / side."""
ROUGH = 0.01
"""Tolerance of this formula, plus (std / side)^2 for omitted terms; also the tolerance of the parabola on the grid."""
NEAR = 0.1
"""Relative tolerance between PDQ's best and the true standard deviation for objects of size `LARGE`."""
LARGE, SMALL = 30.0, 5.0
"""Limits of the side of large and small objects, in standard deviations."""
COST = 0.01
"""Largest accepted cost of reporting the true standard deviation, as a fraction of the best PDQ. A relative error d
costs about 1.6 d^2 std / side: 0.6% for objects 4 standard deviations wide, far less for larger ones."""


def claims_of_proper(table: ResultTable) -> list[Claim]:
    """Return the claims on propriety: which scores are best at the true values, and the deviation of PDQ."""
    return [*claims_of_errors(table), *_claims_of_sides(table), *claims_of_labels(table)]


def best_sigmas(rows: ResultTable, score: str) -> Floats:
    """Return the standard deviation with the best score in every repeat."""
    sign = -1.0 if score in LOW else 1.0
    repeats = [rows.where(repeat=repeat) for repeat in np.unique(rows["repeat"]).tolist()]
    return np.array([peak_of(one["sigma"], sign * one[score]) for one in repeats])


def best_ratios(rows: ResultTable, score: str) -> Floats:
    """Return the standard deviation with the best score over that of the drawn errors, in every repeat.

    The latter is the root mean square error. It differs from the true value by chance, which both have in common, and
    for small objects because edges must not cross each other.
    """
    drawn = [rows.where(repeat=repeat)["rms"][0] for repeat in np.unique(rows["repeat"]).tolist()]
    ratios: Floats = best_sigmas(rows, score) / np.array(drawn)
    return ratios


def claims_of_errors(table: ResultTable) -> list[Claim]:
    """Return the claims on the best standard deviation of each score, by distribution of errors."""
    rows = _spread(table)
    rows = rows.take(~np.isnan(rows["energy"]))
    own = {
        (errors, score): best_sigmas(rows.where(errors=errors), score)
        for errors in OF_ERRORS
        for score in IN_WORDS
        if score in rows and _can_peak(rows.where(errors=errors))
    }
    claims = [_proper(score, own.get(("gaussian", score))) for score in PROPER_SCORES]
    claims += [_predicted(errors, score, own.get((errors, score))) for errors, score in PREDICTED]
    return [*claims, _order(own), _larger_under_reference(own)]


def _can_peak(rows: ResultTable) -> bool:
    """Return whether there are enough standard deviations to locate a peak."""
    return len(np.unique(rows["sigma"])) >= 3


def _spread(table: ResultTable) -> ResultTable:
    return table.where(study="sigma")


def _proper(score: str, own: Floats | None) -> Claim:
    words = f"For Gaussian errors {IN_WORDS[score]} is best with the true std"
    if own is None or len(own) < 2:
        return not_measured(words, "two repeats or more")
    mean = mean_of(own)
    return Claim(
        words,
        abs(mean.value - SCALE) <= SAME * mean.error,
        f"best with {mean} pixels over {len(own)} repeats",
        f"within {SAME:g} standard errors of {SCALE:g}",
        {"best std": mean.value, "standard error": mean.error},
    )


def _predicted(errors: str, score: str, own: Floats | None) -> Claim:
    expected = PREDICTED[errors, score]
    words = f"For {OF_ERRORS[errors]}, {IN_WORDS[score]} is best with a std of about {expected:g} pixels"
    limit = f"within {100 * TOLERANCE:g}% of {expected:g}, or 2 standard errors if that is more"
    if own is None:
        return not_measured(words, limit)
    mean = mean_of(own)
    return Claim(
        words,
        bool(abs(mean.value - expected) <= np.fmax(TOLERANCE * expected, 2 * mean.error)),
        f"{mean} over {len(own)} repeats, from {own.min():.2f} to {own.max():.2f}",
        limit,
        {"best std": mean.value, "standard error": mean.error},
        WHY.get((errors, score), ""),
    )


def _order(own: dict[tuple[str, str], Floats]) -> Claim:
    words = (
        "For Student errors, the best std of PDQ under `paper` is larger than that of the energy score and smaller "
        "than that of NLL"
    )
    energy, pdq, nll = (own.get(("student", score)) for score in ("energy", PAPER, "NLL"))
    if energy is None or pdq is None or nll is None:
        return not_measured(words, "PDQ under `paper`, NLL and the energy score")
    return _above(
        words,
        {"PDQ over energy": mean_of(pdq - energy), "NLL over PDQ": mean_of(nll - pdq)},
        "NLL grows with the square of the error, the energy score linearly. pPDQ is bounded: beyond some error it "
        "remains 0.",
    )


def _larger_under_reference(own: dict[tuple[str, str], Floats]) -> Claim:
    words = "For heavy tails, the best std of PDQ is larger under `reference` than under `paper`"
    steps = {
        f"{errors}: reference over paper": mean_of(own[errors, REFERENCE] - own[errors, PAPER])
        for errors in ("laplace", "student")
        if (errors, REFERENCE) in own and (errors, PAPER) in own
    }
    if not steps:
        return not_measured(words, "both presets")
    return _above(
        words,
        steps,
        "`reference` sets probabilities below 0.0027 to 0, and a pixel of probability 0 costs 32 nats. Under `paper` "
        "an error of 7.7 standard deviations costs as much.",
    )


def _above(words: str, steps: dict[str, Mean], explanation: str = "", unit: str = " pixels") -> Claim:
    """Return the claim that paired differences are significantly above 0."""
    if any(math.isnan(step.error) for step in steps.values()):
        return not_measured(words, "two repeats or more")
    return Claim(
        words,
        all(step.is_above() for step in steps.values()),
        "; ".join(f"{name}: {step}{unit}" for name, step in steps.items()),
        "above 0 by more than 2 standard errors",
        {name: step.value for name, step in steps.items()},
        explanation,
    )


# --- Claims on the size of objects ---


def predicted_ratio(preset: str, sides: npt.ArrayLike) -> Floats:
    """Return the predicted ratio of PDQ's best to the true standard deviation, for objects of these sides in pixels."""
    whole, part = RATIOS[preset]
    return np.asarray(whole - part * SCALE / np.asarray(sides, dtype=np.float64))


def _claims_of_sides(table: ResultTable) -> list[Claim]:
    rows = _spread(table)
    rows = rows.where(errors="gaussian")
    columns = presets_in(rows)
    found = {
        (preset, side): best_ratios(rows.where(side=side), column)
        for preset, column in columns.items()
        for side in np.unique(rows["side"]).tolist()
        if _can_peak(rows.where(side=side))
    }
    large = {key: own for key, own in found.items() if key[1] >= LARGE * SCALE}
    small = {key: own for key, own in found.items() if key[1] < SMALL * SCALE}
    return [
        _near(large),
        _improper(small),
        *(_follows_formula(preset, found) for preset in RATIOS),
        _cost(rows, columns),
        _cut_off(rows.take((rows["side"] < SMALL * SCALE) & ~np.isnan(rows["NLL"]))),
    ]


def _in_words(found: dict[tuple[str, float], Mean]) -> str:
    return "; ".join(f"{side:g} pixels, `{preset}`: {mean}" for (preset, side), mean in found.items())


def _near(found: dict[tuple[str, float], Floats]) -> Claim:
    words = f"For objects at least {LARGE:g} std wide PDQ is best within {100 * NEAR:g}% of the true std"
    if not found:
        return not_measured(words, f"objects at least {LARGE * SCALE:g} pixels wide")
    means = {key: mean_of(own) for key, own in found.items()}
    worst = float(np.max([abs(mean.value - 1) for mean in means.values()]))  # NaN stays NaN
    return Claim(
        words,
        worst <= NEAR,
        f"best over true std: {_in_words(means)}",
        f"{1 - NEAR:g} to {1 + NEAR:g}",
        {"largest difference": worst},
    )


def _improper(found: dict[tuple[str, float], Floats]) -> Claim:
    words = f"For objects less than {SMALL:g} std wide PDQ is best below the true std: it is not proper"
    if not found:
        return not_measured(words, f"objects less than {SMALL * SCALE:g} pixels wide")
    return _above(
        words,
        {f"1 - ratio, {side:g} pixels, `{preset}`": mean_of(1 - own) for (preset, side), own in found.items()},
        "PDQ is a mean of qualities between 0 and 1. A smaller std improves good boxes, and bad boxes have a quality "
        "near 0 in any case.",
        unit="",
    )


def _follows_formula(preset: str, found: dict[tuple[str, float], Floats]) -> Claim:
    whole, part = RATIOS[preset]
    words = f"PDQ's best std over the true one is {whole:g} - {part:g} std / side under `{preset}`"
    means = {key: mean_of(own) for key, own in found.items() if key[0] == preset}
    if not means or any(math.isnan(mean.error) for mean in means.values()):
        return not_measured(words, f"preset `{preset}`, two repeats or more")
    beyond = {
        key: abs(mean.value - float(predicted_ratio(preset, key[1]))) - 2 * mean.error - ROUGH - (SCALE / key[1]) ** 2
        for key, mean in means.items()
    }
    return Claim(
        words,
        all(value <= 0 for value in beyond.values()),
        "; ".join(
            f"{side:g} pixels: {mean}, predicted {float(predicted_ratio(preset, side)):.3f}"
            for (_, side), mean in means.items()
        ),
        f"within {ROUGH:g} + (std / side)^2, the tolerance of the formula, and 2 standard errors",
        {f"{side:g} pixels": mean.value for (_, side), mean in means.items()},
    )


def _cost(rows: ResultTable, columns: dict[str, str]) -> Claim:
    words = f"Reporting the true std costs at most {100 * COST:g}% of PDQ at any size"
    true = rows.where(sigma=SCALE)
    if not columns or not len(true):
        return not_measured(words, f"PDQ with std {SCALE:g}")
    lost: dict[str, float] = {}
    for preset, column in columns.items():
        for side in np.unique(true["side"]).tolist():
            own = rows.where(side=side)
            best = max(own.where(sigma=sigma)[column].mean() for sigma in np.unique(own["sigma"]).tolist())
            lost[f"{side:g} pixels, `{preset}`"] = 1 - float(true.where(side=side)[column].mean() / best)
    worst = max(lost, key=lambda name: math.inf if math.isnan(lost[name]) else lost[name])
    return Claim(
        words,
        lost[worst] <= COST,
        f"most for objects of {worst}: {100 * lost[worst]:.2g}% less than with the best std of the grid",
        f"at most {100 * COST:g}%",
        lost,
    )


def _cut_off(rows: ResultTable) -> Claim:
    words = (
        f"For objects less than {SMALL:g} std wide PMB-NLL is best with the true std, but NLL of COCO's pairs below it"
    )
    if len(np.unique(rows["repeat"])) < 2:
        return not_measured(words, f"objects less than {SMALL * SCALE:g} pixels wide, two repeats or more")
    sets, pairs = (mean_of(best_ratios(rows, score)) for score in ("PMB_NLL", "NLL"))
    return Claim(
        words,
        abs(sets.value - 1) <= ROUGH and 1 - pairs.value > 2 * pairs.error,
        f"best over true std: PMB-NLL {sets}, NLL {pairs}, smallest value of the grid "
        f"{rows['sigma'].min() / SCALE:.3g}",
        f"1 within {ROUGH:g}, and less than 1 by more than 2 standard errors",
        {"PMB-NLL": sets.value, "NLL": pairs.value},
        "A pair needs an IoU of 0.5, which excludes larger errors of small objects. The remaining errors are smaller. "
        "PMB-NLL has no IoU threshold.",
    )


# --- Figure: best report of each score ---

SCORES = {
    "CRPS": ("CRPS", GREEN, "^"),
    "energy": ("energy score", ORANGE, "D"),
    "NLL": ("NLL", VERMILION, "s"),
    "PMB_NLL": ("PMB-NLL", VERMILION, "x"),
    PAPER: ("PDQ, `paper`", BLUE, "o"),
    REFERENCE: ("PDQ, `reference`", BLUE, "o"),
    "log_pPDQ": ("mean log pPDQ", SKY, "v"),
}
HOLLOW = (PAPER,)


def draw_proper(table: ResultTable) -> Figure:
    """Draw the best standard deviation of every score, PDQ's against object size, and the best label probability."""
    figure = new_figure(8.0, 6.2)
    halves: Any = figure.subfigures(2, 1, height_ratios=[1.0, 1.05])
    above, below = halves
    spread = table.where(study="sigma")
    every = spread.take(~np.isnan(spread["energy"]))
    kinds = [errors for errors in ERRORS if errors in every["errors"]]
    if kinds:
        for number, (axes, errors) in enumerate(
            zip(np.atleast_1d(above.subplots(1, len(kinds), sharey=True)), kinds, strict=True)
        ):
            _choices(axes, every.where(errors=errors), errors)
            if number:
                axes.tick_params(labelleft=False)
    left, right = below.subplots(1, 2)
    _sides(left, spread.where(errors="gaussian"))
    _labels(right, table.where(study="label", named=NAMED[0]))
    return figure


def _choices(axes: Axes, rows: ResultTable, errors: str) -> None:
    shown = [score for score in SCORES if score in rows]
    for place, score in enumerate(shown):
        _, colour, marker = SCORES[score]
        best = mean_of(best_sigmas(rows, score))
        fill = "white" if score in HOLLOW else colour
        look: dict[str, Any] = {"color": colour, "mfc": fill, "ms": 5.5, "capsize": 2.5}
        axes.errorbar(best.value, -place, xerr=np.nan_to_num(2 * best.error), fmt=marker, **look)
        at = best.value, -place
        axes.annotate(f"{best.value:.2f}", at, (0, 5), textcoords="offset points", ha="center", fontsize=7.5)
    axes.axvline(SCALE, color="#C9C9C9", lw=0.9, zorder=0.5)
    axes.set_yticks(-np.arange(len(shown)), [SCORES[score][0].replace("`", "") for score in shown])
    axes.set_ylim(-len(shown) + 0.5, 0.8)
    axes.margins(x=0.16)
    axes.set_xlabel("best std (pixels, ± 2 s.e.)")
    titles = {"gaussian": f"std {SCALE:g}", "laplace": f"scale {SCALE:g}", "student": f"{FREEDOM:g} degrees"}
    axes.set_title(f"{errors.capitalize()}, {titles[errors]}")


def _sides(axes: Axes, rows: ResultTable) -> None:
    axes.axhline(1, color="#C9C9C9", lw=0.9, zorder=0.5)
    sides = np.unique(rows["side"])
    fine = np.exp(np.linspace(np.log(sides.min()), np.log(sides.max()), 60)) if len(sides) else sides
    for preset, column in presets_in(rows).items():
        best = [mean_of(best_ratios(rows.where(side=side), column)) for side in sides.tolist()]
        line, hollow = ("-", BLUE) if preset == "reference" else ("--", "white")
        if preset in ("reference", "paper"):
            axes.plot(fine / SCALE, predicted_ratio(preset, fine), color=GREY, ls=line, lw=1.0)
        means, errors = [mean.value for mean in best], np.nan_to_num([2 * mean.error for mean in best])
        look: dict[str, Any] = {"color": BLUE, "mfc": hollow, "ms": 5, "capsize": 2.5, "label": f"PDQ, {preset}"}
        axes.errorbar(sides / SCALE, means, errors, fmt="o", **look)
    axes.plot([], [], color=GREY, lw=1.0, label="predicted (dashed: paper)")
    set_log_ticks(axes, sides / SCALE, ".3g")
    axes.set_xlabel("side of the object / true std")
    axes.set_ylabel("best std / true std (± 2 s.e.)")
    axes.set_title("Small objects: below the true std")
    axes.legend(loc="lower right")


def _labels(axes: Axes, rows: ResultTable) -> None:
    q = np.linspace(0.5, 1, 101)
    axes.plot(q, best_probability(q), color=GREY, lw=1.0, label="q² / (q² + (1 \N{MINUS SIGN} q)²)")
    axes.plot(q, q, color="#C9C9C9", lw=1.0, label="q: calibrated")
    looks = {"Brier": (GREEN, "^", 8.5), "ignorance": (ORANGE, "D", 4.5)}
    for score, (colour, marker, size) in looks.items():
        best = best_reports(rows, score)
        axes.plot(list(best), list(best.values()), marker, color=colour, ms=size, mfc="white", label=score)
    for preset, column in reversed(presets_in(rows).items()):  # the smaller marker on top
        best = best_reports(rows, column)
        size, fill = (7.5, "white") if preset == "paper" else (4.5, BLUE)
        axes.plot(list(best), list(best.values()), "o", color=BLUE, ms=size, mfc=fill, label=f"PDQ, {preset}")
    axes.set_xlabel("probability of the class, q")
    axes.set_ylabel("best reported p")
    axes.set_title("Labels: PDQ rewards overconfidence")
    axes.legend(loc="lower right")

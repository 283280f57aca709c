"""Probabilistic segmentation: the uncertainty of a mask against that of a box.

The paper's conclusion names probabilistic instance segmentation as what comes next: PDQ goes by the probability of
every pixel, and it does not matter to it whether a Gaussian box or a mask says so. Here a detector errs about where an
outline lies, by a sigma s that we know, and reports one of four things: the sure box around what it sees, a box with
Gaussian corners of sigma r, the sure mask, or for every pixel the probability that an outline that errs with sigma r
has it inside.

What was foreseen. Where everything outside an object's *mask* is background, every pixel is scored by the logarithm of
what it was given, so the true probabilities are the best report, but for the little that PDQ prefers smaller sigmas
(experiment `proper`); and whoever fills the empty part of a box pays 1e-14 to the power of its share. Where, as in the
paper, only what is outside the object's *box* is background, the empty part costs nothing. There a mask loses along its
outline, on the inside alone, and a Gaussian box along that of the box, on the outside alone: the shorter one wins.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.errors import InputError
from probox.measures.pdq.kernel import heatmap
from probox.measures.scoring.scores import normal_cdf
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import (
    EXACT,
    Claim,
    Floats,
    Mean,
    ResultTable,
    Verdict,
    column_of,
    equals,
    judge_presets,
    mean_of,
    not_measured,
    peak_of,
    presets_in,
)
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, GREEN, GREY, ORANGE, VERMILION, Axes, Figure, new_figure, set_log_ticks
from probox_experiments.running import Run
from probox_experiments.synthetic import fingerprint, plane_scene, synthetic_truth, tight_box

Mask = npt.NDArray[np.bool_]

REPORTS = ("sure box", "Gaussian box", "sure mask", "probabilistic mask")
BOXES, MASKS = REPORTS[:2], REPORTS[2:]

SIDES = (24, 120)
"""Objects of a truth are taken that are at least, and at most, so many pixels wide and high."""
REACH = 6.0
"""How many sigmas lie between an object and the border of its image; no detection lies farther off."""
MIDDLE = np.array([0.5, 0.5, -0.5, -0.5])
"""From first and last pixels to where a Gaussian corner makes both as probable as not to be the last."""
WAVES = 8
"""Of how many waves around an object the errors of a jittered outline are made."""
TABLE = (9.0, 20_000)
"""Where Phi is looked up: to both sides of 0, and in how many steps, so small that nothing between is off by more than
a hundred thousandth of it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """Objects in images of their own, and what a detector takes them for.

    Parameters
    ----------
    truth : GroundTruth
        The objects.
    found : list of (H, W) bool arrays
        The outlines that the detector sees.
    probabilities : callable
        Returns, for every pixel of every image, the probability that an object is there whose outline errs with this
        sigma.
    """

    truth: GroundTruth
    found: list[Mask]
    probabilities: Callable[[float], list[Floats]]


def _blur(mask: Mask, sigma: float) -> Floats:
    """Return the mean of a mask that is moved by whole pixels: a Gaussian of this sigma on both axes, rounded."""
    height, width = mask.shape
    steps = np.arange(max(height, width))
    share = normal_cdf((steps + 0.5) / sigma) - normal_cdf((steps - 0.5) / sigma)
    rows, columns = (share[np.abs(steps[:size, None] - steps[:size])] for size in (height, width))
    blurred: Floats = np.clip(rows @ mask.astype(np.float64) @ columns, 0.0, 1.0)
    return blurred


@cache
def _heights() -> Floats:
    end, steps = TABLE
    return normal_cdf(np.linspace(-end, end, steps + 1))


def _phi(z: Floats) -> Floats:
    """Return Phi of many numbers, from a table."""
    end, steps = TABLE
    place = ((z + end) * (steps / (2 * end))).clip(0.0, steps - 1e-9)
    below = place.astype(np.int64)
    heights = _heights()
    part = place - below
    values: Floats = heights[below] * (1 - part) + heights[below + 1] * part
    return values


def shapes_of(truth: GroundTruth, count: int) -> list[Mask]:
    """Return the masks of a truth's first `count` objects of a fitting size that do not fill their boxes."""
    boxes = truth.masks.boxes.astype(np.int64)
    sides = boxes[:, 2:] - boxes[:, :2] + 1
    fitting = (sides.min(axis=1) >= SIDES[0]) & (sides.max(axis=1) <= SIDES[1]) & ~truth.crowd
    rows = np.flatnonzero(fitting & (truth.masks.pixels < sides.prod(axis=1)))[:count]
    sizes = truth.dataset.shapes[truth.image_rows[rows]]
    shapes = []
    for row, (width, height) in zip(rows.tolist(), sizes.tolist(), strict=True):
        x0, y0, x1, y1 = boxes[row].tolist()
        shapes.append(truth.masks.to_array(row, height, width)[y0 : y1 + 1, x0 : x1 + 1])
    return shapes


def combs(count: int, seed: int) -> list[Mask]:
    """Return made-up shapes whose outlines are about twice as long as those of their boxes."""
    rng = np.random.default_rng([seed, count])
    shapes = []
    for _ in range(count):
        tooth, gap, height = rng.integers((14, 12, 70), (19, 17, 111)).tolist()
        teeth = np.arange(4 * tooth + 3 * gap) % (tooth + gap) < tooth
        shapes.append(np.tile(teeth, (height, 1)) | (np.arange(height) < tooth)[:, None])
    return shapes


def _own_images(masks: Sequence[Mask]) -> GroundTruth:
    return GroundTruth.from_masks(["object"], [(number, [mask], [0]) for number, mask in enumerate(masks)])


@dataclasses.dataclass(frozen=True, eq=False)
class Shapes:
    """Masks to be moved, with margins as wide as they may be moved."""

    masks: list[Mask]
    error: float

    @property
    def margin(self) -> int:
        """Return how many pixels lie between an object and the border of its image."""
        return math.ceil(REACH * self.error)

    @cached_property
    def truth(self) -> GroundTruth:
        """Return the masks in images of their own."""
        return _own_images([np.pad(mask, self.margin) for mask in self.masks])

    def blur(self, sigma: float) -> list[Floats]:
        """Return the masks with a second margin, moved by errors of this sigma, on average."""
        if self._kept.get("sigma") != sigma:  # the last one, which all repeats ask for in turn
            self._kept.update(sigma=sigma, maps=[_blur(np.pad(mask, 2 * self.margin), sigma) for mask in self.masks])
        maps: list[Floats] = self._kept["maps"]
        return maps

    @cached_property
    def _kept(self) -> dict[str, Any]:
        return {}

    def move(self, seed: Sequence[int]) -> Scene:
        """Return a scene whose detector sees every mask moved as a whole, by whole pixels, a Gaussian rounded."""
        margin = self.margin
        drawn = np.random.default_rng(seed).normal(0.0, self.error, (len(self.masks), 2))
        steps = np.round(drawn).clip(-margin, margin).astype(np.int64).tolist()

        def seen(maps: Iterable[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
            """Cut images out of what has two margins."""
            return [
                one[margin - y : one.shape[0] - margin - y, margin - x : one.shape[1] - margin - x]
                for one, (y, x) in zip(maps, steps, strict=True)
            ]

        found = seen(np.pad(mask, 2 * margin) for mask in self.masks)
        return Scene(self.truth, found, lambda sigma: seen(self.blur(sigma)))


def blobs(count: int, error: float, seed: Sequence[int]) -> Scene:
    """Return a scene of irregular blobs whose detector errs about the radius in every direction, near ones alike.

    A pixel at distance d in a direction where the detector sees the radius R is in the object with probability
    Phi((R - d) / error).
    """
    shape_rng = np.random.default_rng([seed[0], count])  # the same blobs in every repeat
    rng = np.random.default_rng(seed)
    masks, places = [], []
    for _ in range(count):
        size = shape_rng.uniform(20.0, 36.0)
        form = shape_rng.normal(0.0, 0.1 * size, (2, 4))
        errors = rng.normal(0.0, error / math.sqrt(WAVES), (2, WAVES))
        half = math.ceil(1.6 * size + REACH * error)
        y, x = np.mgrid[-half : half + 1, -half : half + 1].astype(np.float64)
        distance = np.hypot(x, y)
        direction = (x + 1j * y) / np.maximum(distance, 1.0)
        # Bounded, so that an object stays one and fits its image.
        radius = size + _waves(direction, form, 2).clip(-0.6 * size, 0.6 * size)
        masks.append(distance < radius)
        places.append(radius + _waves(direction, errors, 0) - distance)
    found = [place > 0 for place in places]
    return Scene(_own_images(masks), found, lambda sigma: [_phi(place / sigma) for place in places])


def _waves(direction: npt.NDArray[np.complex128], amplitudes: Floats, first: int) -> Floats:
    """Return a sum of waves around the circle, with `first` periods and more."""
    power = direction**first
    total = np.zeros(direction.shape)
    for cosine, sine in amplitudes.T.tolist():
        total += cosine * power.real + sine * power.imag
        power = power * direction
    return total


def detections(scene: Scene, report: str, sigma: float) -> Detections:
    """Return what a detector reports of what it sees."""
    boxes = np.array([tight_box(mask) for mask in scene.found], dtype=np.float64).reshape(-1, 4)
    heatmaps: list[npt.NDArray[np.generic]] | None = None
    covariances = None
    if report == "Gaussian box":
        boxes = boxes + MIDDLE
        covariances = np.broadcast_to(sigma**2 * np.eye(2), (len(boxes), 2, 2, 2))
    elif report in MASKS:
        certain = [mask.astype(np.float64) for mask in scene.found]
        heatmaps = [*(scene.probabilities(sigma) if report == "probabilistic mask" else certain)]
    return Detections(
        classes=("object",),
        image_ids=scene.truth.image_ids,
        boxes=boxes,
        label_probs=np.ones((len(boxes), 1), np.float32),
        covariances=covariances,
        heatmaps=None if heatmaps is None else tuple(heatmaps),
    )


def empty_part(mask: Mask) -> float:
    """Return how many pixels of a mask's box are not its own, over those that are."""
    x1, y1, x2, y2 = tight_box(mask).tolist()
    pixels = int(mask.sum())
    return float((x2 - x1 + 1) * (y2 - y1 + 1) - pixels) / pixels


def outline(truth: GroundTruth, error: float) -> float:
    """Return how long the outlines of objects are against those of their boxes, as far as errors of this size see.

    An outline's length is the integral over the gradient of the blurred mask. Both are counted per pixel of the object,
    as PDQ counts what is lost along them.
    """
    lengths = np.zeros((len(truth), 2))
    for row, (width, height) in enumerate(truth.dataset.shapes.tolist()):
        mask = truth.masks.to_array(row, height, width)
        x1, y1, x2, y2 = tight_box(mask).tolist()
        gradient = np.hypot(*np.gradient(_blur(mask, error)))
        lengths[row] = np.array([gradient.sum(), 2.0 * (x2 - x1 + y2 - y1 + 2)]) / mask.sum()
    own, of_boxes = lengths.sum(axis=0)
    return float(own / of_boxes)


# --- What was foreseen of masks and boxes, and what became of it ---


SCENES = {"moved": "masks that were moved", "jittered": "blobs with jittered outlines"}
LESS = 0.05
"""What PDQ itself may ask for less than the true sigma, as a share: about 0.45 sigma / side, which is 0.056 for the
smallest objects and half of that for most."""
SHORTER, LONGER = 0.9, 1.1
"""An outline is shorter, or longer, than its box's if it is at most, or at least, so many times as long."""
LOST = 1e-8
"""Spatial qualities up to this are 0 under `reference`."""


def claims_of_segmentation(table: ResultTable) -> list[Claim]:
    """Judge reports of outlines in the wrong place, scene by scene, and perfect ones exactly."""
    claims = []
    for scene in SCENES:
        rows = table.where(scene=scene)
        claims += [_beats(rows, scene), _honest(rows, scene), _gains_less(rows, scene)]
    return [*claims, _shorter_wins(table), *_perfect(table.where(scene="perfect"))]


def of_report(rows: ResultTable, report: str, outside: str, ratio: float | None = None) -> ResultTable:
    """Return the rows of a report, of one sigma or of all, ordered by repeat."""
    chosen = rows.where(report=report, outside=outside)
    chosen = chosen if ratio is None else chosen.where(ratio=ratio)
    return chosen.take(np.argsort(chosen["repeat"], kind="stable"))


def scores(rows: ResultTable, report: str, outside: str, column: str) -> dict[float, Floats]:
    """Return what a report scores in every repeat, by reported over true sigma."""
    ratios = np.unique(of_report(rows, report, outside)["ratio"]).tolist()
    return {ratio: of_report(rows, report, outside, ratio)[column] for ratio in ratios}


def _best(of_ratio: dict[float, Floats]) -> tuple[float, Floats]:
    ratio = max(of_ratio, key=lambda one: float(of_ratio[one].mean()))
    return ratio, of_ratio[ratio]


def _has_all_reports(rows: ResultTable) -> bool:
    """Return whether there is the honest mask, every rival, and more than one repeat."""
    honest = {
        outside: len(of_report(rows, "probabilistic mask", outside, 1.0)) if len(rows) else 0
        for outside in ("box", "mask")
    }
    rivals = [len(of_report(rows, report, "mask")) for report in ("sure mask", "Gaussian box")] if len(rows) else [0]
    return min(*honest.values(), *rivals) > 1 and bool(presets_in(rows))


def _leads(rows: ResultTable, outside: str, column: str) -> dict[str, Mean]:
    """Return by how much the honest mask leads the sure one and the best Gaussian box, repeat by repeat."""
    own = of_report(rows, "probabilistic mask", outside, 1.0)[column]
    ratio, box = _best(scores(rows, "Gaussian box", outside, column))
    return {
        "sure mask": mean_of(own - of_report(rows, "sure mask", outside)[column]),
        f"Gaussian box of {ratio:g} sigma": mean_of(own - box),
    }


NEEDED = "the true sigma among those reported, and two repeats or more"


def _beats(rows: ResultTable, scene: str) -> Claim:
    words = (
        f"Of {SCENES[scene]}, where background is outside the mask, a probabilistic mask of the true sigma beats the "
        "sure mask and the best Gaussian box"
    )
    if not _has_all_reports(rows):
        return not_measured(words, NEEDED)
    steps = {
        f"over the {rival}, `{preset}`": lead
        for preset, column in presets_in(rows).items()
        for rival, lead in _leads(rows, "mask", column).items()
    }
    return Claim(
        words,
        all(lead.is_above() for lead in steps.values()),
        "PDQ " + "; ".join(f"{name}: {lead:+.4f}" for name, lead in steps.items()),
        "above 0 by more than 2 standard errors",
        {name: lead.value for name, lead in steps.items()},
    )


def _honest(rows: ResultTable, scene: str) -> Claim:
    words = (
        f"Of {SCENES[scene]}, where background is outside the mask, a probabilistic mask is best with the true sigma"
    )
    of_ratio = {
        preset: scores(rows, "probabilistic mask", "mask", column) for preset, column in presets_in(rows).items()
    }
    if not _has_all_reports(rows) or min(len(one) for one in of_ratio.values()) < 3:
        return not_measured(words, f"three sigmas or more, {NEEDED}")
    peaks = {
        preset: mean_of([peak_of(list(one), list(values)) for values in zip(*one.values(), strict=True)])
        for preset, one in of_ratio.items()
    }
    return Claim(
        words,
        all(abs(peak.value - 1) <= LESS + 2 * peak.error for peak in peaks.values()),
        "best sigma over the true one: " + "; ".join(f"`{preset}` {peak}" for preset, peak in peaks.items()),
        f"1, at most {LESS:g} and 2 standard errors off",
        {preset: peak.value for preset, peak in peaks.items()},
    )


def _gains_less(rows: ResultTable, scene: str) -> Claim:
    words = f"Of {SCENES[scene]}, a mask gains less over the best Gaussian box where background is outside the box"
    if not _has_all_reports(rows):
        return not_measured(words, NEEDED)

    def judge(preset: str, column: str) -> Verdict:
        gains = []
        for outside in ("box", "mask"):
            own = of_report(rows, "probabilistic mask", outside, 1.0)[column]
            gains.append(own - _best(scores(rows, "Gaussian box", outside, column))[1])
        of_box, of_mask = (mean_of(gain) for gain in gains)
        return (
            mean_of(gains[1] - gains[0]).is_above(),
            f"`{preset}`: {of_box:+.4f} outside the box, {of_mask:+.4f} outside the mask",
            {f"gain, {preset}, outside the box": of_box.value, f"gain, {preset}, outside the mask": of_mask.value},
        )

    return judge_presets(words, rows, "the difference above 0 by more than 2 standard errors", judge)


def _shorter_wins(table: ResultTable) -> Claim:
    words = (
        "Where background is outside the box, masks that were moved beat the best Gaussian box under `paper` if their "
        "outlines are shorter than those of their boxes, and lose if they are longer"
    )
    required = f"up to {SHORTER:g} a lead, from {LONGER:g} on the box's, by more than 2 standard errors"
    column = column_of("PDQ", "paper")
    told: list[str] = []
    numbers: dict[str, float] = {}
    verdicts: list[bool] = []
    for scene, what in (("moved", "masks of the truth"), ("combs", "combs")):
        rows = table.where(scene=scene)
        own = of_report(rows, "probabilistic mask", "box", 1.0)
        boxes = scores(rows, "Gaussian box", "box", column) if column in rows else {}
        if len(own) < 2 or not boxes:
            continue
        length, lead = float(own["outline"][0]), mean_of(own[column] - _best(boxes)[1])
        told.append(f"{what}: outlines {length:.2f} times as long, lead {lead:+.4f}")
        numbers |= {f"outline, {what}": length, f"lead, {what}": lead.value}
        if not SHORTER < length < LONGER:
            verdicts.append((1 if length <= SHORTER else -1) * lead.value > 2 * lead.error)
    if not verdicts:
        return not_measured(words, f"preset `paper`, {NEEDED}, and outlines of another length than those of boxes")
    return Claim(words, all(verdicts), "; ".join(told), required, numbers)


def _perfect(rows: ResultTable) -> list[Claim]:
    masks, boxes = (rows.where(report=report) for report in ("sure mask", "sure box"))
    one = {name: np.ones(len(masks)) for name in ("PDQ", "foreground", "background")}
    free = boxes.where(outside="box")
    return [
        equals("A perfect sure mask has PDQ 1, whatever is background", masks, one),
        equals(
            "Where background is outside the box, so has a perfect sure box: its empty part is free",
            free,
            {name: values[: len(free)] for name, values in one.items()},
        ),
        _empty_part_costs(boxes.where(outside="mask")),
    ]


def _empty_part_costs(rows: ResultTable) -> Claim:
    words = (
        "Where background is outside the mask, a perfect sure box has foreground quality 1, and background quality "
        "1e-14 to the power of its empty pixels over the object's"
    )
    columns = presets_in(rows) if len(rows) else {}
    if not columns:
        return not_measured(words, "perfect boxes")
    off, wrong = 0.0, 0
    for preset, column in columns.items():
        lost = (rows["foreseen"] <= LOST) & (preset != "paper")
        wrong += int((rows[column][lost] != 0).sum())
        kept = rows.take(~lost)
        # In logarithms, so that small qualities are compared as closely as large ones.
        with np.errstate(divide="ignore"):
            for name, power in (("PDQ", 0.5), ("foreground", 0.0), ("background", 1.0)):
                wanted = power * np.log(kept["foreseen"])
                distance = np.abs(np.log(kept[column_of(name, preset)]) - wanted) / np.maximum(np.abs(wanted), 1.0)
                off = max(off, float(np.max(distance, initial=0.0))) if not np.isnan(distance).any() else math.inf
    return Claim(
        words,
        off <= EXACT and not wrong,
        f"{len(rows)} objects, empty parts from {rows['empty'].min():.2f} to {rows['empty'].max():.2f}: logarithms of "
        f"qualities and PDQ at most {off:.2g} off; {wrong} that should be lost are not",
        f"at most {EXACT:g}, relative; no quality at all under `reference` where it is at most {LOST:g}",
        {"farthest off": off, "not lost": float(wrong)},
    )


# --- The four reports and what they score, drawn ---

COLOURS = dict(zip(REPORTS, (VERMILION, ORANGE, GREEN, BLUE), strict=True))
SHOWN_ERROR = 7.0
"""Of the pictures, in pixels."""


def draw_segmentation(table: ResultTable) -> Figure:
    """Draw a plane that was seen in the wrong place as each report has it, and PDQ against the reported sigma."""
    figure = new_figure(8.0, 6.8)
    halves: Any = figure.subfigures(2, 1, height_ratios=[0.62, 2.5])
    pictures, curves = halves
    _reports(pictures.subplots(1, 4))
    panels = curves.subplots(2, 2, sharex=True, sharey=True)
    for row, scene in zip(panels, ("moved", "jittered"), strict=True):
        for axes, outside in zip(row, ("mask", "box"), strict=True):
            _curves(axes, table.where(scene=scene), outside)
            what = "moved masks" if scene == "moved" else "jittered blobs"
            axes.set_title(f"{what.capitalize()}, background outside the {outside}")
            if scene == "jittered":
                axes.set_xlabel("reported sigma / true sigma")
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, lw=1.7, label=report) for report, colour in COLOURS.items()]
    if others := [preset for preset in presets_in(table) if preset != "reference"]:
        handles.append(Line2D([], [], color=GREY, lw=0.9, ls="--", label=f"under {' and '.join(others)}"))
    curves.legend(handles=handles, loc="outside lower center", ncols=5)
    return figure


def _reports(panels: np.ndarray[tuple[int], np.dtype[np.object_]]) -> None:
    plane = plane_scene()
    width, height = plane.dataset.shapes[0].tolist()
    mask = plane.masks.to_array(0, height, width)
    x1, y1, x2, y2 = plane.masks.boxes[0].tolist()
    scene = Shapes([mask[y1 : y2 + 1, x1 : x2 + 1]], SHOWN_ERROR).move([3])
    truth = scene.truth.masks.to_array(0, *scene.found[0].shape)
    for axes, report in zip(panels, REPORTS, strict=True):
        found = detections(scene, report, SHOWN_ERROR)
        if found.heatmaps is not None and found.heatmaps[0] is not None:
            shown = np.asarray(found.heatmaps[0], dtype=np.float64)
        else:
            covariances = None if found.covariances is None else found.covariances[0]
            rows, columns = truth.shape
            shown = heatmap(found.boxes[0], covariances, columns, rows, Convention.preset("paper"))
        axes.imshow(shown, cmap="Blues", vmin=0, vmax=1.25, interpolation="nearest")
        axes.contour(truth, levels=[0.5], colors="#1A1A1A", linewidths=0.6)
        axes.set_title(report.capitalize(), fontsize=9, color=COLOURS[report])
        axes.axis("off")


def _curves(axes: Axes, rows: ResultTable, outside: str) -> None:
    axes.axvline(1, color="#C9C9C9", lw=0.9, zorder=0.5)
    for preset, column in presets_in(rows).items() if len(rows) else ():
        line: dict[str, Any] = {"ls": "-", "lw": 1.7} if preset == "reference" else {"ls": "--", "lw": 0.9}
        for report in REPORTS:
            means = {ratio: mean_of(own).value for ratio, own in scores(rows, report, outside, column).items()}
            if list(means) == [0.0]:
                axes.axhline(means[0.0], color=COLOURS[report], **line)
            elif means:
                axes.plot(list(means), list(means.values()), color=COLOURS[report], **line)
    set_log_ticks(axes, (0.7, 1, 1.5, 2, 3, 5, 8))
    axes.set_ylim(0, 1)
    axes.set_ylabel("PDQ")


# --- Probabilistic segmentation: the uncertainty of a mask against that of a box ---

EPSILON = 1e-14
"""Added to every probability before its logarithm; a run that changes it is not what was foreseen."""
COMBS = 8
"""How many there are of shapes with long outlines."""
PERFECT = 10
"""So many objects of the truth, and the plane, are detected perfectly, each by itself."""
COLUMNS = ("foreground", "background")


def segmentation(
    truth: GroundTruth | None = None,
    *,
    error: float = 3.0,
    ratios: Sequence[float] = (0.6944, 0.8333, 1.0, 1.2, 1.44),
    wide_ratios: Sequence[float] = (1.8, 3.0, 5.0, 8.0),
    objects: int = 40,
    blob_count: int = 16,
    repeats: int = 8,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Report boxes or masks, surely or not, of outlines that were seen in the wrong place.

    Parameters
    ----------
    truth : GroundTruth
        Whose masks are detected: the first that are 24 to 120 pixels wide and high and do not fill their boxes. Each is
        put into an image of its own. Default: `synthetic_truth`.
    error : float
        The sigma of errors, in pixels. Masks of the truth are moved as a whole, on both axes; made-up blobs err in
        every direction by themselves.
    ratios : sequence of float
        The sigmas that are reported, over the true one.
    wide_ratios : sequence of float
        More of them for Gaussian boxes.
    objects, blob_count : int
        How many masks of the truth, and how many blobs.
    repeats, seed : int
        How often errors are drawn, and where that begins; all reports are of the same errors.
    run : Run, optional
        Threads, progress, checkpoint. The experiment says itself what is background.

    Returns
    -------
    ResultTable
        `scene` ("moved", "jittered", "combs", which are made up and moved, or "perfect"), `number` of a perfectly
        detected object (0 is the plane), `repeat`, `report`, `ratio` (reported over true sigma, 0 if sure), `outside`
        (background is outside the "box" or the "mask"); `PDQ`, `foreground`, `background` under every preset;
        `outline`, how long outlines are against those of boxes; `empty`, the pixels of a box that are not the object's
        over those that are; `foreseen`, what background quality a sure perfect box has for it.
    """
    run = run or Run()
    if not 0 < error <= 10:
        raise InputError(f"expected error above 0 and at most 10 pixels, but got {error:g}")
    if any(ratio <= 0 for ratio in (*ratios, *wide_ratios)):
        raise InputError("expected ratios above 0", remedy="sure reports are measured anyway")
    given = synthetic_truth() if truth is None else truth
    shapes = shapes_of(given, objects)
    plane = plane_scene()
    perfect = [plane.masks.to_array(0, *plane.dataset.shapes[0][::-1].tolist()), *shapes[:PERFECT]]
    runs = {
        outside: dataclasses.replace(run, changes={**run.changes, "background": outside}) for outside in ("box", "mask")
    }

    masks = {"moved": shapes, "combs": combs(COMBS, seed)}
    fitting = {scene: Shapes(own, error) for scene, own in masks.items()}
    alone = [Shapes([mask], 1e-9) for mask in perfect]

    @lru_cache(maxsize=repeats + 1)
    def drawn(scene: str, repeat: int, number: int) -> Scene:
        if scene == "jittered":
            return blobs(blob_count, error, [seed, repeat])
        return (alone[number] if scene == "perfect" else fitting[scene]).move([seed, repeat])

    @lru_cache(maxsize=1)  # for both kinds of background
    def found(scene: str, repeat: int, number: int, report: str, ratio: float) -> Detections:
        return detections(drawn(scene, repeat, number), report, ratio * error)

    @cache
    def length(scene: str) -> float:
        return math.nan if scene == "perfect" else outline(drawn(scene, 0, -1).truth, error)

    def point(scene: str, number: int, repeat: int, report: str, ratio: float, outside: str) -> dict[str, float]:
        truth, seen = drawn(scene, repeat, number).truth, found(scene, repeat, number, report, ratio)
        empty = empty_part(perfect[number]) if scene == "perfect" else math.nan
        return {
            **runs[outside].measure(truth, seen, also=COLUMNS, measures=()),
            "outline": length(scene),
            "empty": empty,
            "foreseen": EPSILON**empty,
        }

    sure: list[dict[str, Any]] = [{"report": report, "ratio": 0.0} for report in REPORTS[::2]]
    unsure = [
        {"report": report, "ratio": float(ratio)}
        for report in REPORTS[1::2]
        for ratio in (*ratios, *(wide_ratios if report in BOXES else ()))
    ]
    points = [
        {"scene": scene, "number": -1, "repeat": repeat, **what, "outside": outside}
        for scene, count in (("moved", len(shapes)), ("jittered", blob_count))
        for what in (*sure, *unsure)
        for repeat in range(repeats if count else 0)
        for outside in runs
    ]
    points += [
        {"scene": "combs", "number": -1, "repeat": repeat, "report": report, "ratio": float(ratio), "outside": "box"}
        for report in REPORTS[1::2]
        for ratio in ratios
        for repeat in range(repeats)
    ]
    points += [
        {"scene": "perfect", "number": number, "repeat": 0, **what, "outside": outside}
        for number in range(len(perfect))
        for what in sure
        for outside in runs
    ]
    circumstances: dict[str, Any] = {"seed": seed, "error": error, "objects": len(shapes), "blobs": blob_count}
    return run.table("segmentation", points, point, truth=fingerprint(given), **circumstances)


SEGMENTATION = Experiment(
    name="segmentation",
    section="none: ours",
    varied="sure and unsure boxes and masks of outlines that were seen in the wrong place",
    claim="where background is outside the mask, honest probabilities of pixels beat every box; where it is outside "
    "the box, as in the paper, they gain far less",
    function=segmentation,
    judge=claims_of_segmentation,
    draw=draw_segmentation,
)

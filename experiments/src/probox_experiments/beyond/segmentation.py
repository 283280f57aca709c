"""Probabilistic segmentation: the uncertainty of a mask compared with that of a box.

The paper's conclusion suggests probabilistic instance segmentation: PDQ uses the probability of every pixel, of a
Gaussian box or of a mask. Here a detector sees outlines with errors of known standard deviation σ. It reports a box, a
box with Gaussian corners of standard deviation r, a binary mask, or the probability of each pixel for outlines with
errors of standard deviation r.

Predictions. If everything outside an object's *mask* is background, every pixel has a log score. The true probabilities
are then optimal, except that PDQ prefers slightly smaller standard deviations (experiment `proper`). Filling the empty
part of a box costs 1e-14 to the power of its fraction. If only pixels outside the object's *box* are background, as in
the paper, the empty part costs nothing. A mask then loses along its outline, inside only, and a Gaussian box along the
outline of the box, outside only. The shorter outline wins.
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
    Judgement,
    Mean,
    ResultTable,
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

REPORTS = ("box", "Gaussian box", "binary mask", "probabilistic mask")
BOXES, MASKS = REPORTS[:2], REPORTS[2:]

SIDES = (24, 120)
"""Smallest and largest width and height in pixels of objects taken from a ground truth."""
REACH = 6.0
"""Margin between an object and the image border in standard deviations; errors are clipped to it."""
MIDDLE = np.array([0.5, 0.5, -0.5, -0.5])
"""Offset from first and last pixels to Gaussian corners that give both probability 1/2 of being the last."""
WAVES = 8
"""Number of waves around an object in the errors of a jittered outline."""
TABLE = (9.0, 20_000)
"""Range and number of steps of the lookup table of Phi; its relative error is below 1e-5."""


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """Objects in separate images, and the outlines that a detector sees.

    Parameters
    ----------
    truth : GroundTruth
        The objects.
    found : list of (H, W) bool arrays
        The outlines that the detector sees.
    probabilities : callable
        Maps a standard deviation of the outline to the probability of the object at every pixel of every image.
    """

    truth: GroundTruth
    found: list[Mask]
    probabilities: Callable[[float], list[Floats]]


def _blur(mask: Mask, sigma: float) -> Floats:
    """Return the mean of a mask moved by whole pixels: a rounded Gaussian of this standard deviation on both axes."""
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
    """Return Phi of many numbers from a lookup table."""
    end, steps = TABLE
    place = ((z + end) * (steps / (2 * end))).clip(0.0, steps - 1e-9)
    below = place.astype(np.int64)
    heights = _heights()
    part = place - below
    values: Floats = heights[below] * (1 - part) + heights[below + 1] * part
    return values


def shapes_of(truth: GroundTruth, count: int) -> list[Mask]:
    """Return the masks of the first `count` objects of a suitable size that do not fill their boxes."""
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
    """Return synthetic shapes whose outlines are about twice as long as those of their boxes."""
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
    """Masks to be moved, with margins for the largest shift."""

    masks: list[Mask]
    error: float

    @property
    def margin(self) -> int:
        """Pixels between an object and the border of its image."""
        return math.ceil(REACH * self.error)

    @cached_property
    def truth(self) -> GroundTruth:
        """The masks in separate images."""
        return _own_images([np.pad(mask, self.margin) for mask in self.masks])

    def blur(self, sigma: float) -> list[Floats]:
        """Return the masks with a second margin, averaged over shifts of this standard deviation."""
        if self._kept.get("sigma") != sigma:  # keep the last one for all repeats
            self._kept.update(sigma=sigma, maps=[_blur(np.pad(mask, 2 * self.margin), sigma) for mask in self.masks])
        maps: list[Floats] = self._kept["maps"]
        return maps

    @cached_property
    def _kept(self) -> dict[str, Any]:
        return {}

    def move(self, seed: Sequence[int]) -> Scene:
        """Return a scene whose detector sees every mask shifted by whole pixels, a rounded Gaussian."""
        margin = self.margin
        drawn = np.random.default_rng(seed).normal(0.0, self.error, (len(self.masks), 2))
        steps = np.round(drawn).clip(-margin, margin).astype(np.int64).tolist()

        def seen(maps: Iterable[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
            """Crop maps with two margins to images."""
            return [
                one[margin - y : one.shape[0] - margin - y, margin - x : one.shape[1] - margin - x]
                for one, (y, x) in zip(maps, steps, strict=True)
            ]

        found = seen(np.pad(mask, 2 * margin) for mask in self.masks)
        return Scene(self.truth, found, lambda sigma: seen(self.blur(sigma)))


def blobs(count: int, error: float, seed: Sequence[int]) -> Scene:
    """Return a scene of irregular blobs with errors of the radius that are correlated between near directions.

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
        # Bounded, so that an object stays connected and fits its image.
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
    """Return the detections of a scene in one kind of report."""
    boxes = np.array([tight_box(mask) for mask in scene.found], dtype=np.float64).reshape(-1, 4)
    heatmaps: list[npt.NDArray[np.generic]] | None = None
    covariances = None
    if report == "Gaussian box":
        boxes = boxes + MIDDLE
        covariances = np.broadcast_to(sigma**2 * np.eye(2), (len(boxes), 2, 2, 2))
    elif report in MASKS:
        binary = [mask.astype(np.float64) for mask in scene.found]
        heatmaps = [*(scene.probabilities(sigma) if report == "probabilistic mask" else binary)]
    return Detections(
        classes=("object",),
        image_ids=scene.truth.image_ids,
        boxes=boxes,
        label_probs=np.ones((len(boxes), 1), np.float32),
        covariances=covariances,
        heatmaps=None if heatmaps is None else tuple(heatmaps),
    )


def empty_part(mask: Mask) -> float:
    """Return the pixels of a mask's box outside the mask, divided by the mask's pixels."""
    x1, y1, x2, y2 = tight_box(mask).tolist()
    pixels = int(mask.sum())
    return float((x2 - x1 + 1) * (y2 - y1 + 1) - pixels) / pixels


def outline(truth: GroundTruth, error: float) -> float:
    """Return the length of the outlines of objects divided by that of their boxes, at the scale of these errors.

    The length of an outline is the integral over the gradient of the blurred mask. Both lengths are divided by the
    object's pixels, as PDQ does with losses along them.
    """
    lengths = np.zeros((len(truth), 2))
    for row, (width, height) in enumerate(truth.dataset.shapes.tolist()):
        mask = truth.masks.to_array(row, height, width)
        x1, y1, x2, y2 = tight_box(mask).tolist()
        gradient = np.hypot(*np.gradient(_blur(mask, error)))
        lengths[row] = np.array([gradient.sum(), 2.0 * (x2 - x1 + y2 - y1 + 2)]) / mask.sum()
    own, of_boxes = lengths.sum(axis=0)
    return float(own / of_boxes)


# --- Claims on masks and boxes ---


SCENES = {"moved": "shifted masks", "jittered": "blobs with jittered outlines"}
LESS = 0.05
"""Relative tolerance between PDQ's best and the true standard deviation: about 0.45 std / side, which is 0.056 for the
smallest objects and half of that for most."""
SHORTER, LONGER = 0.9, 1.1
"""Limits of the ratio of outlines to those of boxes for shorter and longer outlines."""
LOST = 1e-8
"""Spatial qualities up to this value are 0 under `reference`."""


def claims_of_segmentation(table: ResultTable) -> list[Claim]:
    """Return the claims on displaced outlines, scene by scene, and on perfect ones."""
    claims = []
    for scene in SCENES:
        rows = table.where(scene=scene)
        claims += [_beats(rows, scene), _best_at_true_std(rows, scene), _gains_less(rows, scene)]
    return [*claims, _shorter_wins(table), *_perfect(table.where(scene="perfect"))]


def of_report(rows: ResultTable, report: str, outside: str, ratio: float | None = None) -> ResultTable:
    """Return the rows of a report, of one standard deviation or of all, ordered by repeat."""
    chosen = rows.where(report=report, outside=outside)
    chosen = chosen if ratio is None else chosen.where(ratio=ratio)
    return chosen.take(np.argsort(chosen["repeat"], kind="stable"))


def scores(rows: ResultTable, report: str, outside: str, column: str) -> dict[float, Floats]:
    """Return the scores of a report in every repeat, by the ratio of reported to true standard deviation."""
    ratios = np.unique(of_report(rows, report, outside)["ratio"]).tolist()
    return {ratio: of_report(rows, report, outside, ratio)[column] for ratio in ratios}


def _best(of_ratio: dict[float, Floats]) -> tuple[float, Floats]:
    ratio = max(of_ratio, key=lambda one: float(of_ratio[one].mean()))
    return ratio, of_ratio[ratio]


def _has_all_reports(rows: ResultTable) -> bool:
    """Return whether the calibrated mask, all other reports and more than one repeat were measured."""
    calibrated = {
        outside: len(of_report(rows, "probabilistic mask", outside, 1.0)) if len(rows) else 0
        for outside in ("box", "mask")
    }
    others = [len(of_report(rows, report, "mask")) for report in ("binary mask", "Gaussian box")] if len(rows) else [0]
    return min(*calibrated.values(), *others) > 1 and bool(presets_in(rows))


def _leads(rows: ResultTable, outside: str, column: str) -> dict[str, Mean]:
    """Return the lead of the calibrated mask over the binary one and the best Gaussian box, paired by repeat."""
    own = of_report(rows, "probabilistic mask", outside, 1.0)[column]
    ratio, box = _best(scores(rows, "Gaussian box", outside, column))
    return {
        "binary mask": mean_of(own - of_report(rows, "binary mask", outside)[column]),
        f"Gaussian box of {ratio:g} std": mean_of(own - box),
    }


NEEDED = "the true std among those reported, and two repeats or more"


def _beats(rows: ResultTable, scene: str) -> Claim:
    words = (
        f"For {SCENES[scene]} with background outside the mask, a probabilistic mask of the true std exceeds the "
        "binary mask and the best Gaussian box"
    )
    if not _has_all_reports(rows):
        return not_measured(words, NEEDED)
    steps = {
        f"over the {other}, `{preset}`": lead
        for preset, column in presets_in(rows).items()
        for other, lead in _leads(rows, "mask", column).items()
    }
    return Claim(
        words,
        all(lead.is_above() for lead in steps.values()),
        "PDQ " + "; ".join(f"{name}: {lead:+.4f}" for name, lead in steps.items()),
        "above 0 by more than 2 standard errors",
        {name: lead.value for name, lead in steps.items()},
    )


def _best_at_true_std(rows: ResultTable, scene: str) -> Claim:
    words = f"For {SCENES[scene]} with background outside the mask, a probabilistic mask is best with the true std"
    of_ratio = {
        preset: scores(rows, "probabilistic mask", "mask", column) for preset, column in presets_in(rows).items()
    }
    if not _has_all_reports(rows) or min(len(one) for one in of_ratio.values()) < 3:
        return not_measured(words, f"three std or more, {NEEDED}")
    peaks = {
        preset: mean_of([peak_of(list(one), list(values)) for values in zip(*one.values(), strict=True)])
        for preset, one in of_ratio.items()
    }
    return Claim(
        words,
        all(abs(peak.value - 1) <= LESS + 2 * peak.error for peak in peaks.values()),
        "best over true std: " + "; ".join(f"`{preset}` {peak}" for preset, peak in peaks.items()),
        f"1, within {LESS:g} and 2 standard errors",
        {preset: peak.value for preset, peak in peaks.items()},
    )


def _gains_less(rows: ResultTable, scene: str) -> Claim:
    words = f"For {SCENES[scene]}, a mask gains less over the best Gaussian box if background is outside the box"
    if not _has_all_reports(rows):
        return not_measured(words, NEEDED)

    def judge(preset: str, column: str) -> Judgement:
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
        "With background outside the box, shifted masks exceed the best Gaussian box under `paper` if their outlines "
        "are shorter than those of their boxes, and lose if they are longer"
    )
    required = f"mask leads up to {SHORTER:g}, box from {LONGER:g}, by more than 2 standard errors"
    column = column_of("PDQ", "paper")
    described: list[str] = []
    numbers: dict[str, float] = {}
    results: list[bool] = []
    for scene, what in (("moved", "masks of the ground truth"), ("combs", "combs")):
        rows = table.where(scene=scene)
        own = of_report(rows, "probabilistic mask", "box", 1.0)
        boxes = scores(rows, "Gaussian box", "box", column) if column in rows else {}
        if len(own) < 2 or not boxes:
            continue
        length, lead = float(own["outline"][0]), mean_of(own[column] - _best(boxes)[1])
        described.append(f"{what}: outlines {length:.2f} times as long, lead {lead:+.4f}")
        numbers |= {f"outline, {what}": length, f"lead, {what}": lead.value}
        if not SHORTER < length < LONGER:
            results.append((1 if length <= SHORTER else -1) * lead.value > 2 * lead.error)
    if not results:
        return not_measured(words, f"preset `paper`, {NEEDED}, and outlines longer or shorter than those of boxes")
    return Claim(words, all(results), "; ".join(described), required, numbers)


def _perfect(rows: ResultTable) -> list[Claim]:
    masks, boxes = (rows.where(report=report) for report in ("binary mask", "box"))
    one = {name: np.ones(len(masks)) for name in ("PDQ", "foreground", "background")}
    free = boxes.where(outside="box")
    return [
        equals("A perfect binary mask has PDQ 1 with either background", masks, one),
        equals(
            "With background outside the box, a perfect box has PDQ 1: its empty part costs nothing",
            free,
            {name: values[: len(free)] for name, values in one.items()},
        ),
        _empty_part_costs(boxes.where(outside="mask")),
    ]


def _empty_part_costs(rows: ResultTable) -> Claim:
    words = (
        "With background outside the mask, a perfect box has foreground quality 1, and background quality 1e-14 to the "
        "power of its empty pixels over the object's"
    )
    columns = presets_in(rows) if len(rows) else {}
    if not columns:
        return not_measured(words, "perfect boxes")
    off, wrong = 0.0, 0
    for preset, column in columns.items():
        lost = (rows["predicted"] <= LOST) & (preset != "paper")
        wrong += int((rows[column][lost] != 0).sum())
        kept = rows.take(~lost)
        # Logarithms give small and large qualities the same relative tolerance.
        with np.errstate(divide="ignore"):
            for name, power in (("PDQ", 0.5), ("foreground", 0.0), ("background", 1.0)):
                wanted = power * np.log(kept["predicted"])
                distance = np.abs(np.log(kept[column_of(name, preset)]) - wanted) / np.maximum(np.abs(wanted), 1.0)
                off = max(off, float(np.max(distance, initial=0.0))) if not np.isnan(distance).any() else math.inf
    return Claim(
        words,
        off <= EXACT and not wrong,
        f"{len(rows)} objects, empty parts from {rows['empty'].min():.2f} to {rows['empty'].max():.2f}: largest error "
        f"of logarithms of qualities and PDQ {off:.2g}; {wrong} qualities should be 0 and are not",
        f"at most {EXACT:g}, relative; 0 under `reference` for qualities of at most {LOST:g}",
        {"largest difference": off, "not 0": float(wrong)},
    )


# --- Figure: the four reports and their scores ---

COLOURS = dict(zip(REPORTS, (VERMILION, ORANGE, GREEN, BLUE), strict=True))
SHOWN_ERROR = 7.0
"""Standard deviation of the shift in the pictures, in pixels."""


def draw_segmentation(table: ResultTable) -> Figure:
    """Draw the four reports of a displaced plane, and PDQ against the reported standard deviation."""
    figure = new_figure(8.0, 6.8)
    halves: Any = figure.subfigures(2, 1, height_ratios=[0.62, 2.5])
    pictures, curves = halves
    _reports(pictures.subplots(1, 4))
    panels = curves.subplots(2, 2, sharex=True, sharey=True)
    for row, scene in zip(panels, ("moved", "jittered"), strict=True):
        for axes, outside in zip(row, ("mask", "box"), strict=True):
            _curves(axes, table.where(scene=scene), outside)
            what = "shifted masks" if scene == "moved" else "jittered blobs"
            axes.set_title(f"{what.capitalize()}, background outside the {outside}")
            if scene == "jittered":
                axes.set_xlabel("reported std / true std")
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


# --- The experiment ---

EPSILON = 1e-14
"""Added to every probability before its logarithm; predictions hold for this value only."""
COMBS = 8
"""Number of shapes with long outlines."""
PERFECT = 10
"""Number of objects, besides the plane, that are detected perfectly in separate images."""
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
    """Compare boxes and masks, with and without uncertainty, for displaced outlines.

    Parameters
    ----------
    truth : GroundTruth
        Source of the masks: the first that are 24 to 120 pixels wide and high and do not fill their boxes. Each is
        copied into a separate image. Default: `synthetic_truth`.
    error : float
        Standard deviation of errors in pixels. Masks of the ground truth are shifted on both axes; the radius of
        synthetic blobs has an error in every direction.
    ratios : sequence of float
        Ratios of reported to true standard deviation.
    wide_ratios : sequence of float
        Further ratios for Gaussian boxes.
    objects, blob_count : int
        Number of masks of the ground truth, and of blobs.
    repeats, seed : int
        Number of random draws of errors, and their seed; all reports use the same errors.
    run : Run, optional
        Threads, progress, checkpoint. The experiment sets `background` itself.

    Returns
    -------
    ResultTable
        `scene` ("moved", "jittered", "combs", which are synthetic and shifted, or "perfect"), `number` of a perfectly
        detected object (0 is the plane), `repeat`, `report`, `ratio` (reported over true standard deviation, 0 without
        uncertainty), `outside` (background is outside the "box" or the "mask"); `PDQ`, `foreground`, `background` under
        every preset; `outline`, length of outlines over that of boxes; `empty`, pixels of a box outside the object over
        the object's pixels; `predicted`, the background quality of a perfect box.
    """
    run = run or Run()
    if not 0 < error <= 10:
        raise InputError(f"expected error above 0 and at most 10 pixels, but got {error:g}")
    if any(ratio <= 0 for ratio in (*ratios, *wide_ratios)):
        raise InputError("expected ratios above 0", remedy="reports without uncertainty are always measured")
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
            "predicted": EPSILON**empty,
        }

    binary: list[dict[str, Any]] = [{"report": report, "ratio": 0.0} for report in REPORTS[::2]]
    uncertain = [
        {"report": report, "ratio": float(ratio)}
        for report in REPORTS[1::2]
        for ratio in (*ratios, *(wide_ratios if report in BOXES else ()))
    ]
    points = [
        {"scene": scene, "number": -1, "repeat": repeat, **what, "outside": outside}
        for scene, count in (("moved", len(shapes)), ("jittered", blob_count))
        for what in (*binary, *uncertain)
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
        for what in binary
        for outside in runs
    ]
    circumstances: dict[str, Any] = {"seed": seed, "error": error, "objects": len(shapes), "blobs": blob_count}
    return run.table("segmentation", points, point, truth=fingerprint(given), **circumstances)


SEGMENTATION = Experiment(
    name="segmentation",
    section="none",
    varied="boxes and masks, with and without uncertainty, of displaced outlines",
    claim="with background outside the mask, calibrated pixel probabilities exceed every box; with background outside "
    "the box, as in the paper, they gain far less",
    function=segmentation,
    judge=claims_of_segmentation,
    draw=draw_segmentation,
)

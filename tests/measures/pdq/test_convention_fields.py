"""Every field of a convention: what it changes, to which number, and that it changes nothing else.

The numbers are worked out by hand; kernel and definition must both give them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from probox import Convention, Detections, GroundTruth, evaluate
from probox.convention import BOX_FIELDS
from probox.measures.pdq import definition
from probox.tables.masks import Masks

Scene = tuple[GroundTruth, Detections]
NAMES = ("PDQ", "pPDQ", "spatial", "label", "foreground", "background", "TP", "FP", "FN")
PAPER = Convention.preset("paper")
REFERENCE = Convention.preset("reference")
E = 1e-14


def by_kernel(truth: GroundTruth, found: Detections, convention: Convention) -> dict[str, float]:
    summary = evaluate(truth, found, convention=convention, measures=["pdq"]).summary()
    return {name: summary[name] for name in NAMES}


def by_definition(truth: GroundTruth, found: Detections, convention: Convention) -> dict[str, float]:
    score = definition.evaluate(truth, found, convention)
    values = (score.pdq, score.overall, score.spatial, score.label, score.fg, score.bg, score.tp, score.fp, score.fn)
    return dict(zip(NAMES, values, strict=True))


BOTH_WAYS = pytest.mark.parametrize("measure", [by_kernel, by_definition], ids=["kernel", "definition"])


# --- scenes ---------------------------------------------------------------------------------------------------------


def truth_of(*masks: np.ndarray, labels: list[int] | None = None, classes: tuple[str, ...] = ("cup",)) -> GroundTruth:
    return GroundTruth.from_masks(classes, [(1, masks, labels or [0] * len(masks))], shapes={1: masks[0].shape})


def given_maps(*maps: np.ndarray, probs: Any = None, classes: tuple[str, ...] = ("cup",)) -> Detections:
    return Detections(
        classes=classes,
        image_ids=[1] * len(maps),
        boxes=np.zeros((len(maps), 4)),
        label_probs=probs if probs is not None else [[1.0]] * len(maps),
        heatmaps=maps,
    )


def box_of(*corners: float, covariances: Any = None, label: float = 1.0) -> Detections:
    given = None if covariances is None else np.array([covariances], float)
    return Detections(classes=("cup",), image_ids=[1], boxes=[corners], label_probs=[[label]], covariances=given)


def filled(height: int, width: int, rows: slice, columns: slice) -> np.ndarray:
    mask = np.zeros((height, width), bool)
    mask[rows, columns] = True
    return mask


def quarter_missed() -> Scene:
    """An object of four pixels in a row, of which a plain box covers three."""
    return truth_of(filled(3, 8, slice(1, 2), slice(2, 6))), box_of(2, 1, 4, 1)


def even(probability: float, label: float = 1.0) -> Scene:
    """An object whose every pixel is said to belong to it with one probability; nothing is said of any other."""
    mask = filled(4, 6, slice(1, 3), slice(1, 5))
    return truth_of(mask), given_maps(np.where(mask, probability, 0.0).astype(np.float32), probs=[[label]])


def row_of(variance_y: float, mean: tuple[float, float]) -> Scene:
    """An image of one row that is all object: FG is the mean of log P, BG is 1.

    The top-left corner has variance 1 along the row; the other corner sits still on the last pixel, so P is P1.
    """
    first, still = np.diag([1.0, variance_y]), np.zeros((2, 2))
    return truth_of(np.ones((1, 8), bool)), box_of(*mean, 7, 0, covariances=[first, still])


def log_mean(values: Any) -> float:
    return float(np.exp(np.log(np.asarray(values, float) + E).mean()))


def with_foreground(value: float) -> dict[str, float]:
    """Return what a foreground quality makes of the rest, with a perfect background and label."""
    return {"foreground": value, "spatial": value, "pPDQ": value**0.5, "PDQ": value**0.5}


def cut_row(threshold: float) -> float:
    """Return FG of a row of Phi(-3), Phi(-2), .. whose values below a threshold are 0."""
    values = ndtr(np.arange(8) + 1 - 4.0)
    return log_mean(np.where(values < threshold, 0.0, values))


def same_mask_two_classes() -> Scene:
    """Two objects in one place and two detections of it; labels alone decide: sqrt of [[4, 3], [3, 0]] / 8."""
    mask = filled(4, 6, slice(1, 3), slice(1, 5))
    classes = ("cup", "dog")
    probs = [[0.5, 0.375], [0.375, 0.0]]
    maps = [mask.astype(np.float32)] * 2
    return truth_of(mask, mask, labels=[0, 1], classes=classes), given_maps(*maps, probs=probs, classes=classes)


def hole() -> Scene:
    """An object of 8 pixels around one that is not its own, of which the detection thinks 0.75."""
    mask = filled(5, 5, slice(1, 4), slice(1, 4))
    probability = mask.astype(np.float32)
    mask[2, 2] = False
    probability[2, 2] = 0.75
    return truth_of(mask), given_maps(probability)


def annotated_larger() -> Scene:
    """An object of 5 x 5 pixels in a larger annotated box, found to the pixel."""
    truth = GroundTruth.from_boxes(["cup"], {1: (40, 30)}, [1], [[10, 10, 16, 14]], [0])
    pixels = Masks.from_boxes(np.array([[10, 10, 14, 14]], np.int32))
    return dataclasses.replace(truth, masks=pixels), box_of(10, 10, 14, 14)


def in_annotated_box(scene: Scene) -> float:
    pixels = int(scene[0].as_box_masks().pixels[0])
    assert pixels > 25
    return float(E ** ((pixels - 25) / pixels))


def three_confidences() -> Scene:
    """One object; detections of confidence 0.25, 0.5 and 0.75, the last one on the object."""
    mask = filled(30, 40, slice(5, 10), slice(5, 10))
    boxes = [[20, 20, 25, 25], [30, 20, 35, 25], [5, 5, 9, 9]]
    found = Detections(classes=("cup",), image_ids=[1] * 3, boxes=boxes, label_probs=[[0.25], [0.5], [0.75]])
    return truth_of(mask), found


def stray() -> Scene:
    """An object found, and a detection of nothing whose likeliest real class has 0.125, its background 0.5."""
    mask = filled(30, 40, slice(5, 10), slice(5, 10))
    found = Detections(
        classes=("none", "cup", "dog"),
        image_ids=[1, 1],
        boxes=[[5, 5, 9, 9], [20, 20, 25, 25]],
        label_probs=[[0.0, 1.0, 0.0], [0.5, 0.0625, 0.125]],
    )
    return truth_of(mask), found


def sized(width: int, height: int, pixels: int | None = None) -> Scene:
    """A large object and one whose box spans x2 - x1 = `width` and y2 - y1 = `height`, both missed."""
    large = filled(60, 80, slice(0, 30), slice(0, 30))
    mask = filled(60, 80, slice(30, 31 + height), slice(40, 41 + width))
    if pixels is not None:
        inner = np.flatnonzero(mask)
        ends = [inner[0], inner[-1]]
        mask = np.zeros_like(mask)
        mask.flat[[*ends, *[place for place in inner if place not in ends][: pixels - 2]]] = True
    nothing = Detections(classes=("cup",), image_ids=[], boxes=[], label_probs=np.zeros((0, 1)))
    return truth_of(large, mask), nothing


CANCELLING = [[[4.0, -4.0], [-4.0, 4.0]]] * 2


def cancelling() -> Scene:
    mask = filled(40, 50, slice(10, 31), slice(10, 31))
    return truth_of(mask), box_of(10, 10, 30, 30, covariances=CANCELLING)


def nearly_cancelling() -> Scene:
    truth, found = cancelling()
    barely = np.array(CANCELLING)
    barely[:, 0, 0] += 1e-9
    return truth, dataclasses.replace(found, covariances=barely[None])


def overshooting(x1: float) -> Scene:
    mask = filled(30, 40, slice(5, 16), slice(0, 11))
    return truth_of(mask), box_of(x1, 5, 10, 15, covariances=[np.eye(2)] * 2)


def certain_or_not(variance: float | None) -> Scene:
    mask = filled(40, 50, slice(10, 31), slice(10, 31))
    spread = None if variance is None else [np.eye(2) * variance] * 2
    return truth_of(mask), box_of(10, 10, 30, 30, covariances=spread)


def like(scene: Scene, convention: Convention = REFERENCE) -> dict[str, float]:
    """Return what another scene gives: where a field stands for a change of the input."""
    return by_definition(*scene, convention)


NO_MATCH = {
    "PDQ": 0.0, "pPDQ": np.nan, "spatial": np.nan, "label": np.nan, "foreground": np.nan, "background": np.nan,
    "TP": 0, "FP": 1, "FN": 1,
}  # fmt: skip
PERFECT = {"PDQ": 1.0, "pPDQ": 1.0, "spatial": 1.0, "label": 1.0, "foreground": 1.0, "background": 1.0,
           "TP": 1, "FP": 0, "FN": 0}  # fmt: skip

ROW = PAPER.replace(region_of_interest=True)
UPPER = ndtr(4.0) - 0.5  # what a corner of mean 0 and sigma 1/4 has in the first row


@dataclasses.dataclass(frozen=True)
class Case:
    """A field's two values in a scene, and the numbers that they give; all others are the same with both."""

    field: str
    values: tuple[Any, Any]
    scene: Scene
    before: dict[str, float]
    after: dict[str, float]
    base: Convention = REFERENCE
    label: str = ""


CASES = [
    Case("epsilon", (1e-14, 1e-12), quarter_missed(), with_foreground(1e-14**0.25), with_foreground(1e-12**0.25)),
    Case(
        # Beyond the region the map keeps its last value, before it there is none.
        "region_of_interest", (True, False), row_of(0.0, (4.0, 0.0)),
        with_foreground(log_mean([0, 0, 0, ndtr(0), ndtr(1), ndtr(2), ndtr(2), ndtr(2)])),
        with_foreground(log_mean(ndtr(np.arange(8) - 3.0) - ndtr(-4.0))),
        base=ROW.replace(rough_sigmas=1.0),
    ),
    Case(
        "rough_sigmas", (1.0, 2.0), row_of(0.0, (4.0, 0.0)),
        with_foreground(log_mean([0, 0, 0, ndtr(0), ndtr(1), ndtr(2), ndtr(2), ndtr(2)])),
        with_foreground(log_mean([0, 0, ndtr(-1), ndtr(0), ndtr(1), ndtr(2), ndtr(3), ndtr(3)])),
        base=ROW,
    ),
    Case(
        # At 4.5: pixels 3 to 5 have a near corner within 1, pixels 2 to 6 one at exactly 1.5.
        "mahalanobis", (1.0, 1.5), row_of(0.0625, (4.5, 0.0)),
        with_foreground(log_mean(UPPER * ndtr([-np.inf, -np.inf, -np.inf, -0.5, 0.5, 1.5, 1.5, 1.5]))),
        with_foreground(log_mean(UPPER * ndtr([-np.inf, -np.inf, -1.5, -0.5, 0.5, 1.5, 2.5, 2.5]))),
        base=ROW,
    ),
    Case(
        # The determinant is 1/16 exactly: at the bound the region still shrinks.
        "min_determinant", (0.0625, float(np.nextafter(0.0625, 1))), row_of(0.0625, (4.5, 0.0)),
        with_foreground(log_mean(UPPER * ndtr([-np.inf, -np.inf, -np.inf, -0.5, 0.5, 1.5, 1.5, 1.5]))),
        with_foreground(log_mean(UPPER * (ndtr(np.arange(8) - 3.5) - ndtr(-4.5)))),
        base=ROW.replace(mahalanobis=1.0),
    ),
    Case(
        "min_probability", (0.1, 0.2), row_of(0.0, (4.0, 0.0)),
        with_foreground(cut_row(0.1)), with_foreground(cut_row(0.2)),
        base=ROW.replace(rough_sigmas=3.0),
    ),
    Case(
        # Of pixel 5 a tenth is covered, as a double or as the nearest float.
        "single_precision", (False, True), (truth_of(filled(1, 9, slice(0, 1), slice(5, 7))), box_of(5.9, 0, 6, 0)),
        with_foreground((6 - 5.9) ** 0.5), with_foreground(float(np.float32(6 - 5.9)) ** 0.5),
        base=PAPER,
    ),
    Case("snap_zero", (0.2, 0.3), even(0.25), with_foreground(0.25), NO_MATCH, base=PAPER),
    Case("snap_one", (0.2, 0.3), even(0.75), with_foreground(0.75), PERFECT, base=PAPER),
    Case("min_quality", (0.4, 0.6), even(0.25), with_foreground(0.25), NO_MATCH, base=PAPER),
    Case("sum_zero_is_plain", (True, False), cancelling(), PERFECT, like(nearly_cancelling())),
    Case(
        "label_weight", (0.5, 0.25), even(0.25, label=0.0625),
        {"pPDQ": 0.125, "PDQ": 0.125}, {"pPDQ": 0.25**0.75 * 0.0625**0.25, "PDQ": 0.25**0.75 * 0.0625**0.25},
    ),
    Case("label_weight", (0.5, 0.0), even(0.25, label=0.0625), {"pPDQ": 0.125, "PDQ": 0.125},
         {"pPDQ": 0.25, "PDQ": 0.25}, label="spatial alone"),
    Case("label_weight", (0.5, 1.0), even(0.25, label=0.0625), {"pPDQ": 0.125, "PDQ": 0.125},
         {"pPDQ": 0.0625, "PDQ": 0.0625}, label="label alone"),
    Case("label_weight", (0.5, 0.0), even(0.25, label=0.0), NO_MATCH,
         {**PERFECT, **with_foreground(0.25), "pPDQ": 0.25, "PDQ": 0.25, "label": 0.0}, label="no label at all"),
    Case(
        "assignment", ("optimal", "greedy"), same_mask_two_classes(),
        {"PDQ": 0.375**0.5, "pPDQ": 0.375**0.5, "label": 0.375, "TP": 2, "FP": 0, "FN": 0},
        {"PDQ": 0.5**0.5 / 3, "pPDQ": 0.5**0.5, "label": 0.5, "TP": 1, "FP": 1, "FN": 1},
    ),
    Case(
        "background", ("box", "mask"), hole(), PERFECT,
        {"background": 0.25**0.125, "spatial": 0.25**0.125, "pPDQ": 0.25**0.0625, "PDQ": 0.25**0.0625},
    ),
    Case("box_truth", (False, True), annotated_larger(), PERFECT, with_foreground(in_annotated_box(annotated_larger())),
         base=PAPER),
    Case("fixed_variance", (None, 4.0), certain_or_not(None), PERFECT, like(certain_or_not(4.0))),
    Case("fixed_variance", (4.0, 0.0), certain_or_not(9.0), like(certain_or_not(4.0)), PERFECT, label="0 is plain"),
    Case(
        "label_threshold", (None, 0.25), three_confidences(),
        {"PDQ": 0.75**0.5 / 3, "FP": 2}, {"PDQ": 0.75**0.5 / 2, "FP": 1},
    ),
    Case(
        "label_threshold", (0.0, 0.5), three_confidences(),
        {"PDQ": 0.75**0.5 / 3, "FP": 2}, {"PDQ": 0.75**0.5, "FP": 0}, label="not above is out",
    ),
    Case("clip", ("none", "corners"), overshooting(-2.0), like(overshooting(-2.0)), like(overshooting(0.0))),
    Case("object_filter", (None, True), sized(5, 5), {"FN": 2}, {"FN": 1}),
    Case("object_filter", (False, True), sized(5, 5), {"FN": 2}, {"FN": 1}, label="asked"),
    Case("min_width", (10, 11), sized(11, 40), {"FN": 2}, {"FN": 1}, base=REFERENCE.replace(object_filter=True)),
    Case("min_height", (10, 11), sized(35, 11), {"FN": 2}, {"FN": 1}, base=REFERENCE.replace(object_filter=True),
         label="high"),
    Case("min_pixels", (149, 150), sized(20, 20, 150), {"FN": 2}, {"FN": 1},
         base=REFERENCE.replace(object_filter=True)),
    Case("confidence_denominator", (False, True), stray(), {"PDQ": 1 / 2}, {"PDQ": 1 / 1.125}),
    Case("name", ("reference", "mine"), quarter_missed(), {}, {}),
    Case("iou_thresholds", (Convention.iou_thresholds, (0.3,)), quarter_missed(), {}, {}),
    Case("max_detections", ((1, 10, 100), (1,)), quarter_missed(), {}, {}),
    Case("area_ranges", (Convention.area_ranges, ((0, 1), (1, 2), (2, 3))), quarter_missed(), {}, {}),
]  # fmt: skip


def test_every_field_has_a_case() -> None:
    assert {case.field for case in CASES} == {field.name for field in dataclasses.fields(Convention)}


@BOTH_WAYS
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.field} {case.label}".strip())
def test_a_field_changes_what_it_should_and_nothing_else(measure: Callable[..., dict[str, float]], case: Case) -> None:
    results = [measure(*case.scene, case.base.replace(**{case.field: value})) for value in case.values]
    for result, expected in zip(results, (case.before, case.before | case.after), strict=True):
        for name, value in expected.items():
            # 1e-8: the fast sums multiply floats in pairs; a foreground of 10^-5 has to be right to its own digits.
            assert result[name] == pytest.approx(value, rel=1e-8, nan_ok=True), name
    for name in set(NAMES) - set(case.before) - set(case.after):
        assert results[0][name] == pytest.approx(results[1][name], rel=1e-12, nan_ok=True), name
    moved = [name for name in {*case.before, *case.after} if not same(results[0][name], results[1][name])]
    assert moved or case.field in ("name", *BOX_FIELDS)  # which PDQ does not depend on


def same(one: float, other: float) -> bool:
    return one == other or (np.isnan(one) and np.isnan(other))

"""The plain definition of PDQ: the golden numbers of the reference, and what the equations promise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measures.pdq.golden import TABLES, Case, case_names, matches_of, read_case

from probox.convention import Convention
from probox.measures.pdq import definition
from probox.measures.pdq.heatmap_definition import corner_map, plain_cover, region_of_interest
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

REFERENCE = Convention.preset("reference")
PAPER = Convention.preset("paper")
BOTH = pytest.mark.parametrize("convention", [REFERENCE, PAPER], ids=["reference", "paper"])
UNIT = [[[1.0, 0.0], [0.0, 1.0]]] * 2


# --- golden numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(28))
def test_golden_heatmap(golden_dir: Path, number: int) -> None:
    case = json.loads((golden_dir / "heatmaps" / "cases.json").read_text())[number]
    expected = np.load(golden_dir / "heatmaps" / "expected.npz")[f"h{number}"]
    got = definition.heatmap(case["bbox"], case["covars"], case["width"], case["height"], REFERENCE)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=0, atol=1.5e-7)  # here: equal; elsewhere perhaps one last bit
    np.testing.assert_array_equal(got > 0, expected > 0)


@pytest.fixture(scope="module", params=case_names())
def scored(request: pytest.FixtureRequest) -> tuple[Case, definition.Score]:
    case = read_case(request.param)
    return case, definition.evaluate(case.truth, case.found, case.convention)


def test_golden_tables(scored: tuple[Case, definition.Score]) -> None:
    case, score = scored
    for number, (expected, image) in enumerate(zip(case.images, score.images, strict=True)):
        for name in TABLES if "tables" in expected else ():
            table = np.array(expected["tables"][name], float).reshape(image.tables[name].shape)
            # In images with a single object or detection the reference adds float32 logarithms one after the
            # other, which costs it up to four digits; everywhere else its sums are good.
            lonely = min(table.shape) == 1 and case.convention.single_precision
            message = f"{case.name}, image {number}, {name}"
            np.testing.assert_allclose(
                image.tables[name], table, rtol=0, atol=6e-5 if lonely else 3e-6, err_msg=message
            )


def test_golden_matches(scored: tuple[Case, definition.Score]) -> None:
    case, score = scored
    for expected, image in zip(case.images, score.images, strict=True):
        counts = len(image.matches), len(image.false_positives), len(image.false_negatives)
        assert counts == (expected["TP"], expected["FP"], expected["FN"])
        if "gt_evals" in expected:
            made = [(match, False) for match in image.matches] + [(match, True) for match in image.passed_over]
            assert matches_of(expected) == sorted((match.object, match.detection, skip) for match, skip in made)
            by_object = {entry["gt_id"]: entry for entry in expected["gt_evals"]}
            for match, _ in made:
                entry = by_object[match.object]
                want = [entry[name] for name in ("pPDQ", "spatial", "label", "fg", "bg")]
                np.testing.assert_allclose(match[2:], want, rtol=0, atol=6e-5)


def test_golden_summary(scored: tuple[Case, definition.Score]) -> None:
    case, score = scored
    want = case.summary
    assert (score.tp, score.fp, score.fn) == (want["TP"], want["FP"], want["FN"])
    got = [score.pdq, score.overall, score.spatial, score.label, score.fg, score.bg]
    names = ["PDQ", "avg_pPDQ", "avg_spatial", "avg_label", "avg_fg", "avg_bg"]
    np.testing.assert_allclose(got, [want[name] for name in names], rtol=0, atol=1e-6)


# --- Gaussians ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("h", "k", "rho", "expected"),  # by numerical integration with 40 digits
    [
        (0.5, -1.25, 0.375, 0.093942844842174612126),
        (-2.0, -3.0, 0.75, 0.0010093168485594532727),
        (1.5, 2.5, -0.875, 0.92698313340536581243),
        (-0.25, 0.5, -0.984375, 0.095097650243273477949),
        (0.75, 0.5, 0.999969482421875, 0.69146246127401310364),
        (0.0, 1.0, -0.5, 0.37260179342337486548),
        (-1.0, 0.0, 0.5, 0.12739820657662513452),
        (3.0, -4.0, 0.25, 0.000031670787619018342153),
        (-1.5, -1.5, 0.9990234375, 0.064523918685260405445),
        (0.0, 0.0, 0.5, 1 / 3),
    ],
)
def test_bivariate_cdf_values(h: float, k: float, rho: float, expected: float) -> None:
    assert float(definition.bivariate_cdf(h, k, rho)) == pytest.approx(expected, rel=0, abs=5e-16)
    assert float(definition.bivariate_cdf(k, h, rho)) == pytest.approx(expected, rel=0, abs=5e-16)


bounds = st.one_of(st.floats(-8, 8), st.sampled_from([0.0, -0.0, np.inf, -np.inf]))


@given(bounds, bounds, st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 0.0, 1.0])))
def test_bivariate_cdf_identities(h: float, k: float, rho: float) -> None:
    from scipy.special import ndtr

    value = float(definition.bivariate_cdf(h, k, rho))
    assert 0 <= value <= min(ndtr(h), ndtr(k)) + 1e-15
    # Y <= k and Y > k together are everything, and (X, -Y) has correlation -rho.
    assert value + float(definition.bivariate_cdf(h, -k, -rho)) == pytest.approx(ndtr(h), rel=0, abs=1e-13)
    assert float(definition.bivariate_cdf(h, np.inf, rho)) == ndtr(h)
    assert float(definition.bivariate_cdf(h, -np.inf, rho)) == 0


# --- heatmaps -------------------------------------------------------------------------------------------------------


def test_paper_heatmap_is_what_sampled_boxes_do() -> None:
    means, covariances = np.array([3.0, 4.5, 13.2, 9.0]), np.array([[[9, 4], [4, 4]], [[4, -3], [-3, 9]]], float)
    rng = np.random.default_rng(7)
    width, height, samples = 18, 14, 40_000
    first = rng.multivariate_normal(means[:2], covariances[0], samples)
    second = rng.multivariate_normal(means[2:], covariances[1], samples) + 1
    begun, open_ = np.zeros((height, width)), np.zeros((height, width))
    inside = (second <= [width, height]).all(axis=1)
    for y in range(height):
        for x in range(width):
            begun[y, x] = ((first >= 0) & (first <= [x + 1, y + 1])).all(axis=1).mean()
            open_[y, x] = ((second >= [x, y]).all(axis=1) & inside).mean()
    got = definition.heatmap(means, covariances, width, height, PAPER)
    np.testing.assert_allclose(got, begun * open_, atol=0.012)  # five standard errors
    assert got.max() > 0.5


def random_corner(draw: st.DrawFn) -> list[list[float]]:
    scale = st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 1.0, 5.0, 40.0, 1e3])
    a, b = draw(scale), draw(scale)
    rho = draw(st.one_of(st.sampled_from([-1.0, 0.0, 1.0, 1 - 1e-12]), st.floats(-1, 1)))
    return [[a * a, rho * a * b], [rho * a * b, b * b]]


@st.composite
def probabilistic_boxes(draw: st.DrawFn) -> tuple[list[float], list[list[list[float]]]]:
    coordinate = st.one_of(st.floats(-30, 50), st.integers(-2, 22).map(float), st.floats(-1e6, 1e6))
    x, y = sorted([draw(coordinate), draw(coordinate)]), sorted([draw(coordinate), draw(coordinate)])
    return [x[0], y[0], x[1], y[1]], [random_corner(draw), random_corner(draw)]


@BOTH
@given(case=probabilistic_boxes())
def test_every_covariance_gives_probabilities(
    convention: Convention, case: tuple[list[float], list[list[list[float]]]]
) -> None:
    got = definition.heatmap(*case, 20, 16, convention)
    assert got.shape == (16, 20)
    assert got.dtype == (np.float32 if convention.single_precision else np.float64)
    assert np.isfinite(got).all()
    assert got.min() >= 0
    assert got.max() <= 1


@BOTH
@given(case=probabilistic_boxes())
def test_axes_are_alike(convention: Convention, case: tuple[list[float], list[list[list[float]]]]) -> None:
    (x1, y1, x2, y2), covariances = case
    swapped = [[[cov[1][1], cov[1][0]], [cov[0][1], cov[0][0]]] for cov in covariances]
    got = definition.heatmap([x1, y1, x2, y2], covariances, 20, 16, convention)
    mirrored = definition.heatmap([y1, x1, y2, x2], swapped, 16, 20, convention)
    # Rows are shifted before columns and a determinant may round to either side of the bound: almost alike.
    np.testing.assert_allclose(got, mirrored.T, atol=1e-6)


@BOTH
def test_half_a_turn_exchanges_the_corners(convention: Convention) -> None:
    first, second = [[9.0, 3.0], [3.0, 4.0]], [[2.0, -1.0], [-1.0, 6.0]]
    got = definition.heatmap([5.25, 4, 14, 10.5], [first, second], 20, 16, convention)
    turned = definition.heatmap([20 - 15, 16 - 11.5, 20 - 6.25, 16 - 5], [second, first], 20, 16, convention)
    np.testing.assert_array_equal(got, turned[::-1, ::-1])


@BOTH
@pytest.mark.parametrize("far", [-1e4, -400.0, -55.0, 75.0, 400.0, 1e4])
@pytest.mark.parametrize("entry", range(4))
@pytest.mark.parametrize("covariance", [[[9.0, 0.0], [0.0, 9.0]], [[9.0, 8.0], [8.0, 9.0]], [[9.0, 9.0], [9.0, 9.0]]])
def test_a_corner_far_outside_covers_nothing(
    convention: Convention, far: float, entry: int, covariance: list[list[float]]
) -> None:
    box = [5.0, 4.0, 14.0, 10.0]
    box[entry] = far
    got = definition.heatmap(box, [covariance, covariance], 20, 16, convention)
    assert got.max() < 1e-30


def test_a_corner_past_the_far_border_within_reach() -> None:
    # Mean two sigmas right of the image: its region of interest is there, its own pixel is not.
    got = corner_map((26.0, 8.0), [[9.0, 1.0], [1.0, 9.0]], 20, 16, REFERENCE)
    exact = corner_map((26.0, 8.0), [[9.0, 1.0], [1.0, 9.0]], 20, 16, PAPER)
    np.testing.assert_allclose(got[:, :19], exact[:, :19], atol=0.0027)
    assert got[15, 19] == pytest.approx(exact[15, 19], abs=0.0027)


def test_one_corner_without_covariance_is_a_step() -> None:
    covariances = [[[0.0, 0.0], [0.0, 0.0]], [[4.0, 0.0], [0.0, 4.0]]]
    for convention in (REFERENCE, PAPER):
        step = corner_map((5.0, 4.5), covariances[0], 20, 16, convention)
        expected = np.zeros((16, 20))
        expected[4:, 5:] = 1  # a corner on the edge between two pixels belongs to the second
        np.testing.assert_array_equal(step, expected)
        assert (corner_map((0.0, 0.0), covariances[0], 20, 16, convention) == 1).all()  # on the border is inside
        got = definition.heatmap([5, 4.5, 14, 10], covariances, 20, 16, convention)
        assert got[8, 8] == pytest.approx(1, abs=0.1)
        assert not got[:4].any()
        assert not got[:, :5].any()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_singular_is_the_limit_of_nearly_singular(sign: float) -> None:
    almost = sign * 9 * (1 - 1e-13)
    near = corner_map((8.3, 7.1), [[9.0, almost], [almost, 9.0]], 20, 16, PAPER)
    exact = corner_map((8.3, 7.1), [[9.0, sign * 9], [sign * 9, 9.0]], 20, 16, PAPER)
    np.testing.assert_allclose(near, exact, atol=1e-6)


def test_covariances_that_add_up_to_zero() -> None:
    cancelling = [[[4.0, -4.0], [-4.0, 4.0]]] * 2
    plain = definition.heatmap([5, 4, 14, 10], None, 20, 16, REFERENCE)
    np.testing.assert_array_equal(definition.heatmap([5, 4, 14, 10], cancelling, 20, 16, REFERENCE), plain)
    assert 0 < definition.heatmap([5, 4, 14, 10], cancelling, 20, 16, PAPER)[4, 5] < 1
    zeros = np.zeros((2, 2, 2))
    np.testing.assert_array_equal(definition.heatmap([5, 4, 14, 10], zeros, 20, 16, PAPER), plain)


def test_overshooting_the_border_loses_mass_unless_clipped() -> None:
    # Quirk: a top-left corner 1.5 sigmas outside has only Phi(-1.5) of its mass per axis in the image.
    box, covariances = [-3.0, -3.0, 14.0, 10.0], [[[4.0, 0.0], [0.0, 4.0]]] * 2
    found = Detections(classes=["cup"], image_ids=[1], boxes=[box], covariances=[covariances], label_probs=[[1.0]])
    lost = definition.detection_heatmap(found, 0, 20, 16, REFERENCE)
    assert lost.max() < 0.01
    kept = definition.detection_heatmap(found, 0, 20, 16, REFERENCE.replace(clip="corners"))
    assert kept.max() == pytest.approx(0.25, abs=0.01)  # half the mass per axis
    np.testing.assert_array_equal(found.boxes, [box])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1, 3, [0, 1, 1, 1, 0, 0]),
        (1.25, 3, [0, 0.75, 1, 1, 0, 0]),
        (1, 3.25, [0, 1, 1, 1, 0.25, 0]),
        (-7.5, 0.5, [1, 0.5, 0, 0, 0, 0]),
        (4.5, 9, [0, 0, 0, 0, 0.5, 1]),
        (2, 2, [0, 0, 1, 0, 0, 0]),
        (2.25, 2.75, [0, 0, 0.75, 0.75, 0, 0]),
        (-9, -2, [0] * 6),
        (-9, -0.5, [0.5] + [0] * 5),
        (5.75, 9, [0] * 5 + [0.25]),
        (7, 9, [0] * 6),
    ],
)
def test_plain_cover(low: float, high: float, expected: list[float]) -> None:
    assert plain_cover(low, high, 6).tolist() == expected


def test_region_of_interest() -> None:
    identity = np.eye(2)
    # 3.439 sigmas around (8.5, 7.5), counted from the pixel corner that is nearest to the mean.
    assert region_of_interest((8.5, 7.5), identity, 20, 16, REFERENCE) == (5, 4, 11, 10)
    singular = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert region_of_interest((8.5, 7.5), singular, 20, 16, REFERENCE) == (3, 2, 13, 12)
    assert region_of_interest((-5.5, 7.5), identity, 20, 16, REFERENCE) == (0, 7, 0, 7)
    assert region_of_interest((-6.5, 7.5), identity, 20, 16, REFERENCE) is None
    assert region_of_interest((8.5, 21.5), identity, 20, 16, REFERENCE) is None


# --- qualities ------------------------------------------------------------------------------------------------------


def one_object(rows: slice, columns: slice) -> np.ndarray:
    mask = np.zeros((6, 8), bool)
    mask[rows, columns] = True
    return mask


def test_losses_by_hand() -> None:
    mask = one_object(slice(1, 3), slice(2, 5))
    mask[1, 2] = False  # inside the box, outside the mask
    probability = np.zeros((6, 8))
    probability[1:3, 1:5] = [[0.5, 0.25, 0.5, 1.0], [0.5, 0.5, 0.5, 0.5]]
    foreground, background = definition.losses(probability, mask, (2, 1, 4, 2), PAPER)
    assert foreground == pytest.approx(4 * np.log(0.5))
    assert background == pytest.approx(2 * np.log(0.5))
    _, background = definition.losses(probability, mask, (2, 1, 4, 2), PAPER.replace(background="mask"))
    assert background == pytest.approx(2 * np.log(0.5) + np.log(0.75))
    nothing, _ = definition.losses(np.zeros((6, 8)), mask, (2, 1, 4, 2), PAPER)
    assert nothing == pytest.approx(5 * np.log(1e-14))


def test_qualities_snap() -> None:
    assert definition.qualities(-1e-5, 0.0, 1, REFERENCE) == (1.0, 1.0, 1.0)
    assert definition.qualities(-1.1e-5, 0.0, 1, REFERENCE)[0] < 1
    assert definition.qualities(-18.5, 0.0, 1, REFERENCE) == (0.0, 0.0, 1.0)
    assert definition.qualities(-18.3, 0.0, 1, REFERENCE)[0] > 0
    assert definition.qualities(-1e-5, -40.0, 1, PAPER) == pytest.approx(
        (np.exp(-40.00001), np.exp(-1e-5), np.exp(-40))
    )


def test_plain_box_that_misses_most_of_an_object_scores_nothing() -> None:
    # The reference calls Q_S <= 1e-8 zero: with 1e-14 for every missed pixel, that is a share of 8/14 = 57 %.
    mask = one_object(slice(0, 1), slice(0, 8))
    heatmaps = [definition.heatmap([0, 0, last, 0], None, 8, 6, REFERENCE) for last in (2, 3)]
    for convention, missed_five in ((REFERENCE, 0.0), (PAPER, 1e-14 ** (5 / 8 / 2))):
        table = definition.pair_tables([mask], heatmaps, [[1.0], [1.0]], [0], convention)["overall"]
        assert table[0, 0] == pytest.approx(missed_five, rel=1e-6)
        assert table[0, 1] == pytest.approx(1e-14 ** (4 / 8 / 2), rel=1e-6)


def test_label_weight() -> None:
    mask = one_object(slice(1, 3), slice(2, 5))
    probability = np.where(mask, 0.25, 0.0)
    for weight, expected in ((0.0, 0.25), (0.25, 0.25**0.75 * 0.81**0.25), (0.5, 0.5 * 0.9), (1.0, 0.81)):
        tables = definition.pair_tables([mask], [probability], [[0.81]], [0], PAPER.replace(label_weight=weight))
        assert tables["overall"][0, 0] == pytest.approx(expected)


def test_smallest_quality() -> None:
    mask = one_object(slice(1, 3), slice(2, 5))
    for label, expected in ((2.0**-50, 0.0), (2.0**-48, 2.0**-24)):
        table = definition.pair_tables([mask], [mask.astype(float)], [[label]], [0], REFERENCE)["overall"]
        assert table[0, 0] == pytest.approx(expected)
        assert definition.pair_tables([mask], [mask.astype(float)], [[label]], [0], PAPER)["overall"][0, 0] > 0


# --- assignment and score -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0)])
def test_assign_nothing(shape: tuple[int, int]) -> None:
    assert definition.assign(np.zeros(shape)) == definition.assign(np.zeros(shape), "greedy") == []


def test_assign_leaves_out_zeros() -> None:
    table = np.array([[0.0, 0.5, 0.0], [0.0, 0.0, 0.0]])
    assert definition.assign(table) == definition.assign(table, "greedy") == [(0, 1)]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_greedy_is_never_better(rows: int, columns: int, seed: int) -> None:
    table = np.random.default_rng(seed).uniform(-0.5, 1, (rows, columns)).clip(0)
    optimal, greedy = definition.assign(table), definition.assign(table, "greedy")
    assert sum(table[pair] for pair in greedy) <= sum(table[pair] for pair in optimal) + 1e-12


def scene() -> tuple[GroundTruth, Detections]:
    """Return an image of two objects, 20 x 20 and 8 x 20 pixels, and three detections: one each, and a stray."""
    large, narrow = np.zeros((60, 80), bool), np.zeros((60, 80), bool)
    large[10:30, 10:30] = True
    narrow[10:30, 50:58] = True
    truth = GroundTruth.from_masks(["cup", "dog"], [(1, [large, narrow], [0, 1])], shapes={1: (60, 80), 2: (60, 80)})
    found = Detections(
        classes=["none", "dog", "cup"],
        image_ids=[1, 1, 1],
        boxes=[[10, 10, 29, 29], [50, 10, 57, 29], [60, 40, 70, 50]],
        label_probs=[[0.19, 0.0, 0.81], [0.0, 0.64, 0.3], [0.7, 0.2, 0.1]],
    )
    return truth, found


def test_evaluate_by_hand() -> None:
    score = definition.evaluate(*scene(), REFERENCE)
    assert (score.tp, score.fp, score.fn) == (2, 1, 0)
    assert score.pdq == pytest.approx((0.9 + 0.8) / 3)
    assert (score.overall, score.spatial, score.fg, score.bg) == pytest.approx((0.85, 1, 1, 1))
    assert score.label == pytest.approx((0.81 + 0.64) / 2)
    assert [match[:2] for match in score.images[0].matches] == [(0, 0), (1, 1)]


def test_confidence_denominator() -> None:
    score = definition.evaluate(*scene(), Convention.preset("challenge"))
    assert score.pdq == pytest.approx((0.9 + 0.8) / 2.2)
    assert score.fp == 1


def test_object_filter() -> None:
    score = definition.evaluate(*scene(), REFERENCE.replace(object_filter=True))
    assert (score.tp, score.fp, score.fn) == (1, 1, 0)
    assert [match[:2] for match in score.images[0].passed_over] == [(1, 1)]
    assert score.pdq == pytest.approx(0.9 / 2)
    truth, found = scene()
    nobody = definition.evaluate(truth, found.select([0]), REFERENCE.replace(object_filter=True))
    assert (nobody.tp, nobody.fp, nobody.fn) == (1, 0, 0)


def test_label_threshold_counts_the_background_and_is_strict() -> None:
    truth, found = scene()
    assert definition.evaluate(truth, found, REFERENCE.replace(label_threshold=0.64)).fp == 1
    score = definition.evaluate(truth, found, REFERENCE.replace(label_threshold=0.7))
    assert (score.tp, score.fp, score.fn) == (1, 0, 1)


def test_fixed_variance() -> None:
    truth, found = scene()
    blurred = definition.evaluate(truth, found, REFERENCE.replace(fixed_variance=1.0))
    own = definition.heatmap(found.boxes[0], UNIT, 80, 60, REFERENCE)
    mask = truth.masks.to_array(0, 60, 80)
    foreground, _ = definition.losses(own, mask, (10, 10, 29, 29), REFERENCE)
    assert blurred.images[0].tables["fg"][0, 0] == pytest.approx(np.exp(foreground / 400))
    plain = definition.evaluate(truth, found, REFERENCE.replace(fixed_variance=0.0))
    assert plain.spatial == 1


def test_given_heatmaps() -> None:
    truth, found = scene()
    levels = np.zeros((60, 80), np.uint8)
    levels[10:30, 10:30] = 51
    values = np.zeros((60, 80), np.float32)
    values[10:30, 50:58] = 0.001  # below the smallest probability of a box, used all the same
    given_maps = Detections(
        classes=found.classes,
        image_ids=[1, 1],
        boxes=np.zeros((2, 4)),
        label_probs=found.label_probs[:2],
        heatmaps=[levels, values],
    )
    tables = definition.evaluate(truth, given_maps, REFERENCE).images[0].tables
    assert tables["fg"][0, 0] == pytest.approx(0.2)
    assert tables["fg"][1, 1] == pytest.approx(0.001)


def test_nothing_to_score_is_nan() -> None:
    truth, found = scene()
    score = definition.evaluate(truth.select_images([2]), found.select([]), REFERENCE)
    assert (score.tp, score.fp, score.fn) == (0, 0, 0)
    assert np.isnan([score.pdq, score.overall, score.spatial, score.label, score.fg, score.bg]).all()
    missed = definition.evaluate(truth, found.select([]), REFERENCE)
    assert (missed.pdq, missed.fn) == (0.0, 2)
    assert np.isnan(missed.overall)

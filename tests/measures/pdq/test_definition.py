"""The plain definition of PDQ: what its equations promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox.convention import Convention
from probox.measures.pdq import definition
from probox.measures.pdq.definition import corner_map, plain_cover, region_of_interest
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

REFERENCE = Convention.preset("reference")
PAPER = Convention.preset("paper")


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


def test_plain_box_that_misses_most_of_an_object_scores_nothing() -> None:
    # The reference calls Q_S <= 1e-8 zero: with 1e-14 for every missed pixel, that is a share of 8/14 = 57 %.
    mask = one_object(slice(0, 1), slice(0, 8))
    heatmaps = [definition.heatmap([0, 0, last, 0], None, 8, 6, REFERENCE) for last in (2, 3)]
    for convention, missed_five in ((REFERENCE, 0.0), (PAPER, 1e-14 ** (5 / 8 / 2))):
        table = definition.pair_tables([mask], heatmaps, [[1.0], [1.0]], [0], convention)["overall"]
        assert table[0, 0] == pytest.approx(missed_five, rel=1e-6)
        assert table[0, 1] == pytest.approx(1e-14 ** (4 / 8 / 2), rel=1e-6)


# --- assignment and score -------------------------------------------------------------------------------------------


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


def test_nothing_to_score_is_nan() -> None:
    truth, found = scene()
    score = definition.evaluate(truth.select_images([2]), found.select([]), REFERENCE)
    assert (score.tp, score.fp, score.fn) == (0, 0, 0)
    assert np.isnan([score.pdq, score.overall, score.spatial, score.label, score.fg, score.bg]).all()
    missed = definition.evaluate(truth, found.select([]), REFERENCE)
    assert (missed.pdq, missed.fn) == (0.0, 2)
    assert np.isnan(missed.overall)

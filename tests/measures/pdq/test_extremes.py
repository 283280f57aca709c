"""Values at the edge of what is accepted: no crash, no NaN, and the definition's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.amounts import examples

from probox import Convention, Detections, GroundTruth, _core, evaluate
from probox.errors import InputError
from probox.measures.pdq import definition
from probox.measures.pdq.kernel import heatmap, pair_tables

CLASSES = ("cup", "dog")
PRESETS = ("reference", "paper", "challenge")
TINY, HUGE = 1e-12, 1e9
BELOW_ONE = 1.0 - 1e-15


def covariance(sx: float, sy: float, rho: float) -> np.ndarray:
    return np.array([[sx * sx, rho * sx * sy], [rho * sx * sy, sy * sy]])


def check_map(box, covariances, width, height, convention):
    """Require a map of probabilities, equal to the definition's."""
    got = heatmap(box, covariances, width, height, convention)
    with np.errstate(over="ignore", invalid="ignore"):
        want = definition.heatmap(box, covariances, width, height, convention)
    # One unit of float32 for the reference's maps; the equations' maps agree to the last bits of a double.
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-7 if convention.single_precision else 5e-15)
    assert got.min() >= 0.0
    assert got.max() <= 1.0
    return got


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("rho", [1.0, -1.0])
def test_a_variance_below_zero_by_rounding_counts_as_zero(preset, rho):
    # Accepted as positive semi-definite to a millionth of the largest entry; its root was NaN, then a wild index.
    first = np.array([[-5e-7, 0.0], [0.0, 1.0]])
    second = np.array([[4.0, rho * 1e-6], [rho * 1e-6, -1e-6]])
    got = check_map([5.3, 4.2, 30.6, 20.1], np.stack([first, second]), 40, 30, Convention.preset(preset))
    assert got.max() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("rho", [1.0, -1.0])
def test_a_determinant_below_zero_by_rounding_keeps_the_definition_s_region(rho):
    # The quadratic form then has no smallest value along a line of pixels but at the line's ends.
    corner = np.array([[100.0, rho * 100.00005], [rho * 100.00005, 100.0]])
    convention = Convention()
    with np.errstate(invalid="ignore"):
        check_map([60.0, 60.0, 90.0, 95.0], np.stack([corner, corner]), 160, 150, convention)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("sigma", [2e4, 1e6, HUGE])
@pytest.mark.parametrize("rho", [0.5, 0.95, -0.999])
def test_correlated_corners_of_huge_variance_need_no_huge_table(preset, sigma, rho):
    # Tables of Phi grew with the deviation: past any memory, and past the range of an int.
    flat, other = covariance(sigma, 3.0, rho), covariance(2.0, sigma, -rho)
    check_map([4.0, 5.0, 20.0, 14.0], np.stack([flat, other]), 31, 22, Convention.preset(preset))
    check_map([4.0, 5.0, 20.0, 14.0], np.stack([covariance(sigma, sigma, rho)] * 2), 31, 22, Convention.preset(preset))


def test_corners_without_variance_on_a_border_meet_the_definition():
    # Beyond 128 pixels a border and the point just before it are one number, so the pixel before counts.
    covariances = np.stack([np.diag([0.0, 0.3]), np.diag([0.0, 40.0])])
    check_map([200.0, 0.9, 563.0, 1.4], covariances, 1000, 3, Convention.preset("paper"))
    check_map([9.0, 0.9, 563.0, 1.4], covariances, 1000, 3, Convention.preset("paper"))


def test_the_fast_rows_end_at_a_deviation_without_a_step():
    widest = 16384.0
    maps = [
        check_map([9.0, 9.0, 40.0, 30.0], np.stack([covariance(sigma, 2.0, 0.6), covariance(3.0, 2.0, 0.1)]), 3000, 40,
                  Convention.preset("reference", min_probability=0.0))
        for sigma in (widest, np.nextafter(widest, HUGE), widest * 1.001)
    ]  # fmt: skip
    np.testing.assert_allclose(maps[0], maps[1], rtol=0, atol=2e-7)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("sigma", [1e-30, 1e-50, 1e-100, 1e-150])
@pytest.mark.parametrize("rho", [0.95, -0.95, BELOW_ONE, 0.5])
def test_correlated_corners_of_vanishing_variance_are_steps(preset, sigma, rho):
    # Standardised distances of 1e30 and more overflowed on the way to probabilities of 0 and 1.
    pair = np.stack([covariance(sigma, sigma, rho), covariance(sigma, 1.0, rho)])
    got = check_map([3.5, 2.5, 8.5, 7.5], pair, 12, 11, Convention.preset(preset))
    assert got[5, 6] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("far", [41.0, 1e6, 1e40, 1e160, np.inf])
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.95, -0.95, BELOW_ONE, -BELOW_ONE, 1.0, -1.0])
def test_bivariate_cdf_of_a_bound_far_away_is_a_marginal(far, rho):
    for k in (-2.0, 0.0, 0.7, far):
        marginal = float(definition.bivariate_cdf(np.inf, k, 0.0))
        assert (
            _core.bivariate_cdf(far, k, rho) == _core.bivariate_cdf(k, far, rho) == pytest.approx(marginal, abs=1e-15)
        )
        assert _core.bivariate_cdf(-far, k, rho) == _core.bivariate_cdf(k, -far, rho) == 0.0


@pytest.mark.parametrize("epsilon", [1e-300, 1e-100, 1e-30, 1e-16, 1e-14])
@pytest.mark.parametrize("background", ["box", "mask"])
def test_small_epsilons_do_not_underflow(epsilon, background):
    # Sums of logarithms are products with their exponents kept apart; 18 factors of 1e-30 were 0.
    mask, probability = np.zeros((400, 60), bool), np.zeros((400, 60), np.float32)
    mask[:, :40] = probability[:, :40] = True
    probability[:20, 3], probability[30:50, 44] = 0.0, 1.0
    mask[7, 5] = False
    truth = GroundTruth.from_masks(CLASSES, [(1, [mask], [0])], shapes={1: mask.shape})
    found = Detections(
        classes=CLASSES, image_ids=[1], boxes=[[0, 0, 9, 9]], label_probs=[[0.7, 0.3]], heatmaps=[probability]
    )
    convention = Convention.preset("paper", epsilon=epsilon, background=background)
    want = definition.pair_tables([mask], [probability], found.label_probs, [0], convention)
    got = pair_tables(truth, found, convention, 0)
    assert 0.1 < want["fg"][0, 0] < 1.0
    for column, name in enumerate(("overall", "spatial", "label", "fg", "bg")):
        np.testing.assert_allclose(got[:, :, column], want[name], rtol=1e-9)


def test_an_epsilon_that_float64_cannot_hold_is_refused():
    with pytest.raises(InputError, match="epsilon"):
        Convention(epsilon=1e-310)


@pytest.mark.parametrize("quality", [np.nan, np.inf, -0.5])
@pytest.mark.parametrize("greedy", [False, True])
def test_assignment_refuses_what_is_no_quality(quality, greedy):
    # The search for the cheapest column found none among NaN, and went on with column -1.
    pair = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="finite"):
        _core.assign_pairs(
            offsets=np.array([0, 1]),
            detections=pair,
            objects=pair,
            qualities=np.array([quality]),
            greedy=greedy,
            threads=1,
        )


SIGMAS = st.one_of(st.floats(np.log(TINY), np.log(HUGE)), st.floats(np.log(0.03), np.log(300.0))).map(np.exp)
CORRELATIONS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, BELOW_ONE, -BELOW_ONE, 1 - 1e-8, 0.9996, -0.9994, 0.925, 1e-17, -1e-300]),
    st.floats(-1, 1),
)
SIZES = st.sampled_from([(1, 1), (1, 7), (9, 1), (3000, 2), (2, 1500), (50, 40), (17, 33)])


@st.composite
def covariances(draw):
    matrix = covariance(draw(SIGMAS), draw(SIGMAS), draw(CORRELATIONS))
    flaw = draw(st.sampled_from([0.0, 0.0, 1e-9, 4e-7]))  # barely not positive semi-definite
    return matrix * draw(st.sampled_from([1.0, 1.0, 0.0])) - np.eye(2) * np.abs(matrix).max() * flaw


@st.composite
def extreme_boxes(draw):
    width, height = draw(SIZES)

    def pair(size):
        corner = st.one_of(st.sampled_from([-1e9, 1e9, 0.0, float(size)]), st.floats(-size - 2.0, 2.0 * size + 2.0))
        low, high = sorted((draw(corner), draw(corner)))
        return (low, low) if draw(st.integers(0, 5)) == 0 else (low, high)

    (x1, x2), (y1, y2) = pair(width), pair(height)
    return [x1, y1, x2, y2], np.stack([draw(covariances()), draw(covariances())]), width, height


@pytest.mark.parametrize("preset", PRESETS)
@examples(120)
@given(case=extreme_boxes(), background=st.sampled_from(["box", "mask"]), objects=st.integers(0, 2))
def test_scores_of_extreme_boxes_are_numbers(preset, case, background, objects):
    box, spread, width, height = case
    convention = Convention.preset(preset, background=background)
    masks = [np.zeros((height, width), bool) for _ in range(objects)]
    for number, mask in enumerate(masks):
        mask[height // 2, width // 2] = True
        mask[: number * height, : number * width] = True
    truth = GroundTruth.from_masks(CLASSES, [(1, masks, [0] * objects)], shapes={1: (height, width)})
    try:
        found = Detections(
            classes=CLASSES, image_ids=[1], boxes=[box], label_probs=[[0.7, 0.3]], covariances=spread[None]
        )
    except InputError:  # too far from positive semi-definite after all
        return
    tables = pair_tables(truth, found, convention, 0)
    assert np.all((tables >= 0.0) & (tables <= 1.0))
    assert 0.0 <= evaluate(truth, found, convention=convention).summary()["PDQ"] <= 1.0
    probability = heatmap(box, spread, width, height, convention)
    assert np.all((probability >= 0.0) & (probability <= 1.0))


@examples(150)
@given(
    seed=st.integers(0, 2**32 - 1),
    rho=st.sampled_from([0.0, 1e-300, -1e-12, 1e-9, -1e-5, 0.03, -0.6, 0.93, -0.9994]),
    rough_sigmas=st.sampled_from([0.7, 3.0, 5.0, 12.0, 25.0]),
    mahalanobis=st.sampled_from([0.8, 3.439, 9.0, 30.0]),
    min_determinant=st.sampled_from([1e-8, 1e2, 1e9]),
    min_probability=st.sampled_from([0.0, 1e-7, 0.0027, 0.3, 0.7]),
)
@example(seed=2_484_609_731, rho=-0.9994, rough_sigmas=12.0, mahalanobis=0.8, min_determinant=1e-8, min_probability=0.0)
def test_maps_equal_the_definition_whatever_the_constants(
    seed, rho, rough_sigmas, mahalanobis, min_determinant, min_probability
):
    rng = np.random.default_rng(seed)
    width, height = (int(n) for n in rng.integers(1, 70, 2))
    sigmas = np.exp(rng.uniform(np.log(0.06), np.log(20.0), (2, 2)))
    reach = rough_sigmas * sigmas  # corners as far outside as a region of interest may reach
    first = rng.uniform(-reach[0], [width, height] + reach[0])
    second = rng.uniform(-reach[1], [width, height] + reach[1])
    convention = Convention(
        rough_sigmas=rough_sigmas,
        mahalanobis=mahalanobis,
        min_determinant=min_determinant,
        min_probability=min_probability,
    )
    got, want = (
        function([*first, *second], np.stack([covariance(*pair, rho) for pair in sigmas]), width, height, convention)
        for function in (heatmap, definition.heatmap)
    )
    # A value on the cut may fall on either side of it.
    on_the_cut = np.abs(np.maximum(got, want) - min_probability) < 1e-6
    np.testing.assert_allclose(np.where(on_the_cut, 0.0, got), np.where(on_the_cut, 0.0, want), rtol=0, atol=3e-7)


@pytest.mark.parametrize("rho", [1e-9, -1e-9, 1e-300])
@pytest.mark.parametrize("corner", [(-20.0, 10.0), (-24.0, -20.0), (60.0, 70.0)])
def test_a_corner_far_outside_that_is_hardly_correlated(rho, corner):
    """All columns are passed for sure, and with next to no correlation they are for ever."""
    x, y = corner
    spread = np.stack([covariance(2.0, 2.0, rho)] * 2)
    check_map([x, y, x + 20, y + 30], spread, 50, 40, Convention(rough_sigmas=20.0))

"""Changing coordinates of a Gaussian box, against sampling and back again."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples, some_of

from probox.errors import InputError
from probox.fusion import convert_boxes, corner_covariances

NAMES = ("corners", "centre-size", "centre-log-size", "edge-distances")
POINT = np.array([118.0, 93.0])


def _transform(values: np.ndarray, source: str, target: str) -> np.ndarray:
    """Each coordinate written out, as one would on paper."""
    a, b, c, d = values.T
    if source == "corners":
        x1, y1, x2, y2 = a, b, c, d
    elif source == "edge-distances":
        x1, y1, x2, y2 = POINT[0] - a, POINT[1] - b, POINT[0] + c, POINT[1] + d
    else:
        w, h = (np.exp(c), np.exp(d)) if source == "centre-log-size" else (c, d)
        x1, y1, x2, y2 = a - w / 2, b - h / 2, a + w / 2, b + h / 2
    if target == "corners":
        return np.stack([x1, y1, x2, y2], axis=1)
    if target == "edge-distances":
        return np.stack([POINT[0] - x1, POINT[1] - y1, x2 - POINT[0], y2 - POINT[1]], axis=1)
    w, h = x2 - x1, y2 - y1
    if target == "centre-log-size":
        w, h = np.log(w), np.log(h)
    return np.stack([(x1 + x2) / 2, (y1 + y2) / 2, w, h], axis=1)


def _case(source: str) -> tuple[np.ndarray, np.ndarray]:
    corners = np.array([[80.0, 60.0, 180.0, 130.0]])
    mean = _transform(corners, "corners", source)[0]
    rng = np.random.default_rng(NAMES.index(source))
    factor = rng.normal(size=(4, 4)) * (0.02 if source == "centre-log-size" else 1.0)
    if source == "centre-log-size":
        factor[2:] *= 10.0  # sizes unsure by a third: what the first order leaves out is plain to see
    return mean, factor @ factor.T


@pytest.mark.parametrize(
    ("source", "target"), [pair for pair in itertools.product(NAMES, NAMES) if pair[1] != "centre-log-size"]
)
def test_conversion_equals_sampling(source: str, target: str) -> None:
    mean, cov = _case(source)
    rng = np.random.default_rng(11)
    count = some_of(400_000)
    samples = _transform(rng.multivariate_normal(mean, cov, count), source, target)
    new_mean, new_cov = convert_boxes(mean, cov=cov, source=source, target=target, point=POINT)
    error = samples - new_mean
    # Five standard errors of the mean, and of each entry of the covariance.
    np.testing.assert_array_less(np.abs(error.mean(axis=0)), 5 * samples.std(axis=0) / np.sqrt(count))
    products = error[:, :, None] * error[:, None, :]
    np.testing.assert_array_less(
        np.abs(products.mean(axis=0) - new_cov), 5 * products.std(axis=0) / np.sqrt(count) + 1e-12
    )


@pytest.mark.parametrize("source", [name for name in NAMES if name != "centre-log-size"])
def test_log_sizes_have_the_moments_of_the_sizes(source: str) -> None:
    """Log sizes are those Gaussians whose exponentials have the given mean and covariance."""
    mean, cov = _case(source)
    log_mean, log_cov = convert_boxes(mean, cov=cov, source=source, target="centre-log-size", point=POINT)
    samples = np.random.default_rng(3).multivariate_normal(log_mean, log_cov, 400_000)
    sized = _transform(samples, "centre-log-size", "centre-size")
    wanted, spread = convert_boxes(mean, cov=cov, source=source, target="centre-size", point=POINT)
    error = sized - wanted
    np.testing.assert_array_less(np.abs(error.mean(axis=0)), 5 * np.sqrt(np.diag(spread) / len(samples)))
    products = error[:, :, None] * error[:, None, :]
    np.testing.assert_array_less(
        np.abs(products.mean(axis=0) - spread), 5 * products.std(axis=0) / np.sqrt(len(samples))
    )


def test_a_log_normal_size_as_in_books() -> None:
    m, v = 1.2, 0.3
    mean, cov = convert_boxes([5, 6, m, 2], var=[1, 1, v, 0], source="centre-log-size", target="centre-size")
    assert mean[2] == pytest.approx(math.exp(m + v / 2), rel=1e-14)
    assert cov[2, 2] == pytest.approx((math.exp(v) - 1) * math.exp(2 * m + v), rel=1e-13)
    # A side without variance is its exponential, and nothing of it is unsure.
    assert mean[3] == pytest.approx(math.exp(2), rel=1e-15)
    assert not cov[3].any()
    back, spread = convert_boxes(mean, cov=cov, source="centre-size", target="centre-log-size")
    np.testing.assert_allclose(back, [5, 6, m, 2], rtol=1e-14)
    np.testing.assert_allclose(np.diag(spread), [1, 1, v, 0], rtol=1e-13)


log_boxes = st.tuples(
    st.tuples(*[st.floats(-500, 500)] * 2, *[st.floats(-3, 7)] * 2),
    st.lists(st.floats(-1, 1), min_size=16, max_size=16),
    st.floats(1e-6, 1.0),
)


@examples(40)
@given(st.lists(log_boxes, min_size=1, max_size=3))
def test_log_sizes_there_and_back(drawn: list) -> None:
    mean = np.array([box for box, _, _ in drawn])
    factor = np.array([np.reshape(numbers, (4, 4)) * scale for _, numbers, scale in drawn])
    cov = factor @ np.swapaxes(factor, -1, -2)
    for target in ("centre-size", "corners", "edge-distances"):
        there = convert_boxes(mean, cov=cov, source="centre-log-size", target=target, point=POINT)
        back = convert_boxes(there[0], cov=there[1], source=target, target="centre-log-size", point=POINT)
        np.testing.assert_allclose(back[0], mean, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(back[1], cov, rtol=1e-6, atol=1e-7)


def test_moments_that_no_log_size_has_are_refused() -> None:
    box = [80.0, 60.0, 180.0, 130.0]
    one_edge = np.diag([0.0, 4.0, 100.0, 4.0])  # centre and width are one number: a log width can't follow both
    with pytest.raises(InputError, match=r'no Gaussian log sizes have these moments.*"centre-size"'):
        convert_boxes(box, cov=one_edge, source="corners", target="centre-log-size")
    both_edges = np.diag([4.0, 4.0, 100.0, 4.0])
    _, log_cov = convert_boxes(box, cov=both_edges, source="corners", target="centre-log-size")
    assert (np.linalg.eigvalsh(log_cov) > 0).all()
    opposite = np.diag([0.0, 0.0, 9.0, 9.0]) - 9.0 * np.eye(4)[[0, 1, 3, 2]] * [[0], [0], [1], [1]]
    with pytest.raises(InputError, match="no Gaussian log sizes"):  # width + height certain, both as unsure as large
        convert_boxes([9, 9, 3, 3], cov=opposite, source="centre-size", target="centre-log-size")


def test_sizes_without_a_finite_mean_are_refused() -> None:
    for mean, var in (([0, 0, 800, 1], 0.1), ([0, 0, 1, 1], 2000.0)):
        with pytest.raises(InputError, match="no finite mean and variance"):
            convert_boxes(mean, var=[1, 1, var, 0.1], source="centre-log-size", target="corners")


def test_std_and_var_mean_what_they_say() -> None:
    box = np.array([[50.0, 40.0, 20.0, 10.0]])
    by_std = convert_boxes(box, std=[[1.0, 2.0, 3.0, 4.0]], source="centre-size", target="corners")
    by_var = convert_boxes(box, var=[1.0, 4.0, 9.0, 16.0], source="centre-size", target="corners")
    np.testing.assert_allclose(by_std[1], by_var[1])
    # var(x1) = var(cx) + var(w) / 4
    assert by_std[1][0, 0, 0] == pytest.approx(1 + 9 / 4)


@pytest.mark.parametrize("given", [{}, {"std": [1] * 4, "var": [1] * 4}, {"std": [1] * 4, "cov": np.eye(4)}])
def test_exactly_one_spread(given: dict) -> None:
    with pytest.raises(InputError, match="exactly one of std=, var= and cov="):
        convert_boxes([0, 0, 1, 1], source="corners", target="centre-size", **given)


def test_positional_spread_is_impossible() -> None:
    with pytest.raises(TypeError):
        convert_boxes([0, 0, 1, 1], [1, 1, 1, 1], source="corners", target="centre-size")


@pytest.mark.parametrize(
    ("mean", "options", "message"),
    [
        ([0, 0, 1], {}, "N x 4"),
        ([0, 0, 1, 1], {"var": [-1, 0, 0, 0]}, "apply exp to log variances"),
        ([0, 0, 1, 1], {"std": [1, 1]}, "std of shape"),
        ([0, 0, 1, 1], {"cov": np.eye(3)}, "cov of shape"),
        ([0, 0, 1, 1], {"target": "edge-distances"}, "point="),
        ([0, 0, 1, 1], {"target": "edge-distances", "point": [1, 2, 3]}, "point of shape"),
        ([0, 0, 0, 1], {"target": "centre-log-size"}, "positive size"),
        ([0, 0, 1, 1], {"target": "polar"}, "expected target"),
        ([0, 0, 1, 1], {"source": "polar"}, "expected source"),
    ],
)
def test_wrong_input_is_named(mean: list, options: dict, message: str) -> None:
    arguments = {"source": "corners", "target": "corners", **options}
    if not {"std", "var", "cov"} & set(arguments):
        arguments["std"] = [1, 1, 1, 1]
    with pytest.raises(InputError, match=message):
        convert_boxes(mean, **arguments)


def test_corner_blocks() -> None:
    full = np.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(corner_covariances(full), [full[:2, :2], full[2:, 2:]])
    assert corner_covariances(np.zeros((5, 4, 4))).shape == (5, 2, 2, 2)
    with pytest.raises(InputError, match="N x 4 x 4"):
        corner_covariances(np.zeros((2, 2)))

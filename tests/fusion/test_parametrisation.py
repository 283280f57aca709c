"""Changing coordinates of a Gaussian box, against sampling and back again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

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
    return mean, factor @ factor.T


@pytest.mark.parametrize(("source", "target"), list(itertools.product(NAMES, NAMES)))
def test_conversion_equals_sampling(source: str, target: str) -> None:
    mean, cov = _case(source)
    rng = np.random.default_rng(11)
    samples = _transform(rng.multivariate_normal(mean, cov, 200_000), source, target)
    new_mean, new_cov = convert_boxes(mean, cov=cov, source=source, target=target, point=POINT)
    scale = np.sqrt(np.diag(new_cov))
    # First order: log sizes curve by about half their variance.
    np.testing.assert_allclose(new_mean, samples.mean(axis=0), atol=0.05 * scale.max())
    np.testing.assert_allclose(new_cov / np.outer(scale, scale), np.cov(samples.T) / np.outer(scale, scale), atol=0.03)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(NAMES, NAMES)))
def test_there_and_back_again(source: str, target: str) -> None:
    mean, cov = _case(source)
    there = convert_boxes(mean[None], cov=cov[None], source=source, target=target, point=POINT)
    back = convert_boxes(there[0], cov=there[1], source=target, target=source, point=POINT[None])
    np.testing.assert_allclose(back[0][0], mean, rtol=1e-12)
    np.testing.assert_allclose(back[1][0], cov, rtol=1e-9, atol=1e-12)


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
        ([0, 0, 1, 1], {"var": [-1, 0, 0, 0]}, "log variances needs exp"),
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

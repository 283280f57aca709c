"""The law of spread: the fast fit against a plain definition, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.amounts import examples

from probox import InputError
from probox.calibration import std_regression
from probox.calibration.std_regression import NU, OFFSET_RIDGE, RIDGES, Slope, StdModel, fit_std_model

NAMES = ("a", "b")


def penalised_loss(law: StdModel, features: np.ndarray, errors: np.ndarray, classes: np.ndarray, ridge: float) -> float:
    """Return what is minimised, edge by edge as the equations have it."""
    total = 0.0
    of_class = dict(law.classes)
    for i, edge in np.argwhere(np.isfinite(errors)).tolist():
        u = law.level + law.edges[edge] + of_class[str(classes[i])]
        for own, value in zip(law.slopes, features[i, edge], strict=True):
            u += own.slope * min(2.0, max(-2.0, (value - own.mean) / own.scale))
        total += u + (NU + 1) / 2 * np.log(1 + (errors[i, edge] / np.exp(u)) ** 2 / NU)
    offsets = sum(value**2 for value in law.edges) + sum(value**2 for value in of_class.values())
    return total + 0.5 * ridge * sum(own.slope**2 for own in law.slopes) + 0.5 * OFFSET_RIDGE * offsets


def of_vector(vector: np.ndarray, law: StdModel) -> StdModel:
    """Return the law of other parameters, with the same means and scales."""
    level, x1, y1, x2, y2, *rest = vector.tolist()
    slopes = tuple(Slope(own.name, own.mean, own.scale, s) for own, s in zip(law.slopes, rest, strict=False))
    names = [name for name, _ in law.classes]
    return StdModel(level, (x1, y1, x2, y2), slopes, tuple(zip(names, rest[len(slopes) :], strict=True)))


def vector_of(law: StdModel) -> np.ndarray:
    slopes = [own.slope for own in law.slopes]
    return np.array([law.level, *law.edges, *slopes, *(value for _, value in law.classes)])


def world(seed: int, rows: int = 40, tail: float = 3.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, 4, 2)) * [1.0, 30.0] + [5.0, -2.0]
    sigmas = 0.1 * np.exp(0.4 * features[:, :, 0] - 0.01 * features[:, :, 1])
    errors = rng.standard_t(tail, (rows, 4)) * sigmas
    errors[rng.uniform(size=errors.shape) < 0.1] = np.nan
    return features, errors, rng.choice(["cup", "dog", "owl"], rows)


@given(seed=st.integers(0, 10**6), ridge=st.sampled_from([0.5, 20.0, 500.0]), tail=st.sampled_from([1.5, 4.0, 50.0]))
@examples(8)
def test_the_fit_is_the_minimum_of_the_definition(seed: int, ridge: float, tail: float) -> None:
    features, errors, classes = world(seed, 20, tail)
    law = fit_std_model(features, errors, NAMES, classes=classes, ridge=ridge)[0]

    def loss(vector: np.ndarray) -> float:
        return penalised_loss(of_vector(vector, law), features, errors, classes, ridge)

    best = minimize(loss, vector_of(law) + 0.05, method="BFGS", options={"gtol": 1e-5})
    # Very small errors count as a little more in the fit, which moves nothing that matters.
    assert loss(vector_of(law)) <= best.fun + 1e-3
    assert vector_of(law) == pytest.approx(best.x, abs=2e-3)


def test_parameters_are_of_the_features_as_they_come() -> None:
    features, errors, classes = world(1, 30)
    known = np.isfinite(errors)
    law = fit_std_model(features, errors, NAMES, classes=classes, ridge=10.0)[0]
    assert [own.name for own in law.slopes] == ["a", "b"]
    assert [own.mean for own in law.slopes] == pytest.approx(features[known].mean(axis=0))
    assert [own.scale for own in law.slopes] == pytest.approx(features[known].std(axis=0))
    assert [name for name, _ in law.classes] == ["cup", "dog", "owl"]


@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1e-3, 7.0, 1e4]))
@examples(10)
def test_scale_and_order_do_not_matter(seed: int, factor: float) -> None:
    features, errors, classes = world(seed)
    images = np.arange(40) // 3
    model, ridge = fit_std_model(features, errors, NAMES, classes=classes, images=images)
    larger, larger_ridge = fit_std_model(features * factor, errors * factor, NAMES, classes=classes, images=images)
    assert larger_ridge == ridge
    assert vector_of(larger)[1:] == pytest.approx(vector_of(model)[1:], abs=1e-7)
    assert larger.level == pytest.approx(model.level + np.log(factor))
    order = np.random.default_rng(seed).permutation(40)
    turned, turned_ridge = fit_std_model(
        features[order], errors[order], NAMES, classes=classes[order], images=images[order]
    )
    assert turned_ridge == ridge
    assert vector_of(turned) == pytest.approx(vector_of(model), abs=1e-7)


def test_a_few_wild_errors_move_little() -> None:
    features, errors, _ = world(3, 400, 30.0)
    before = fit_std_model(features, errors, NAMES, ridge=10.0)[0]
    errors[:4, 0] = 1e6
    after = fit_std_model(features, errors, NAMES, ridge=10.0)[0]
    assert vector_of(after) == pytest.approx(vector_of(before), abs=0.06)


def test_classes_of_few_pairs_are_drawn_towards_all() -> None:
    rng = np.random.default_rng(0)
    classes = np.array(["many"] * 1000 + ["twice"] * 500 + ["rare"] * 5)
    sigmas = np.array([1.0] * 1000 + [2.0] * 505)
    errors = rng.normal(size=(1505, 4)) * sigmas[:, None]
    law = fit_std_model(np.zeros((1505, 4, 1)), errors, ("nothing",), classes=classes, ridge=10.0)[0]
    own = dict(law.classes)
    assert own["twice"] - own["many"] == pytest.approx(np.log(2), abs=0.06)
    assert 0 < own["rare"] - own["many"] < 0.6 * np.log(2)
    assert law.slopes[0].slope == 0, "a feature that does not vary"
    assert law.slopes[0].scale == 1


def test_slopes_of_nothing_get_the_largest_ridge() -> None:
    rng = np.random.default_rng(0)
    model, ridge = fit_std_model(rng.normal(size=(60, 4, 2)), rng.normal(size=(60, 4)), NAMES)
    assert ridge >= 1000
    assert max(abs(own.slope) for own in model.slopes) < 0.04
    features, errors, _ = world(2, 600, 30.0)
    assert fit_std_model(features, errors, NAMES)[1] < 1000
    _, alone = fit_std_model(features, errors, NAMES, images=np.zeros(600, np.int64))
    assert alone == 10, "one image leaves nothing to choose by"
    _, same = fit_std_model(np.zeros((60, 4, 2)), rng.normal(size=(60, 4)), NAMES)
    assert same == RIDGES[-1], "where no ridge is better than another"


def test_images_stay_together_when_a_ridge_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of an image that are the same would be known from each other, and a ridge of 1 look best."""
    rng = np.random.default_rng(5)
    features = np.repeat(rng.normal(size=(30, 4, 12)), 20, axis=0)
    errors = np.repeat(rng.normal(size=(30, 4)), 20, axis=0)
    names = tuple("abcdefghijkl")
    assert fit_std_model(features, errors, names, images=np.repeat(np.arange(30), 20))[1] == RIDGES[-1]
    assert fit_std_model(features, errors, names)[1] <= 100
    # A part of very many pairs decides, and is where the fit of all begins.
    whole = fit_std_model(features, errors, names, ridge=10.0)[0]
    monkeypatch.setattr(std_regression, "ENOUGH_PAIRS", 100)
    assert vector_of(fit_std_model(features, errors, names, ridge=10.0)[0]) == pytest.approx(vector_of(whole), abs=1e-8)
    assert fit_std_model(features, errors, names, images=np.repeat(np.arange(30), 20))[1] >= 100


def test_the_law_is_level_beyond_what_was_seen() -> None:
    law = StdModel(np.log(0.1), (0.0, 0.0, 0.0, np.log(3)), (Slope("a", 1.0, 2.0, np.log(2)),), (("cup", np.log(5)),))
    features = np.array([1.0, 3.0, 5.0, 99.0, -3.0, -99.0])[:, None, None].repeat(4, axis=1)
    sigmas = law.relative_sigmas(features)
    assert sigmas[:, 0] == pytest.approx([0.1, 0.2, 0.4, 0.4, 0.025, 0.025])
    assert sigmas[:, 3] == pytest.approx(3 * sigmas[:, 0])
    assert law.relative_sigmas(features[:2], np.array(["Cup", "owl"]))[:, 0] == pytest.approx([0.5, 0.2])
    assert law.scale_by(4.0).relative_sigmas(features) == pytest.approx(4 * sigmas)
    assert StdModel(99.0, (0.0,) * 4, ()).relative_sigmas(np.zeros((1, 4, 0))).tolist() == [[pytest.approx(1e6)] * 4]


def test_errors_of_nothing_are_refused() -> None:
    features = np.zeros((40, 4, 1))
    with pytest.raises(InputError, match="no error to learn sigmas from: all are 0; check that detections are not"):
        fit_std_model(features, np.zeros((40, 4)), ("a",))
    with pytest.raises(InputError, match="there is no error to learn sigmas from; check"):
        fit_std_model(features, np.full((40, 4), np.nan), ("a",))
    mostly = np.zeros((40, 4))
    mostly[0] = 1.0
    level = fit_std_model(features, mostly, ("a",))[0].level
    assert np.log(1e-4) < level < np.log(1e-2), "errors of 0 have a bound, and so has the level"

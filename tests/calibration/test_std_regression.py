"""The std regressor and its model: against a plain definition, from tables and from arrays, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.amounts import examples
from tests.worlds import boxes_truth

import probox
from probox import Detections, GroundTruth, InputError
from probox.calibration import Calibration, StdRegressor, fit, std_regression
from probox.calibration.corner_fit import FittingPairs, fit_learned
from probox.calibration.corner_maps import CalibrationInputs, Learned, sigmas_of
from probox.calibration.std_regression import (
    NU,
    OFFSET_RIDGE,
    RIDGES,
    Slope,
    StdModel,
    edge_features,
    feature_names,
    fit_std_model,
)
from probox.cli import cli
from probox.demo import Demo
from probox.notes import Note

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
    with pytest.raises(
        InputError, match="expected errors to fit the std to, but all are 0; check that detections are not"
    ):
        fit_std_model(features, np.zeros((40, 4)), ("a",))
    with pytest.raises(InputError, match="expected errors to fit the std to, but got none; check"):
        fit_std_model(features, np.full((40, 4), np.nan), ("a",))
    mostly = np.zeros((40, 4))
    mostly[0] = 1.0
    level = fit_std_model(features, mostly, ("a",))[0].level
    assert np.log(1e-4) < level < np.log(1e-2), "errors of 0 have a bound, and so has the level"


def fit_std(features: Any, residuals: Any, *, sides: Any = None, images: Any = None, **parameters: Any) -> StdRegressor:
    return StdRegressor().set_params(**parameters).fit(features, residuals, sides=sides, images=images)


def lawful(
    truth: GroundTruth, seed: int = 0, *, reported: float | None = None, factor: float = 1.0
) -> tuple[Detections, np.ndarray]:
    """Return detections whose sigma is a known law of score and size, and these sigmas; reported sigmas are off."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.2, 0.95, len(truth))
    sides = np.tile(truth.boxes[:, 2:] - truth.boxes[:, :2], 2)
    sigmas = factor * 0.04 * sides * (scores[:, None] / (1 - scores[:, None])) ** -0.35 * np.sqrt(80 * factor / sides)
    boxes = truth.boxes + rng.normal(size=sigmas.shape) * sigmas
    found = Detections.from_scores(
        boxes, scores, truth.labels, classes=truth.classes, image_ids=truth.dataset.image_ids[truth.image_rows],
        std=None if reported is None else np.maximum(sigmas**0.5 * reported, 1e-3),
    )  # fmt: skip
    return found, sigmas


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return boxes_truth(150)


@pytest.fixture(scope="module")
def others() -> GroundTruth:
    return boxes_truth(40, seed=9)


def agreement(said: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    """Return the correlation of logarithms, and the factor between them."""
    return float(np.corrcoef(np.log(said).ravel(), np.log(true).ravel())[0, 1]), float(
        np.exp(np.mean(np.log(said) - np.log(true)))
    )


@pytest.mark.parametrize("reported", [None, 2.0])
def test_a_known_law_is_found_on_other_images(truth: GroundTruth, others: GroundTruth, reported: float | None) -> None:
    head = StdRegressor().fit(lawful(truth, reported=reported)[0], truth)
    found, sigmas = lawful(others, 1, reported=reported)
    correlation, factor = agreement(head.predict(found), sigmas)
    assert correlation > 0.95
    assert factor == pytest.approx(1, abs=0.05)
    assert head.n_features_in_ == (3 if reported is None else 5)
    assert head.mapping_.needs_covariances == (reported is not None)


def test_a_known_law_is_found_in_arrays() -> None:
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (4000, 3))
    sides = rng.uniform(10, 90, (4000, 1)) * [1, 2, 1, 2]
    sigmas = 0.1 * sides * np.exp(0.8 * features[:, :1] - 0.5 * features[:, 1:2]) * [1, 1, 1.5, 1]
    residuals = rng.normal(size=sigmas.shape) * sigmas
    residuals[::7, 1] = np.nan
    images = np.arange(4000) // 5
    head = fit_std(features, residuals, sides=sides, images=images)
    correlation, factor = agreement(head.predict(features, sides=sides), sigmas)
    assert correlation > 0.99
    assert factor == pytest.approx(1, abs=0.03)
    # The same features, written out for each edge.
    each = fit_std(np.repeat(features[:, None], 4, axis=1), residuals, sides=sides, images=images)
    assert each.model_ == head.model_
    covering = fit_std(features, residuals, sides=sides, target="coverage", level=0.5)
    inside = np.abs(residuals) <= 0.67449 * covering.predict(features, sides=sides)
    assert inside[np.isfinite(residuals)].mean() == pytest.approx(0.5, abs=1e-3)


def test_sizes_and_units_go_together(truth: GroundTruth) -> None:
    found, _ = lawful(truth, reported=2.0)
    head = fit_std(found, truth)
    double = GroundTruth.from_boxes(
        truth.classes,
        {int(i): (2 * w, 2 * h) for i, (w, h) in zip(truth.image_ids, truth.dataset.shapes.tolist(), strict=True)},
        truth.dataset.image_ids[truth.image_rows],
        2 * truth.boxes,
        truth.labels,
    )
    larger = found.replace(boxes=2 * found.boxes, covariances=4 * found.covariances, extents=2 * found.extents)
    assert fit_std(larger, double).predict(larger) == pytest.approx(2 * head.predict(found), rel=1e-5)


def test_order_does_not_matter(truth: GroundTruth) -> None:
    found, _ = lawful(truth, reported=2.0)
    order = np.random.default_rng(0).permutation(len(found))
    assert fit_std(found.select(order), truth).model_ == fit_std(found, truth).model_


def test_features_are_what_they_say() -> None:
    given = CalibrationInputs(
        sigmas=np.array([[1.0, 4.0, 2.0, 8.0], [0.0] * 4]), sides=np.array([[10.0, 20.0] * 2, [0.0, 5.0] * 2]),
        classes=np.array(["cup", "cup"]), scores=np.array([0.75, 1.0]),
    )  # fmt: skip
    features = edge_features(given, own_sigmas=True)
    assert feature_names(own_sigmas=True) == ("score", "side along", "side across", "own std", "other edges' std")
    assert np.exp(features[0, :, 0]) == pytest.approx([3.0] * 4)
    assert np.exp(features[0, :, 1]) == pytest.approx([10, 20, 10, 20])
    assert np.exp(features[0, :, 2]) == pytest.approx([20, 10, 20, 10])
    assert np.exp(features[0, :, 3]) == pytest.approx([0.1, 0.2, 0.2, 0.4])
    assert np.exp(features[0, :, 4]) == pytest.approx([0.8 / 3, 0.7 / 3, 0.7 / 3, 0.5 / 3])
    assert np.isfinite(features).all()
    assert np.exp(features[1, 0, 0]) == pytest.approx(999), "no score is surer than one in a thousand"
    assert edge_features(given, own_sigmas=False).tolist() == features[:, :, :3].tolist()


def test_edges_at_the_border_do_not_count(truth: GroundTruth) -> None:
    pairs = FittingPairs.of(truth, lawful(truth)[0])
    free = np.ones_like(pairs.free)
    free[::2, 1] = False
    residuals = np.where(free, pairs.residuals, 300.0)
    laws = [
        fit_learned(dataclasses.replace(pairs, free=free, residuals=given), own_sigmas=False)[0].model
        for given in (residuals, pairs.residuals)
    ]
    assert laws[0] == laws[1]
    assert laws[0] != fit_learned(pairs, own_sigmas=False)[0].model


def test_boxes_without_extent_keep_their_sigmas(truth: GroundTruth) -> None:
    mapping = fit_std(lawful(truth, reported=2.0)[0], truth).mapping_
    flat = CalibrationInputs(
        sigmas=np.full((1, 4), 3.0), sides=np.array([[0.0, 50.0, 0.0, 50.0]]), classes=np.array(["owl"]),
        scores=np.array([0.5]),
    )  # fmt: skip
    sigmas = mapping.sigmas(flat)[0].tolist()
    assert sigmas[0] == sigmas[2] == 3
    assert 0 < sigmas[1] < 20
    assert sigmas[1] != 3
    assert not mapping.has_class("owl")
    assert mapping.has_class("Cup")


def test_own_sigmas_can_be_left_alone(truth: GroundTruth, others: GroundTruth) -> None:
    found, _ = lawful(truth, reported=2.0)
    plain = found.replace(covariances=None)
    head = StdRegressor(own_sigmas=False).fit(found, truth)
    assert head.model_ == StdRegressor().fit(plain, truth).model_
    assert head.predict(found).tolist() == head.predict(plain).tolist()
    covariances = head.apply(found).covariances
    assert (covariances[:, :, 0, 1] == 0).all()
    assert sigmas_of(covariances) == pytest.approx(head.predict(found))


def test_correlations_stay_where_own_sigmas_count(truth: GroundTruth) -> None:
    found, _ = lawful(truth, reported=2.0)
    covariances = found.covariances.copy()
    covariances[:, :, 0, 1] = covariances[:, :, 1, 0] = 0.5 * np.sqrt(covariances[:, :, 0, 0] * covariances[:, :, 1, 1])
    found = found.replace(covariances=covariances)
    new = fit_std(found, truth).apply(found).covariances
    assert new[:, :, 0, 1] == pytest.approx(0.5 * np.sqrt(new[:, :, 0, 0] * new[:, :, 1, 1]))


@pytest.mark.slow
def test_heights_are_what_they_are_for(truth: GroundTruth) -> None:
    found, _ = lawful(truth, reported=2.0)
    nll, pdq = fit_std(found, truth), fit_std(found, truth, target="pdq", convention="paper")
    for target, convention in (("nll", None), ("coverage", None), ("pdq", "paper")):
        head = fit_std(found, truth, target=target, convention=convention)
        settings = {} if convention is None else {"preset": convention}
        fitted = fit(truth, found, method="learned", target=target, folds=2, resamples=1, **settings)
        assert fitted.calibration.corners == head.mapping_, "the command and the head are one"
        assert head.apply(found, truth).boxes.tolist() == fitted.calibration.apply(found, truth).boxes.tolist()
    values = [probox.evaluate(truth, head.apply(found, truth), preset="paper").pdq for head in (nll, pdq)]
    assert values[1] > values[0]


def test_parameters_are_like_those_of_scikit_learn(truth: GroundTruth) -> None:
    head = StdRegressor(ridge=3.0)
    assert head.get_params() == {
        "target": "nll", "level": 0.9, "own_sigmas": None, "ridge": 3.0, "folds": 5, "seed": 0, "convention": None,
    }  # fmt: skip
    assert StdRegressor(**head.get_params()).get_params(deep=False) == head.get_params()
    assert head.set_params(target="coverage", seed=4) is head
    assert (head.target, head.seed) == ("coverage", 4)
    assert repr(StdRegressor(level=0.5)).startswith("StdRegressor(target='nll', level=0.5, own_sigmas=None")
    assert head.fit(lawful(truth)[0], truth) is head
    assert head.ridge_ == 3.0


class TestRefusals:
    def test_parameters(self, truth: GroundTruth) -> None:
        found, _ = lawful(truth)
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"target": "map"}, "expected target to be one of pdq, nll, coverage, but got 'map'"),
            ({"level": 1.0}, "expected level to be a number between 0 and 1, but got 1.0"),
            ({"ridge": 0}, "expected ridge to be a number above 0, or None, but got 0"),
            ({"ridge": float("inf")}, "expected ridge"),
            ({"folds": 1}, "expected folds to be a whole number from 2, but got 1"),
            ({"seed": True}, "expected seed to be a whole number from 0"),
            ({"own_sigmas": "yes"}, "expected own_sigmas to be True, False or None"),
            ({"convention": "mine", "target": "pdq"}, "mine"),
            ({"hidden": (32,)}, "a std regressor has no parameter 'hidden'; use target, level, own_sigmas, ridge"),
            ({"own_sigmas": True}, "no matched box has a covariance to fit to; omit own_sigmas"),
        ]
        for parameters, message in wrong:
            with pytest.raises(InputError, match=message):
                fit_std(found, truth, **parameters)

    def test_arrays(self) -> None:
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(40, 2)), rng.normal(size=(40, 4))
        holes = x.copy()
        holes[3, 1] = holes[5, 0] = np.nan
        far = y.copy()
        far[2, 3] = np.inf
        wrong: list[tuple[Any, Any, dict[str, Any], str]] = [
            (holes, y, {}, r"features\[3, 1\] is nan, expected finite numbers \(2 are not\); remove"),
            (x, far, {}, r"residuals\[2, 3\] is inf, expected finite numbers \(1 are not\)"),
            (x[:5], y, {}, r"expected residuals of shape \(5, 4\), but got \(40, 4\)"),
            (x[:, 0], y, {}, r"expected features of shape \(N, F\) or \(N, 4, F\), but got \(40,\)"),
            (x[:, :0], y, {}, "expected features of shape"),
            (np.zeros((40, 3, 2)), y, {}, "expected features of shape"),
            ([["a"]], y, {}, "expected features to be an array of numbers, but got list"),
            (x, y, {"sides": np.zeros((40, 4))}, "expected sides above 0; remove boxes of width or height 0"),
            (x, y, {"sides": np.ones((40, 2))}, r"expected sides of shape \(40, 4\)"),
            (x, y, {"images": np.zeros(39, int)}, "expected images to be 40 whole numbers"),
            (x, y, {"images": np.zeros(40)}, "expected images to be 40 whole numbers"),
            (x, y, {"target": "pdq"}, 'PDQ needs images; use target="nll", or fit on tables'),
            (x, y, {"own_sigmas": True}, "own_sigmas is for tables"),
            (x[:29], y[:29], {}, "expected at least 30 matched boxes to fit the std, but got 29; fit on more images"),
            (x, np.where(np.arange(40)[:, None] < 39, np.nan, y), {}, "matched boxes to fit the std, but got 1"),
            (x, 0 * y, {}, "all are 0"),
        ]
        for features, residuals, more, message in wrong:
            with pytest.raises(InputError, match=message):
                fit_std(features, residuals, **more)
        fit_std(x[:30], y[:30])  # just enough

    def test_predicting(self, truth: GroundTruth) -> None:
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(40, 2)), rng.normal(size=(40, 4))
        found, _ = lawful(truth, reported=2.0)
        arrays, tables = fit_std(x, y), fit_std(found, truth)
        calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
            (StdRegressor().predict, (x,), {}, "the regressor is not fitted; call fit first"),
            (StdRegressor().apply, (found,), {}, "the regressor is not fitted"),
            (arrays.predict, (x[:, :1],), {}, "expected 2 features, as in fit, but got 1; give the same columns"),
            (arrays.predict, (np.full((1, 2), np.nan),), {}, r"features\[0, 0\] is nan"),
            (arrays.predict, (found,), {}, "the regressor was fitted on arrays, not detections"),
            (arrays.apply, (found,), {}, "the regressor was fitted on arrays"),
            (tables.predict, (x,), {}, "the regressor was fitted on tables; give Detections"),
            (tables.predict, (found,), {"sides": np.ones((len(found), 4))}, "tables have their own sides"),
            (tables.apply, (truth,), {}, "expected argument `found` to be Detections"),
        ]
        for call, arguments, more, message in calls:
            with pytest.raises(InputError, match=message):
                call(*arguments, **more)

    def test_sigmas_that_the_fit_had(self, truth: GroundTruth) -> None:
        found, _ = lawful(truth, reported=2.0)
        head = fit_std(found, truth)
        plain = found.replace(covariances=None, source="plain.json")
        message = r"^plain\.json: the regressor uses own std, but 900 of 900 detections have none; give detections"
        for call in (head.predict, head.apply):
            with pytest.raises(InputError, match=message):
                call(plain)
        covariances = found.covariances.copy()
        covariances[0] = 0
        mixed = found.replace(covariances=covariances)
        with pytest.raises(InputError, match="but 1 of 900 detections have none"):
            head.predict(mixed)
        applied = head.apply(mixed)
        assert applied.notes == (Note("plain-boxes-kept", 1, total=900),)
        assert not applied.covariances[0].any()
        assert head.predict(found.select(np.zeros(0, np.int64))).shape == (0, 4)

    def test_tables(self, truth: GroundTruth) -> None:
        found, _ = lawful(truth)
        with pytest.raises(InputError, match=r"the order is fit\(found, truth\)"):
            StdRegressor().fit(truth, found)
        with pytest.raises(InputError, match="expected argument `truth` to be GroundTruth"):
            StdRegressor().fit(found, np.zeros((len(found), 4)))
        with pytest.raises(InputError, match="tables have their own sides and images"):
            StdRegressor().fit(found, truth, sides=np.ones((len(found), 4)))
        with pytest.raises(InputError, match="no matched boxes: no detection reaches"):
            fit_std(found.select(np.zeros(0, np.int64)), truth)
        few = truth.select_images(truth.image_ids[:4])
        with pytest.raises(InputError, match=r'but got 24; .* or use method="constant"'):
            fit_std(found, few)


def test_the_command_fits_and_applies(demo: Demo, demo_files: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    for name, features in (("probabilistic", 5), ("deterministic", 3)):
        out, new = tmp_path / f"{name}.cal.json", tmp_path / f"{name}.json"
        words = ["calibrate", "fit", str(demo_files / "truth.json"), str(demo_files / f"{name}.json")]
        done = runner.invoke(cli, [*words, "--method", "learned", "--target", "nll", "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert "held out" in done.output
        assert "and class, ridge penalty" in done.output
        assert "% of the box side at mean features; factor per standard deviation of a feature:" in done.output
        calibration = Calibration.load(out)
        assert isinstance(calibration.corners, Learned)
        assert len(calibration.corners.model.slopes) == features
        found = probox.read_detections(demo_files / f"{name}.json", demo.truth)
        head = fit_std(found, probox.read_truth(demo_files / "truth.json"))
        assert calibration.corners == head.mapping_
        assert Calibration.from_json(json.loads(out.read_text())) == calibration
        words = ["calibrate", "apply", str(out), str(demo_files / f"{name}.json"), "--out", str(new)]
        assert runner.invoke(cli, words).exit_code == 0
        read = probox.read_detections(new, demo.truth)
        assert sigmas_of(read.covariances) == pytest.approx(head.predict(found))


def test_the_command_refuses_few_pairs(demo_files: Path, tmp_path: Path) -> None:
    words = [
        "calibrate",
        "fit",
        str(demo_files / "truth.json"),
        str(demo_files / "deterministic.json"),
        "--method",
        "learned",
    ]
    done = CliRunner().invoke(cli, [*words, "--image-ids", "1", "--out", str(tmp_path / "c.json")])
    assert done.exit_code == 1
    assert "30 matched boxes to fit the std, but got" in str(done.exception or done.output)
    assert not (tmp_path / "c.json").exists()

"""The kernel against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_covariance, random_world, worlds

from probox import Convention, Detections, GroundTruth, _core, evaluate
from probox.measures.pdq import definition
from probox.measures.pdq.kernel import heatmap, pair_tables


@pytest.mark.parametrize("preset", ["reference", "paper"])
@examples(150)
@given(seed=st.integers(0, 2**32 - 1))
def test_heatmaps_equal_the_definition(preset, seed):
    rng = np.random.default_rng(seed)
    convention = Convention.preset(preset)
    width, height = (int(n) for n in rng.integers(1, 60, 2))
    x, y = np.sort(rng.uniform(-width, 2 * width, 2)), np.sort(rng.uniform(-height, 2 * height, 2))
    box = [x[0], y[0], x[1], y[1]]
    covariances = np.stack([random_covariance(rng), random_covariance(rng)])
    got = heatmap(box, covariances, width, height, convention)
    want = definition.heatmap(box, covariances, width, height, convention)
    # One unit of float32 for the reference's maps; the equations' maps agree to the last bits of a double.
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-7 if preset == "reference" else 5e-15)


CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "assignment": st.sampled_from(["optimal", "greedy"]),
        "background": st.sampled_from(["box", "mask"]),
        "box_truth": st.booleans(),
        "fixed_variance": st.sampled_from([0.0, 0.3, 10.0]),
        "label_threshold": st.sampled_from([0.0, 0.3, 0.6, 1.0]),
        "label_weight": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
        "clip": st.sampled_from(["none", "corners"]),
        "object_filter": st.booleans(),
    },
)


@pytest.mark.parametrize("preset", ["reference", "paper", "challenge"])
@examples(60)
@example(world=random_world(1186), choices={"fixed_variance": 0.0, "label_threshold": 0.6})
@given(world=worlds, choices=CHOICES)
def test_scores_equal_the_definition(preset, world, choices):
    truth, found = world
    convention = Convention.preset(preset, **choices)
    result = evaluate(truth, found, convention=convention)
    got, want = result.summary(), definition.evaluate(truth, found, convention)
    # Without a smallest quality a pair of 1e-20 is lost in the total that an assignment makes as large as possible, and
    # whether it is a match is left to rounding.
    told_apart = [match.overall > 1e-12 for image in want.images for match in (*image.matches, *image.passed_over)]
    assert np.count_nonzero(result.objects.qualities[:, 0] > 1e-12) == sum(told_apart)
    if convention.min_quality == 0.0 and not all(told_apart):
        assert got["PDQ"] * (got["TP"] + got["FP"] + got["FN"]) == pytest.approx(
            want.pdq * (want.tp + want.fp + want.fn), abs=2e-6, nan_ok=True
        )
        return
    # A quality that lies on a threshold (snapping, smallest quality) may fall on either side in the last bits.
    assert (got["TP"], got["FP"], got["FN"]) == (want.tp, want.fp, want.fn)
    pairs = {"PDQ": want.pdq, "pPDQ": want.overall, "spatial": want.spatial, "label": want.label,
             "foreground": want.fg, "background": want.bg}  # fmt: skip
    for name, value in pairs.items():
        # Where labels do not matter, equally good assignments may differ in everything but their total.
        if name == "PDQ" or convention.label_weight > 0:
            assert got[name] == pytest.approx(value, abs=2e-6, nan_ok=True), name


@examples(200)
@given(
    h=st.floats(-9, 9),
    k=st.floats(-9, 9),
    rho=st.one_of(st.floats(-1, 1), st.sampled_from([0.0, 0.925, -0.925, 1, -1])),
)
def test_bivariate_cdf_equals_owens_formula(h, k, rho):
    assert _core.bivariate_cdf(h, k, rho) == pytest.approx(float(definition.bivariate_cdf(h, k, rho)), abs=5e-15)


def test_tabulated_normal_cdf_is_accurate():
    from scipy.special import ndtr

    points = np.concatenate([np.linspace(-10.5, 10.5, 20001), np.random.default_rng(0).normal(size=20000)])
    got = np.array([_core.normal_cdf_table(float(x)) for x in points])
    np.testing.assert_allclose(got, ndtr(points), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("greedy", [False, True])
@examples(150)
@given(seed=st.integers(0, 2**32 - 1))
def test_assignment_equals_the_definition(greedy, seed):
    rng = np.random.default_rng(seed)
    rows, columns = (int(n) for n in rng.integers(1, 9, 2))
    quality = np.where(rng.random((rows, columns)) < 0.6, rng.random((rows, columns)), 0.0)
    if rng.random() < 0.5:
        quality = np.round(quality * 4) / 4  # ties
    objects, detections = np.nonzero(quality)
    offsets = np.array([0, len(objects)], np.int64)
    matched = _core.assign_pairs(
        offsets=offsets,
        detections=detections,
        objects=objects,
        qualities=quality[objects, detections],
        greedy=greedy,
        threads=1,
    )
    got = sorted(zip(objects[matched].tolist(), detections[matched].tolist(), strict=True))
    want = definition.assign(quality, "greedy" if greedy else "optimal")
    assert len({o for o, _ in got}) == len({d for _, d in got}) == len(got)
    assert sum(quality[o, d] for o, d in got) == pytest.approx(sum(quality[o, d] for o, d in want), abs=1e-12)
    if greedy:
        assert got == want


@pytest.mark.parametrize("preset", ["reference", "paper"])
@pytest.mark.parametrize("doubt", [1e-9, 1e-4])
def test_given_heatmaps_have_the_conventions_precision(preset, doubt):
    """Sure but for 1e-9 is sure in float32 and not in float64; only the reference rounds."""
    truth = GroundTruth.from_boxes(["cup"], {1: (20, 20)}, [1], [[2, 2, 9, 9]], [0])
    given_map = np.zeros((20, 20))
    given_map[2:10, 2:12] = 1 - doubt  # two columns too many
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[2, 2, 11, 9]], label_probs=[[1.0]], heatmaps=[given_map])
    convention = Convention.preset(preset)
    result = evaluate(truth, found, convention=convention)
    left = np.float64(np.float32(1) - np.float32(1 - doubt)) if preset == "reference" else doubt
    inside = np.float64(np.float32(1 - doubt)) if preset == "reference" else 1 - doubt
    expected = np.exp((64 * np.log(inside + 1e-14) + 16 * np.log(left + 1e-14)) / 64)
    assert result.summary()["spatial"] == pytest.approx(expected, rel=1e-6)
    assert result.pdq == pytest.approx(definition.evaluate(truth, found, convention).pdq, rel=1e-6)


def test_bytes_are_255ths_in_either_precision():
    truth = GroundTruth.from_boxes(["cup"], {1: (16, 16)}, [1], [[0, 0, 15, 15]], [0])
    heatmap = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for preset in ("reference", "paper"):
        parts = [
            Detections(classes=["cup"], image_ids=[1], boxes=[[0, 0, 15, 15]], label_probs=[[1.0]], heatmaps=[given])
            for given in (heatmap, heatmap / 255.0)
        ]
        one, other = (pair_tables(truth, found, Convention.preset(preset), 0) for found in parts)
        np.testing.assert_array_equal(one, other)

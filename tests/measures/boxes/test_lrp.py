"""LRP where it is easy to say by hand, and where it is not defined."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from tests.amounts import examples
from tests.measures.boxes.conftest import CLASSES, found_of
from tests.measures.boxes.test_properties import tables

from probox import GroundTruth, InputError
from probox.measures.boxes import LRPResult, lrp, lrp_curve, match_boxes
from probox.measures.boxes.optimal_lrp import _sweep


def test_by_hand(truth):
    # One cup found with IoU 0.8, a wrong detection below it, the dog missed.
    result = lrp(truth, found_of([[0, 0, 100, 80], [0, 300, 50, 350]], [0.715, 0.7149]))
    table = result.per_class().columns
    # Grid: 0.71 keeps both, 0.72 none. With both: (0.2/0.5 + 1 + 1) / 3.
    np.testing.assert_allclose(table["oLRP"], [0.8, 1, np.nan], atol=1e-12)
    np.testing.assert_allclose(table["loc"], [0.2, np.nan, np.nan], atol=1e-12)
    np.testing.assert_allclose(table["fp"], [0.5, np.nan, np.nan], atol=1e-12)
    np.testing.assert_allclose(table["fn"], [0.5, 1, np.nan], atol=1e-12)
    np.testing.assert_array_equal(table["threshold"], [0.0, np.nan, np.nan])  # the lowest of equals
    assert table["objects"].tolist() == [2, 1, 0]
    assert result.molrp == pytest.approx(0.9, abs=1e-12)
    assert (result.loc, result.fp, result.fn) == pytest.approx((0.2, 0.5, 0.75), abs=1e-12)


def test_exact_finds_the_threshold_between_grid_points(truth):
    result = lrp(truth, found_of([[0, 0, 100, 80], [0, 300, 50, 350]], [0.715, 0.7149]), variant="exact")
    assert result.olrp[0, 0] == pytest.approx((0.4 + 0 + 1) / 2, abs=1e-12)
    assert result.thresholds[0, 0] == 0.715
    assert result.olrp_fp[0, 0] == 0


@pytest.mark.parametrize("variant", ["grid", "exact"])
def test_no_true_positive(truth, variant):
    result = lrp(truth, found_of([[0, 300, 50, 350]], [0.5]), variant=variant)
    assert result.molrp == 1
    assert np.isnan(result.loc)
    assert result.fp == 1  # of the one class that has a detection
    assert result.fn == 1
    assert np.isnan(result.thresholds).all()


@pytest.mark.parametrize("variant", ["grid", "exact"])
def test_no_objects_anywhere(variant):
    empty = GroundTruth.from_boxes(CLASSES, {1: (400, 400)}, [], [], [])
    result = lrp(empty, found_of([[0, 0, 9, 9]], [0.5]), variant=variant)
    assert all(np.isnan(value) for value in result.summary().values())
    assert repr(result).startswith(f"LRPResult({variant}, moLRP=nan")


def test_curve(truth):
    matches = match_boxes(truth, found_of([[0, 0, 100, 80], [0, 300, 50, 350]], [0.75, 0.25]))
    curve = lrp_curve(matches, "cup")
    assert curve.true_positives[[0, 25, 26, 75, 76]].tolist() == [1, 1, 1, 1, 0]
    assert curve.false_positives[[0, 25, 26, 75, 76]].tolist() == [1, 1, 0, 0, 0]
    np.testing.assert_allclose(curve.lrp[[25, 26, 76]], [0.8, 0.7, 1], atol=1e-12)
    assert np.isnan(curve.loc[76])
    assert np.isnan(lrp_curve(matches, "tv").lrp).all()


def test_variant_is_checked(truth):
    with pytest.raises(InputError, match="'grid' or 'exact', got 'fine'"):
        LRPResult.from_matches(match_boxes(truth, found_of([], [])), variant="fine")


@given(tables())
@examples(60)
def test_without_curves_the_same_to_the_bit(pair):
    matches = match_boxes(*pair)
    order, offsets = matches.by_score()
    objects = matches.objects_per_class()
    curves = [
        _sweep(matches, order[offsets[c] : offsets[c + 1]], objects[c], "grid") for c in range(len(matches.classes))
    ]
    quick, slow = LRPResult.from_matches(matches), LRPResult.from_curves(curves, matches.classes, objects)
    for field in dataclasses.fields(LRPResult):
        np.testing.assert_array_equal(getattr(quick, field.name), getattr(slow, field.name), err_msg=field.name)

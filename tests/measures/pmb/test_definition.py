"""PMB-NLL by its definition and by the kernel: the golden image, numbers by hand, and both against each other."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measures.pmb.worlds import Image, by_kernel, corners, golden_image, golden_numbers, random_image

from probox.measures.pmb_definition import ASSIGNMENTS, CLUTTER, MIN_PROBABILITY, SetDensity, pmb_nll_of_image
from probox.measures.pmb_nll import NUMBERS


@pytest.fixture(scope="module")
def golden(golden_dir: Path) -> dict[str, Any]:
    return golden_numbers(golden_dir)


def both(image: Image, assignments: int = ASSIGNMENTS) -> list[dict[str, float]]:
    """Return the numbers of an image by the definition and by the kernel."""
    return [dataclasses.asdict(image.defined(assignments)), by_kernel([image], assignments)[0]]


# --- golden ---


def test_the_golden_image(golden: dict[str, Any]) -> None:
    parts = golden["pmb_best"]
    for numbers in both(golden_image(golden)):
        assert numbers["assignments"] == golden["assignments"] == 13
        assert numbers["nll"] == pytest.approx(golden["pmb"], abs=1e-9)
        assert numbers["matched_box"] == pytest.approx(parts["matched_bernoulli_reg"], abs=1e-9)
        assert numbers["matched_label"] == pytest.approx(parts["matched_bernoulli_cls"], abs=1e-9)
        assert numbers["matched_box"] + numbers["matched_label"] == pytest.approx(parts["matched_bernoulli"], abs=1e-9)
        assert numbers["unmatched"] == pytest.approx(parts["unmatched_bernoulli"], abs=1e-9)
        assert numbers["missed"] == pytest.approx(parts["matched_ppp"], abs=1e-9)
        assert numbers["expected"] == pytest.approx(parts["ppp_integral"], abs=1e-12)
    assert golden_image(golden).defined().best == pytest.approx(parts["total"], abs=1e-9)


def test_the_golden_image_as_it_is_given(golden: dict[str, Any]) -> None:
    """With the given background and clutter, not those that detections make."""
    given, clutter = golden["input"], golden["input"]["clutter"]
    probs = np.array(given["label_probs_with_background"])
    density = SetDensity(
        boxes=np.array(given["boxes"]),
        covariances=corners(given["covariances_4x4"]),
        label_probs=probs[:, :-1],
        backgrounds=probs[:, -1],
        clutter_boxes=np.array(clutter["box"]),
        clutter_covariances=corners(clutter["covariance"]),
        clutter_weights=np.array(clutter["weight"]),
        clutter_label_probs=np.array(clutter["class_probs"]),
    )
    found = pmb_nll_of_image(density, np.array(given["truth_boxes"]), np.array(given["truth_classes"]))
    assert found.nll == pytest.approx(golden["own_formula"], abs=1e-9)
    assert found.best == pytest.approx(golden["pmb_best"]["total"], abs=1e-9)


def test_the_golden_image_without_clutter(golden: dict[str, Any]) -> None:
    for numbers in both(golden_image(golden, clutter=False)):
        assert numbers["nll"] == pytest.approx(golden["MB_only"], abs=1e-9)
        assert numbers["assignments"] == 6
        assert numbers["expected"] == 0.0


# --- by hand ---

ONE = np.array([[10.0, 20.0, 30.0, 50.0]])
UNIT = np.eye(2)[None].repeat(2, 0)[None]
AT_MEAN = 2.0 * math.log(2.0 * math.pi)  # -ln N at the mean of four coordinates with variance 1


def one(probs: list[float], *, objects: int = 1, label: int = 0, covariances: np.ndarray = UNIT) -> Image:
    """Return an image with one detection, right on each of its objects."""
    return Image(ONE, covariances, np.array([probs]), ONE.repeat(objects, 0), np.full(objects, label, np.int32))


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (one([0.7, 0.2]), {"nll": AT_MEAN - math.log(0.7), "matched_box": AT_MEAN, "matched_label": -math.log(0.7)}),
        (one([0.7, 0.2], label=1), {"nll": AT_MEAN - math.log(0.2)}),
        # No objects: what may be matched is not there, and the clutter says how many it expects.
        (one([0.7, 0.2], objects=0), {"nll": -math.log(0.1), "unmatched": -math.log(0.1), "missed": 0.0}),
        (one([0.08, 0.02], objects=0), {"nll": 0.08, "expected": 0.08, "unmatched": 0.0, "assignments": 1}),
        # Clutter: 0.08 * 0.8 * N, for each of two objects, and one assignment.
        (one([0.08, 0.02]), {"nll": 0.08 + AT_MEAN - math.log(0.064), "missed_objects": 1, "assignments": 1}),
        (one([0.08, 0.02], objects=2), {"nll": 0.08 + 2 * (AT_MEAN - math.log(0.064)), "missed_objects": 2}),
        # At 0.1 it is clutter, above it may be matched.
        (one([CLUTTER, 0.0], objects=0), {"nll": CLUTTER}),
        (one([0.1000001, 0.0], objects=0), {"nll": -math.log(0.8999999), "expected": 0.0}),
        # Clamped: labels, background and the shares of clutter, each by itself.
        (one([1.0, 0.0]), {"nll": AT_MEAN - math.log1p(-1e-6)}),
        (one([1.0, 0.0], label=1), {"nll": AT_MEAN - math.log(1e-6)}),
        (one([1.0, 0.0], objects=0), {"nll": -math.log(1e-6)}),
        (one([0.05, 0.0], label=1), {"nll": 0.05 + AT_MEAN - math.log(0.05e-6)}),
        (one([0.05, 0.0]), {"nll": 0.05 + AT_MEAN - math.log(0.05 * (1 - 1e-6))}),
        # Two objects for one detection, no clutter: nothing explains both.
        (one([0.7, 0.2], objects=2), {"nll": math.inf, "assignments": 0, "expected": 0.0}),
        # A plain box, and one of perfect correlation, are matched with nothing; what they claim counts.
        (one([0.7, 0.2], covariances=0 * UNIT), {"nll": math.inf, "assignments": 0}),
        (one([0.7, 0.2], covariances=np.ones_like(UNIT)), {"nll": math.inf, "assignments": 0}),
        (one([0.7, 0.2], covariances=0 * UNIT, objects=0), {"nll": -math.log(0.1)}),
        (one([0.05, 0.02], covariances=0 * UNIT, objects=0), {"nll": 0.05}),
        (one([0.05, 0.02], covariances=0 * UNIT), {"nll": math.inf}),
        (one([0.0, 0.0]), {"nll": math.inf, "expected": 0.0}),
    ],
)
def test_numbers_by_hand(image: Image, expected: dict[str, float]) -> None:
    for numbers in both(image):
        assert {name: numbers[name] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_two_objects_share_two_detections_in_every_way() -> None:
    """Both detections lie on both objects: seven assignments, two of them with both."""
    probs, clutter = 0.6, 0.05
    image = Image(
        boxes=ONE.repeat(3, 0),
        covariances=UNIT.repeat(3, 0),
        label_probs=np.array([[probs], [probs], [clutter]]),
        object_boxes=ONE.repeat(2, 0),
        object_labels=np.zeros(2, np.int32),
    )
    density = math.exp(-AT_MEAN)
    matched, left, missed = probs * density, 1 - probs, clutter * (1 - 1e-6) * density
    likelihood = 2 * matched**2 + 4 * matched * left * missed + left**2 * missed**2
    for numbers in both(image):
        assert numbers["assignments"] == 7
        assert numbers["nll"] == pytest.approx(clutter - math.log(likelihood), abs=1e-12)
    only_best = clutter - math.log(matched**2)
    for numbers in both(image, assignments=1):
        assert numbers["assignments"] == 1
        assert numbers["nll"] == pytest.approx(only_best, abs=1e-12)


def test_the_floor() -> None:
    image = dataclasses.replace(one([0.7, 0.2], objects=3), log_floor=-40.0)
    for numbers in both(image):
        # One of three is matched, two stand at the floor; or none is.
        best = AT_MEAN - math.log(0.7) + 80.0
        others = math.log(3.0 + math.exp(best - 120.0 + math.log(0.1)))
        assert numbers["nll"] == pytest.approx(best - others, abs=1e-12)
        assert numbers["missed"] == pytest.approx(80.0)
        assert (numbers["missed_objects"], numbers["floored_objects"], numbers["assignments"]) == (2, 2, 4)
    # Clutter that is there counts where it says more than the floor.
    for floor, floored in ((-40.0, 0), (-4.0, 1)):
        for numbers in both(dataclasses.replace(one([0.08, 0.02]), log_floor=floor)):
            assert numbers["floored_objects"] == floored
            assert numbers["missed"] == pytest.approx(-floor if floored else AT_MEAN - math.log(0.064))


# --- the kernel against the definition ---


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 25]), st.booleans())
def test_the_kernel_agrees_with_the_definition(seed: int, assignments: int, single: bool) -> None:
    image = random_image(seed, single=single)
    defined, measured = both(image, assignments)
    close = pytest.approx(defined["nll"], rel=1e-9, abs=1e-9)
    assert measured["nll"] == close
    for name in NUMBERS[1:]:
        if name in ("missed_objects", "floored_objects") and not defined["assignments"]:
            continue
        assert measured[name] == pytest.approx(defined[name], rel=1e-9, abs=1e-9, nan_ok=True), name


def test_threads_and_neighbours_change_no_bit() -> None:
    images = [random_image(seed, size=12) for seed in range(60)]
    images = [image for image in images if image.label_probs.shape[1] == 3]
    alone = [by_kernel([image])[0] for image in images]
    for threads in (1, 2, 5):
        together = by_kernel(images, threads=threads)
        assert [list(map(repr, numbers.values())) for numbers in together] == [
            list(map(repr, numbers.values())) for numbers in alone
        ]


def test_constants_are_those_of_the_paper() -> None:
    assert (ASSIGNMENTS, CLUTTER, MIN_PROBABILITY) == (25, 0.1, 1e-6)

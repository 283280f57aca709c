"""Masks and boxes: known errors, calibrated probabilities, and claims."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probox import GroundTruth, InputError
from probox.measures.scoring.scores import normal_cdf
from probox_experiments import ResultTable, Run, segmentation, synthetic_truth
from probox_experiments.beyond.segmentation import (
    REPORTS,
    SEGMENTATION,
    Shapes,
    _phi,
    blobs,
    claims_of_segmentation,
    combs,
    detections,
    empty_part,
    outline,
    shapes_of,
)
from probox_experiments.figures import style


def ell() -> np.ndarray:
    mask = np.zeros((30, 26), bool)
    mask[:, :9] = mask[20:] = True
    return mask


def test_probabilities_are_how_often_a_moved_mask_covers_a_pixel() -> None:
    shapes = Shapes([ell()] * 1500, 2.0)
    scene = shapes.move([5])
    (once,) = Shapes([ell()], 2.0).move([5]).probabilities(2.0)
    share = np.mean(scene.found, axis=0)
    there = shapes.truth.masks.to_array(0, *share.shape)
    # Seen from the truth instead of from the detection: the same blur, around the mask that is there.
    blurred = np.roll(once, _step(scene.found[0], there), axis=(0, 1))
    assert np.abs(share - blurred).max() < 0.06
    assert blurred.sum() == pytest.approx(ell().sum(), rel=1e-6)
    steps = np.array([_step(there, found) for found in scene.found])
    np.testing.assert_allclose(steps.std(axis=0), math.sqrt(2.0**2 + 1 / 12), rtol=0.05)
    assert np.abs(steps.mean(axis=0)).max() < 0.2


def _step(start: np.ndarray, end: np.ndarray) -> tuple[int, int]:
    first, last = (np.argwhere(mask).min(axis=0) for mask in (start, end))
    return tuple((last - first).tolist())


def test_probabilities_of_blobs_are_how_often_a_jittered_outline_covers_a_pixel() -> None:
    scenes = [blobs(1, 3.0, [0, repeat]) for repeat in range(80)]
    binary = [one.probabilities(1e-6)[0] for one in scenes]
    np.testing.assert_allclose(binary, [one.found[0] for one in scenes], atol=1e-15)
    height, width = binary[0].shape
    mask = scenes[0].truth.masks.to_array(0, height, width)
    # Along a ray from the middle, detections end where the truth does, give or take 3 pixels.
    middle, end = width // 2, int(np.flatnonzero(mask[height // 2]).max())
    ends = np.array([int(np.flatnonzero(one.found[0][height // 2]).max()) for one in scenes]) - end
    assert abs(ends.mean()) < 1.0
    assert ends.std() == pytest.approx(3.0, rel=0.2)
    # And the truth ends where a detection says, which is a sigma farther out with the probability Phi(-1).
    said = scenes[0].probabilities(3.0)[0][height // 2, middle:]
    place = float(np.interp(-0.5, -said, np.arange(len(said))))
    assert np.interp(place + 3.0, np.arange(len(said)), said) == pytest.approx(normal_cdf(np.array(-1.0)), abs=0.01)


def test_phi_is_looked_up_closely() -> None:
    z = np.linspace(-8.5, 8.5, 4001)
    np.testing.assert_allclose(_phi(z), normal_cdf(z), rtol=2e-5)
    np.testing.assert_allclose(_phi(np.array([-50.0, 50.0])), [0.0, 1.0], atol=1e-15)


def test_reports_are_of_what_is_seen() -> None:
    scene = Shapes([ell()], 2.0).move([1])
    y, x = np.nonzero(scene.found[0])
    box = [x.min(), y.min(), x.max(), y.max()]
    box_only, gaussian, mask, uncertain = (detections(scene, report, 2.0) for report in REPORTS)
    assert box_only.boxes.tolist() == mask.boxes.tolist() == [box]
    assert gaussian.boxes.tolist() == [[box[0] + 0.5, box[1] + 0.5, box[2] - 0.5, box[3] - 0.5]]
    assert box_only.covariances is None
    assert mask.covariances is None
    assert gaussian.covariances is not None
    assert gaussian.covariances[0].tolist() == [[[4, 0], [0, 4]]] * 2
    assert mask.heatmaps is not None
    assert uncertain.heatmaps is not None
    np.testing.assert_array_equal(mask.heatmaps[0], scene.found[0])
    assert 0 < np.asarray(uncertain.heatmaps[0]).max() < 1


def test_outlines_are_as_long_as_they_are() -> None:
    y, x = np.mgrid[-50:51, -50:51]
    shapes = [np.ones((80, 60), bool), np.hypot(x, y) <= 50.5]
    square, disc = (outline(Shapes([shape], 2.0).truth, 2.0) for shape in shapes)
    assert square == pytest.approx(1.0, abs=0.03)  # corners are cut a little
    assert disc == pytest.approx(math.pi / 4, abs=0.01)
    assert outline(Shapes(combs(3, 0), 3.0).truth, 3.0) > 1.5
    assert empty_part(ell()) == pytest.approx(20 * 17 / (30 * 9 + 10 * 17))


def test_shapes_are_those_that_fit_and_leave_room() -> None:
    truth = synthetic_truth(30)
    shapes = shapes_of(truth, 7)
    assert len(shapes) == 7
    assert all(24 <= side <= 120 for shape in shapes for side in shape.shape)
    assert all(shape.any(axis=0).all() and not shape.all() for shape in shapes)


@pytest.fixture(scope="module")
def boxes_only() -> ResultTable:
    truth = GroundTruth.from_boxes(["cup"], {1: (200, 200)}, [1, 1], [[10, 10, 60, 60], [100, 100, 150, 160]], [0, 0])
    run = Run(presets=["paper"], changes={"background": "mask", "epsilon": 1e-12})
    return segmentation(truth, ratios=(0.8, 1.0), wide_ratios=(), blob_count=2, repeats=2, run=run)


def test_objects_that_fill_their_boxes_have_no_outline_to_report(boxes_only: ResultTable) -> None:
    assert "moved" not in boxes_only["scene"]
    claims = {claim.claim: claim.holds for claim in claims_of_segmentation(boxes_only)}
    assert all(holds is None for claim, holds in claims.items() if claim.startswith("For shifted masks"))
    assert sum(holds is None for holds in claims.values()) == 4  # three of moved masks, one that needs three sigmas
    assert [claim for claim, holds in claims.items() if holds is False] == [
        claim for claim in claims if "background quality 1e-14 to the power" in claim
    ]  # since the run takes 1e-12
    # The experiment says itself what is background; all else of a run stays.
    plane = boxes_only.where(scene="perfect", report="box")
    assert plane.where(outside="box")["PDQ_paper"].tolist() == [1.0]
    (lost,) = plane.where(outside="mask").rows()
    assert lost["background_paper"] == pytest.approx(1e-12 ** lost["empty"], rel=1e-9, abs=0.0)
    assert lost["PDQ_paper"] == pytest.approx(1e-6 ** lost["empty"], rel=1e-9, abs=0.0)


def test_tables_of_other_settings_can_be_judged_and_drawn(boxes_only: ResultTable) -> None:
    for table in (boxes_only, boxes_only.where(scene="perfect")):
        assert len(SEGMENTATION.judge(table)) == 10
        with style():
            assert len(SEGMENTATION.draw(table).axes) == 8


@pytest.mark.parametrize(
    "settings", [{"error": 0.0}, {"error": 11.0}, {"ratios": (0.0, 1.0)}, {"wide_ratios": (-1.0,)}]
)
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError):
        segmentation(synthetic_truth(5), **settings)  # type: ignore[arg-type]

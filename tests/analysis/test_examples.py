"""Examples are found where they were put, by the rule that the module states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import probox
from probox import Detections, Evaluation, GroundTruth
from probox.analysis import examples as module
from probox.analysis.examples import example_detections
from probox.notes import Note

BOX = np.array([100.0, 100.0, 300.0, 300.0])


def result_of(*cases: dict[str, Any], size: int = 500) -> Evaluation:
    """Return the result of one image, one object and one detection for each case."""
    n = len(cases)
    ids = list(range(1, n + 1))
    truths = [np.asarray(case.get("truth", BOX)) for case in cases]
    boxes = [truth - np.asarray(case.get("error", [0.0] * 4)) for case, truth in zip(cases, truths, strict=True)]
    truth = GroundTruth.from_boxes(
        ["cat", "dog"],
        dict.fromkeys(ids, (size, size)),
        ids,
        np.array(truths),
        [case.get("label", 0) for case in cases],
    )
    spread = np.zeros((n, 2, 2, 2))
    for row, case in enumerate(cases):
        spread[row] = np.eye(2) * case.get("sigma", 0.0) ** 2
    found = Detections(
        classes=["cat", "dog"], image_ids=ids, boxes=np.array(boxes),
        label_probs=[case.get("probs", [0.8, 0.1]) for case in cases],
        covariances=spread if spread.any() else None,
    )  # fmt: skip
    return probox.evaluate(truth, found)


def kinds_of(result: Evaluation, n: int = 9) -> list[tuple[str, int]]:
    return [(example.kind, example.image_id) for example in example_detections(result, n)]


def error_of(distance: float, sigma: float) -> list[float]:
    """Return an error of the left edge alone that is so far, in squared sigmas."""
    return [float(np.sqrt(distance)) * sigma, 0.0, 0.0, 0.0]


def test_boxes_that_name_their_last_pixel_are_said_to(results: dict[str, Evaluation]) -> None:
    assert Note("last-pixels") in example_detections(results["probabilistic"]).notes
    cases = [{"sigma": 1.0, "error": [0.1 * (k % 3 - 1)] * 4} for k in range(9)]
    assert not example_detections(result_of(*cases)).notes
    short = [{**case, "error": np.add(case["error"], [0, 0, 1, 1])} for case in cases]
    assert example_detections(result_of(*short)).notes == (Note("last-pixels"),)


def test_the_limits_are_the_quantiles_of_chi_squared() -> None:
    limits = [module.RARE_LOW, module.QUARTER, module.THREE_QUARTERS, module.RARE_HIGH]
    np.testing.assert_allclose(limits, chi2.ppf([0.01, 0.25, 0.75, 0.99], module.FREEDOM), rtol=1e-6)


@pytest.mark.parametrize(
    ("distance", "kind"),
    [
        (0.0, "underconfident"), (0.29, "underconfident"), (0.31, None),
        (1.9, None), (1.95, "calibrated"), (4.0, "calibrated"),
        (5.35, "calibrated"), (5.42, None), (13.2, None), (13.4, "overconfident"), (80.0, "overconfident"),
    ],
)  # fmt: skip
def test_a_box_is_told_by_its_distance(distance: float, kind: str | None) -> None:
    found = kinds_of(result_of({"error": error_of(distance, 4.0), "sigma": 4.0}))
    assert found == ([] if kind is None else [(kind, 1)])


def test_the_most_telling_come_first() -> None:
    result = result_of(
        {"error": error_of(20, 4.0), "sigma": 4.0},
        {"error": error_of(90, 4.0), "sigma": 4.0},
        {"error": error_of(40, 4.0), "sigma": 4.0},
        {"error": error_of(0.01, 20.0), "sigma": 20.0},
        {"error": error_of(0.2, 40.0), "sigma": 40.0},  # the larger sigma, though not the smaller distance
        {"error": error_of(4, 9.0), "sigma": 9.0},
        {"error": error_of(4, 3.0), "sigma": 3.0},  # the higher spatial quality
    )
    assert kinds_of(result, 2) == [
        ("overconfident", 2), ("overconfident", 3), ("underconfident", 5), ("underconfident", 4),
        ("calibrated", 7), ("calibrated", 6),
    ]  # fmt: skip


def test_captions_say_why_in_numbers() -> None:
    result = result_of(
        {"error": [0.0, 0.0, 0.0, -21.0], "sigma": 3.5},
        {"error": [1.0, -1.0, 1.0, 1.0], "sigma": 40.0},
        {"error": [3.0, 3.0, -3.0, 3.0], "sigma": 3.0},
    )
    over, under, well = example_detections(result)
    assert over.caption.startswith("overconfident: error of the bottom edge 21.0 px, std 3.5 px, |z| 6.0; d² is 36,")
    assert under.caption.startswith("underconfident: RMS error 1.0 px, RMS std 40.0 px; d² is 0.00,")
    assert well.caption.startswith("calibrated: RMS error 3.0 px, RMS std 3.0 px; d² is 4.0,")
    for example in (over, under, well):
        row = example.detection
        spatial = result.detections.quality("spatial")[row]
        assert example.numbers["spatial"] == spatial
        assert f"spatial {100 * spatial:.0f}%" in example.caption
        assert example.caption.endswith(f"(cat, image {example.image_id})")
    assert over.numbers["distance"] == pytest.approx(36.0)
    assert under.numbers["error"] == pytest.approx(1.0)
    assert under.numbers["sigma"] == pytest.approx(40.0)


def test_correlated_corners_are_measured_as_they_are() -> None:
    """An error along the long axis of the ellipse is no surprise; the same across it is one."""
    spread = np.array([[100.0, 96.0], [96.0, 100.0]])
    for error, expected in (([12.0, 12.0], 144 / 98), ([12.0, -12.0], 144 * 2 / 4)):
        truth = GroundTruth.from_boxes(["cat"], {1: (500, 500)}, [1], [BOX], [0])
        found = Detections(
            classes=["cat"], image_ids=[1], boxes=[BOX - np.array([*error, 0, 0])], label_probs=[[0.9]],
            covariances=[[spread, np.eye(2)]],
        )  # fmt: skip
        told = list(example_detections(probox.evaluate(truth, found)))
        if expected > module.RARE_HIGH:
            assert told[0].kind == "overconfident"
            assert told[0].numbers["distance"] == pytest.approx(expected)
        else:
            assert not told


def test_only_the_surer_half_and_only_edges_inside_the_image() -> None:
    wild = {"error": error_of(50, 4.0), "sigma": 4.0}
    result = result_of(
        {**wild, "probs": [0.9, 0.0]},
        {**wild, "probs": [0.5, 0.0]},
        {**wild, "probs": [0.8, 0.0], "truth": [0.0, 100.0, 200.0, 300.0]},
        {**wild, "probs": [0.3, 0.0]},
    )
    assert kinds_of(result) == [("overconfident", 1)]  # 0.5 and 0.3: below the median; the third: at the border


def test_an_image_has_one_example_of_a_kind() -> None:
    truth = GroundTruth.from_boxes(["cat"], {1: (900, 500)}, [1, 1], [BOX, BOX + np.array([400, 0, 400, 0])], [0, 0])
    boxes = truth.boxes + np.array([[40.0, 0, 0, 0], [60.0, 0, 0, 0]])
    found = Detections(
        classes=["cat"], image_ids=[1, 1], boxes=boxes, label_probs=[[0.9], [0.9]],
        covariances=np.tile(np.eye(2) * 9.0, (2, 2, 1, 1)),
    )  # fmt: skip
    (example,) = example_detections(probox.evaluate(truth, found), 5)
    assert (example.kind, example.detection) == ("overconfident", 1)


def test_labels_that_were_sure_and_wrong() -> None:
    result = result_of(
        {"probs": [0.04, 0.9], "sigma": 3.0, "error": error_of(8, 3.0)},
        {"probs": [0.02, 0.95], "sigma": 3.0, "error": error_of(8, 3.0)},
        {"probs": [0.3, 0.45], "sigma": 3.0, "error": error_of(8, 3.0)},  # not sure
        {"probs": [0.9, 0.05], "sigma": 3.0, "error": error_of(8, 3.0)},  # right
    )
    told = [example for example in example_detections(result) if example.kind == "wrong-label"]
    assert [example.image_id for example in told] == [2, 1]
    assert told[1].caption.startswith("wrong class: predicted dog 0.90, true class cat 0.04; qualities: ")


def test_plain_boxes_tell_of_overlaps_and_say_so() -> None:
    result = result_of(
        {"error": [0.0, 0.0, 60.0, 0.0]}, {"error": [1.0, 0.0, 0.0, 0.0]}, {"error": [0.0, 20.0, 0.0, 0.0]}, {}
    )
    told = example_detections(result, 1)
    assert [(example.kind, example.image_id) for example in told] == [("off", 1), ("close", 4)]
    assert told.notes[0] == Note("overlaps-only")
    assert "error of the right edge 60.0 px; IoU with" in next(iter(told)).caption
    assert np.isnan(next(iter(told)).numbers["sigma"])
    mixed = example_detections(result_of({}, {"error": error_of(50, 4.0), "sigma": 4.0}))
    assert [example.kind for example in mixed] == ["overconfident"]
    assert mixed.notes == (Note("plain-boxes-skipped", 1),)


def test_nothing_to_tell_is_said() -> None:
    truth = GroundTruth.from_boxes(["cat"], {1: (500, 500)}, [1], [BOX], [0])
    nothing = Detections(classes=["cat"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
    told = example_detections(probox.evaluate(truth, nothing))
    assert len(told) == 0
    assert len(told.notes) == 1
    assert told.notes == (Note("no-examples"),)


def test_boxes_with_sigmas_are_not_called_plain_where_none_is_matched() -> None:
    far = {"error": [150.0, 150.0, 150.0, 150.0], "sigma": 3.0}
    assert Note("overlaps-only") not in example_detections(result_of(far)).notes


def test_wrong_arguments_are_said(results: dict[str, Evaluation]) -> None:
    for n in (0, True, 1.5):
        with pytest.raises(probox.InputError, match="whole number"):
            probox.example_detections(results["probabilistic"], n)
    with pytest.raises(probox.InputError, match="Evaluation"):
        probox.example_detections("results")

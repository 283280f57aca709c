"""Numbers that no detector gives are refused with the outputs named; weak ones are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from detect_graphs import fixed_outputs

from probox.detect import Candidates, Detector
from probox.detect.families.base import Plausibility
from probox.errors import InputError

CLASSES = ("cup", "dog", "car")
IMAGE = np.full((100, 200, 3), 90, np.uint8)
RNG = np.random.default_rng(7)


def _candidates(count: int = 120) -> Candidates:
    """Boxes all over the image of 200 x 100, and scores as they usually are."""
    low = RNG.uniform(0, 80, (count, 2)) * [2, 1]
    boxes = np.concatenate([low, low + RNG.uniform(5, 40, (count, 2))], axis=1)
    return Candidates(boxes, RNG.uniform(0, 0.6, (count, 3)).astype(np.float32))


def _check(found: Candidates) -> tuple[str, ...]:
    judge = Plausibility("yolov8", ["output0"], "m.onnx")
    judge.check(found, [np.array([[-3.0, 5.0]])], (200, 100))
    return judge.notes


def _with(found: Candidates, **changed: np.ndarray) -> Candidates:
    return Candidates(
        changed.get("boxes", found.boxes), changed.get("scores", found.scores), None, changed.get("labels")
    )


def test_usual_and_weak_candidates_pass() -> None:
    assert _check(_candidates()) == ()
    weak = _with(_candidates(), scores=np.full((120, 3), 1e-4, np.float32))
    (said,) = _check(weak)  # a black photo: said, not refused
    assert "no candidate of 1 images scored above 0.05" in said
    assert _check(_candidates().select(np.arange(0))) != ()
    nothing = _with(weak, boxes=np.zeros((120, 4)) + np.arange(120)[:, None])  # fill of graphs that found nothing
    assert len(_check(nothing)) == 1


@pytest.mark.parametrize("count", [1, 9])
def test_few_boxes_may_be_as_large_as_the_image(count: int) -> None:
    whole = np.tile([0.0, 0.0, 200.0, 100.0], (count, 1))
    assert _check(_with(_candidates(count), boxes=whole)) == ()


def _scores(value: float) -> np.ndarray:
    scores = RNG.uniform(0, 0.6, (120, 3)).astype(np.float32)
    scores[17, 1] = value
    return scores


BAD_SCORES = {
    "not numbers": [_scores(np.nan), _scores(np.inf)],
    "no probabilities": [_scores(1.01), _scores(-0.01), RNG.normal(0, 3, (120, 3)).astype(np.float32)],
    "sigmoid of a sigmoid": [RNG.uniform(0.5, 0.7, (120, 3)).astype(np.float32)],
}


@pytest.mark.parametrize(("sign", "number"), [(sign, k) for sign, bad in BAD_SCORES.items() for k in range(len(bad))])
def test_scores_that_are_none(sign: str, number: int) -> None:
    found = _with(_candidates(), scores=BAD_SCORES[sign][number])
    with pytest.raises(InputError, match=rf"m\.onnx: taken for yolov8, but .*{sign}.*output0 \[1, 2\] -3 to 5.*famil"):
        _check(found)


@pytest.mark.parametrize("value", [1.0005, -0.0005])
def test_rounding_of_scores_passes(value: float) -> None:
    assert _check(_with(_candidates(), scores=_scores(value))) == ()


def _boxes(sign: str) -> np.ndarray:
    usual = _candidates().boxes
    if sign == "not numbers":
        usual[3, 2] = np.nan
        return usual
    return {
        "100 times as large": (usual - 50) * 1000,
        "end before they begin": usual[:, [2, 3, 0, 1]],
        "as large as the image": np.tile([-5.0, 0.0, 200.0, 130.0], (120, 1)),
        "no box lies in the image": usual + 1000,
        "one hundredth of the image": usual / 300,
    }[sign]


@pytest.mark.parametrize(
    "sign",
    [
        "not numbers",
        "100 times as large",
        "end before they begin",
        "as large as the image",
        "no box lies in the image",
        "one hundredth of the image",
    ],
)
def test_boxes_that_are_none(sign: str) -> None:
    scores = np.full((120, 3), 0.3, np.float32) - np.arange(120, dtype=np.float32)[:, None] / 1000
    with pytest.raises(InputError, match=sign):
        _check(_with(_candidates(), boxes=_boxes(sign), scores=scores))


def test_boxes_nobody_means_may_be_anywhere() -> None:
    weak = np.full((120, 3), 0.04, np.float32)
    for sign in ("not numbers", "no box lies in the image"):
        _check(_with(_candidates(), boxes=_boxes(sign), scores=weak))


def test_half_of_the_boxes_may_be_odd() -> None:
    usual = _candidates().boxes
    for sign in ("100 times as large", "end before they begin"):
        some = usual.copy()
        some[:59] = _boxes(sign)[:59]
        _check(_with(_candidates(), boxes=some))


def test_the_same_scores_everywhere_are_odd() -> None:
    (said,) = _check(_with(_candidates(), scores=np.tile(np.float32([0.1, 0.4, 0.2]), (120, 1))))
    assert said == "all 120 candidates of an image have the same scores"


def test_boxes_of_later_images_are_not_looked_at_but_scores_are() -> None:
    judge = Plausibility("yolov8", ["output0"], "m.onnx")
    for _ in range(8):
        judge.check(_candidates(), [], (200, 100))
    judge.check(_with(_candidates(), boxes=_boxes("no box lies in the image")), [], (200, 100))
    with pytest.raises(InputError, match="not numbers"):
        judge.check(_with(_candidates(), scores=_scores(np.nan)), [], (200, 100))


def test_logits_are_no_scores(tmp_path: Path) -> None:
    rows = RNG.normal(0, 5, (1, 7, 84)).astype(np.float32)
    path = fixed_outputs(tmp_path / "m.onnx", {"images": [1, 3, 64, 64]}, {"output0": rows})
    with pytest.raises(InputError, match=r"scores .*-\d.* to \d.*output0 \[1, 7, 84\] -\d.* to \d"):
        Detector(path, classes=CLASSES, family="yolov8").candidates([IMAGE])


def test_cx_cy_w_h_are_no_corners(tmp_path: Path) -> None:
    boxes = np.concatenate([RNG.uniform(0.3, 0.9, (60, 2)), RNG.uniform(0.01, 0.2, (60, 2))], axis=1)
    scores = RNG.uniform(0, 0.9, (60, 3))
    path = fixed_outputs(
        tmp_path / "m.onnx", {"image": [1, 3, 30, 30]},
        {"boxes": boxes[None].astype(np.float32), "scores": scores[None].astype(np.float32)},
    )  # fmt: skip
    with pytest.raises(InputError, match=r"taken for ssd, but most boxes end before they begin"):
        Detector(path, classes=CLASSES).candidates([IMAGE])

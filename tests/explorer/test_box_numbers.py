"""mAP, LRP, precision and recall as the page makes them at a threshold, against measuring anew."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from tests.amounts import others_slow
from tests.explorer.node import needs_node, run

from probox import Convention, Detections, Evaluation, GroundTruth, evaluate
from probox.analysis import threshold_sweep
from probox.analysis.threshold_sweep import find_box_rematches
from probox.explorer.payload import index_payload

pytestmark = needs_node

CLASSES = ("person", "cup", "dog", "empty")
KEYS = ("mAP", "AP50", "AP75", "moLRP", "moLRP_loc", "moLRP_fp", "moLRP_fn")

BOXES = """
const answer = input.map(({ index, thresholds }) => {
  const store = new probox.Store(index);
  return thresholds.map((threshold) => {
    const view = store.view(0, threshold), boxes = view.boxes();
    return { total: boxes.total(), classes: store.classes.map((_, c) => boxes.ofClass(c)), mean: boxes.curve("0.75"),
      curves: store.classes.map((_, c) => boxes.curve("0.50", c)),
      sizes: probox.constants.SIZES.map((_, size) => view.boxes(size).total()) };
  });
});
"""


def box_world(seed: int, kind: str) -> tuple[GroundTruth, Detections]:
    """Return boxes near objects: crowds, all sizes, equal scores; `kind` says what a threshold and the scores do.

    ``scores``: both are the same. ``stated``: detections state a class and a score that are not their most probable.
    ``background``: the highest probability may be that of background, or of a class that nobody asked for.
    ``many``: as stated, with more than a hundred of a class in an image.
    """
    rng = np.random.default_rng(seed)
    images = dict.fromkeys(range(1, int(rng.integers(2, 5))), (400, 300))
    there = [(image, int(rng.integers(0, 3))) for image in images for _ in range(int(rng.integers(0, 7)))]
    low = rng.uniform(0, 150, (len(there), 2))
    boxes = np.hstack([low, low + rng.choice([8.0, 32.0, 60.0, 96.0, 140.0], (len(there), 2))])
    truth = GroundTruth.from_boxes(CLASSES, images, [image for image, _ in there], boxes, [label for _, label in there])
    crowd = rng.random(len(there)) < 0.15
    truth = dataclasses.replace(truth, crowd=crowd)
    n = 260 if kind == "many" else int(rng.integers(1, 60))
    near = rng.integers(0, max(len(there), 1), n)
    found_image, label, found = [], [], np.zeros((n, 4))
    for row in range(n):
        if there and rng.random() < 0.8:
            image, own = there[near[row]]
            found[row] = boxes[near[row]] + rng.normal(0, 4, 4)
            own = own if rng.random() < 0.9 else int(rng.integers(0, 4))
        else:
            image, own = int(rng.choice(list(images))), int(rng.integers(0, 4))
            corner = rng.uniform(0, 200, 2)
            found[row] = [*corner, *(corner + rng.uniform(1, 150, 2))]
        found[row, 2:] = np.maximum(found[row, 2:], found[row, :2] + 0.5)
        found_image.append(1 if kind == "many" else image)
        label.append(0 if kind == "many" else own)
    classes = [*CLASSES, "background", "unicorn"] if kind == "background" else list(CLASSES)
    if kind == "scores":
        scores = np.round(rng.random(n), int(rng.integers(1, 4)))
        probs = np.zeros((n, len(classes)), np.float32)
        probs[np.arange(n), label] = scores
        return truth, Detections(
            classes=classes, image_ids=found_image, boxes=found, label_probs=probs, labels=label, scores=scores
        )
    probs = (np.floor(rng.dirichlet(np.full(len(classes), 0.4), n) * 100) / 100).astype(np.float32)
    if kind == "background":
        return truth, Detections(classes=classes, image_ids=found_image, boxes=found, label_probs=probs)
    scores = np.round(rng.random(n), 2)
    return truth, Detections(
        classes=classes, image_ids=found_image, boxes=found, label_probs=probs, labels=label, scores=scores
    )


def thresholds_of(evaluation: Evaluation, seed: int) -> list[float | None]:
    """Return none, one of the slider's, and some at, just below and between confidences."""
    rng = np.random.default_rng(seed)
    levels = np.unique(evaluation.detections.confidences).tolist()
    some = rng.choice(levels, min(len(levels), 3), replace=False).tolist() if levels else []
    below = [float(np.nextafter(np.float32(level), np.float32(0))) for level in some[:1]]
    return [None, 0.0, 0.3, *some, *below, float(rng.random())]


def equal(told: float | None, value: float) -> None:
    assert math.isnan(value) if told is None else math.isclose(told, value, rel_tol=1e-12, abs_tol=1e-12)


def check(answer: dict[str, Any], at: Evaluation, mean_at: float = 0.75) -> None:
    """Compare what the page says with the evaluation at that threshold."""
    precision, lrp = at.average_precision, at.lrp
    for key, value in {**precision.summary(), **lrp.summary()}.items():
        if key in KEYS:
            equal(answer["total"][key], value)
    table = {**precision.per_class().columns, **lrp.per_class().columns}
    names = dict(zip(KEYS, ("AP", "AP50", "AP75", "oLRP", "loc", "fp", "fn"), strict=True))
    for row, told in enumerate(answer["classes"]):
        for key, name in names.items():
            equal(told[key], table[name][row])
        equal(told["precision"], shares(at, row, 0)[0])
        equal(told["recall"], shares(at, row, 0)[1])
    for row, told in enumerate(answer["curves"]):
        if told is None:
            assert not precision.objects[row, 0]
        else:
            half = precision.rules.row_of(0.5)
            np.testing.assert_allclose(told, precision.precision[half, :, row, 0], rtol=1e-12)
    has_objects = precision.objects[:, 0] > 0
    if has_objects.any() and answer["mean"] is not None:
        mean = precision.precision[precision.rules.row_of(mean_at)][:, has_objects, 0].mean(axis=1)
        np.testing.assert_allclose(answer["mean"], mean, rtol=1e-12)
    table = {**precision.per_size().columns, **lrp.per_size().columns}
    for size, told in enumerate(answer["sizes"], start=1):
        for key, name in names.items():
            equal(told[key], table[{"AP": "mAP", "oLRP": "moLRP"}.get(name, name)][size])
        equal(told["precision"], shares(at, None, size)[0])
        equal(told["recall"], shares(at, None, size)[1])


def shares(at: Evaluation, label: int | None, size: int) -> tuple[float, float]:
    """Return precision and recall at an overlap of 0.5, counted plainly."""
    matches = at.box_matches
    chosen = np.ones(len(matches), bool) if label is None else matches.labels == label
    matched, ignored = (bits[chosen, size] & 1 == 1 for bits in (matches.matched, matches.ignored))
    right, wrong = int((matched & ~ignored).sum()), int((~matched & ~ignored).sum())
    objects = int(matches.objects_per_class()[slice(None) if label is None else label, size].sum())
    nan = float("nan")
    return right / (right + wrong) if right + wrong else nan, right / objects if objects else nan


@pytest.mark.parametrize("kind", others_slow(["scores", "stated", "background", "many"], 2))
def test_box_measures_are_those_of_measuring_anew_at_every_threshold(kind: str) -> None:
    worlds, rematches = [], 0
    for seed in range(7 if kind != "many" else 2):
        truth, found = box_world(seed, kind)
        convention = Convention(label_threshold=0.2) if seed % 5 == 4 else Convention()
        evaluation = evaluate(truth, found, convention=convention)
        own = convention.label_threshold or 0.0
        thresholds = [t for t in thresholds_of(evaluation, seed) if t is None or t >= own]
        events = find_box_rematches(evaluation)
        assert events is not None
        rematches += len(events.threshold)
        worlds.append((evaluation, thresholds))
    assert (rematches > 0) == (kind != "scores")
    told = [
        {"index": index_payload({"one": e}, [""] * len(e.dataset), 50, e.dataset.file_names), "thresholds": thresholds}
        for e, thresholds in worlds
    ]
    answers = run(BOXES, told)
    for (evaluation, thresholds), answer in zip(worlds, answers, strict=True):
        for threshold, one in zip(thresholds, answer, strict=True):
            alone = dataclasses.replace(evaluation, measures=("map", "lrp"))
            check(one, alone if threshold is None else alone.at_threshold(threshold))


@pytest.mark.parametrize(
    "own",
    [
        {"iou_thresholds": (0.3, 0.6, 0.75, 0.9), "max_detections": (5, 20)},
        {"iou_thresholds": (0.5,), "area_ranges": ((0, 900), (900, 5000), (5000, 1e10))},
        {"iou_thresholds": np.linspace(0.25, 1.0, 16), "max_detections": (300,)},
    ],
)
def test_own_rules_of_matching_are_those_of_the_page(own: dict[str, Any]) -> None:
    worlds = [evaluate(*box_world(seed, kind), **own) for seed in range(3) for kind in ("stated", "many")]
    rules = worlds[0].box_rules
    told = [
        {"index": index_payload({"one": e}, [""] * len(e.dataset), 50, e.dataset.file_names), "thresholds": [None, 0.3]}
        for e in worlds
    ]
    answers = run(BOXES.replace('"0.75"', '"0.50"'), told, rules)
    for evaluation, answer in zip(worlds, answers, strict=True):
        for threshold, one in zip((None, 0.3), answer, strict=True):
            alone = dataclasses.replace(evaluation, measures=("map", "lrp"))
            at = alone if threshold is None else alone.at_threshold(threshold)
            if rules.row_of(0.5) is None:  # matched for LRP, but no part of mAP
                one |= {"curves": [], "mean": None}
            check(one, at, mean_at=0.5)


def by_hand(boxes: list[list[float]], scores: list[float], sure: list[float], **own: Any) -> Evaluation:
    """Return one object and detections that state its class with a score, but another class with a confidence."""
    truth = GroundTruth.from_boxes(["cup", "dog"], {1: (200, 200)}, [1], [[10, 10, 50, 50]], [0])
    found = Detections(
        classes=["cup", "dog"], image_ids=[1] * len(boxes), boxes=boxes, label_probs=[[0.0, one] for one in sure],
        labels=[0] * len(boxes), scores=scores,
    )  # fmt: skip
    return evaluate(truth, found, **own)


FAR, NEAR = [100.0, 100.0, 140.0, 140.0], [10.0, 10.0, 50.0, 50.0]


@pytest.mark.parametrize(
    ("evaluation", "before", "after"),
    [
        (by_hand([FAR, NEAR], [0.9, 0.5], [0.3, 0.6]), 0.5, 1.0),  # the wrong one is surer of its score alone
        (by_hand([NEAR, NEAR], [0.9, 0.5], [0.3, 0.6]), 1.0, 1.0),  # the second gets the object of the first
        (by_hand([NEAR, NEAR], [0.9, 0.5], [0.6, 0.3]), 1.0, 1.0),
        (by_hand([FAR, NEAR, FAR], [0.305, 0.3, 0.295], [0.9] * 3), 0.5, 0.5),  # a score on LRP's grid
        (by_hand([FAR] * 100 + [NEAR], [0.9] * 100 + [0.5], [0.3] * 100 + [0.6]), 0.0, 1.0),  # the 101st comes in
        (by_hand([FAR] * 2 + [NEAR], [0.9] * 2 + [0.5], [0.3] * 2 + [0.6], max_detections=(2,)), 0.0, 1.0),
    ],
)
def test_a_threshold_that_drops_out_of_turn(evaluation: Evaluation, before: float, after: float) -> None:
    told = {"index": index_payload({"one": evaluation}, [""], 50, evaluation.dataset.file_names)}
    (answers,) = run(BOXES, [told | {"thresholds": [None, 0.3, 0.45]}])
    assert [answer["classes"][0]["AP50"] for answer in answers] == pytest.approx([before, after, after])
    check(answers[0], evaluation)
    check(answers[1], evaluation.at_threshold(0.3))


def test_a_match_that_a_threshold_changes_at_a_high_overlap_alone() -> None:
    """The last lies in a crowd; at 0.75 it gets the cup when the second has gone, but not at 0.5: the first has it."""
    boxes = [[10.0, 10.0, 34.0, 50.0], NEAR, [18.0, 10.0, 50.0, 50.0]]
    truth = GroundTruth.from_boxes(["cup", "dog"], {1: (200, 200)}, [1, 1], [NEAR, [18, 5, 60, 60]], [0, 0])
    truth = dataclasses.replace(truth, crowd=np.array([False, True]))
    found = Detections(
        classes=["cup", "dog"], image_ids=[1] * 3, boxes=boxes, label_probs=[[0.0, 0.9], [0.0, 0.3], [0.0, 0.6]],
        labels=[0] * 3, scores=[0.9, 0.8, 0.7],
    )  # fmt: skip
    evaluation = evaluate(truth, found)
    told = {"index": index_payload({"one": evaluation}, [""], 50, evaluation.dataset.file_names)}
    (answers,) = run(BOXES, [told | {"thresholds": [None, 0.3]}])
    assert [answer["classes"][0]["AP75"] for answer in answers] == pytest.approx([0.5, 0.5])
    check(answers[0], evaluation)
    check(answers[1], evaluation.at_threshold(0.3))


def test_nothing_is_matched_anew_where_scores_are_confidences() -> None:
    for seed in range(5):
        assert len(threshold_sweep._doubtful_groups(evaluate(*box_world(seed, "scores"))).row) == 0


def test_what_would_take_too_long_to_follow_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found = box_world(0, "stated")
    evaluation = evaluate(truth, found)
    monkeypatch.setattr(threshold_sweep, "_MOST_ROWS", 3)
    index = index_payload({"one": evaluation}, [""] * len(evaluation.dataset), 50, evaluation.dataset.file_names)
    (result,) = index["results"]
    assert result["boxes"] is None
    assert result["whole"]["mAP"] == round(evaluation.summary()["mAP"], 12)

"""Intervals and differences as the page makes them, against `Evaluation.intervals` and `probox.compare`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.explorer.node import needs_node, run

from probox import Convention, Detections, Evaluation, GroundTruth, compare, evaluate
from probox.analysis.permutation import apply_holm
from probox.analysis.resampling import Block, draw_block, swap_block
from probox.explorer.payload import find_obstacles, index_payload

pytestmark = needs_node

DRAIN = "const drain = (work) => { for (;;) { const step = work.next(); if (step.done) return step.value; } };"

RANDOM = f"""{DRAIN}
const {{ draws, swaps }} = probox.resampling;
const answer = input.map((images) => ({{ drawn: [...drain(draws(images))],
  swapped: [...drain(swaps(images, 57)).bits] }}));
"""

COMPARED = f"""{DRAIN}
const {{ Samples, sampled, compared, conclusion }} = probox.resampling;
const answer = input.map(({{ index, thresholds }}) => {{
  const store = new probox.Store(index), samples = new Samples(store.count, store.classes.length);
  const names = store.results.map((result) => result.name);
  return thresholds.map((threshold) => {{
    const both = [0, 1].map((r) => drain(sampled(store, samples, r, threshold)));
    const found = drain(compared(store, samples, [0, 1], threshold, both));
    const turned = drain(compared(store, samples, [1, 0], threshold, [both[1], both[0]]));
    return {{ intervals: both.map((one) => one.intervals), ...found,
      conclusion: conclusion(names, found.columns.PDQ, store.count),
      turned: conclusion([names[1], names[0]], turned.columns.PDQ, store.count) }};
  }});
}});
"""

THRESHOLDS = [None, 0.3, 0.51234, 0.9]
USED = ("cup", "dog", "owl", "rare", "never")
CLASSES = (*USED, *(f"none {number}" for number in range(30)))
"""So many that classes need more swaps than numbers of all classes."""


def two_results(seed: int, images: int, convention: Convention, second: float) -> dict[str, Evaluation]:
    """Return results of two detectors on boxes in images, some of them empty; the second is as good as `second`."""
    rng = np.random.default_rng(seed)
    shapes = {image + 1: (80, 60) for image in range(images)}
    places = [
        (image, int(rng.choice(4, p=[0.5, 0.3, 0.18, 0.02]))) for image in shapes for _ in range(rng.integers(0, 4))
    ]
    low = np.stack([rng.uniform(0, 40, len(places)), rng.uniform(0, 25, len(places))], axis=1)
    boxes = np.hstack([low, low + rng.uniform(8, 30, (len(places), 2))])
    truth = GroundTruth.from_boxes(CLASSES, shapes, [p[0] for p in places], boxes, [p[1] for p in places])
    results = {}
    for name, share in (("first", 0.8), ("second", second)):
        ids, found, probs = [], [], []
        for row, (image, label) in enumerate(places):
            if rng.random() < share:
                ids.append(image)
                found.append(boxes[row] + rng.uniform(-1.0, 1.0, 4) / max(share, 0.3))
                own = rng.dirichlet(np.full(6, 0.3)) * 0.5
                own[label] += 0.5 * share
                probs.append(own)
        for _ in range(images // 3):
            corner = rng.uniform(0, 30, 2)
            ids.append(int(rng.integers(1, images + 1)))
            found.append([*corner, *(corner + 15)])
            probs.append(rng.dirichlet(np.full(6, 0.5)) * 0.9)
        # The last class is none of the truth's.
        detections = Detections(
            classes=(*USED, "ufo"), image_ids=ids, boxes=found, label_probs=np.array(probs, np.float32)
        )
        results[name] = evaluate(truth, detections, convention=convention, measures=["pdq"])
    return results


def told(results: dict[str, Evaluation]) -> dict[str, Any]:
    images = len(next(iter(results.values())).dataset)
    return {"index": index_payload(results, [""] * images, 50, [""] * images), "thresholds": THRESHOLDS}


def test_images_are_drawn_and_swapped_as_python_does_it() -> None:
    many = [2, 3, 37, 64]
    for images, answer in zip(many, run(RANDOM, many), strict=True):
        drawn = draw_block(Block(0, 1000), images, 0)
        np.testing.assert_array_equal(np.reshape(answer["drawn"], (images, 1000)).T, drawn)
        packed = np.packbits(swap_block(Block(0, 57), images, 0), axis=1, bitorder="little")
        np.testing.assert_array_equal(np.reshape(answer["swapped"], (-1, 57)).T, packed)


def close(page: Any, value: float, scale: float = 1.0) -> None:
    """Check a number of the page: pPDQ is told in full, the other qualities to seven digits."""
    if math.isnan(value):
        assert page is None
    else:
        assert page == pytest.approx(value, rel=1e-6, abs=1e-6 * scale)


WORLDS = [
    (1, 40, Convention(), 0.4),
    (2, 45, Convention(confidence_denominator=True), 0.75),
    (3, 33, Convention(object_filter=True), 0.8),
    (4, 2, Convention(), 0.5),
    (5, 9, Convention(), 0.2),
]


def test_intervals_and_differences_are_python_s_at_every_threshold() -> None:
    worlds = [two_results(*world) for world in WORLDS]
    claims = set()
    for results, found in zip(worlds, run(COMPARED, [told(results) for results in worlds]), strict=True):
        for threshold, page in zip(THRESHOLDS, found, strict=True):
            at = {n: r if threshold is None else r.at_threshold(threshold) for n, r in results.items()}
            for own, result in zip(page["intervals"], at.values(), strict=True):
                for key, interval in result.intervals().items():
                    for end in ("low", "high"):
                        close(own[key] and own[key][end], getattr(interval, end), max(1.0, abs(interval.value)))
            compared = compare(at, per_class=True)
            (pair,) = compared.pairs
            for key, difference in pair.columns.items():
                check_difference(page["columns"][key], difference)
            for number, name in enumerate(CLASSES):
                own, difference = page["classes"][number], pair.classes["PDQ"].get(name)
                assert (own is None) == (difference is None), name
                if difference is not None:
                    check_difference(own, difference)
                    close(own["adjusted"], difference.adjusted)
                    assert own["images"] == difference.images
                    claims.add(own["claimed"])
            assert page["conclusion"] == pair.conclusion
            assert page["turned"] == compare(dict(reversed(at.items()))).pairs[0].conclusion
            claims.add(page["conclusion"].split()[0])
    # Both ends of every decision were met.
    assert claims >= {True, False, "first", "In"}


def check_difference(page: Any, difference: Any) -> None:
    close(page["difference"], difference.difference.value)
    between = page["between"] or {"low": None, "high": None}
    close(between["low"], difference.difference.low)
    close(between["high"], difference.difference.high)
    close(page["p"], difference.p)
    assert page["claimed"] == difference.claimed


WORDS = """
const { claimed, conclusion, holm, normal, pValue } = probox.resampling;
const said = (...given) => conclusion(["a", "b"], ...given);
const answer = {
  holm: holm([0.01, NaN, 0.04, 0.03]),
  p: [pValue(0.5, [0.5, -0.6, 0.1, NaN], 40), pValue(0.5, [0, 0, 0], 3),
    pValue(NaN, [1], 3), pValue(0.5, [0, 0, 0], 0)],
  claimed: [[0.05, 0.01, 0.02], [0.05, -0.02, -0.01], [0.051, 0.01, 0.02], [0.05, 0, 0.02], [0.05, -0.02, 0]]
    .map(([p, low, high]) => claimed(p, { low, high })).concat(claimed(0.01, null)),
  normal: [-40, -3, 0, 1.96, 9].map(normal),
  words: [
    said({}, 1),
    said({ difference: NaN }, 9),
    said({ difference: 0, between: { low: 0, high: 0 }, p: 1 }, 9),
    said({ difference: -0.0004, between: { low: -0.02, high: 0.01 }, p: 0.4 }, 1234),
    said({ difference: 0.0138, between: { low: 0.0088, high: 0.0188 }, p: 0.0005, claimed: true }, 40),
    said({ difference: -0.013, between: { low: -0.022, high: -0.004 }, p: 0.0002, claimed: true }, 206),
  ],
};
"""


def test_words_and_p_at_their_ends() -> None:
    page = run(WORDS, None)
    assert [value if value is None else round(value, 12) for value in page["holm"]] == [0.03, None, 0.06, 0.06]
    assert apply_holm([0.01, math.nan, 0.04, 0.03])[2] == 0.06
    assert page["p"] == [4 / 5, 0.25, None, 1]  # two do as much, one has no number, and there is the difference itself
    assert page["claimed"] == [True, True, False, False, False, False]  # an interval that ends at 0 holds it
    assert page["normal"] == pytest.approx([0, 0.0013498980316301, 0.5, 0.9750021048517795, 1], abs=1e-14)
    assert page["words"] == [
        "Nothing can be concluded about a and b from 1 image.",
        "In PDQ one value is not finite.",
        "In PDQ they are equal.",
        "In PDQ no difference can be claimed: a minus b is 0.0 points (95% CI -2.0 to 1.0, p = 0.400, 1,234 images).",
        # Ten units of the last decimal are wide enough.
        "a is better than b in PDQ by 1.38 points (95% CI 0.88 to 1.88, p = 0.001, 40 images).",
        "b is better than a in PDQ by 1.30 points (95% CI 0.40 to 2.20, p < 0.001, 206 images).",
    ]


def test_results_that_may_not_be_compared_are_told_with_the_reason() -> None:
    first = two_results(1, 5, Convention(), 0.5)
    other = two_results(1, 5, Convention(min_probability=0.1), 0.5)
    results = {"a": first["first"], "b": first["second"], "c": other["first"]}
    assert set(find_obstacles(results)) == {"0,2", "1,2"}
    assert "min_probability" in find_obstacles(results)["0,2"]
    assert told(results)["index"]["obstacles"] == find_obstacles(results)
    assert find_obstacles(first) == {}

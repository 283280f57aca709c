"""What the gallery filters, counts and sorts, run by Node, against plain sums over an evaluation's tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.explorer.node import needs_node, run
from tests.strategies import random_world

from probox import Convention, Evaluation, evaluate
from probox.demo import Demo
from probox.explorer.payload import index_payload, pack
from probox.measures.boxes.matching import AREA_RANGES
from probox.tables.results import Verdict

pytestmark = needs_node

STATE = {
    "main": 0, "rival": None, "t": None, "class": None, "size": None, "verdict": "", "quality": "pPDQ", "lo": 0,
    "hi": 1, "duel": "", "sort": "worst", "by": "missed", "unseen": "last", "confused": None,
}  # fmt: skip

SELECT = """
const store = new probox.Store(input.index);
const all = [...Array(store.count).keys()];
const answer = input.states.map((state) => {
  const passed = probox.passing(store, state, state.main);
  const sums = probox.imageSums(store, state, state.main, passed);
  const rival = probox.rivalOf(state);
  const rivals = rival === null ? null : probox.imageSums(store, state, rival, probox.passing(store, state, rival));
  const told = (one) => one && Object.fromEntries(Object.entries(one).map(([name, values]) => [name, [...values]]));
  return { sums: told(sums), rivals: told(rivals), all: passed.all, words: probox.filterWords(store, state),
    ...probox.sortImages(store, state, all, sums, rivals),
    list: probox.itemList(store, state, passed, state.most ?? 1e9, state.images ?? all) };
});
"""


def select(
    results: dict[str, Evaluation], states: list[dict[str, Any]], unseen: Sequence[list[int]] = ()
) -> list[dict[str, Any]]:
    """Return what the page makes of states, each given by what differs from no filter.

    `unseen` are rows of images that each detector never saw, in place of what the evaluation says of them.
    """
    first = next(iter(results.values()))
    index = index_payload(results, [""] * len(first.dataset), 50, first.dataset.file_names)
    for result, rows in zip(index["results"], unseen, strict=False):
        result["unseen"] = pack(np.isin(np.arange(len(first.dataset)), rows), "u1")
    return run(SELECT, {"index": index, "states": [STATE | state for state in states]})


def kept_rows(evaluation: Evaluation, threshold: float | None) -> np.ndarray:
    """Return the rows of detections that a threshold keeps."""
    return np.flatnonzero(evaluation.detections.confidences > (-1 if threshold is None else np.float32(threshold)))


Item = tuple[int, int, int]
"""Image, detection and object, -1 for none; detections are counted before the threshold, as the page does."""


def items_of(evaluation: Evaluation, threshold: float | None) -> list[Item]:
    """Return every match, false positive and miss at a threshold."""
    at = evaluation if threshold is None else evaluation.at_threshold(threshold)
    table, rows = at.detections, kept_rows(evaluation, threshold)
    found = [
        (int(table.image_rows[d]), int(rows[d]), int(table.partners[d]) if table.verdicts[d] == Verdict.TP else -1)
        for d in range(len(table))
        if table.verdicts[d] in (Verdict.TP, Verdict.FP)
    ]
    missed = [(int(at.objects.image_rows[o]), -1, int(o)) for o in np.flatnonzero(at.objects.verdicts == Verdict.FN)]
    return found + missed


def verdict_of(item: Item) -> str:
    return "FP" if item[2] < 0 else "FN" if item[1] < 0 else "TP"


def qualities_of(evaluation: Evaluation, item: Item, name: str) -> float:
    """Return a match's quality; nothing else has any, but for pPDQ, which is then 0."""
    if verdict_of(item) != "TP":
        return 0.0 if name == "pPDQ" else np.nan
    pairs = evaluation.pairs
    (row,) = np.flatnonzero((pairs.detections == item[1]) & (pairs.objects == item[2]))
    return float(pairs.quality(name)[row])


def passes(results: list[Evaluation], state: dict[str, Any], others: list[Item], item: Item) -> bool:
    """Return whether an item of the chosen detector passes the filters; `others` are those of its rival."""
    mine = results[state["main"]]
    _, d, o = item
    label = mine.objects.labels[o] if o >= 0 else mine.detections.labels[d]
    area = mine.objects.areas[o] if o >= 0 else np.prod(mine.detections.extents[d])
    if state["class"] is not None and label != state["class"]:
        return False
    if state["size"] is not None and not AREA_RANGES[1 + state["size"]][0] <= area <= AREA_RANGES[1 + state["size"]][1]:
        return False
    if state["verdict"] and verdict_of(item) != state["verdict"]:
        return False
    everything = state["lo"] <= 0 and state["hi"] >= 1
    if not everything and not state["lo"] <= qualities_of(mine, item, state["quality"]) <= state["hi"]:
        return False
    if not state["duel"] or state["rival"] is None:
        return True
    found = {other[2] for other in others if verdict_of(other) == "TP"}
    missed = {other[2] for other in others if verdict_of(other) == "FN"}
    if state["duel"] == "alone":
        labels = results[state["rival"]].detections.labels
        wrong = {(other[0], int(labels[other[1]])) for other in others if verdict_of(other) == "FP"}
        return verdict_of(item) == "FP" and (item[0], int(label)) not in wrong
    return {
        "won": verdict_of(item) == "TP" and o in missed,
        "lost": verdict_of(item) == "FN" and o in found,
        "neither": verdict_of(item) == "FN" and o in missed,
    }[state["duel"]]


def expected_sums(evaluation: Evaluation, items: list[Item]) -> dict[str, np.ndarray]:
    """Return PDQ, TP, FP and FN of items, image by image."""
    n = len(evaluation.dataset)
    counts = {name: np.zeros(n) for name in ("TP", "FP", "FN", "cost", "quality")}
    for item in items:
        counts[verdict_of(item)][item[0]] += 1
        if verdict_of(item) == "TP":
            counts["quality"][item[0]] += qualities_of(evaluation, item, "pPDQ")
        elif verdict_of(item) == "FP":
            by_confidence = evaluation.convention.confidence_denominator
            counts["cost"][item[0]] += evaluation.detections.costs[item[1]] if by_confidence else 1
    with np.errstate(invalid="ignore"):
        counts["PDQ"] = counts["quality"] / (counts["TP"] + counts["cost"] + counts["FN"])
    return counts


def check_sums(told: dict[str, list[float | None]], expected: dict[str, np.ndarray]) -> None:
    for name in ("TP", "FP", "FN"):
        assert told[name] == expected[name].tolist(), name
    np.testing.assert_allclose(np.array(told["PDQ"], float), expected["PDQ"], rtol=1e-6)


def two_of_a_world(seed: int, convention: Convention) -> dict[str, Evaluation]:
    """Return two detectors of a random world: the second lacks some detections, and names other classes."""
    truth, found = random_world(seed, heatmaps=False, max_images=8)
    rng = np.random.default_rng(seed)
    some = found[rng.random(len(found)) < 0.7]
    turned = some.replace(label_probs=np.roll(some.label_probs, 1, axis=1), scores=None, labels=None)
    return {
        "all": evaluate(truth, found, convention=convention),
        "some": evaluate(truth, turned, convention=convention),
    }


FILTERS: list[dict[str, Any]] = [
    {},
    {"class": 0},
    {"class": 1, "verdict": "TP"},
    {"verdict": "FP"},
    {"verdict": "FN"},
    {"quality": "pPDQ", "lo": 0, "hi": 0.2},
    {"quality": "pPDQ", "lo": 0.05, "hi": 1},
    {"quality": "spatial", "lo": 0, "hi": 0.3},
    {"size": 0, "class": 2},
    {"size": 1},
    {"duel": "won"},  # without a rival it is no filter
]
DUELS: list[dict[str, Any]] = [
    {"rival": 1, "duel": duel, **more} for duel in ("won", "lost", "neither", "alone") for more in ({}, {"class": 1})
]


@pytest.mark.parametrize(("seed", "preset"), [(0, "reference"), (3, "challenge"), (12, "reference")])
def test_numbers_of_an_image_are_those_of_what_passes(seed: int, preset: str) -> None:
    results = two_of_a_world(seed, Convention.preset(preset))
    evaluations = list(results.values())
    states = [
        STATE | filters | {"t": threshold}
        for filters, threshold in itertools.product([*FILTERS, *DUELS], [None, 0.35, 0.612])
    ]
    seen = 0
    for state, told in zip(states, select(results, states), strict=True):
        mine, others = (items_of(evaluation, state["t"]) for evaluation in evaluations)
        items = [item for item in mine if passes(evaluations, state, others, item)]
        check_sums(told["sums"], expected_sums(evaluations[0], items))
        listed = [(item["image"], item["d"], item["o"]) for item in told["list"]["items"]]
        assert sorted(listed) == sorted(items)
        assert told["list"]["total"] == len(items)
        seen += len(items)
    assert seen > 100


def test_a_class_or_size_in_an_image_has_the_numbers_that_the_tables_give_it(results: dict[str, Evaluation]) -> None:
    result = next(iter(results.values()))
    for threshold in (None, 0.45):
        at = result if threshold is None else result.at_threshold(threshold)
        alone = [at.select_images([image]) for image in result.dataset.image_ids.tolist()]
        for key, names, tables in (
            ("class", result.classes, [image.per_class() for image in alone]),
            ("size", ("small", "medium", "large"), [image.per_size() for image in alone]),
        ):
            states = [{key: number, "t": threshold} for number in range(len(names))]
            for name, told in zip(names, select(results, states), strict=True):
                numbers = ("PDQ", "TP", "FP", "FN")
                check_sums(told["sums"], {key: np.array([table[name][key] for table in tables]) for key in numbers})


def test_filters_say_what_passes(results: dict[str, Evaluation]) -> None:
    states: list[dict[str, Any]] = [
        {}, {"class": 1}, {"size": 0, "class": 1, "verdict": "FN"}, {"quality": "spatial", "lo": 0.125, "hi": 0.5},
        {"rival": 1, "duel": "lost"}, {"duel": "lost"},
    ]  # fmt: skip
    name = next(iter(results.values())).classes[1]
    expected = [
        "", name, f"small {name}, missed", "spatial 12.5 to 50%",
        "missed by deterministic, detected by probabilistic", "",
    ]  # fmt: skip
    answers = select(results, states)
    assert [told["words"] for told in answers] == expected
    assert [told["all"] for told in answers] == [words == "" for words in expected]


UNSEEN = [[2, 7], [4]]


@pytest.fixture(scope="module")
def with_unseen(demo: Demo) -> dict[str, Evaluation]:
    """Return the demo with one detector that never saw two of the images, and another that missed a third."""
    ids = demo.truth.image_ids
    lacking = [ids[rows] for rows in UNSEEN]
    return {
        name: evaluate(demo.truth, found[~np.isin(found.image_ids, without)], measures=("pdq",))
        for (name, found), without in zip(demo.detectors.items(), lacking, strict=True)
    }


def test_the_rival_is_measured_by_the_same_objects(with_unseen: dict[str, Evaluation]) -> None:
    deterministic, probabilistic = with_unseen.values()
    duels = [{"rival": 1, "duel": duel, "t": 0.6} for duel in ("won", "lost", "neither", "alone")]
    won, lost, neither, alone = select(with_unseen, duels)
    both = [items_of(evaluation, 0.6) for evaluation in (deterministic, probabilistic)]
    found = [{item[2] for item in items if verdict_of(item) == "TP"} for items in both]
    missed = [{item[2] for item in items if verdict_of(item) == "FN"} for items in both]
    assert sum(won["sums"]["TP"]) == sum(won["rivals"]["FN"]) == len(found[0] & missed[1]) > 0
    assert sum(lost["sums"]["FN"]) == sum(lost["rivals"]["TP"]) == len(missed[0] & found[1]) > 0
    assert sum(neither["sums"]["FN"]) == sum(neither["rivals"]["FN"]) == len(missed[0] & missed[1]) > 0
    assert sum(won["rivals"]["TP"]) + sum(won["rivals"]["FP"]) + sum(won["sums"]["FN"]) == 0
    assert sum(alone["sums"]["FP"]) > 0
    assert sum(sum(alone["rivals"][name]) for name in ("TP", "FP", "FN")) == 0  # it has none of them


def test_nobody_is_their_own_rival(with_unseen: dict[str, Evaluation]) -> None:
    itself, plain = select(with_unseen, [{"rival": 0, "duel": "won", "sort": "ahead", "by": "ahead"}, {}])
    assert itself == plain


def test_order_of_images(with_unseen: dict[str, Evaluation]) -> None:
    first, second = (evaluation.at_threshold(0.5).per_image().columns for evaluation in with_unseen.values())
    number = np.arange(12)
    unseen, either = np.isin(number, [2, 7]), np.isin(number, [2, 4, 7])
    lost = (1 - first["PDQ"]) * (first["TP"] + first["FP"] + first["FN"])
    difference = first["PDQ"] - second["PDQ"]
    expected = {
        "worst": np.lexsort((number, -lost, unseen)),
        "best": np.lexsort((number, -first["PDQ"], unseen)),
        "missed": np.lexsort((number, -first["FN"], unseen)),
        "ahead": np.lexsort((number, -difference, either)),
        "behind": np.lexsort((number, difference, either)),
        "wrong": np.lexsort((number, -first["FP"])),
        "crowded": np.lexsort((number, -(first["TP"] + first["FN"]))),
        "number": number,
    }
    states = [{"sort": sort, "rival": 1, "t": 0.5} for sort in expected]
    for (sort, order), told in zip(expected.items(), select(with_unseen, states, UNSEEN), strict=True):
        assert told["rows"] == order.tolist(), sort
        assert told["apart"] == {"ahead": 3, "behind": 3, "worst": 2, "best": 2, "missed": 2}.get(sort, 0)
    others: list[dict[str, Any]] = [{"sort": "worst", "unseen": "among", "t": 0.5}, {"sort": "behind", "t": 0.5}]
    among, alone = select(with_unseen, others, UNSEEN)
    assert among["rows"] == np.lexsort((number, -lost)).tolist()
    assert among["rows"] != expected["worst"].tolist()
    assert among["apart"] == 0
    assert alone["rows"] == expected["worst"].tolist()  # nobody to differ from


def test_images_without_anything_that_counts_come_last() -> None:
    results = {"all": two_of_a_world(12, Convention())["all"]}
    (told,) = select(results, [{"class": 0, "sort": "worst"}])
    empty = [row for row, value in enumerate(told["sums"]["PDQ"]) if value is None]
    assert 0 < len(empty) < len(told["rows"])
    assert told["rows"][-len(empty) :] == empty
    assert told["apart"] == 0  # nothing of that class is there: that says nothing about the detector


def test_order_of_objects(with_unseen: dict[str, Evaluation]) -> None:
    evaluations = list(with_unseen.values())
    one, other = evaluations
    items = [(*item, place) for place, item in enumerate(sorted(items_of(one, 0.3), key=lambda i: (i[0], i[1] < 0, i)))]

    def large(item: Item) -> int:
        return int(np.flatnonzero(one.objects.areas[item[2]] <= AREA_RANGES[1:, 1])[0])

    def pdq(evaluation: Evaluation, number: int) -> dict[int, float]:
        return {
            item[2]: qualities_of(evaluation, item, "pPDQ")
            for item in items_of(evaluation, 0.3)
            if verdict_of(item) == "TP"
        }

    own, others = pdq(one, 0), pdq(other, 1)

    def key(by: str, item: tuple[int, int, int, int]) -> tuple[float, ...]:
        verdict = verdict_of(item[:3])
        unseen = item[0] in ((2, 4, 7) if by in ("ahead", "behind") else (2, 7))
        if by == "number":
            return (item[3],)
        groups = {"missed": "FN TP FP", "worst": "TP FN FP", "best": "TP FN FP", "score": "FP FN TP"}
        if by in ("ahead", "behind"):
            group = int(verdict == "FP")
            difference = own.get(item[2], 0.0) - others.get(item[2], 0.0)
            value = -difference if by == "ahead" else difference
        else:
            group = groups[by].split().index(verdict)
            value = qualities_of(one, item[:3], "spatial") * (-1 if by == "best" else 1)
        if verdict == "FN" and by not in ("ahead", "behind"):
            value = -large(item[:3])
        if verdict == "FP":
            value = -float(np.float32(one.detections.scores[item[1]]))
        return (unseen, group, value, item[3])

    orders = ["missed", "worst", "best", "score", "ahead", "behind", "number"]
    states = [
        {"by": by, "rival": 1, "t": 0.3, "quality": "spatial", "most": most} for by in orders for most in (1000, 7)
    ]
    for state, told in zip(states, select(with_unseen, states, UNSEEN), strict=True):
        expected = sorted(items, key=lambda item: key(state["by"], item))[: state["most"]]
        assert [(item["image"], item["d"], item["o"]) for item in told["list"]["items"]] == [
            item[:3] for item in expected
        ], state["by"]
        assert told["list"]["total"] == len(items)
    (few,) = select(with_unseen, [{"by": "missed", "images": [3, 1]}])
    assert {item["image"] for item in few["list"]["items"]} == {1, 3}


def test_a_filter_that_another_part_adds_counts_like_the_others(results: dict[str, Evaluation]) -> None:
    added = """
    probox.addItemFilter({ keys: ["odd"],
      make: (store, state, r, view) => (state.odd ? (d, o) => o >= 0 && o % 2 === 1 : null),
      words: (store, state) => (state.odd ? "odd objects" : "") });
    const listed = [probox.FILTERS.includes("odd"), probox.GALLERY.includes("odd")];
    """
    first = next(iter(results.values()))
    index = index_payload(results, [""] * len(first.dataset), 50, first.dataset.file_names)
    states = [STATE | {"odd": odd} for odd in (False, True)]
    answer = SELECT + "answer.push(listed);"
    plain, odd, listed = run(added + answer, {"index": index, "states": states})
    assert listed == [True, True]
    assert plain["words"] == ""
    assert odd["words"] == "odd objects"
    wanted = [item for item in items_of(first, None) if item[2] % 2 == 1 and item[2] >= 0]
    check_sums(odd["sums"], expected_sums(first, wanted))


# --- ids, crops, histograms -----------------------------------------------------------------------------------------


IDS = """
const there = (ids) => probox.packIds(new Set(ids));
const answer = { sets: input.sets.map((ids) => [there(ids), [...probox.unpackIds(there(ids))]]),
  texts: input.texts.map((text) => probox.unpackIds(text) ?? null) };
"""


def test_ids_in_the_link_come_back() -> None:
    rng = np.random.default_rng(5)
    sets = [[7], [0], [-5, 3], [139, 285, 632], rng.choice(600_000, 400, replace=False).tolist(), [2**53 - 1, 1]]
    value = {"sets": sets, "texts": ["", "5..2", "a b", "-", "5.-2", "Z", "zzzzzzzzzzzzzzzz"]}
    answer = run(IDS, value)
    for ids, (text, back) in zip(sets, answer["sets"], strict=True):
        assert sorted(back) == sorted(ids)
        assert set(text) <= set("0123456789abcdefghijklmnopqrstuvwxyz.-")
    assert len(answer["sets"][4][0]) < 400 * 4.2
    assert answer["texts"] == [None] * 7


CROPS = """
const answer = input.map(({ boxes, size }) => probox.cropAround(boxes, ...size));
"""


def test_crops_show_the_boxes_with_a_rim_and_stay_in_the_image() -> None:
    rng = np.random.default_rng(9)
    cases = []
    for _ in range(300):
        size = rng.integers(20, 700, 2)
        low = rng.uniform(-0.1, 0.9, (2, 2)) * size
        high = low + rng.uniform(0.01, 0.6, (2, 2)) * size
        cases.append(
            {"boxes": np.concatenate([low, high], axis=1).tolist()[: rng.integers(1, 3)], "size": size.tolist()}
        )
    for case, (x, y, side) in zip(cases, run(CROPS, cases), strict=True):
        boxes, size = np.array(case["boxes"]), np.array(case["size"])
        low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0) + 1
        corner = np.array([x, y])
        assert (corner <= low + 1e-9).all()
        assert (corner + side >= high - 1e-9).all()
        longer = (high - low).max()
        assert longer <= side <= max(longer, min(size.max(), max(1.5 * longer, longer + 24))) + 1e-9
        for axis in (0, 1):  # it leaves the image only where a box does, or where it is larger
            if side < size[axis]:
                assert corner[axis] >= min(0, low[axis]) - 1e-9
                assert corner[axis] + side <= max(size[axis], high[axis]) + 1e-9


def test_histograms_count_true_positives_at_the_threshold(results: dict[str, Evaluation]) -> None:
    result = results["probabilistic"]
    index = index_payload({"one": result}, [""] * len(result.dataset), 50, result.dataset.file_names)
    script = (
        "const store = new probox.Store(input.index);"
        "const answer = input.thresholds.map((t) => probox.histogram(store.view(0, t), 'spatial', 10));"
    )
    for threshold, told in zip((None, 0.7), run(script, {"index": index, "thresholds": [None, 0.7]}), strict=True):
        table = (result if threshold is None else result.at_threshold(threshold)).detections
        values = table.quality("spatial")[table.verdicts == Verdict.TP]
        counts = np.histogram(values, np.linspace(0, 1, 11))[0]
        np.testing.assert_allclose(told, 100 * counts / len(values))

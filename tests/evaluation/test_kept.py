"""Evaluations without their tables: what they say, what they refuse, how they are kept, and their exact sums."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.worlds import many_images

import probox
from probox import Evaluation, InputError, evaluate
from probox.evaluation.archive import digest, write_archive
from probox.evaluation.folders import load_results
from probox.evaluation.kept import LEVELS, exact_sum
from probox.evaluation.storage import COLUMNS, WORDS, canonical, schema_of
from probox.notes import Note


@pytest.fixture(scope="module")
def matches() -> Evaluation:
    result = evaluate(*many_images(7, 30), keep="matches")
    return result


@pytest.mark.parametrize("preset", ["reference", "challenge"])
@pytest.mark.parametrize("own", [None, 0.25])
def test_the_curve_is_what_each_threshold_gives(preset: str, own: float | None) -> None:
    truth, found = many_images(11, 30)
    whole = evaluate(truth, found, preset=preset, label_threshold=own, measures="pdq")
    result = evaluate(truth, found, keep="summary", preset=preset, label_threshold=own)
    curve = result.threshold_curve()
    assert curve["threshold"].tolist() == LEVELS.tolist()
    for at, threshold in enumerate(LEVELS.tolist()):
        if own is not None and threshold < own:
            assert np.isnan(curve["PDQ"][at])
            continue
        there = whole.at_threshold(threshold).summary()
        for key in ("PDQ", "TP", "FP", "FN"):
            np.testing.assert_equal(float(curve[key][at]), float(there[key]), err_msg=f"{key} above {threshold}")


def test_it_shows_itself_as_an_evaluation_does(matches: Evaluation) -> None:
    whole = evaluate(*many_images(7, 30))
    assert str(matches).splitlines()[:3] == str(whole).splitlines()[:3]
    assert repr(matches) == repr(whole).replace(", reference)", ", reference, matches)")
    assert matches.classes == whole.classes
    assert (matches.average_precision.ap75, matches.lrp.molrp) == (whole.average_precision.ap75, whole.lrp.molrp)
    assert matches.per_image().flat().columns.keys() <= whole.per_image().flat().columns.keys()


def test_what_is_odd_is_still_said() -> None:
    """A file of boxes in another scale gives low numbers, whatever is kept of them."""
    truth, found = many_images(7, 200)
    wrong = found.replace(boxes=found.boxes / 640, extents=found.extents / 640)
    kinds = [warning.code for warning in evaluate(truth, wrong).warnings]
    result = evaluate(truth, wrong, keep="matches")
    assert kinds
    assert [warning.code for warning in result.warnings] == kinds
    assert [warning.code for warning in probox.from_bytes(result.to_bytes()).warnings] == kinds
    parts = [evaluate(truth, wrong, part=(number, 2), keep="matches") for number in (2, 1)]
    joined = [warning.code for warning in probox.merge(parts).warnings]
    assert set(kinds) <= set(joined)
    assert len(set(joined)) == len(joined)


@pytest.mark.parametrize("name", ["detections", "objects", "pairs", "matched_pairs"])
def test_tables_were_not_kept(matches: Evaluation, name: str) -> None:
    with pytest.raises(InputError, match='the tables were not kept, only the matches; evaluate with keep="all"'):
        len(getattr(matches, name))


def test_sums_have_no_map() -> None:
    result = evaluate(*many_images(7, 30), keep="summary")
    assert Note("sums-kept", names="map and lrp") in result.notes
    assert list(result.summary())[:1] == ["PDQ"]
    with pytest.raises(InputError, match="mAP and LRP were not kept"):
        _ = result.average_precision


def test_without_pdq_there_is_no_curve() -> None:
    result = evaluate(*many_images(7, 30), keep="matches", measures="map")
    assert list(result.summary()) == ["mAP", "AP50", "AP75"]
    with pytest.raises(InputError, match="PDQ was not measured"):
        result.threshold_curve()


@pytest.mark.parametrize(
    ("keep", "measures", "remedy"),
    [
        ("summary", "pdq,map", "matches"),
        ("summary", "map", "matches"),
        ("matches", "pdq,nll", "all"),
        ("summary", "nll", "all"),
    ],
)
def test_measures_that_do_not_follow(keep: Any, measures: str, remedy: str) -> None:
    with pytest.raises(InputError, match=f'cannot be computed with keep={keep!r}, .* use keep="{remedy}"'):
        evaluate(*many_images(7, 30), keep=keep, measures=measures)


@pytest.mark.parametrize("keep", ["", "some", None, 3])
def test_what_cannot_be_kept(keep: Any) -> None:
    with pytest.raises(InputError, match="expected keep to be one of summary, matches, all"):
        evaluate(*many_images(7, 30), keep=keep)


def test_compact_results_are_compared_as_others_are() -> None:
    truth, found = many_images(7, 40)
    _, other = many_images(7, 40, single=True)
    given = {"a": found, "b": other.replace(covariances=other.covariances * 9)}
    whole = probox.compare({name: evaluate(truth, one) for name, one in given.items()}, replicates=30)
    compact = {name: evaluate(truth, one, keep="matches") for name, one in given.items()}
    np.testing.assert_equal(probox.compare(compact, replicates=30).to_dict(), whole.to_dict())
    with pytest.raises(InputError, match="comparing classes needs tables, which were not kept"):
        probox.compare(compact, per_class=True)
    with pytest.raises(InputError, match="a was evaluated with keep matches, b with all"):
        probox.compare({"a": compact["a"], "b": evaluate(truth, found)})
    sums = evaluate(truth, found, keep="summary", measures="pdq")
    assert probox.compare({"a": sums, "b": sums}, replicates=30).pairs[0].columns["PDQ"].difference.value == 0


@pytest.mark.parametrize("column", ["counts", "labels", "areas"])
def test_compact_results_of_other_objects_are_not_compared(column: str) -> None:
    truth, found = many_images(7, 40)
    if column == "counts":
        other = truth.take(np.arange(1, len(truth)))
    elif column == "labels":
        other = truth.replace(labels=(truth.labels + 1) % 3)
    else:
        other = truth.replace(areas=np.where(np.arange(len(truth)) == len(truth) - 1, 1.0, truth.areas))
    results = {name: evaluate(one, found, keep="matches") for name, one in (("a", truth), ("b", other))}
    words = {"counts": r"has \d+ objects in a and", "labels": "differ in labels", "areas": "differ in sizes"}
    with pytest.raises(InputError, match=words[column]):
        probox.compare(results)


# --- on disk ---


def test_the_tables_of_a_compact_result_cannot_be_loaded(matches: Evaluation, tmp_path: Path) -> None:
    matches.save(tmp_path)
    with pytest.raises(
        InputError, match=r"contains only the matches of an evaluation, not its tables; evaluate again with"
    ):
        load_results([str(tmp_path)])
    assert load_results([str(tmp_path)], tables=False)[tmp_path.name].to_bytes() == matches.to_bytes()


def test_one_kind_replaces_the_other(matches: Evaluation, tmp_path: Path) -> None:
    whole = evaluate(*many_images(7, 30))
    for result in (whole, matches, whole, matches):
        result.save(tmp_path)
        assert probox.load(tmp_path).keep == result.keep
    assert sorted(path.name for path in tmp_path.iterdir()) == [WORDS, COLUMNS]


def forged(result: Evaluation, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> bytes:
    """Return the bytes of a result that a careful forger has changed: the checksum is right."""
    with zipfile.ZipFile(io.BytesIO(result.to_bytes())) as archive:
        words = json.loads(archive.read(WORDS))
        arrays = {
            name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name != WORDS
        }
    schema = schema_of(words, "")
    change(words, arrays)
    words["digest"] = digest(canonical(words), {n: np.ascontiguousarray(a) for n, a in arrays.items()}, schema)
    file = io.BytesIO()
    write_archive(file, arrays, words={WORDS: json.dumps(words).encode()}, compressed=False)
    return file.getvalue()


def put(name: str, at: Any, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(words: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][at] = value

    return change


def say(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(words: dict[str, Any], arrays: dict[str, Any]) -> None:
        words[name] = value(words[name]) if callable(value) else value

    return change


def right_at_last(words: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Make every detection right at the last IoU threshold."""
    bit = 1 << 9
    matched, ignored = arrays["boxes.patterns"][:, :4] | bit, arrays["boxes.patterns"][:, 4:] & (0xFFFF - bit)
    arrays["boxes.patterns"] = np.concatenate([matched, ignored], axis=1).astype("<u2")


FORGERIES: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], None], str]] = {
    "a class that is none": (put("boxes.labels", 0, 77), "boxes.labels: no such class"),
    "an object's class": (put("boxes.object_labels", 0, 77), "boxes.object_labels: no such class"),
    "an outcome that is none": (put("boxes.outcomes", 0, 65_000), "boxes.outcomes: no such outcome"),
    "counts of other rows": (put("boxes.counts", 0, 99), "boxes.counts: expected as many as there are rows"),
    "fewer than none": (put("boxes.object_counts", 0, -1), "boxes.object_counts: expected as many"),
    "a score that is none": (put("boxes.scores", 0, np.nan), "boxes.scores: expected finite numbers"),
    "another outcome": (put("boxes.outcomes", slice(None), 0), "boxes.overlaps: expected one per right detection"),
    "an overlap above 1": (put("boxes.overlaps", 0, 5.0), "boxes.overlaps: expected 0 to 1"),
    "an overlap below 0": (put("boxes.overlaps", 0, -0.5), "boxes.overlaps: expected 0 to 1"),
    "objects that do not count": (put("boxes.object_sizes", slice(None), 0), "boxes.outcomes: expected no more right"),
    "too many right at a high overlap": (right_at_last, "boxes.outcomes: expected no more right detections"),
    "a sum below 0": (put("sums.pPDQ", 0, -0.5), "sums.pPDQ: expected finite numbers, at least 0"),
    "a sum that is none": (put("sums.label", 0, np.inf), "sums.label: expected finite numbers, at least 0"),
    "other counts": (put("sums.TP", 0, 1000), "totals: expected as many TP as in all images"),
    "ids that fall": (put("images.id", -1, -5), "dataset: image ids must be distinct and ascending"),
    "no totals": (say("totals", {}), "totals: expected sums and counts"),
    "a sum of text": (
        say("totals", lambda totals: totals | {"overall": [[[0.5]] * 5 + [["x"]], [0] * 5]}), "totals: expected sums"
    ),
    "fewer classes": (say("totals", lambda totals: totals | {"classes": []}), "totals: expected sums and counts"),
    "a measure that is not kept": (say("measures", ["pdq", "nll"]), "measures: expected some of pdq, map, lrp"),
    "a part that is none": (say("part", {"numbers": [3]}), "part: expected inputs, numbers, of, whole"),
    "parts beyond the last": (
        say("part", {"numbers": [3], "of": 2, "whole": "0" * 64, "inputs": "0" * 64}),
        "part: expected `numbers` from 1 to 2",
    ),
    "half a warning": (say("warnings", ["kind"]), "warnings: expected notes with code, count and fields"),
    "a data set of other words": (say("dataset", {"mine": 1}), "dataset: expected category_ids (whole numbers)"),
    "a source that is a number": (
        say("dataset", lambda dataset: dataset | {"source": 5}), "dataset: expected category_ids (whole numbers)"
    ),
    "an image too wide": (put("images.width", 0, 2**31 - 1), "dataset: expected a size of 1 to 1,000,000 pixels"),
    "a long class name": (
        say("classes", lambda classes: ["c" * 1025, *classes[1:]]), "class 0: expected a class name of at most 1,024"
    ),
    "half of a character": (
        say("classes", lambda classes: ["\udfff", *classes[1:]]), "class 0: expected a class name in Unicode text"
    ),
    "a note among warnings": (
        say("warnings", [{"code": "keypoints-not-read", "count": None, "fields": {}}]), "warnings: expected codes of"
    ),
    "types of other columns": (say("types", {"boxes": {"scores": "<f4"}}), "types: expected the types of scores"),
    "types of another group": (say("types", {"scores": "<f4"}), "types: expected some of boxes, masks"),
    "no types": (say("types", {}), "the checksum does not match"),
    "kept in another way": (say("keep", "nothing"), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_results_are_refused(matches: Evaluation, name: str) -> None:
    change, message = FORGERIES[name]
    with pytest.raises(InputError) as raised:
        Evaluation.from_bytes(forged(matches, change))
    assert message in str(raised.value)


@pytest.mark.parametrize("keep", [[], {}, None, 3, "everything"])
def test_whatever_stands_for_what_is_kept(matches: Evaluation, keep: Any, tmp_path: Path) -> None:
    data = forged(matches, lambda words, arrays: words.update(keep=keep))
    matches.save(tmp_path)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (tmp_path / WORDS).write_bytes(archive.read(WORDS))
    for load, place in ((probox.from_bytes, data), (probox.load, tmp_path), (Evaluation.load, tmp_path)):
        with pytest.raises(InputError):
            load(place)  # type: ignore[operator]


def test_a_forger_who_changes_nothing_is_none(matches: Evaluation) -> None:
    assert probox.from_bytes(forged(matches, lambda words, arrays: None)).to_bytes() == matches.to_bytes()


# --- sums without rounding ---

FLOATS = st.lists(st.floats(-1e300, 1e300, allow_subnormal=True), max_size=40)


@given(FLOATS)
def test_nothing_is_rounded(values: list[float]) -> None:
    total = exact_sum(values)
    assert sum(map(Fraction, total), Fraction(0)) == sum(map(Fraction, values), Fraction(0))
    assert (total[0] if total else 0.0) == math.fsum(total) == math.fsum(values)


@given(FLOATS, st.integers(0, 40), st.randoms())
def test_parts_in_any_order_add_up_to_the_whole(values: list[float], cut: int, random: object) -> None:
    mixed = values.copy()
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert exact_sum([*exact_sum(mixed[:cut]), *exact_sum(mixed[cut:])]) == exact_sum(values)


def test_many_numbers_take_few_floats() -> None:
    assert len(exact_sum([0.1 * number for number in range(300_000)])) <= 3

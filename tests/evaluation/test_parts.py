"""Evaluation in parts: shared out, and joined in any order to the bits of one machine; what is foreign is named."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.amounts import others_slow, some_of
from tests.evaluation.equal import assert_equal
from tests.evaluation.worlds import many_images
from tests.strategies import random_world, with_box_masks

import probox
from probox import Detections, Evaluation, GroundTruth, InputError, evaluate, merge
from probox.evaluation.parts import images_of_part, parse_part
from probox.measures.registry import MEASURES
from probox.notes import Note
from probox.tables.table import LazyArray

KEEP = ("all", "matches", "summary")

# --- who gets what ---


@pytest.mark.parametrize(("count", "of"), [(0, 1), (0, 3), (1, 1), (5, 5), (5, 9), (7, 3), (1000, 64)])
def test_every_image_is_in_one_part(count: int, of: int) -> None:
    ids = np.arange(count) * 3 - 7
    parts = [images_of_part(ids, number, of) for number in range(1, of + 1)]
    assert np.concatenate(parts).tolist() == ids.tolist()
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(
    "part", ["0/3", "4/3", "3", "1/0", "-1/3", "a/b", "1/2/3", "", (1,), (0, 2), (1.5, 2), True, 3, None]
)
def test_what_is_no_part(part: Any) -> None:
    with pytest.raises(InputError, match="expected a part such as 3/16"):
        parse_part(part)


def test_parts_may_be_given_as_numbers() -> None:
    assert parse_part(" 3 / 16 ") == parse_part((np.int64(3), 16)) == (3, 16)


# --- the same bits ---


def test_every_measure_of_64_parts_in_any_order() -> None:
    """All numbers of all measures, of all groups; and the tables."""
    truth, found = many_images(5)
    found = with_box_masks(truth, found)
    whole = evaluate(truth, found, measures="all")
    order = np.random.default_rng(0).permutation(64) + 1
    parts = [evaluate(truth, found, part=f"{number}/64", measures="all") for number in order]
    joined = merge(parts)
    assert isinstance(joined, Evaluation)
    assert_equal(joined, whole)
    assert set(joined.measures) == {measure.name for measure in MEASURES}
    np.testing.assert_equal(dict(joined.per_class()), dict(whole.per_class()))
    np.testing.assert_equal(dict(joined.per_size()), dict(whole.per_size()))
    np.testing.assert_equal(dict(joined.per_image().columns), dict(whole.per_image().columns))
    assert (joined.notes, joined.inputs, joined.part) == (whole.notes, whole.inputs, None)


@pytest.mark.parametrize("keep", KEEP)
@pytest.mark.parametrize("preset", others_slow(["reference", "paper", "challenge"]))
@pytest.mark.parametrize("threshold", [None, 0.35])
def test_whatever_is_kept_has_the_same_numbers(keep: Any, preset: str, threshold: float | None) -> None:
    truth, found = many_images(8)
    given: dict[str, Any] = {"preset": preset, "label_threshold": threshold}
    whole = evaluate(truth, found, **given)
    parts = [evaluate(truth, found, part=(number, 7), keep=keep, **given) for number in (3, 7, 1, 2, 6, 4, 5)]
    joined = merge(parts)
    summary = joined.summary()
    np.testing.assert_equal(summary, {key: whole.summary()[key] for key in summary})
    assert ("mAP" in summary) == (keep != "summary")
    keys = {"objects", "detections", *summary}
    for groups in ("per_class", "per_size"):
        mine, theirs = getattr(joined, groups)(), getattr(whole, groups)()
        for name in theirs:
            np.testing.assert_equal(
                {key: mine[name][key] for key in keys if key in mine[name]},
                {key: theirs[name][key] for key in keys if key in theirs[name]},
            )
    images = joined.per_image().columns
    for key in (
        "image_id",
        "objects",
        "detections",
        "PDQ",
        "sum_pPDQ",
        *(("mAP", "moLRP") if keep != "summary" else ()),
    ):
        np.testing.assert_array_equal(images[key], whole.per_image().columns[key], err_msg=key)
    assert joined.counts == whole.counts
    assert joined.input_notes[: len(whole.input_notes)] == whole.input_notes


@pytest.mark.parametrize("keep", KEEP)
def test_small_worlds(keep: Any) -> None:
    for seed in range(some_of(40)):
        truth, found = random_world(seed)
        whole = evaluate(truth, found)
        parts = [evaluate(truth, found, part=(number, 3), keep=keep) for number in (2, 3, 1)]
        joined = merge([(parts[0] + parts[2]), parts[1]])
        np.testing.assert_equal(joined.summary(), {key: whole.summary()[key] for key in joined.summary()})
        np.testing.assert_equal(joined.pdq, whole.pdq)


def test_intervals_are_the_same() -> None:
    truth, found = many_images(2)
    whole = evaluate(truth, found)
    joined = merge([evaluate(truth, found, part=(number, 5), keep="matches") for number in (5, 1, 4, 2, 3)])
    np.testing.assert_equal(joined.intervals(replicates=40).to_dict(), whole.intervals(replicates=40).to_dict())


def test_joins_may_be_joined() -> None:
    truth, found = many_images(3)
    parts = [evaluate(truth, found, part=(number, 6), keep="matches") for number in range(1, 7)]
    some = merge([parts[4], parts[0]], complete=False)
    assert str(some.part) == "2 of 6 parts"
    assert some.part is not None
    assert some.part.missing == (2, 3, 4, 6)
    rest = merge([parts[1], parts[2], parts[3], parts[5]], complete=False)
    assert merge([rest, some]).to_bytes() == merge(parts).to_bytes()


@pytest.mark.parametrize("keep", KEEP)
def test_images_may_be_chosen(keep: Any) -> None:
    truth, found = many_images(4)
    ids = truth.image_ids[::3]
    whole = evaluate(truth, found, image_ids=ids)
    joined = merge([evaluate(truth, found, part=(n, 4), image_ids=ids, keep=keep) for n in (2, 1, 4, 3)])
    np.testing.assert_equal(joined.summary(), {key: whole.summary()[key] for key in joined.summary()})
    assert joined.input_notes[: len(whole.input_notes)] == whole.input_notes
    assert any(note.startswith("restricted to") for note in map(str, joined.input_notes))


def test_more_parts_than_images() -> None:
    truth, found = random_world(3)
    parts = [evaluate(truth, found, part=(number, 20)) for number in range(20, 0, -1)]
    joined = merge(parts)
    assert isinstance(joined, Evaluation)
    assert_equal(joined, evaluate(truth, found))


def test_results_that_are_no_parts_are_joined_too() -> None:
    truth, found = many_images(6)
    ids = truth.image_ids
    halves = [evaluate(truth, found, image_ids=some) for some in (ids[30:], ids[:30])]
    joined = merge(halves)
    assert isinstance(joined, Evaluation)
    assert_equal(joined, evaluate(truth, found))


def test_what_is_counted_in_all_of_a_file_is_counted_once() -> None:
    truth, found = many_images(1)
    found = dataclasses.replace(found, notes=(Note("repaired-covariances", 12),))
    joined = merge([evaluate(truth, found, part=(number, 4), label_threshold=0.3) for number in (4, 2, 3, 1)])
    assert joined.input_notes == evaluate(truth, found, label_threshold=0.3).input_notes
    assert any(note.code == "unknown-images" for note in joined.input_notes)


@pytest.mark.parametrize("keep", KEEP)
def test_a_part_says_that_it_is_one(keep: Any) -> None:
    truth, found = many_images(1)
    assert "convention: reference; scored against boxes; part 2 of 3" in str(
        evaluate(truth, found, part="2/3", keep=keep)
    )
    assert "; part" not in str(evaluate(truth, found, keep=keep))


def test_a_single_part_is_the_whole() -> None:
    truth, found = many_images(1)
    assert merge([evaluate(truth, found, part="1/1")]).part is None


# --- what does not belong ---


def some_parts(count: int = 4, **given: Any) -> list[Any]:
    truth, found = many_images(9, 20)
    return [evaluate(truth, found, part=(number, count), **given) for number in range(1, count + 1)]


def test_missing_parts_are_named() -> None:
    parts = some_parts()
    with pytest.raises(InputError, match=r'^part 3 of 4 is missing; evaluate it with part="3/4"'):
        merge([parts[0], parts[1], parts[3]])
    with pytest.raises(InputError, match="parts 1, 2, 4 of 4 are missing"):
        merge([parts[2]])


def test_parts_that_are_there_twice_are_named(tmp_path: Path) -> None:
    parts = some_parts()
    parts[1].save(tmp_path / "b")
    parts[1].save(tmp_path / "c")
    with pytest.raises(InputError) as raised:
        merge([parts[0], tmp_path / "b", tmp_path / "c"])
    assert (
        str(raised.value) == f"{tmp_path / 'c'}: duplicate of part 2 of 4 (also {tmp_path / 'b'}); give each part once"
    )


def changed_truth(truth: GroundTruth) -> GroundTruth:
    boxes = truth.boxes.copy()
    boxes[0, 2] += 1
    return truth.replace(boxes=boxes)


def changed_found(found: Detections) -> Detections:
    probs = np.array(found.label_probs)
    probs[-1, 0] = 0.875
    return found.replace(label_probs=probs)


def test_foreign_parts_are_named() -> None:
    truth, found = many_images(9, 20)
    first = evaluate(truth, found, part="1/2")
    others = {
        "has another number of parts than part 1 of 2": evaluate(truth, found, part="2/3"),
        "was computed from other ground truth or detections than": evaluate(changed_truth(truth), found, part="2/2"),
        "other ground truth or detections": evaluate(truth, changed_found(found), part="2/2"),
        "is a part of other images": evaluate(truth, found, part="2/2", image_ids=truth.image_ids[1:]),
        "was evaluated by another convention than": evaluate(truth, found, part="2/2", preset="paper"),
        "was evaluated for other metrics than": evaluate(truth, found, part="2/2", measures="pdq"),
        "was evaluated with another keep than": evaluate(truth, found, part="2/2", keep="matches"),
        "by another version of probox": dataclasses.replace(evaluate(truth, found, part="2/2"), version="0"),
        "is a complete result, but": evaluate(truth, found, image_ids=truth.image_ids[10:]),
    }
    for message, other in others.items():
        for both in ([first, other], [other, first]):
            with pytest.raises(InputError, match=message.split(" than")[0]):
                merge(both)


def test_the_repair_of_covariances_tells_parts_apart() -> None:
    truth, found = many_images(9, 20)
    with pytest.raises(InputError, match="other ground truth or detections"):
        merge([evaluate(truth, found, part="1/2"), evaluate(truth, found, part="2/2", repair=True)])


@pytest.mark.parametrize("keep", KEEP)
def test_parts_add_up_to_their_whole_alone(keep: Any) -> None:
    truth, found = many_images(9, 20)
    one, other = (evaluate(truth, found, part=part, keep=keep) for part in ("1/2", "2/2"))
    assert (one + other).part is None
    foreign = evaluate(truth, changed_found(found), part="2/2", keep=keep)
    no_part = evaluate(truth, found, keep=keep, image_ids=other.dataset.image_ids)
    for stranger in (foreign, no_part):
        for a, b in ((one, stranger), (stranger, one)):
            with pytest.raises(InputError):
                a + b


def test_a_part_without_some_detections_is_none() -> None:
    one, other = some_parts(2)
    less = other.keeping(np.arange(len(other.detections)) % 2 == 0)
    with pytest.raises(InputError, match="is a complete result"):
        merge([one, less])
    joined = merge([one.at_threshold(0.3), other.at_threshold(0.3)])
    assert_equal(joined, merge([one, other]).at_threshold(0.3))


def test_every_pixel_of_a_heatmap_tells_parts_apart() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48), 2: (64, 48)}, [1, 2], [[10, 20, 50, 40]] * 2, [0, 0])

    def found(pixel: float, *, lazy: bool) -> Detections:
        heatmap = np.zeros((48, 64))
        heatmap[20:40, 10:50] = pixel  # not at the edges, which are all that a printed array shows
        return Detections(
            classes=["cup"],
            image_ids=[1, 2],
            boxes=[[10, 20, 50, 40]] * 2,
            label_probs=[[0.9]] * 2,
            heatmaps=[Lazy(heatmap) if lazy else heatmap, None],
        )

    for lazy in (False, True):
        with pytest.raises(InputError, match="other ground truth or detections"):
            merge(
                [evaluate(truth, found(0.4, lazy=lazy), part="1/2"), evaluate(truth, found(0.8, lazy=lazy), part="2/2")]
            )
    assert merge([evaluate(truth, found(0.4, lazy=part == "1/2"), part=part) for part in ("1/2", "2/2")]).part is None


class Lazy(LazyArray):
    """An array as heatmaps in files are: made when it is used."""

    def __init__(self, values: Any) -> None:
        self._values = values
        self.shape, self.dtype, self.size, self.nbytes = values.shape, values.dtype, values.size, values.nbytes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._values.astype(dtype) if dtype is not None else self._values

    def __repr__(self) -> str:
        return "the third map of its file"

    def min(self) -> Any:
        return self._values.min()

    def max(self) -> Any:
        return self._values.max()


def test_an_image_in_two_results_is_named() -> None:
    truth, found = many_images(9, 20)
    ids = truth.image_ids
    one, other = (evaluate(truth, found, image_ids=some) for some in (ids[:11], ids[10:]))
    with pytest.raises(InputError, match=f"^result 2: image {ids[10]}: is in result 1 too; evaluate each image once"):
        merge([one, other])


def test_parts_that_lie_about_what_they_hold() -> None:
    """A record that does not belong to its images is noticed when all are there."""
    parts = some_parts(2)
    less = dataclasses.replace(parts[1].select_images(parts[1].dataset.image_ids[1:]), part=parts[1].part)
    with pytest.raises(InputError, match="the parts do not contain all images of the evaluation"):
        merge([parts[0], less])


@pytest.mark.parametrize("given", [[], [3], ["no such folder"], [None]])
def test_what_cannot_be_joined(given: list[Any]) -> None:
    with pytest.raises(InputError):
        merge(given)


# --- bytes ---


@pytest.mark.parametrize("keep", KEEP)
def test_bytes_and_folders_hold_everything(keep: Any, tmp_path: Path) -> None:
    part = some_parts(keep=keep)[2]
    data = part.to_bytes()
    part.save(tmp_path / "kept")
    for again in (probox.from_bytes(data), probox.load(tmp_path / "kept"), pickle.loads(pickle.dumps(part))):
        assert type(again) is type(part)
        assert again.part == part.part
        assert again.to_bytes() == data
        np.testing.assert_equal(again.summary(), part.summary())
    assert type(part).from_bytes(data).part == part.part


@pytest.mark.parametrize("keep", KEEP)
def test_damaged_bytes_are_refused(keep: Any) -> None:
    data = some_parts(keep=keep)[0].to_bytes()
    rng = np.random.default_rng(0)
    for damaged in (b"", b"PK", data[:-1], data[: len(data) // 2], data[1:]):
        with pytest.raises(InputError):
            probox.from_bytes(damaged)
    changed = 0
    for at in rng.integers(0, len(data), 60):
        other = bytearray(data)
        other[at] ^= 1 << int(rng.integers(8))
        try:
            same = probox.from_bytes(bytes(other)).to_bytes() == data  # in parts of the archive that nobody reads
        except InputError:
            changed += 1
        else:
            assert same
    assert changed > 30


def test_bytes_that_are_none() -> None:
    with pytest.raises(InputError, match="expected bytes, but got str"):
        probox.from_bytes("text")  # type: ignore[arg-type]

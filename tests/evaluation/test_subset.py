"""Some images of a truth or an evaluation."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.equal import assert_equal
from tests.evaluation.input_checks.test_input_checks import world

from probox import Convention, Evaluation, InputError, evaluate, read_truth, write_parquet
from probox.formats import read_detections
from probox.notes import Note, as_notes


def assert_same(one: Evaluation, other: Evaluation) -> None:
    assert_equal(one, other)
    assert [str(warning) for warning in one.warnings] == [str(warning) for warning in other.warnings]


@pytest.mark.parametrize("measures", [("pdq", "map", "lrp"), ("map",)])
@pytest.mark.parametrize("case", ["mixed", "bbox", "pbox_full", "probseg"])
def test_on_is_evaluating_anew(golden_dir: Path, case: str, measures: tuple[str, ...]) -> None:
    truth = read_truth(golden_dir / case / "ground_truth.json")
    found = read_detections(golden_dir / case / "detections.json", truth)
    whole = evaluate(truth, found, measures=measures)
    for ids in (truth.image_ids[::3], truth.image_ids[:1], [], truth.image_ids):
        part = truth.select_images(ids)
        anew = evaluate(part, found.select(np.isin(found.image_ids, part.image_ids)), measures=measures)
        assert_same(whole.select_images(ids), anew)


def test_on_takes_ids_in_any_order_and_once(golden_dir: Path) -> None:
    truth = read_truth(golden_dir / "mixed" / "ground_truth.json")
    result = evaluate(truth, read_detections(golden_dir / "mixed" / "detections.json", truth))
    assert_same(result.select_images([114, 107, 114]), result.select_images(np.array([107, 114])))


def test_notes_are_those_of_the_part() -> None:
    truth, found = world()
    seen = truth.image_ids[:30]
    some = dataclasses.replace(found.select(np.isin(found.image_ids, seen)), notes=("3 rows were left out",))
    whole = evaluate(truth, some, measures=("map",))
    assert [warning.code for warning in whole.warnings] == ["images-without-detections"]
    part = whole.select_images(seen)
    assert part.warnings == ()
    assert part.notes == (Note("text", text="3 rows were left out"), Note("restricted", 30, total=60))
    assert whole.select_images(truth.image_ids).notes == whole.notes
    assert part.select_images(seen[:3]).notes[-1] == Note("restricted", 3, total=60)
    assert (whole.select_images(seen[:3]) + whole.select_images(seen[3:30])).notes == as_notes(["3 rows were left out"])


def test_what_is_counted_by_image_is_not_repeated_of_a_part() -> None:
    truth, found = world()
    whole = evaluate(truth, found, convention=Convention(label_threshold=0.7))
    assert any("label threshold" in note for note in map(str, whole.notes))
    assert not any("label threshold" in note for note in map(str, whole.select_images(truth.image_ids[:3]).notes))


def test_a_label_threshold_that_leaves_out_nothing_is_not_noted() -> None:
    truth, found = world()
    assert evaluate(truth, found, convention=Convention(label_threshold=0.5)).notes == ()
    whole = evaluate(truth, found)
    assert whole.at_threshold(0.5).notes == ()
    assert whole.at_threshold(0.7).at_threshold(0.7).notes == whole.at_threshold(0.7).notes != ()


def test_unknown_images_are_named() -> None:
    truth, found = world()
    for choose in (truth.select_images, evaluate(truth, found, measures=("map",)).select_images):
        with pytest.raises(InputError, match=r"image 11: unknown image \(and 1 more.*choose among its 60"):
            choose([10, 11, 12])
        with pytest.raises(InputError, match="image ids"):
            choose(["a"])
        with pytest.raises(InputError, match="image ids"):
            choose([[10]])


def test_parquet_of_some_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from probox.formats.parquet import writing as parquet_writing

    monkeypatch.setattr(parquet_writing, "GROUP_BYTES", 2000)
    truth, found = world()
    write_parquet(tmp_path / "found.parquet", found)
    write_parquet(tmp_path / "truth.parquet", truth)
    for ids in (truth.image_ids[::4], truth.image_ids[-3:], truth.image_ids[:1], []):
        anew = evaluate(truth.select_images(ids), found.select(np.isin(found.image_ids, ids)))
        for there in (truth, tmp_path / "truth.parquet"):
            result = evaluate(there, tmp_path / "found.parquet", image_ids=ids)
            assert_same(result, anew.without_labels())
            assert result.notes == anew.notes
    with pytest.raises(InputError, match="image 11: unknown image"):
        evaluate(truth, tmp_path / "found.parquet", image_ids=[10, 11])

"""The protocol of LVIS: numbers of the lvis package 0.5.3, the plain definition, and each rule by hand.

`lvis_numbers.json` holds what `LVISEval(..., "bbox").get_results()` returns for `lvis_world` of each seed. The package
needs OpenCV and an old NumPy, so it is not a dependency of the tests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.measures.boxes.conftest import found_of, truth_of
from tests.measures.boxes.lvis_world import MOST, lvis_world

import probox
from probox import Convention, Dataset, Detections, GroundTruth, InputError, evaluate, read_detections, read_truth
from probox.analysis.threshold_sweep import find_box_rematches
from probox.evaluation.storage import load
from probox.explorer.payload import index_payload
from probox.measures.boxes import average_precision, box_definition, lrp, match_boxes
from probox.measures.boxes.matching import BoxRules
from probox.measures.boxes.mean_ap import MEAN_AP, coco_labels
from probox.notes import Note

NUMBERS: dict[str, dict[str, float]] = json.loads(Path(__file__).with_name("lvis_numbers.json").read_text())


def files_of(seed: int, folder: Path, **sizes: int) -> tuple[Path, Path]:
    files = folder / f"truth{seed}.json", folder / f"results{seed}.json"
    for file, content in zip(files, lvis_world(seed, **sizes), strict=True):
        file.write_text(json.dumps(content))
    return files


def tables_of(seed: int, folder: Path, **sizes: int) -> tuple[GroundTruth, Detections]:
    files = files_of(seed, folder, **sizes)
    truth = read_truth(files[0])
    return truth, read_detections(files[1], truth)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[GroundTruth, Detections]:
    return tables_of(0, tmp_path_factory.mktemp("lvis"))


def lvis_truth(boxes: Any, labels: Any = None, images: Any = None, **columns: Any) -> GroundTruth:
    """Return ground truth of cups, dogs and televisions in images 1 and 2."""
    truth = truth_of(boxes, labels, images)
    return truth.replace(dataset=truth.dataset.replace(rules="lvis", **columns))


CUP = [0, 0, 100, 100]
AWAY = [300, 300, 400, 400]


@pytest.mark.parametrize("seed", sorted(NUMBERS))
def test_numbers_are_those_of_the_lvis_package(seed: str, tmp_path: Path) -> None:
    result = evaluate(*files_of(int(seed), tmp_path), measures="map")
    assert result.coco().keys() == NUMBERS[seed].keys() == coco_labels(result.box_rules).keys()
    np.testing.assert_allclose(list(result.coco().values()), [NUMBERS[seed][k] for k in result.coco()], atol=1e-12)
    assert {key: result.summary()[key] for key in ("APr", "APc", "APf")} == result.average_precision.by_frequency()
    assert result.comparability == ()
    assert (
        max(np.bincount(read_detections(tmp_path / f"results{seed}.json", read_truth(result.inputs[0])).image_ids))
        == MOST
    )


@pytest.mark.parametrize("seed", range(4, 10))
@pytest.mark.parametrize("limits", [None, (3, 17)])
def test_the_definition_has_the_numbers_of_the_kernel(seed: int, limits: Any, tmp_path: Path) -> None:
    truth, found = tables_of(seed, tmp_path, images=4, classes=4, most=40)
    convention = Convention(max_detections=limits)
    expected = box_definition.coco_numbers(truth, found, BoxRules.of(convention, truth.dataset))
    own = average_precision(truth, found, convention=convention).summary()
    assert own.keys() == expected.keys()
    np.testing.assert_allclose(list(own.values()), list(expected.values()), atol=1e-12)
    result = evaluate(truth, found, convention=convention, measures="map,lrp")
    np.testing.assert_array_equal(list(result.coco().values()), list(own.values()))
    if limits is None:
        assert result.lrp.summary() == lrp(truth, found).summary()


def test_unchecked_classes_are_excluded_from_every_metric() -> None:
    truth = lvis_truth([CUP], negatives=[[1], []])
    found = found_of([CUP, AWAY, AWAY, AWAY], [0.9, 0.8, 0.7, 0.6], [0, 1, 2, 0], [1, 1, 1, 2])
    result = evaluate(truth, found, measures="pdq,map,lrp")  # a cup; a negative dog; two that were not checked
    assert result.counts["detections"] == 2
    assert result.summary()["FP"] == 2  # of PDQ, for which labels have probability 0
    assert Note("unchecked-classes", 2) in result.notes
    assert match_boxes(truth, found).left_out == 2
    assert len(match_boxes(truth, found)) == 2
    assert match_boxes(truth, found).numbers.tolist() == [0, 1]


def test_unmatched_detections_of_partly_annotated_classes_are_ignored() -> None:
    found = found_of([AWAY, CUP], [0.9, 0.8])
    for listed, expected in (((), 0.5), ((1,), 0.5), ((0,), 1.0)):
        result = evaluate(lvis_truth([CUP], not_exhaustive=[listed, [0]]), found)
        np.testing.assert_allclose(result.summary()["mAP"], expected, atol=1e-12)
        assert result.summary()["moLRP"] == (0.0 if expected == 1.0 else 0.5)
        assert result.summary()["FP"] == 2  # of PDQ


def test_matched_detections_of_partly_annotated_classes_count() -> None:
    truth = lvis_truth([CUP], not_exhaustive=[[0], []])
    matches = match_boxes(truth, found_of([CUP, CUP], [0.9, 0.8]))
    assert (matches.matched[:, 0] > 0).tolist() == [True, False]
    assert (matches.ignored[:, 0] > 0).tolist() == [False, True]


def test_the_limit_is_of_all_classes_of_an_image() -> None:
    truth = lvis_truth([CUP, AWAY], [0, 1])
    found = found_of([CUP, AWAY, AWAY, AWAY], [0.3, 0.9, 0.8, 0.7], [0, 1, 1, 1])
    for limits, recall in (((1, 3), 0.5), ((1, 4), 1.0), (None, 1.0)):
        result = evaluate(truth, found, max_detections=limits, measures="map")
        assert result.coco()[f"AR_{(limits or (300,))[-1]}"] == recall
        assert [note for note in result.notes if note.code == "surplus-detections"] == (
            [Note("surplus-detections", 1, most=3)] if recall == 0.5 else []
        )


def test_ties_at_the_limit_follow_the_table() -> None:
    truth = lvis_truth([CUP])
    for boxes, expected in (([CUP, AWAY], 1.0), ([AWAY, CUP], 0.0)):
        assert evaluate(truth, found_of(boxes), max_detections=[1]).coco()["AR_1"] == expected


def test_deviations_are_from_lvis() -> None:
    truth, found = lvis_truth([CUP]), found_of([CUP])
    for limits, expected in ((None, []), ((300,), []), ((1, 10, 100), ["max detections 1/10/100 instead of 300"])):
        result = evaluate(truth, found, max_detections=limits, measures="map")
        assert [str(note) for note in result.comparability] == expected
        assert result.box_rules.max_detections == (limits or (300,))
    assert evaluate(truth_of([CUP]), found, measures="map").box_rules.max_detections == (1, 10, 100)


def test_means_by_frequency() -> None:
    found = found_of([CUP, AWAY], labels=[0, 1])
    truth = lvis_truth([CUP, CUP], [0, 1], frequencies=["r", "f", "f"])
    own = evaluate(truth, found, measures="map").summary()
    np.testing.assert_allclose([own["APr"], own["APc"], own["APf"], own["mAP"]], [1.0, np.nan, 0.0, 0.5], atol=1e-12)
    for lacking in (lvis_truth([CUP]), truth_of([CUP])):
        assert not {"APr", "APc", "APf"} & evaluate(lacking, found).summary().keys()
        assert "APr" not in coco_labels(evaluate(lacking, found).box_rules)


def test_resampling_has_them(pair: tuple[GroundTruth, Detections]) -> None:
    result = evaluate(*pair, measures="map")
    assert MEAN_AP.resampled is not None
    once = MEAN_AP.resampled(result, np.ones((1, len(pair[0].image_ids)), np.int64))
    assert list(once) == list(result.summary())
    np.testing.assert_allclose([value[0] for value in once.values()], list(result.summary().values()), atol=1e-12)
    assert result.intervals(replicates=20)["APf"].low < result.summary()["APf"]


@pytest.mark.parametrize("keep", ["all", "matches"])
def test_parts_merge_to_the_whole(keep: Any, pair: tuple[GroundTruth, Detections], tmp_path: Path) -> None:
    whole = evaluate(*pair, measures="map,lrp")
    for part in range(1, 4):
        evaluate(*pair, part=(part, 3), keep=keep, measures="map,lrp").save(tmp_path / str(part))
    merged = probox.merge([tmp_path / "3", tmp_path / "1", tmp_path / "2"])
    assert (merged.coco(), merged.summary(), merged.notes) == (whole.coco(), whole.summary(), whole.notes)
    whole.save(tmp_path / "whole")
    again = load(tmp_path / "whole")
    assert (again.coco(), again.dataset.not_exhaustive) == (whole.coco(), pair[0].dataset.not_exhaustive)
    assert again.dataset.negatives == pair[0].dataset.negatives
    evaluator = probox.Evaluator(pair[0].classes, measures="map,lrp")
    for image in pair[0].image_ids[::-1]:
        evaluator.update(pair[0].select_images([image]), pair[1].select(pair[1].image_ids == image))
    assert evaluator.result().coco() == whole.coco()


def test_files_of_columns_have_the_lists(pair: tuple[GroundTruth, Detections], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    places = tmp_path / "truth", tmp_path / "d.parquet"
    probox.write_parquet(places[0], pair[0], shards=2)
    probox.write_parquet(places[1], pair[1])
    again = read_truth(places[0]).dataset
    for name in ("rules", "negatives", "not_exhaustive", "frequencies"):
        assert getattr(again, name) == getattr(pair[0].dataset, name)
    words: dict[str, Any] = {"measures": "map,lrp", "label_threshold": 0.3}
    result, expected = evaluate(*places, **words), evaluate(*pair, **words)
    assert result.coco() == expected.coco()
    counted = {note for note in expected.notes if note.code in ("below-threshold", "unchecked-classes")}
    assert len(counted) == 2
    assert counted < {*evaluate(*places, keep="matches", **words).notes}


def test_thresholds_and_images_afterwards(pair: tuple[GroundTruth, Detections]) -> None:
    whole = evaluate(*pair)
    cut = evaluate(*pair, label_threshold=0.4)
    assert whole.at_threshold(0.4).summary() == cut.summary()
    ids = pair[0].image_ids[2:7]
    some = evaluate(pair[0].select_images(ids), pair[1].select(np.isin(pair[1].image_ids, ids)))
    assert whole.select_images(ids).summary() == some.summary()
    curves = probox.evaluate(*pair, measures="map,lrp")
    assert curves.at_threshold(0.4).coco() == evaluate(*pair, measures="map,lrp", label_threshold=0.4).coco()


def test_diagnosis_and_page_of_lvis(pair: tuple[GroundTruth, Detections], tmp_path: Path) -> None:
    result = evaluate(*pair)
    assert "PDQ" in str(probox.diagnose(result))
    (ignored,) = [note for note in evaluate(*pair, measures="d-ece").notes if "not-calibrated" in note.code]
    assert (ignored.code, ignored.count) == ("not-exhaustive-not-calibrated", 124)
    index = index_payload({"one": result}, [""] * 12, 50, [""] * 12)
    assert index["results"][0]["convention"]["max_detections"] == [300]
    (both,) = probox.compare({"one": result, "other": evaluate(*pair, fixed_variance=4)}, replicates=20).pairs
    assert both.columns["APr"].second.value == result.summary()["APr"]


def test_matches_above_a_threshold_are_ignored_alike() -> None:
    truth = lvis_truth([CUP], not_exhaustive=[[0], []]).select_images([1])
    probs = [[0.3, 0, 0], [0.6, 0, 0]]  # the first is below a label threshold of 0.5, but precedes by its score
    found = found_of([CUP, [0, 0, 100, 60]], [0.9, 0.8]).replace(label_probs=probs)
    changes = find_box_rematches(evaluate(truth, found))
    assert changes is not None
    assert changes.detection.tolist() == [1]
    assert changes.matched[0, 0] > 0  # at an IoU of 0.5, and ignored above 0.6
    assert (changes.matched | changes.ignored)[0, 0] == 2**10 - 1
    assert (changes.matched & changes.ignored)[0, 0] == 0


BAD: list[tuple[dict[str, Any], str]] = [
    ({"rules": "coco", "negatives": [[], []]}, "do not fit the rules coco; give rules"),
    ({"rules": "coco", "frequencies": ["r", "c"]}, "do not fit the rules coco; give rules"),
    ({"negatives": [[0]]}, "negatives of each image, but got 1 for 2 images"),
    ({"not_exhaustive": [[0], [2]]}, r"not_exhaustive to be classes below 2, but got \(2,\)"),
    ({"negatives": [[-1], []]}, r"negatives to be classes below 2, but got \(-1,\)"),
    ({"negatives": [0, 1]}, "a list of class indices for each image"),
    ({"negatives": [[0.5], []]}, "a list of class indices for each image"),
    ({"frequencies": ["r"]}, "one of r, c, f for each class"),
    ({"frequencies": ["r", "x"]}, "one of r, c, f for each class"),
]


@pytest.mark.parametrize(("columns", "message"), BAD, ids=str)
def test_bad_columns(columns: dict[str, Any], message: str) -> None:
    sizes: dict[str, Any] = {"image_ids": [1, 2], "widths": [9, 9], "heights": [9, 9]}
    with pytest.raises(InputError, match=message):
        Dataset(classes=["cup", "dog"], **sizes, **{"rules": "lvis", **columns})


def test_evaluators_take_one_kind_of_ground_truth() -> None:
    evaluator = probox.Evaluator(truth_of([CUP]).classes)
    evaluator.update(lvis_truth([CUP]).select_images([1]), found_of([CUP]))
    with pytest.raises(InputError, match="expected ground truth of one kind"):
        evaluator.update(truth_of([CUP]).select_images([2]), found_of([CUP]))

"""Tables of results for people: who matched whom in words, groups with AP and LRP, and what notebooks show."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from tests.amounts import examples
from tests.evaluation.equal import assert_equal
from tests.measures.boxes.conftest import coco_evaluation
from tests.measures.boxes.test_properties import tables

import probox
from probox import Detections, Evaluation, Evaluator, GroundTruth, InputError
from probox.demo import Demo
from probox.evaluation.group_tables import GroupTable
from probox.tables.results import DetectionTable, Verdict

NAME = '<img src=x onerror=alert(1)> "a", b'


@pytest.fixture(scope="module")
def result(results: dict[str, Evaluation]) -> Evaluation:
    return results["probabilistic"]


# --- rows ---


def test_detections_say_who_they_are(result: Evaluation) -> None:
    table, rows = result.detections, result.detections.flat()
    assert rows["row"].tolist() == list(range(len(table)))
    assert rows["image_id"].tolist() == result.dataset.image_ids[table.image_rows].tolist()
    assert rows["file_name"].tolist() == [result.dataset.file_names[row] for row in table.image_rows]
    assert rows["class"].tolist() == [result.classes[label] for label in table.labels]
    assert rows["verdict"].tolist() == [Verdict.NAMES[verdict] for verdict in table.verdicts]
    assert rows["partner"].tolist() == [None if partner < 0 else partner for partner in table.partners.tolist()]
    assert rows["label_quality"].tolist() == pytest.approx(table.quality("label").tolist(), nan_ok=True)
    assert rows["sigma_x2"].tolist() == np.sqrt(table.covariances[:, 1, 0, 0]).tolist()
    assert rows["number"].tolist() == table.numbers.tolist()
    assert rows["confidence"].dtype == np.float32


def test_partners_find_each_other(result: Evaluation) -> None:
    pd = pytest.importorskip("pandas")
    found, there = result.detections.to_frame("pandas"), result.objects.to_frame("pandas")
    both = pd.merge(found, there, left_on="partner", right_on="row", suffixes=("", "_truth"))
    assert len(both) == result.tp
    assert (both["partner_truth"] == both["row"]).all()
    assert (both["pPDQ"] == both["pPDQ_truth"]).all()
    assert (both["image_id"] == both["image_id_truth"]).all()
    counts = found["verdict"].value_counts()
    assert (counts["TP"], counts["FP"], (there["verdict"] == "FN").sum()) == (result.tp, result.fp, result.fn)


def test_probabilities_come_when_they_are_asked_for(result: Evaluation) -> None:
    names = [f"p_{name}" for name in result.classes]
    assert not any(name in result.detections.flat().columns for name in names)
    rows = result.detections.flat(label_probs=True)
    assert result.detections.label_probs is not None
    np.testing.assert_array_equal(np.stack([rows[name] for name in names], axis=1), result.detections.label_probs)
    without = dataclasses.replace(result, detections=result.detections.replace(label_probs=None))
    with pytest.raises(InputError, match='were not stored; evaluate with measures="all" or, image by image'):
        without.detections.to_frame(label_probs=True)


def test_a_detection_that_names_no_class_has_none(demo: Demo) -> None:
    stray = Detections(classes=["unheard of"], image_ids=[1], boxes=[[1, 2, 30, 40]], label_probs=[[0.9]])
    rows = probox.evaluate(demo.truth, stray).detections.flat()
    assert (rows["class"].tolist(), rows["class_index"].tolist()) == ([None], [None])


def test_nobody_is_judged_where_nobody_matched(demo: Demo) -> None:
    boxes = probox.evaluate(demo.truth, demo.detectors["probabilistic"], measures=["map"])
    for table in (boxes.detections.flat(), boxes.objects.flat()):
        assert set(table["verdict"].tolist()) == set(table["partner"].tolist()) == {None}
    assert list(boxes.per_class().flat().columns) == ["class", "objects", "detections", "mAP", "AP50", "AP75"]
    names = ["image_id", "file_name", "objects", "detections", "mAP", "AP50", "AP75"]
    assert list(boxes.per_image().flat().columns) == names
    assert "TP" in boxes.per_image().columns  # as programs have it
    assert "TP" not in str(boxes.per_class())


def test_a_table_of_nobodys_has_numbers_alone() -> None:
    assert list(DetectionTable.none().flat().columns)[:4] == ["row", "image_row", "number", "class_index"]


def test_ids_and_names_go_with_every_evaluation(demo: Demo, result: Evaluation, tmp_path: Path) -> None:
    """However an evaluation is made, its tables count in its own images, and all else is as before to the bit."""
    ids = demo.truth.image_ids.tolist()
    result.save(tmp_path / "kept")
    loaded = Evaluation.load(tmp_path / "kept")
    assert_equal(result, loaded)
    evaluator = Evaluator(demo.truth.classes)
    found = demo.detectors["probabilistic"]
    for part in (ids[6:], ids[:6]):
        evaluator.update(demo.truth.select_images(part), found.select(np.isin(found.image_ids, part)))
    joined = evaluator.result()
    assert_equal(result, joined)
    some = result.select_images(ids[3:5])
    assert_equal(some, probox.evaluate(demo.truth.select_images(ids[3:5]), found))
    above = result.at_threshold(0.8)
    again = pickle.loads(pickle.dumps(copy.copy(result)))
    for one in (
        result,
        loaded,
        joined,
        result.select_images(ids[:6]) + result.select_images(ids[6:]),
        some,
        above,
        again,
    ):
        for table in (one.objects, one.detections):
            assert table.dataset is one.dataset
            expected = one.dataset.image_ids[table.image_rows].tolist()
            assert table.flat()["image_id"].tolist() == expected
            assert table.flat()["file_name"].tolist() == [f"scene-{image:02}.jpg" for image in expected]
    assert set(some.detections.flat()["image_id"].tolist()) == set(ids[3:5])


# --- groups ---


@given(tables())
@examples(12)
def test_groups_have_pycocotools_average_precision(drawn: tuple[GroundTruth, Detections]) -> None:
    truth, found = drawn
    theirs = coco_evaluation(truth, found)
    result = probox.evaluate(truth, found, measures=["map", "lrp"])
    precision = np.where(theirs.eval["precision"] == -1, np.nan, theirs.eval["precision"])[..., -1]

    def mean(values: np.ndarray) -> float:
        return float(values[~np.isnan(values)].mean()) if (~np.isnan(values)).any() else math.nan

    for label, name in enumerate(truth.classes):
        own = precision[:, :, label, 0]
        expected = {"mAP": mean(own), "AP50": mean(own[0]), "AP75": mean(own[5])}
        group = result.per_class()[name]
        assert {key: group[key] for key in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)
    for size, name in enumerate(("small", "medium", "large"), 1):
        own = precision[:, :, :, size]
        expected = {"mAP": mean(own), "AP50": mean(own[0]), "AP75": mean(own[5])}
        group = result.per_size()[name]
        assert {key: group[key] for key in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)
    small, medium, large = theirs.stats[3:6]
    assert [group["mAP"] for group in result.per_size().values()] == pytest.approx(
        [math.nan if number == -1 else number for number in (small, medium, large)], abs=1e-12, nan_ok=True
    )


def test_rows_and_columns_that_are_not_there(result: Evaluation) -> None:
    """All tables of groups index alike: a row by its name or id, then a column."""
    images, classes, sizes = result.per_image(), result.per_class(), result.per_size()
    first = int(result.dataset.image_ids[0])
    assert images[first]["PDQ"] == images.columns["PDQ"][0]
    name = result.classes[0]
    assert classes[name]["mAP"] == classes.columns["mAP"][0] == result.average_precision.per_class()[name]["AP"]
    assert "unicorn" not in classes
    assert classes.get("unicorn") is None
    for wrong, message in (
        (lambda: images[-1], "no image -1; choose one of 1, 2, 3"),
        (lambda: images[first]["pdq"], "no column 'pdq'; choose one of image_id, objects, detections"),
        (lambda: classes["unicorn"], f"no class 'unicorn'; choose one of {name}"),
        (lambda: sizes["big"], "no size 'big'; choose one of small, medium, large"),
        (lambda: sizes["small"]["oLRP"], "no column 'oLRP'; did you mean moLRP"),
        (lambda: result.lrp.per_class().columns["moLRP"], "no column 'moLRP'; did you mean oLRP"),
    ):
        with pytest.raises(InputError, match=message) as raised:
            wrong()
        assert isinstance(raised.value, KeyError)


def test_groups_have_lrp(result: Evaluation) -> None:
    classes, sizes = result.lrp.per_class().columns, result.lrp.per_size().columns
    names = {"moLRP": "oLRP", "moLRP_loc": "loc", "moLRP_fp": "fp", "moLRP_fn": "fn"}
    for key, name in names.items():
        assert [group[key] for group in result.per_class().values()] == classes[name].tolist()
        assert [group[key] for group in result.per_size().values()] == sizes[key if key == "moLRP" else name][
            1:
        ].tolist()
    assert np.mean(classes["oLRP"]) == pytest.approx(result.summary()["moLRP"])


def test_counts_add_up(result: Evaluation) -> None:
    for group in (*result.per_class().values(), *result.per_size().values()):
        assert group["objects"] == group["TP"] + group["FN"]
        assert group["detections"] == group["TP"] + group["FP"]
    assert sum(group["objects"] for group in result.per_class().values()) == len(result.objects)
    assert sum(group["detections"] for group in result.per_class().values()) == len(result.detections)
    images = result.per_image().columns
    assert (images["objects"] == images["TP"] + images["FN"]).all()
    assert (images["detections"] == images["TP"] + images["FP"]).all()


def test_ignored_objects_and_their_matches_are_counted_too() -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 12, 22]], [0])
    found = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 12, 22]], label_probs=[[0.9]])
    result = probox.evaluate(truth, found, convention=probox.Convention.preset("reference", object_filter=True))
    assert result.detections.flat()["verdict"].tolist() == ["ignored"]
    group = result.per_class()["cup"]
    assert [group[key] for key in ("objects", "detections", "TP", "FP", "FN")] == [1, 1, 0, 0, 0]


def test_classes_of_one_name_have_a_row_each() -> None:
    boxes = [[10, 20, 40, 40], [1, 1, 9, 9]]
    truth = GroundTruth.from_boxes(["cup", "cup"], {7: (64, 48)}, [7, 7], boxes, [0, 1])
    found = Detections(classes=["cup", "cup"], image_ids=[7], boxes=boxes[:1], label_probs=[[0.1, 0.5]])
    table = probox.evaluate(truth, found).per_class()
    assert {name: group["objects"] for name, group in table.items()} == {"cup": 1, "cup (2)": 1}


def test_groups_are_the_dictionaries_that_they_were(result: Evaluation) -> None:
    table = result.per_class()
    assert isinstance(table, dict)
    assert isinstance(table["ring"]["PDQ"], float)
    assert json.loads(json.dumps(table)) == table == dict(table)
    assert copy.deepcopy(table) == pickle.loads(pickle.dumps(table)) == table
    assert pickle.loads(pickle.dumps(table)).group == "class"
    assert list(result.per_size()) == ["small", "medium", "large"]
    images = result.per_image().columns
    assert isinstance(images, dict)
    assert images["PDQ"].shape == (12,)


def test_groups_are_frames(result: Evaluation) -> None:
    pytest.importorskip("pandas")
    frame = result.per_class().to_frame("pandas")
    assert frame["class"].tolist() == list(result.classes)
    for key, values in frame.items():
        if key != "class":
            assert values.tolist() == [group[key] for group in result.per_class().values()]
    assert [frame[key].dtype for key in ("objects", "TP", "PDQ")] == [np.int64, np.int64, np.float64]
    assert result.per_size().to_frame("pandas")["size"].tolist() == ["small", "medium", "large"]
    images = result.per_image().to_frame("pandas")
    assert list(images.columns)[:3] == ["image_id", "file_name", "objects"]
    for key in ("PDQ", "mAP", "moLRP", "sum_pPDQ"):
        assert images[key].tolist() == result.per_image().columns[key].tolist()
    assert all(f">{key}</th>" in result.per_image()._repr_html_() for key in ("mAP", "moLRP"))
    pytest.importorskip("pyarrow")
    assert result.per_class().to_arrow().column("class").to_pylist() == list(result.classes)


def test_every_measure_is_in_frames(demo: Demo) -> None:
    everything = probox.evaluate(demo.truth, demo.detectors["probabilistic"], measures="all")
    for table in (everything.per_class(), everything.per_size()):
        assert list(table.flat().columns)[1:] == list(next(iter(table.values())))
        assert len(table._repr_html_()) < 60_000


def test_groups_print_as_text(result: Evaluation) -> None:
    lines = str(result.per_size()).splitlines()
    assert lines[0].split()[:5] == ["size", "objects", "detections", "mAP", "1-moLRP"]
    assert lines[1].split() == ["[%]"] * 8
    assert lines[2].split()[:3] == ["small", "28", "26"]
    assert lines[-1] == "lower is better: FP, FN"
    assert repr(result.per_size()) == str(result.per_size())
    assert repr(result.per_image()).startswith("ImageTable(12 images: image_id, objects, detections, PDQ")
    assert str(result.per_image()).splitlines()[1].split()[:3] == ["1", "scene-01.jpg", "9"]


def test_classes_with_nothing_in_them_are_counted_not_shown() -> None:
    table = GroupTable("class", {"cup": {"objects": 1, "PDQ": math.nan}, "dog": {"objects": 0, "PDQ": math.nan}})
    assert str(table) == "class  objects  PDQ\n                [%]\ncup          1    -\nnot shown: 1 empty"
    assert "not shown: 1 empty" in table._repr_html_()
    assert table.flat()["class"].tolist() == ["cup", "dog"]
    many = GroupTable("class", {f"c{n}": {"PDQ": 0.5} for n in range(150)})
    assert "the first 100 of 150" in many._repr_html_()
    assert str(GroupTable("class", {})) == "class"


# --- notebooks ---


def hostile() -> Evaluation:
    truth = GroundTruth.from_boxes([NAME, "dog"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    truth = truth.replace(dataset=truth.dataset.replace(file_names=[NAME], source=NAME), notes=(NAME,))
    found = Detections(
        classes=[NAME, "dog", "</table>"], image_ids=[7], boxes=[[10, 20, 40, 40]], label_probs=[[0.8, 0.1, 0.1]],
        source=NAME,
    )  # fmt: skip
    return probox.evaluate(truth, found)


def test_strangers_text_is_escaped() -> None:
    result = hostile()
    everything = (
        result, result.per_class(), result.per_size(), result.per_image(), result.detections, result.objects,
        result.pairs, result.dataset, result.matched_pairs,
    )  # fmt: skip
    for shown in everything:
        text = shown._repr_html_()
        assert "<img" not in text
        assert text.count("<table") == text.count("</table>") == 1
    assert "&lt;img src=x" in result._repr_html_()
    assert "&lt;/table&gt;" in result._repr_html_()
    assert "&lt;img src=x" in result.per_class()._repr_html_()
    assert "&lt;img src=x" in result.detections._repr_html_()


def test_a_result_shows_its_numbers_and_what_is_odd(result: Evaluation, demo: Demo) -> None:
    shown = result._repr_html_()
    for text in ("57.57", "62.45", "12 images, 164 objects, 167 detections", "convention: reference", "mean pairwise"):
        assert text in shown
    found = demo.detectors["probabilistic"]
    swapped = found.replace(boxes=found.boxes[:, [1, 0, 3, 2]], extents=None, covariances=None)
    odd = probox.evaluate(demo.truth, swapped)
    assert odd.warnings
    assert f"<b>warning:</b> {odd.warnings[0].message[:20]}" in odd._repr_html_()
    known = probox.evaluate(demo.truth, found, convention=probox.Convention.preset("paper", label_threshold=0.5))
    assert "<b>note:</b>" in known._repr_html_()
    assert "paper" in known._repr_html_()


def test_long_tables_show_their_first_rows(result: Evaluation) -> None:
    assert "10 of 167 rows" in result.detections._repr_html_()
    assert "DetectionTable, 167 rows" in result.detections._repr_html_()


def test_notebooks_show_units_and_one_row_per_metric_of_many(result: Evaluation, demo: Demo) -> None:
    assert ">PDQ [%]</th>" in result._repr_html_()
    assert "lower is better: FP, FN; convention: reference; scored against masks" in result._repr_html_()
    assert ">PDQ [%]</th>" in result.per_class()._repr_html_()
    many = probox.evaluate(demo.truth, demo.detectors["probabilistic"], measures=["nll", "nees"])._repr_html_()
    assert [f">{name}</th>" in many for name in ("metric", "value", "better", "meaning")] == [True] * 4
    assert [f">{cell}</td>" in many for cell in ("NLL [nats]", "lower", "NEES", "near 4")] == [True] * 4

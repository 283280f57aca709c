"""Small evaluations by hand: what each row says, what is noted, and what does not add up."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from probox import Convention, Detections, Evaluator, GroundTruth, InputError, evaluate
from probox.notes import Note, as_notes
from probox.tables.results import Verdict

CLASSES = ("cup", "dog")


@pytest.fixture
def truth() -> GroundTruth:
    """Two images with a cup each, the second also with a dog; and one with nothing."""
    return GroundTruth.from_boxes(
        CLASSES,
        {3: (80, 60), 5: (80, 60), 8: (80, 60)},
        [3, 5, 5],
        [[10, 10, 29, 29], [10, 10, 29, 29], [50, 10, 69, 29]],
        [0, 0, 1],
    )


@pytest.fixture
def found() -> Detections:
    """In file order: image 5's dog, a stray in 3, something in an unknown image, 3's cup, a stray ghost in 5."""
    return Detections(
        classes=("none", "dog", "ghost", "cup"),
        image_ids=[5, 3, 77, 3, 5],
        boxes=[[50, 10, 69, 29], [40, 40, 50, 50], [1, 1, 2, 2], [10, 10, 29, 29], [1, 40, 9, 50]],
        label_probs=[
            [0.0, 0.64, 0.0, 0.25],
            [0.5, 0.25, 0.0, 0.125],
            [0.0, 0.5, 0.5, 0.0],
            [0.0, 0.0, 0.0, 0.81],
            [0.0, 0.125, 0.75, 0.0],
        ],
    )


def test_rows_of_detections_are_by_image_then_as_in_the_file(truth, found):
    table = evaluate(truth, found).detections
    assert truth.image_ids[table.image_rows].tolist() == [3, 3, 5, 5]
    assert table.numbers.tolist() == [0, 1, 0, 1]
    assert table.labels[[1, 2]].tolist() == [0, 1]
    np.testing.assert_array_equal(table.confidences, np.float32([0.5, 0.81, 0.64, 0.75]))
    np.testing.assert_array_equal(table.costs, np.float32([0.25, 0.81, 0.64, 0.75]))
    np.testing.assert_array_equal(table.scores[[1, 2]], np.float32([0.81, 0.64]).astype(float))
    assert table.boxes[:, 0].tolist() == [40, 10, 50, 1]
    assert table.extents.tolist() == [[10, 10], [19, 19], [19, 19], [8, 10]]
    assert table.verdicts.tolist() == [Verdict.FP, Verdict.TP, Verdict.TP, Verdict.FP]
    assert table.partners.tolist() == [-1, 0, 2, -1]
    np.testing.assert_allclose(table.quality("pPDQ"), [0, 0.9, 0.8, 0], atol=1e-7)
    np.testing.assert_allclose(table.quality("label"), [np.nan, 0.81, 0.64, np.nan], atol=1e-7)
    np.testing.assert_array_equal(table.quality("spatial"), [np.nan, 1, 1, np.nan])
    assert not table.covariances.any()


def test_rows_of_objects_say_who_found_them(truth, found):
    table = evaluate(truth, found).objects
    assert truth.image_ids[table.image_rows].tolist() == [3, 5, 5]
    assert table.labels.tolist() == [0, 0, 1]
    assert table.verdicts.tolist() == [Verdict.TP, Verdict.FN, Verdict.TP]
    assert table.partners.tolist() == [1, -1, 2]
    np.testing.assert_allclose(table.quality("pPDQ"), [0.9, 0, 0.8], atol=1e-7)
    assert table.pixels.tolist() == [400] * 3
    assert table.mask_boxes.tolist() == [[10, 10, 29, 29], [10, 10, 29, 29], [50, 10, 69, 29]]
    assert not table.ignored.any()


def test_numbers_follow_from_rows(truth, found):
    result = evaluate(truth, found)
    assert (result.tp, result.fp, result.fn) == (2, 2, 1)
    assert result.pdq == pytest.approx(1.7 / 5, abs=1e-7)
    per_image = result.per_image().columns
    assert per_image["image_id"].tolist() == [3, 5, 8]
    assert [per_image[name].tolist() for name in ("TP", "FP", "FN")] == [[1, 1, 0], [1, 1, 0], [0, 1, 0]]
    np.testing.assert_allclose(per_image["PDQ"], [0.9 / 2, 0.8 / 3, np.nan], atol=1e-7)
    by_class = result.per_class()
    assert list(by_class) == list(CLASSES)
    assert [by_class["cup"][name] for name in ("TP", "FP", "FN")] == [1, 0, 1]
    assert [by_class["dog"][name] for name in ("TP", "FN")] == [1, 0]
    challenge = evaluate(truth, found, convention="challenge")
    assert challenge.pdq == pytest.approx(1.7 / (2 + 1.0 + 1), abs=1e-7)  # 0.25 and 0.75 for the strays
    np.testing.assert_allclose(challenge.per_image().columns["PDQ"], [0.9 / 1.25, 0.8 / 2.75, np.nan], atol=1e-7)
    assert "PDQ 0.3400, 3 images, 3 objects, 4 detections, reference" in repr(result)


def test_false_positives_belong_to_the_class_that_is_named(truth):
    stray = Detections(classes=CLASSES, image_ids=[3], boxes=[[40, 40, 50, 50]], label_probs=[[0.25, 0.5]])
    by_class = evaluate(truth, stray).per_class()
    assert [by_class[name]["FP"] for name in CLASSES] == [0, 1]


def test_what_is_left_out_is_noted_with_its_number(truth, found):
    notes = evaluate(truth, found, convention=Convention(label_threshold=0.5)).notes
    assert Note("unknown-images", 1, images=1) in notes
    # Exactly at the threshold is not above; the one of an unknown image is not counted twice.
    assert Note("below-threshold", 1, threshold=0.5) in notes
    assert Note("unknown-classes", 1, names="ghost") in notes
    plain = {note.code for note in evaluate(truth, found.select(found.image_ids != 77)).notes}
    assert not plain & {"unknown-images", "below-threshold"}


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a"], "a"),
        (["a", "b", "c"], "a, b, c"),
        (["a", "b", "c", "d"], "a, b, c, ..."),
    ],
)
def test_three_unknown_classes_are_named_and_more_are_hinted_at(truth, names, told):
    other = Detections(classes=["cup", *names], image_ids=[3], boxes=[[10, 10, 29, 29]],
                       label_probs=[[1.0, *[0.0] * len(names)]])  # fmt: skip
    assert Note("unknown-classes", len(names), names=told) in evaluate(truth, other).notes


@pytest.mark.parametrize("classes", [("cup", "dog"), ("Dog", "CUP"), ("cup", "background"), ("__background__", "dog")])
def test_known_classes_and_the_background_are_not_noted(truth, classes):
    other = Detections(classes=classes, image_ids=[3], boxes=[[10, 10, 29, 29]], label_probs=[[0.5, 0.5]])
    assert not any("unknown to the truth" in note for note in map(str, evaluate(truth, other).notes))


def test_a_detector_without_classes_names_none_of_the_truth_s(truth):
    silent = Detections(classes=[], image_ids=[3], boxes=[[10, 10, 29, 29]], label_probs=np.zeros((1, 0)))
    result = evaluate(truth, silent)
    assert result.detections.labels.tolist() == [-1]
    assert (result.tp, result.fp, result.fn) == (0, 1, 3)


# --- what is asked for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measures", [(), ("PDQs",), ("pdq", "iou"), "pdq,iou", "", 7])
def test_measures_that_there_are_not_are_refused(truth, found, measures):
    for measure in (lambda: evaluate(truth, found, measures=measures), lambda: Evaluator(CLASSES, measures=measures)):
        with pytest.raises(InputError, match="expected measures to be some of pdq, map, lrp"):
            measure()


@pytest.mark.parametrize(
    ("measures", "first", "count"), [(["pdq"], "PDQ", 9), (["map"], "mAP", 3), (["lrp"], "moLRP", 4)]
)
def test_only_what_is_asked_for_is_measured(truth, found, measures, first, count):
    summary = evaluate(truth, found, measures=measures).summary()
    assert next(iter(summary)) == first
    assert len(summary) == count


def test_measures_have_one_order(truth, found):
    assert evaluate(truth, found, measures=["lrp", "pdq", "lrp"]).measures == ("pdq", "lrp")


@pytest.mark.parametrize("threads", [0, -1])
def test_at_least_one_thread(truth, found, threads):
    with pytest.raises(InputError, match=r"expected threads to be .*from 1 to"):
        evaluate(truth, found, threads=threads)


def test_progress_counts_up_to_all_images(truth, found):
    seen = []
    evaluate(truth, found, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3, 3)
    assert seen == sorted(seen)


# --- in parts -------------------------------------------------------------------------------------------------------


def part(truth: GroundTruth, found: Detections, image: int, **options):
    return evaluate(truth.select_images([image]), found.select(found.image_ids == image), **options)


def test_parts_must_agree(truth, found):
    one = part(truth, found, 3)
    with pytest.raises(InputError, match="by another convention"):
        one + part(truth, found, 5, convention="paper")
    with pytest.raises(InputError, match="for other metrics"):
        one + part(truth, found, 5, measures=["pdq"])
    other = GroundTruth.from_boxes(("cup",), {9: (9, 9)}, [], np.zeros((0, 4)), [])
    with pytest.raises(InputError, match="for other classes"):
        one + evaluate(other, found.select([]))
    with pytest.raises(InputError, match="image 3: is in result 1 too"):
        one + part(truth, found, 3)


def test_an_evaluator_refuses_what_it_was_not_made_for(truth, found):
    evaluator = Evaluator(("dog", "cup"))
    with pytest.raises(InputError, match="evaluator's classes"):
        evaluator.update(truth, found)
    mine, theirs = Evaluator(CLASSES), Evaluator(CLASSES, convention="paper")
    theirs.update(truth, found)
    with pytest.raises(InputError, match="do not merge"):
        mine.merge(theirs)
    mine.update(truth.select_images([3]), found)
    with pytest.raises(InputError, match="image 3: the image was added before"):
        mine.update(truth, found)


def test_an_evaluator_that_saw_nothing_has_seen_no_images():
    nothing = Evaluator(CLASSES, convention="paper", measures=["pdq"]).result()
    assert (len(nothing.dataset), nothing.convention.name, nothing.measures) == (0, "paper", ("pdq",))
    assert nothing.classes == CLASSES


def test_joined_parts_name_every_file_and_note_once(truth, found):

    parts = [
        dataclasses.replace(
            part(truth, found, image), inputs=("truth.json", f"{image}.json"), input_notes=("same", f"{image}")
        )
        for image in (8, 3, 5)
    ]
    joined = parts[0] + parts[1] + parts[2]
    assert joined.inputs == ("truth.json", "8.json", "3.json", "5.json")
    assert joined.dataset.image_ids.tolist() == [3, 5, 8]
    assert joined.notes[:4] == as_notes(["same", "5", "3", "8"])
    assert joined.detections.partners.tolist() == [-1, 0, 2, -1]

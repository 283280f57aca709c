"""COCO results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.readers import read_coco_results

from probox import (
    Dataset,
    GroundTruth,
    InputError,
    evaluate,
)
from probox.files.reading import Source
from probox.formats import read_detections
from probox.formats.coco import COCO_RESULTS, check_coco_results
from probox.formats.problems import Problems
from probox.formats.registry import dataset_alone, load_detections
from probox.notes import InputWarning, Note
from probox.tables.labels import COCO_CATEGORY_IDS, COCO_CLASSES

Write = Callable[..., Path]
COVARS = [[[4.0, 1.0], [1.0, 2.0]], [[9.0, 0.0], [0.0, 1.0]]]


def entry(**changes: Any) -> dict[str, Any]:
    return {"image_id": 9, "category_id": 7, "bbox": [1.5, 2.0, 4.1, 5.0], "score": 0.8} | changes


def test_a_score_is_spread(write: Write, truth: GroundTruth) -> None:
    found = read_detections(write([entry(), entry(image_id=4, category_id=3, score=0.25)]), truth)
    assert found.image_ids.tolist() == [9, 4]
    assert found.classes == ("cup", "dog")
    assert found.labels.tolist() == [1, 0]
    assert found.scores.tolist() == [0.8, 0.25]
    np.testing.assert_array_equal(found.label_probs, np.array([[1 - 0.8, 0.8], [0.25, 0.75]], np.float32))
    assert found.boxes[0].tolist() == [1.5, 2.0, 1.5 + 4.1, 7.0]
    assert found.extents[0].tolist() == [4.1, 5.0]
    assert found.covariances is None
    assert found.notes == ()


def test_all_scores_and_covariances_where_given(write: Write, truth: GroundTruth) -> None:
    rows = [
        entry(),
        entry(all_scores=[0.1, 0.6], covars=COVARS),
        {"image_id": 9, "bbox": [0, 0, 1, 1], "all_scores": [0.7, 0.2]},
        {"image_id": 9, "bbox": [0, 0, 1, 1], "all_scores": [0.7, 0.2], "category_id": 7},
    ]
    found = read_coco_results(write(rows), truth)
    np.testing.assert_array_equal(found.label_probs[1:], np.array([[0.1, 0.6], [0.7, 0.2], [0.7, 0.2]], np.float32))
    assert found.labels.tolist() == [1, 1, 0, 1]
    assert found.scores.tolist() == [0.8, 0.8, 0.7, 0.2]
    assert found.covariances is not None
    assert found.covariances[1].tolist() == COVARS
    assert not found.covariances[[0, 2, 3]].any()


def test_other_images_are_left_out_and_counted(write: Write, truth: GroundTruth) -> None:
    found = read_coco_results(write([entry(), entry(image_id=1), entry(image_id=2), entry(image_id=1)]), truth)
    assert len(found) == 1
    assert found.notes == (Note("unknown-images", 3, images=2),)


def test_no_detections(write: Write, truth: GroundTruth) -> None:
    found = read_detections(write([]), truth)
    assert len(found) == 0
    assert found.label_probs.shape == (0, 2)


def test_columns_are_not_copied(write: Write, truth: GroundTruth) -> None:
    found = read_coco_results(write([entry()]), truth)
    for column in (found.boxes, found.scores, found.labels, found.image_ids, found.extents):
        assert not column.flags.writeable
        assert not column.flags.owndata  # still the memory that the kernel filled


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (entry(category_id=8), "image 9: [1].category_id: category 8 is not among the 2 categories"),
        (entry(score=5), "[1].score: expected a score between 0 and 1, but got 5; apply softmax"),
        (entry(score=float("nan")), "[1].score: expected a finite score"),
        (entry(bbox=[1, 2, float("inf"), 4]), "detection 1: expected four finite box corners"),
        (entry(bbox=[1, 2, -3, 4]), "detection 1: expected x1 <= x2 and y1 <= y2, but got [1.0, 2.0, -2.0, 6.0]"),
        (entry(bbox=[1, 2, 3]), "[1].bbox: expected a list of 4, but got 3"),
        (entry(all_scores=[1.0]), "[1].all_scores: expected 2 probabilities, but got 1; write one per category"),
        (entry(all_scores=[0.9, 0.9]), "expected label probabilities to add up to at most 1, but they make 1.8"),
        (entry(all_scores=[1.9, -0.9]), "expected label probabilities between 0 and 1, but got -0.9"),
        (entry(covars=[[1, 2], [3, 4]]), "[1].covars[0][0]: expected a list of 2, but got 1"),
        (entry(covars=COVARS[:1]), "[1].covars: expected a list of 2, but got 1"),
        (entry(covars=[[[1, 2], [2, 1]], [[1, 0], [0, 1]]]), "the smallest eigenvalue is -1"),
        (entry(covars=[[[1, 0.5], [0, 1]], [[1, 0], [0, 1]]]), "xy and yx differ by 0.5"),
        ({"image_id": 9, "category_id": 7, "bbox": [0, 0, 1, 1]}, '[1]: expected a key "score"'),
        ({"image_id": 9, "score": 0.5, "bbox": [0, 0, 1, 1]}, '[1]: expected a key "category_id"'),
        ({"category_id": 7, "score": 0.5, "bbox": [0, 0, 1, 1]}, '[1]: expected a key "image_id"'),
        ({"image_id": 9, "category_id": 7, "score": 0.5}, '[1]: expected a key "bbox"'),
        (entry(image_id=True), "[1].image_id: expected a whole number, but got true"),
        ([], "[1]: expected an object, but got a list"),
        (7, "[1]: expected an object, but got 7"),
    ],
)
def test_what_is_wrong_is_named(write: Write, truth: GroundTruth, row: Any, message: str) -> None:
    path = write([entry(), row])
    with pytest.raises(InputError) as caught:
        read_detections(path, truth)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_repair(write: Write, truth: GroundTruth) -> None:
    bad = [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]]]
    path = write([entry(covars=COVARS), entry(covars=bad)])
    with pytest.raises(InputError, match="repair=True"):
        read_detections(path, truth)
    found = read_detections(path, truth, repair=True)
    assert found.covariances is not None
    assert found.covariances[0].tolist() == COVARS
    np.testing.assert_allclose(found.covariances[1], [[[1.5, 1.5], [1.5, 1.5]], [[1, 0.25], [0.25, 1]]])
    assert found.notes == (Note("repaired-covariances", 1),)


@pytest.mark.slow
def test_real_results(coco_dir: Path) -> None:
    import gzip
    import json

    from tests.readers import read_coco

    truth = read_coco(coco_dir / "val2017_boxes.json")
    path = coco_dir / "results" / "yolox_nano_2881.json.gz"
    found = read_detections(path, truth)
    raw = json.loads(gzip.decompress(path.read_bytes()))
    assert len(found) == len(raw) == 180453
    assert found.image_ids.tolist() == [row["image_id"] for row in raw]
    assert found.scores.tolist() == [row["score"] for row in raw]
    assert truth.dataset.category_ids[found.labels].tolist() == [row["category_id"] for row in raw]
    assert found.extents.tolist() == [row["bbox"][2:] for row in raw]
    rest = ((1 - found.scores) / 79).astype(np.float32)
    np.testing.assert_array_equal(
        found.label_probs.matrix.min(axis=1), np.minimum(rest, found.scores.astype(np.float32))
    )


def test_covariances_are_repaired_only_where_it_is_asked_for(write: Write, truth: GroundTruth) -> None:
    skew = [[[4, 1], [2, 4]], [[1, 0], [0, 1]]]
    path = write([{"image_id": 4, "category_id": 3, "bbox": [1, 2, 3, 4], "score": 0.5, "covars": skew}])
    for read in (read_coco_results, read_detections):
        with pytest.raises(InputError, match="symmetric"):
            read(path, truth)
        assert read(path, truth, repair=True).covariances[0, 0].tolist() == [[4, 1.5], [1.5, 4]]


COVAR = [[4.0, 1.0, -1.0, 0.5], [1.0, 9.0, 0.25, -2.0], [-1.0, 0.25, 16.0, 3.0], [0.5, -2.0, 3.0, 25.0]]
JACOBIAN = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]])


def test_the_covariance_of_x_y_width_and_height_is_brought_to_the_corners(write: Write, truth: GroundTruth) -> None:
    rows = [entry(bbox_covar=COVAR), entry(bbox_covar=[]), entry(bbox_covar=None), entry()]
    found = read_coco_results(write(rows), truth)
    full = JACOBIAN @ np.array(COVAR) @ JACOBIAN.T
    assert found.covariances is not None
    np.testing.assert_allclose(found.covariances[0], [full[:2, :2], full[2:, 2:]], rtol=1e-15)
    assert not found.covariances[1:].any()


@pytest.mark.parametrize("background", [[], [0.1]])
def test_class_probabilities_may_end_with_background(write: Write, truth: GroundTruth, background: list[float]) -> None:
    rows = [entry(cls_prob=[0.3, 0.6, *background], score=0.6), entry(cls_prob=[0.7, 0.2, *background], category_id=3)]
    found = read_coco_results(write(rows), truth)
    np.testing.assert_array_equal(found.label_probs, np.array([[0.3, 0.6], [0.7, 0.2]], np.float32))
    assert found.labels.tolist() == [1, 0]
    assert found.notes == ()


def test_class_probabilities_of_other_classes_are_refused(write: Write, truth: GroundTruth) -> None:
    with pytest.raises(
        InputError, match=r"\[0\].cls_prob: expected 2 probabilities, or one more with background last, but got 4; "
    ):
        read_coco_results(write([entry(cls_prob=[0.1, 0.2, 0.3, 0.4])]), truth)
    with pytest.raises(InputError, match="expected 2 probabilities, but got 3"):
        read_coco_results(write([entry(all_scores=[0.1, 0.2, 0.3])]), truth)


def test_a_sigmoid_per_class_is_limited_and_said(write: Write, truth: GroundTruth) -> None:
    found = read_coco_results(write([entry(cls_prob=[0.8, 0.9]), entry(cls_prob=[0.4, 0.5])]), truth)
    np.testing.assert_allclose(found.label_probs, [[0.1, 0.9], [0.4, 0.5]], rtol=1e-6)
    assert found.scores.tolist() == [0.8, 0.8]
    (note,) = tuple(map(str, found.notes))
    assert note.startswith("1 detection with cls_prob that sums to more than 1")
    assert note.endswith("probox.fusion.limit_to_distribution")
    with pytest.raises(
        InputError,
        match=r"add up to at most 1, .* for one sigmoid per class use probox.fusion.limit_to_distribution\(scores\)",
    ):
        read_coco_results(write([entry(all_scores=[0.8, 0.9])]), truth)
    with pytest.raises(InputError, match="expected label probabilities between 0 and 1, but got 3"):
        read_coco_results(write([entry(cls_prob=[3.0, 0.9])]), truth)


def test_class_probabilities_in_another_order_are_noticed(write: Write, truth: GroundTruth) -> None:
    right, wrong = entry(cls_prob=[0.1, 0.7]), entry(cls_prob=[0.7, 0.1])
    second = entry(cls_prob=[0.7, 0.2], score=0.2)  # stays when boxes are suppressed class by class
    assert read_coco_results(write([right] * 4 + [wrong]), truth).notes == ()
    assert read_coco_results(write([second] * 8 + [wrong] * 2), truth).notes == ()
    assert read_coco_results(write([wrong] * 4), truth).notes == ()
    (note,) = read_coco_results(write([right] * 3 + [wrong] * 2), truth).notes
    assert note == (InputWarning("probabilities-of-other-classes", 3, key="cls_prob", total=5, least=0.4))
    problems = Problems(lenient=True)
    load_detections(write([wrong] * 6), truth.dataset, problems)
    assert [(finding.kind, finding.is_error) for finding in problems.findings] == [
        ("probabilities of other classes", False)
    ]


def test_all_scores_in_another_order_are_noticed(write: Write, truth: GroundTruth) -> None:
    """Class-wise suppression keeps second best classes, and a score may be calibrated: both are no mistake."""
    right, wrong = entry(all_scores=[0.1, 0.8]), entry(all_scores=[0.8, 0.05])
    calibrated = entry(all_scores=[0.5, 0.45], score=0.7)
    second = entry(all_scores=[0.8, 0.1], score=0.1)
    rest = entry(all_scores=[0.6, 0.05], score=0.3)  # less confident rows do not count
    for entries in ([right] * 9 + [wrong] * 2, [calibrated] * 9, [second] * 9, [right] * 9 + [rest] * 20):
        assert read_coco_results(write(entries), truth).notes == ()
    found = read_coco_results(write([right] * 2 + [wrong] * 8), truth)
    (note,) = tuple(map(str, found.notes))
    assert note.startswith("all_scores: only 2 of 10 detections with a score of at least 0.4 have it at their")
    result = evaluate(truth, found)
    assert f"warning: {note}" in str(result).splitlines()
    problems = Problems(lenient=True)
    load_detections(write([wrong] * 6), truth.dataset, problems)
    assert [(finding.kind, finding.is_error) for finding in problems.findings] == [
        ("probabilities of other classes", False)
    ]


def test_one_name_of_a_thing_is_enough(write: Write, truth: GroundTruth) -> None:
    with pytest.raises(InputError, match="occurs twice"):
        read_coco_results(write([entry(all_scores=[0.1, 0.8], cls_prob=[0.1, 0.8])]), truth)
    with pytest.raises(InputError, match="occurs twice"):
        read_coco_results(write([entry(covars=COVARS, bbox_covar=COVAR)]), truth)
    with pytest.raises(InputError, match=r"bbox_covar\[3\]: expected a list of 4, but got 3"):
        read_coco_results(write([entry(bbox_covar=[*COVAR[:3], COVAR[3][:3]])]), truth)


# --- images by name, as in ultralytics' predictions.json ---


@pytest.mark.parametrize("named", [{}, {"file_name": "nine.jpg"}, {"file_name": None}, {"file_name": ""}])
def test_names_for_image_ids(write: Write, truth: GroundTruth, named: dict[str, Any]) -> None:
    rows = [entry(image_id="nine", **named), entry(image_id=4), named | entry(image_id="nine")]
    found = read_coco_results(write(rows), truth)
    assert (found.image_ids.tolist(), found.notes) == ([9, 4, 9], ())


@pytest.mark.parametrize("name", ["nine", "nine.png", "val/nine.jpg", "val\\nine"])
def test_names_with_and_without_folder_and_ending(write: Write, truth: GroundTruth, name: str) -> None:
    assert read_coco_results(write([entry(image_id=name)]), truth).image_ids.tolist() == [9]


def test_names_go_before_image_ids(write: Write, truth: GroundTruth) -> None:
    """An id that is the number of another image, by chance, is that of the file name in ultralytics' files."""
    numbered = truth.dataset.replace(file_names=("7.jpg", "004.jpg"))
    rows = [entry(image_id=7, file_name="7.jpg"), entry(image_id=4, file_name="004.jpg"), entry(image_id=9)]
    found = read_coco_results(write(rows), numbered)
    assert found.image_ids.tolist() == [4, 9, 9]
    (note,) = found.notes
    assert note == (Note("matched-by-name", 2, name="7.jpg", number=7, other=4))


def test_an_id_that_is_not_the_number_of_the_name_stays(write: Write, truth: GroundTruth) -> None:
    """Names that count from 0, as those of a loader, do not go before ids that the ground truth has."""
    counted = truth.dataset.replace(file_names=("000001.jpg", "000002.jpg"))
    rows = [entry(image_id=4, file_name="0.jpg"), entry(image_id=9, file_name="1.jpg")]
    found = read_coco_results(write(rows), counted)
    assert (found.image_ids.tolist(), found.notes) == ([4, 9], ())


def test_names_that_tell_nothing(write: Write, truth: GroundTruth) -> None:
    """Of names that the ground truth lacks, and of one that several ids have, the ids are used."""
    rows = [entry(file_name="other.jpg"), entry(file_name="nine.jpg"), entry(image_id=4, file_name="nine.jpg")]
    found = read_coco_results(write(rows), truth)
    assert (found.image_ids.tolist(), found.notes) == ([9, 9, 4], ())
    bare = truth.dataset.replace(file_names=("", ""))
    assert read_coco_results(write(rows), bare).image_ids.tolist() == [9, 9, 4]


def test_unknown_names_are_left_out_and_counted(write: Write, truth: GroundTruth) -> None:
    path = write([entry(image_id="nine"), entry(image_id="ten"), entry(image_id="ten"), entry(image_id=1)])
    found = read_coco_results(path, truth)
    assert found.image_ids.tolist() == [9]
    assert found.notes == (Note("unknown-images", 3, images=2),)
    problems = Problems(lenient=True)
    load_detections(path, truth.dataset, problems)
    (finding,) = problems.findings
    assert (finding.kind, finding.count, finding.is_error) == ("unknown image", 2, False)
    assert str(finding.examples[0]).startswith(f"{path}: image ten: [1].image_id: image missing from the ground truth")


def test_not_one_name_is_known(write: Write, truth: GroundTruth) -> None:
    path = write([entry(), entry(image_id="ten"), entry(image_id="two")])
    with pytest.raises(InputError, match=r"\[1\]\.image_id: none of its 2 images is in the ground truth"):
        read_coco_results(path, truth)
    bare = truth.dataset.replace(file_names=("", ""))
    with pytest.raises(InputError, match="add file_name to the images of the ground truth"):
        read_coco_results(path, bare)


@pytest.mark.parametrize("image_id", ["7", 4])
def test_a_name_of_two_images(write: Write, truth: GroundTruth, image_id: str | int) -> None:
    several = truth.dataset.replace(file_names=("a/7.jpg", "b/7.jpg"))
    path = write([entry(image_id=9, file_name="b/7.jpg"), entry(image_id=image_id, file_name="7.jpg")])
    if image_id == 4:  # the id of one of them
        assert read_coco_results(path, several).image_ids.tolist() == [9, 4]
        several = several.replace(image_ids=[8, 9], file_names=("b/7.jpg", "a/7.jpg"))
        path = write([entry(image_id=7, file_name="7.jpg")])
    with pytest.raises(
        InputError, match=r"\[[01]\]\.image_id: '7.jpg' may be '[ab]/7.jpg' or '[ab]/7.jpg'; name images with"
    ):
        read_coco_results(path, several)


def test_names_need_ground_truth(write: Write, truth: GroundTruth) -> None:
    source = Source(write([entry(), entry(image_id="nine", file_name="nine.jpg")]))
    check_coco_results(source.content(), source.name)
    with pytest.raises(
        InputError, match=r"\[1\]\.image_id: expected the number of an image, but got the name 'nine.jpg'; give"
    ):
        dataset_alone(source, COCO_RESULTS, [("dog", 7)])


@pytest.mark.parametrize("number", [0, 12, 80])
def test_class_numbers_for_category_ids(write: Write, truth: GroundTruth, number: int) -> None:
    coco = Dataset(
        image_ids=[9], widths=[30], heights=[20], classes=COCO_CLASSES, category_ids=np.array(COCO_CATEGORY_IDS)
    )
    coco = coco if number != 80 else coco.replace(category_ids=np.arange(101, 181))
    with pytest.raises(InputError, match=f"category {number} is not among the 80 categories") as caught:
        read_coco_results(write([entry(category_id=number)]), coco)
    said = "1 to 90 with gaps" if number != 80 else "101 to 180"
    assert f"class numbers (0 to 79, or 1 to 80) are not category ids, which are {said} in" in str(caught.value)
    with pytest.raises(InputError, match="use the ground truth's category ids"):
        read_coco_results(write([entry(category_id=91)]), coco)

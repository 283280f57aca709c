"""Faults of the reference evaluator, each with the better behaviour. The numbers say which fault is meant.

1 streaming entry point raises        7 changes what it reads             13 moLRP silently NaN
2 division by zero                    8 drops objects without masks       14 state left from one call to the next
3 crashes on corners far outside      9 no validation of probabilities    15 installed by editing source files
4 loses probability at the border     10 plain box is no limit            16 does not start on today's NumPy
5 segmentation readers raise          11 wrong ellipses (see pictures)    17 covariances are not checked
6 pads classes and image sizes        12 worker pools, three reads        18 images paired by position only
"""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from tests.strategies import CLASSES, random_world

import probox
from probox import Convention, Detections, Evaluator, GroundTruth, InputError, evaluate
from probox.analysis.validation import validate
from probox.measures.pdq import definition
from probox.measures.pdq.kernel import heatmap as kernel_heatmap

CUP = GroundTruth.from_boxes(["cup"], {1: (60, 50)}, [1], [[20, 15, 40, 35]], [0])


def one_box(box, covariances=None, classes=("cup",), probs=((1.0,),)):
    """Return one detection in image 1."""
    given = None if covariances is None else np.array([covariances], float)
    return Detections(classes=classes, image_ids=[1], boxes=[box], label_probs=probs, covariances=given)


def spread(variance):
    """Return covariances with this variance on both axes of both corners."""
    return np.broadcast_to(np.eye(2) * variance, (2, 2, 2))


def test_q1_image_by_image_works_in_any_order():
    truth, found = random_world(21)
    evaluator = Evaluator(CLASSES)
    for image_id in reversed(truth.image_ids.tolist()):
        evaluator.update(truth.select_images([image_id]), found.select(found.image_ids == image_id))
    np.testing.assert_equal(evaluator.result().summary(), evaluate(truth, found).summary())


def test_q2_nothing_scored_is_nan_not_an_error():
    empty = GroundTruth.from_boxes(["cup"], {1: (8, 8)}, [], np.zeros((0, 4)), [])
    none = Detections(classes=["cup"], image_ids=[], boxes=[], label_probs=np.zeros((0, 1)))
    assert np.isnan(evaluate(empty, none).pdq)


@pytest.mark.parametrize("preset", ["reference", "paper"])
@pytest.mark.parametrize("shift", [-1000.0, -120.0, 120.0, 1000.0, 9e8])
@pytest.mark.parametrize("axis", [0, 1])
def test_q3_corners_far_outside_have_a_heatmap(preset, shift, axis):
    box = np.array([20.0, 15.0, 40.0, 35.0])
    box[axis::2] += shift
    heatmap = kernel_heatmap(box, spread(4.0), 60, 50, Convention.preset(preset))
    assert np.all(np.isfinite(heatmap))
    assert heatmap.max() < 1e-9  # the limit: such a box covers no pixel of the image
    np.testing.assert_allclose(
        heatmap, definition.heatmap(box, spread(4.0), 60, 50, Convention.preset(preset)), atol=1e-12
    )
    assert evaluate(CUP, one_box(box, spread(4.0)), convention=preset).fp == (1 if preset == "reference" else 0)


def test_q3_one_corner_far_outside_the_other_within():
    heatmap = kernel_heatmap([-500, 15, 40, 35], spread(4.0), 60, 50, Convention())
    assert heatmap.max() == 0.0


def test_q4_overshooting_corners_lose_probability_and_clipping_brings_it_back():
    edge = GroundTruth.from_boxes(["cup"], {1: (60, 50)}, [1], [[0, 15, 40, 35]], [0])
    over = one_box([-6, 15, 40, 35], spread(16.0))  # 1.5 sigma outside
    lost = evaluate(edge, over).summary()["foreground"]
    kept = evaluate(edge, over, convention=Convention(clip="corners")).summary()["foreground"]
    assert lost < 0.1 < 0.3 < kept


def test_q4_validation_names_the_remedy(tmp_path):
    truth, found = write_case(tmp_path, {"bbox": [-6, 15, 40, 35], "covars": spread(16.0).tolist()})
    report = validate(truth, found)
    assert any('clip="corners"' in str(example) for finding in report.warnings for example in finding.examples)


def test_q5_segmentation_is_read_boxed_and_labelled(golden_dir):
    truth = probox.read_truth(golden_dir / "probseg" / "ground_truth.json")
    found = probox.read_detections(golden_dir / "probseg" / "detections.json", truth)
    evaluation = evaluate(truth, found)
    assert evaluation.tp == 14
    assert np.isfinite(found.boxes).all()
    assert evaluation.summary()["mAP"] > 0.2  # labels are not off by one


def test_q6_classes_and_sizes_are_taken_as_they_are():
    truth = GroundTruth.from_boxes(["cup", "dog"], {1: (60, 50), 2: (7, 9)}, [1], [[20, 15, 40, 35]], [0])
    found = one_box([20, 15, 40, 35], classes=("cup", "dog"), probs=[[0.9, 0.1]])
    evaluation = evaluate(truth, found)
    assert evaluation.summary()["mAP"] == pytest.approx(1.0)
    assert evaluation.dataset.widths.tolist() == [60, 7]


def test_q7_inputs_are_never_changed():
    truth, found = random_world(8)
    first = evaluate(truth, found).summary()
    evaluate(truth, found, convention=Convention(box_truth=True, clip="corners", fixed_variance=9.0))
    np.testing.assert_equal(evaluate(truth, found).summary(), first)
    for column in (truth.boxes, truth.masks.runs, found.boxes, found.label_probs):
        with pytest.raises(ValueError, match="read-only"):
            column[...] = 0


def test_q8_objects_without_masks_use_their_boxes_and_are_counted(tmp_path):
    truth, found = write_case(tmp_path, {"bbox": [20, 15, 40, 35]})
    table = probox.read_truth(truth)
    assert len(table) == 1
    assert any("box" in note for note in map(str, table.notes))
    assert evaluate(table, probox.read_detections(found, table)).tp == 1


def test_q9_impossible_probabilities_are_rejected_by_name(tmp_path):
    truth, found = write_case(tmp_path, {"bbox": [20, 15, 40, 35], "label_probs": [5.0]})
    table = probox.read_truth(truth)
    with pytest.raises(InputError, match=r"detections\.json: image 1: detection 0: .*between 0 and 1.* got 5"):
        probox.read_detections(found, table)


def test_q10_a_plain_box_is_not_the_limit_of_a_sure_one():
    plain = kernel_heatmap([10.25, 10, 20, 20], None, 40, 30, Convention())
    limit = kernel_heatmap([10.25, 10, 20, 20], spread(1e-12), 40, 30, Convention())
    assert plain[15, 10] == pytest.approx(0.75)
    assert limit[15, 10] == 1.0


def test_q12_no_thread_outlives_a_call():
    truth, found = random_world(4)
    before = threading.active_count()
    evaluate(truth, found, threads=4)
    assert threading.active_count() == before


def test_q13_molrp_is_a_number():
    assert evaluate(CUP, one_box([21, 15, 40, 35])).summary()["moLRP"] == pytest.approx(0.1, abs=0.05)


def test_q14_a_call_leaves_nothing_behind_for_the_next():
    truth, found = random_world(9)
    alone = evaluate(truth, found, convention="challenge").summary()
    evaluate(*random_world(10), convention="challenge")
    evaluate(truth, found)
    np.testing.assert_equal(evaluate(truth, found, convention="challenge").summary(), alone)


def test_q16_only_our_own_kernel_computes():
    # The reference's speed and survival hang on private parts of SciPy; probox loads SciPy for its definition only.
    import subprocess
    import sys

    code = "import sys, probox; sys.exit(any(name.split('.')[0] == 'scipy' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("matrix", "words"),
    [([[4, 1], [2, 4]], "symmetric"), ([[4, 9], [9, 4]], "smallest eigenvalue is -5"), ([[-1, 0], [0, 4]], "is -1")],
)
def test_q17_impossible_covariances_are_rejected_and_repaired(tmp_path, matrix, words):
    truth, found = write_case(tmp_path, {"bbox": [20, 15, 40, 35], "covars": [matrix, matrix]})
    table = probox.read_truth(truth)
    with pytest.raises(InputError, match=words):
        probox.read_detections(found, table)
    repaired = probox.read_detections(found, table, repair=True)
    assert np.linalg.eigvalsh(repaired.covariances).min() >= -1e-9


def test_q18_results_are_paired_by_image_id_and_rvc1_by_count(tmp_path):
    truth, found = write_case(tmp_path, {"bbox": [20, 15, 40, 35]}, images=2)
    table = probox.read_truth(truth)
    with pytest.raises(InputError, match=r"1 .*2 images|2 images.* 1"):
        probox.read_detections(found, table)
    results = tmp_path / "results.json"
    results.write_text(json.dumps([{"image_id": 2, "category_id": 1, "bbox": [20, 15, 20, 20], "score": 0.9}]))
    assert probox.read_detections(results, table).image_ids.tolist() == [2]


def write_case(folder, detection, images=1):
    """Write COCO truth without masks, and RVC1 detections for its first image; return both paths."""
    truth = {
        "images": [{"id": i + 1, "width": 60, "height": 50, "file_name": f"{i}.jpg"} for i in range(images)],
        "categories": [{"id": 1, "name": "cup"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [20, 15, 20, 20], "area": 400, "iscrowd": 0}
        ],
    }
    entry = {"label_probs": [1.0], **detection}
    paths = folder / "truth.json", folder / "detections.json"
    paths[0].write_text(json.dumps(truth))
    paths[1].write_text(json.dumps({"classes": ["cup"], "detections": [[entry]]}))
    return paths

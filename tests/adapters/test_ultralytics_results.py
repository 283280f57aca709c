"""Ultralytics' results by their shape: the same numbers as from a COCO results file, or a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace as Of
from typing import Any

import numpy as np
import pytest
from tests.tensors import Tensor

import probox
from probox import InputError
from probox.adapters import UltralyticsPDQ, from_ultralytics
from probox.detect.ultralytics_detector import dfl_corners, letterbox, names_of, network_of
from probox.fusion import from_edge_distributions

NAMES = {0: "cup", 1: "dog", 2: "car"}


def result(rows: Any, path: str = "photos/000000000139.jpg", **others: Any) -> Of:
    data = Tensor(np.asarray(rows, np.float32))
    return Of(**({"boxes": Of(data=data), "names": NAMES, "orig_shape": (100, 200), "path": path} | others))


ROWS = [[10, 20, 50, 60, 0.75, 1], [60, 20, 90, 70, 0.5, 0]]


def test_numbers_are_those_of_a_results_file(tmp_path: Path) -> None:
    images = {139: (200, 100), 285: (200, 100)}
    truth = probox.GroundTruth.from_boxes(
        list(NAMES.values()), images, [139, 139, 285], [[11, 21, 50, 61], [59, 20, 90, 70], [5, 5, 60, 60]], [1, 2, 0]
    )
    others = [[4, 6, 61, 58, 0.875, 0], [100, 6, 161, 58, 0.25, 2]]
    found = from_ultralytics(iter([result(ROWS), result(others, "/photos/285.jpg")]))
    entries = [
        {"image_id": image, "category_id": int(row[5]) + 1, "score": row[4]}
        | {"bbox": [row[0], row[1], row[2] - row[0], row[3] - row[1]]}
        for image, rows in ((139, ROWS), (285, others))
        for row in rows
    ]
    (tmp_path / "found.json").write_text(json.dumps(entries))
    from_file = probox.read_detections(tmp_path / "found.json", truth)
    for name, column in from_file.columns().items():
        np.testing.assert_array_equal(getattr(found, name), column, err_msg=name)
    expected = probox.evaluate(truth, from_file)
    assert expected.pdq > 0.01
    assert probox.evaluate(truth, found).summary() == expected.summary()


def test_tracks_have_their_id_before_the_score() -> None:
    tracked = [[*row[:4], 17, *row[4:]] for row in ROWS]
    np.testing.assert_array_equal(from_ultralytics(result(tracked)).scores, [0.75, 0.5])
    np.testing.assert_array_equal(from_ultralytics([result(tracked)]).labels, [1, 0])


def test_folders_tell_images_of_one_name_apart() -> None:
    dataset = probox.Dataset(
        classes=["cup"], image_ids=[5, 6], widths=[9, 9], heights=[9, 9], file_names=["a/1.jpg", "b/1.jpg"]
    )
    both = [result(ROWS, "photos/b/1.jpg"), result(ROWS, "photos/a/1.jpg")]
    assert from_ultralytics(both, truth=dataset).image_ids.tolist()[:: len(ROWS)] == [6, 5]
    with pytest.raises(InputError, match=r"the ground truth has no image called '1\.jpg', or several; give image_ids"):
        from_ultralytics(result(ROWS, "photos/1.jpg"), truth=dataset)


def test_images_without_detections() -> None:
    found = from_ultralytics([result(np.zeros((0, 6))), result(ROWS, "7.png")])
    assert found.image_ids.tolist() == [7, 7]
    assert len(from_ultralytics([], classes=["cup"])) == 0


def test_ids_by_name_by_number_or_given() -> None:
    dataset = probox.Dataset(
        classes=["cup"], image_ids=[5, 6], widths=[9, 9], heights=[9, 9], file_names=["val/a.jpg", "val/139.jpg"]
    )
    both = [result(ROWS, "elsewhere/a.jpg"), result(ROWS, "C:\\photos\\139.jpg")]
    assert from_ultralytics(both, truth=dataset).image_ids.tolist() == [5, 5, 6, 6]
    assert from_ultralytics(both, image_ids=[3, 2]).image_ids.tolist() == [3, 3, 2, 2]
    assert from_ultralytics(both[0], image_ids=8).image_ids.tolist() == [8, 8]
    assert from_ultralytics(both[1], classes=["a", "b", "c"]).classes == ("a", "b", "c")


BOXLESS = {"boxes": None}
MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "photo in memory": (
        result(ROWS, "image0.jpg"),
        {},
        "a number as the file name, but got 'image0.jpg'; give image_ids.*or truth=",
    ),
    "unknown name": (
        result(ROWS),
        {"truth": probox.Dataset(classes=[], image_ids=[1], widths=[9], heights=[9], file_names=["a.jpg"])},
        "the ground truth has no image called '000000000139.jpg'",
    ),
    "the same image": ([result(ROWS), result(ROWS)], {}, "image 139: several outputs have this image id"),
    "ids of others": ([result(ROWS)], {"image_ids": [1, 2]}, "got outputs of 1 images, but 2 image ids"),
    "ids in words": (result(ROWS), {"image_ids": ["a"]}, "but got the text 'a'"),
    "oriented": (result(ROWS, obb=Of(), **BOXLESS), {}, "oriented boxes, which PDQ does not support"),
    "classified": (result(ROWS, probs=Of(), **BOXLESS), {}, "is of a classification model"),
    "no result": (Of(orig_shape=(1, 1)), {}, "result 0 to have boxes, but got SimpleNamespace"),
    "a number": (7, {}, "expected Ultralytics' results, but got int"),
    "nothing": ([], {}, "at least one result, to take class names from"),
    "other names": ([result(ROWS), result(ROWS, "1.jpg", names={0: "x", 1: "y", 2: "z"})], {}, "other class names"),
    "too few names": (result(ROWS), {"classes": ["cup"]}, "names of the model's 3 classes, but got 1"),
    "names with gaps": (result(ROWS, names={0: "cup", 7: "dog"}), {}, r"the classes 0 to 1, but got \[0, 7\]"),
    "class off by one": (result([[1, 2, 3, 4, 0.5, 3]]), {}, "from 0 to 2, but got 3"),
    "five columns": (result([[1, 2, 3, 4, 0.5]]), {}, "6 columns, or 7 with a track's id, but got 1 x 5"),
    "a percentage": (result([[1, 2, 3, 4, 50.0, 1]]), {}, "between 0 and 1"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    results, options, message = MISTAKES[name]
    with pytest.raises(InputError, match=message):
        from_ultralytics(results, **options)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("yolo11n.pt", "an Ultralytics model, but got str"),
        (Of(model="yolo11n.onnx"), "yolo11n.onnx is an exported model"),
        (Of(model=[Of()], eval=lambda: None), "ends in SimpleNamespace"),
        (Of(model=[Of(ne=1, cv4=[])], eval=lambda: None), "oriented boxes"),
        (Of(model=[Of(reg_max=16, stride=(8,), cv2=None)], eval=lambda: None), "load the model again, without fuse"),
    ],
)
def test_models_without_candidates_are_refused(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        network_of(model)
    assert names_of(["cup", "dog"]) == ("cup", "dog")


def test_edge_distributions_are_read_as_everywhere() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5, 4, 16)).astype(np.float32)
    cells, strides = rng.integers(0, 8, (5, 2)).astype(np.float64), np.array([8.0, 8, 16, 16, 32])
    boxes, covariances = dfl_corners(logits, cells, strides)
    expected = from_edge_distributions(
        logits, (cells + 0.5) * strides[:, None], strides, np.ones((5, 1)), classes=["cup"], logits=True
    )
    np.testing.assert_allclose(boxes, expected.boxes, rtol=1e-5)
    np.testing.assert_allclose(covariances, expected.covariances, rtol=1e-5)


@pytest.mark.parametrize("size", [(64, 64), (64, 50), (33, 64), (64, 1)])
def test_images_of_the_inputs_size_are_only_surrounded(size: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    canvas, placement = letterbox(image, (64, 64), 32)
    left, top = (int(offset) for offset in placement.offset)
    assert placement.scale == (1.0, 1.0)
    assert all(side % 32 == 0 for side in canvas.shape[:2])
    np.testing.assert_array_equal(canvas[top : top + size[1], left : left + size[0]], image)
    assert (canvas.sum() - image.sum(dtype=np.int64)) == 114 * 3 * (
        canvas.shape[0] * canvas.shape[1] - size[0] * size[1]
    )
    rest = canvas.shape[0] - size[1]
    assert top == rest // 2  # the odd pixel lies below


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"uncertainty": "mc-dropout"}, "several passes, and a validation makes one"),
        ({"uncertainty": "dfl"}, "expected uncertainty to be one of"),
        ({"score_threshold": 25}, "score_threshold between 0 and 1"),
        ({"log": ["pdq"]}, "unknown number 'pdq'; use one of PDQ"),
        ({"preset": "papers"}, "preset"),
    ],
)
def test_what_a_callback_cannot_do_is_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        UltralyticsPDQ(**options)


def test_a_callback_needs_a_model() -> None:
    with pytest.raises(InputError, match="Ultralytics model, but got str"):
        UltralyticsPDQ().attach("yolo11n.pt")


def test_columns_of_results_stay_in_their_order() -> None:
    """Rows of results.csv are written in the order of the keys, whether an epoch was validated or not."""
    trainer = Of(metrics={"metrics/precision(B)": 0, "metrics/mAP50(B)": 0, "val/box_loss": 0, "val/cls_loss": 0})
    UltralyticsPDQ(log=("PDQ", "label")).on_pretrain_routine_end(trainer)
    assert list(trainer.metrics) == [
        "metrics/precision(B)", "metrics/mAP50(B)", "metrics/PDQ", "metrics/label", "val/box_loss", "val/cls_loss"
    ]  # fmt: skip
    UltralyticsPDQ().on_pretrain_routine_end(Of(metrics=None))  # a process that writes nothing


def test_a_validators_methods_may_be_of_any_kind() -> None:
    """Others may have put partial functions there, which are no callbacks of ours."""
    validator = Of(postprocess=partial(int, "7"), update_metrics=list, gather_stats=list, get_stats=partial(dict, a=1))
    first, second = UltralyticsPDQ(), UltralyticsPDQ(score_threshold=0.5)
    for _ in range(3):  # epochs
        for callback in (first, second):
            callback.on_val_start(validator)
    around = validator.get_stats
    assert (around.watched_by, around.original.watched_by) == (second, first)
    assert around.original.original() == {"a": 1}


def test_a_lightning_callback_needs_lightning() -> None:
    """It is not imported for it: whoever trains with it has."""
    code = (
        "import sys, probox.adapters as a, probox\n"
        "try: a.lightning_callback()\n"
        "except probox.InputError as error: print(error)\n"
        "print(*{'torch', 'lightning', 'ultralytics', 'cv2'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split("\n") == ["Lightning is not imported; import lightning first", "", ""]


def test_masks_of_a_validation_are_noted() -> None:
    watched = dict.fromkeys(("postprocess", "gather_stats"), None) | {"update_metrics": lambda *_: None}
    validator = Of(**watched, get_stats=dict, names={0: "cup"}, dataloader=Of())
    batch = {
        "img": np.zeros((1, 3, 64, 64)), "batch_idx": [0], "bboxes": [[0.5, 0.5, 0.25, 0.25]], "cls": [[0]],
        "ratio_pad": [((1.0, 1.0), (0, 0))], "ori_shape": [(64, 64)], "im_file": ["7.jpg"],
    }  # fmt: skip
    prediction = {"bboxes": [[24.0, 24, 40, 40]], "conf": [0.9], "cls": [0]}
    for masks, codes in ((False, []), (True, ["masks-not-validated"])):
        pdq = UltralyticsPDQ()
        pdq.on_val_start(validator)
        more = {"masks": np.ones((1, 16, 16))} if masks else {}
        validator.update_metrics([prediction | more], batch | more)
        assert validator.get_stats()["metrics/PDQ"] > 0.5
        assert pdq.result is not None
        assert [note.code for note in pdq.result.input_notes] == codes

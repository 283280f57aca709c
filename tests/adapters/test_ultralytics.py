"""Real Ultralytics models with random weights: our candidates give its own predictions, and its trainings log PDQ."""

from __future__ import annotations

import importlib
import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from examples import ultralytics_callback as example
from tests import frameworks
from tests.amounts import others_slow
from tests.docs.snippets import run_section

import probox
from probox import InputError
from probox.adapters import UltralyticsDetector, UltralyticsPDQ, from_ultralytics
from probox.detect import Dropout, Options, detect, detect_images, find_images, read_image
from probox.detect.families.base import corners_of_centres, grid
from probox.detect.ultralytics_detector import dfl_corners, letterbox

torch: Any = None  # loaded when the first test asks, so that collecting tests stays quick
ultralytics: Any = None
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # frameworks warn of their own affairs
CLASSES = ("cup", "dog", "car")
SIDE = 128


@pytest.fixture(autouse=True, scope="module")
def _frameworks() -> None:
    global torch, ultralytics
    torch, ultralytics = frameworks.torch(), frameworks.ultralytics()


@pytest.fixture(autouse=True)
def _one_thread(_frameworks: None) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


def image_of(width: int, height: int) -> np.ndarray:
    from PIL import Image

    coarse = np.random.default_rng(1).integers(0, 255, (8, 9, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


IMAGE = image_of(150, 110)


def random_model(config: str, kind: str = "DetectionModel") -> Any:
    model = ultralytics.YOLO(config, verbose=False)
    tasks = importlib.import_module("ultralytics.nn.tasks")
    network = getattr(tasks, kind)(config, nc=len(CLASSES), verbose=False)
    network.names = dict(enumerate(CLASSES))
    model.model = network
    generator = torch.Generator().manual_seed(1)
    for name, parameter in network.named_parameters():
        if parameter.dim() > 1 and ".dfl." not in name:  # which takes means
            parameter.data = torch.randn(parameter.shape, generator=generator) * (2.0 / parameter[0].numel()) ** 0.5
    head = network.model[-1]
    for name, spread in (("cv2", 2.0), ("cv3", 1.5), ("one2one_cv2", 2.0), ("one2one_cv3", 1.5)):
        for layers in getattr(head, name, None) or ():
            layers.register_forward_hook(
                lambda _, __, output, s=spread: s * torch.nn.functional.layer_norm(output, output.shape[1:])
            )
    return model


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    torch.set_num_threads(1)
    return {name: random_model(f"{name}.yaml") for name in ("yolov8n", "yolo11n", "yolo26n")}


@pytest.mark.parametrize("name", others_slow(["yolov8n", "yolo11n", "yolo26n"]))
@pytest.mark.parametrize("size", others_slow([(150, 110), (70, 97)]))
def test_suppressing_our_candidates_gives_its_own_predictions(
    models: dict[str, Any], name: str, size: tuple[int, int]
) -> None:
    model, image = models[name], image_of(*size)
    expected = model.predict(image[:, :, ::-1], conf=0.7, iou=0.5, imgsz=SIDE, max_det=3000, verbose=False)[0]
    rows = expected.boxes.data.numpy()
    rows = rows[(rows[:, 2] > rows[:, 0]) & (rows[:, 3] > rows[:, 1])]  # wholly outside, moved onto the border
    detector = UltralyticsDetector(model, imgsz=SIDE)
    found = detect(detector, [image], [5], Options(score_threshold=0.7, nms_iou=0.5, max_detections=3000))[0]
    assert len(found) == len(rows) > 10
    assert found.classes == CLASSES
    np.testing.assert_allclose(found.scores, rows[:, 4], atol=2e-4)
    np.testing.assert_allclose(found.boxes, rows[:, :4], atol=2e-2)
    np.testing.assert_array_equal(found.labels, rows[:, 5])
    if name != "yolo26n":  # whose random boxes may be turned inside out
        top = from_ultralytics(expected, image_ids=5)  # its results, which keep one label
        np.testing.assert_array_equal(top.boxes, expected.boxes.xyxy.numpy().astype(np.float64))
        np.testing.assert_array_equal(top.labels, expected.boxes.cls.numpy())
        np.testing.assert_array_equal(top.scores, expected.boxes.conf.numpy().astype(np.float64))
    assert not model.model.training


def test_masks_are_its_own() -> None:
    model, image = random_model("yolov8n-seg.yaml", "SegmentationModel"), image_of(SIDE, 96)
    expected = model.predict(image[:, :, ::-1], conf=0.7, iou=0.5, imgsz=SIDE, max_det=20, verbose=False)[0]
    options = Options(score_threshold=0.7, nms_iou=0.5, max_detections=20, uncertainty="masks")
    found = detect(UltralyticsDetector(model, imgsz=SIDE), [image], [5], options)[0]
    own = from_ultralytics(expected, image_ids=5)
    for row, box in enumerate(own.boxes):
        same = (np.abs(found.boxes - box) < 0.01).all(axis=1) & (np.abs(found.scores - own.scores[row]) < 2e-4)
        (near,) = np.flatnonzero(same)
        heat = np.asarray(found.heatmaps[near], np.float64)
        different = (heat > 0.5) != own.masks.to_array(row, 96, SIDE)
        assert (np.abs(heat[different] - 0.5) < 2e-3).all()
    assert len(own) > 10
    assert own.masks.pixels.max() > 100


def test_what_end_to_end_models_were_is_restored(models: dict[str, Any]) -> None:
    model = models["yolo26n"]
    head = model.model.model[-1]
    before = head.end2end
    try:
        for choice in (True, False):
            head.end2end = choice
            detector = UltralyticsDetector(model, imgsz=SIDE)
            counts = [len(candidates) for candidates in detector.candidates([IMAGE])]
            assert head.end2end is choice
            assert counts == [len(grid((SIDE, 96), (8, 16, 32))[0])]
    finally:
        head.end2end = before
    with pytest.raises(InputError, match=r"reg_max = 1 .* predicts no edge distributions; use nms-clusters"):
        detect(detector, [IMAGE], [5], Options(uncertainty="edge-distribution"))


@pytest.mark.parametrize("name", ["yolov8n", "yolo11n"])
def test_the_mean_of_edge_distributions_is_the_box(models: dict[str, Any], name: str) -> None:
    network = models[name].model.eval()
    canvas, placement = letterbox(IMAGE, (SIDE, SIDE), 32)
    with torch.no_grad():
        decoded, raw = network(torch.from_numpy(canvas.transpose(2, 0, 1).copy())[None].float() / 255)
    logits = raw["boxes"][0].numpy().reshape(4, 16, -1).transpose(2, 0, 1)
    cells, strides = grid((canvas.shape[1], canvas.shape[0]), (8, 16, 32))
    boxes, covariances = dfl_corners(logits, cells, strides)
    np.testing.assert_allclose(boxes, corners_of_centres(decoded[0, :4].T.numpy()), atol=1e-3)
    # The definition: variance of the bins' numbers, times the stride, in pixels of the photo.
    probs = torch.softmax(torch.from_numpy(logits[7, 2]).double(), 0).numpy()
    var = (probs * (np.arange(16) - probs @ np.arange(16)) ** 2).sum() * strides[7] ** 2
    assert covariances[7, 1, 0, 0] == pytest.approx(var, rel=1e-4)
    detector = UltralyticsDetector(models[name], imgsz=SIDE)
    (own,) = detector.candidates([IMAGE])
    np.testing.assert_allclose(own.covariances[7, 1, 0, 0], var / placement.scale[0] ** 2, rtol=1e-4)
    np.testing.assert_allclose(own.scores, decoded[0, 4:].T.numpy(), atol=2e-3)


@pytest.mark.parametrize("uncertainty", ["nms-clusters", "edge-distribution", "mc-dropout", "flip-scale"])
def test_every_way_to_be_unsure_works_on_photos(models: dict[str, Any], uncertainty: str, tmp_path: Path) -> None:
    from PIL import Image

    for number, size in ((3, (150, 110)), (7, (64, 64))):
        Image.fromarray(image_of(*size)).save(tmp_path / f"{number}.png")
    detector = UltralyticsDetector(models["yolo11n"], imgsz=64, dropout=Dropout(rate=0.05), batch=2)
    options = Options(uncertainty=uncertainty, score_threshold=0.3, passes=3)  # type: ignore[arg-type]
    out = tmp_path / "found.coco.json"
    run = detect_images(detector, find_images(tmp_path), out, options)
    assert out.exists()
    assert set(run.found.image_ids.tolist()) == {3, 7}
    assert (run.found.covariances[:, [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]] > 0).all()
    assert ((run.found.label_probs > 0).sum(axis=1) > 1).any()


def test_passes_differ_and_a_seed_repeats_them(models: dict[str, Any]) -> None:
    def passes(seed: int) -> list[np.ndarray]:
        detector = UltralyticsDetector(models["yolov8n"], imgsz=64, dropout=Dropout(rate=0.3, seed=seed))
        assert not any(".dfl." in name for name in detector.dropout_layers)
        return [found.scores for found in detector.sample([IMAGE], 2, [0])[0]]

    first, again, other = passes(1), passes(1), passes(2)
    assert not np.array_equal(first[0], first[1])
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    with pytest.raises(InputError, match="make it with dropout"):
        UltralyticsDetector(models["yolov8n"]).sample([IMAGE], 2, [0])


def test_batches_do_not_matter(models: dict[str, Any]) -> None:
    images = [IMAGE, image_of(64, 64), IMAGE[:, ::-1].copy(), image_of(150, 110)]
    alone = UltralyticsDetector(models["yolov8n"], imgsz=64).candidates(images)
    together = UltralyticsDetector(models["yolov8n"], imgsz=64, batch=4).candidates(images)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one.boxes, other.boxes, rtol=1e-3, atol=0.05)
    np.testing.assert_array_equal(alone[0].boxes, alone[3].boxes)


TINY_RTDETR = """
nc: 3
backbone:
  - [-1, 1, Conv, [16, 3, 4]]
  - [-1, 1, Conv, [16, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
head:
  - [[1, 2], 1, RTDETRDecoder, [nc, 32, 20, 4, 4, 2]]
"""


def test_rt_detr(tmp_path: Path) -> None:
    config = tmp_path / "rtdetr-tiny.yaml"
    config.write_text(TINY_RTDETR)
    model = ultralytics.RTDETR(str(config))
    for parameter in model.model.parameters():
        parameter.data += torch.randn(parameter.shape) * 0.2
    expected = model.predict(IMAGE[:, :, ::-1], conf=0.3, imgsz=64, verbose=False)[0].boxes.data.numpy()
    detector = UltralyticsDetector(model, imgsz=64)
    found = detect(detector, [IMAGE], [5], Options(score_threshold=0.3, max_detections=20))[0]
    expected = np.concatenate([np.clip(expected[:, :4], 0, [150, 110, 150, 110]), expected[:, 4:]], axis=1)
    assert len(found) == len(expected) > 5
    np.testing.assert_allclose(found.scores, expected[:, 4], atol=1e-5)
    np.testing.assert_allclose(found.boxes, expected[:, :4], atol=1e-2)
    np.testing.assert_array_equal(found.labels, expected[:, 5])
    with pytest.raises(InputError, match="no suppressed candidates to cluster"):
        detect(detector, [IMAGE], [5], Options(uncertainty="nms-clusters"))


def test_other_models_and_arguments_are_refused(models: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="ends in Classify"):
        UltralyticsDetector(ultralytics.YOLO("yolov8n-cls.yaml"))
    with pytest.raises(InputError, match="oriented"):
        UltralyticsDetector(ultralytics.YOLO("yolov8n-obb.yaml"))
    with pytest.raises(InputError, match="expected 3 class names"):
        UltralyticsDetector(models["yolov8n"], classes=["cup"])
    with pytest.raises(InputError, match="imgsz"):
        UltralyticsDetector(models["yolov8n"], imgsz="640")  # type: ignore[arg-type]
    assert UltralyticsDetector(models["yolov8n"].model, classes=["a", "b", "c"], imgsz=(100, 60))._size == (64, 128)


def make_spy(noted: tuple[list[Any], list[Any]]) -> Any:
    base: Any = importlib.import_module("ultralytics.models.yolo.detect").DetectionValidator

    class Spy(base):  # type: ignore[misc]
        def update_metrics(self, preds: Any, batch: Any) -> None:
            for row, found in enumerate(preds):
                place = self._prepare_batch(row, batch)
                placed = self.scale_preds({name: value.clone() for name, value in found.items()}, place)
                noted[0].append(int(Path(place["im_file"]).stem))
                noted[1].append(placed)
            super().update_metrics(preds, batch)

    return Spy


def truth_of(folder: Path) -> probox.GroundTruth:
    rows = [
        (int(path.stem), *map(float, line.split()))
        for path in sorted((folder / "labels" / "val").glob("*.txt"))
        for line in path.read_text().splitlines()
    ]
    table = np.array(rows)
    centres = table[:, 2:] * example.SIDE
    boxes = np.hstack([centres[:, :2] - centres[:, 2:] / 2, centres[:, :2] + centres[:, 2:] / 2])
    np.testing.assert_allclose(boxes, boxes.round(), atol=1e-4)  # squares of whole pixels were drawn
    boxes = boxes.round()
    images = {int(path.stem): (example.SIDE,) * 2 for path in (folder / "images" / "val").glob("*.png")}
    return probox.GroundTruth.from_boxes(
        example.CLASSES, images, table[:, 0].astype(int).tolist(), boxes, table[:, 1].astype(int).tolist()
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, UltralyticsPDQ]:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("training")
    model, pdq = example.train(folder, score_threshold=0.001)
    return folder, model, pdq


@pytest.mark.slow
def test_a_training_logs_pdq_in_every_epoch(trained: tuple[Path, Any, UltralyticsPDQ]) -> None:
    folder, model, pdq = trained
    heading, *rows = (line.split(",") for line in (folder / "run" / "results.csv").read_text().splitlines())
    column = heading.index("metrics/PDQ")
    assert len(rows) == 2
    assert len(pdq.history) == 3  # and the best weights in the end
    logged = [float(row[column]) for row in rows]
    assert logged == pytest.approx([entry["PDQ"] for entry in pdq.history[:2]], abs=1e-5)
    assert model.trainer.metrics["metrics/PDQ"] == pytest.approx(pdq.history[-1]["PDQ"], abs=1e-5)
    assert len(pdq.result.dataset) == 8
    assert pdq.result.classes == example.CLASSES


@pytest.mark.slow
def test_logged_numbers_are_those_of_its_predictions(trained: tuple[Path, Any, UltralyticsPDQ]) -> None:
    folder, _, _ = trained
    twin = ultralytics.YOLO(folder / "run" / "weights" / "best.pt")
    pdq = UltralyticsPDQ(score_threshold=0.002).attach(twin)
    noted: tuple[list[Any], list[Any]] = ([], [])
    stats = twin.val(
        validator=make_spy(noted),
        data=str(folder / "data.yaml"),
        imgsz=example.SIDE,
        plots=False,
        verbose=False,
        workers=0,
        batch=3,
    )
    assert stats is not None
    kept = [(own["conf"] > 0.002) & (own["bboxes"][:, 2:] > own["bboxes"][:, :2]).all(1) for own in noted[1]]
    found = probox.Detections.from_scores(
        torch.cat([own["bboxes"][rows] for own, rows in zip(noted[1], kept, strict=True)]),
        torch.cat([own["conf"][rows] for own, rows in zip(noted[1], kept, strict=True)]),
        torch.cat([own["cls"][rows] for own, rows in zip(noted[1], kept, strict=True)]).long(),
        classes=example.CLASSES,
        image_ids=np.repeat(noted[0], [int(rows.sum()) for rows in kept]),
    )
    expected = probox.evaluate(truth_of(folder), found).summary()
    assert expected["TP"] > 0
    assert expected["PDQ"] > 1e-5
    assert pdq.history[-1] == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
def test_a_model_may_have_several_callbacks(trained: tuple[Path, Any, UltralyticsPDQ]) -> None:
    _, _, pdq = trained
    validator = SimpleNamespace(**dict.fromkeys(("postprocess", "update_metrics", "gather_stats", "get_stats"), list))
    other = UltralyticsPDQ(score_threshold=0.5)
    for _ in range(3):  # epochs
        for callback in (pdq, other):
            callback.on_val_start(validator)
    around = validator.get_stats
    assert (around.watched_by, around.original.watched_by, around.original.original) == (other, pdq, list)


@pytest.mark.slow
def test_a_head_says_more_than_its_predictions(trained: tuple[Path, Any, UltralyticsPDQ]) -> None:
    folder, _, _ = trained
    weights = folder / "run" / "weights" / "best.pt"
    options = Options(score_threshold=0.002, uncertainty="edge-distribution", max_detections=300)
    files = find_images(folder / "images" / "val")
    detector = UltralyticsDetector(ultralytics.YOLO(weights), imgsz=example.SIDE)
    parts = detect(detector, [read_image(file.path) for file in files], [file.image_id for file in files], options)
    expected = probox.evaluate(truth_of(folder), probox.Detections.concatenate(parts)).summary()
    twin = ultralytics.YOLO(weights)
    pdq = UltralyticsPDQ(score_threshold=0.002, uncertainty="edge-distribution").attach(twin)
    twin.val(data=str(folder / "data.yaml"), imgsz=example.SIDE, plots=False, verbose=False, workers=0, rect=False)
    assert pdq.result.detections.covariances.any()
    assert pdq.history[-1]["PDQ"] == pytest.approx(expected["PDQ"], rel=1e-3)
    assert expected["PDQ"] > 1e-6


@pytest.mark.slow
def test_validation_without_detections(trained: tuple[Path, Any, UltralyticsPDQ]) -> None:
    folder, _, _ = trained
    twin = ultralytics.YOLO(folder / "run" / "weights" / "best.pt")
    pdq = UltralyticsPDQ(score_threshold=0.9).attach(twin)
    twin.val(data=str(folder / "data.yaml"), imgsz=example.SIDE, plots=False, verbose=False, workers=0)
    assert pdq.history[-1]["PDQ"] == 0.0
    assert pdq.history[-1]["FN"] > 0
    assert pickle.loads(pickle.dumps(UltralyticsPDQ(score_threshold=0.1).callbacks())).keys() == pdq.callbacks().keys()


def test_the_snippets_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_section("ultralytics-model", tmp_path, monkeypatch)


def test_predictions_json_of_a_custom_data_set(tmp_path: Path) -> None:
    """Image ids are stems, numbers if they can be: what its validator writes is read by file name."""
    detect = importlib.import_module("ultralytics.models.yolo.detect")
    validator = SimpleNamespace(jdict=[], class_map=[1, 2, 3])
    box = torch.tensor([[10.0, 20, 50, 60]])
    names = ("img_001.jpg", "0002.jpg")
    for at, name in enumerate(names):
        found = {"bboxes": box + at, "conf": torch.tensor([0.75]), "cls": torch.tensor([1.0])}
        detect.DetectionValidator.pred_to_json(validator, found, {"im_file": f"data/images/{name}"})
    assert [entry["image_id"] for entry in validator.jdict] == ["img_001", 2]
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(validator.jdict))
    dataset = probox.Dataset(
        image_ids=[1, 2], widths=[200, 200], heights=[100, 100], classes=CLASSES, file_names=names[::-1]
    )
    table = probox.read_detections(path, dataset)
    assert (table.image_ids.tolist(), table.labels.tolist()) == ([2, 1], [1, 1])
    assert table.boxes.tolist() == [[10, 20, 50, 60], [11, 21, 51, 61]]
    assert (table.notes[0].code, table.notes[0].count) == ("matched-by-name", 1)

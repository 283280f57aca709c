"""The same scene gives the same numbers, to the bit, whatever files it comes from."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import probox
from probox import Evaluation
from probox.notes import Note

from . import world


def score_first(scene: world.Scene, folder: Path) -> tuple[Path, Path]:
    """Write predictions in the order that is not ultralytics', and say so: so few lines need not tell it."""
    truth, found = world.yolo(scene, folder, order="score-first")
    return truth, Path(f"{found}:score-first")


Writer = Callable[[world.Scene, Path], tuple[Path, Path]]
WRITERS: dict[str, Writer] = {
    "yolo": world.yolo,
    "yolo-score-first": score_first,
    "voc": world.voc,
    "kitti": world.kitti,
}
ALL = WRITERS | {"openimages": world.open_images}


def evaluated(files: tuple[Path, Path], **options: object) -> Evaluation:
    truth = probox.read_truth(files[0])
    return probox.evaluate(truth, probox.read_detections(files[1], truth), threads=1, **options)


def numbers(result: Evaluation) -> str:
    """Return all that is measured, NaN included."""
    return str([result.summary(), result.per_class(), result.per_size(), result.per_image()])


def in_order(result: Evaluation) -> np.ndarray:
    """Return image rows, scores and label probabilities of all detections, sorted."""
    table = result.detections
    rows = np.concatenate([table.image_rows[:, None], table.scores[:, None], table.label_probs], axis=1)
    return rows[np.lexsort(rows.T[::-1])]


@pytest.mark.parametrize("name", ALL)
def test_as_coco(name: str, tmp_path: Path) -> None:
    scene = world.make_scene(empty=name != "openimages")
    plain = evaluated(world.coco(scene, tmp_path / "coco"))
    result = evaluated(ALL[name](scene, tmp_path / name))
    assert 0.05 < result.pdq < 0.9
    assert numbers(result) == numbers(plain)
    np.testing.assert_array_equal(result.dataset.image_ids, plain.dataset.image_ids)
    assert result.dataset.classes == plain.dataset.classes
    np.testing.assert_array_equal(in_order(result), in_order(plain))
    np.testing.assert_array_equal(result.objects.boxes, plain.objects.boxes)


@pytest.mark.parametrize("name", ["voc", "openimages"])
def test_crowds_as_coco(name: str, tmp_path: Path) -> None:
    """Difficult objects and groups are crowds: mAP and LRP ignore them, PDQ does not."""
    scene = world.make_scene(crowd=True, empty=False)
    coco = evaluated(world.coco(scene, tmp_path / "coco"))
    result = evaluated(ALL[name](scene, tmp_path / name))
    assert numbers(result) == numbers(coco)
    assert int(result.objects.crowd.sum()) == 6
    assert result.summary()["TP"] + result.summary()["FN"] == len(scene.objects)
    code = {"voc": "difficult-objects", "openimages": "groups-of-objects"}[name]
    assert Note(code, 6) in result.notes


@pytest.mark.parametrize("box_truth", [False, True])
def test_dont_care_regions(tmp_path: Path, box_truth: bool) -> None:
    """mAP and LRP are those of a COCO file with a crowd of every class; PDQ is that of one without any."""
    scene = world.make_scene(crowd=True)
    result = evaluated(world.kitti(scene, tmp_path / "kitti"), convention=probox.Convention(box_truth=box_truth))
    none = world.Scene(scene.images, [entry for entry in scene.objects if not entry[3]], scene.detections)
    every = [(stem, label, box, True) for stem, _, box, crowd in scene.objects if crowd for label in world.CLASSES]
    without = evaluated(world.coco(none, tmp_path / "none"))
    crowds = evaluated(world.coco(world.Scene(scene.images, none.objects + every, scene.detections), tmp_path / "all"))
    for key, value in result.summary().items():
        same = crowds if key.startswith(("mAP", "AP", "mo")) else without
        assert str(value) == str(same.summary()[key]), key
    assert without.summary()["mAP"] != crowds.summary()["mAP"]
    assert any("5 DontCare regions" in note for note in tuple(map(str, result.notes)))
    # They are no objects, neither to mAP and LRP nor to PDQ, though the table has them once for each class.
    assert len(result.objects) == len(none.objects) + len(every)
    assert not any("left out of PDQ" in str(note) for note in (*result.notes, *result.select_images([40, 47]).notes))
    for of in ("per_class", "per_size"):
        assert all(
            own["objects"] == getattr(without, of)()[name]["objects"] for name, own in getattr(result, of)().items()
        )
    np.testing.assert_array_equal(result.per_image().columns["objects"], without.per_image().columns["objects"])
    counted = f"{len(none.objects)} objects"
    assert counted in repr(result)
    assert counted in repr(probox.read_truth(tmp_path / "kitti" / "training"))
    assert counted in result._repr_html_()
    # Crowds that have pixels are objects of PDQ, and counted as such.
    assert sum(own["objects"] for own in crowds.per_class().values()) == len(none.objects) + len(every)


def test_names_that_are_no_numbers(tmp_path: Path) -> None:
    """Images are counted from 1 in the order of their names, in every format."""
    scene = world.make_scene(stem="photo-{}", empty=False)
    coco = numbers(evaluated(world.coco(scene, tmp_path / "coco")))
    for name, write in ALL.items():
        result = evaluated(write(scene, tmp_path / name))
        assert result.dataset.image_ids.tolist() == [1, 2, 3, 4, 5, 6]
        assert numbers(result) == coco


def test_any_detections_go_with_any_truth(tmp_path: Path) -> None:
    """Names of images and classes are what they have in common; YOLO's class numbers count the truth's classes."""
    scene = world.make_scene(images=3, empty=False)
    files = {name: write(scene, tmp_path / name) for name, write in ALL.items()}
    files["coco"] = world.coco(scene, tmp_path / "coco")
    plain = evaluated(files["coco"])
    expected = plain.summary()
    for truth, _ in files.values():
        there = probox.read_truth(truth)
        for _, found in files.values():
            result = probox.evaluate(there, probox.read_detections(found, there), threads=1)
            assert str(result.summary()) == str(expected), (truth, found)
            np.testing.assert_array_equal(in_order(result), in_order(plain))


@pytest.mark.parametrize("name", ["coco", *ALL])
def test_byte_order_marks_are_skipped(name: str, tmp_path: Path) -> None:
    scene = world.make_scene(empty=name != "openimages")
    files = ALL.get(name, world.coco)(scene, tmp_path)
    plain = numbers(evaluated(files))
    texts = [path for path in tmp_path.rglob("*") if path.suffix in {".json", ".yaml", ".txt", ".xml", ".csv"}]
    assert len(texts) >= 2
    for path in texts:
        path.write_bytes(BOM_UTF8 + path.read_bytes())
    assert numbers(evaluated(files)) == plain

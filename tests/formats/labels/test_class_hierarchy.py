"""Objects and detections that count for the superclasses of their class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.in_process import run
from tests.formats.labels import world
from tests.formats.labels.test_image_labels import HEADING
from tests.formats.labels.world import CODES, put

import probox
from probox.errors import InputError
from probox.formats import expand_classes
from probox.measures.boxes import average_precision, lrp
from probox.notes import Note

SCENE = world.make_scene(empty=False, crowd=True)
ABOVE = {"cup": ["tableware"], "dog": ["pet", "animal"], "car": []}


def node(name: str, *below: Any) -> dict[str, Any]:
    return {"LabelName": CODES.get(name, name), **({"Subcategory": [*below]} if below else {})}


def hierarchy(folder: Path, *classes: Any) -> Path:
    """Write a hierarchy: cup is tableware; dog is a pet, and both are animals; car is not below a class."""
    whole = (node("tableware", node("cup")), node("animal", node("pet", node("dog"))), node("car"))
    parts = {**node("wheel"), "Part": [node("car")]}
    return put(folder / "hierarchy.json", json.dumps(node("entity", *(classes or (*whole, parts)))))


def expanded_by_hand() -> world.Scene:
    """Return the scene with a copy of each object and detection for each superclass."""

    def copies(rows: list[Any]) -> list[Any]:
        return [(stem, one, *rest) for stem, name, *rest in rows for one in (name, *ABOVE[name])]

    return world.Scene(SCENE.images, copies(SCENE.objects), copies(SCENE.detections))


def test_numbers_are_those_of_files_with_a_row_for_each_superclass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = world.open_images(SCENE, tmp_path / "plain")
    monkeypatch.setattr(world, "CODES", {**CODES, "tableware": "/m/t", "pet": "/m/p", "animal": "/m/a"})
    by_hand = world.open_images(expanded_by_hand(), tmp_path / "by_hand")
    expected = probox.evaluate(*by_hand, measures="map,lrp")
    file = hierarchy(tmp_path)
    truth = expand_classes(probox.read_truth(plain[0]), file)
    found = expand_classes(probox.read_detections(plain[1], truth), file)
    assert set(truth.classes) == {*world.CLASSES, "tableware", "pet", "animal"}
    own = probox.evaluate(truth, found, measures="map,lrp")
    for name, numbers in own.per_class().items():
        theirs = expected.per_class()[name if name in world.CLASSES else world.CODES[name]]
        np.testing.assert_allclose([*numbers.values()], [*theirs.values()], atol=1e-12, err_msg=name)
    _, out, _ = run("evaluate", *plain, "--hierarchy", file, "--json")
    printed = json.loads(out)["summary"]
    assert printed["mAP"] == own.summary()["mAP"] == pytest.approx(expected.summary()["mAP"])
    assert "PDQ" not in printed
    added = len(expanded_by_hand().objects) - len(SCENE.objects)
    assert Note("class-hierarchy", added, file="hierarchy.json") in own.notes
    assert printed["mAP"] == average_precision(truth, found).map != probox.evaluate(*plain).summary()["mAP"]


def test_absent_classes_are_verified_for_their_subclasses(tmp_path: Path) -> None:
    files = world.open_images(SCENE, tmp_path)
    first, second = sorted(SCENE.images)[:2]
    file = hierarchy(tmp_path, node("car", node("cup", node("dog"))))
    lines = f"{first},x,{CODES['cup']},0\n{second},x,{CODES['dog']},0\n{second},x,{CODES['car']},1\n"
    put(tmp_path / "validation-annotations-human-imagelabels.csv", HEADING + lines)
    kept = [own for own in SCENE.objects if own[0] not in (first, second) or own[1] == "car"]
    files = world.open_images(world.Scene(SCENE.images, kept, SCENE.detections), tmp_path)
    truth = expand_classes(probox.read_truth(files[0]), file)
    lists = dict(zip(truth.dataset.file_names, truth.dataset.negatives, strict=True))
    named = {name.split(".")[0]: {truth.classes[at] for at in own} for name, own in lists.items() if own}
    assert named == {first: {"cup", "dog"}, second: {"car", "dog"}}  # of a present class, subclasses are not absent


def test_metrics_that_count_an_object_once_are_refused(tmp_path: Path) -> None:
    files = world.open_images(SCENE, tmp_path)
    code, _, err = run("evaluate", *files, "--hierarchy", hierarchy(tmp_path), "--measures", "pdq,map")
    assert code == 2
    assert "for several classes, not possible in pdq: use --measures with some of map, lrp" in " ".join(err.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "is not JSON"),
        ("[]", "expected a class with LabelName"),
        ('{"LabelName": "a", "Subcategory": 3}', "expected a class with LabelName"),
        ('{"LabelName": "a", "Subcategory": [{"LabelName": "b"}, {}]}', r"Subcategory\[1\]: expected a class"),
        ('{"LabelName": "a", "Subcategory": [{"LabelName": "b"}]}', "has none of the classes 'car'"),
    ],
)
def test_files_that_are_no_hierarchy(text: str, message: str, tmp_path: Path) -> None:
    truth = probox.read_truth(world.open_images(SCENE, tmp_path)[0])
    with pytest.raises(InputError, match=message):
        expand_classes(truth, put(tmp_path / "other.json", text))


def test_a_class_nested_in_itself_counts_once(tmp_path: Path) -> None:
    truth = probox.read_truth(world.open_images(SCENE, tmp_path)[0])
    nested = hierarchy(tmp_path, node("car", node("cup", node("car"))), node("dog"))
    cars, cups = (sum(own[1] == name for own in SCENE.objects) for name in ("car", "cup"))
    assert len(expand_classes(truth, nested).labels) == len(SCENE.objects) + cars + cups


def test_other_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        expand_classes(probox.read_truth(world.open_images(SCENE, tmp_path)[0]), tmp_path / "missing.json")
    with pytest.raises(InputError, match="expected argument `table` to be GroundTruth or Detections, but got int"):
        expand_classes(5, tmp_path)  # type: ignore[call-overload]


def test_lrp_takes_expanded_tables(tmp_path: Path) -> None:
    files = world.open_images(SCENE, tmp_path)
    truth = expand_classes(probox.read_truth(files[0]), hierarchy(tmp_path))
    found = expand_classes(probox.read_detections(files[1], truth), hierarchy(tmp_path))
    numbers = lrp(truth, found).per_class()
    assert numbers["pet"] == numbers["animal"] == numbers["dog"]

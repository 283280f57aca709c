"""Image-level labels of Open Images, in a file beside the boxes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.formats.labels import world
from tests.formats.labels.world import put

import probox
from probox.errors import InputError
from probox.measures.boxes import average_precision, box_definition
from probox.measures.boxes.matching import BoxRules
from probox.notes import Note

WHOLE = world.make_scene(empty=False)
BARE = [*WHOLE.images][::2]
"""Images without boxes of the first class, which detections have."""
SCENE = world.Scene(
    WHOLE.images,
    [own for own in WHOLE.objects if own[:2] not in {(stem, world.CLASSES[0]) for stem in BARE}],
    WHOLE.detections,
)
PRESENT = {(stem, label) for stem, label, _, _ in SCENE.objects}
HEADING = "ImageID,Source,LabelName,Confidence\n"


def labelled(
    folder: Path, pairs: set[tuple[str, str]], name: str = "validation-annotations-human-imagelabels.csv"
) -> Path:
    """Write verified labels of images; return their file."""
    lines = [f"{stem},verification,{world.CODES[label]},{at % 2}\n" for at, (stem, label) in enumerate(sorted(pairs))]
    return put(folder / name, HEADING + "".join(lines))


@pytest.mark.parametrize("labels", ["none", "half", "all"])
def test_only_verified_classes_are_evaluated(labels: str, tmp_path: Path) -> None:
    files = world.open_images(SCENE, tmp_path)
    every = {(stem, label) for stem in SCENE.images for label in world.CLASSES}
    absent = sorted(every - PRESENT)
    chosen = {"none": set(), "half": set(absent[::2]), "all": set(every)}[labels]
    checked = PRESENT | chosen
    some = world.Scene(SCENE.images, SCENE.objects, [own for own in SCENE.detections if own[:2] in checked])
    expected = probox.evaluate(*world.open_images(some, tmp_path / "some"))
    labelled(tmp_path, chosen)
    result = probox.evaluate(*files)
    assert str(result.summary()) == str(expected.summary())
    assert result.box_rules == expected.box_rules
    left = len(SCENE.detections) - len(some.detections)
    assert (left > 0) == (labels != "all")
    assert [note.count for note in result.notes if note.code == "unchecked-classes"] == ([left] if left else [])
    many = {stem for stem, _ in chosen}
    name = "validation-annotations-human-imagelabels.csv"
    assert Note("image-level-labels", len(many), total=len(SCENE.images), file=name) in result.notes
    truth = probox.read_truth(files[0])
    found = probox.read_detections(files[1], truth)
    own = average_precision(truth, found)
    definition = box_definition.coco_numbers(truth, found, BoxRules.of(probox.Convention(), truth.dataset))
    np.testing.assert_allclose(list(own.summary().values()), list(definition.values()), atol=1e-12)


@pytest.mark.parametrize(
    "name", ["train-annotations-human-imagelabels.csv", "validation-annotations-machine-imagelabels.csv", "labels.csv"]
)
def test_other_files_are_not_used(name: str, tmp_path: Path) -> None:
    files = world.open_images(SCENE, tmp_path)
    labelled(tmp_path, set(), name)
    assert probox.read_truth(files[0]).dataset.rules == "coco"


def test_the_file_of_boxable_classes_comes_first(tmp_path: Path) -> None:
    files = world.open_images(SCENE, tmp_path)
    labelled(tmp_path, set())
    labelled(tmp_path, PRESENT, "validation-annotations-human-imagelabels-boxable.csv")
    assert any(probox.read_truth(files[0]).dataset.negatives)


def test_unknown_images_and_classes_are_ignored_and_broken_lines_refused(tmp_path: Path) -> None:
    files = world.open_images(SCENE, tmp_path)
    file = labelled(tmp_path, set())
    stem = next(iter(SCENE.images))
    put(file, HEADING + f"elsewhere,x,{world.CODES['cup']},1\n{stem},x,/m/unknown,1\n")
    assert not any(probox.read_truth(files[0]).dataset.negatives)
    put(file, HEADING + f"{stem},x\n")
    with pytest.raises(InputError, match=r"imagelabels\.csv: line 2: expected 4 columns"):
        probox.read_truth(files[0])

"""supervision's detections and key points: the real ones where it is installed, and objects of the same shape."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests import frameworks

from probox import Detections, InputError
from probox.adapters import from_supervision, to_supervision, to_supervision_key_points
from probox.notes import InputWarning

CLASSES = ("cup", "dog", "cat")


def table(n: int = 12, seed: int = 0) -> Detections:
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 200, (n, 2))
    roots = rng.normal(0, 3, (n, 2, 2, 2))
    return Detections(
        classes=CLASSES,
        image_ids=rng.integers(1, 4, n),
        boxes=np.concatenate([low, low + rng.uniform(20, 90, (n, 2))], axis=1),
        label_probs=rng.dirichlet([0.5, 0.5, 0.5, 0.5], n)[:, :3],
        covariances=roots @ roots.swapaxes(-1, -2),
    )


def held(**changes: Any) -> SimpleNamespace:
    """Return an object of the shape of supervision's detections, as ultralytics' results become."""
    made = {
        "xyxy": np.array([[10.0, 20, 50, 60], [5, 5, 30, 40]], np.float32),
        "confidence": np.array([0.8, 0.25], np.float32),
        "class_id": np.array([1, 2]),
        "data": {"class_name": np.array(["dog", "cat"])},
        "metadata": {},
    }
    return SimpleNamespace(**made | changes)


def assert_same(one: Detections, other: Detections) -> None:
    assert one.classes == other.classes
    for name in ("image_ids", "boxes", "label_probs", "covariances", "labels", "scores"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_there_and_back_again_through_all_that_supervision_does() -> None:
    library = frameworks.supervision()
    found = table()
    held = to_supervision(found)
    assert isinstance(held, library.Detections)
    assert held.data["class_name"].tolist() == [CLASSES[label] for label in found.labels]
    assert_same(from_supervision(held), found)
    sure = found.scores > 0.5
    assert 0 < sure.sum() < len(found)
    assert_same(from_supervision(held[held.confidence > 0.5]), found[sure])
    parts = [to_supervision(found, image_id) for image_id in (1, 2, 3)]
    merged = library.Detections.merge(parts)
    by_image = Detections.concatenate([part for _, part in found.by_image()])
    assert_same(from_supervision(merged), by_image)
    assert_same(from_supervision(parts, image_ids=[1, 2, 3]), by_image)
    assert_same(from_supervision(parts), by_image)
    twice = library.Detections.merge([held, held])
    kept = from_supervision(twice.with_nms(threshold=0.99))
    assert len(kept) == len(found)
    at = [int(np.flatnonzero((found.boxes == box).all(axis=1))[0]) for box in kept.boxes]
    assert_same(kept, found[at])


def test_nothing_there_and_back() -> None:
    frameworks.supervision()
    nothing = table()[:0]
    assert len(to_supervision(nothing)) == 0
    assert_same(from_supervision(to_supervision(nothing), image_ids=7), nothing.replace(covariances=None))
    assert len(to_supervision(table(), 99)) == 0
    assert len(from_supervision([], classes=CLASSES)) == 0
    mixed = from_supervision([to_supervision(table(), 99), to_supervision(table(), 1)])
    assert_same(mixed, table()[table().image_ids == 1])


def test_ellipses_are_drawn_where_the_covariances_say() -> None:
    library = frameworks.supervision()
    covariances = np.array([[[[144.0, 0], [0, 36]], [[100, 60], [60, 100]]]])
    found = Detections.from_scores(
        [[60, 50, 160, 150]], [0.8], [0], classes=CLASSES, image_ids=7, covariances=covariances
    )
    points = to_supervision_key_points(found, 7)
    assert isinstance(points, library.KeyPoints)
    assert points.xy.tolist() == [[[60, 50], [160, 150]]]
    with frameworks.quiet():
        annotator = library.VertexEllipseAreaAnnotator(sigma=2.0, color=library.Color.WHITE)
        scene = annotator.annotate(np.zeros((240, 240, 3), np.uint8), points)
    lit = scene.max(axis=2) > 0
    for corner, (x, y) in enumerate([(60, 50), (160, 150)]):
        rows, columns = np.nonzero(lit)
        near = (np.abs(columns - x) < 45) & (np.abs(rows - y) < 45)
        reach = np.stack([columns[near] - x, rows[near] - y], axis=1)
        values, vectors = np.linalg.eigh(covariances[0, corner])
        extent = np.abs(reach @ vectors).max(axis=0)
        np.testing.assert_allclose(extent, 2 * np.sqrt(values), atol=1.6)  # it rounds axes to pixels


def test_plain_boxes_and_heatmaps_have_no_ellipses() -> None:
    with pytest.raises(InputError, match="these boxes have no covariances"):
        to_supervision_key_points(table().replace(covariances=None))
    heatmap = table()[:1].replace(heatmaps=(np.zeros((4, 4)),))
    with pytest.raises(InputError, match="supervision cannot hold heatmaps"):
        to_supervision(heatmap)
    with pytest.raises(InputError, match=r"write to_supervision\(found, image_id\)"):
        to_supervision(held())


def test_without_supervision_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "supervision", None)
    with pytest.raises(InputError, match=r"need supervision; install it with: .*pip install 'probox\[supervision\]'"):
        to_supervision(table())


def test_one_score_each_is_what_arrays_give() -> None:
    for each in (held(), held(class_id=None), held(data={}), [held()]):
        found = from_supervision(each, image_ids=7, classes=CLASSES)
        plain = Detections.from_scores(held().xyxy, held().confidence, [1, 2], classes=CLASSES, image_ids=7)
        assert_same(found, plain)


def test_detections_may_know_their_images() -> None:
    many = held(data={"image_id": np.array([9, 3])}, metadata={"classes": list(CLASSES)})
    assert from_supervision(many).image_ids.tolist() == [9, 3]
    assert from_supervision(many).classes == CLASSES
    assert from_supervision(many, image_ids=7).image_ids.tolist() == [7, 7]


@pytest.mark.parametrize(
    ("changes", "arguments", "match"),
    [
        ({}, {"classes": None}, "give classes=, all names that class_id counts in"),
        ({}, {"classes": ("dog", "cat", "cup")}, "class_id 1 is 'cat' in classes, but 'dog' in the detections"),
        ({}, {"classes": ("cup", "dog")}, "expected class_id to count in 2 classes from 0, but got 2"),
        ({"confidence": None}, {}, "expected detections with a confidence; annotations are no detections"),
        ({"class_id": None, "data": {}}, {}, "expected detections with a class_id"),
        ({"xyxy": np.array([[0, 0, 0.5, 0.5], [0, 0, 1, 1.0]])}, {}, "these are shares of the image"),
        ({"confidence": np.array([5.0, -3.0])}, {}, "these look like logits"),
        ({"data": {"label_probs": np.full((2, 4), 0.2)}}, {}, "expected scores of all classes of shape 2 x 3"),
        ({}, {"image_ids": None}, "give image_ids="),
        ({}, {"image_ids": "7"}, "but got the text '7'"),
        ({}, {"image_ids": [7, 8]}, "got outputs of 1 images, but 2 image ids"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        from_supervision(held(**changes), **{"image_ids": 7, "classes": CLASSES} | arguments)


def test_other_things_are_refused() -> None:
    with pytest.raises(InputError, match="or a list of them, but got int"):
        from_supervision(3, image_ids=7)
    with pytest.raises(InputError, match="expected supervision's Detections"):
        from_supervision([{"boxes": 3}], image_ids=7)


def test_masks_are_warned_of() -> None:
    masked = held(mask=np.ones((2, 64, 80), bool))
    found = from_supervision([masked, held(mask=None)], image_ids=[7, 8], classes=CLASSES)
    (note,) = found.notes
    assert note == InputWarning("masks-not-read", 2)

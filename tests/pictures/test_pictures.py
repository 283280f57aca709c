"""Pictures: the right things in the right colours at the right places."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch
from tests.contrast import COLOUR_VISION, colour_distance, contrast

import probox
from probox import Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.demo import Demo
from probox.files.photos import find_photo
from probox.pictures.drawing import principal_axes
from probox.pictures.labelling import place_labels
from probox.pictures.rendering import Shapes
from probox.pictures.standalone import read_standalone
from probox.pictures.style import PALETTES, Palette
from probox.pictures.view import view_of_image
from probox.tables.labels import COCO_CATEGORY_IDS
from probox.tables.masks import Masks
from probox.tables.results import Verdict

BLUE, ORANGE = PALETTES["blue-orange"].right, PALETTES["blue-orange"].wrong


@dataclasses.dataclass(frozen=True)
class Shape:
    points: np.ndarray
    colour: str


def tagged(axes: Any, start: str) -> dict[str, Shape]:
    found = {}
    for shapes in axes.get_children():
        for number, name in enumerate(shapes.names if isinstance(shapes, Shapes) else ()):
            if name.startswith(start):
                edges = shapes.get_edgecolor()
                found[name] = Shape(shapes.get_paths()[number].vertices, to_hex(edges[number % len(edges)]))
    return found


def extents(shape: Shape) -> list[float]:
    return [*shape.points.min(axis=0), *shape.points.max(axis=0)]


def heat(axes: Any) -> Any:
    (found,) = [image for image in axes.images if image.get_gid() == "heat"]
    return found


def one_detection(covariance: list[list[float]]) -> Detections:
    both = [covariance, [[1.0, 0.0], [0.0, 1.0]]]
    return Detections(classes=["cup"], image_ids=[7], boxes=[[20, 15, 44, 40]], label_probs=[[0.9]], covariances=[both])


def test_ellipse_has_the_true_axes() -> None:
    """Points of the outline lie at their number of deviations: axes and angle are right together."""
    assert set(tagged(probox.draw(one_detection([[4, 3], [3, 4]]), 7), "corner-0-0")) == {"corner-0-0-1"}
    rng = np.random.default_rng(3)
    roots = [rng.normal(size=(2, 2)) * rng.uniform(0.3, 6, 2) for _ in range(20)]
    for covariance in ([[4, 3], [3, 4]], *((root @ root.T).tolist() for root in roots)):
        axes = probox.draw(one_detection(covariance), 7, label_text="none", corners="ellipses")
        ellipses = tagged(axes, "corner-0-0")
        assert set(ellipses) == {"corner-0-0-1", "corner-0-0-2", "corner-0-0-3"}
        for deviations in (1, 2, 3):  # every third vertex of a Bezier path lies on the curve
            away = ellipses[f"corner-0-0-{deviations}"].points[:-1:3] - np.array([20, 15])
            distance = np.sqrt(np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away))
            np.testing.assert_allclose(distance, deviations, rtol=1e-3)
        plt.close("all")


def test_singular_and_zero_covariances_are_drawn_as_what_they_are() -> None:
    half_axes, angle = principal_axes([[9, 0], [0, 0]])
    assert half_axes.tolist() == [3.0, 0.0]
    assert angle == 0.0
    plain = Detections(classes=["cup"], image_ids=[7], boxes=[[20, 15, 44, 40]], label_probs=[[0.9]])
    assert not tagged(probox.draw(plain, 7), "corner")


def test_arrows_reach_two_deviations_along_both_axes() -> None:
    axes = probox.draw(one_detection([[4, 3], [3, 4]]), 7, corners="arrow")
    (long,) = [patch for patch in axes.patches if patch.get_gid() == "corner-0-0-0"]
    assert isinstance(long, FancyArrowPatch)
    ends = np.array(long._posA_posB)
    assert np.linalg.norm(ends[1] - ends[0]) / 2 == pytest.approx(2 * np.sqrt(7))
    assert not tagged(axes, "corner")  # no ellipses


@pytest.mark.parametrize("colours", list(PALETTES))
def test_right_is_one_colour_and_wrong_the_other(results: dict[str, Evaluation], colours: str) -> None:
    result = results["probabilistic"]
    right, wrong = PALETTES[colours].right, PALETTES[colours].wrong
    axes = probox.draw(result, 2, colours=colours, show_above=0)
    for start, table, others in (
        ("box-", result.detections, result.objects),
        ("mask-", result.objects, result.detections),
    ):
        shapes, here = tagged(axes, start), np.flatnonzero(table.image_rows == 1)
        assert len(shapes) == len(here)
        for shape, row in zip((shapes[f"{start}{number}"] for number in range(len(here))), here, strict=True):
            same = others.labels[table.partners[row]] == table.labels[row]
            matched = right if same else PALETTES[colours].wrong_class
            assert shape.colour == (matched if table.verdicts[row] == Verdict.TP else wrong)
            if start == "box-":
                np.testing.assert_allclose(extents(shape), table.boxes[row])


def scissors_called_boat(probs: tuple[float, float] = (0.7, 0.3)) -> Evaluation:
    truth = GroundTruth.from_boxes(["boat", "scissors"], {1: (200, 200)}, [1], [[10, 60, 90, 120]], [1])
    found = Detections(
        classes=["boat", "scissors"], image_ids=[1], boxes=[[10, 60, 90, 120]], label_probs=[list(probs)]
    )
    return probox.evaluate(truth, found)


@pytest.mark.parametrize("colours", list(PALETTES))
def test_a_match_of_the_wrong_class_has_its_colour_and_names_both_classes(colours: str) -> None:
    result = scissors_called_boat()
    assert result.detections.verdicts.tolist() == [Verdict.TP]
    axes = probox.draw(result, 1, colours=colours)
    purple = PALETTES[colours].wrong_class
    assert [shape.colour for start in ("box-", "mask-") for shape in tagged(axes, start).values()] == [purple, purple]
    assert "boat (truth: scissors) 70" in {text.get_text() for text in axes.texts}
    short = {text.get_text() for text in probox.draw(result, 1, colours=colours, label_text="class").texts}
    assert short == {"boat (truth: scissors)"}
    right = probox.draw(scissors_called_boat((0.3, 0.7)), 1, colours=colours)
    assert [shape.colour for shape in tagged(right, "box-").values()] == [PALETTES[colours].right]
    assert "scissors 70" in {text.get_text() for text in right.texts}


@pytest.mark.parametrize("palette", list(PALETTES.values()), ids=list(PALETTES))
def test_the_colour_of_wrong_classes_differs_from_others_for_every_kind_of_colour_vision(palette: Palette) -> None:
    assert contrast(palette.wrong_class, "#ffffff") > 4.5
    for vision in COLOUR_VISION:
        for other in (palette.right, palette.wrong, palette.neutral):
            assert colour_distance(palette.wrong_class, other, vision) > 30, (vision, other)


def test_mask_is_filled_on_its_own_pixels_only() -> None:
    mask = np.zeros((30, 40), bool)
    mask[5:12, 8:20] = True
    mask[7:9, 10:14] = False  # a hole
    truth = GroundTruth.from_masks(["cup"], [(7, [mask], [0])])
    nothing = Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
    axes = probox.draw(probox.evaluate(truth, nothing), 7)
    overlay = next(image.get_array() for image in axes.images if np.shape(image.get_array())[:2] == mask.shape)
    np.testing.assert_array_equal(np.asarray(overlay)[..., 3] > 0, mask)
    assert to_hex(np.asarray(overlay)[5, 8, :3] / 255) == ORANGE
    outline = tagged(axes, "mask-")["mask-0"].points
    assert outline.min(axis=0).tolist() == [7.5, 4.5]
    assert outline.max(axis=0).tolist() == [19.5, 11.5]


def test_heatmap_is_the_kernels(results: dict[str, Evaluation]) -> None:
    from probox.pictures.view import view_of_image

    view = view_of_image(results["probabilistic"], 1)
    axes = probox.draw(results["probabilistic"], 1, heatmap=True, show_above=0)
    highest = np.max([view.heatmap(row) for row in range(len(view.detections))], axis=0)
    np.testing.assert_allclose(heat(axes).get_array(), highest, atol=1e-12)
    assert highest.max() > 0.99


def test_heatmap_has_a_scale_and_keeps_what_tells_the_verdict(results: dict[str, Evaluation]) -> None:
    axes = probox.draw(results["probabilistic"], 1, heatmap=True)
    (ramp,) = [image for image in axes.images if image.get_gid() == "heat-ramp"]
    colours = np.asarray(ramp.to_rgba(ramp.get_array()))[0]
    assert (np.diff(colours[:, 3]) >= 0).all()  # the surer the denser
    assert colours[0, 3] == 0.0
    assert np.ptp(colours[:, :3], axis=0).max() == 0.0  # one hue
    assert {"0", "0.5", "1", "P(pixel belongs to it)"} <= {text.get_text() for text in axes.texts}
    np.testing.assert_allclose(heat(axes).to_rgba(np.array([0.25, 1.0])), ramp.to_rgba(np.array([0.25, 1.0])))
    assert {shape.colour for shape in tagged(axes, "box-").values()} <= {
        BLUE,
        ORANGE,
        PALETTES["blue-orange"].wrong_class,
    }
    for palette in PALETTES.values():
        for other in (palette.right, palette.wrong, palette.wrong_class):
            assert min(colour_distance(to_hex(colours[-1]), other, vision) for vision in COLOUR_VISION) > 20


def unsure_and_unmatched() -> Evaluation:
    truth = GroundTruth.from_boxes(["cup"], {1: (200, 200)}, [1], [[10, 10, 60, 60]], [0])
    found = Detections(
        classes=["cup"], image_ids=[1, 1, 1], boxes=[[10, 10, 60, 60], [80, 80, 120, 120], [130, 130, 180, 180]],
        label_probs=[[0.1], [0.3], [0.31]],
    )  # fmt: skip
    return probox.evaluate(truth, found)


def test_unsure_detections_without_a_match_are_left_out_and_said() -> None:
    result = unsure_and_unmatched()
    axes = probox.draw(result, 1, show_above=0.3)
    assert set(tagged(axes, "box-")) == {"box-0", "box-2"}
    assert any(text.get_text() == "1 unmatched not above 0.3: not drawn" for text in axes.texts)
    everything = probox.draw(result, 1, show_above=0)
    assert set(tagged(everything, "box-")) == {"box-0", "box-1", "box-2"}
    assert not any("not drawn" in text.get_text() for text in everything.texts)
    assert set(tagged(probox.draw(result, 1, show_above=1), "box-")) == {"box-0"}
    assert result.detections.verdicts.tolist() == [Verdict.TP, Verdict.FP, Verdict.FP]  # what was judged stays


def test_without_truth_only_confidence_counts() -> None:
    found = Detections(
        classes=["cup"], image_ids=[1, 1], boxes=[[10, 10, 60, 60], [80, 80, 120, 120]], label_probs=[[0.1], [0.9]]
    )
    axes = probox.draw(found, 1)
    assert set(tagged(axes, "box-")) == {"box-1"}
    assert "detections above 0.3" in {text.get_text() for text in axes.texts}
    assert set(tagged(probox.draw(found, 1, show_above=0), "box-")) == {"box-0", "box-1"}


def hit_and_false_positives(*confidences: float) -> Evaluation:
    n = len(confidences)
    truth = GroundTruth.from_boxes(["cup"], {1: (200, 200)}, [1], [[10, 10, 60, 60]], [0])
    boxes = np.concatenate([[[10, 10, 60, 60]], np.tile([100.0, 100.0, 140.0, 140.0], (n, 1)) + np.arange(n)[:, None]])
    probs = np.array([[0.5], *[[confidence] for confidence in confidences]])
    return probox.evaluate(truth, Detections(classes=["cup"], image_ids=[1] * (n + 1), boxes=boxes, label_probs=probs))


def test_all_detections_are_drawn_at_their_best_threshold() -> None:
    result = hit_and_false_positives(0.2, 0.25, 0.1)
    assert result.best_threshold().threshold == 0.25
    axes = probox.draw(result, 1)
    assert set(tagged(axes, "box-")) == {"box-0"}
    assert "detections above 0.25" in {text.get_text() for text in axes.texts}
    chosen = probox.draw(result.at_threshold(0.15), 1)  # somebody chose it: no other is looked for
    assert len(tagged(chosen, "box-")) == 3
    assert "detections above 0.15" in {text.get_text() for text in chosen.texts}
    assert len(tagged(probox.draw(result, 1, show_above=0), "box-")) == 4


def test_at_most_twenty_detections_are_drawn_the_most_confident() -> None:
    crowd = hit_and_false_positives(*np.linspace(0.1, 0.9, 33).tolist()).at_threshold(0.12)
    axes = probox.draw(crowd, 1)
    drawn = sorted(int(name.split("-")[1]) for name in tagged(axes, "box-"))
    assert drawn == np.sort(np.argsort(-crowd.detections.confidences)[:20]).tolist()
    assert "20 of 33 detections above 0.12" in {text.get_text() for text in axes.texts}
    assert len(tagged(probox.draw(crowd, 1, show_above=0), "box-")) == 33


def test_the_veil_is_as_thick_as_it_is_told() -> None:
    photo = np.full((64, 64, 3), 100, np.uint8)
    found = one_detection([[1, 0], [0, 1]])
    for veil, expected in ((0, 100), (0.5, 178), (1, 255)):
        ground = np.asarray(probox.draw(found, 7, image=photo, veil=veil).images[0].get_array())
        assert set(ground.ravel().tolist()) == {expected}
    for name in ("veil", "show_above"):
        for wrong in (-0.1, 1.1, float("nan"), True, "0"):
            with pytest.raises(probox.InputError, match=name):
                probox.draw(found, 7, **{name: wrong})


@pytest.mark.parametrize("what", ["another missed object", "a found object", "a false positive"])
def test_whatever_a_missed_objects_label_lies_on_it_is_led_to_its_own(what: str) -> None:
    cup, table = np.zeros((2, 200, 200), bool)
    cup[90:111, 90:111] = True
    table[20:181, 20:181] = ~cup[20:181, 20:181]
    masks = [cup] if what == "a false positive" else [cup, table]
    probs = {"another missed object": [], "a found object": [[0.9, 0.0]], "a false positive": [[0.0, 0.9]]}[what]
    truth = GroundTruth.from_masks(["cup", "dog"], [(1, masks, [0] * len(masks))])
    found = Detections(
        classes=["cup", "dog"], image_ids=[1] * len(probs), boxes=np.full((len(probs), 4), [20.0, 20.0, 180.0, 180.0]),
        label_probs=np.reshape(probs, (-1, 2)),
    )  # fmt: skip
    result = probox.evaluate(truth, found)
    assert (result.tp, result.objects.verdicts[0]) == (what == "a found object", Verdict.FN)
    leaders = tagged(probox.draw(result, 1), "leader-").values()
    assert any(cup[int(y), int(x)] for x, y in (shape.points[1] for shape in leaders))


def test_a_missed_objects_label_away_from_its_pixels_is_led_to_them() -> None:
    rows, columns = np.indices((200, 200))
    slanting = (np.abs(rows - columns) < 3) & (rows > 60) & (rows < 140)
    falling = slanting[:, ::-1]
    ends = {}
    for name, mask in (("near", slanting), ("away", falling)):
        truth = GroundTruth.from_masks(["cup"], [(1, [mask], [0])])
        nothing = Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
        ends[name] = [s.points[1] for s in tagged(probox.draw(probox.evaluate(truth, nothing), 1), "leader-").values()]
        assert all(mask[int(y), int(x)] for x, y in ends[name])
    assert len(ends["near"]) == 0
    assert len(ends["away"]) == 1


def test_labels_say_class_and_qualities(results: dict[str, Evaluation]) -> None:
    words = {text.get_text() for text in probox.draw(results["probabilistic"], 1).texts}
    table = results["probabilistic"].detections
    row = int(np.flatnonzero((table.image_rows == 0) & (table.verdicts == Verdict.TP))[0])
    overall, spatial, label = (100 * table.quality(name)[row] for name in ("pPDQ", "spatial", "label"))
    full = f"pPDQ {overall:.0f}  Sp {spatial:.0f}  Lbl {label:.0f}"
    assert full in words
    short = {
        text.get_text() for text in probox.draw(results["probabilistic"], 1, label_text="class", show_above=0).texts
    }
    names = results["probabilistic"].classes
    assert {text.split(" (truth: ")[0] for text in short} <= {*names, *(f"missed {name}" for name in names)}
    assert not probox.draw(results["probabilistic"], 1, label_text="none").texts


def test_class_names_are_text_whatever_is_in_them() -> None:
    name = r"$\frac{1}{0}$ <b>_{"
    truth = GroundTruth.from_boxes([name], {1: (640, 480)}, [1], [[100, 100, 300, 300]], [0])
    found = Detections(classes=[name], image_ids=[1], boxes=[[100, 100, 300, 300]], label_probs=[[0.9]])
    axes = probox.draw(probox.evaluate(truth, found), 1)
    axes.get_figure().canvas.draw()  # would raise if it were taken for mathematics
    assert any(text.get_text().startswith(name) for text in axes.texts)


def label_boxes(axes: Any) -> list[Any]:
    cards = [s for s in axes.get_children() if isinstance(s, Shapes) and set(s.names) == {"label"}]
    return [path.transformed(axes.transData).get_extents() for card in cards for path in card.get_paths()]


def test_labels_of_a_crowded_scene_stay_apart_and_inside() -> None:
    rng = np.random.default_rng(1)
    corners = rng.uniform(0, 300, (120, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(5, 60, (120, 2))], axis=1)
    found = Detections(
        classes=["a rather long class name"], image_ids=[1] * 120, boxes=boxes, label_probs=np.full((120, 1), 0.7)
    )
    axes = probox.draw(found, 1, image=np.zeros((360, 360, 3), np.uint8))
    axes.get_figure().canvas.draw()
    labels = label_boxes(axes)
    assert 5 < len(labels) < 100  # some are there, not all
    limits = axes.get_window_extent()
    for number, one in enumerate(labels):
        assert limits.x0 - 1 <= one.x0 <= one.x1 <= limits.x1 + 1
        assert limits.y0 - 1 <= one.y0 <= one.y1 <= limits.y1 + 1
        for other in labels[:number]:
            width = min(one.x1, other.x1) - max(one.x0, other.x0)
            height = min(one.y1, other.y1) - max(one.y0, other.y0)
            assert max(width, 0) * max(height, 0) <= 0.02 * min(one.width * one.height, other.width * other.height)
    assert sum(one.width * one.height for one in labels) < 0.2 * limits.width * limits.height


def test_fixed_variance_and_clipping_are_shown_as_they_were_scored() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (100, 80)}, [1], [[10, 10, 60, 60]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[-8, 10, 130, 60]], label_probs=[[0.9]])
    convention = probox.Convention(fixed_variance=9.0, clip="corners")
    axes = probox.draw(probox.evaluate(truth, found, convention=convention), 1)
    x1, _, x2, _ = extents(tagged(axes, "corner-0-0")["corner-0-0-1"])
    assert x2 - x1 == pytest.approx(6.0)
    np.testing.assert_allclose(extents(tagged(axes, "box-")["box-0"]), [0, 10, 99, 60])


def test_detections_alone_are_blue_and_the_size_comes_from_the_photo(demo: Demo) -> None:
    axes = probox.draw(demo.detectors["probabilistic"], 5, image=demo.picture(5))
    assert axes.get_xlim() == (-0.5, 479.5)
    assert axes.get_ylim() == (639.5, -0.5)
    assert {box.colour for box in tagged(axes, "box-").values()} == {BLUE}


def test_probabilistic_segmentation_is_drawn_from_its_maps(golden_dir: Path) -> None:
    truth = probox.read_truth(golden_dir / "probseg" / "ground_truth.json")
    found = probox.read_detections(golden_dir / "probseg" / "detections.json", truth)
    assert found.heatmaps is not None
    result = probox.evaluate(truth, found)
    image_id = int(found.image_ids[0])
    axes = probox.draw(result, image_id, detections=found, heatmap=True)
    maps = [m for m, i in zip(found.heatmaps, found.image_ids, strict=True) if i == image_id]
    scaled = [np.asarray(m, float) / (255 if m.dtype == np.uint8 else 1) for m in maps if m is not None]
    np.testing.assert_allclose(heat(axes).get_array(), np.max(scaled, axis=0), atol=1e-6)


def test_masks_of_detections_are_drawn_in_their_colours(results: dict[str, Evaluation], demo: Demo) -> None:
    found, result = demo.detectors["probabilistic"], results["probabilistic"]
    arrays = [np.zeros((480, 640), bool) for _ in range(len(found))]
    rows = np.flatnonzero(found.image_ids == 2)
    for row in rows[:5].tolist():
        x1, y1, x2, y2 = np.clip(found.boxes[row], 0, 470).astype(int)
        arrays[row][y1 + 2 : y2 - 1, x1 + 3 : x2 - 2] = True
    masked = found.replace(masks=Masks.from_arrays(arrays), has_mask=np.isin(np.arange(len(found)), rows[:6]))
    axes = probox.draw(result, 2, detections=masked, show_above=0)
    shapes, boxes = tagged(axes, "found-mask-"), tagged(axes, "box-")
    view = view_of_image(result, 2, masked)
    assert set(shapes) == {f"found-mask-{row}" for row in np.flatnonzero(view.found_masks.pixels)}
    assert (len(shapes), view.has_mask.sum()) == (5, 6)
    for name, shape in shapes.items():
        row = int(name.rsplit("-", 1)[1])
        assert shape.colour == boxes[f"box-{row}"].colour
        x1, y1, x2, y2 = view.found_masks.boxes[row].tolist()
        assert extents(shape) == [x1 - 0.5, y1 - 0.5, x2 + 0.5, y2 + 0.5]
    inside, background = (
        view.found_masks.to_array(int(np.argmax(view.found_masks.pixels)), 480, 640),
        np.zeros((480, 640)),
    )
    np.testing.assert_array_equal(view.heatmap(int(np.argmax(view.found_masks.pixels))), inside)
    empty = int(np.flatnonzero(view.has_mask & (view.found_masks.pixels == 0))[0])
    np.testing.assert_array_equal(view.heatmap(empty), background)
    assert not tagged(probox.draw(result, 2), "found-mask-")
    without = Detections.concatenate([masked, found]).select(np.arange(len(found)))
    alone = probox.draw(without, 2, show_above=0)
    assert {shape.colour for shape in tagged(alone, "found-mask-").values()} == {BLUE}
    edges = masked.masks.boxes[rows, 2:].max(axis=0) + 1
    assert (np.array([alone.get_xlim()[1], alone.get_ylim()[0]]) + 0.5 >= edges).all()
    with pytest.raises(InputError, match=r"image 2: the image is 64 x 48, but a detection's mask reaches \d+, \d+"):
        probox.draw(masked, 2, image=np.zeros((48, 64, 3), np.uint8))


def test_dashes_are_in_vector_files(results: dict[str, Evaluation], demo: Demo, tmp_path: Path) -> None:
    found = demo.detectors["probabilistic"]
    masked = found.replace(masks=Masks.from_boxes(np.tile(np.array([9, 9, 40, 40], np.int32), (len(found), 1))))
    for name, detections in (("with.svg", masked), ("without.svg", None)):
        probox.draw(results["probabilistic"], 2, detections=detections).figure.savefig(tmp_path / name)
        assert ("stroke-dasharray" in (tmp_path / name).read_text()) == (detections is masked)


def test_draws_into_given_axes(results: dict[str, Evaluation]) -> None:
    _, (left, right) = plt.subplots(1, 2)
    assert probox.draw(results["deterministic"], 1, ax=left) is left
    assert probox.draw(results["probabilistic"], 1, ax=right) is right


def test_wrong_arguments_are_said_in_one_line(results: dict[str, Evaluation]) -> None:
    with pytest.raises(probox.InputError, match="image 999"):
        probox.draw(results["deterministic"], 999)
    with pytest.raises(probox.InputError, match="corners"):
        probox.draw(results["deterministic"], 1, corners="blob")
    with pytest.raises(probox.InputError, match="colours"):
        probox.draw(results["deterministic"], 1, colours="pink")
    with pytest.raises(probox.InputError, match="Evaluation or Detections"):
        probox.draw("results", 1)  # type: ignore[arg-type]
    with pytest.raises(probox.InputError, match="H x W x 3"):
        probox.draw(results["deterministic"], 1, image=np.zeros(4))


def test_photos_are_found_by_name_or_number_and_never_outside_their_folder(tmp_path: Path) -> None:
    inside = tmp_path / "photos"
    (inside / "sub").mkdir(parents=True)
    for name in ("a.jpg", "000000000139.jpg", "sub/b.jpg", "COCO_val2014_000000000042.jpg"):
        (inside / name).touch()
    (tmp_path / "secret.jpg").touch()
    assert find_photo(inside, 1, "a.jpg") == inside / "a.jpg"
    assert find_photo(inside, 1, "elsewhere/a.jpg") == inside / "a.jpg"
    assert find_photo(inside, 1, "sub/b.jpg") == inside / "sub" / "b.jpg"
    assert find_photo(inside, 139) == inside / "000000000139.jpg"
    assert find_photo(inside, 42) == inside / "COCO_val2014_000000000042.jpg"
    assert find_photo(inside, 1, "../secret.jpg") is None
    assert find_photo(inside, 1, str(tmp_path / "secret.jpg")) is None
    assert find_photo(inside, 1, "a\0.jpg") is None
    # Data sets are often folders of links: whoever made the link chose its photo. A linked folder may lead anywhere.
    (inside / "7.jpg").symlink_to(tmp_path / "secret.jpg")
    assert find_photo(inside, 7) == inside / "7.jpg"
    (inside / "away").symlink_to(tmp_path)
    assert find_photo(inside, 1, "away/secret.jpg") is None


@given(st.integers(0, 2**32 - 1))
def test_labels_stay_in_bounds_and_off_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 40))
    bounds = (float(rng.uniform(20, 400)), float(rng.uniform(20, 400)))
    corners = rng.uniform(-20, 1, (n, 2)) + rng.uniform(0, 1, (n, 2)) * bounds
    boxes = np.concatenate([corners, corners + rng.uniform(0, 100, (n, 2))], axis=1)
    sizes = [[tuple(rng.uniform(5, 120, 2)), tuple(rng.uniform(3, 30, 2))] for _ in range(n)]
    places = place_labels(boxes, sizes, bounds, rng.random((16, 16)) < 0.3)
    assert len(places) == n
    drawn = []
    for place, variants in zip(places, sizes, strict=True):
        if place is None:
            continue
        width, height = variants[place.variant]
        assert place.left >= 0
        assert place.left + width <= bounds[0] + 1e-6
        assert place.top >= 0
        assert place.top + height <= bounds[1] + 1e-6
        for left, top, w, h in drawn:
            across = min(place.left + width, left + w) - max(place.left, left)
            down = min(place.top + height, top + h) - max(place.top, top)
            assert max(across, 0) * max(down, 0) <= 0.01 * width * height + 1e-6
        drawn.append((place.left, place.top, width, height))


def test_labels_drop_out_when_the_picture_is_full() -> None:
    boxes = np.tile([[10.0, 10.0, 90.0, 90.0]], (200, 1))
    places = place_labels(boxes, [[(30, 10), (12, 6)]] * 200, (100, 100))
    assert sum(place is not None for place in places) < 40


def test_an_image_with_too_many_pixels_is_not_drawn() -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (900_000, 1_000)}, [7], [[1, 2, 30, 40]], [0])
    found = Detections(classes=["cup"], image_ids=[7], boxes=[[1, 2, 30, 40]], label_probs=[[0.9]])
    with pytest.raises(InputError, match="image 7: expected at most 134,217,728 pixels to draw, but got 900000 x 1000"):
        view_of_image(evaluate(truth, found), 7)


def test_a_label_stands_above_its_box_or_where_it_covers_least() -> None:
    def place(box: list[float], sizes: list[tuple[float, float]], bounds: tuple[float, float], busy: Any = None) -> Any:
        (found,) = place_labels([box], [sizes], bounds, busy)
        return found

    lonely = place([50, 50, 90, 90], [(30, 10), (20, 8)], (200, 200))
    assert (lonely.variant, lonely.left, lonely.top) == (0, 50, 40)
    assert place([5, 5, 20, 20], [(300, 10), (25, 8)], (40, 40)).variant == 1  # the long form has no room
    upper, everywhere = np.arange(100)[:, None] < 50, np.ones((200, 200), bool)
    assert place([20, 40, 60, 60], [(30, 10)], (100, 100), np.broadcast_to(upper, (100, 100))).top >= 50
    box, bounds = [80, 80, 120, 120], (200, 200)
    assert place(box, [(60, 20), (30, 10)], bounds, everywhere).variant == 0  # both cover things to see alike
    everywhere[68:80] = False  # free above
    assert place(box, [(150, 40), (30, 10)], bounds, everywhere).variant == 1


def read(tmp_path: Path, *entries: dict[str, Any]) -> Detections:
    """Return detections of image 3 that are read without truth."""
    usual = {"image_id": 3, "bbox": [1, 2, 3, 4], "score": 0.9}
    path = tmp_path / "found.coco.json"
    path.write_text(json.dumps([usual | entry for entry in entries]))
    return read_standalone(str(path), None).detections


def test_masks_without_truth_have_the_size_of_their_image(tmp_path: Path) -> None:
    mask = {"size": [40, 200], "counts": [0, 80, 7920]}
    found = read(tmp_path, {"category_id": 1, "segmentation": mask}, {"category_id": 1})
    assert found.masks.boxes.tolist() == [[0, 0, 1, 39], [0, 0, -1, -1]]
    for size in ([40], [0, 200], [40, 1e9], ["40", 200]):
        with pytest.raises(InputError, match="segmentation"):
            read(tmp_path, {"category_id": 1, "segmentation": mask | {"size": size}})


def test_classes_without_truth(tmp_path: Path) -> None:
    def entry(category: int, column: int) -> dict[str, Any]:
        return {"category_id": category, "all_scores": [0.9 if at == column else 0.001 for at in range(80)]}

    def named(*entries: dict[str, Any]) -> list[str]:
        found = read(tmp_path, *entries)
        return [found.classes[label] for label in found.label_probs.argmax(axis=1)]

    coco = {number: entry(number, COCO_CATEGORY_IDS.index(number)) for number in (1, 62, 90)}
    # 90 can't be the number of one of 80 classes; 62 could, but `probox detect` writes COCO's.
    assert named(coco[1], coco[90]) == ["person", "toothbrush"]
    assert named(coco[1], coco[62]) == ["person", "chair"]
    assert named(entry(62, 61)) == ["class 62"]  # 80 classes of one's own: COCO's 62 is its 57th
    few = read(tmp_path, {"category_id": 2, "all_scores": [0, 0.9, 0.1]})
    assert few.classes == ("class 1", "class 2", "class 3")
    message = r"\[0\]\.image_id: expected the number of an image, but got the name 'a'; name the"
    with pytest.raises(InputError, match=message):
        read(tmp_path, {"image_id": "a", "category_id": 1})

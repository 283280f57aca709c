"""The matrix of what is taken for what shows the counts that there are."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes

from probox import Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.pictures.style import DARK, LIGHT
from probox.plots import Plots, draw_all
from probox.plots.breakdown import MOST_CLASSES, _contrast


def cells(axes: Axes) -> dict[tuple[int, int], str]:
    """Return what is written at which row and column."""
    return {(round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in axes.texts}


def test_cells_are_counts_and_colours_shares_of_rows(results: dict[str, Evaluation]) -> None:
    counted = results["unsure"].confusion()
    (axes,) = results["unsure"].plot.confusion()
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == [*counted.classes, "background"] == [label.get_text() for label in axes.get_xticklabels()]
    last = len(counted.classes)
    expected = {(row, column): str(counted.matrix[row, column]) for row, column in np.argwhere(counted.matrix).tolist()}
    assert cells(axes) == expected | {(last, last): "-"}
    np.testing.assert_allclose(axes.images[0].get_array(), np.nan_to_num(counted.shares()))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("detection names", "truth")


def test_each_result_has_a_panel_with_the_same_classes(results: dict[str, Evaluation]) -> None:
    four = {name: results["sure" if number % 2 else "unsure"] for number, name in enumerate("abcd")}
    panels = Plots(four).confusion()
    assert [axes.get_title(loc="left") for axes in panels] == list("abcd")
    assert len({tuple(label.get_text() for label in axes.get_yticklabels()) for axes in panels}) == 1
    assert cells(panels[0]) == cells(panels[2])


@pytest.mark.parametrize("dark", [False, True])
def test_counts_can_be_read_on_their_cells(results: dict[str, Evaluation], dark: bool) -> None:
    (axes,) = results["unsure"].plot.confusion(dark=dark)
    theme, image = (DARK if dark else LIGHT), axes.images[0]
    inks = set()
    for text in axes.texts:
        column, row = (round(place) for place in text.get_position())
        cell = image.cmap(image.get_array()[row, column])
        ink, other = sorted((theme.ground, theme.ink), key=lambda one: one != text.get_color())
        assert _contrast(ink, cell) >= _contrast(other, cell)
        assert _contrast(ink, cell) > 3.5
        inks.add(ink)
    assert theme.ink in inks


@pytest.mark.slow
@pytest.mark.parametrize("many", [1, 2, 3, 5])
def test_the_caption_keeps_off_what_axes_are_called(many: int) -> None:
    panels = Plots({f"result {n}": many_classes() for n in range(many)}).confusion()
    figure = panels[0].figure
    figure.canvas.draw()  # once, as saving does
    caption = figure._supxlabel.get_window_extent()
    names = [axes.xaxis.label.get_window_extent() for axes in panels]
    assert min(name.y0 for name in names) - caption.y1 > 0.04 * figure.dpi
    assert caption.y0 >= 0


def many_classes() -> Evaluation:
    """Return a result of 30 classes, the last three of which are mixed up."""
    names = [f"class {n}" for n in range(30)]
    boxes = [[30 * n, 5, 30 * n + 19, 24] for n in range(30)]
    probs = np.eye(30) * 0.9
    probs[[27, 28, 29], [28, 29, 27]] = 0.5
    probs[[27, 28, 29], [27, 28, 29]] = 0.3
    truth = GroundTruth.from_boxes(names, {1: (900, 30)}, [1] * 30, boxes, list(range(30)))
    return evaluate(truth, Detections(classes=names, image_ids=[1] * 30, boxes=boxes, label_probs=probs))


def test_of_many_classes_those_that_are_mixed_up_most() -> None:
    (axes,) = many_classes().plot.confusion()
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert len(shown) == MOST_CLASSES + 1
    assert shown[-4:] == ["class 27", "class 28", "class 29", "background"]
    assert f"The {MOST_CLASSES} of 30 classes that are mixed up most" in axes.figure.get_supxlabel().replace("\n", " ")
    (few,) = many_classes().plot.confusion(most=2)
    assert len(few.get_yticklabels()) == 3
    (all_of_them,) = many_classes().plot.confusion(most=30)
    assert "mixed up most" not in all_of_them.figure.get_supxlabel()


def test_nothing_to_show_is_said() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48)}, [], np.zeros((0, 4)), [])
    none = Detections(classes=["cup"], image_ids=[], boxes=[], label_probs=np.zeros((0, 1)))
    (axes,) = evaluate(truth, none).plot.confusion()
    assert [text.get_text() for text in axes.texts] == ["nothing was found,\nnothing was missed"]


def test_without_pdq_it_is_passed_over_and_says_why() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48)}, [1], [[5, 5, 20, 20]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[5, 5, 20, 20]], label_probs=[[0.9]])
    result = evaluate(truth, found, measures=["map"])
    assert "confusion" not in dict(draw_all({"": result}))
    with pytest.raises(InputError, match="PDQ was not measured"):
        result.plot.confusion()

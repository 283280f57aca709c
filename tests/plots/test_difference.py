"""The plot of differences shows what the comparison says."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest

import probox
from probox import Evaluation, InputError
from probox.pictures.style import LIGHT
from probox.plots import Plots, draw_all
from probox.plots.breakdown import DIFFERENCE, why_not


def test_points_and_lines_are_differences_and_intervals(results: dict[str, Evaluation]) -> None:
    axes = Plots(results).difference(replicates=100, seed=2)
    (pair,) = probox.compare(results, replicates=100, seed=2, swaps=False).pairs
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["mAP", "1-moLRP", "PDQ", "pPDQ", "Sp", "Lbl", "FG", "BG"]
    _, *drawn, _ = axes.lines  # the line at 0, a line and a dot for each row, an empty one for the legend
    pdq = pair.columns["PDQ"].difference  # the first minus the second, in the plot too
    line, dot = drawn[2 * names.index("PDQ") : 2 * names.index("PDQ") + 2]
    np.testing.assert_allclose(np.sort(line.get_xdata()), [100 * pdq.low, 100 * pdq.high])
    np.testing.assert_allclose(dot.get_xdata(), [100 * pdq.value])
    assert dot.get_markerfacecolor() == LIGHT.lines[1]
    assert drawn[1].get_markerfacecolor() == LIGHT.ground  # mAP is the same
    assert axes.get_xlabel() == "sure minus unsure: points, 95 % intervals\nfilled dots: the interval does not hold 0"
    assert axes.get_legend() is None


def test_a_quality_that_is_shown_for_an_error_points_the_right_way(results: dict[str, Evaluation]) -> None:
    few = results["sure"].at_threshold(0.9)  # fewer found: a higher moLRP, a lower 1-moLRP
    axes = Plots({"a": results["sure"], "b": few}).difference(replicates=50)
    assert axes.lines[4].get_xdata()[0] > 0


def test_classes_from_the_greatest_difference_down(results: dict[str, Evaluation]) -> None:
    axes = Plots(results).difference(per_class=True, replicates=50)
    tables = [result.per_class() for result in results.values()]
    names = [label.get_text() for label in axes.get_yticklabels()]
    gained = [tables[0][name]["PDQ"] - tables[1][name]["PDQ"] for name in names]
    assert sorted(gained, reverse=True) == gained
    assert len(names) == 7
    assert axes.get_title(loc="left") == "Difference with interval, 12 images: PDQ"


def test_as_many_replicates_as_the_comparison() -> None:
    defaults = [
        inspect.signature(function).parameters["replicates"].default for function in (DIFFERENCE.draw, probox.compare)
    ]
    assert defaults == [1000, 1000]


def test_several_have_a_legend_beside_the_plot(results: dict[str, Evaluation]) -> None:
    three = {**results, "third": results["sure"]}
    axes = Plots(three).difference(replicates=20)
    legend = axes.get_legend()
    axes.figure.canvas.draw()
    assert [text.get_text() for text in legend.get_texts()] == ["unsure", "third"]
    assert legend.get_window_extent().x0 >= axes.get_window_extent().x1
    assert (
        axes.get_xlabel() == "sure minus each other: points, 95 % intervals\nfilled dots: the interval does not hold 0"
    )


def test_drawn_only_of_results_that_can_be_compared(results: dict[str, Evaluation]) -> None:
    with pytest.raises(InputError, match="a difference needs two results; write Plots"):
        results["sure"].plot.difference()
    a, b = results.values()
    ids = a.dataset.image_ids
    assert DIFFERENCE.fits({"a": a, "b": b})
    assert not DIFFERENCE.fits({"a": a})
    assert not DIFFERENCE.fits({"a": a, "b": b.select_images(ids[1:])})
    assert not DIFFERENCE.fits({"a": a.select_images(ids[:1]), "b": b.select_images(ids[:1])})
    assert not DIFFERENCE.fits(
        {"a": dataclasses.replace(a, measures=("pdq",)), "b": dataclasses.replace(b, measures=("map",))}
    )
    assert why_not({"a": a, "b": b}) is None
    assert why_not({"a": a}) == "there is only one result"
    assert "of a is not in b" in str(why_not({"a": a, "b": b.select_images(ids[1:])}))
    assert (
        why_not({"a": a.select_images(ids[:1]), "b": b.select_images(ids[:1])})
        == "fewer than two images have no intervals"
    )
    assert "difference" not in [name for name, _ in draw_all({"a": a, "b": b.select_images(ids[1:])})]
    assert "difference" in [name for name, _ in draw_all({"a": a, "b": b})]


def test_measures_without_classes_have_none_to_draw(results: dict[str, Evaluation]) -> None:
    images = {name: dataclasses.replace(result, measures=("pmb-nll",)) for name, result in results.items()}
    with pytest.raises(InputError, match="no measure of these results is defined for a class; evaluate PDQ too"):
        Plots(images).difference(per_class=True, replicates=5)
    boxes = {name: dataclasses.replace(result, measures=("map",)) for name, result in results.items()}
    assert Plots(boxes).difference(per_class=True, replicates=5).get_title(loc="left").endswith(": mAP")

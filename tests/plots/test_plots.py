"""Plots show the numbers that the evaluation has."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from tests.amounts import others_slow
from tests.pictures.test_saving import font_kinds

import probox
from probox import Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.demo import make_demo
from probox.pictures.style import DARK, LIGHT
from probox.plots import PLOTS, Plot, Plots, draw_all
from probox.plots.breakdown import DIFFERENCE, MOST_CLASSES, _contrast, why_not
from probox.tables.results import Verdict

LONG = "faster r-cnn, resnet 50, {} passes of dropout, seed 1"
"""Names that differ in the middle, where long names are cut."""


@pytest.mark.parametrize("name", list(PLOTS))
@pytest.mark.parametrize("dark", others_slow([False, True]))
def test_every_plot_in_both_themes(results: dict[str, Evaluation], name: str, dark: bool) -> None:
    theme = DARK if dark else LIGHT
    several = {
        LONG.format(20): results["deterministic"],
        LONG.format(40): results["probabilistic"],
        "_c": results["probabilistic"],
    }
    for source in (results["probabilistic"], several if dark else results):
        if not PLOTS[name].fits(Plots(source).results):
            continue
        axes = np.ravel(getattr(Plots(source), PLOTS[name].method)(dark=dark))
        assert all(isinstance(one, Axes) for one in axes)
        figure = axes[0].figure
        figure.canvas.draw()
        assert to_hex(figure.get_facecolor()) == theme.ground
        assert to_hex(axes[0].xaxis.label.get_color()) == theme.ink
        assert axes[0].get_xlabel() or name in ("thresholds", "reliability")  # below their second panel
        check_legends(figure)
        check_ticks(figure)


def check_legends(figure: Any) -> None:
    """Legends lie on the figure, on no axes and no title, all names are different, and the axes keep their room."""
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    for legend in legends:
        box = legend.get_window_extent()
        assert all(figure.bbox.padded(1).contains(*corner) for corner in (box.min, box.max))
        for axes in figure.axes:
            assert not box.overlaps(axes.get_window_extent())
            for title in (axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label):
                assert not (title.get_text() and box.overlaps(title.get_window_extent()))
        words = [text.get_text() for text in legend.get_texts()]
        assert len(set(words)) == len(words)
    for axes in figure.axes:
        assert axes.get_window_extent().width / figure.dpi > 2.2


def check_ticks(figure: Any) -> None:
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ticks = [*axis.get_ticklabels(which="both"), axis.get_offset_text()]
            assert not any("$" in tick.get_text() for tick in ticks)


@pytest.mark.parametrize("plot", ["thresholds", "qualities", "classes"])
def test_legends_of_many_results_find_room(results: dict[str, Evaluation], plot: str) -> None:
    many = {LONG.format(n): results["probabilistic" if n % 2 else "deterministic"] for n in range(6)}
    figure = np.ravel(getattr(Plots(many), plot)())[0].figure
    figure.canvas.draw()
    check_legends(figure)


@pytest.mark.slow
@pytest.mark.parametrize("plot", ["thresholds", "qualities", "spatial_label"])
def test_text_stays_text_when_the_user_saves(results: dict[str, Evaluation], tmp_path: Path, plot: str) -> None:
    axes = np.ravel(getattr(Plots(results), plot)())
    for ending in ("pdf", "svg"):
        axes[0].figure.savefig(tmp_path / f"x.{ending}")
    kinds = font_kinds((tmp_path / "x.pdf").read_bytes())
    assert "Type3" not in kinds
    assert {"CIDFontType2", "FontFile2"} <= kinds
    svg = (tmp_path / "x.svg").read_text(encoding="utf-8")
    for words in (axes[0].get_title(loc="left"), axes[-1].get_ylabel() or axes[-1].get_xlabel(), *results):
        assert f">{words}</text>" in svg


@pytest.mark.parametrize("plot", ["thresholds", "reliability", "sizes"])
def test_numbers_are_no_formulas_whatever_the_users_settings(results: dict[str, Evaluation], plot: str) -> None:
    import matplotlib
    import matplotlib.pyplot as plt

    with matplotlib.rc_context({"axes.formatter.use_mathtext": True}):
        _, given = plt.subplots()
        for axes in (None, given):
            figure = getattr(results["probabilistic"].plot, plot)(ax=axes).figure
            figure.canvas.draw()
            check_ticks(figure)


def test_style_does_not_leak(results: dict[str, Evaluation]) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    results["deterministic"].plot.sizes(dark=True)
    assert dict(matplotlib.rcParams) == before


def test_threshold_curve_is_that_of_evaluating_anew(results: dict[str, Evaluation]) -> None:
    axes = results["probabilistic"].plot.thresholds()
    x, y = axes.lines[0].get_data()
    at = int(np.flatnonzero(np.isclose(x, 0.6))[0])
    assert y[at] == pytest.approx(100 * results["probabilistic"].at_threshold(0.6).pdq)


def test_scatter_has_every_true_positive(results: dict[str, Evaluation]) -> None:
    result = results["probabilistic"]
    hit = result.detections.verdicts == Verdict.TP
    for axes, x, y in (
        (result.plot.spatial_label(), "label", "spatial"),
        (result.plot.foreground_background(), "background", "foreground"),
    ):
        points = np.asarray(axes.collections[-1].get_offsets())
        np.testing.assert_allclose(points[:, 0], result.detections.quality(x)[hit])
        np.testing.assert_allclose(points[:, 1], result.detections.quality(y)[hit])


def test_bars_are_the_classes_and_sizes(results: dict[str, Evaluation]) -> None:
    result = results["probabilistic"]
    axes = result.plot.classes()
    names = [label.get_text() for label in axes.get_yticklabels()]
    table = result.per_class()
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], [100 * table[name]["PDQ"] for name in names])
    sizes = [100 * row["PDQ"] for row in result.per_size().values()]
    np.testing.assert_allclose([bar.get_width() for bar in result.plot.sizes().patches], sizes)


def test_precision_recall_without_a_half_uses_the_first_threshold() -> None:
    demo = make_demo()
    for thresholds, shown in (((0.6, 0.75), "0.6"), ((0.3, 0.5), "0.5")):
        result = evaluate(demo.truth, demo.detectors["probabilistic"], iou_thresholds=thresholds)
        assert result.plot.precision_recall().get_title(loc="left").endswith(f"at IoU {shown}")


def test_precision_recall_has_the_area_of_ap50(results: dict[str, Evaluation]) -> None:
    axes = results["probabilistic"].plot.precision_recall()
    _, precision = axes.lines[0].get_data()
    assert np.mean(precision) == pytest.approx(results["probabilistic"].summary()["AP50"])


def test_draws_into_given_axes(results: dict[str, Evaluation]) -> None:
    import matplotlib.pyplot as plt

    _, axes = plt.subplots()
    assert results["deterministic"].plot.sizes(ax=axes) is axes


def test_an_evaluation_of_nothing_can_be_plotted() -> None:
    truth = probox.GroundTruth.from_boxes(["cup"], {1: (10, 10)}, [], np.zeros((0, 4)), [])
    found = probox.Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
    drawn = [name for name, figure in draw_all({"": probox.evaluate(truth, found)}) if figure.canvas.draw() is None]
    assert drawn == [name for name in PLOTS if name != "difference"]


@pytest.mark.slow
def test_class_names_are_text_whatever_is_in_them() -> None:
    truth = probox.GroundTruth.from_boxes([r"$\frac{$"], {1: (99, 99)}, [1], [[10, 10, 60, 60]], [0])
    found = probox.Detections(classes=[r"$\frac{$"], image_ids=[1], boxes=[[10, 10, 60, 60]], label_probs=[[0.9]])
    result = probox.evaluate(truth, found)
    for _, figure in draw_all({r"$\nix{$": result, "b": result}):
        figure.canvas.draw()


@pytest.mark.parametrize("plot", PLOTS.values(), ids=list(PLOTS))
def test_every_plot_is_a_method_with_its_words(results: dict[str, Evaluation], plot: Plot) -> None:
    plots = results["deterministic"].plot
    plots = plots if plot.fits(plots.results) else Plots(results)
    method = getattr(plots, plot.method)
    assert plot.method in dir(plots)
    assert method.__doc__.startswith("Plot ")
    titles = [axes.get_title(loc="left") for axes in np.ravel(method()).tolist()]
    assert titles[0].startswith(plot.title)


@pytest.mark.parametrize("plot", PLOTS.values(), ids=list(PLOTS))
def test_every_plot_is_in_the_documents(plot: Plot) -> None:
    text = (Path(__file__).parents[2] / "docs" / "pictures.md").read_text(encoding="utf-8")
    assert f"`{'Plots(results)' if plot.name == 'difference' else 'result.plot'}.{plot.method}(" in text
    assert f"`{plot.name}`" in text


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
    assert (
        axes.get_xlabel()
        == "deterministic minus probabilistic [points], 95% confidence intervals\nfilled dots: interval excludes 0"
    )
    assert axes.get_legend() is None


def test_a_quality_that_is_shown_for_an_error_points_the_right_way(results: dict[str, Evaluation]) -> None:
    few = results["deterministic"].at_threshold(0.9)  # fewer found: a higher moLRP, a lower 1-moLRP
    axes = Plots({"a": results["deterministic"], "b": few}).difference(replicates=50)
    assert axes.lines[4].get_xdata()[0] > 0


def test_classes_from_the_greatest_difference_down(results: dict[str, Evaluation]) -> None:
    axes = Plots(results).difference(per_class=True, replicates=50)
    tables = [result.per_class() for result in results.values()]
    names = [label.get_text() for label in axes.get_yticklabels()]
    gained = [tables[0][name]["PDQ"] - tables[1][name]["PDQ"] for name in names]
    assert sorted(gained, reverse=True) == gained
    assert len(names) == 7
    assert axes.get_title(loc="left") == "Difference with confidence interval, 12 images: PDQ"


def test_as_many_replicates_as_the_comparison() -> None:
    defaults = [
        inspect.signature(function).parameters["replicates"].default for function in (DIFFERENCE.draw, probox.compare)
    ]
    assert defaults == [1000, 1000]


def test_several_have_a_legend_beside_the_plot(results: dict[str, Evaluation]) -> None:
    three = {**results, "third": results["deterministic"]}
    axes = Plots(three).difference(replicates=20)
    legend = axes.get_legend()
    axes.figure.canvas.draw()
    assert [text.get_text() for text in legend.get_texts()] == ["probabilistic", "third"]
    assert legend.get_window_extent().x0 >= axes.get_window_extent().x1
    assert (
        axes.get_xlabel()
        == "deterministic minus each other result [points], 95% confidence intervals\nfilled dots: interval excludes 0"
    )


def test_drawn_only_of_results_that_can_be_compared(results: dict[str, Evaluation]) -> None:
    with pytest.raises(InputError, match="expected at least two results for a difference; write Plots"):
        results["deterministic"].plot.difference()
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
    assert why_not({"a": a}) == "only one result"
    assert "of a is not in b" in str(why_not({"a": a, "b": b.select_images(ids[1:])}))
    assert (
        why_not({"a": a.select_images(ids[:1]), "b": b.select_images(ids[:1])}) == "intervals need at least two images"
    )
    assert "difference" not in [name for name, _ in draw_all({"a": a, "b": b.select_images(ids[1:])})]
    assert "difference" in [name for name, _ in draw_all({"a": a, "b": b})]


def test_measures_without_classes_have_none_to_draw(results: dict[str, Evaluation]) -> None:
    images = {name: dataclasses.replace(result, measures=("pmb-nll",)) for name, result in results.items()}
    with pytest.raises(InputError, match="no metric of these results is defined per class; evaluate PDQ as well"):
        Plots(images).difference(per_class=True, replicates=5)
    boxes = {name: dataclasses.replace(result, measures=("map",)) for name, result in results.items()}
    assert Plots(boxes).difference(per_class=True, replicates=5).get_title(loc="left").endswith(": mAP")


def cells(axes: Axes) -> dict[tuple[int, int], str]:
    return {(round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in axes.texts}


def test_cells_are_counts_and_colours_shares_of_rows(results: dict[str, Evaluation]) -> None:
    counted = results["probabilistic"].confusion()
    (axes,) = results["probabilistic"].plot.confusion()
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == [*counted.classes, "background"] == [label.get_text() for label in axes.get_xticklabels()]
    last = len(counted.classes)
    expected = {(row, column): str(counted.matrix[row, column]) for row, column in np.argwhere(counted.matrix).tolist()}
    assert cells(axes) == expected | {(last, last): "-"}
    np.testing.assert_allclose(axes.images[0].get_array(), np.nan_to_num(counted.shares()))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted class", "true class")


def test_each_result_has_a_panel_with_the_same_classes(results: dict[str, Evaluation]) -> None:
    four = {name: results["deterministic" if number % 2 else "probabilistic"] for number, name in enumerate("abcd")}
    panels = Plots(four).confusion()
    assert [axes.get_title(loc="left") for axes in panels] == list("abcd")
    assert len({tuple(label.get_text() for label in axes.get_yticklabels()) for axes in panels}) == 1
    assert cells(panels[0]) == cells(panels[2])


@pytest.mark.parametrize("dark", [False, True])
def test_counts_can_be_read_on_their_cells(results: dict[str, Evaluation], dark: bool) -> None:
    (axes,) = results["probabilistic"].plot.confusion(dark=dark)
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
    assert f"Shown: the {MOST_CLASSES} of 30 classes with the most confusions" in axes.figure.get_supxlabel().replace(
        "\n", " "
    )
    (few,) = many_classes().plot.confusion(most=2)
    assert len(few.get_yticklabels()) == 3
    (all_of_them,) = many_classes().plot.confusion(most=30)
    assert "most confusions" not in all_of_them.figure.get_supxlabel()


def test_nothing_to_show_is_said() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48)}, [], np.zeros((0, 4)), [])
    none = Detections(classes=["cup"], image_ids=[], boxes=[], label_probs=np.zeros((0, 1)))
    (axes,) = evaluate(truth, none).plot.confusion()
    assert [text.get_text() for text in axes.texts] == ["no detections,\nno missed objects"]


def test_without_pdq_it_is_passed_over_and_says_why() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48)}, [1], [[5, 5, 20, 20]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[5, 5, 20, 20]], label_probs=[[0.9]])
    result = evaluate(truth, found, measures=["map"])
    assert "confusion" not in dict(draw_all({"": result}))
    with pytest.raises(InputError, match="PDQ was not measured"):
        result.plot.confusion()

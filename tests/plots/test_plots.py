"""Plots show the numbers that the evaluation has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from tests.amounts import others_slow
from tests.pictures.test_saving import font_kinds

import probox
from probox import Evaluation
from probox.pictures.style import DARK, LIGHT
from probox.plots import PLOTS, Plot, Plots, draw_all
from probox.tables.results import Verdict

LONG = "faster r-cnn, resnet 50, {} passes of dropout, seed 1"
"""Names that differ in the middle, where long names are cut."""


@pytest.mark.parametrize("name", list(PLOTS))
@pytest.mark.parametrize("dark", others_slow([False, True]))
def test_every_plot_in_both_themes(results: dict[str, Evaluation], name: str, dark: bool) -> None:
    theme = DARK if dark else LIGHT
    several = {LONG.format(20): results["sure"], LONG.format(40): results["unsure"], "_c": results["unsure"]}
    for source in (results["unsure"], several if dark else results):
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
        assert figure.bbox.padded(1).containsx(box.x0)
        assert figure.bbox.padded(1).containsx(box.x1)
        assert figure.bbox.padded(1).containsy(box.y0)
        assert figure.bbox.padded(1).containsy(box.y1)
        for axes in figure.axes:
            assert not box.overlaps(axes.get_window_extent())
            for title in (axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label):
                assert not (title.get_text() and box.overlaps(title.get_window_extent()))
        words = [text.get_text() for text in legend.get_texts()]
        assert len(set(words)) == len(words)
    for axes in figure.axes:
        assert axes.get_window_extent().width / figure.dpi > 2.2


def check_ticks(figure: Any) -> None:
    """Numbers are written out: no formula of matplotlib's is left."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ticks = [*axis.get_ticklabels(which="both"), axis.get_offset_text()]
            assert not any("$" in tick.get_text() for tick in ticks)


@pytest.mark.parametrize("plot", ["thresholds", "qualities", "classes"])
def test_legends_of_many_results_find_room(results: dict[str, Evaluation], plot: str) -> None:
    many = {LONG.format(n): results["unsure" if n % 2 else "sure"] for n in range(6)}
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
            figure = getattr(results["unsure"].plot, plot)(ax=axes).figure
            figure.canvas.draw()
            check_ticks(figure)


def test_style_does_not_leak(results: dict[str, Evaluation]) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    results["sure"].plot.sizes(dark=True)
    assert dict(matplotlib.rcParams) == before


def test_threshold_curve_is_that_of_evaluating_anew(results: dict[str, Evaluation]) -> None:
    axes = results["unsure"].plot.thresholds()
    x, y = axes.lines[0].get_data()
    at = int(np.flatnonzero(np.isclose(x, 0.6))[0])
    assert y[at] == pytest.approx(100 * results["unsure"].at_threshold(0.6).pdq)


def test_scatter_has_every_true_positive(results: dict[str, Evaluation]) -> None:
    result = results["unsure"]
    hit = result.detections.verdicts == Verdict.TP
    for axes, x, y in (
        (result.plot.spatial_label(), "label", "spatial"),
        (result.plot.foreground_background(), "background", "foreground"),
    ):
        points = np.asarray(axes.collections[-1].get_offsets())
        np.testing.assert_allclose(points[:, 0], result.detections.quality(x)[hit])
        np.testing.assert_allclose(points[:, 1], result.detections.quality(y)[hit])


def test_bars_are_the_classes_and_sizes(results: dict[str, Evaluation]) -> None:
    result = results["unsure"]
    axes = result.plot.classes()
    names = [label.get_text() for label in axes.get_yticklabels()]
    table = result.per_class()
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], [100 * table[name]["PDQ"] for name in names])
    sizes = [100 * row["PDQ"] for row in result.per_size().values()]
    np.testing.assert_allclose([bar.get_width() for bar in result.plot.sizes().patches], sizes)


def test_precision_recall_has_the_area_of_ap50(results: dict[str, Evaluation]) -> None:
    axes = results["unsure"].plot.precision_recall()
    _, precision = axes.lines[0].get_data()
    assert np.mean(precision) == pytest.approx(results["unsure"].summary()["AP50"])


def test_draws_into_given_axes(results: dict[str, Evaluation]) -> None:
    import matplotlib.pyplot as plt

    _, axes = plt.subplots()
    assert results["sure"].plot.sizes(ax=axes) is axes


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
    plots = results["sure"].plot
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


def test_an_unknown_plot_is_an_unknown_attribute(results: dict[str, Evaluation]) -> None:
    with pytest.raises(AttributeError, match="'Plots' object has no attribute 'pie'"):
        _ = getattr(results["sure"].plot, "pie")  # noqa: B009

"""Plots of honesty and worth show the numbers of the measures, and say what is missing or too little."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import probox
from probox import Detections, Evaluation, GroundTruth, InputError
from probox.analysis.loss_breakdown import compute_budget
from probox.measures.registry import MEASURES
from probox.pictures.style import LIGHT
from probox.plots import PLOTS, Plots, draw_all, draw_what_if
from probox.plots.base import few_words
from probox.plots.breakdown import SEGMENTS
from probox.plots.calibration_plots import LEAST, SCORE_BINS, SHARES, band, bin_edges, bin_scores
from probox.support.formatting import with_count

OF_SIGMAS = ("coverage", "pit", "sparsification", "sigma_error")


def texts(figure: Any) -> str:
    found = [artist.get_text() for artist in figure.findobj(match=lambda artist: hasattr(artist, "get_text"))]
    return " ".join(" ".join(found).split())


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def numbers(evaluation: Evaluation, name: str) -> dict[str, float]:
    (measure,) = [measure for measure in MEASURES if measure.name == name]
    return dict(measure.summary(evaluation))


def simulated(n: int, *, scale: float = 1.0, seed: int = 0, relative: float | None = None) -> Evaluation:
    """Return an evaluation of `n` objects in as many images whose boxes miss by Gaussians; sigmas are scaled.

    With `relative`, every sigma is this share of the side.
    """
    rng = np.random.default_rng(seed)
    boxes = np.tile([100.0, 120.0, 300.0, 280.0], (n, 1))
    sigmas = rng.uniform(1.0, 6.0, (n, 4))
    found = boxes + rng.normal(size=(n, 4)) * sigmas
    claimed = scale * sigmas
    if relative is not None:
        claimed = relative * np.tile(found[:, 2:] - found[:, :2], 2)
    covariances = np.zeros((n, 2, 2, 2))
    covariances[:, 0, 0, 0], covariances[:, 0, 1, 1] = np.square(claimed[:, :2]).T
    covariances[:, 1, 0, 0], covariances[:, 1, 1, 1] = np.square(claimed[:, 2:]).T
    ids = np.arange(1, n + 1)
    truth = GroundTruth.from_boxes(["cup"], {int(i): (400, 400) for i in ids}, ids, boxes, np.zeros(n, int))
    detections = Detections(
        classes=["cup"], image_ids=ids, boxes=found, label_probs=rng.uniform(0.1, 1.0, (n, 1)), covariances=covariances
    )
    return probox.evaluate(truth, detections, measures=["map"])


@pytest.fixture(scope="module")
def probabilistic(results: dict[str, Evaluation]) -> Evaluation:
    return results["probabilistic"]


def test_coverage_is_that_of_the_measure(probabilistic: Evaluation) -> None:
    axes = probabilistic.plot.coverage()
    edges, boxes, diagonal = axes.lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [100, 100]]
    measured = numbers(probabilistic, "coverage")
    for share in (50, 68, 90, 95):
        at = int(np.flatnonzero(np.isclose(SHARES, share / 100))[0])
        assert edges.get_xdata()[at] == pytest.approx(share)
        assert edges.get_ydata()[at] == pytest.approx(100 * measured[f"coverage_{share}"], abs=1e-9)
        assert boxes.get_ydata()[at] == pytest.approx(100 * measured[f"coverage_{share}_joint"], abs=1e-9)
    assert legend(axes) == ["edges", "boxes (all four edges)"]


def test_pit_has_the_bins_of_each_edge(probabilistic: Evaluation) -> None:
    panels = probabilistic.plot.pit()
    pairs = probabilistic.matched_pairs
    for column, axes in enumerate(panels):
        kept = (pairs.variances[:, column] > 0) & ~pairs.truncated[:, column]
        z = pairs.residuals[kept, column] / np.sqrt(pairs.variances[kept, column])
        values = [0.5 * math.erfc(-one / math.sqrt(2)) for one in z]
        expected = 100 * np.histogram(values, np.linspace(0, 1, 11))[0] / kept.sum()
        outline = next(patch for patch in axes.patches if hasattr(patch, "get_data"))
        np.testing.assert_allclose(outline.get_data().values, expected)
        assert axes.lines[0].get_ydata() == pytest.approx([10, 10])
        span = next(patch for patch in axes.patches if not hasattr(patch, "get_data"))
        low, high = band(int(kept.sum()))
        heights = span.get_patch_transform().transform(span.get_path().vertices)[:, 1]  # a polygon before 3.9
        assert (heights.min(), heights.max()) == pytest.approx((100 * low, 100 * high))
        assert axes.get_ylim()[1] >= expected.max()


def test_the_band_holds_95_per_cent_of_bins() -> None:
    low, high = band(400)
    assert (low, high) == pytest.approx((0.1 - 1.959964 * 0.015, 0.1 + 1.959964 * 0.015))
    assert band(4)[0] == 0.0
    shares = np.random.default_rng(1).binomial(400, 0.1, 20_000) / 400
    assert np.mean((shares >= low) & (shares <= high)) == pytest.approx(0.95, abs=0.012)


def test_reliability_has_precision_mean_score_and_counts(probabilistic: Evaluation) -> None:
    axes = probabilistic.plot.reliability()
    line, lower = axes.lines[0], axes.figure.axes[1]
    n, hits, sums = bin_scores(probabilistic)
    there = n > 0
    np.testing.assert_allclose(line.get_xdata(), sums[there] / n[there])
    np.testing.assert_allclose(line.get_ydata(), 100 * hits[there] / n[there])
    np.testing.assert_allclose(lower.patches[0].get_data().values, n)
    # Each detection once, in the bin of its score, as a plain loop has it.
    matches, table = probabilistic.box_matches, np.zeros((SCORE_BINS.number, 2))
    for score, hit, left_out in zip(matches.scores, matches.matched[:, 0] & 1, matches.ignored[:, 0] & 1, strict=True):
        if not left_out:
            table[min(int(score * SCORE_BINS.number), SCORE_BINS.number - 1)] += 1, hit
    np.testing.assert_array_equal(table.T, [n, hits])
    measured = numbers(probabilistic, "d-ece")["D-ECE@50/10w"]
    assert legend(axes) == [f"D-ECE {100 * measured:.1f}%"]
    assert "D-ECE@50/10w, 10 bins of equal width" in texts(axes.figure)


def relative_edges(evaluation: Evaluation) -> tuple[np.ndarray, np.ndarray]:
    """Return sigma and error of each edge that is judged, in shares of the side."""
    pairs = evaluation.matched_pairs
    sides, kept = pairs.sides[:, [0, 1, 0, 1]], (pairs.variances > 0) & ~pairs.truncated
    return (np.sqrt(pairs.variances) / sides)[kept], (np.abs(pairs.residuals) / sides)[kept]


def test_sparsification_takes_the_most_unsure_away(probabilistic: Evaluation) -> None:
    axes = probabilistic.plot.sparsification()
    own, best, chance = axes.lines
    sigma, error = relative_edges(probabilistic)
    n = len(sigma)
    for line, order in ((own, sigma), (best, error)):
        ranked = 100 * error[np.argsort(-order, kind="stable")]
        for x, y in list(zip(*line.get_data(), strict=True))[::40]:
            assert y == pytest.approx(ranked[round(x * n / 100) :].mean())
    assert own.get_xdata()[0] == 0
    assert 97 < own.get_xdata()[-1] <= 99
    np.testing.assert_allclose(chance.get_ydata(), 100 * error.mean())
    assert legend(axes)[0] == f"AUSE {numbers(probabilistic, 'ause')['AUSE']:.2f}"


def test_sigma_against_error_has_every_edge(probabilistic: Evaluation) -> None:
    axes = probabilistic.plot.sigma_error()
    sigma, error = relative_edges(probabilistic)
    points = np.asarray(axes.collections[0].get_offsets())
    np.testing.assert_allclose(points, 100 * np.stack([sigma, np.maximum(error, LEAST)], axis=1))
    line, diagonal = axes.lines
    across, up = bin_edges(sigma, error)
    np.testing.assert_allclose(line.get_xydata(), 100 * np.stack([across, up], axis=1))
    inside = np.sort(sigma)[: round(len(sigma) / 10)]
    assert across[0] == pytest.approx(math.sqrt(np.square(inside).mean()), rel=0.02)
    assert diagonal.get_xdata().tolist() == diagonal.get_ydata().tolist()
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert legend(axes) == [f"Spearman {numbers(probabilistic, 'spearman')['Spearman']:.2f}", "RMS error = std"]


def test_sigmas_that_are_right_lie_on_the_diagonals() -> None:
    right, small = simulated(1500, seed=3), simulated(1500, seed=3, scale=0.5)
    edges = right.plot.coverage().lines[0]
    np.testing.assert_allclose(edges.get_ydata(), edges.get_xdata(), atol=2.5)
    assert small.plot.coverage().lines[0].get_ydata()[90] < 70
    line = right.plot.sigma_error().lines[0]
    np.testing.assert_allclose(line.get_ydata(), line.get_xdata(), rtol=0.12)
    line = small.plot.sigma_error().lines[0]
    np.testing.assert_allclose(line.get_ydata(), 2 * line.get_xdata(), rtol=0.12)
    outer = [float(axes.patches[0].get_data().values[0]) for axes in small.plot.pit()]
    assert min(outer) > 20


def test_a_constant_sigma_is_a_vertical_line() -> None:
    axes = simulated(200, relative=0.05).plot.sigma_error()
    points = np.asarray(axes.collections[0].get_offsets())
    np.testing.assert_allclose(points[:, 0], 5.0)
    low, high = axes.get_xlim()
    assert low < 5 < high
    assert high / low > 5


@pytest.mark.parametrize("name", OF_SIGMAS)
def test_plain_boxes_are_told_in_words(results: dict[str, Evaluation], name: str) -> None:
    axes = np.ravel(getattr(results["deterministic"].plot, name)())
    for one in axes:
        assert not one.lines
        assert not one.collections
        assert "no covariances: nothing to plot" in " ".join(text.get_text() for text in one.texts).replace("\n", " ")
    both = np.ravel(getattr(Plots(results), name)())[0].figure
    assert "deterministic: no covariances" in texts(both)


@pytest.mark.parametrize("name", OF_SIGMAS)
def test_captions_count_pairs_and_what_is_left_out(probabilistic: Evaluation, name: str) -> None:
    pairs = probabilistic.matched_pairs
    said = texts(np.ravel(getattr(probabilistic.plot, name)())[0].figure)
    edges = int(pairs.truncated.sum())
    assert f"{len(pairs)} pairs, {edges} edges at the image border excluded" in said
    assert "Pairs: COCO IoU 0.5; boxes with larger errors are unmatched" in said
    assert "unreliable" not in said
    few = probabilistic.select_images(probabilistic.dataset.image_ids[:1].tolist())
    said = texts(np.ravel(getattr(few.plot, name)())[0].figure)
    assert f"{with_count(len(few.matched_pairs), 'pair')} (fewer than 30: unreliable)" in said


def test_few_are_fewer_than_30() -> None:
    assert few_words(30) == "30 pairs"
    assert few_words(29) == "29 pairs (fewer than 30: unreliable)"
    assert few_words(1, "detection") == "1 detection (fewer than 30: unreliable)"


def test_budget_is_stacked_to_100(results: dict[str, Evaluation]) -> None:
    axes = Plots(results).budget()
    budgets = [compute_budget(result) for result in results.values()]
    bars = np.array([[patch.get_x(), patch.get_width()] for patch in axes.patches]).reshape(len(SEGMENTS), -1, 2)
    for part, row in zip(SEGMENTS, bars, strict=True):
        np.testing.assert_allclose(row[:, 1], [100 * getattr(budget, part) for budget in budgets], atol=1e-9)
    np.testing.assert_allclose(bars[:, :, 1].sum(axis=0), 100, atol=1e-3)
    np.testing.assert_allclose(bars[1:, :, 0], bars[:-1].sum(axis=2))  # each begins where the one before ends
    assert [label.get_text() for label in axes.get_yticklabels()] == list(results)
    assert legend(axes) == ["PDQ", "missed objects", "false positives", "labels", "foreground", "background"]


def test_without_pdq_there_is_no_budget() -> None:
    result = simulated(3)
    assert not PLOTS["budget"].fits({"": result})
    assert "budget" not in [name for name, _ in draw_all({"": result})]
    with pytest.raises(InputError, match="PDQ was not measured"):
        result.plot.budget()


def test_what_if_bars_and_the_present(results: dict[str, Evaluation]) -> None:
    answers = {"a": {"labels right": 0.4, "no false positives": 0.25}, "b": {"labels right": math.nan}}
    axes = draw_what_if(answers, {"a": 0.3, "b": 0.2}, dark=True)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["labels right", "no false positives"]
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], [40, 25, 0, 0])
    assert [line.get_xdata()[0] for line in axes.lines] == pytest.approx([30, 30, 20, 20])
    words = [text.get_text() for text in axes.texts]
    assert words[:4] == ["40.0 (+10.0)", "25.0 (-5.0)", "undefined", "undefined"]
    assert legend(axes) == ["a", "b"]
    assert draw_what_if({"": answers["a"]}, {"": 0.3}).get_legend() is None
    for wrong in ({}, {"a": 0.3}):
        with pytest.raises(
            InputError, match="expected what_ifs and present of the same results, and at least one result"
        ):
            draw_what_if(answers if wrong else {}, wrong)


@pytest.mark.parametrize("name", ["coverage", "reliability", "sparsification", "sigma_error", "budget"])
def test_legends_lie_beside_the_data(results: dict[str, Evaluation], name: str) -> None:
    axes = getattr(Plots({"first": results["probabilistic"], "second": results["probabilistic"]}), name)()
    axes.figure.canvas.draw()
    box, frame = axes.get_window_extent(), axes.get_legend().get_window_extent()
    assert frame.x0 >= box.x1
    assert frame.x1 <= axes.figure.bbox.x1 + 1
    captions = [text for one in axes.figure.axes for text in one.texts if "\n" in text.get_text() or name == "budget"]
    for text in captions:
        extent = text.get_window_extent()
        assert extent.x1 <= axes.figure.bbox.x1 + 1
        assert extent.y0 >= -1


def test_the_legend_above_panels_has_those_that_are_drawn(results: dict[str, Evaluation]) -> None:
    panels = Plots(
        {"plain": results["deterministic"], "first": results["probabilistic"], "second": results["probabilistic"]}
    ).pit()
    (above,) = panels[0].figure.legends
    assert [text.get_text() for text in above.get_texts()] == ["first", "second"]
    assert [line.get_color() for line in above.get_lines()] == list(LIGHT.lines[1:3])


def test_names_that_begin_with_an_underscore_are_in_legends(probabilistic: Evaluation) -> None:
    assert legend(Plots({"_a": probabilistic, "b": probabilistic}).coverage())[:2] == [" _a", "b"]


def test_nothing_to_judge_is_said() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (10, 10)}, [], np.zeros((0, 4)), [])
    found = Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
    plots = probox.evaluate(truth, found).plot
    for name in OF_SIGMAS:
        assert "no matched pairs: nothing to plot" in texts(np.ravel(getattr(plots, name)())[0].figure)
    assert "no detections: nothing to plot" in texts(plots.reliability().figure)
    assert "nothing to score" in texts(plots.budget().figure)
    for axes in (plots.classes(), plots.sizes()):
        assert axes.get_xlim()[0] == 0
    assert plots.qualities()[0].get_ylim()[0] == 0


@pytest.mark.parametrize("most", [3, 90, 12_345, 3_000_000])
@pytest.mark.parametrize("logs", [False, True])
def test_counts_are_written_out_and_none_is_cut_off(most: int, logs: bool) -> None:
    from probox.plots.base import new_axes, scale_counts

    axes = new_axes(None, (3, 3))
    axes.plot([0, 1], [0, most], color=LIGHT.ink)
    scale_counts(axes, most, logs=logs)
    axes.figure.canvas.draw()  # type: ignore[union-attr]
    low, high = axes.get_ylim()
    assert low == 0
    assert high > most
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert "0" in labels
    assert len(labels) > 1
    assert not any("$" in label or "e" in label for label in labels)
    if logs:
        assert labels == ["0", "10", "100", "1,000", "10,000", "100,000", "1,000,000"][: max(len(str(most)), 2)]
    else:
        assert all(float(label.replace(",", "")).is_integer() for label in labels)


def test_many_false_positives_make_counts_logarithmic() -> None:
    """Otherwise true positives and misses lie on the axis, and nothing is read from them."""
    for many, scale in ((20, "linear"), (21, "symlog"), (200, "symlog")):
        boxes = np.tile([10.0, 10.0, 30.0, 30.0], (10, 1))
        truth = GroundTruth.from_boxes(["cup"], {1: (99, 99)}, np.ones(10, int), boxes, np.zeros(10, int))
        found = Detections(
            classes=["cup"],
            image_ids=np.ones(many, int),
            boxes=np.tile([50.0, 50.0, 80.0, 80.0], (many, 1)),
            label_probs=np.full((many, 1), 0.5),
        )
        upper = probox.evaluate(truth, found, measures=["pdq"]).plot.thresholds()
        lower = upper.figure.axes[1]
        assert lower.get_yscale() == scale
        assert lower.get_ylim()[1] > many
        assert lower.get_ylabel() == ("count" if scale == "linear" else "count, log scale")
        assert [line.get_ydata()[0] for line in lower.lines] == [0, many, 10]

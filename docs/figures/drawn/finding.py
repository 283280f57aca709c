"""Figures of detection quality: PDQ, mAP, LRP."""

from __future__ import annotations

from typing import Any

import numpy as np

import probox
from drawn.common import COLOURS, INK, beside, changed, demo, evaluate, figure, mark_least, panels
from probox.measures.boxes.matching import IOU_THRESHOLDS
from probox.measures.boxes.optimal_lrp import lrp_curve


@figure("pdq")
def draw_pdq() -> Any:
    own = demo().detectors["probabilistic"].covariances
    factors, typical = np.geomspace(0.1, 10.0, 41), 3.44
    constant = np.broadcast_to(np.eye(2), own.shape)
    fig, axes = panels()
    for number, (label, make) in enumerate(
        {"predicted std": lambda f: own * f**2, "constant std": lambda f: constant * (f * typical) ** 2}.items()
    ):
        score = [100 * evaluate(changed(covariances=make(f)), "pdq").pdq for f in factors]
        axes.plot(factors, score, color=COLOURS[number], label=label)
        mark_least(axes, factors, score, COLOURS[number], most=True)
    plain = 100 * evaluate(demo().detectors["deterministic"], "pdq").pdq
    axes.axhline(plain, color=INK, linestyle=(0, (4, 2)), linewidth=1.2, label="boxes without covariance")
    axes.set(
        xscale="log",
        xlabel="scale factor of the std",
        ylabel="PDQ [%], higher is better",
        title="PDQ against the scale of the std",
        ylim=(0, None),
    )
    axes.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    beside(axes)
    return fig


@figure("map")
def draw_map() -> Any:
    random = np.random.default_rng(7)
    noise = random.normal(size=(len(demo().detectors["probabilistic"]), 4))
    fig, axes = panels()
    for number, spread in enumerate((0.0, 2.0, 5.0)):
        boxes = demo().detectors["probabilistic"].boxes + spread * noise
        boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1.0)
        measured = evaluate(changed(boxes=boxes, extents=None), "map").average_precision
        curve = 100 * measured.precision[..., 0].mean(axis=(1, 2))
        label = f"edges with {spread:g} px noise" if spread else "original boxes"
        axes.plot(IOU_THRESHOLDS, curve, "-o", color=COLOURS[number], label=f"{label}\nmAP {100 * measured.map:.1f}")
    axes.set(xlabel="IoU threshold", ylabel="mean AP of classes [%], higher is better", ylim=(0, 100))
    axes.set_title("mAP is the mean over ten thresholds")
    beside(axes)
    return fig


@figure("lrp")
def draw_lrp() -> Any:
    matches, name = evaluate(None, "lrp").box_matches, "leaf"
    curve = lrp_curve(matches, name)
    everything = curve.true_positives + curve.false_positives + (curve.objects - curve.true_positives)
    missed = (curve.objects - curve.true_positives) / everything
    wrong = curve.false_positives / everything
    placed = curve.lrp - missed - wrong
    fig, axes = panels()
    colours = COLOURS[2], COLOURS[1], COLOURS[0]
    words = "localisation", "false positives", "missed objects"
    axes.stackplot(curve.score, placed, wrong, missed, colors=colours, labels=words, alpha=0.55)
    axes.plot(curve.score, curve.lrp, color=INK, label="LRP(s)")
    mark_least(axes, curve.score, curve.lrp, INK)
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1),
        xlabel="score threshold s",
        ylabel="LRP, lower is better",
        title=f'LRP of "{name}" and its minimum',
    )
    beside(axes)
    return fig


MARGINS = np.arange(9)
"""Pixels by which masks of `summaries_of_margins` are too wide on each side."""


def summaries_of_margins(measure: str) -> list[dict[str, float]]:
    """Return the values of a metric for masks of the ground truth with margins."""
    truth, summaries = demo().truth, []
    for margin in MARGINS.tolist():
        masks = []
        for row in range(len(truth)):
            width, height = truth.dataset.shapes[truth.image_rows[row]].tolist()
            mask = truth.masks.to_array(row, height, width)
            for _ in range(margin):
                wider = np.pad(mask, 1)
                mask = mask | wider[2:, 1:-1] | wider[:-2, 1:-1] | wider[1:-1, 2:] | wider[1:-1, :-2]
            masks.append(mask)
        found = probox.Detections(
            classes=truth.classes,
            image_ids=truth.image_ids[truth.image_rows],
            boxes=truth.boxes,
            label_probs=np.eye(len(truth.classes))[truth.labels],
            masks=probox.Masks.from_arrays(masks),
        )
        summaries.append(probox.evaluate(truth, found, measures=measure).summary())
    return summaries


@figure("map-mask")
def draw_mask_map() -> Any:
    summaries = summaries_of_margins("map-mask")
    fig, axes = panels()
    for number, (key, label) in enumerate({"mask_mAP": "mAP", "mask_AP50": "AP50", "mask_AP75": "AP75"}.items()):
        axes.plot(MARGINS, [100 * own[key] for own in summaries], "-o", color=COLOURS[number], label=label)
    axes.set(xlabel="margin of masks [px]", ylabel="mask mAP [%], higher is better", ylim=(0, 104))
    axes.set_title("mAP of masks that are too wide")
    beside(axes)
    return fig


@figure("lrp-mask")
def draw_mask_lrp() -> Any:
    summaries = summaries_of_margins("lrp-mask")
    words = {"": "moLRP", "_loc": "localisation", "_fp": "false positives", "_fn": "missed objects"}
    fig, axes = panels()
    for number, (part, label) in enumerate(words.items()):
        values = [own[f"mask_moLRP{part}"] for own in summaries]
        style = "--" if part == "_fn" else "-"
        axes.plot(MARGINS, values, style, color=INK if not part else COLOURS[number - 1], label=label)
    axes.set(xlabel="margin of masks [px]", ylabel="error, lower is better", ylim=(0, 1.04))
    axes.set_title("LRP of masks that are too wide")
    beside(axes)
    return fig

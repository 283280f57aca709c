"""PMB-NLL as a measure: the mean over images of what `probox.measures.pmb.definition` defines, and its parts.

The mean is over all images of the data set, also those without objects or detections. By the formula, an object that
no detection is near costs thousands, and an image with too few detections is infinitely unlikely; then there is no
mean, and a remark says in how many images. So that there is a number for every detector, `PMB_NLL_floored` has a floor
under the intensity of the clutter: that of 1e-6 objects in an image, spread evenly over all its boxes and classes. It
is what the clamp of probabilities is to labels: such an object costs about 42 in an image of 640 x 480 pixels and 80
classes. Parts are those under the floor.

Boxes are the annotated ones. Crowds are no objects; what was found in them is unmatched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from probox.measures.measure import Column, Evaluated, Measure, Resampled, Summary, Weights
from probox.measures.pmb.images import LITTLE_BACKGROUND, PmbImages, pmb_of_images
from probox.measures.weighted import weighted_sums

__all__ = ["PMB_NLL"]

MEANS = {
    "PMB_NLL_floored": "nll",
    "PMB_box": "matched_box",
    "PMB_label": "matched_label",
    "PMB_unmatched": "unmatched",
    "PMB_missed": "missed",
    "PMB_clutter": "expected",
}
"""The columns that are means over images, and what of."""


def pmb_summary(evaluated: Evaluated) -> Summary:
    """Return the means over images, and how many objects and images needed the floor."""
    images = pmb_of_images(evaluated)
    if images is None or not images.defined(np.ones((1, len(images.objects))))[0]:
        return PMB_NLL.nothing()
    n = len(images.objects)
    # fsum is exact, so the order of images cannot change a bit of the result.
    infinite = int(np.isinf(images.plain).sum())
    summary: Summary = {"PMB_NLL": math.nan if infinite else math.fsum(images.plain) / n}
    summary |= {key: math.fsum(images.number(name)) / n for key, name in MEANS.items()}
    summary["PMB_at_floor"] = int(images.number("floored_objects").sum())
    summary["PMB_infinite"] = infinite
    return summary


def pmb_resampled(evaluated: Evaluated, weights: Weights) -> Resampled:
    """Return the summary of images that count `weights` (R, images) times, (R,) of each number."""
    images = pmb_of_images(evaluated)
    if images is None:
        return {key: np.full(len(weights), value) for key, value in PMB_NLL.nothing().items()}
    counted = weights.astype(np.float64)
    defined = images.defined(counted)
    total = np.where(defined, counted.sum(axis=1), np.nan)
    infinite = np.isinf(images.plain)
    columns = [images.number(name) for name in MEANS.values()]
    columns += [np.where(infinite, 0.0, images.plain), images.number("floored_objects"), infinite]
    *means, unfloored, floored, lost = weighted_sums(weights, columns)
    replicates = {"PMB_NLL": np.where(lost > 0, np.nan, unfloored / total)}
    replicates |= {key: values / total for key, values in zip(MEANS, means, strict=True)}
    replicates["PMB_at_floor"] = np.where(defined, floored, 0.0)
    replicates["PMB_infinite"] = np.where(defined, lost, 0.0)
    return replicates


def pmb_remarks(evaluated: Evaluated) -> Sequence[str]:
    """Say what PMB-NLL could not use, and what it replaced."""
    images = pmb_of_images(evaluated)
    if images is None:
        return ("PMB-NLL: this result has kept no label probabilities, so there is none; evaluate anew",)
    found, dense = int(images.detections.sum()), int(images.dense.sum())
    if found and not dense:
        return (
            f"PMB-NLL: none of {found:,} detections has a density (plain boxes, heatmaps, singular covariances), "
            "so there is none; give covariances",
        )
    return [remark for remark in _remarks(images, found, dense) if remark]


def _remarks(images: PmbImages, found: int, dense: int) -> list[str]:
    objects, floored = int(images.objects.sum()), int(images.number("floored_objects").sum())
    infinite, n = int(np.isinf(images.plain).sum()), len(images.plain)
    alone, crowds = int(images.scores_alone.sum()), int(images.crowds.sum())
    sure, firm = int(images.sure.sum()), int(images.firm.sum())
    without = f"infinite in {infinite:,} of {n:,} images" if infinite else f"{math.fsum(images.plain) / max(n, 1):.2f}"
    return [
        f"PMB-NLL: {floored:,} of {objects:,} objects are far from every detection, or in images with too few: it is "
        f"{without}, but {math.fsum(images.number('nll')) / max(n, 1):.2f} with a floor of 1e-6 objects spread evenly "
        "over the image"
        if floored
        else "",
        f"PMB-NLL: {found - dense:,} of {found:,} detections have no density (plain boxes, heatmaps, singular "
        "covariances) and are matched with nothing"
        if dense < found
        else "",
        f"PMB-NLL: {alone:,} of {found:,} detections state one score alone; what it leaves of 1 is taken for "
        "background, not for the other classes"
        if alone
        else "",
        f"PMB-NLL: {firm:,} of {sure:,} detections above 0.1 leave less than {LITTLE_BACKGROUND:g} for background; "
        "each that is right about nothing costs 7 to 14"
        if 2 * firm > sure
        else "",
        f"PMB-NLL: {crowds:,} crowds are left out, what was found in them is unmatched" if crowds else "",
    ]


PMB_NLL = Measure(
    name="pmb-nll",
    needs=frozenset({"labels"}),
    columns=(
        Column(
            key="PMB_NLL",
            heading="PMB-NLL",
            unit="plain",
            symbol="nats",
            better="low",
            hint="negative log likelihood of an image's objects, mean over images",
        ),
        Column(
            key="PMB_NLL_floored",
            heading="PMB-NLL_floored",
            unit="plain",
            symbol="nats",
            better="low",
            hint="the same where objects that no detection explains stand at a floor",
        ),
        Column(key="PMB_box", unit="plain", better="low"),
        Column(key="PMB_label", unit="plain", better="low"),
        Column(key="PMB_unmatched", unit="plain", better="low"),
        Column(key="PMB_missed", unit="plain", better="low"),
        Column(key="PMB_clutter", unit="plain", better="low"),
        Column(key="PMB_at_floor", unit="count", better="low"),
        Column(key="PMB_infinite", unit="count", better="low"),
    ),
    summary=pmb_summary,
    resampled=pmb_resampled,
    remarks=pmb_remarks,
    standard=False,
)

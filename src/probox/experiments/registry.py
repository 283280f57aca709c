"""All experiments by name: what each varies, what the paper claims, how it is judged and drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from probox.experiments import counting, misalignment, uncertainty, worked_example
from probox.experiments.claims import Verdict
from probox.experiments.figures import (
    draw_curves,
    draw_families,
    draw_fewer_images,
    draw_label_coco,
    draw_spatial_uncertainty,
)
from probox.experiments.pictures import draw_plane, draw_precision_recall
from probox.experiments.table import ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENTS", "Experiment"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """One of the paper's experiments.

    Parameters
    ----------
    name : str
        What the command line calls it.
    section : str
        Where the paper has it.
    varied : str
        What it varies.
    claim : str
        What the paper concludes.
    function : callable
        Measures, and returns a table.
    judge : callable
        Returns the verdicts on a table.
    draw : callable
        Returns the figure of a table.
    takes : tuple of str
        Which of `truth`, `repeats` and `seed` the function takes.
    """

    name: str
    section: str
    varied: str
    claim: str
    function: Callable[..., ResultTable]
    judge: Callable[[ResultTable], list[Verdict]]
    draw: Callable[[ResultTable], Figure]
    takes: tuple[str, ...] = ()


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        name="spatial-uncertainty",
        section="6, top",
        varied="true x reported variance of the corners, simulated detector, label 1.0",
        claim="for each true variance the matching reported variance scores best",
        function=uncertainty.spatial_uncertainty,
        judge=uncertainty.claims_of_spatial_uncertainty,
        draw=draw_spatial_uncertainty,
        takes=("truth", "repeats", "seed"),
    ),
    Experiment(
        name="label-uncertainty",
        section="6, bottom",
        varied="probability of the true class, always the largest, of one perfect box",
        claim="PDQ = sqrt(p); mAP stays 1",
        function=uncertainty.label_uncertainty,
        judge=uncertainty.claims_of_label_uncertainty,
        draw=partial(
            draw_curves,
            x="probability",
            title="PDQ evaluates the label probability",
            xlabel="probability of the true class",
            measures=("mAP", "PDQ"),
            legend="lower right",
        ),
    ),
    Experiment(
        name="plane",
        section="figure 4",
        varied="a sure box over half of a plane's box, with a sixth of its pixels",
        claim="AP50 counts it as correct; pPDQ is below 1e-4",
        function=uncertainty.plane,
        judge=uncertainty.claims_of_plane,
        draw=draw_plane,
    ),
    Experiment(
        name="box-probability",
        section="B.1",
        varied="the one probability of all pixels of a perfect box",
        claim="PDQ falls with it; mAP and moLRP do not",
        function=uncertainty.box_probability,
        judge=uncertainty.claims_of_box_probability,
        draw=partial(
            draw_curves,
            x="probability",
            title="Only PDQ sees spatial probability",
            xlabel="probability of every pixel in the box",
            legend="lower right",
        ),
    ),
    Experiment(
        name="corner-variance",
        section="B.1",
        varied="variance of perfectly placed corners, 500 x 500 object in 2000 x 2000",
        claim="PDQ falls monotonically",
        function=uncertainty.corner_variance,
        judge=uncertainty.claims_of_corner_variance,
        draw=partial(
            draw_curves,
            x="variance",
            title="Needless uncertainty costs",
            xlabel="reported variance of perfect corners (square pixels)",
            measures=("PDQ",),
            legend="",
        ),
    ),
    Experiment(
        name="translation",
        section="B.2",
        varied="shift of a box left and right, for several variances and a plain box",
        claim="PDQ is near 0 at 10 % for the plain box; more variance, more lenient, lower peak",
        function=misalignment.translation,
        judge=misalignment.claims_of_translation,
        draw=partial(
            draw_families,
            x="shift",
            title="A shifted box",
            xlabel="shift, in widths of the object",
            perfect=0.0,
        ),
    ),
    Experiment(
        name="scaling",
        section="B.2",
        varied="size of a centred box, for several variances and a plain box",
        claim="as for translation",
        function=misalignment.scaling,
        judge=misalignment.claims_of_scaling,
        draw=partial(
            draw_families,
            x="size",
            title="A box of the wrong size",
            xlabel="area of the detection over that of the object",
            perfect=1.0,
        ),
    ),
    Experiment(
        name="label-coco",
        section="B.3",
        varied="probability of the true class, the rest spread evenly, perfect boxes",
        claim="PDQ falls; mAP and moLRP change only where the true class stops being the largest",
        function=uncertainty.label_coco,
        judge=uncertainty.claims_of_label_coco,
        draw=draw_label_coco,
        takes=("truth", "seed"),
    ),
    Experiment(
        name="missed-small",
        section="B.4",
        varied="number of undetected 2 x 2 objects at the border",
        claim="all three respond alike",
        function=counting.missed_small,
        judge=counting.claims_of_missed_small,
        draw=partial(
            draw_curves,
            x="missed",
            title="Missed objects",
            xlabel="small objects missed, beside a large one found",
            integers=True,
        ),
    ),
    Experiment(
        name="missed-coco",
        section="B.4",
        varied="rate of missed objects, the others detected perfectly",
        claim="all three respond alike",
        function=counting.missed_coco,
        judge=counting.claims_of_missed_coco,
        draw=partial(
            draw_curves,
            x="rate",
            title="Missed objects, many images",
            xlabel="share of objects missed",
        ),
        takes=("truth", "repeats", "seed"),
    ),
    Experiment(
        name="false-small",
        section="B.5",
        varied="number of small false detections at 1.0 beside a correct one at 0.9",
        claim="all three respond alike",
        function=counting.false_small,
        judge=counting.claims_of_false_small,
        draw=partial(
            draw_curves,
            x="false",
            title="False detections, surer than the correct one",
            xlabel="false detections (1.0) beside a correct one (0.9)",
            integers=True,
        ),
    ),
    Experiment(
        name="duplicates",
        section="C.1",
        varied="perfect duplicates of one object",
        claim="mAP stays 1; moLRP and PDQ fall as 1/n",
        function=counting.duplicates,
        judge=counting.claims_of_duplicates,
        draw=partial(
            draw_curves,
            x="detections",
            title="Duplicates of one object",
            xlabel="perfect detections of the object, n",
            reciprocal=True,
            integers=True,
            legend="center right",
        ),
    ),
    Experiment(
        name="lower-confidence",
        section="C.2",
        varied="number of small false detections at 0.9 beside a perfect one at 1.0",
        claim="mAP and moLRP stay perfect; PDQ falls",
        function=counting.lower_confidence,
        judge=counting.claims_of_lower_confidence,
        draw=partial(
            draw_curves,
            x="false",
            title="False detections, less sure than the correct one",
            xlabel="false detections (0.9) beside a perfect one (1.0)",
            integers=True,
            legend="center right",
        ),
    ),
    Experiment(
        name="duplicates-coco",
        section="C.3",
        varied="duplicates per object, ordered object by object",
        claim="mAP lies above 1/n; PDQ and moLRP follow 1/n",
        function=counting.duplicates_coco,
        judge=counting.claims_of_duplicates_coco,
        draw=partial(
            draw_curves,
            x="detections",
            title="Duplicates of every object",
            xlabel="perfect detections per object, n",
            reciprocal=True,
            integers=True,
        ),
        takes=("truth",),
    ),
    Experiment(
        name="duplicates-coco-100",
        section="C.4",
        varied="the same on 100 images",
        claim="mAP's excess grows",
        function=counting.duplicates_coco_100,
        judge=counting.claims_of_duplicates_coco_100,
        draw=draw_fewer_images,
        takes=("truth",),
    ),
    Experiment(
        name="duplicates-lower-coco",
        section="C.5",
        varied="duplicates at 0.9",
        claim="mAP and moLRP stay perfect; PDQ falls",
        function=counting.duplicates_lower_coco,
        judge=counting.claims_of_duplicates_lower_coco,
        draw=partial(
            draw_curves,
            x="detections",
            title="Less sure duplicates of every object",
            xlabel="detections per object: one at 1.0, the others at 0.9",
            reciprocal=True,
            integers=True,
            legend="center right",
        ),
        takes=("truth",),
    ),
    Experiment(
        name="precision-recall",
        section="D",
        varied="the steps from detections to average precision, on a worked example",
        claim="raw curve, smoothed curve and 101 samples are as described",
        function=worked_example.precision_recall,
        judge=worked_example.claims_of_precision_recall,
        draw=draw_precision_recall,
    ),
)
"""The paper's experiments, in the order of the paper."""

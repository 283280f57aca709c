"""All experiments, those of the paper in its order. A new one is a module that describes it, and a line here."""

from __future__ import annotations

from probox.experiments import (
    assigning,
    background_region,
    constant,
    false_places,
    labels,
    matching_rules,
    misalignment,
    misses,
    notice,
    order,
    perfect_boxes,
    plane_figure,
    repeats,
    spatial,
    stories,
    table1,
    worked_example,
)
from probox.experiments.experiment import Experiment
from probox.experiments.properness.experiment import PROPER
from probox.experiments.segmenting.experiment import SEGMENTATION
from probox.experiments.training import experiment as training
from probox.experiments.training import gallery

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: tuple[Experiment, ...] = (
    assigning.ASSIGNMENT,
    spatial.SPATIAL_UNCERTAINTY,
    labels.LABEL_UNCERTAINTY,
    plane_figure.PLANE,
    background_region.BACKGROUND_REGION,
    table1.TABLE_1,
    stories.STORIES,
    perfect_boxes.BOX_PROBABILITY,
    perfect_boxes.CORNER_VARIANCE,
    misalignment.TRANSLATION,
    misalignment.SCALING,
    labels.LABEL_COCO,
    misses.MISSED_SMALL,
    misses.MISSED_COCO,
    misses.FALSE_SMALL,
    repeats.DUPLICATES,
    false_places.FALSE_POSITIONS,
    misses.LOWER_CONFIDENCE,
    repeats.DUPLICATES_COCO,
    order.DUPLICATES_ORDER,
    repeats.DUPLICATES_COCO_100,
    repeats.DUPLICATES_LOWER_COCO,
    worked_example.PRECISION_RECALL,
    matching_rules.MATCHING_RULE,
    notice.WHICH_NOTICES_WHAT,
    PROPER,
    constant.CONSTANT_SIGMA,
    SEGMENTATION,
    training.TRAINING,
    gallery.TRAINING_SCENES,
)
"""The paper's experiments, in the order of the paper, then ours."""

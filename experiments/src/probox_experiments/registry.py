"""All experiments, those of the paper in its order. A new one is a module that describes it, and a line here."""

from __future__ import annotations

from probox_experiments.beyond import constant_sigma, notice
from probox_experiments.beyond.properness.experiment import PROPER
from probox_experiments.beyond.segmenting.experiment import SEGMENTATION
from probox_experiments.experiment import Experiment
from probox_experiments.paper import (
    assignment,
    background_region,
    false_positions,
    labels,
    matching_rule,
    misalignment,
    misses,
    order,
    perfect_boxes,
    plane,
    repeats,
    spatial,
    stories,
    table1,
    worked_example,
)
from probox_experiments.training import experiment as training
from probox_experiments.training import gallery

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: tuple[Experiment, ...] = (
    plane.PLANE,
    background_region.BACKGROUND_REGION,
    assignment.ASSIGNMENT,
    spatial.SPATIAL_UNCERTAINTY,
    labels.LABEL_UNCERTAINTY,
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
    false_positions.FALSE_POSITIONS,
    misses.LOWER_CONFIDENCE,
    repeats.DUPLICATES_COCO,
    order.DUPLICATES_ORDER,
    repeats.DUPLICATES_COCO_100,
    repeats.DUPLICATES_LOWER_COCO,
    worked_example.PRECISION_RECALL,
    matching_rule.MATCHING_RULE,
    notice.WHICH_NOTICES_WHAT,
    PROPER,
    constant_sigma.CONSTANT_SIGMA,
    SEGMENTATION,
    training.TRAINING,
    gallery.TRAINING_SCENES,
)
"""The paper's experiments, in the order of the paper, then ours."""

"""All experiments, those of the paper in its order. A new one is a module that describes it, and a line here."""

from __future__ import annotations

from probox.experiments import figure4, labels, misalignment, misses, repeats, spatial, worked_example
from probox.experiments.assigning import ASSIGNMENT
from probox.experiments.experiment import Experiment
from probox.experiments.false_places import FALSE_POSITIONS
from probox.experiments.matching_rules import MATCHING_RULE
from probox.experiments.order import DUPLICATES_ORDER
from probox.experiments.training import experiment as training
from probox.experiments.training import gallery, optimum

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: tuple[Experiment, ...] = (
    ASSIGNMENT,
    spatial.SPATIAL_UNCERTAINTY,
    labels.LABEL_UNCERTAINTY,
    figure4.PLANE,
    spatial.BOX_PROBABILITY,
    spatial.CORNER_VARIANCE,
    misalignment.TRANSLATION,
    misalignment.SCALING,
    labels.LABEL_COCO,
    misses.MISSED_SMALL,
    misses.MISSED_COCO,
    misses.FALSE_SMALL,
    repeats.DUPLICATES,
    FALSE_POSITIONS,
    misses.LOWER_CONFIDENCE,
    repeats.DUPLICATES_COCO,
    DUPLICATES_ORDER,
    repeats.DUPLICATES_COCO_100,
    repeats.DUPLICATES_LOWER_COCO,
    MATCHING_RULE,
    worked_example.PRECISION_RECALL,
    training.TRAINING,
    gallery.TRAINING_SCENES,
    optimum.TRAINING_OPTIMUM,
)
"""The paper's experiments, in the order of the paper, then ours."""

"""All experiments, those of the paper in its order. A new one is a module that describes it, and a line here."""

from __future__ import annotations

from probox.experiments import figure4, labels, misalignment, misses, repeats, spatial, worked_example
from probox.experiments.constant import CONSTANT_SIGMA
from probox.experiments.experiment import Experiment
from probox.experiments.notice import WHICH_NOTICES_WHAT
from probox.experiments.training import experiment as training
from probox.experiments.training import gallery, optimum

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: tuple[Experiment, ...] = (
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
    misses.LOWER_CONFIDENCE,
    repeats.DUPLICATES_COCO,
    repeats.DUPLICATES_COCO_100,
    repeats.DUPLICATES_LOWER_COCO,
    worked_example.PRECISION_RECALL,
    training.TRAINING,
    gallery.TRAINING_SCENES,
    optimum.TRAINING_OPTIMUM,
    WHICH_NOTICES_WHAT,
    CONSTANT_SIGMA,
)
"""The paper's experiments, in the order of the paper, then ours."""

"""All experiments, those of the paper in its order. A new one is a module that describes it, and a line here."""

from __future__ import annotations

from probox.experiments import figure4, labels, misalignment, misses, repeats, spatial, worked_example
from probox.experiments.experiment import Experiment
from probox.experiments.properness.experiment import PROPER
from probox.experiments.segmenting.experiment import SEGMENTATION
from probox.experiments.training import experiment as training
from probox.experiments.training import gallery

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
    PROPER,
    SEGMENTATION,
    training.TRAINING,
    gallery.TRAINING_SCENES,
)
"""The paper's experiments, in the order of the paper, then ours."""

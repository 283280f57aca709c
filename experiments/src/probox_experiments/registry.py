"""All experiments, those of the paper in its order. Add a new one as a module and a line here."""

from __future__ import annotations

from probox_experiments.beyond.constant_sigma import CONSTANT_SIGMA
from probox_experiments.beyond.proper import PROPER
from probox_experiments.beyond.segmentation import SEGMENTATION
from probox_experiments.beyond.sensitivity import WHICH_NOTICES_WHAT
from probox_experiments.experiment import Experiment
from probox_experiments.paper.assignment import ASSIGNMENT
from probox_experiments.paper.duplicates import (
    DUPLICATES,
    DUPLICATES_COCO,
    DUPLICATES_COCO_100,
    DUPLICATES_LOWER_COCO,
    DUPLICATES_ORDER,
)
from probox_experiments.paper.examples import EXAMPLES
from probox_experiments.paper.matching_rule import MATCHING_RULE, PRECISION_RECALL
from probox_experiments.paper.misalignment import SCALING, TRANSLATION
from probox_experiments.paper.misses import FALSE_POSITIONS, FALSE_SMALL, LOWER_CONFIDENCE, MISSED_COCO, MISSED_SMALL
from probox_experiments.paper.perfect_boxes import BOX_PROBABILITY, CORNER_VARIANCE, LABEL_COCO, LABEL_UNCERTAINTY
from probox_experiments.paper.pixel_regions import BACKGROUND_REGION, PLANE
from probox_experiments.paper.spatial import SPATIAL_UNCERTAINTY
from probox_experiments.paper.table1 import TABLE_1
from probox_experiments.training.comparison import TRAINING, TRAINING_SCENES

EXPERIMENTS: tuple[Experiment, ...] = (
    PLANE,
    BACKGROUND_REGION,
    ASSIGNMENT,
    SPATIAL_UNCERTAINTY,
    LABEL_UNCERTAINTY,
    TABLE_1,
    EXAMPLES,
    BOX_PROBABILITY,
    CORNER_VARIANCE,
    TRANSLATION,
    SCALING,
    LABEL_COCO,
    MISSED_SMALL,
    MISSED_COCO,
    FALSE_SMALL,
    DUPLICATES,
    FALSE_POSITIONS,
    LOWER_CONFIDENCE,
    DUPLICATES_COCO,
    DUPLICATES_ORDER,
    DUPLICATES_COCO_100,
    DUPLICATES_LOWER_COCO,
    PRECISION_RECALL,
    MATCHING_RULE,
    WHICH_NOTICES_WHAT,
    PROPER,
    CONSTANT_SIGMA,
    SEGMENTATION,
    TRAINING,
    TRAINING_SCENES,
)
"""The paper's experiments in its order, then those of this project."""

"""The paper's controlled experiments: each a function that returns a table, with claims that are checked.

>>> import probox_experiments as experiments
>>> table = experiments.duplicates(times=[1, 2, 4])
>>> table["PDQ"].tolist(), table["mAP"].round(6).tolist()
([1.0, 0.5, 0.25], [1.0, 1.0, 1.0])

`probox experiment run all` runs them all, draws them and judges every claim; `SimulatedDetector` is there for
studies of your own.
"""

from probox_experiments.beyond.constant_sigma import constant_sigma
from probox_experiments.beyond.notice import which_notices_what
from probox_experiments.beyond.proper import proper
from probox_experiments.beyond.segmentation import segmentation
from probox_experiments.claims import Claim, ResultTable
from probox_experiments.experiment import Experiment
from probox_experiments.paper.assignment import assignment
from probox_experiments.paper.duplicates import (
    duplicates,
    duplicates_coco,
    duplicates_coco_100,
    duplicates_lower_coco,
    duplicates_order,
)
from probox_experiments.paper.matching_rule import matching_rule
from probox_experiments.paper.misalignment import scaling, translation
from probox_experiments.paper.misses import false_positions, false_small, lower_confidence, missed_coco, missed_small
from probox_experiments.paper.perfect_boxes import box_probability, corner_variance, label_coco, label_uncertainty
from probox_experiments.paper.pixel_regions import background_costs, plane
from probox_experiments.paper.spatial import spatial_uncertainty
from probox_experiments.paper.stories import tell_stories
from probox_experiments.paper.table1 import table_1
from probox_experiments.paper.worked_example import precision_recall
from probox_experiments.registry import EXPERIMENTS
from probox_experiments.running import Run
from probox_experiments.synthetic import SimulatedDetector, pixel_aligned, square_scene, synthetic_truth

__all__ = [
    "EXPERIMENTS",
    "Claim",
    "Experiment",
    "ResultTable",
    "Run",
    "SimulatedDetector",
    "assignment",
    "background_costs",
    "box_probability",
    "constant_sigma",
    "corner_variance",
    "duplicates",
    "duplicates_coco",
    "duplicates_coco_100",
    "duplicates_lower_coco",
    "duplicates_order",
    "false_positions",
    "false_small",
    "label_coco",
    "label_uncertainty",
    "lower_confidence",
    "matching_rule",
    "missed_coco",
    "missed_small",
    "pixel_aligned",
    "plane",
    "precision_recall",
    "proper",
    "scaling",
    "segmentation",
    "spatial_uncertainty",
    "square_scene",
    "synthetic_truth",
    "table_1",
    "tell_stories",
    "translation",
    "which_notices_what",
]

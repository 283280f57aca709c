"""The paper's controlled experiments: each a function that returns a table, with claims that are checked.

>>> from probox import experiments
>>> table = experiments.duplicates(times=[1, 2, 4])
>>> table["PDQ"].tolist(), table["mAP"].round(6).tolist()
([1.0, 0.5, 0.25], [1.0, 1.0, 1.0])

`probox experiment run all` runs them all, draws them and judges every claim; `SimulatedDetector` is there for
studies of your own.
"""

from probox.experiments.beyond.constant_sigma import constant_sigma
from probox.experiments.beyond.notice import which_notices_what
from probox.experiments.beyond.properness.experiment import proper
from probox.experiments.beyond.segmenting.experiment import segmentation
from probox.experiments.claims import Claim
from probox.experiments.experiment import Experiment
from probox.experiments.paper.assignment import assignment
from probox.experiments.paper.background_region import background_costs
from probox.experiments.paper.false_positions import false_positions
from probox.experiments.paper.labels import label_coco, label_uncertainty
from probox.experiments.paper.matching_rule import matching_rule
from probox.experiments.paper.misalignment import scaling, translation
from probox.experiments.paper.misses import false_small, lower_confidence, missed_coco, missed_small
from probox.experiments.paper.order import duplicates_order
from probox.experiments.paper.perfect_boxes import box_probability, corner_variance
from probox.experiments.paper.plane import plane
from probox.experiments.paper.repeats import duplicates, duplicates_coco, duplicates_coco_100, duplicates_lower_coco
from probox.experiments.paper.spatial import spatial_uncertainty
from probox.experiments.paper.stories import tell_stories
from probox.experiments.paper.table1 import table_1
from probox.experiments.paper.worked_example import precision_recall
from probox.experiments.registry import EXPERIMENTS
from probox.experiments.running import Run
from probox.experiments.scenes import pixel_aligned, square_scene, synthetic_truth
from probox.experiments.simulate import SimulatedDetector
from probox.experiments.table import ResultTable

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

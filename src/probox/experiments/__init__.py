"""The paper's controlled experiments: each a function that returns a table, with claims that are checked.

>>> from probox import experiments
>>> table = experiments.duplicates(times=[1, 2, 4])
>>> table["PDQ"].tolist(), table["mAP"].round(6).tolist()
([1.0, 0.5, 0.25], [1.0, 1.0, 1.0])

`probox experiment run all` runs them all, draws them and judges every claim; `SimulatedDetector` is there for
studies of your own.
"""

from probox.experiments.assigning import assignment
from probox.experiments.background_region import background_costs
from probox.experiments.claims import Claim
from probox.experiments.constant import constant_sigma
from probox.experiments.experiment import Experiment
from probox.experiments.false_places import false_positions
from probox.experiments.labels import label_coco, label_uncertainty
from probox.experiments.matching_rules import matching_rule
from probox.experiments.misalignment import scaling, translation
from probox.experiments.misses import false_small, lower_confidence, missed_coco, missed_small
from probox.experiments.notice import which_notices_what
from probox.experiments.order import duplicates_order
from probox.experiments.perfect_boxes import box_probability, corner_variance
from probox.experiments.plane_figure import plane
from probox.experiments.properness.experiment import proper
from probox.experiments.registry import EXPERIMENTS
from probox.experiments.repeats import duplicates, duplicates_coco, duplicates_coco_100, duplicates_lower_coco
from probox.experiments.running import Run
from probox.experiments.scenes import pixel_aligned, square_scene, synthetic_truth
from probox.experiments.segmenting.experiment import segmentation
from probox.experiments.simulate import SimulatedDetector
from probox.experiments.spatial import spatial_uncertainty
from probox.experiments.stories import tell_stories
from probox.experiments.table import ResultTable
from probox.experiments.table1 import table_1
from probox.experiments.worked_example import precision_recall

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

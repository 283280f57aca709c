"""The paper's controlled experiments: each a function that returns a table, with claims that are checked.

>>> from probox import experiments
>>> table = experiments.duplicates(times=[1, 2, 4])
>>> table["PDQ"].tolist(), table["mAP"].round(6).tolist()
([1.0, 0.5, 0.25], [1.0, 1.0, 1.0])

`probox experiment run all` runs them all, draws them and judges every claim; `SimulatedDetector` is there for
studies of your own.
"""

from probox.experiments.claims import Claim
from probox.experiments.experiment import Experiment
from probox.experiments.figure4 import plane
from probox.experiments.labels import label_coco, label_uncertainty
from probox.experiments.misalignment import scaling, translation
from probox.experiments.misses import false_small, lower_confidence, missed_coco, missed_small
from probox.experiments.properness.experiment import proper
from probox.experiments.registry import EXPERIMENTS
from probox.experiments.repeats import duplicates, duplicates_coco, duplicates_coco_100, duplicates_lower_coco
from probox.experiments.running import Run
from probox.experiments.scenes import pixel_aligned, square_scene, synthetic_truth
from probox.experiments.segmenting.experiment import segmentation
from probox.experiments.simulate import SimulatedDetector
from probox.experiments.spatial import box_probability, corner_variance, spatial_uncertainty
from probox.experiments.table import ResultTable
from probox.experiments.worked_example import precision_recall

__all__ = [
    "EXPERIMENTS",
    "Claim",
    "Experiment",
    "ResultTable",
    "Run",
    "SimulatedDetector",
    "box_probability",
    "corner_variance",
    "duplicates",
    "duplicates_coco",
    "duplicates_coco_100",
    "duplicates_lower_coco",
    "false_small",
    "label_coco",
    "label_uncertainty",
    "lower_confidence",
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
    "translation",
]

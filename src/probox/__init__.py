"""probox measures, makes and shows probabilistic object detections.

>>> import probox
>>> truth = probox.GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
>>> found = probox.Detections(
...     classes=["cup"], image_ids=[7], boxes=[[11, 19, 41, 40]], label_probs=[[0.9]],
...     covariances=[[[[1, 0], [0, 1]], [[1, 0], [0, 1]]]])
>>> print(probox.evaluate(truth, found))
  mAP   mLRP    PDQ   pPDQ     Sp    Lbl     FG     BG  TP  FP  FN
80.00  78.46  81.38  81.38  73.58  90.00  96.07  76.59   1   0   0
qualities in per cent; convention: reference
"""

from probox.convention import Convention
from probox.errors import InputError, ProboxError
from probox.evaluation.result import Evaluation
from probox.evaluation.run import Evaluator, evaluate
from probox.evaluation.streaming import evaluate_parquet
from probox.formats import (
    read_coco,
    read_coco_results,
    read_detections,
    read_parquet,
    read_parquet_truth,
    read_rvc1,
    read_rvc1_truth,
    read_truth,
    write_parquet,
)
from probox.measures.boxes import AveragePrecision, average_precision
from probox.measures.boxes.optimal_lrp import LRP, lrp
from probox.pictures.drawing import draw
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks
from probox.version import __version__

__all__ = [
    "LRP",
    "AveragePrecision",
    "Convention",
    "Detections",
    "Evaluation",
    "Evaluator",
    "GroundTruth",
    "InputError",
    "Masks",
    "ProboxError",
    "__version__",
    "average_precision",
    "draw",
    "evaluate",
    "evaluate_parquet",
    "lrp",
    "read_coco",
    "read_coco_results",
    "read_detections",
    "read_parquet",
    "read_parquet_truth",
    "read_rvc1",
    "read_rvc1_truth",
    "read_truth",
    "write_parquet",
]

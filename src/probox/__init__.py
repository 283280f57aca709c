"""probox measures, makes and shows probabilistic object detections.

>>> import probox
>>> truth = probox.GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
>>> found = probox.Detections(
...     classes=["cup"], image_ids=[7], boxes=[[11, 19, 41, 40]], label_probs=[[0.9]],
...     covariances=[[[[1, 0], [0, 1]], [[1, 0], [0, 1]]]])
>>> print(probox.evaluate(truth, found, measures=["pdq"]))
  PDQ   pPDQ     Sp    Lbl     FG     BG  TP  FP  FN
  [%]    [%]    [%]    [%]    [%]    [%]
81.38  81.38  73.58  90.00  96.07  76.59   1   0   0
lower is better: FP, FN; convention: reference; scored against boxes
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from probox.version import __version__

if TYPE_CHECKING:
    from probox.adapters.metric import PDQ
    from probox.analysis.comparison import compare
    from probox.analysis.diagnosis import diagnose
    from probox.analysis.intervals import bootstrap
    from probox.analysis.ranking import Ranking, rank
    from probox.analysis.stories import stories
    from probox.analysis.thresholds import best_threshold
    from probox.convention import Convention
    from probox.errors import InputError, ProboxError
    from probox.evaluation.result import Evaluation
    from probox.evaluation.run import Evaluator, evaluate
    from probox.evaluation.streaming import evaluate_parquet
    from probox.formats import (
        read_coco,
        read_coco_results,
        read_detections,
        read_kitti,
        read_kitti_truth,
        read_open_images,
        read_open_images_truth,
        read_parquet,
        read_parquet_truth,
        read_rvc1,
        read_rvc1_truth,
        read_truth,
        read_voc,
        read_voc_truth,
        read_yolo,
        read_yolo_truth,
        write_parquet,
    )
    from probox.measures.boxes import LRP, AveragePrecision, average_precision, lrp
    from probox.parts import CompactEvaluation, evaluate_part, from_bytes, join, load
    from probox.pictures import draw
    from probox.tables.dataset import Dataset
    from probox.tables.detections import Detections
    from probox.tables.groundtruth import GroundTruth
    from probox.tables.masks import Masks

__all__ = [
    "LRP",
    "PDQ",
    "AveragePrecision",
    "CompactEvaluation",
    "Convention",
    "Dataset",
    "Detections",
    "Evaluation",
    "Evaluator",
    "GroundTruth",
    "InputError",
    "Masks",
    "ProboxError",
    "Ranking",
    "__version__",
    "average_precision",
    "best_threshold",
    "bootstrap",
    "compare",
    "diagnose",
    "draw",
    "evaluate",
    "evaluate_parquet",
    "evaluate_part",
    "from_bytes",
    "join",
    "load",
    "lrp",
    "rank",
    "read_coco",
    "read_coco_results",
    "read_detections",
    "read_kitti",
    "read_kitti_truth",
    "read_open_images",
    "read_open_images_truth",
    "read_parquet",
    "read_parquet_truth",
    "read_rvc1",
    "read_rvc1_truth",
    "read_truth",
    "read_voc",
    "read_voc_truth",
    "read_yolo",
    "read_yolo_truth",
    "stories",
    "write_parquet",
]

# Names are loaded when they are first used: what only asks for help or the version need not wait for NumPy.
_HOMES = {
    "probox.adapters.metric": ("PDQ",),
    "probox.analysis.comparison": ("compare",),
    "probox.analysis.diagnosis": ("diagnose",),
    "probox.analysis.intervals": ("bootstrap",),
    "probox.analysis.stories": ("stories",),
    "probox.analysis.thresholds": ("best_threshold",),
    "probox.analysis.ranking": ("Ranking", "rank"),
    "probox.convention": ("Convention",),
    "probox.errors": ("InputError", "ProboxError"),
    "probox.evaluation.result": ("Evaluation",),
    "probox.evaluation.run": ("Evaluator", "evaluate"),
    "probox.evaluation.streaming": ("evaluate_parquet",),
    "probox.formats": (
        "read_coco",
        "read_coco_results",
        "read_detections",
        "read_kitti",
        "read_kitti_truth",
        "read_open_images",
        "read_open_images_truth",
        "read_parquet",
        "read_parquet_truth",
        "read_rvc1",
        "read_rvc1_truth",
        "read_truth",
        "read_voc",
        "read_voc_truth",
        "read_yolo",
        "read_yolo_truth",
        "write_parquet",
    ),
    "probox.measures.boxes": ("LRP", "AveragePrecision", "average_precision", "lrp"),
    "probox.parts": ("CompactEvaluation", "evaluate_part", "from_bytes", "join", "load"),
    "probox.pictures": ("draw",),
    "probox.tables.dataset": ("Dataset",),
    "probox.tables.detections": ("Detections",),
    "probox.tables.groundtruth": ("GroundTruth",),
    "probox.tables.masks": ("Masks",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name, or a room such as `probox.plots`, when it is first asked for."""
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name.startswith("_"):
        raise AttributeError(f"module 'probox' has no attribute {name!r}")
    else:
        try:
            value = import_module(f"probox.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"probox.{name}":
                raise
            raise AttributeError(f"module 'probox' has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

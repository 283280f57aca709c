"""Public names of probox and their modules."""
# ruff: noqa: I001  (one import for each module)

from . import (
    adapters as adapters,
    analysis as analysis,
    calibration as calibration,
    demo as demo,
    detect as detect,
    distributed as distributed,
    evaluation as evaluation,
    explorer as explorer,
    formats as formats,
    fusion as fusion,
    measures as measures,
    pictures as pictures,
    plots as plots,
    tables as tables,
    torch as torch,
)
from .adapters.metric import PDQ as PDQ
from .analysis.comparison import compare as compare
from .analysis.diagnosis import diagnose as diagnose
from .analysis.examples import example_detections as example_detections
from .analysis.ranking import (
    Ranking as Ranking,
    rank as rank,
)
from .analysis.thresholds import best_threshold as best_threshold
from .convention import Convention as Convention
from .errors import (
    InputError as InputError,
    ProboxError as ProboxError,
)
from .evaluation.evaluate import evaluate as evaluate
from .evaluation.evaluate import Evaluator as Evaluator
from .evaluation.merge import merge as merge
from .evaluation.result import Evaluation as Evaluation
from .evaluation.storage import (
    from_bytes as from_bytes,
    load as load,
)
from .formats import (
    read_detections as read_detections,
    read_truth as read_truth,
    write_parquet as write_parquet,
)
from .measures.boxes import (
    AveragePrecisionResult as AveragePrecisionResult,
    LRPResult as LRPResult,
    average_precision as average_precision,
    lrp as lrp,
)
from .pictures import draw as draw
from .tables.dataset import Dataset as Dataset
from .tables.detections import Detections as Detections
from .tables.groundtruth import GroundTruth as GroundTruth
from .tables.masks import Masks as Masks
from .version import __version__ as __version__

"""Public names of probox, and where they are defined."""

from . import (
    adapters as adapters,
)
from . import (
    analysis as analysis,
)
from . import (
    calibration as calibration,
)
from . import (
    demo as demo,
)
from . import (
    detect as detect,
)
from . import (
    distributed as distributed,
)
from . import (
    evaluation as evaluation,
)
from . import (
    explorer as explorer,
)
from . import (
    formats as formats,
)
from . import (
    fusion as fusion,
)
from . import (
    measures as measures,
)
from . import (
    parts as parts,
)
from . import (
    pictures as pictures,
)
from . import (
    plots as plots,
)
from . import (
    tables as tables,
)
from . import (
    torch as torch,
)
from .adapters.metric import PDQ as PDQ
from .analysis.comparison import compare as compare
from .analysis.diagnosis import diagnose as diagnose
from .analysis.intervals import bootstrap as bootstrap
from .analysis.ranking import (
    Ranking as Ranking,
)
from .analysis.ranking import (
    rank as rank,
)
from .analysis.stories import stories as stories
from .analysis.thresholds import best_threshold as best_threshold
from .convention import Convention as Convention
from .errors import (
    InputError as InputError,
)
from .errors import (
    ProboxError as ProboxError,
)
from .evaluation.result import Evaluation as Evaluation
from .evaluation.run import (
    Evaluator as Evaluator,
)
from .evaluation.run import (
    evaluate as evaluate,
)
from .evaluation.streaming import evaluate_parquet as evaluate_parquet
from .formats import (
    read_detections as read_detections,
)
from .formats import (
    read_truth as read_truth,
)
from .formats import (
    write_parquet as write_parquet,
)
from .measures.boxes import (
    LRP as LRP,
)
from .measures.boxes import (
    AveragePrecision as AveragePrecision,
)
from .measures.boxes import (
    average_precision as average_precision,
)
from .measures.boxes import (
    lrp as lrp,
)
from .parts import (
    CompactEvaluation as CompactEvaluation,
)
from .parts import (
    evaluate_part as evaluate_part,
)
from .parts import (
    from_bytes as from_bytes,
)
from .parts import (
    join as join,
)
from .parts import (
    load as load,
)
from .pictures import draw as draw
from .tables.dataset import Dataset as Dataset
from .tables.detections import Detections as Detections
from .tables.groundtruth import GroundTruth as GroundTruth
from .tables.masks import Masks as Masks
from .version import __version__ as __version__

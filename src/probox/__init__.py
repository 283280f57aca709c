"""probox measures, makes and shows probabilistic object detections."""

from probox.convention import Convention
from probox.detections import Detections
from probox.errors import InputError, ProboxError
from probox.groundtruth import GroundTruth
from probox.masks import Masks

__all__ = ["Convention", "Detections", "GroundTruth", "InputError", "Masks", "ProboxError", "__version__"]

__version__ = "0.1.0"

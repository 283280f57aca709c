"""Adapters: outputs of detector frameworks as tables. No framework is imported; types are recognized by attributes.

>>> from probox.adapters import from_torchvision
>>> output = {"boxes": [[10, 20, 50, 60]], "labels": [2], "scores": [0.8]}
>>> from_torchvision(output, classes=["cup", "dog"], image_ids=7)
Detections(1 detection in 1 image, 2 classes)
"""

from probox.adapters.callbacks import UltralyticsPDQ, lightning_callback
from probox.adapters.dictionaries import from_torchvision, truth_from_torchvision
from probox.adapters.instances import (
    from_detectron2,
    from_mmdet,
    from_probdet,
    from_supervision,
    to_supervision,
    to_supervision_key_points,
)
from probox.adapters.metric import PDQ
from probox.adapters.model_outputs import from_transformers, from_ultralytics
from probox.detect.ultralytics_detector import UltralyticsDetector

__all__ = [
    "PDQ",
    "UltralyticsDetector",
    "UltralyticsPDQ",
    "from_detectron2",
    "from_mmdet",
    "from_probdet",
    "from_supervision",
    "from_torchvision",
    "from_transformers",
    "from_ultralytics",
    "lightning_callback",
    "to_supervision",
    "to_supervision_key_points",
    "truth_from_torchvision",
]

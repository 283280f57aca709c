"""What detector frameworks hold in memory, taken by shape: no framework is imported."""

from probox.adapters.lightning import lightning_callback
from probox.adapters.metric import PDQ
from probox.adapters.ultralytics import from_ultralytics
from probox.adapters.ultralytics_callback import UltralyticsPDQ
from probox.detect.ultralytics import UltralyticsDetector

__all__ = ["PDQ", "UltralyticsDetector", "UltralyticsPDQ", "from_ultralytics", "lightning_callback"]

"""Running detectors: an ONNX graph and a folder of photos give probabilistic detections.

The extra ``detect`` (onnx, onnxruntime, pillow) is required and imported on first use.

>>> from probox.detect import Detector, Options, detect, read_image
>>> detector = Detector("yolox_nano.onnx")                                                        # doctest: +SKIP
>>> detect(detector, [read_image("photo.jpg")], [1], Options(uncertainty="nms-clusters"))[0]      # doctest: +SKIP
Detections(14 detections in 1 image, 80 classes, 14 probabilistic)
"""

from probox.detect.candidates import Candidates, Runner, Traits, read_image
from probox.detect.dropout import Dropout, draw_mask, insert_dropout
from probox.detect.factory import open_detector
from probox.detect.families import FAMILIES, choose_family
from probox.detect.image_files import ImageFile, PhotoSelection, choose_images, find_images
from probox.detect.onnx_runtime import Detector
from probox.detect.run import DetectionRun, detect_images, save_detections
from probox.detect.torchvision_detector import TorchvisionDetector
from probox.detect.transformers_detector import TransformersDetector
from probox.detect.uncertainty import UNCERTAINTIES, Options, detect

__all__ = [
    "FAMILIES",
    "UNCERTAINTIES",
    "Candidates",
    "DetectionRun",
    "Detector",
    "Dropout",
    "ImageFile",
    "Options",
    "PhotoSelection",
    "Runner",
    "TorchvisionDetector",
    "Traits",
    "TransformersDetector",
    "choose_family",
    "choose_images",
    "detect",
    "detect_images",
    "draw_mask",
    "find_images",
    "insert_dropout",
    "open_detector",
    "read_image",
    "save_detections",
]

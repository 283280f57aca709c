"""probox evaluates, creates and plots probabilistic object detections.

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
not comparable with published values: box truth instead of masks
"""

import os.path

import lazy_loader

# Names and subpackages are imported on first use, so that `probox --help` does not import NumPy. `__init__.pyi` lists
# them, also for type checkers.
__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
# `from probox import *` excludes modules: `probox.torch` would hide torch.
_HERE = os.path.dirname(__file__)
__all__ = [
    name
    for name in _names
    if not any(os.path.exists(os.path.join(_HERE, name + end)) for end in ("/__init__.py", ".py"))
]

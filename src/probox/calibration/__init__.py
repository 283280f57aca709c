"""Calibrating detections: sigmas and label probabilities that say what is true, fitted on some images for others.

>>> from probox.calibration import fit
>>> from probox.demo import make_demo
>>> demo = make_demo()
>>> fitted = fit(demo.truth, demo.detectors["unsure"], method="constant", target="nll")
>>> fitted.calibration
Calibration(constant for nll, labels none)
>>> calibrated = fitted.calibration.apply(demo.detectors["sure"])  # plain boxes before
>>> calibrated
Detections(167 detections in 12 images, 7 classes, 167 probabilistic)
"""

from probox.calibration.fitting import Fitted, fit
from probox.calibration.gain import Change, Gain
from probox.calibration.record import Calibration
from probox.calibration.spread import SpreadHead, fit_spread

__all__ = ["Calibration", "Change", "Fitted", "Gain", "SpreadHead", "fit", "fit_spread"]

"""Calibration of standard deviations and label probabilities, fitted on some images for others.

>>> from probox.calibration import fit
>>> from probox.demo import make_demo
>>> demo = make_demo()
>>> fitted = fit(demo.truth, demo.detectors["probabilistic"], method="constant", target="nll")
>>> fitted.calibration
Calibration(constant for nll, labels none)
>>> calibrated = fitted.calibration.apply(demo.detectors["deterministic"])  # adds covariances
>>> calibrated
Detections(167 detections in 12 images, 7 classes, 167 probabilistic)
"""

from probox.calibration.calibration import Calibration
from probox.calibration.cross_validation import Change, Gain
from probox.calibration.fitting import CalibrationFit, fit
from probox.calibration.std_regressor import StdRegressor

__all__ = ["Calibration", "CalibrationFit", "Change", "Gain", "StdRegressor", "fit"]

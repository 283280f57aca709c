"""Training detectors that know what they don't know: pPDQ and the field's losses for PyTorch."""

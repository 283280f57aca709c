"""Scoring rules, calibration and ranking metrics: functions of arrays, and the metrics built on them."""

"""Scoring rules, calibration and ranking metrics: plain functions over arrays, then the measures made of them."""

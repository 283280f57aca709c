"""Uncertain masks against uncertain boxes: experiment `segmentation`."""

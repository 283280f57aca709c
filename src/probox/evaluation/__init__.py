"""Evaluation: matches, metrics, and storage and merging of results."""

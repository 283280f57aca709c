"""Benchmarks of probox, and comparisons with other tools; each module documents how to run it."""

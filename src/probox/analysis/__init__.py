"""Analysis of evaluations: comparison, diagnosis, thresholds, resampling."""

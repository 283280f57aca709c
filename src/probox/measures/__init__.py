"""Metrics: PDQ, and metrics of boxes without covariance; `probox.measures.registry` lists all."""

"""Experiments beyond the paper, and what only they need."""

"""The experiments of the paper, and what only they need."""

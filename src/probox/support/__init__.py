"""Helper modules that all layers may import."""

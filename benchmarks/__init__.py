"""Comparisons with the field's other tools; each module says how to run it."""

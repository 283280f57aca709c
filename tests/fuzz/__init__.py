"""Damaged and hostile files, made from valid ones by the million: see `python -m tests.fuzz --help`."""

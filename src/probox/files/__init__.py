"""Robust reading of input files and atomic writing of output files."""

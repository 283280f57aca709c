"""Is uncertainty honest, and is it worth anything? Scoring rules, calibration, and what sigmas know.

Modules of plain functions over arrays, then the measures made of them.
"""

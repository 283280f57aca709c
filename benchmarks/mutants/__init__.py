"""Mutation testing of the experiments: which claims detect which defects of the metrics.

    python -m benchmarks.mutants [--mutants NAME...] [--experiments NAME...] [--out FILE] [--json FILE] [--csv FILE]

A mutant is a metric with one defect. Each experiment of `probox_experiments` runs, with small data, once with the
correct metric and once with each mutant, both in plain NumPy (`probox.measures.pdq.definition`,
`probox.measures.boxes.box_definition`) instead of the compiled kernel. A claim detects a mutant if it holds with the
correct metric and fails with the mutant. The command names the mutants that no claim detects, and then returns 1.
The report is written to build/mutants.md, or to the file of --out.
"""

from benchmarks.mutants.mutant import IDENTITY, Mutant, patched
from benchmarks.mutants.of_boxes import OF_BOXES
from benchmarks.mutants.of_pairs import OF_PAIRS
from benchmarks.mutants.of_scores import OF_SCORES
from benchmarks.mutants.of_space import OF_SPACE

__all__ = ["IDENTITY", "MUTANTS", "Mutant", "patched"]

MUTANTS: tuple[Mutant, ...] = (*OF_SPACE, *OF_PAIRS, *OF_SCORES, *OF_BOXES)
"""In the order of the equations: pixels, pairs, PDQ, then mAP and moLRP."""

"""Broken measures, and which claims of the experiments see that they are broken.

    python -m benchmarks.mutants [--mutants NAME...] [--experiments NAME...] [--out docs/mutants.md] [--json FILE]

Each mutant is the measure with one thing wrong. Every experiment of `probox_experiments` is run, small, with the
measure in plain NumPy (`probox.measures.pdq.definition`, `probox.measures.boxes.box_definition`) in place of the
compiled kernel, once as it is and once with each mutant. A claim that holds as it is and fails with a mutant sees
that mutant. A mutant that no claim sees is named, and the command ends with status 1.
"""

from benchmarks.mutants.mutant import IDENTITY, Mutant, patched
from benchmarks.mutants.of_boxes import OF_BOXES
from benchmarks.mutants.of_pairs import OF_PAIRS
from benchmarks.mutants.of_scores import OF_SCORES
from benchmarks.mutants.of_space import OF_SPACE

__all__ = ["IDENTITY", "MUTANTS", "Mutant", "patched"]

MUTANTS: tuple[Mutant, ...] = (*OF_SPACE, *OF_PAIRS, *OF_SCORES, *OF_BOXES)
"""In the order of the equations: pixels, pairs, the score, then the other measures."""

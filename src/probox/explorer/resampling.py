"""What the page needs to resample images as Python does: where the random numbers begin, and who may be compared.

The page draws the same images, since it continues NumPy's generator from the same state: its intervals and tests are
those of `probox.bootstrap` and `probox.compare`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np

from probox.analysis.intervals import FEW_IMAGES
from probox.analysis.resampling import DRAWS, MORE_SWAPS, SWAPS
from probox.analysis.same_truth import check_same_truth
from probox.errors import InputError
from probox.evaluation.result import Evaluation

__all__ = ["obstacles", "resampling_constants"]

LEVEL, REPLICATES, SEED = 0.95, 1000, 0
"""The defaults of `probox.bootstrap` and `probox.compare`."""


def resampling_constants() -> dict[str, Any]:
    """Return the numbers of the page's resampling; generators as state and increment, 32 hexadecimal digits each."""
    return {
        "LEVEL": LEVEL,
        "REPLICATES": REPLICATES,
        "FEW": FEW_IMAGES,
        "NORMAL": NormalDist().inv_cdf(0.5 + LEVEL / 2),
        "DRAWS": _generator(DRAWS),
        "SWAPS": _generator(SWAPS),
        "MORE": _generator(MORE_SWAPS),
    }


def _generator(what_for: int) -> list[str]:
    state: Any = np.random.default_rng([SEED, what_for]).bit_generator.state
    assert state["bit_generator"] == "PCG64", state["bit_generator"]
    return [f"{state['state'][name]:032x}" for name in ("state", "inc")]


def obstacles(results: Mapping[str, Evaluation]) -> dict[str, str]:
    """Return why results may not be compared, by the numbers of both, ``"0,2"``; pairs that may are left out."""
    found = {}
    for (a, first), (b, second) in combinations(enumerate(results.items()), 2):
        try:
            check_same_truth(dict([first, second]))
        except InputError as error:
            found[f"{a},{b}"] = str(error)
    return found

"""Three arrays, and the scores of all classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.worlds import boxes_truth, simulated


def hold(folder: Path) -> dict[str, Any]:
    truth = boxes_truth(4)
    found = simulated(truth)
    return {
        "truth": truth,
        "boxes": found.boxes,
        "scores": found.scores,
        "labels": found.labels,
        "image_ids": found.image_ids,
        "sigmas": np.full((len(found), 4), 2.0),
        "all_scores": found.label_probs,
        "check": lambda space: np.testing.assert_array_equal(space["found"].covariances, found.covariances),
    }

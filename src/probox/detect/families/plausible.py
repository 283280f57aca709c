"""Whether what a graph says can be what its family takes it for: numbers that no detector gives are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Candidates
from probox.errors import InputError

__all__ = ["Plausibility"]

Array = npt.NDArray[Any]

SLACK = 1e-3
"""How far a score may be outside 0..1: what half precision rounds."""
LOOKED_AT = 8
"""Images whose boxes are looked at; scores are looked at in all."""
ENOUGH = 10
"""Boxes that must agree on something odd before it is one."""
DENSE = 100
"""Candidates of which a detector has no fewer that looks everywhere in the image."""
FAR = 100.0
"""Sides of the image beyond which half of all boxes do not reach."""
WEAK = 0.05
"""A score that means something: boxes below may be anything."""
REMEDY = "name another family, or export the model otherwise"


class Plausibility:
    """What is certainly wrong with a graph's candidates is raised; what is only odd is kept as notes.

    A network that sees nothing in a photo says so with low scores, which is neither.

    Parameters
    ----------
    family : str
        What the graph is taken for, for messages.
    names : sequence of str
        The graph's outputs.
    file : str
        The graph's file.
    """

    def __init__(self, family: str, names: Sequence[str], file: str) -> None:
        self._family, self._names, self._file = family, tuple(names), file
        self._seen = 0
        self._best = 0.0
        self._odd: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what looked odd in the images so far, one sentence each."""
        odd = list(self._odd)
        if self._seen and self._best <= WEAK:
            odd.append(
                f"no candidate of {self._seen} images scored above {WEAK:g} (the best {self._best:.2g}): "
                f"if that is not expected, the graph may not be one of {self._family}"
            )
        return tuple(odd)

    def check(self, found: Candidates, outputs: Sequence[Array], size: tuple[int, int]) -> None:
        """Raise if the candidates of an image of (width, height) can't be right."""
        self._seen += 1
        if not len(found):
            return
        lowest, highest = float(found.scores.min()), float(found.scores.max())
        if not np.isfinite(lowest + highest):
            self._refuse("scores are not numbers (NaN or infinite)", outputs)
        if lowest < -SLACK or highest > 1.0 + SLACK:
            self._refuse(f"scores go from {lowest:.4g} to {highest:.4g}, so they are no probabilities", outputs)
        self._best = max(self._best, highest)
        if self._seen > LOOKED_AT:
            return
        if found.labels is None and found.scores.size >= DENSE and lowest >= 0.5:
            self._refuse("every class of every candidate scores above 0.5, as a sigmoid of a sigmoid would", outputs)
        sign = _sign_of_boxes(found, size)
        if sign is not None:
            self._refuse(sign, outputs)
        if len(found) >= ENOUGH and highest > WEAK and (found.scores == found.scores[0]).all():
            self._odd[f"all {len(found)} candidates of an image have the same scores"] = None

    def describe(self, outputs: Sequence[Array]) -> str:
        """Return outputs in words: name, shape, least and greatest number."""
        return ", ".join(_described(name, values) for name, values in zip(self._names, outputs, strict=False))

    def _refuse(self, sign: str, outputs: Sequence[Array]) -> None:
        problem = f"taken for {self._family}, but {sign} (outputs: {self.describe(outputs)})"
        raise InputError(problem, file=self._file, remedy=REMEDY)


def _sign_of_boxes(found: Candidates, size: tuple[int, int]) -> str | None:
    """Return what is certainly wrong with the boxes, None if nothing is."""
    boxes, sides = found.boxes, np.array(size, np.float64)
    meant = boxes[found.scores.max(axis=1) > WEAK]
    if not np.isfinite(meant).all():
        return "boxes are not numbers (NaN or infinite)"
    usable = boxes[np.isfinite(boxes).all(axis=1)]
    if len(usable) < ENOUGH:
        return None
    extent = usable[:, 2:] - usable[:, :2]
    if (np.median(np.abs(extent), axis=0) > FAR * sides).any():
        return f"most boxes are more than {FAR:g} times as large as the image, as decoded outputs would be"
    if (extent < 0).any(axis=1).mean() > 0.5:
        return "most boxes end before they begin"
    inside = np.clip(usable, 0.0, np.tile(sides, 2))
    covered = (inside[:, 2:] - inside[:, :2]) / sides
    if (covered >= 0.999).all():
        return "every box is as large as the image"
    if len(meant) >= ENOUGH and not (_within(meant, sides) > 0).all(axis=1).any():
        return "no box lies in the image"
    if len(usable) >= DENSE and (np.ptp(usable.reshape(-1, 2), axis=0) < 0.01 * sides).all():
        return "all boxes lie in one hundredth of the image, as shares taken for pixels would"
    return None


def _within(boxes: npt.NDArray[np.float64], sides: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return width and height of what lies in the image."""
    inside = np.clip(boxes, 0.0, np.tile(sides, 2))
    return inside[:, 2:] - inside[:, :2]


def _described(name: str, values: Array) -> str:
    shape = ", ".join(map(str, values.shape))
    if not values.size:
        return f"{name} [{shape}]"
    finite = values[np.isfinite(values)]
    reach = f"{finite.min():.4g} to {finite.max():.4g}" if finite.size else "no numbers"
    return f"{name} [{shape}] {reach}"

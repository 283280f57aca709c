"""What is compared: the same detector, trained with one loss or another of its boxes and their spread."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from probox.errors import InputError

__all__ = ["ARMS", "PPDQ_ARMS", "Arm", "find_arm"]


@dataclasses.dataclass(frozen=True)
class Arm:
    """A loss of boxes and their spread.

    Parameters
    ----------
    name : str
        What tables call it.
    title : str
        What figures call it.
    loss : str
        The loss of `probox.torch`; none: L1 of the means alone.
    weight : float
        What it is multiplied by, so that gradients are about as long as those of the L1 that all begin with. It hardly
        matters, since nothing else teaches the layers that it teaches, and the optimiser looks at directions: over a
        range of ten, PDQ changed by at most 0.1 points on scenes that the experiment does not use.
    options : mapping
        Further arguments of the loss.
    spread : {"learned", "constant", "none"}
        Whether detections have the sigmas that were learned, one for all that is best on validation images, or none.
    """

    name: str
    title: str
    loss: str = ""
    weight: float = 1.0
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    spread: Literal["learned", "constant", "none"] = "learned"

    @property
    def reads_pixels(self) -> bool:
        """Return whether the truth is given as whole pixels, which pPDQ compares with, or as coordinates."""
        return self.loss == "ppdq_loss"


ARMS: tuple[Arm, ...] = (
    Arm("l1", "L1, plain boxes", weight=0.3, spread="none"),
    Arm("l1-constant", "L1, one sigma", weight=0.3, spread="constant"),
    Arm("nll", "NLL", "nll_loss"),
    Arm("energy", "energy score", "energy_score_loss"),
    Arm("crps", "CRPS", "crps_loss"),
    Arm("dmm", "moment matching", "dmm_loss"),
    Arm("ppdq-log", "\N{MINUS SIGN}log pPDQ", "ppdq_loss", weight=10.0, options={"form": "log"}),
    Arm("ppdq-plain", "1 \N{MINUS SIGN} pPDQ", "ppdq_loss", weight=10.0, options={"form": "plain"}),
)

PPDQ_ARMS = tuple(arm.name for arm in ARMS if arm.loss == "ppdq_loss")


def find_arm(name: str) -> Arm:
    """Return the arm of this name."""
    for arm in ARMS:
        if arm.name == name:
            return arm
    raise InputError(f"unknown arm {name!r:.40}", remedy=f"choose from {', '.join(arm.name for arm in ARMS)}")

"""The spread head with a network: sigmas for a frozen detector that need not be linear in what it says."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from probox.calibration.learning import EdgeErrors, Learner
from probox.calibration.spread import SpreadHead
from probox.calibration.spread_fit import LawFit
from probox.convention import Convention
from probox.errors import InputError
from probox.torch.spread_loss import LOSSES
from probox.torch.spread_training import learn

__all__ = ["NetworkLearner", "SpreadNetwork", "fit_spread"]

WIDEST, DEEPEST = 1024, 8
"""More units or layers than these are refused: what a network this small is for, they are not."""


@dataclasses.dataclass(frozen=True)
class NetworkLearner:
    """Learns a law of spread with a network, for `probox.calibration.fit` with ``method="learned"``.

    >>> from probox.calibration import fit
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> learner = NetworkLearner(loss="crps", decay=100.0, ridge=1.0, folds=2)
    >>> fitted = fit(demo.truth, demo.detectors["sure"], method="learned", target="nll", folds=2, learner=learner)
    >>> fitted.notes[2][:32]
    'the linear law stands alone: a n'

    Parameters
    ----------
    hidden : tuple of int
        How many units the network's layers have.
    loss : {"nll", "energy", "crps", "ppdq"}
        What it is trained with: a loss of `probox.torch`.
    decay : float, optional
        How much it is drawn towards the linear law. Default: chosen by cross-validation by image.
    ridge : float, optional
        How much the linear law's slopes are drawn towards 0. Default: chosen in the same way.
    folds, seed : int
        Of this cross-validation; the seed is that of the network's start, too.
    """

    hidden: tuple[int, ...] = (32,)
    loss: str = "nll"
    decay: float | None = None
    ridge: float | None = None
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        hidden = (self.hidden,) if isinstance(self.hidden, int) else self.hidden
        if (
            not isinstance(hidden, tuple | list)
            or not 1 <= len(hidden) <= DEEPEST
            or not all(_is_whole(own) and 1 <= own <= WIDEST for own in hidden)
        ):
            raise InputError(
                f"expected hidden to be 1 to {DEEPEST} whole numbers from 1 to {WIDEST}, but got {self.hidden!r:.40}"
            )
        object.__setattr__(self, "hidden", tuple(int(own) for own in hidden))
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise InputError(f"expected loss to be one of {', '.join(LOSSES)}, but got {self.loss!r:.40}")
        for name in ("decay", "ridge"):
            value = getattr(self, name)
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if value is not None and not (number and 0 < value < math.inf):
                raise InputError(f"expected {name} to be a number above 0, or None, but got {value!r:.40}")
        for name, least in (("folds", 2), ("seed", 0)):
            value = getattr(self, name)
            if not _is_whole(value) or not least <= value < 1 << 63:
                raise InputError(f"expected {name} to be a whole number from {least}, but got {value!r:.40}")

    def __call__(self, errors: EdgeErrors) -> LawFit:
        """Return the law that suits errors best, the linear one if held-out images are not for a network."""
        return learn(
            errors, hidden=self.hidden, loss=self.loss, decay=self.decay, ridge=self.ridge,
            folds=int(self.folds), seed=int(self.seed),
        )  # fmt: skip


class SpreadNetwork(SpreadHead):
    """A `probox.calibration.SpreadHead` that may add a small network to the linear law, trained with a loss.

    The network starts as nothing, and is kept only where held-out images of the fit are for it; otherwise the head is
    the linear one, and `notes_` says so. What was learned is plain numbers: `predict`, `apply` and stored
    calibrations need no torch. `docs/spread.md` says how it is trained and what it is worth.

    >>> from probox.torch import SpreadNetwork
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (600, 1))
    >>> head = SpreadNetwork(folds=2).fit(x, rng.normal(size=(600, 4)) * np.exp(1 - 2 * x**2))
    >>> head.predict([[-1.0], [0.0], [1.0]]).mean(axis=1).round().tolist()  # high in the middle
    [0.0, 3.0, 0.0]

    Parameters
    ----------
    hidden, loss, decay
        As for `NetworkLearner`; pPDQ is for tables.
    target, level, own_sigmas, ridge, folds, seed, convention
        As for `probox.calibration.SpreadHead`. The loss shapes the sigmas, and the target sets the height of all.
    """

    _parameters: ClassVar[tuple[str, ...]] = ("hidden", "loss", "decay", *SpreadHead._parameters)

    def __init__(
        self,
        *,
        hidden: tuple[int, ...] = (32,),
        loss: str = "nll",
        decay: float | None = None,
        target: str = "nll",
        level: float = 0.9,
        own_sigmas: bool | None = None,
        ridge: float | None = None,
        folds: int = 5,
        seed: int = 0,
        convention: str | Convention | None = None,
    ) -> None:
        super().__init__(
            target=target, level=level, own_sigmas=own_sigmas, ridge=ridge, folds=folds, seed=seed,
            convention=convention,
        )  # fmt: skip
        self.hidden = hidden
        self.loss = loss
        self.decay = decay

    def _learner(self) -> Learner:
        return NetworkLearner(self.hidden, self.loss, self.decay, self.ridge, self.folds, self.seed)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._learner()


def fit_spread(
    features: Any, residuals: Any, *, sides: Any = None, images: Any = None, **parameters: Any
) -> SpreadNetwork:
    """Return a spread network fitted on detections and their truth, or on arrays, as `SpreadNetwork(...).fit(...)`."""
    return SpreadNetwork().set_params(**parameters).fit(features, residuals, sides=sides, images=images)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)

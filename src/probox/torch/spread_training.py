"""Training a small network on what a linear law of spread leaves, and finding out whether it is worth having.

The last layer starts at 0, so the network starts as nothing, and the law as the linear one. What is minimised, by
L-BFGS over all boxes at once, is

    sum of losses + decay / 2 * sum of squared changes of weights and biases since the start

the last bias being free. Few steps and a large decay keep it near the linear law. Both are chosen by the loss on
held-out images; there the linear law is fitted without these images too, and its height is that of least loss, so that
the network does not win by the height of all sigmas, which is settled afterwards. It is taken if its held-out loss is
lower by more than two standard errors of the difference over images.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from probox.analysis.resampling import assign_folds
from probox.calibration.learning import EdgeErrors, LinearLearner
from probox.calibration.spread_fit import DIGITS, LawFit
from probox.calibration.spread_law import SpreadLaw
from probox.calibration.spread_network import Layer, Network
from probox.torch.spread_loss import SpreadLoss, unit_of
from probox.torch.threads import one_thread

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DECAYS", "ENOUGH_PAIRS", "PPDQ_STEPS", "STEPS", "SURELY", "learn", "outputs"]

DECAYS = (3.0, 100.0)
"""Among these the decay is chosen."""

STEPS = (5, 10, 20, 40)
"""Among these the number of steps is chosen."""

PPDQ_STEPS = (5, 10)
"""The same for pPDQ, which takes a hundred times as long as NLL."""

ENOUGH_PAIRS = {"nll": 2000, "crps": 2000, "energy": 1000, "ppdq": 300}
"""So many pairs, of images drawn at random, are enough to choose by; the last two losses take longer."""

SURELY = 2.0
"""A network is taken if it is better by more than so many standard errors: the best of several settings is often better
by one, and by luck."""

LEVEL_STEPS = 10
"""Steps to the height of least loss."""

Floats = npt.NDArray[np.float64]
Parameters = list[tuple[Any, Any]]
"""Weights and biases of each layer, as tensors."""


@dataclasses.dataclass(frozen=True)
class Choice:
    """What held-out images say: the settings of least loss, and how much lower it is than the linear law's."""

    decay: float
    steps: int
    gain: float
    """In the unit of the loss, for each box."""
    error: float
    """Its standard error over images."""


def learn(
    errors: EdgeErrors,
    *,
    hidden: tuple[int, ...],
    loss: str,
    decay: float | None = None,
    ridge: float | None = None,
    folds: int = 5,
    seed: int = 0,
) -> LawFit:
    """Return the law that suits errors best: with a network, if held-out images are for it.

    Parameters
    ----------
    errors : EdgeErrors
        Boxes whose truth is known.
    hidden : tuple of int
        How many units the layers have.
    loss : str
        What is minimised, one of `probox.torch.spread_loss.LOSSES`.
    decay : float, optional
        How much is drawn towards the linear law. Default: chosen among `DECAYS`.
    ridge : float, optional
        Of the linear law. Default: chosen.
    folds, seed : int
        Of the choices; the seed is that of the network's start, too.
    """
    linear = LinearLearner(ridge, folds, seed)(errors)
    unit, decays = unit_of(errors, loss), DECAYS if decay is None else (decay,)
    with one_thread():
        choice = _chosen(errors, hidden, loss, decays, unit, linear.ridge, folds, seed)
    if choice is None:
        note = "the linear law stands alone: of one image none can be held out, so nothing speaks for a network"
        return dataclasses.replace(linear, notes=(note,))
    units = " and ".join(map(str, hidden))
    said = f"{choice.gain:+.2g}, with a standard error of {choice.error:.2g}"
    if not choice.gain > SURELY * choice.error:
        note = f"the linear law stands alone: a network of {units} is not surely better in {loss} on held-out images"
        return dataclasses.replace(linear, notes=(f"{note} ({said})",))
    problem = _Problem(errors, linear.law, loss, unit)
    with one_thread():
        *_, parameters = problem.trained(problem.level(), hidden, choice.decay, seed, (choice.steps,))
    note = (
        f"a network of {units} besides, trained in {choice.steps} steps with a decay of {choice.decay:g}: better than "
        f"the linear law in {loss} on held-out images ({said})"
    )
    return dataclasses.replace(linear, law=dataclasses.replace(linear.law, network=_written(parameters)), notes=(note,))


def outputs(parameters: Parameters, inputs: Tensor) -> Tensor:
    """Return what a network says, (...), of inputs (..., F)."""
    *inner, (weights, biases) = parameters
    for own, bias in inner:
        inputs = torch.tanh(inputs @ own.T + bias)
    return (inputs @ weights.T + biases)[..., 0]


def _chosen(
    errors: EdgeErrors,
    hidden: tuple[int, ...],
    loss: str,
    decays: tuple[float, ...],
    unit: float,
    ridge: float,
    folds: int,
    seed: int,
) -> Choice | None:
    """Return what held-out images say; None if there are not two."""
    groups = np.arange(len(errors)) if errors.images is None else np.unique(errors.images, return_inverse=True)[1]
    groups = groups.reshape(-1)
    count = int(groups.max()) + 1
    parts = min(folds, count)
    if parts < 2:
        return None
    order = np.random.default_rng(seed).permutation(count)
    sizes = np.cumsum(np.bincount(groups, minlength=count)[order])
    some = order[: max(parts, int(np.searchsorted(sizes, ENOUGH_PAIRS[loss])) + 1)]
    rows = np.isin(groups, some)
    errors, groups = errors.take(rows), np.searchsorted(np.sort(some), groups[rows])
    images, fold = len(some), assign_folds(len(some), parts, seed)[groups]
    steps = PPDQ_STEPS if loss == "ppdq" else STEPS
    gains = np.zeros((len(decays), len(steps), images))
    for number in range(parts):
        seen, unseen, where = errors.take(fold != number), errors.take(fold == number), groups[fold == number]
        law = LinearLearner(ridge)(seen).law
        inside, outside = _Problem(seen, law, loss, unit), _Problem(unseen, law, loss, unit)
        level = inside.level()
        before = outside.losses(torch.full_like(outside.linear, level))
        for row, decay in enumerate(decays):
            for column, parameters in enumerate(inside.trained(level, hidden, decay, seed, steps)):
                after = outside.losses(outputs(parameters, outside.inputs))
                gains[row, column] += np.bincount(where, before - after, images)
    total = np.nan_to_num(gains.sum(axis=2), nan=-np.inf)
    at, last = divmod(int(total.argmax()), len(steps))
    best, pairs = gains[at, last], len(errors)
    return Choice(
        decays[at], steps[last], float(best.sum()) / pairs, math.sqrt(images) * float(best.std(ddof=1)) / pairs
    )


class _Problem:
    """Boxes, what a linear law says of them, and a loss."""

    def __init__(self, errors: EdgeErrors, law: SpreadLaw, loss: str, unit: float) -> None:
        self.inputs = torch.from_numpy(law.inputs(errors.features))
        self.linear = torch.from_numpy(np.log(law.relative_sigmas(errors.features, errors.classes)))
        self.loss = SpreadLoss(errors, loss, unit)

    def losses(self, added: Tensor) -> Floats:
        """Return the losses of boxes, (N,), if this is added to what the linear law says."""
        with torch.no_grad():
            return np.asarray(self.loss.each(self.linear + added))

    def level(self) -> float:
        """Return what makes the linear law as high as suits the loss best."""
        level = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        list(_descent([level], lambda: self.loss.each(self.linear + level).sum(), (LEVEL_STEPS,)))
        return float(level.detach())

    def trained(
        self, level: float, hidden: tuple[int, ...], decay: float, seed: int, steps: tuple[int, ...]
    ) -> Iterator[Parameters]:
        """Yield the network after so many steps, each time the same tensors."""
        parameters = _start(self.inputs.shape[-1], hidden, level, seed)
        flat = [own for layer in parameters for own in layer]
        start = [own.detach().clone() for own in flat]

        def objective() -> Tensor:
            changes = sum(((own - was) ** 2).sum() for own, was in zip(flat[:-1], start[:-1], strict=True))
            return self.loss.each(self.linear + outputs(parameters, self.inputs)).sum() + 0.5 * decay * changes

        for _ in _descent(flat, objective, steps):
            yield parameters


def _start(inputs: int, hidden: tuple[int, ...], level: float, seed: int) -> Parameters:
    """Return a network that says `level` whatever goes in: its units bend at places of their own, and none counts."""
    chance = torch.Generator().manual_seed(seed)
    parameters: Parameters = []
    for width in hidden:
        weights = torch.randn(width, inputs, generator=chance, dtype=torch.float64) / math.sqrt(inputs)
        parameters.append((weights, torch.randn(width, generator=chance, dtype=torch.float64)))
        inputs = width
    last = (torch.zeros(1, inputs, dtype=torch.float64), torch.full((1,), level, dtype=torch.float64))
    for own in (tensor for layer in [*parameters, last] for tensor in layer):
        own.requires_grad_()
    return [*parameters, last]


def _descent(tensors: list[Any], objective: Any, steps: tuple[int, ...]) -> Iterator[None]:
    """Go downhill, and stop after so many steps in all."""
    optimizer = torch.optim.LBFGS(tensors, max_iter=1, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        value: Tensor = objective()
        value.backward()
        return value

    done = 0
    for goal in steps:
        optimizer.param_groups[0]["max_iter"] = goal - done
        # As many evaluations as a line search may take: otherwise it ends the steps.
        optimizer.param_groups[0]["max_eval"] = 25 * (goal - done)
        optimizer.step(closure)
        done = goal
        yield


def _written(parameters: Parameters) -> Network:
    """Return a network as plain numbers, of as many digits as those of the law."""

    def numbers(values: list[float]) -> tuple[float, ...]:
        return tuple(float(f"{value:.{DIGITS}g}") for value in values)

    return Network(
        tuple(
            Layer(tuple(map(numbers, weights.detach().tolist())), numbers(biases.detach().tolist()))
            for weights, biases in parameters
        )
    )

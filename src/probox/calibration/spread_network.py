"""A small network that says what a linear law leaves: plain numbers, evaluated without any framework."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

__all__ = ["Layer", "Network"]

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer: for each of its units the weights of what goes in, and a bias."""

    weights: tuple[tuple[float, ...], ...]
    biases: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Network:
    """Layers one after the other, with tanh between them; the last one has a single unit.

    >>> network = Network((Layer(((1.0, 0.0),), (0.0,)), Layer(((2.0,),), (0.5,))))
    >>> network(np.array([[0.0, 7.0], [100.0, 7.0]])).tolist()
    [0.5, 2.5]

    Parameters
    ----------
    layers : tuple of Layer
        At least two.
    """

    layers: tuple[Layer, ...]

    @property
    def hidden(self) -> tuple[int, ...]:
        """Return how many units each layer has, the last one left out."""
        return tuple(len(layer.biases) for layer in self.layers[:-1])

    def __call__(self, inputs: Floats) -> Floats:
        """Return what the network says, (...), of inputs (..., F)."""
        *inner, last = self.layers
        for layer in inner:
            inputs = np.tanh(inputs @ np.array(layer.weights).T + np.array(layer.biases))
        return np.asarray((inputs @ np.array(last.weights).T + np.array(last.biases))[..., 0])

"""Random masks: how they are drawn, the same ones whatever runs before, beside or after.

A mask is a number for each channel (or element) of a layer's input: 0 with the probability `rate`, else
``1 / (1 - rate)``, so that the expected input stays as it is. It depends on the seed, the image's id, the number of the
pass and the layer, and on nothing else: an interrupted run that goes on, another order of images, other batches or more
threads draw the same masks, and so do ONNX Runtime and torch on any device.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Candidates
from probox.errors import InputError

__all__ = ["DEFAULT_MASKS", "DEFAULT_RATE", "MASKS", "Dropout", "Passes", "draw_mask"]

MASKS = ("channels", "elements")
"""What one random number may decide about."""

DEFAULT_RATE = 0.05
"""The rate for networks that were not trained with dropout: what they stand, see docs/dropout.md."""

DEFAULT_MASKS = "elements"
"""What is masked in such networks."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dropout:
    """Which layers get random masks, and how they are drawn.

    Parameters
    ----------
    rate : float, optional
        Probability that a channel or element is dropped. Default: the ratio of the network's own dropout layers where
        these are masked, else 0.05.
    layers : str
        ``heads``: the last layers before the outputs; ``backbone``: all others but the first; ``existing``: the
        network's own dropout layers; ``auto``: existing ones, or the heads of a network that has none; anything else is
        a regular expression on the names of layers.
    masks : {"channels", "elements"}, optional
        What one random number decides about: a whole channel, shared by all cells, or a single element. Default:
        elements; existing dropout layers keep their own way.
    seed : int
        Seed of the masks.

    Examples
    --------
    >>> Dropout(rate=0.1, layers="backbone").seed
    0
    >>> Dropout(rate=1.5)
    Traceback (most recent call last):
    probox.errors.InputError: expected a dropout rate between 0 and 1, but got 1.5
    """

    rate: float | None = None
    layers: str = "auto"
    masks: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rate is not None and not 0.0 < self.rate < 1.0:
            raise InputError(f"expected a dropout rate between 0 and 1, but got {self.rate!r}")
        if not self.layers.strip():  # as an expression it would name every layer
            raise InputError(
                "expected dropout layers to be auto, heads, backbone, existing or a regular expression, but got nothing"
            )
        if self.masks is not None and self.masks not in MASKS:
            raise InputError(f"expected masks to be 'channels' or 'elements', but got {self.masks!r}")


class Passes(list[Candidates]):
    """An image's candidates in each pass with masks, and in one without."""

    def __init__(self, drawn: Iterable[Candidates], plain: Candidates | None = None) -> None:
        super().__init__(drawn)
        self.plain = plain


def draw_mask(
    shape: tuple[int, ...],
    rate: float,
    dtype: npt.DTypeLike,
    *,
    seed: int,
    image_id: int,
    number: int,
    layer: str,
) -> npt.NDArray[Any]:
    """Return the mask of a layer's input for one pass over one image.

    Parameters
    ----------
    shape : tuple of int
        Its shape, which broadcasts to the layer's input.
    rate : float
        Probability of a 0.
    dtype : dtype
        The layer's own type of numbers.
    seed, image_id, number, layer
        Who it is for: the seed of the run, the image, the pass, the layer.

    Examples
    --------
    >>> draw_mask((6,), 0.5, "float16", seed=1, image_id=139, number=0, layer="head.3").tolist()
    [2.0, 2.0, 2.0, 2.0, 0.0, 0.0]
    """
    who = hashlib.blake2b(f"{seed} {image_id} {number} {layer}".encode(), digest_size=16).digest()
    # A generator of its own for each mask: there is no state that the order of masks could change.
    generator = np.random.SFC64(int.from_bytes(who, "little"))
    count = math.prod(shape)
    # Sixteen bits for each number: drawing must not take longer than the network, and the rate is right to 0.00001.
    drawn = generator.random_raw(-(-count // 4)).astype("<u8").view("<u2")[:count]
    kept = drawn >= min(max(round(rate * 65536), 1), 65535)
    return np.multiply(kept, 1.0 / (1.0 - rate), dtype=np.dtype(dtype)).reshape(shape)

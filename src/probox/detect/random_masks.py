"""Random masks of MC dropout: how they are drawn, and what they change."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.measures.boxes.box_definition import match_greedily, overlaps
from probox.notes import InputWarning, Note, as_notes
from probox.support.types import Array, Floats
from probox.tables.detections import Detections

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


def draw_mask(
    shape: tuple[int, ...],
    rate: float,
    dtype: npt.DTypeLike,
    *,
    seed: int,
    image_id: int,
    number: int,
    layer: str,
) -> Array:
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


LEVEL = 0.5
"""The score that detections are counted above."""
SAME_IOU = 0.5
"""The least IoU of two detections of one class that are taken for the same."""
LARGE = 0.3
"""The fraction of the detections above the level that may disappear, or appear, without a warning."""


@dataclasses.dataclass(frozen=True)
class MaskCost:
    """How many detections score above a level, and how high on average, without masks and with them."""

    level: float
    plain: int
    masked: int
    remain: int
    """Detections above the level in both; the others of `plain` disappear, the others of `masked` appear."""
    plain_mean: float
    masked_mean: float

    @property
    def disappear(self) -> int:
        """Return how many detections score above the level without masks only."""
        return self.plain - self.remain

    @property
    def appear(self) -> int:
        """Return how many detections score above the level with masks only."""
        return self.masked - self.remain

    @property
    def large(self) -> bool:
        """Return whether masks remove or add a large fraction of the detections."""
        return self.plain > 0 and max(self.disappear, self.appear) > LARGE * self.plain

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return notes on both directions, and a warning if one is large."""
        which = f"detections above {self.level:g}" if self.level else "detections"
        if not self.plain:
            return as_notes([f"without masks there are no {which}, with masks {self.masked:,}"])
        means = f", with masks {self.masked_mean:.2f}" if self.masked else ""
        false = ", which may be false positives" if self.appear else ""
        text = (
            f"with random masks, {self.remain:,} of {self.plain:,} {which} remain, {self.disappear:,} disappear and "
            f"{self.appear:,} appear{false}. Mean score without masks {self.plain_mean:.2f}{means}."
        )
        said = as_notes([text])
        if not self.large:
            return said
        removed, added = self.disappear / self.plain, self.appear / self.plain
        return (*said, InputWarning("masks-costly", removed=removed, added=added, which=which))

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by their names, None for a mean of nothing."""
        numbers = dataclasses.asdict(self)
        named = {name: None if value != value else value for name, value in numbers.items()}
        return named | {"disappear": self.disappear, "appear": self.appear, "large": self.large}


def pair_scores(
    boxes: Floats,
    labels: npt.NDArray[np.integer[Any]],
    scores: Floats,
    masked: Detections,
) -> npt.NDArray[np.float32]:
    """Return the score (N, 2) of each detection without masks, and of the same one with masks, 0 if there is none.

    Detections are the same if they have one class and an IoU of at least 0.5. Each detection with masks, the best
    first, gets the one without masks that it overlaps most among those that are left.
    """
    order = np.argsort(-masked.scores, kind="stable")
    with_masks, without = (
        np.concatenate([own[:, :2], own[:, 2:] - own[:, :2]], axis=1) for own in (masked.boxes[order], boxes)
    )
    nothing = np.zeros(len(boxes), bool)
    ious = overlaps(with_masks, without, nothing) * (masked.labels[order][:, None] == labels)
    match = match_greedily(ious, SAME_IOU, nothing, nothing)
    pairs = np.stack([scores, np.zeros(len(scores))], axis=1).astype(np.float32)
    pairs[match[match >= 0], 1] = masked.scores[order][match >= 0]
    return pairs


def mask_cost(masked: npt.ArrayLike, plain: npt.ArrayLike) -> MaskCost:
    """Return what masks change, from the scores of all detections with masks and the pairs of `pair_scores`.

    Detections are counted above 0.5; if no detection without masks scores so high, all are.

    >>> cost = mask_cost([0.9, 0.6, 0.4], [[0.9, 0.9], [0.8, 0.4], [0.7, 0.0], [0.3, 0.6]])
    >>> cost.remain, cost.disappear, cost.appear
    (1, 2, 1)
    """
    scores, pairs = np.asarray(masked, np.float64), np.asarray(plain, np.float64).reshape(-1, 2)
    level = LEVEL if (pairs[:, 0] > LEVEL).any() else 0.0
    before, after = pairs[pairs[:, 0] > level], scores[scores > level]
    return MaskCost(
        level=level,
        plain=len(before),
        masked=len(after),
        remain=int((before[:, 1] > level).sum()),
        plain_mean=float(before[:, 0].mean()) if len(before) else float("nan"),
        masked_mean=float(after.mean()) if len(after) else float("nan"),
    )

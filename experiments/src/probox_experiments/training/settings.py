"""How long, how fast and on how much the detectors are trained."""

from __future__ import annotations

import dataclasses

__all__ = ["Settings"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The same for all arms.

    Parameters
    ----------
    steps, batch : int
        How many steps, and images in each.
    warm : int
        In how many of the first steps boxes learn by L1, whatever the arm.
    rate : float
        The highest learning rate.
    images, validation, test : int
        How many images to learn from, to choose the one sigma on, and to measure on.
    """

    steps: int = 700
    batch: int = 16
    warm: int = 60
    rate: float = 6e-3
    images: int = 3000
    validation: int = 200
    test: int = 500

    # Scenes to learn from, to choose on and to measure on are never the same, whatever the seeds.
    def train_seed(self, seed: int) -> int:
        """Return the seed of the scenes to learn from."""
        return 3 * seed

    def validation_seed(self, seed: int) -> int:
        """Return the seed of the scenes to choose on."""
        return 3 * seed + 1

    def test_seed(self, seed: int) -> int:
        """Return the seed of the scenes to measure on."""
        return 3 * seed + 2

"""What `detect` and `detect_images` ask of a detector: any object with these attributes will do."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from probox.detect.families import Candidates, Family, Labels
from probox.detect.images import Pixels

__all__ = ["Described", "Runner", "Traits"]


@dataclasses.dataclass(frozen=True)
class Traits:
    """What must be known of a detector to make detections from its candidates.

    Parameters
    ----------
    name : str
        What messages call it.
    classes : tuple of str
        Names of the columns of its scores.
    labels : {"all", "best"}
        Whether a box may make a detection of each class that scores high enough, or of the best only.
    nms_iou : float
        The overlap above which a candidate is suppressed.
    has_edges : bool
        Whether candidates come with covariances of their own.
    suppresses : bool
        Whether candidates are final: suppressed already, or never in need of it.
    clips_first : bool
        Whether boxes are clipped to the image before suppression, not after it.

    Examples
    --------
    >>> Traits("blobs", ("red", "green")).nms_iou
    0.6
    """

    name: str
    classes: tuple[str, ...]
    labels: Labels = "all"
    nms_iou: float = 0.6
    has_edges: bool = False
    suppresses: bool = False
    clips_first: bool = True


Described = Family | Traits
"""What a runner says of itself: a family of graphs, or traits."""


class Runner(Protocol):
    """Something that looks at images: `Detector`, a detector in torch, or one's own.

    An attribute `workers` (a whole number) may be added: how many threads may call at the same time. Without it all
    calls come one after another, from one thread.
    """

    @property
    def family(self) -> Described:
        """What must be known of it; `Traits` for all but graphs."""

    @property
    def batch(self) -> int:
        """How many images it wants at once; it is never given more."""

    @property
    def fingerprint(self) -> str:
        """What tells it from others: a run goes on after an interruption only if this is as it was."""

    def candidates(self, images: Sequence[Pixels]) -> list[Candidates]:
        """Return each image's candidates. Images are (H, W, 3), RGB, of any size; boxes count their pixels."""

    def sample(self, images: Sequence[Pixels], passes: int, image_ids: Sequence[int]) -> Sequence[Sequence[Candidates]]:
        """Return each image's candidates of several random passes, the same ones for the same image id."""

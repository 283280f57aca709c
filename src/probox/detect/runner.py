"""What passes between detectors and `detect`: candidates, traits, and the attributes that any detector must have."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.support.types import Array, Floats, Ints

if TYPE_CHECKING:
    from probox.detect.families.base import Family

Pixels = npt.NDArray[np.uint8]
Labels = Literal["all", "best"]
LABELS: tuple[str, ...] = get_args(Labels)
"""A box makes a detection of each class that is likely enough, or of the best only."""


class Rows(Protocol):
    """Corner covariances (N, 2, 2, 2) that are worked out for the rows that are asked for: few of thousands survive."""

    def __getitem__(self, rows: Any, /) -> Floats: ...


class Heatmaps(Protocol):
    """Segmentations that are worked out for the rows that are asked for."""

    def __call__(self, rows: Array, boxes: Floats, /) -> list[Any]:
        """Return a heatmap of the image's size for each row, 0 outside its box."""

    def __getitem__(self, rows: Any, /) -> Heatmaps:
        """Return those of these rows."""


@dataclasses.dataclass(frozen=True)
class Candidates:
    """What a detector says of one image before suppression, in pixels of the image.

    Parameters
    ----------
    boxes : (N, 4) float64
        ``x1, y1, x2, y2``.
    scores : (N, C) float32
        The probability of every class, 0 to 1.
    covariances : (N, 2, 2, 2) float64, optional
        The corners' own in square pixels, where the head predicts them; or something that gives rows of such an array.
    labels : (N,) int64, optional
        The class that each box stands for, where a head has a box for each class. Default: a box is of no certain one.
    heatmaps : Heatmaps, optional
        Where the detector segments.
    """

    boxes: Floats
    scores: npt.NDArray[np.float32]
    covariances: Floats | Rows | None = None
    labels: Ints | None = None
    heatmaps: Heatmaps | None = None

    def __post_init__(self) -> None:
        count = len(self.boxes)
        shapes = {"boxes": (count, 4), "scores": (count, -1), "covariances": (count, 2, 2, 2), "labels": (count,)}
        for name, wanted in shapes.items():
            values = getattr(self, name)
            worked_out_later = name == "covariances" and not isinstance(values, np.ndarray | list | tuple)
            got = wanted if values is None or worked_out_later else np.shape(values)
            if len(got) != len(wanted) or any(own not in (-1, size) for own, size in zip(wanted, got, strict=True)):
                expected = " x ".join("C" if size == -1 else str(size) for size in wanted)
                raise InputError(
                    f"expected {name} of candidates to be {expected}, but got {' x '.join(map(str, got)) or 'a number'}"
                )

    def __len__(self) -> int:
        return len(self.boxes)

    def select(self, rows: Array) -> Candidates:
        """Return these rows."""
        covariances = None if self.covariances is None else self.covariances[rows]
        labels = None if self.labels is None else self.labels[rows]
        heatmaps = None if self.heatmaps is None else self.heatmaps[rows]
        return Candidates(self.boxes[rows], self.scores[rows], covariances, labels, heatmaps)


class Passes(list[Candidates]):
    """An image's candidates in each pass with masks, and in one without."""

    def __init__(self, drawn: Iterable[Candidates], plain: Candidates | None = None) -> None:
        super().__init__(drawn)
        self.plain = plain


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


Described: TypeAlias = "Family | Traits"
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

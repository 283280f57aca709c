"""What every detector family shares: the graph's signature, candidates, and the family's two duties."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from probox.detect.classes import Columns, name_columns
from probox.detect.graph import Graph
from probox.detect.images import Pixels, Placement
from probox.detect.metadata import Metadata
from probox.errors import InputError

__all__ = ["LABELS", "Candidates", "Family", "Heatmaps", "Labels", "Rows", "Signature", "Tensor"]

Array = npt.NDArray[Any]
Labels = Literal["all", "best"]
LABELS: tuple[str, ...] = get_args(Labels)
"""A box makes a detection of each class that is likely enough, or of the best only."""

IMAGENET_MEAN = (123.675, 116.28, 103.53)
IMAGENET_STD = (58.395, 57.12, 57.375)
"""Of red, green and blue from 0 to 255."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output of a graph; a dimension that is not fixed is None."""

    name: str
    shape: tuple[int | None, ...]
    type: str = "tensor(float)"


@dataclasses.dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a graph, and what its export says of it."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: Metadata = dataclasses.field(default_factory=Metadata)
    """What the export says of itself."""
    trial: tuple[tuple[int, ...], ...] | None = None
    """Shapes of the outputs of one run on an empty image, where the graph leaves some open."""
    trial_size: tuple[int, int] | None = None
    """Width and height of that image."""

    def shape(self, output: int) -> tuple[int | None, ...]:
        """Return the shape of an output, with what the trial run showed for dimensions that are open."""
        declared = self.outputs[output].shape
        if self.trial is None or len(self.trial[output]) != len(declared):
            return declared
        return tuple(
            (seen or None) if size is None else size for size, seen in zip(declared, self.trial[output], strict=True)
        )

    @property
    def channels_last(self) -> bool:
        """Return whether the image input is [1, height, width, 3], as in TensorFlow."""
        shape = self.inputs[0].shape
        return len(shape) == 4 and shape[3] == 3 and shape[1] != 3

    @property
    def open_size(self) -> tuple[int | None, int | None]:
        """Return width and height of the image input, None where the graph takes any."""
        shape = self.inputs[0].shape
        return (shape[2], shape[1]) if self.channels_last else (shape[-1], shape[-2])

    def image_size(self) -> tuple[int, int] | None:
        """Return width and height of the image that `shape` is about; None if they are open."""
        wide, high = self.open_size if len(self.inputs[0].shape) == 4 else (None, None)
        if high is not None and wide is not None:
            return wide, high
        return self.trial_size

    def describe(self) -> str:
        """Return the outputs in words, for messages."""
        return ", ".join(
            f"{tensor.name} [{', '.join('?' if size is None else str(size) for size in tensor.shape)}]"
            for tensor in self.outputs
        )


class Rows(Protocol):
    """Corner covariances (N, 2, 2, 2) that are worked out for the rows that are asked for: few of thousands survive."""

    def __getitem__(self, rows: Any, /) -> npt.NDArray[np.float64]: ...


class Heatmaps(Protocol):
    """Segmentations that are worked out for the rows that are asked for."""

    def __call__(self, rows: npt.NDArray[Any], boxes: npt.NDArray[np.float64], /) -> list[Any]:
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

    boxes: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float32]
    covariances: npt.NDArray[np.float64] | Rows | None = None
    labels: npt.NDArray[np.int64] | None = None
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

    def select(self, rows: npt.NDArray[Any]) -> Candidates:
        """Return these rows."""
        covariances = None if self.covariances is None else self.covariances[rows]
        labels = None if self.labels is None else self.labels[rows]
        heatmaps = None if self.heatmaps is None else self.heatmaps[rows]
        return Candidates(self.boxes[rows], self.scores[rows], covariances, labels, heatmaps)


@dataclasses.dataclass(frozen=True)
class Given:
    """What a family is made from: the graph, and what the user says of it."""

    signature: Signature
    classes: Sequence[str] | None = None
    size: tuple[int, int] | None = None
    """Width and height of the input, for a graph that takes any."""
    graph: Graph | None = None

    @property
    def names(self) -> Sequence[str] | None:
        """Return the names of the classes: the user's, or else the export's."""
        return self.classes if self.classes is not None else self.signature.metadata.names


class Family:
    """A kind of detector: how it wants an image, and what its outputs mean.

    Subclasses set the class variables and write `prepare` and `decode` for one image; the runner stacks and splits
    batches for those with `batches`.
    """

    name: ClassVar[str]
    nms_iou: ClassVar[float] = 0.6
    """IoU above which the family's own framework suppresses a candidate by default; of no use if it `suppresses`."""
    labels: Labels = "all"
    """Whether a box may make detections of several classes, by the family's own practice."""
    batches: bool = True
    """Whether images can be stacked: they can't where each has a size of its own."""
    has_edges: bool = False
    """Whether candidates come with covariances of their own; a family may find out from the graph."""
    has_masks: bool = False
    """Whether candidates come with segmentations."""
    background: ClassVar[bool] = False
    """Whether the first score column may be that of no object."""
    suppresses: ClassVar[bool] = False
    """Whether the graph's boxes are final: it has suppressed the others itself, or was trained to need none of that."""
    clips_first: ClassVar[bool] = True
    """Whether boxes are clipped to the image before suppression, not after it."""
    default_size: ClassVar[tuple[int, int]] = (640, 640)

    def __init__(self, given: Given) -> None:
        self.signature = given.signature
        self.size = given.size
        self.graph = given.graph
        self.columns: Columns = name_columns(self.count_columns(), given.names, background=self.background)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether the graph's inputs and outputs are this family's."""
        raise NotImplementedError

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether this is the family of a graph, where the tensors inside it tell more than its outputs."""
        return cls.matches(signature)

    def count_columns(self) -> int:
        """Return how many classes the graph scores."""
        raise NotImplementedError

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        """Return the graph's inputs for one image, and where the image lies on them."""
        raise NotImplementedError

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        """Return one image's candidates from the graph's outputs."""
        raise NotImplementedError

    def taps(self) -> tuple[str, ...]:
        """Return tensors inside the graph that `decode` is to get after the outputs: edge distributions, say."""
        return ()

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the classes."""
        return self.columns.names

    def input_size(self) -> tuple[int, int]:
        """Return width and height of the image input: the graph's own, else as asked, as exported, as usual."""
        wide, high = self.open_size()
        free = self.size or self.signature.metadata.size or self.default_size
        return wide or free[0], high or free[1]

    def open_size(self) -> tuple[int | None, int | None]:
        """Return width and height of the image input, None where the graph takes any."""
        return self.signature.open_size

    def last_dimension(self, output: int, axis: int = -1) -> int:
        """Return a dimension of an output that must be fixed."""
        size = self.signature.shape(output)[axis]
        if size is None:
            raise InputError(
                f"the graph does not say how many classes it scores ({self.signature.describe()})",
                remedy="export it with fixed output shapes",
            )
        return size


def channels_first(
    image: Pixels, *, bgr: bool, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0
) -> Array:
    """Return (1, 3, H, W) float32 of an RGB image: channels reversed if asked, then minus `mean`, over `std`."""
    planes = np.empty((1, 3, *image.shape[:2]), np.float32)
    means, stds = (np.broadcast_to(np.asarray(given, np.float32), 3) for given in (mean, std))
    for number, plane in enumerate(planes[0]):
        plane[...] = image[:, :, 2 - number if bgr else number]
        plane -= means[number]
        plane /= stds[number]
    return planes


def fitted_size(image: Pixels) -> tuple[int, int]:
    """Return the size at which an image's shorter side is 800, or its longer one 1333 if that would be more.

    >>> fitted_size(np.zeros((480, 640, 3), np.uint8)), fitted_size(np.zeros((300, 900, 3), np.uint8))
    ((1067, 800), (1333, 444))
    """
    height, width = image.shape[:2]
    ratio = min(800.0 / min(height, width), 1333.0 / max(height, width))
    return max(1, round(width * ratio)), max(1, round(height * ratio))


def corners_of_centres(centres: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return ``x1, y1, x2, y2`` of ``cx, cy, w, h``."""
    wide = centres.astype(np.float64)
    half = wide[:, 2:4] / 2
    return np.concatenate([wide[:, :2] - half, wide[:, :2] + half], axis=1)


def grid(size: tuple[int, int], strides: Sequence[int]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the cells (column, row) of an input at several strides, row by row, and each cell's stride."""
    cells, scale = [], []
    for stride in strides:
        columns, rows = -(-size[0] // stride), -(-size[1] // stride)
        x, y = np.meshgrid(np.arange(columns, dtype=np.float64), np.arange(rows, dtype=np.float64))
        cells.append(np.stack([x.ravel(), y.ravel()], axis=1))
        scale.append(np.full(columns * rows, float(stride)))
    return np.concatenate(cells), np.concatenate(scale)

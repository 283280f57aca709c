"""What every detector family shares: the graph's signature, inputs, cells, and checks of what comes out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from probox.detect.candidates import Candidates, Labels, Pixels, Placement, place_image
from probox.detect.graph import Graph, Metadata, ScoreColumns, name_columns
from probox.errors import InputError
from probox.support.types import Array, Floats

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


@dataclasses.dataclass(frozen=True)
class FamilyInputs:
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

    Subclasses set the class variables and write `decode` for one image, and `prepare` where `placing` and `pixels` do
    not say it all; the runner stacks and splits batches for those with `batches`.
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
    placing: ClassVar[Mapping[str, Any]] = {"keep_aspect": False}
    """How the image lies on the input, as `place_image` takes it."""
    pixels: ClassVar[Mapping[str, Any]] = {"bgr": False, "std": 255.0}
    """What its pixels are there, as `channels_first` takes it."""

    def __init__(self, given: FamilyInputs) -> None:
        self.signature = given.signature
        self.size = given.size
        self.graph = given.graph
        self.named = given.names
        self.inspect()
        self.columns: ScoreColumns = name_columns(self.count_columns(), self.named, background=self.background)

    def inspect(self) -> None:
        """Find out from the graph what `count_columns` and `decode` need; raise if it is not there."""

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
        placed, placement = place_image(image, self.input_size(), **self.placing)
        return {self.signature.inputs[0].name: channels_first(placed, **self.pixels)}, placement

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


def fit_size(image: Pixels) -> tuple[int, int]:
    """Return the size at which an image's shorter side is 800, or its longer one 1333 if that would be more.

    >>> fit_size(np.zeros((480, 640, 3), np.uint8)), fit_size(np.zeros((300, 900, 3), np.uint8))
    ((1067, 800), (1333, 444))
    """
    height, width = image.shape[:2]
    ratio = min(800.0 / min(height, width), 1333.0 / max(height, width))
    return max(1, round(width * ratio)), max(1, round(height * ratio))


def corners_of_centres(centres: Array) -> Floats:
    """Return ``x1, y1, x2, y2`` of ``cx, cy, w, h``."""
    wide = centres.astype(np.float64)
    half = wide[:, 2:4] / 2
    return np.concatenate([wide[:, :2] - half, wide[:, :2] + half], axis=1)


def covariances_of_sides(variances: Floats, size: tuple[int, int]) -> Floats:
    """Return corner covariances (N, 2, 2, 2) in square pixels from variances (N, 4) of sides in shares of the image."""
    return (variances * np.array(size * 2, np.float64) ** 2).reshape(-1, 2, 2)[..., None] * np.eye(2)


def grid(size: tuple[int, int], strides: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the cells (column, row) of an input at several strides, row by row, and each cell's stride."""
    cells, scale = [], []
    for stride in strides:
        columns, rows = -(-size[0] // stride), -(-size[1] // stride)
        x, y = np.meshgrid(np.arange(columns, dtype=np.float64), np.arange(rows, dtype=np.float64))
        cells.append(np.stack([x.ravel(), y.ravel()], axis=1))
        scale.append(np.full(columns * rows, float(stride)))
    return np.concatenate(cells), np.concatenate(scale)


IMAGE_TYPES = ("tensor(float)", "tensor(float16)", "tensor(double)", "tensor(uint8)")
NUMBERS = (*IMAGE_TYPES, "tensor(int64)", "tensor(int32)", "tensor(bfloat16)", "tensor(bool)")
LARGEST_SIDE = 1 << 14
"""Of an input, in pixels: a graph that asks for more is damaged, and would ask for gigabytes."""


def check_inputs(signature: Signature) -> None:
    """Raise if a graph takes no photo, or gives no numbers."""
    if not signature.inputs:
        raise InputError("this graph has no inputs, so it looks at no image", remedy="export a detector")
    images = [tensor for tensor in signature.inputs if len(tensor.shape) in (3, 4)]
    if not images:
        raise InputError(f"no input takes an image: {_words(signature.inputs)}", remedy="export a detector")
    image = next((tensor for tensor in images if len(tensor.shape) == 4), images[0])
    if image.type not in IMAGE_TYPES:
        raise InputError(f"the input {_words((image,))} is of {image.type}, which is no photo")
    channels = {image.shape[-3], image.shape[-1]}
    if 3 not in channels and None not in channels:
        few = min(image.shape[-3] or 0, image.shape[-1] or 0)
        kinds = {1: "greyscale images", 4: "images of four channels"}
        raise InputError(
            f"the input {_words((image,))} takes {kinds.get(few, f'{few} channels')}, not red, green and blue",
            remedy="detectors of RGB photos can be run",
        )
    if any(size is not None and not 0 < size <= LARGEST_SIDE for size in image.shape):
        raise InputError(f"the input {_words((image,))} is no size of a photo")
    if not signature.outputs:
        raise InputError("this graph has no outputs", remedy="export a detector")
    for tensor in signature.outputs:
        if tensor.type not in NUMBERS:
            raise InputError(
                f"the output {tensor.name} is of {tensor.type}, but boxes and scores are tensors of numbers"
            )


def _words(tensors: tuple[Tensor, ...]) -> str:
    return Signature((), tensors).describe()


LEVELS: tuple[tuple[int, ...], ...] = (
    (8, 16, 32),
    (8, 16, 32, 64),
    (4, 8, 16, 32),
    (4, 8, 16, 32, 64),
    (16, 32),
    (8, 16),
    (8, 16, 32, 64, 128),
)
"""Strides that heads are built with: the usual, P6, P2, both, and fewer or more levels."""


def count_cells(size: tuple[int, int], strides: Sequence[int]) -> int:
    """Return how many cells an input of `size` (width, height) has.

    >>> count_cells((640, 640), (8, 16, 32))
    8400
    """
    return sum(-(-size[0] // stride) * -(-size[1] // stride) for stride in strides)


def match_strides(
    size: tuple[int, int] | None, cells: int | None, largest: int | None = None
) -> tuple[int, ...] | None:
    """Return the strides whose cells are so many; None if there are none, or several.

    `largest` is the largest stride, where an export says it.

    >>> match_strides((640, 640), 8400), match_strides((1280, 1280), 34000), match_strides((640, 640), 25200)
    ((8, 16, 32), (8, 16, 32, 64), None)
    """
    if size is None or cells is None:
        return None
    fitting = [levels for levels in LEVELS if count_cells(size, levels) == cells]
    if len(fitting) > 1:
        fitting = [levels for levels in fitting if levels[-1] == largest]
    return fitting[0] if len(fitting) == 1 else None


@lru_cache(maxsize=8)
def centres(size: tuple[int, int], strides: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the middle of every cell in pixels of the input, and each cell's stride."""
    cells, scale = grid(size, strides)
    return (cells + 0.5) * scale[:, None], scale


SLACK = 1e-3
"""How far a score may be outside 0..1: what half precision rounds."""
LOOKED_AT = 8
"""Images whose boxes are looked at; scores are looked at in all."""
ENOUGH = 10
"""Boxes that must agree on something odd before it is one."""
DENSE = 100
"""Candidates of which a detector has no fewer that looks everywhere in the image."""
FAR = 100.0
"""Sides of the image beyond which half of all boxes do not reach."""
WEAK = 0.05
"""A score that means something: boxes below may be anything."""
REMEDY = "name another family ({option:family}), or export the model otherwise"


class Plausibility:
    """What is certainly wrong with a graph's candidates is raised; what is only odd is kept as notes.

    Low scores alone are neither: the photo may hold no objects. The arguments are for messages.
    """

    def __init__(self, family: str, names: Sequence[str], file: str) -> None:
        self._family, self._names, self._file = family, tuple(names), file
        self._seen = 0
        self._best = 0.0
        self._odd: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what looked odd in the images so far, one sentence each."""
        odd = list(self._odd)
        if self._seen and self._best <= WEAK:
            odd.append(
                f"no candidate of {self._seen} images scored above {WEAK:g} (the best {self._best:.2g}): "
                f"if that is not expected, the graph may not be one of {self._family}"
            )
        return tuple(odd)

    def check(self, found: Candidates, outputs: Sequence[Array], size: tuple[int, int]) -> None:
        """Raise if the candidates of an image of (width, height) can't be right."""
        self._seen += 1
        if not len(found):
            return
        lowest, highest = float(found.scores.min()), float(found.scores.max())
        if not np.isfinite(lowest + highest):
            self._refuse("scores are not numbers (NaN or infinite)", outputs)
        if lowest < -SLACK or highest > 1.0 + SLACK:
            self._refuse(f"scores go from {lowest:.4g} to {highest:.4g}, so they are no probabilities", outputs)
        self._best = max(self._best, highest)
        if self._seen > LOOKED_AT:
            return
        if found.labels is None and found.scores.size >= DENSE and lowest >= 0.5:
            self._refuse("every class of every candidate scores above 0.5, as a sigmoid of a sigmoid would", outputs)
        sign = _sign_of_boxes(found, size)
        if sign is not None:
            self._refuse(sign, outputs)
        if len(found) >= ENOUGH and highest > WEAK and (found.scores == found.scores[0]).all():
            self._odd[f"all {len(found)} candidates of an image have the same scores"] = None

    def describe(self, outputs: Sequence[Array]) -> str:
        """Return outputs in words: name, shape, least and greatest number."""
        return ", ".join(_describe_output(name, values) for name, values in zip(self._names, outputs, strict=False))

    def _refuse(self, sign: str, outputs: Sequence[Array]) -> None:
        problem = f"taken for {self._family}, but {sign} (outputs: {self.describe(outputs)})"
        raise InputError(problem, file=self._file, remedy=REMEDY)


def _sign_of_boxes(found: Candidates, size: tuple[int, int]) -> str | None:
    """Return what is certainly wrong with the boxes, None if nothing is."""
    boxes, sides = found.boxes, np.array(size, np.float64)
    meant = boxes[found.scores.max(axis=1) > WEAK]
    if not np.isfinite(meant).all():
        return "boxes are not numbers (NaN or infinite)"
    usable = boxes[np.isfinite(boxes).all(axis=1)]
    if len(usable) < ENOUGH:
        return None
    extent = usable[:, 2:] - usable[:, :2]
    if (np.median(np.abs(extent), axis=0) > FAR * sides).any():
        return f"most boxes are more than {FAR:g} times as large as the image, as decoded outputs would be"
    if (extent < 0).any(axis=1).mean() > 0.5:
        return "most boxes end before they begin"
    if (_within(usable, sides) / sides >= 0.999).all():
        return "every box is as large as the image"
    if len(meant) >= ENOUGH and not (_within(meant, sides) > 0).all(axis=1).any():
        return "no box lies in the image"
    if len(usable) >= DENSE and (np.ptp(usable.reshape(-1, 2), axis=0) < 0.01 * sides).all():
        return "all boxes lie in one hundredth of the image, as shares taken for pixels would"
    return None


def _within(boxes: Floats, sides: Floats) -> Floats:
    """Return width and height of what lies in the image."""
    inside = np.clip(boxes, 0.0, np.tile(sides, 2))
    return inside[:, 2:] - inside[:, :2]


def _describe_output(name: str, values: Array) -> str:
    shape = ", ".join(map(str, values.shape))
    if not values.size:
        return f"{name} [{shape}]"
    finite = values[np.isfinite(values)]
    reach = f"{finite.min():.4g} to {finite.max():.4g}" if finite.size else "no numbers"
    return f"{name} [{shape}] {reach}"

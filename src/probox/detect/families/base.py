"""Common parts of detector families: graph signature, inputs, cells, and plausibility checks of outputs."""

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
"""Standard deviation of red, green and blue on a scale of 0 to 255."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output of a graph; a dynamic dimension is None."""

    name: str
    shape: tuple[int | None, ...]
    type: str = "tensor(float)"


@dataclasses.dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a graph, and the metadata of its export."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: Metadata = dataclasses.field(default_factory=Metadata)
    """Metadata of the export."""
    trial: tuple[tuple[int, ...], ...] | None = None
    """Output shapes of one run on an empty image, if the graph has dynamic ones."""
    trial_size: tuple[int, int] | None = None
    """Width and height of that image."""

    def shape(self, output: int) -> tuple[int | None, ...]:
        """Return the shape of an output; dynamic dimensions are taken from the trial run."""
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
        """Return width and height of the image input, None where dynamic."""
        shape = self.inputs[0].shape
        return (shape[2], shape[1]) if self.channels_last else (shape[-1], shape[-2])

    def image_size(self) -> tuple[int, int] | None:
        """Return width and height of the image that `shape` refers to; None if dynamic."""
        wide, high = self.open_size if len(self.inputs[0].shape) == 4 else (None, None)
        if high is not None and wide is not None:
            return wide, high
        return self.trial_size

    def describe(self) -> str:
        """Return the outputs as text for messages."""
        return ", ".join(
            f"{tensor.name} [{', '.join('?' if size is None else str(size) for size in tensor.shape)}]"
            for tensor in self.outputs
        )


@dataclasses.dataclass(frozen=True)
class FamilyInputs:
    """Arguments of a family: the graph's properties and the user's options."""

    signature: Signature
    classes: Sequence[str] | None = None
    size: tuple[int, int] | None = None
    """Width and height of the input, for a graph with dynamic axes."""
    graph: Graph | None = None

    @property
    def names(self) -> Sequence[str] | None:
        """Return the class names of the user, or else of the export."""
        return self.classes if self.classes is not None else self.signature.metadata.names


class Family:
    """A kind of detector: preprocessing of images and decoding of outputs.

    Subclasses set the class variables and implement `decode` for one image, and `prepare` where `placing` and `pixels`
    are not enough. The runner stacks and splits batches for families with `batches`.
    """

    name: ClassVar[str]
    nms_iou: ClassVar[float] = 0.6
    """Default IoU threshold of NMS in the family's own framework; unused if `suppresses`."""
    labels: Labels = "all"
    """Default label mode: ``all`` if a box may make detections of several classes, else ``best``."""
    batches: bool = True
    """Whether images can be stacked, which requires equal input sizes."""
    has_edges: bool = False
    """Whether candidates have predicted covariances; a family may set it from the graph."""
    has_masks: bool = False
    """Whether candidates have segmentation masks."""
    background: ClassVar[bool] = False
    """Whether the first score column may be a background."""
    suppresses: ClassVar[bool] = False
    """Whether the graph's boxes are final (NMS is built in or not needed)."""
    clips_first: ClassVar[bool] = True
    """Whether boxes are clipped to the image before suppression, not after it."""
    default_size: ClassVar[tuple[int, int]] = (640, 640)
    placing: ClassVar[Mapping[str, Any]] = {"keep_aspect": False}
    """Keywords of `place_image`: placement of the image on the input."""
    pixels: ClassVar[Mapping[str, Any]] = {"bgr": False, "std": 255.0}
    """Keywords of `channels_first`: normalisation of pixels."""

    def __init__(self, given: FamilyInputs) -> None:
        self.signature = given.signature
        self.size = given.size
        self.graph = given.graph
        self.named = given.names
        self.inspect()
        self.columns: ScoreColumns = name_columns(self.count_columns(), self.named, background=self.background)

    def inspect(self) -> None:
        """Read the properties that `count_columns` and `decode` need from the graph; raise if they are missing."""

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether the graph's inputs and outputs fit this family."""
        raise NotImplementedError

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether the tensors inside the graph fit this family, where outputs are ambiguous."""
        return cls.matches(signature)

    def count_columns(self) -> int:
        """Return the number of classes of the graph."""
        raise NotImplementedError

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        """Return the graph's inputs for one image, and the placement of the image on them."""
        placed, placement = place_image(image, self.input_size(), **self.placing)
        return {self.signature.inputs[0].name: channels_first(placed, **self.pixels)}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        """Return one image's candidates from the graph's outputs."""
        raise NotImplementedError

    def taps(self) -> tuple[str, ...]:
        """Return tensors inside the graph that `decode` needs after the outputs, such as edge distributions."""
        return ()

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the classes."""
        return self.columns.names

    def input_size(self) -> tuple[int, int]:
        """Return width and height of the image input: fixed in the graph, else requested, exported or default."""
        wide, high = self.open_size()
        free = self.size or self.signature.metadata.size or self.default_size
        return wide or free[0], high or free[1]

    def open_size(self) -> tuple[int | None, int | None]:
        """Return width and height of the image input, None where dynamic."""
        return self.signature.open_size

    def last_dimension(self, output: int, axis: int = -1) -> int:
        """Return a dimension of an output, which must be fixed."""
        size = self.signature.shape(output)[axis]
        if size is None:
            raise InputError(
                f"the number of classes is not fixed in the graph ({self.signature.describe()})",
                remedy="export it with fixed output shapes",
            )
        return size


def channels_first(
    image: Pixels, *, bgr: bool, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0
) -> Array:
    """Return (1, 3, H, W) float32 of an RGB image: channels optionally reversed, minus `mean`, divided by `std`."""
    planes = np.empty((1, 3, *image.shape[:2]), np.float32)
    means, stds = (np.broadcast_to(np.asarray(given, np.float32), 3) for given in (mean, std))
    for number, plane in enumerate(planes[0]):
        plane[...] = image[:, :, 2 - number if bgr else number]
        plane -= means[number]
        plane /= stds[number]
    return planes


def fit_size(image: Pixels) -> tuple[int, int]:
    """Return the size at which an image's shorter side is 800, or its longer one 1333 if that is smaller.

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
    """Return corner covariances (N, 2, 2, 2) in square pixels from edge variances (N, 4) relative to the image."""
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
"""Limit of input width and height in pixels: a larger size means a damaged graph, and gigabytes of memory."""


def check_inputs(signature: Signature) -> None:
    """Raise unless a graph has an image input and numeric outputs."""
    if not signature.inputs:
        raise InputError("this graph has no inputs", remedy="export a detector")
    images = [tensor for tensor in signature.inputs if len(tensor.shape) in (3, 4)]
    if not images:
        raise InputError(f"no input has the shape of an image: {_words(signature.inputs)}", remedy="export a detector")
    image = next((tensor for tensor in images if len(tensor.shape) == 4), images[0])
    if image.type not in IMAGE_TYPES:
        raise InputError(f"the input {_words((image,))} is of {image.type}, expected a numeric type")
    channels = {image.shape[-3], image.shape[-1]}
    if 3 not in channels and None not in channels:
        few = min(image.shape[-3] or 0, image.shape[-1] or 0)
        kinds = {1: "greyscale images", 4: "images of four channels"}
        raise InputError(
            f"the input {_words((image,))} takes {kinds.get(few, f'{few} channels')}, expected RGB",
            remedy="use a detector of RGB photos",
        )
    if any(size is not None and not 0 < size <= LARGEST_SIDE for size in image.shape):
        raise InputError(f"the input {_words((image,))} is not a valid image size")
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
"""Strides of usual heads: default, P6, P2, both, and fewer or more levels."""


def count_cells(size: tuple[int, int], strides: Sequence[int]) -> int:
    """Return the number of cells of an input of `size` (width, height).

    >>> count_cells((640, 640), (8, 16, 32))
    8400
    """
    return sum(-(-size[0] // stride) * -(-size[1] // stride) for stride in strides)


def match_strides(
    size: tuple[int, int] | None, cells: int | None, largest: int | None = None
) -> tuple[int, ...] | None:
    """Return the strides that give this number of cells; None if there are none, or several.

    `largest` is the largest stride, if the export stores it.

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
    """Return the centre of each cell in pixels of the input, and each cell's stride."""
    cells, scale = grid(size, strides)
    return (cells + 0.5) * scale[:, None], scale


SLACK = 1e-3
"""Tolerance of scores outside 0..1: rounding in half precision."""
LOOKED_AT = 8
"""Number of images whose boxes are checked; scores are checked in all images."""
ENOUGH = 10
"""Minimum number of boxes that must agree on an error."""
DENSE = 100
"""Minimum number of candidates of a dense detector."""
FAR = 100.0
"""Limit of the median box size, in image sides."""
WEAK = 0.05
"""Minimum score of boxes to be checked."""
REMEDY = "name another family ({option:family}), or export the model with other settings"


class Plausibility:
    """Raise for invalid candidates of a graph, and keep notes on suspicious ones.

    Low scores alone are valid: the photo may contain no objects. The arguments are for messages.
    """

    def __init__(self, family: str, names: Sequence[str], file: str) -> None:
        self._family, self._names, self._file = family, tuple(names), file
        self._seen = 0
        self._best = 0.0
        self._suspicious: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return warnings on the images processed so far, one sentence each."""
        warnings = list(self._suspicious)
        if self._seen and self._best <= WEAK:
            warnings.append(
                f"no candidate of {self._seen} images scored above {WEAK:g} (the best {self._best:.2g}): "
                f"if that is not expected, the graph may not belong to the family {self._family}"
            )
        return tuple(warnings)

    def check(self, found: Candidates, outputs: Sequence[Array], size: tuple[int, int]) -> None:
        """Raise if the candidates of an image of (width, height) are invalid."""
        self._seen += 1
        if not len(found):
            return
        lowest, highest = float(found.scores.min()), float(found.scores.max())
        if not np.isfinite(lowest + highest):
            self._refuse("scores are not numbers (NaN or infinite)", outputs)
        if lowest < -SLACK or highest > 1.0 + SLACK:
            self._refuse(f"scores go from {lowest:.4g} to {highest:.4g}, expected 0 to 1", outputs)
        self._best = max(self._best, highest)
        if self._seen > LOOKED_AT:
            return
        if found.labels is None and found.scores.size >= DENSE and lowest >= 0.5:
            self._refuse("every class of every candidate scores above 0.5, as a sigmoid of a sigmoid would", outputs)
        sign = _sign_of_boxes(found, size)
        if sign is not None:
            self._refuse(sign, outputs)
        if len(found) >= ENOUGH and highest > WEAK and (found.scores == found.scores[0]).all():
            self._suspicious[f"all {len(found)} candidates of an image have the same scores"] = None

    def describe(self, outputs: Sequence[Array]) -> str:
        """Return outputs as text: name, shape, minimum and maximum."""
        return ", ".join(_describe_output(name, values) for name, values in zip(self._names, outputs, strict=False))

    def _refuse(self, sign: str, outputs: Sequence[Array]) -> None:
        problem = f"read as {self._family}, but {sign} (outputs: {self.describe(outputs)})"
        raise InputError(problem, file=self._file, remedy=REMEDY)


def _sign_of_boxes(found: Candidates, size: tuple[int, int]) -> str | None:
    """Return the error that the boxes show, or None."""
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
        return "most boxes have x2 < x1 or y2 < y1"
    if (_within(usable, sides) / sides >= 0.999).all():
        return "every box is as large as the image"
    if len(meant) >= ENOUGH and not (_within(meant, sides) > 0).all(axis=1).any():
        return "no box overlaps the image"
    if len(usable) >= DENSE and (np.ptp(usable.reshape(-1, 2), axis=0) < 0.01 * sides).all():
        return "all boxes lie in one hundredth of the image, as relative coordinates read as pixels would"
    return None


def _within(boxes: Floats, sides: Floats) -> Floats:
    """Return width and height of the boxes' parts inside the image."""
    inside = np.clip(boxes, 0.0, np.tile(sides, 2))
    return inside[:, 2:] - inside[:, :2]


def _describe_output(name: str, values: Array) -> str:
    shape = ", ".join(map(str, values.shape))
    if not values.size:
        return f"{name} [{shape}]"
    finite = values[np.isfinite(values)]
    reach = f"{finite.min():.4g} to {finite.max():.4g}" if finite.size else "no numbers"
    return f"{name} [{shape}] {reach}"

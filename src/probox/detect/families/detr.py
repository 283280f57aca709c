"""Query-based detectors: DETR and its deformable variants, RF-DETR, RT-DETR and D-FINE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from probox.detect.candidates import Candidates, Pixels, Placement, place_image
from probox.detect.families.base import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Family,
    Signature,
    channels_first,
    corners_of_centres,
    covariances_of_sides,
    fit_size,
)
from probox.detect.families.graph_inspection import find_sides, has_operation, score_kind, stem_of
from probox.detect.graph import Graph
from probox.errors import InputError
from probox.fusion.fuse import edges_of
from probox.support.types import Array, Floats
from probox.tables.labels import softmax

_INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


class Queries(Family):
    """Logits [1, N, C] and boxes [1, N, 4] (cx, cy, w, h from 0 to 1), as in exports of transformers.

    Every query is a detection with all its class scores. The network was trained to predict each object once, so there
    is no suppression. Subclasses define the activation of logits and the preprocessing of images: neither can be read
    from the outputs, so ``auto`` inspects the graph.
    """

    suppresses = True
    scores: ClassVar[Literal["softmax", "sigmoid"]] = "sigmoid"
    """``softmax``: over all columns, the last of which is the background."""
    stretched: ClassVar[bool] = True
    """Whether images are stretched to a square; otherwise the aspect ratio is kept where the graph is dynamic."""
    mean: ClassVar[Sequence[float]] = IMAGENET_MEAN
    std: ClassVar[Sequence[float]] = IMAGENET_STD

    def inspect(self) -> None:
        signature, names = self.signature, self.named
        found = boxes_and_logits(signature)
        if found is None:
            raise InputError(f"expected outputs logits [1, N, C] and boxes [1, N, 4], but got {signature.describe()}")
        self._boxes, self._logits = found
        self._image = next((tensor for tensor in signature.inputs if len(tensor.shape) == 4), signature.inputs[0])
        columns = signature.shape(self._logits)[-1]
        if names is not None and columns is not None and len(names) != columns - (self.scores == "softmax"):
            last = " and no object" if self.scores == "softmax" else ""
            raise InputError(
                f"{len(names)} class names do not fit {columns} columns of logits, expected one for each class{last}",
                remedy="give as many names, or name another family ({option:family})",
            )
        self.batches = self.stretched or None not in self.open_size()

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether inputs are an image and optionally a pixel mask, and outputs are boxes and logits."""
        ranks = sorted(len(tensor.shape) for tensor in signature.inputs)
        return ranks in ([4], [3, 4]) and boxes_and_logits(signature) is not None

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether the scores are logits, and head and stem are those of this family."""
        return cls.matches(signature) and are_logits(signature, graph) and cls.is_inside(signature, graph)

    @classmethod
    def is_inside(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether the tensors inside the graph are those of this family."""
        raise NotImplementedError

    def count_columns(self) -> int:
        return self.last_dimension(self._logits) - (self.scores == "softmax")

    def open_size(self) -> tuple[int | None, int | None]:
        return self._image.shape[-1], self._image.shape[-2]

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        size = self.input_size()
        if not (self.batches or self.size):  # an input with dynamic width or height
            (wide, high), free = self.open_size(), fit_size(image)
            size = wide or free[0], high or free[1]
        placed, placement = place_image(image, size, keep_aspect=False)
        feeds = {self._image.name: channels_first(placed, bgr=False, mean=self.mean, std=self.std)}
        for tensor in self.signature.inputs:
            if tensor.name != self._image.name:  # a mask that marks all pixels as image
                shape = [given or own for given, own in zip(tensor.shape[-2:], (size[1], size[0]), strict=True)]
                feeds[tensor.name] = np.ones((1, *shape), _INTEGERS.get(tensor.type, np.float32))
        return feeds, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        logits = outputs[self._logits][0].astype(np.float32)
        shares = corners_of_centres(outputs[self._boxes][0])
        boxes = shares * np.array(placement.image_size * 2, np.float64)
        return Candidates(boxes, self.columns.select(self._scores(logits)), self.corner_covariances(outputs, placement))

    def corner_covariances(self, outputs: Sequence[Array], placement: Placement) -> Floats | None:
        """Return the corners' covariances, if the head predicts them."""
        return None

    def _scores(self, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if self.scores == "sigmoid":
            return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -80.0, 80.0))), np.float32)
        return np.asarray(softmax(logits)[:, :-1], np.float32)


class Detr(Queries):
    """DETR, YOLOS and Table Transformer: a softmax whose last column is the background.

    RGB with ImageNet's mean and std; the shorter side is 800 pixels, the longer one at most 1333 (DETR's own
    evaluation), or stretched where the graph's size is fixed.
    """

    name = "detr"
    labels = "best"
    scores = "softmax"
    stretched = False
    default_size = (800, 800)

    @classmethod
    def is_inside(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether boxes come from a layer without reference points, after a ResNet or patches."""
        return graph is not None and not refines(graph) and stem_of(graph) in ("large", "patches")


class DeformableDetr(Queries):
    """Deformable, Conditional and DAB-DETR: a sigmoid per class, preprocessing as for DETR."""

    name = "deformable-detr"
    stretched = False
    default_size = (800, 800)

    @classmethod
    def is_inside(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether boxes are relative to reference points, after a ResNet."""
        return refines(graph) and stem_of(graph) == "large"


class RfDetr(Queries):
    """RF-DETR and LW-DETR: a sigmoid per class; RGB with ImageNet's mean and std, stretched to a square."""

    name = "rf-detr"
    default_size = (560, 560)

    @classmethod
    def is_inside(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether boxes are relative to reference points, after a transformer's patches."""
        return refines(graph) and stem_of(graph) == "patches"


def boxes_and_logits(signature: Signature) -> tuple[int, int] | None:
    """Return the indices of boxes and logits: by name, else the only two outputs of that shape."""
    at = {tensor.name: number for number, tensor in enumerate(signature.outputs)}
    pairs: list[tuple[int, int]] = []
    if "pred_boxes" in at and ("logits" in at or "pred_logits" in at):
        pairs = [(at["pred_boxes"], at["logits"] if "logits" in at else at["pred_logits"])]
    elif len(signature.outputs) == 2:
        pairs = [(0, 1), (1, 0)]
    fitting = []
    for boxes, logits in pairs:
        first, second = signature.shape(boxes), signature.shape(logits)
        if len(first) == len(second) == 3 and first[2] == 4 and first[1] == second[1]:
            fitting.append((boxes, logits))
    if len(fitting) == 2:  # three classes and a background are four columns, too
        fitting = [pair for pair in fitting if "box" in signature.outputs[pair[0]].name.lower()]
    return fitting[0] if len(fitting) == 1 else None


def are_logits(signature: Signature, graph: Graph | None) -> bool:
    """Return whether the scores are logits, by name or because a linear layer computes them."""
    found = boxes_and_logits(signature)
    if found is None:
        return False
    name = signature.outputs[found[1]].name
    kind = score_kind(graph, name)
    return kind == "logits" or (kind is None and "logits" in name.lower())


def refines(graph: Graph | None) -> bool:
    """Return whether boxes are relative to reference points: inverse sigmoid, or sampling around points."""
    return has_operation(graph, "Log", "GridSample")


REACH = 0.5
"""Constant a of the published models, for graphs that compute their bins."""
AGREEMENT = 0.02
"""Tolerance between mean of edges and box, relative to the image: rounding in half precision."""


class RtDetr(Queries):
    """RT-DETR, its second version, and D-FINE without edge distributions: a sigmoid per class.

    RGB from 0 to 1 without mean and std, stretched to 640 x 640, as in the authors' code and transformers.
    """

    name = "rt-detr"
    default_size = (640, 640)
    mean = (0.0, 0.0, 0.0)
    std = (255.0, 255.0, 255.0)

    @classmethod
    def is_inside(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether boxes are relative to reference points after a small-convolution stem, without edge bins."""
        return is_rt_detr(graph) and not has_edges(signature, graph)


class DFine(RtDetr):
    """D-FINE (and DEIM in the same layout): as RT-DETR, with a distribution over 33 bins for each edge.

    The last layer's logits of bins and the initial boxes, which edges refer to, are tensors inside the graph:
    ``x1 = cx - (b / 2 + d) w / b`` with ``d = sum p W``, so ``var(x1) = Var_p(W) (w / b)^2``.
    """

    name = "d-fine"
    has_edges = True

    def inspect(self) -> None:
        super().inspect()
        found = None if self.graph is None else find_sides(self.graph, self.signature.outputs[self._boxes].name)
        if found is None:
            raise InputError(
                "this graph has no edge distributions",
                remedy="name another family ({option:family}): rt-detr does not need them",
            )
        self._edges = found

    @classmethod
    def is_inside(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether the inside is that of RT-DETR, with edge distributions before the boxes."""
        return is_rt_detr(graph) and has_edges(signature, graph)

    def taps(self) -> tuple[str, ...]:
        return self._edges.logits, self._edges.reference

    def corner_covariances(self, outputs: Sequence[Array], placement: Placement) -> Floats | None:
        given = len(self.signature.outputs)
        if len(outputs) < given + 2:  # graphs with dropout return no tensors from inside
            return None
        logits, reference = (outputs[given + number][0] for number in range(2))
        mean, var = edges_of(logits, reference, REACH, self._edges.scale, self._edges.bins)
        away = float(np.abs(mean - corners_of_centres(outputs[self._boxes][0])).max(initial=0.0))
        if not away <= AGREEMENT:
            raise InputError(
                f"the mean of the edge distributions is {away:.3g} of the image size away from the boxes",
                remedy="name another family ({option:family}): rt-detr does not need them",
            )
        return covariances_of_sides(var, placement.image_size)


def is_rt_detr(graph: Graph | None) -> bool:
    """Return whether boxes are relative to reference points, after a stem of small convolutions."""
    return refines(graph) and stem_of(graph) == "small"


def has_edges(signature: Signature, graph: Graph | None) -> bool:
    """Return whether edge distributions precede the boxes."""
    found = boxes_and_logits(signature)
    return graph is not None and found is not None and find_sides(graph, signature.outputs[found[0]].name) is not None

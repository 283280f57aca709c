"""Graphs with built-in NMS that output one label and one score per box."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from probox.detect.candidates import Candidates, Pixels, Placement, place_image
from probox.detect.families.base import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Family,
    FamilyInputs,
    Signature,
    Tensor,
    channels_first,
    fit_size,
)
from probox.detect.families.graph_inspection import first_step, stem_of
from probox.detect.graph import Graph
from probox.errors import InputError
from probox.support.types import Array, Ints
from probox.tables.labels import COCO_CATEGORY_IDS, COCO_CLASSES


def one_label_each(boxes: Array, labels: Ints, scores: Array, count: int) -> Candidates:
    """Return candidates whose label has its score; the other classes share the rest, each at most the label's score."""
    given = scores.astype(np.float64)
    share = np.minimum((1.0 - given) / max(count - 1, 1), given)
    probs = np.repeat(share[:, None], count, axis=1)
    probs[np.arange(len(labels)), labels] = given
    return Candidates(boxes.astype(np.float64), probs.astype(np.float32), labels=labels)


class Suppressed(Family):
    """Boxes with one label and one score each: no full label distribution, and no candidates to cluster."""

    suppresses = True
    labels = "best"
    first_label: ClassVar[int] = 0
    """Number of the first class in the graph; without names, labels from 1 are COCO's ids."""

    def inspect(self) -> None:
        # Labels that count from 1 without given names are COCO's ids, which have gaps.
        self._own = None if self.named is not None and tuple(self.named) == COCO_CLASSES else self.named
        found = self.find(self.signature)
        if found is None:
            raise InputError(f"the outputs {self.signature.describe()} do not fit the family {self.name}")
        self._found = found

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether all outputs of the family exist."""
        return cls.find(signature) is not None

    @classmethod
    def find(cls, signature: Signature) -> tuple[int, ...] | None:
        """Return the indices of the family's outputs, None if this is another family's graph."""
        raise NotImplementedError

    def count_columns(self) -> int:
        return len(COCO_CLASSES) if self._own is None else len(self._own)

    def free_size(self, image: Pixels) -> tuple[int, int]:
        """Return the input's size, or the image's size if the input is dynamic."""
        fixed = self.size is not None or None not in self.open_size()
        return self.input_size() if fixed else (image.shape[1], image.shape[0])

    def candidates_of(self, boxes: Array, labels: Array, scores: Array) -> Candidates:
        """Return candidates of boxes in the image; padding rows with score 0 are removed."""
        rows = np.flatnonzero(~(scores.reshape(-1) <= 0))  # NaN is kept, to be refused later
        columns = self._columns_of(labels.reshape(-1)[rows].astype(np.int64))
        known = columns >= 0
        rows, columns = rows[known], columns[known]
        return one_label_each(boxes.reshape(-1, 4)[rows], columns, scores.reshape(-1)[rows], len(self.classes))

    def _columns_of(self, labels: Ints) -> Ints:
        """Return the class of each label, -1 for unused COCO ids."""
        most = len(self.classes) if self._own is not None or not self.first_label else max(COCO_CATEGORY_IDS)
        wrong = labels[(labels < self.first_label) | (labels >= self.first_label + most)]
        if len(wrong):
            last = self.first_label + most - 1
            raise InputError(
                f"the graph returned the label {wrong[0]}, but its classes are {self.first_label} to {last}",
                remedy="give the names of its classes in the order of its labels ({option:classes})",
            )
        if self._own is not None or not self.first_label:
            return labels - self.first_label
        by_id = np.full(most + 1, -1, np.int64)
        by_id[list(COCO_CATEGORY_IDS)] = np.arange(len(COCO_CATEGORY_IDS))
        return by_id[labels]


class TensorFlow(Suppressed):
    """TensorFlow's object detection API: count, boxes (y1, x1, y2, x2 from 0 to 1), scores and classes from 1.

    Outputs may have any order; if names do not distinguish classes from scores, the integer-valued output is the
    classes. RGB from 0 to 255, channels last; the graph resizes images itself unless its input is fixed.
    """

    name = "tensorflow"
    batches = False
    first_label = 1

    @classmethod
    def find(cls, signature: Signature) -> tuple[int, ...] | None:
        """Return the indices of boxes, and of scores and classes, in that order if names distinguish them."""
        image = signature.inputs[0].shape if len(signature.inputs) == 1 else ()
        if len(image) != 4 or image[3] not in (3, None) or image[1] == 3:
            return None
        named = {
            word: [at for at, tensor in enumerate(signature.outputs) if f"detection_{word}" in tensor.name.lower()]
            for word in ("boxes", "scores", "classes")
        }
        raw = [at for at, one in enumerate(signature.outputs) if re.search("raw|multiclass", one.name.lower())]
        picked = [next((at for at in found if at not in raw), None) for found in named.values()]
        if None not in picked:
            return tuple(at for at in picked if at is not None)
        ranks = [len(tensor.shape) for tensor in signature.outputs]
        if sorted(ranks) != [1, 2, 2, 3] or signature.outputs[ranks.index(3)].shape[2] != 4:
            return None
        first, second = (at for at, rank in enumerate(ranks) if rank == 2)
        swapped = "class" in signature.outputs[first].name.lower() or "score" in signature.outputs[second].name.lower()
        return (ranks.index(3), second, first) if swapped else (ranks.index(3), first, second)

    def open_size(self) -> tuple[int | None, int | None]:
        _, high, wide, _ = self.signature.inputs[0].shape
        return wide, high

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.free_size(image), keep_aspect=False, from_origin=True)
        return {self.signature.inputs[0].name: placed[None]}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes, scores, classes = (outputs[at] for at in self._found)
        if not _whole(classes) or (_whole(scores) and scores.max(initial=0.0) > 1.0):
            scores, classes = classes, scores
        if not _whole(classes):
            raise ValueError("neither of two outputs holds whole numbers as classes")
        corners = boxes.reshape(-1, 4)[:, [1, 0, 3, 2]] * np.array(placement.image_size * 2, np.float64)
        return self.candidates_of(corners, classes, scores)


class MmDeploy(Suppressed):
    """MMDetection models exported by mmdeploy (RTMDet and others): dets [1, N, 5] (x1, y1, x2, y2, score), labels.

    Boxes are in pixels of the input; the aspect ratio is kept, the image is in the upper left corner on grey 114. The
    pixel format follows from the network's first convolution: BGR with ImageNet's mean and std for RTMDet, RGB with
    them for a ResNet, BGR from 0 to 255 for YOLOX.
    """

    name = "mmdeploy"

    @classmethod
    def find(cls, signature: Signature) -> tuple[int, ...] | None:
        """Return the indices of boxes with scores, and of labels."""
        if len(signature.inputs) != 1 or len(signature.inputs[0].shape) != 4:
            return None
        dets = [at for at, tensor in enumerate(signature.outputs) if len(tensor.shape) == 3 and tensor.shape[2] == 5]
        labels = [at for at, tensor in enumerate(signature.outputs) if len(tensor.shape) == 2 and _is_integer(tensor)]
        return (dets[0], labels[0]) if len(dets) == 1 and len(labels) == 1 else None

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=True, fill=114)
        stem = stem_of(self.graph)
        if stem == "packed":
            pixels = channels_first(placed, bgr=True)
        elif stem == "large":
            pixels = channels_first(placed, bgr=False, mean=IMAGENET_MEAN, std=IMAGENET_STD)
        else:
            pixels = channels_first(placed, bgr=True, mean=IMAGENET_MEAN[::-1], std=IMAGENET_STD[::-1])
        return {self.signature.inputs[0].name: pixels}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        dets, labels = (outputs[at] for at in self._found)
        rows = dets.reshape(-1, 5)
        return self.candidates_of(placement.boxes_to_image(rows[:, :4]), labels, rows[:, 4])


class RtDetrTop(Suppressed):
    """RT-DETR and D-FINE as their authors export them: inputs image and size; outputs top labels, boxes and scores.

    The size input is the (width, height) of the photo, and boxes are in its pixels. RGB from 0 to 1, stretched. Exports
    of logits and boxes (family rt-detr or d-fine) have all class scores, and D-FINE's edge distributions.
    """

    name = "rt-detr-top"

    @classmethod
    def find(cls, signature: Signature) -> tuple[int, ...] | None:
        """Return the indices of boxes, labels and scores."""
        shapes = [tensor.shape for tensor in signature.inputs]
        if [len(shape) for shape in shapes] != [4, 2] or shapes[1][1] not in (2, None):
            return None
        if not _is_integer(signature.inputs[1]):
            return None
        return _boxes_labels_scores(signature, 3) if len(signature.outputs) == 3 else None

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=False)
        pixels, size = self.signature.inputs
        kind = np.int32 if size.type == "tensor(int32)" else np.int64
        feeds: dict[str, Array] = {pixels.name: channels_first(placed, bgr=False, std=255.0)}
        feeds[size.name] = np.array([placement.image_size], kind)
        return feeds, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes, labels, scores = (outputs[at] for at in self._found)
        return self.candidates_of(boxes.astype(np.float64), labels, scores)


class Torchvision(Suppressed):
    """Exports of torchvision: boxes [n, 4] in pixels of the input, labels [n] and scores [n] in any order.

    RGB from 0 to 1: the graph subtracts the mean and resizes, which distinguishes it from the model zoo's Faster R-CNN.
    An input of fixed size has the image in its upper left corner. Labels count from 1, as COCO's ids do.
    """

    name = "torchvision"
    batches = False
    first_label = 1

    @classmethod
    def find(cls, signature: Signature) -> tuple[int, ...] | None:
        """Return the indices of boxes, labels and scores."""
        if len(signature.inputs) != 1 or len(signature.inputs[0].shape) not in (3, 4):
            return None
        return _boxes_labels_scores(signature, 2)

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether the graph starts by subtracting the mean."""
        return cls.matches(signature) and normalises(signature, graph)

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.free_size(image), keep_aspect=True)
        pixels = channels_first(placed, bgr=False, std=255.0)
        tensor = self.signature.inputs[0]
        return {tensor.name: pixels if len(tensor.shape) == 4 else pixels[0]}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes, labels, scores = (outputs[at] for at in self._found)
        return self.candidates_of(placement.boxes_to_image(boxes.reshape(-1, 4)), labels, scores)


def _boxes_labels_scores(signature: Signature, rank: int) -> tuple[int, ...] | None:
    """Return the indices of boxes, labels and scores by number of axes; None unless each occurs once."""
    shapes = [tensor.shape for tensor in signature.outputs]
    boxes = [at for at, shape in enumerate(shapes) if len(shape) == rank and shape[-1] == 4]
    flat = [at for at, shape in enumerate(shapes) if len(shape) == rank - 1]
    labels = [at for at in flat if _is_integer(signature.outputs[at])]
    scores = [at for at in flat if at not in labels]
    return (boxes[0], labels[0], scores[0]) if len(boxes) == len(labels) == len(scores) == 1 else None


def normalises(signature: Signature, graph: Graph | None) -> bool:
    """Return whether the graph first subtracts a mean from the image."""
    return first_step(graph, signature.inputs[0].name) in ("Sub", "Div")


def _is_integer(tensor: Tensor) -> bool:
    return tensor.type in ("tensor(int64)", "tensor(int32)")


def _whole(values: Array) -> bool:
    return bool((values == np.rint(values)).all())


class FasterRCNN(Family):
    """The ONNX model zoo's Faster R-CNN: input image [3, H, W]; outputs boxes, labels and scores after NMS.

    The graph outputs one label and one score per box, so the full label distribution is unknown: the label has its
    score, and the other classes share the rest evenly, each at most the label's score.
    """

    name = "faster-rcnn"
    batches = False
    suppresses = True
    labels = "best"

    def __init__(self, given: FamilyInputs) -> None:
        self._count = len(given.classes or COCO_CLASSES)
        super().__init__(given)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether the outputs are boxes [n, 4], labels [n] and scores [n]."""
        shapes = [output.shape for output in signature.outputs]
        ranks = [len(shape) for shape in shapes]
        return ranks[:3] == [2, 1, 1] and shapes[0][1] == 4 and len(signature.inputs) == 1

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether the graph does not start by subtracting a mean, as torchvision's does."""
        return cls.matches(signature) and not normalises(signature, graph)

    def count_columns(self) -> int:
        return self._count

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        new = fit_size(image)
        placed, placement = place_image(image, new, keep_aspect=False)
        pixels = channels_first(placed, bgr=True, mean=(102.9801, 115.9465, 122.7717))[0]
        padded = np.zeros((3, -(-new[1] // 32) * 32, -(-new[0] // 32) * 32), np.float32)
        padded[:, : new[1], : new[0]] = pixels
        feed = padded[None] if len(self.signature.inputs[0].shape) == 4 else padded
        return {self.signature.inputs[0].name: feed}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes = placement.boxes_to_image(outputs[0].reshape(-1, 4))
        labels = outputs[1].reshape(-1).astype(np.int64) - 1  # 0 is the background
        scores = outputs[2].reshape(-1)
        keep = (labels >= 0) & (labels < len(self.classes))
        return one_label_each(boxes[keep], labels[keep], scores[keep], len(self.classes))

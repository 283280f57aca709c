"""What exports of Ultralytics share: what they say of themselves, how they want an image, tensors inside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Family, Given, Signature, channels_first, corners_of_centres
from probox.detect.families.cells import strides_of
from probox.detect.families.dfl import EdgeRows, Edges
from probox.detect.images import Pixels, Placement, place_image
from probox.errors import InputError

__all__ = ["Exported", "check_scores", "check_task", "only_output"]

Array = npt.NDArray[Any]

TASKS = ("detect", "segment")
"""What exports are for that have boxes with corners."""
LARGEST_FRACTION = 1.5
"""Centres that are fractions of the input are not above this; in pixels those of the last cells are."""
OTHER_TASKS = {
    "pose": "predicts key points",
    "obb": "predicts oriented boxes, which have no corners to be unsure of",
    "classify": "classifies whole images",
}


def check_task(signature: Signature) -> None:
    """Raise if an export says that it is for something else than boxes."""
    task = signature.metadata.task
    if task is not None and task not in TASKS:
        what = OTHER_TASKS.get(task, "is for something else than boxes")
        raise InputError(
            f"the model {what} (its export says task {task!r}; outputs {signature.describe()})",
            remedy="use one for the task detect or segment",
        )


def only_output(signature: Signature) -> tuple[int | None, ...] | None:
    """Return the shape of the only output of a graph with one image input, if it has three dimensions."""
    one = len(signature.inputs) == 1 and len(signature.outputs) == 1
    fits = one and len(signature.outputs[0].shape) == 3 and len(signature.inputs[0].shape) == 4
    return signature.shape(0) if fits else None


def check_scores(scores: Array, family: str) -> None:
    """Raise if scores are no probabilities: logits, or the outputs of something else."""
    if scores.size:
        low, high = float(scores.min()), float(scores.max())
        if not (low >= -1e-3 and high <= 1.0 + 1e-3):
            raise InputError(
                f"expected scores between 0 and 1 of {family}, but got {low:.4g} to {high:.4g}",
                remedy="name another family, or export the model with its sigmoid",
            )


class Exported(Family):
    """An export of Ultralytics, or made alike: RGB in 0..1, letterboxed; every score column is a class."""

    edges: tuple[Edges, ...] = ()

    def __init__(self, given: Given) -> None:
        signature = given.signature
        check_task(signature)
        self._named = given.names
        super().__init__(given)
        wide, high = self.input_size()
        stride = signature.metadata.stride
        if stride is not None and None in self.open_size() and (wide % stride or high % stride):
            raise InputError(
                f"expected an input whose sides are multiples of {stride}, but got {wide} x {high}",
                remedy="choose another size",
            )

    def checked_columns(self, columns: int | None) -> int:
        """Return how many classes there are; `columns` is what the outputs say.

        There is no column of a background here, and no class without a name.
        """
        named = None if self._named is None else len(self._named)
        if columns is None or columns < 1:
            if columns is None and named is not None:
                return named
            raise InputError(
                f"the graph does not say how many classes it scores ({self.signature.describe()})",
                remedy="give the names of its classes in the order of its outputs",
            )
        if named is not None and named != columns:
            raise InputError(
                f"expected {columns} class names for the model's {columns} scores "
                f"(outputs {self.signature.describe()}), but got {named}"
            )
        if named is None and columns != 80:
            raise InputError(
                f"the model has {columns} classes, which are not COCO's",
                remedy="give the names of its classes in the order of its outputs",
            )
        return columns

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        """Return the image letterboxed, grey around it."""
        placed, placement = place_image(image, self.input_size(), keep_aspect=True, centred=True, fill=114)
        planes = channels_first(placed, bgr=False, std=255.0)
        feed = planes.transpose(0, 2, 3, 1) if self.signature.channels_last else planes
        return {self.signature.inputs[0].name: feed}, placement

    def corners(self, centres: Array) -> npt.NDArray[np.float64]:
        """Return boxes on the input in pixels, of the centres and sizes of a row for each cell.

        Exports to TensorFlow give fractions of the input: no centre of any cell is more than a cell beyond 1 then.
        """
        fractions = bool(len(centres)) and float(np.abs(centres[:, :2]).max()) <= LARGEST_FRACTION
        return corners_of_centres(centres) * (np.array(self.input_size() * 2) if fractions else 1.0)

    def tapped(self, outputs: Sequence[Array], name: str) -> Array | None:
        """Return a tensor from inside the graph, None if it was not asked of the graph (with dropout, say)."""
        names = [output.name for output in self.signature.outputs]
        names += [tap for tap in self.taps() if tap not in names]
        at = names.index(name)
        return outputs[at] if at < len(outputs) else None

    def edge_rows(
        self, outputs: Sequence[Array], boxes: npt.NDArray[np.float64], placement: Placement
    ) -> EdgeRows | None:
        """Return the corner covariances of boxes on the input from the edge distributions, where there are some."""
        values = [self.tapped(outputs, edge.tensor) for edge in self.edges]
        there = [value for value in values if value is not None]
        if not values or len(there) < len(values):
            return None
        size = self.input_size()
        strides = strides_of(size, len(boxes), self.signature.metadata.stride)
        return EdgeRows(self.edges, there, boxes, size, strides, placement)

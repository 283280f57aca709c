"""PDQ in every validation of an Ultralytics training, beside its own numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from probox.adapters.metric import PDQ
from probox.detect.families import Candidates
from probox.detect.images import Placement
from probox.detect.ultralytics import names_of, yolo_candidates, yolo_traits
from probox.detect.uncertainty import Options, detections_from
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.fusion.gaussian import Border
from probox.tables.arrays import to_numpy

__all__ = ["UltralyticsPDQ"]

Floats = npt.NDArray[np.float64]
DECIMALS = 2
"""Of a pixel. Labels are shares of the image with six digits and single precision; an object that ends with pixel 58
must not end at 58.00003, where one more begins."""
Self = TypeVar("Self", bound="UltralyticsPDQ")


class UltralyticsPDQ:
    """Logs PDQ in every validation of an Ultralytics model: two lines before ``model.train(...)``.

    PDQ stands as ``metrics/PDQ`` in the trainer's metrics, so in ``results.csv``, its plot, and whatever else
    Ultralytics logs to.

    Parameters
    ----------
    score : float
        Count detections whose score is above. Validation keeps those above 0.001, which costs mAP nothing and PDQ
        nearly everything; 0.25 is what prediction keeps.
    uncertainty : {None, "none", "nms-clusters", "edge-distribution"}
        None: the validator's own detections, one label each. Otherwise what the head knows and validation throws away,
        from the same forward pass: all classes' probabilities, and corners that are certain (``none``), as spread as
        the candidates of a detection, or as the head's own edge distributions.
    border : {"keep", "pin"}
        Edges at the image border: keep their estimated std, or pin it, as `probox.detect.Options` has it.
    log : sequence of str
        Which numbers to log, by their names in `probox.Evaluation.summary`.
    **options
        As for `probox.PDQ`, such as ``preset="paper"``.

    Examples
    --------
    >>> from ultralytics import YOLO                                             # doctest: +SKIP
    >>> from probox.adapters import UltralyticsPDQ                               # doctest: +SKIP
    >>> model = YOLO("yolo11n.pt")                                               # doctest: +SKIP
    >>> pdq = UltralyticsPDQ(uncertainty="edge-distribution").attach(model)      # doctest: +SKIP
    >>> model.train(data="coco8.yaml", epochs=3)                                 # doctest: +SKIP
    >>> [entry["PDQ"] for entry in pdq.history]                                  # doctest: +SKIP
    [0.11, 0.13, 0.14, 0.14]
    """

    def __init__(
        self,
        *,
        score: float = 0.25,
        uncertainty: Literal["none", "nms-clusters", "edge-distribution"] | None = None,
        border: Border = "keep",
        log: Sequence[str] = ("PDQ",),
        **options: Any,
    ) -> None:
        # More than Ultralytics' own limit of 300 are never kept of an image.
        self._choice = Options(score=score, uncertainty=uncertainty or "none", border=border, max_detections=300)
        self._from_head = uncertainty is not None
        if uncertainty in ("mc-dropout", "flip-scale"):
            raise InputError(
                f"{uncertainty} needs several passes, and a validation makes one",
                remedy='use "nms-clusters" or "edge-distribution", or UltralyticsDetector after training',
            )
        self._options = options
        known = PDQ(**options).compute()
        self._log = tuple(log)
        unknown = [name for name in self._log if name not in known]
        if unknown:
            raise InputError(f"there is no number called {unknown[0]!r}", remedy=f"choose among {', '.join(known)}")
        self._metric: PDQ | None = None
        self._candidates: tuple[Any, ...] | None = None
        self.result: Evaluation | None = None
        """The evaluation of the last validation."""
        self.history: list[dict[str, float]] = []
        """The numbers of every validation so far. Training ends with one more, of the best weights."""

    def attach(self: Self, model: Any) -> Self:
        """Add the callbacks to a model, or to a trainer or validator; return itself."""
        if not callable(getattr(model, "add_callback", None)):
            raise InputError(
                f"expected an Ultralytics model, but got {type(model).__name__}", remedy='give YOLO("yolo11n.pt")'
            )
        for event, callback in self.callbacks().items():
            model.add_callback(event, callback)
        return self

    def callbacks(self) -> dict[str, Any]:
        """Return the callbacks by their events, for ``add_callback``."""
        return {"on_pretrain_routine_end": self.on_pretrain_routine_end, "on_val_start": self.on_val_start}

    def on_pretrain_routine_end(self, trainer: Any) -> None:
        """Make room in the first rows of ``results.csv``, which are written in the order of these keys."""
        metrics = getattr(trainer, "metrics", None)
        if not isinstance(metrics, dict):
            return  # a process that writes nothing
        own = {f"metrics/{name}": 0 for name in self._log}
        first = {key: value for key, value in metrics.items() if not key.startswith("val/") and key not in own}
        trainer.metrics = first | own | {key: value for key, value in metrics.items() if key.startswith("val/")}

    def on_val_start(self, validator: Any) -> None:
        """Begin a validation: see its predictions, and add to its numbers."""
        self._metric, self._candidates = None, None
        # Callbacks are given neither predictions nor batches, so the validator's own methods are asked.
        for name, around in (
            ("postprocess", self._around_postprocess),
            ("update_metrics", self._around_update),
            ("gather_stats", self._around_gather),
            ("get_stats", self._around_stats),
        ):
            original = getattr(validator, name)
            if not _watches(self, original):
                watched = _Watched(self, around, validator, original)
                setattr(validator, name, watched)

    def _around_postprocess(self, validator: Any, original: Any, preds: Any, *rest: Any, **named: Any) -> Any:
        self._candidates = preds if self._from_head else None
        return original(preds, *rest, **named)

    def _around_update(self, validator: Any, original: Any, preds: Any, batch: Any) -> Any:
        metric = self._metric = self._metric or self._new_metric(validator)
        metric.update(*self._pairs(validator, preds, batch))
        return original(preds, batch)

    def _around_gather(self, validator: Any, original: Any) -> Any:
        # Every process comes by here, also one without images.
        self._metric = self._metric or self._new_metric(validator)
        self._metric.sync()
        return original()

    def _around_stats(self, validator: Any, original: Any) -> Any:
        metric = self._metric or self._new_metric(validator)
        numbers = metric.compute()
        self.result = metric.result()
        self.history.append(numbers)
        return {**original(), **{f"metrics/{name}": numbers[name] for name in self._log}}

    def _new_metric(self, validator: Any) -> PDQ:
        return PDQ(names_of(validator.names), **self._options)

    def _pairs(self, validator: Any, preds: Any, batch: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
        """Return a batch as torchvision's dictionaries, in pixels of the images."""
        wide, high = int(batch["img"].shape[3]), int(batch["img"].shape[2])
        owners = to_numpy(batch["batch_idx"], "batch_idx")
        truth_boxes = to_numpy(batch["bboxes"], "bboxes").astype(np.float64).reshape(-1, 4)
        truth_labels = to_numpy(batch["cls"], "cls").reshape(-1).astype(np.int64)
        ids = _image_ids(validator)
        placements, target = [], []
        for row in range(len(preds)):
            (gain_y, gain_x), (left, top) = batch["ratio_pad"][row]
            height, width = (int(side) for side in batch["ori_shape"][row])
            placement = Placement((float(gain_x), float(gain_y)), (float(left), float(top)), (width, height))
            own = owners == row
            centres = truth_boxes[own] * [wide, high, wide, high]
            low, size = centres[:, :2] - centres[:, 2:] / 2, centres[:, 2:]
            boxes = _inside(placement.boxes_to_image(np.hstack([low, low + size])), placement)
            entry = {
                "boxes": boxes.round(DECIMALS),
                "labels": truth_labels[own],
                "image_size": (width, height),
            }
            image = ids.get(str(batch["im_file"][row]))
            target.append(entry if image is None else entry | {"image_id": image})
            placements.append(placement)
        if self._from_head:
            return self._head_predictions(validator, placements, (wide, high)), target
        both = zip(preds, placements, strict=True)
        return [_prediction(own, placement, self._choice.score) for own, placement in both], target

    def _head_predictions(
        self, validator: Any, placements: Sequence[Placement], size: tuple[int, int]
    ) -> list[dict[str, Any]]:
        """Return detections with all that the head knows."""
        classes = names_of(validator.names)
        try:
            candidates: list[Candidates] = yolo_candidates(self._candidates, size, len(classes), placements)
        except (AttributeError, IndexError, KeyError, TypeError):
            raise InputError(
                "this head keeps its candidates to itself", remedy="leave uncertainty out, for the validator's own"
            ) from None
        family = yolo_traits(classes, edges=candidates[0].covariances is not None)
        found = [
            detections_from(own, family, placement.image_size, 0, self._choice)
            for own, placement in zip(candidates, placements, strict=True)
        ]
        return [
            {"boxes": own.boxes, "labels": own.labels, "scores": own.scores, "label_probs": own.label_probs}
            | ({} if own.covariances is None else {"covariances": own.covariances})
            for own in found
        ]


class _Watched:
    """A validator's method, and what happens around it."""

    def __init__(self, watched_by: UltralyticsPDQ, around: Any, validator: Any, original: Any) -> None:
        self.watched_by = watched_by
        self._around = around
        self._validator = validator
        self.original = original

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._around(self._validator, self.original, *given, **named)


def _watches(callback: UltralyticsPDQ, method: Any) -> bool:
    """Return whether this callback is among those around a method: a model may have several."""
    while isinstance(method, _Watched):
        if method.watched_by is callback:
            return True
        method = method.original
    return False


def _inside(boxes: Floats, placement: Placement) -> Floats:
    return np.clip(boxes, 0.0, np.array(placement.image_size * 2, np.float64))


def _prediction(given: Mapping[str, Any], placement: Placement, score: float) -> dict[str, Any]:
    """Return the validator's own predictions of an image, in its pixels."""
    boxes = to_numpy(given["bboxes"], "bboxes").astype(np.float64)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise InputError("expected boxes with two corners", remedy="PDQ does not know oriented boxes")
    scores = to_numpy(given["conf"], "conf").astype(np.float64)
    labels = to_numpy(given["cls"], "cls").astype(np.int64)
    placed = _inside(placement.boxes_to_image(boxes), placement)
    # Weights that have learnt nothing may turn boxes inside out, and those outside the image have nothing in it.
    kept = (scores > score) & (placed[:, 2:] > placed[:, :2]).all(axis=1)
    return {"boxes": placed[kept], "scores": np.minimum(scores[kept], 1.0), "labels": labels[kept]}


def _image_ids(validator: Any) -> dict[str, int]:
    """Return the ids of a validator's image files: their numbers, or, if one has none of its own, 0, 1, 2..."""
    files = [str(name) for name in getattr(getattr(validator.dataloader, "dataset", None), "im_files", ())]
    stems = [PurePath(name).stem for name in files]
    numbers = [int(stem) for stem in stems if re.fullmatch(r"[0-9]{1,18}", stem)]
    if len(set(numbers)) < len(files):
        numbers = list(range(len(files)))
    return dict(zip(files, numbers, strict=True))

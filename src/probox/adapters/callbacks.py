"""PDQ in every validation of a Lightning or Ultralytics training."""

from __future__ import annotations

import copy
import dataclasses
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import PurePath
from typing import Any, Literal, TypeVar

import numpy as np

from probox.adapters.metric import PDQ
from probox.detect.candidates import Candidates, Placement
from probox.detect.ultralytics_detector import names_of, yolo_candidates, yolo_traits
from probox.detect.uncertainty import Options, clip_boxes, detections_from
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.fusion.gaussian import Border
from probox.notes import Note
from probox.tables.table import to_numpy

Reader = Callable[[Any, Any], tuple[Any, Any]]
HOMES = ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks")
"""Modules that define Lightning's base class of callbacks, under both names of the package."""


def lightning_callback(
    metric: PDQ | None = None,
    *,
    log: Sequence[str] = ("PDQ",),
    read: Reader | None = None,
    prog_bar: bool = True,
) -> Any:
    """Return a Lightning callback that logs PDQ of every validation as ``val_PDQ``, and of every test as ``test_PDQ``.

    ``validation_step`` must return ``{"preds": preds, "target": target}``, lists of torchvision's dictionaries as
    `probox.PDQ.update` takes them. With `read`, it may return anything. Import Lightning before the call.

    Parameters
    ----------
    metric : PDQ, optional
        Configuration of the metric. It is copied for each data loader and not modified. Default: ``PDQ()``.
    log : sequence of str
        Names of the numbers to log, as in `probox.Evaluation.summary`.
    read : callable, optional
        Takes the output of a step and its batch; returns predictions and targets.
    prog_bar : bool
        Show the numbers beside the progress bar.

    Returns
    -------
    lightning.Callback
        The callback. Its ``results`` hold the evaluations of the last validation or test, one per data loader.
        Show the numbers beside the progress bar.

    Examples
    --------
    >>> import lightning                                                                    # doctest: +SKIP
    >>> callback = lightning_callback(probox.PDQ(classes, first_label=1))                   # doctest: +SKIP
    >>> lightning.Trainer(max_epochs=3, callbacks=[callback]).fit(model, train, val)        # doctest: +SKIP
    >>> callback.results[0].per_class()                                                     # doctest: +SKIP
    """
    home = next((name for name in HOMES if name in sys.modules), None)
    if home is None:
        raise InputError("Lightning is not imported", remedy="import lightning first")
    chosen = PDQ() if metric is None else metric
    if not isinstance(chosen, PDQ):
        raise InputError(f"expected metric to be probox.PDQ, but got {type(chosen).__name__}")
    names = _check_names(log, chosen)
    return _make_callback(home, {"metric": chosen, "log_names": names, "read": read, "prog_bar": prog_bar})


def _check_names(log: Sequence[str], metric: PDQ) -> tuple[str, ...]:
    """Return the names of the numbers to log; raise if the metric has no such number."""
    known = metric.compute()
    unknown = [name for name in log if name not in known]
    if unknown:
        raise InputError(f"unknown number {unknown[0]!r}", remedy=f"use one of {', '.join(known)}")
    return tuple(log)


def _make_callback(home: str, fields: dict[str, Any]) -> Any:
    """Return the callback; a module-level function, because `PDQHooks.__reduce__` unpickles with it."""
    callback = _class_on(import_module(home).Callback)()
    vars(callback).update({"metrics": [], "results": [], "home": home} | fields)
    return callback


@cache
def _class_on(base: Any) -> Any:
    """Return the callback's class, created once: Lightning requires a subclass of its own base class."""
    return type("PDQCallback", (PDQHooks, base), {"__doc__": PDQHooks.__doc__})


class PDQHooks:
    """Logs PDQ of every validation and test; see `lightning_callback`."""

    metric: PDQ
    log_names: tuple[str, ...]
    read: Reader | None
    prog_bar: bool
    metrics: list[PDQ]
    results: list[Evaluation]
    """The evaluations of the last validation or test, one for each data loader."""
    home: str

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_callback, (self.home, vars(self).copy())

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Start with an empty metric for each data loader."""
        self._begin(trainer.sanity_checking, trainer.num_sanity_val_batches, trainer.num_val_batches)

    def on_test_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Start with an empty metric for each data loader."""
        self._begin(False, (), trainer.num_test_batches)

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Add a batch."""
        self._add(outputs, batch, dataloader_idx, "validation_step")

    def on_test_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Add a batch."""
        self._add(outputs, batch, dataloader_idx, "test_step")

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the numbers of all processes."""
        self._end(trainer, pl_module, "val")

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the numbers of all processes."""
        self._end(trainer, pl_module, "test")

    def _begin(self, sanity: bool, few: Any, all_batches: Any) -> None:
        loaders = len(few if sanity and few else all_batches) or 1
        self.metrics = [copy.deepcopy(self.metric) for _ in range(loaders)]
        for metric in self.metrics:
            metric.reset()

    def _add(self, outputs: Any, batch: Any, loader: int, step: str) -> None:
        if self.read is not None:
            preds, target = self.read(outputs, batch)
        elif isinstance(outputs, Mapping) and "preds" in outputs and "target" in outputs:
            preds, target = outputs["preds"], outputs["target"]
        else:
            raise InputError(
                f"expected {step} to return a dictionary with 'preds' and 'target', but got {type(outputs).__name__}",
                remedy="return them, or give read=lambda outputs, batch: (preds, target)",
            )
        self.metrics[loader].update(preds, target)

    def _end(self, trainer: Any, pl_module: Any, stage: str) -> None:
        for metric in self.metrics:
            metric.sync()  # collective: every process must call it, also one without images
        self.results = [metric.result() for metric in self.metrics]
        if trainer.sanity_checking:
            return  # the few batches of the sanity check are not representative
        for loader, metric in enumerate(self.metrics):
            numbers = metric.compute()
            suffix = f"/dataloader_idx_{loader}" if len(self.metrics) > 1 else ""
            named = {f"{stage}_{name}{suffix}": numbers[name] for name in self.log_names}
            # sync() gave all processes the same numbers, so Lightning must not reduce them.
            pl_module.log_dict(named, prog_bar=self.prog_bar, sync_dist=False, add_dataloader_idx=False)


DECIMALS = 2
"""Decimals of a pixel that are kept. Labels are fractions of the image in single precision with six digits: without
rounding, an object that ends at pixel 58 would end at 58.00003 and cover one pixel more."""
Self = TypeVar("Self", bound="UltralyticsPDQ")


class UltralyticsPDQ:
    """Logs PDQ in every validation of an Ultralytics model: two lines before ``model.train(...)``.

    PDQ is added to the trainer's metrics as ``metrics/PDQ``. It therefore appears in ``results.csv``, its plot, and all
    loggers of Ultralytics.

    Parameters
    ----------
    score_threshold : float
        Count detections with a higher score. Validation keeps scores above 0.001. This hardly changes mAP, but lowers
        PDQ to almost 0. Prediction keeps scores above 0.25.
    uncertainty : {None, "none", "nms-clusters", "edge-distribution"}
        None: the validator's own detections, with one label each. Otherwise detections from the head's raw output of
        the same forward pass, with the probabilities of all classes, and corner covariances: zero (``none``), of the
        candidates that NMS merged (``nms-clusters``), or of the head's own edge distributions (``edge-distribution``).
    border : {"keep", "pin"}
        Edges at the image border: keep their estimated std, or set it to 0, as in `probox.detect.Options`.
    log : sequence of str
        Names of the numbers to log, as in `probox.Evaluation.summary`.
    **options
        Options of `probox.PDQ`, such as ``preset="paper"``.

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
        score_threshold: float = 0.25,
        uncertainty: Literal["none", "nms-clusters", "edge-distribution"] | None = None,
        border: Border = "keep",
        log: Sequence[str] = ("PDQ",),
        **options: Any,
    ) -> None:
        # 300 is Ultralytics' own limit of detections per image.
        self._choice = Options(
            score_threshold=score_threshold, uncertainty=uncertainty or "none", border=border, max_detections=300
        )
        self._from_head = uncertainty is not None
        if uncertainty in ("mc-dropout", "flip-scale"):
            raise InputError(
                f"{uncertainty} needs several passes, and a validation makes one",
                remedy='use "nms-clusters" or "edge-distribution", or UltralyticsDetector after training',
            )
        self._options = options
        self._log = _check_names(log, PDQ(**options))
        self._metric: PDQ | None = None
        self._candidates: tuple[Any, ...] | None = None
        self._notes: tuple[Note, ...] = ()
        self.result: Evaluation | None = None
        """The evaluation of the last validation."""
        self.history: list[dict[str, float]] = []
        """The numbers of every validation so far. Training ends with one more, of the best weights."""

    def attach(self: Self, model: Any) -> Self:
        """Add the callbacks to a model, trainer or validator.

        Parameters
        ----------
        model : ultralytics.YOLO, trainer or validator
            Any object with ``add_callback``.

        Returns
        -------
        UltralyticsPDQ
            This object.

        Examples
        --------
        >>> pdq = UltralyticsPDQ().attach(YOLO("yolo11n.pt"))                        # doctest: +SKIP
        """
        if not callable(getattr(model, "add_callback", None)):
            raise InputError(
                f"expected an Ultralytics model, but got {type(model).__name__}", remedy='give YOLO("yolo11n.pt")'
            )
        for event, callback in self.callbacks().items():
            model.add_callback(event, callback)
        return self

    def callbacks(self) -> dict[str, Any]:
        """Return the callbacks by event, for ``add_callback``.

        Returns
        -------
        dict of str to callable
            Event names of Ultralytics, and the callbacks.

        Examples
        --------
        >>> list(UltralyticsPDQ().callbacks())
        ['on_pretrain_routine_end', 'on_val_start']
        """
        return {"on_pretrain_routine_end": self.on_pretrain_routine_end, "on_val_start": self.on_val_start}

    def on_pretrain_routine_end(self, trainer: Any) -> None:
        """Add the keys of PDQ to the trainer's metrics before those of losses: they are the columns of ``results.csv``.

        Parameters
        ----------
        trainer : ultralytics.engine.trainer.BaseTrainer
            The trainer. Processes without metrics are left unchanged.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> trainer = SimpleNamespace(metrics={"metrics/mAP50": 0, "val/box_loss": 0})
        >>> UltralyticsPDQ().on_pretrain_routine_end(trainer)
        >>> list(trainer.metrics)
        ['metrics/mAP50', 'metrics/PDQ', 'val/box_loss']
        """
        metrics = getattr(trainer, "metrics", None)
        if not isinstance(metrics, dict):
            return  # only the main process writes results.csv
        own = {f"metrics/{name}": 0 for name in self._log}
        first = {key: value for key, value in metrics.items() if not key.startswith("val/") and key not in own}
        trainer.metrics = first | own | {key: value for key, value in metrics.items() if key.startswith("val/")}

    def on_val_start(self, validator: Any) -> None:
        """Start a validation: wrap the validator's methods that see predictions and return numbers.

        Parameters
        ----------
        validator : ultralytics.engine.validator.BaseValidator
            The validator of this validation.

        Examples
        --------
        >>> model.add_callback("on_val_start", UltralyticsPDQ().on_val_start)        # doctest: +SKIP
        """
        self._metric, self._candidates = None, None
        # Ultralytics passes neither predictions nor batches to callbacks, so the validator's methods are wrapped.
        for name, around in (
            ("postprocess", self._around_postprocess),
            ("update_metrics", self._around_update),
            ("gather_stats", self._around_gather),
            ("get_stats", self._around_stats),
        ):
            original = getattr(validator, name)
            if not _watches(self, original):
                setattr(validator, name, _Watched(self, around, validator, original))

    def _around_postprocess(self, validator: Any, original: Any, preds: Any, *rest: Any, **named: Any) -> Any:
        self._candidates = preds if self._from_head else None
        return original(preds, *rest, **named)

    def _around_update(self, validator: Any, original: Any, preds: Any, batch: Any) -> Any:
        # Masks of validation have a fraction of the image's resolution.
        self._notes = (Note("masks-not-validated"),) if "masks" in batch else ()
        self._current_metric(validator).update(*self._pairs(validator, preds, batch))
        return original(preds, batch)

    def _around_gather(self, validator: Any, original: Any) -> Any:
        self._current_metric(validator).sync()  # collective: every process must call it, also one without images
        return original()

    def _around_stats(self, validator: Any, original: Any) -> Any:
        metric = self._current_metric(validator)
        numbers, result = metric.compute(), metric.result()
        self.result = dataclasses.replace(result, input_notes=(*result.input_notes, *self._notes))
        self.history.append(numbers)
        return {**original(), **{f"metrics/{name}": numbers[name] for name in self._log}}

    def _current_metric(self, validator: Any) -> PDQ:
        if self._metric is None:
            self._metric = PDQ(names_of(validator.names), **self._options)
        return self._metric

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
            boxes = clip_boxes(placement.boxes_to_image(np.hstack([low, low + size])), placement.image_size)
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
        return [_prediction(own, placement, self._choice.score_threshold) for own, placement in both], target

    def _head_predictions(
        self, validator: Any, placements: Sequence[Placement], size: tuple[int, int]
    ) -> list[dict[str, Any]]:
        """Return detections with the head's uncertainty."""
        classes = names_of(validator.names)
        try:
            candidates: list[Candidates] = yolo_candidates(self._candidates, size, len(classes), placements)
        except (AttributeError, IndexError, KeyError, TypeError):
            raise InputError(
                "the head's candidates are not available",
                remedy="omit uncertainty= to use the validator's own detections",
            ) from None
        family = yolo_traits(classes, edges=candidates[0].covariances is not None)
        found = [
            detections_from(own, family, placement.image_size, 0, self._choice)
            for own, placement in zip(candidates, placements, strict=True)
        ]
        return [
            {"boxes": own.boxes, "labels": own.labels, "scores": own.scores, "label_probs": np.asarray(own.label_probs)}
            | ({} if own.covariances is None else {"covariances": own.covariances})
            for own in found
        ]


class _Watched:
    """A validator's method, wrapped by a callback."""

    def __init__(self, watched_by: UltralyticsPDQ, around: Any, validator: Any, original: Any) -> None:
        self.watched_by = watched_by
        self._around = around
        self._validator = validator
        self.original = original

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._around(self._validator, self.original, *given, **named)


def _watches(callback: UltralyticsPDQ, method: Any) -> bool:
    """Return whether this callback already wraps a method; several callbacks may wrap the same one."""
    while isinstance(method, _Watched):
        if method.watched_by is callback:
            return True
        method = method.original
    return False


def _prediction(given: Mapping[str, Any], placement: Placement, score: float) -> dict[str, Any]:
    """Return the validator's own predictions of an image, in its pixels."""
    boxes = to_numpy(given["bboxes"], "bboxes").astype(np.float64)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise InputError("expected boxes with two corners", remedy="PDQ does not support oriented boxes")
    scores = to_numpy(given["conf"], "conf").astype(np.float64)
    labels = to_numpy(given["cls"], "cls").astype(np.int64)
    placed = clip_boxes(placement.boxes_to_image(boxes), placement.image_size)
    # Untrained weights may give boxes with exchanged corners; boxes outside the image are empty after clipping.
    kept = (scores > score) & (placed[:, 2:] > placed[:, :2]).all(axis=1)
    return {"boxes": placed[kept], "scores": np.minimum(scores[kept], 1.0), "labels": labels[kept]}


def _image_ids(validator: Any) -> dict[str, int]:
    """Return image ids by file: the numbers in the file names, or 0, 1, 2, ... if these are not unique numbers."""
    files = [str(name) for name in getattr(getattr(validator.dataloader, "dataset", None), "im_files", ())]
    stems = [PurePath(name).stem for name in files]
    numbers = [int(stem) for stem in stems if re.fullmatch(r"[0-9]{1,18}", stem)]
    if len(set(numbers)) < len(files):
        numbers = list(range(len(files)))
    return dict(zip(files, numbers, strict=True))

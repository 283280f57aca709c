"""PDQ in every validation of a Lightning training."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from probox.adapters.metric import PDQ
from probox.errors import InputError
from probox.evaluation.result import Evaluation

__all__ = ["lightning_callback"]

Reader = Callable[[Any, Any], tuple[Any, Any]]

HOMES = ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks")
"""Where Lightning keeps the class of callbacks, under its two names."""


def lightning_callback(
    metric: PDQ | None = None,
    *,
    log: Sequence[str] = ("PDQ",),
    read: Reader | None = None,
    prog_bar: bool = True,
) -> Any:
    """Return a Lightning callback that logs PDQ of every validation as ``val_PDQ``, and of every test as ``test_PDQ``.

    ``validation_step`` returns ``{"preds": preds, "target": target}``, lists of torchvision's dictionaries as
    `probox.PDQ.update` takes them; or `read` makes them of what it returns. Lightning is the caller's: it must be
    imported before.

    Parameters
    ----------
    metric : PDQ, optional
        What to measure with; it stays as it is, each set of images has a copy. Default: ``PDQ()``.
    log : sequence of str
        Which numbers to log, by their names in `probox.Evaluation.summary`.
    read : callable, optional
        Takes the output of a step and its batch, returns predictions and targets.
    prog_bar : bool
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
    known = chosen.compute()
    unknown = [name for name in log if name not in known]
    if unknown:
        raise InputError(f"there is no number called {unknown[0]!r}", remedy=f"choose among {', '.join(known)}")
    fields = {
        "metric": chosen,
        "log_names": tuple(log),
        "read": read,
        "prog_bar": prog_bar,
        "metrics": [],
        "results": [],
    }
    return _made(home, fields)


def _made(home: str, fields: dict[str, Any]) -> Any:
    """Return the callback; also brings it back from another process."""
    base = import_module(home).Callback
    callback = _class_on(base)()
    callback.__dict__.update(fields)
    callback.__dict__["home"] = home
    return callback


_CLASSES: dict[Any, Any] = {}


def _class_on(base: Any) -> Any:
    """Return the callback's class, made once: Lightning wants one that is derived from its own."""
    if base not in _CLASSES:
        _CLASSES[base] = type("PDQCallback", (Hooks, base), {"__doc__": Hooks.__doc__})
    return _CLASSES[base]


class Hooks:
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
        return _made, (self.home, {name: value for name, value in self.__dict__.items() if name != "home"})

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin anew, with a metric for each data loader."""
        self._begin(trainer.sanity_checking, trainer.num_sanity_val_batches, trainer.num_val_batches)

    def on_test_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin anew, with a metric for each data loader."""
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
            metric.sync()  # every process comes by here, also one without images
        self.results = [metric.result() for metric in self.metrics]
        if trainer.sanity_checking:
            return  # a few batches say nothing
        for loader, metric in enumerate(self.metrics):
            numbers = metric.compute()
            suffix = f"/dataloader_idx_{loader}" if len(self.metrics) > 1 else ""
            named = {f"{stage}_{name}{suffix}": numbers[name] for name in self.log_names}
            # All processes have the same numbers: nothing to reduce.
            pl_module.log_dict(named, prog_bar=self.prog_bar, sync_dist=False, add_dataloader_idx=False)

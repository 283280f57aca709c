"""`Evaluator`: evaluating a few images at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.evaluate import Progress, evaluate_tables, known_measures, without_auto
from probox.evaluation.merge import merge_evaluations
from probox.evaluation.result import Evaluation
from probox.options import Settings, resolve_settings, takes_settings
from probox.support.parallel import thread_count
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.table import check_classes, check_tables, expect

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Evaluator:
    """Evaluates a few images at a time, in any order, as in a training loop.

    Parameters
    ----------
    classes : sequence of str
        The truth's classes.
    convention, measures, threads
        As for `evaluate`.
    keep_labels : bool
        Keep the probabilities of all classes, 4 bytes per detection and class: what diagnoses and rules about labels
        need.
    **settings
        ``preset``, ``label_threshold`` and so on, as for `evaluate`.

    Examples
    --------
    >>> import probox
    >>> evaluator = probox.Evaluator(["cup"])
    >>> for image_id in (7, 3):
    ...     truth = probox.GroundTruth.from_boxes(["cup"], {image_id: (64, 48)}, [image_id], [[10, 20, 40, 40]], [0])
    ...     detections = probox.Detections(
    ...         classes=["cup"], image_ids=[image_id], boxes=[[10, 20, 40, 40]], label_probs=[[1]])
    ...     evaluator.update(truth, detections)
    >>> evaluator.result().pdq
    1.0
    """

    @takes_settings
    def __init__(
        self,
        classes: Sequence[str],
        *,
        convention: str | Convention | None = None,
        measures: str | Sequence[str] | None = None,
        threads: int | None = None,
        keep_labels: bool = True,
        **settings: Unpack[Settings],
    ) -> None:
        self.convention = resolve_settings(Evaluator, convention, settings, auto=True)
        self.classes = check_classes(classes)
        self.measures = known_measures(measures)
        self.threads = thread_count(threads)
        self.keep_labels = keep_labels
        self._parts: list[Evaluation] = []
        self._images: set[int] = set()

    def update(self, truth: GroundTruth, detections: Detections, *, progress: Progress | None = None) -> None:
        """Add images, their objects and detections; each image once.

        Parameters
        ----------
        truth : GroundTruth
            Some images with all their objects, of the evaluator's classes.
        detections : Detections
            Detections in these images; those in others are left out and counted.
        progress : callable, optional
            Called with the numbers of images done and in all.
        """
        check_tables(truth, detections, "update")
        if truth.classes != self.classes:
            raise InputError(
                "expected truth of the evaluator's classes", remedy="build all tables with the same classes"
            )
        convention = without_auto(self.convention)
        part = evaluate_tables(truth, detections, convention, self.measures, threads=self.threads, progress=progress)
        self._add(part if self.keep_labels else part.without_labels())

    def merge(self, other: Evaluator) -> None:
        """Add everything that another evaluator has seen, say one of another process."""
        expect(other, Evaluator, "other")
        for part in other._parts:
            self._add(part)

    def result(self) -> Evaluation:
        """Return the evaluation of everything so far: bit-identical to one call of `evaluate`."""
        if not self._parts:
            nothing = GroundTruth.from_boxes(self.classes, {}, [], np.zeros((0, 4)), [])
            none = Detections(
                classes=self.classes,
                image_ids=np.zeros(0, np.int64),
                boxes=np.zeros((0, 4)),
                label_probs=np.zeros((0, len(self.classes)), np.float32),
            )
            return evaluate_tables(nothing, none, without_auto(self.convention), self.measures)
        merged = merge_evaluations(self._parts)
        return merged.at_threshold("auto") if self.convention.label_threshold == "auto" else merged

    def _add(self, part: Evaluation) -> None:
        mine = without_auto(self.convention), self.classes, self.measures
        if (part.convention, part.classes, part.measures) != mine:
            raise InputError("evaluators of different conventions, classes or measures do not merge")
        for image_id in part.dataset.image_ids.tolist():
            if image_id in self._images:
                raise InputError("the image was added before", image=image_id, remedy="add each image once")
        self._images.update(part.dataset.image_ids.tolist())
        self._parts.append(part)

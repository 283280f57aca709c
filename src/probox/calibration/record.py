"""A fitted calibration: what it does to detections, and where it came from."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from probox.calibration.corners import CornerMap, calibrated, describe, left_as_they_are
from probox.calibration.labels import LabelMap, NoLabelMap, ScoreCurves, Temperature
from probox.calibration.words import count_of_classes
from probox.files.reading import Paths
from probox.support.words import some_names
from probox.tables.arguments import dataset_of, expect
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["TARGETS", "Calibration"]

TARGETS = ("pdq", "nll", "coverage")
"""What corners can be fitted for."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Calibration:
    """What `probox.calibration.fit` found, to be applied to detections of any images.

    >>> from probox.calibration import Calibration
    >>> from probox.calibration.corners import Scale
    >>> found = Detections(
    ...     classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 60]], label_probs=[[0.8]],
    ...     covariances=[[[[4, 1], [1, 4]], [[9, 0], [0, 9]]]])
    >>> Calibration(corners=Scale(2.0)).apply(found).covariances.tolist()
    [[[[16.0, 4.0], [4.0, 16.0]], [[36.0, 0.0], [0.0, 36.0]]]]

    Parameters
    ----------
    corners : CornerMap
        What happens to standard deviations: what `fit` found, or by hand ``Scale(2.0)`` or ``Constant(0.1)``, a share
        of the box's sides, of ``probox.calibration.corners``.
    labels : LabelMap
        What happens to label probabilities: what `fit` found, or by hand ``Temperature(1.5)`` of
        ``probox.calibration.labels``. Default: nothing.
    target : {"pdq", "nll", "coverage"}
        What the corners were fitted for.
    border : {"keep", "pin"}
        Edges at the image border: ``keep`` the calibrated std, or ``pin`` it as `probox.fusion.keep_inside` does.
    classes : tuple of (str, int)
        Names and category ids of the truth it was fitted on, so that COCO results can be read without it.
    origin : tuple of (str, str or int)
        What it was fitted on, for people.
    """

    corners: CornerMap
    labels: LabelMap = dataclasses.field(default_factory=NoLabelMap)
    target: str = "nll"
    border: str = "keep"
    classes: tuple[tuple[str, int], ...] = ()
    origin: tuple[tuple[str, str | int], ...] = ()

    def apply(self, detections: Detections, truth: GroundTruth | Dataset | None = None) -> Detections:
        """Return calibrated detections; what was left as it was is said in their notes.

        Parameters
        ----------
        detections : Detections
            Of any images.
        truth : GroundTruth or Dataset, optional
            Tells the sizes of the images, which ``border="pin"`` needs; nothing else is looked at.
        """
        expect(detections, Detections, "detections", "read them first with probox.read_detections(path, truth)")
        dataset = None if truth is None else dataset_of(truth, "the order is apply(detections, truth)")
        changed = self.labels.apply(calibrated(detections, self.corners, dataset if self.border == "pin" else None))
        return changed.replace(notes=(*detections.notes, *self.remarks(detections, sizes=dataset is not None)))

    def remarks(self, found: Detections, *, sizes: bool) -> tuple[str, ...]:
        """Return what `apply` leaves as it is, and which classes have no values of their own, one sentence each."""
        remarks: list[str] = []
        if self.border == "pin" and sizes:
            remarks.append('border="pin" limits the std of edges at the image border: for PDQ, not for a filter')
        elif self.border == "pin":
            remarks.append(
                'edges are not pinned, though border="pin" was fitted: the sizes of images are not known; '
                "give the ground truth of these images"
            )
        maps = int(found.has_heatmap.sum())
        if maps:
            remarks.append(f"{maps:,} of {len(found):,} detections are heatmaps: they stay as they are")
        plain = int(left_as_they_are(found, self.corners).sum()) - maps
        if plain:
            remarks.append(f"{plain:,} of {len(found):,} detections are plain boxes: no sigma to calibrate")
        used = [found.classes[label] for label in np.unique(found.labels).tolist()] if found.classes else []
        for what, mapping in (("corners", self.corners), ("labels", self.labels)):
            strange = [name for name in used if not mapping.knows(name)]
            if strange:
                use = f"{count_of_classes(len(strange))} {'uses' if len(strange) == 1 else 'use'}"
                remarks.append(f"{what}: {use} the values of all classes ({some_names(strange)})")
        return tuple(remarks)

    def __repr__(self) -> str:
        return f"Calibration({self.corners.method} for {self.target}, labels {self.labels.method})"

    def __str__(self) -> str:
        parts = [describe(self.corners)]
        if isinstance(self.labels, Temperature):
            parts.append(f"labels at temperature {self.labels.temperature:.3g}")
        elif isinstance(self.labels, ScoreCurves):
            n = len(self.labels.classes)
            own = f"a curve of {'its' if n == 1 else 'their'} own for {count_of_classes(n)}"
            parts.append(f"scores become precisions, by {own if n else 'one curve for all classes'}")
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return it as what JSON can hold; `from_json` gives it back."""
        from probox.calibration.storage import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, content: Any, *, file: str | None = None) -> Calibration:
        """Return the calibration that `to_json` wrote; each wrong entry is named, and `file` with it."""
        from probox.calibration.storage import from_json

        return from_json(content, file=file)

    def save(self, path: Paths) -> None:
        """Write a JSON file; one that is there is replaced if it holds a calibration."""
        from probox.calibration.storage import save

        save(self, path)

    @classmethod
    def load(cls, path: Paths) -> Calibration:
        """Read what `save` wrote."""
        from probox.calibration.storage import load

        return load(path)

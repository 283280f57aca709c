"""What an evaluation found: who matched whom, with which quality, and every number that follows from it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.notes import join_notes, notes_at_threshold
from probox.measures.boxes.matching import AREA_RANGES, SIZES, BoxMatches, match_columns
from probox.measures.boxes.mean_ap import AveragePrecision
from probox.measures.boxes.optimal_lrp import LRP
from probox.measures.pdq.assignment import assign
from probox.measures.pdq.pairs import QUALITIES, Pairs
from probox.tables.arguments import expect_path
from probox.tables.masks import Masks
from probox.tables.results import DetectionTable, ImageTable, ObjectTable, PairTable, Verdict

if TYPE_CHECKING:
    from probox.evaluation.oddities import Oddity
    from probox.plots.plots import Plots

__all__ = ["MEASURES", "Evaluation"]

MEASURES = ("pdq", "map", "lrp")
"""What can be measured."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """The result of `probox.evaluation.run`.

    `images`, `objects`, `detections` and `pairs` are tables with one row each; everything else is derived
    from them. Two evaluations of different images add up: ``a + b``.

    Parameters
    ----------
    convention : Convention
        What produced the numbers.
    classes : tuple of str
        The truth's classes.
    images, objects, detections, pairs : tables
        See `probox.tables.results`.
    masks : Masks
        The objects' pixels as they were scored.
    measures : tuple of str
        What `summary` holds: ``pdq``, ``map``, ``lrp``.
    inputs : tuple of str
        The files that were read, truth first.
    plain_notes : tuple of str
        What was left out or replaced, one sentence each; `notes` has these and what is odd about the input.
    version : str
        The probox that made it.
    """

    convention: Convention
    classes: tuple[str, ...]
    images: ImageTable
    objects: ObjectTable
    detections: DetectionTable
    pairs: PairTable
    masks: Masks
    measures: tuple[str, ...] = MEASURES
    inputs: tuple[str, ...] = ()
    plain_notes: tuple[str, ...] = ()
    version: str = ""

    # --- numbers ---

    @property
    def tp(self) -> int:
        """Return how many detections are matched with an object."""
        return int((self.detections.verdict == Verdict.TP).sum())

    @property
    def fp(self) -> int:
        """Return how many detections are matched with none."""
        return int((self.detections.verdict == Verdict.FP).sum())

    @property
    def fn(self) -> int:
        """Return how many objects are matched with no detection."""
        return int((self.objects.verdict == Verdict.FN).sum())

    @property
    def pdq(self) -> float:
        """Return PDQ: the sum of the matches' pPDQ over TP + FP + FN; NaN if there is nothing to score."""
        return _summarise(self.detections, self.objects, self.convention)["PDQ"]

    def summary(self) -> dict[str, float]:
        """Return what was asked for: PDQ, the averages over true positives, and the counts; mAP; moLRP."""
        summary: dict[str, float] = {}
        if "pdq" in self.measures:
            summary.update(_summarise(self.detections, self.objects, self.convention))
        if "map" in self.measures:
            precision = self.average_precision
            summary.update({"mAP": precision.map, "AP50": precision.ap50, "AP75": precision.ap75})
        if "lrp" in self.measures:
            lrp = self.lrp
            summary.update({"moLRP": lrp.molrp, "moLRP_loc": lrp.loc, "moLRP_fp": lrp.fp, "moLRP_fn": lrp.fn})
        return summary

    @cached_property
    def boxes(self) -> BoxMatches:
        """Return who matches whom by the overlap of boxes, as COCO matches: what mAP and LRP follow from."""
        found, there = self.detections, self.objects
        return match_columns(
            self.classes,
            self.images.id,
            detections=(
                np.searchsorted(self.images.id, found.image_id), found.class_index, found.box, found.size, found.score
            ),
            objects=(
                np.searchsorted(self.images.id, there.image_id), there.class_index, there.box, there.size, there.area,
                there.crowd,
            ),
        )  # fmt: skip

    @cached_property
    def average_precision(self) -> AveragePrecision:
        """Return COCO's average precision and recall of the same detections."""
        return AveragePrecision.from_matches(self.boxes)

    @cached_property
    def lrp(self) -> LRP:
        """Return localisation recall precision of the same detections, on the paper's grid of thresholds."""
        return LRP.from_matches(self.boxes)

    def per_class(self) -> dict[str, dict[str, float]]:
        """Return the summary of each class; a false positive belongs to the class that the detector names."""
        return {
            name: self._summary_of(self.detections.class_index == index, self.objects.class_index == index)
            for index, name in enumerate(self.classes)
        }

    def per_size(self) -> dict[str, dict[str, float]]:
        """Return the summary of small, medium and large objects; a false positive counts by its own box's area.

        The sizes are COCO's, both ends included: an object of exactly 32 x 32 pixels is small and medium.
        """
        width, height = self.detections.size.T
        sizes = {}
        for name, (low, high) in zip(SIZES[1:], AREA_RANGES[1:], strict=True):
            found = (width * height >= low) & (width * height <= high)
            there = (self.objects.area >= low) & (self.objects.area <= high)
            sizes[name] = self._summary_of(found, there)
        return sizes

    def per_image(self) -> dict[str, npt.NDArray[Any]]:
        """Return per image: id, PDQ, averages of the five qualities over its true positives, TP, FP and FN.

        Names mean what they mean in `summary`; an image without true positives has no averages (NaN), one without
        anything to score no PDQ. The qualities' sums, which add up over images, are under ``sum_pPDQ``,
        ``sum_spatial`` and so on.
        """
        hit = self.detections.verdict == Verdict.TP
        found = np.searchsorted(self.images.id, self.detections.image_id)
        there = np.searchsorted(self.images.id, self.objects.image_id)
        n = len(self.images)
        counts = {"TP": np.bincount(found[hit], minlength=n)}
        wrong = self.detections.verdict == Verdict.FP
        counts["FP"] = np.bincount(found[wrong], minlength=n)
        counts["FN"] = np.bincount(there[self.objects.verdict == Verdict.FN], minlength=n)
        sums = {name: np.bincount(found[hit], getattr(self.detections, name)[hit], n) for name in QUALITIES}
        cost = np.bincount(found[wrong], self.detections.cost[wrong], n) if self._by_confidence else counts["FP"]
        with np.errstate(invalid="ignore", divide="ignore"):
            columns: dict[str, npt.NDArray[Any]] = {
                "image_id": self.images.id,
                "PDQ": sums["pPDQ"] / (counts["TP"] + cost + counts["FN"]),
                **{name: sums[name] / counts["TP"] for name in QUALITIES},
            }
        return columns | counts | {f"sum_{name}": values for name, values in sums.items()}

    def at_threshold(self, threshold: float) -> Evaluation:
        """Return the evaluation of the detections whose highest label probability is greater than `threshold`.

        The same as evaluating anew with ``label_threshold=threshold``, without touching pixels. Detections that this
        evaluation left out cannot come back, so `threshold` must not be below its own.
        """
        own = self.convention.label_threshold
        if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number):
            raise InputError(f"expected threshold to be a number between 0 and 1, got {threshold!r:.40}")
        threshold = float(threshold)
        if own is not None and threshold < own:
            raise InputError(
                f"expected threshold to be at least {own:g}, since this evaluation left out all detections that are "
                f"not above {own:g}, but got {threshold:g}",
                remedy="evaluate with this label_threshold, or without one",
            )
        convention = self.convention.replace(label_threshold=threshold)
        kept = self.detections.confidence > np.float32(threshold)
        rows = np.flatnonzero(kept)
        renumbered = np.cumsum(kept) - 1
        pairs = self.pairs.take(np.flatnonzero(kept[self.pairs.detection]))
        pairs = pairs.replace(detection=renumbered[pairs.detection])
        thresholded = dataclasses.replace(
            self,
            convention=convention,
            detections=self.detections.take(rows),
            pairs=pairs,
            plain_notes=notes_at_threshold(self.plain_notes, len(kept) - len(rows), threshold),
        )
        return thresholded.rematched() if "pdq" in self.measures else thresholded

    def rematched(self) -> Evaluation:
        """Return the evaluation with matches, verdicts and qualities chosen anew from the pairs."""
        objects, detections = _judge(self.objects, self.detections, self.pairs, self.convention)
        return dataclasses.replace(self, objects=objects, detections=detections)

    @property
    def _by_confidence(self) -> bool:
        return self.convention.confidence_denominator

    def _summary_of(self, found: npt.NDArray[np.bool_], there: npt.NDArray[np.bool_]) -> dict[str, float]:
        """Return the summary of some objects: their matches, their misses, and the false positives in `found`."""
        matched = self.detections.partner >= 0
        chosen = np.where(matched, there[self.detections.partner] if len(there) else False, found)
        return _summarise(
            self.detections.take(np.flatnonzero(chosen)), self.objects.take(np.flatnonzero(there)), self.convention
        )

    @property
    def plot(self) -> Plots:
        """Return what plots it: ``result.plot.thresholds()`` and others, see `probox.plots.plots.Plots`."""
        from probox.plots.plots import Plots

        return Plots(self)

    # --- what is odd ---

    @cached_property
    def oddities(self) -> tuple[Oddity, ...]:
        """Return what makes the numbers low or meaningless, with the likely cause; nothing for sound input."""
        from probox.evaluation.oddities import oddities_of

        return tuple(oddities_of(self))

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what was left out or replaced, and what is odd about the input, one sentence each."""
        return (*self.plain_notes, *map(str, self.oddities))

    # --- together ---

    def __add__(self, other: Evaluation) -> Evaluation:
        return join_evaluations([self, other])

    def on(self, images: npt.ArrayLike) -> Evaluation:
        """Return the evaluation of these images alone, given by their ids.

        The same as evaluating anew with ``truth.select_images(images)``, without touching pixels.
        """
        from probox.evaluation.subset import evaluation_of_images

        return evaluation_of_images(self, images)

    def save(self, folder: str | Path) -> None:
        """Write everything into a folder; `Evaluation.load` brings it back equal to the last bit."""
        from probox.evaluation.storage import save_evaluation

        expect_path(folder, "folder", "name the folder to write to")
        save_evaluation(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Evaluation:
        """Return what `save` wrote."""
        from probox.evaluation.storage import load_evaluation

        expect_path(folder, "folder", "name a folder that Evaluation.save wrote")
        return load_evaluation(Path(folder))

    # --- words ---

    def __repr__(self) -> str:
        return (
            f"Evaluation(PDQ {self.pdq:.4f}, {len(self.images)} images, {len(self.objects)} objects, "
            f"{len(self.detections)} detections, {self.convention.name})"
        )

    def __str__(self) -> str:
        from probox.evaluation.text import summary_text

        text = summary_text([("", self.summary())], self.convention)
        odd = [f"warning: {oddity}" for oddity in self.oddities]
        return "\n".join([text, *odd, *(f"note: {note}" for note in self.plain_notes)])


def _summarise(detections: DetectionTable, objects: ObjectTable, convention: Convention) -> dict[str, float]:
    hit = detections.verdict == Verdict.TP
    wrong = detections.verdict == Verdict.FP
    tp, fp, fn = int(hit.sum()), int(wrong.sum()), int((objects.verdict == Verdict.FN).sum())
    # fsum is exact, so the order of rows cannot change a bit of the result.
    sums = {name: math.fsum(getattr(detections, name)[hit]) for name in QUALITIES}
    false = math.fsum(detections.cost[wrong].tolist()) if convention.confidence_denominator else fp
    counted = tp + false + fn
    summary = {"PDQ": sums["pPDQ"] / counted if counted else math.nan}
    summary.update({name: sums[name] / tp if tp else math.nan for name in QUALITIES})
    summary.update({"TP": tp, "FP": fp, "FN": fn})
    return summary


def _judge(
    objects: ObjectTable, detections: DetectionTable, pairs: PairTable, convention: Convention
) -> tuple[ObjectTable, DetectionTable]:
    """Return both tables with partners, verdicts and qualities that follow from the pairs."""
    qualities = np.stack([getattr(pairs, name) for name in QUALITIES], axis=1)
    matched = assign(
        detections.image_id[pairs.detection], Pairs(pairs.detection, pairs.object, qualities), convention.assignment
    )
    found, there, values = pairs.detection[matched], pairs.object[matched], qualities[matched]

    small_partner = objects.small[there]
    verdict_found = np.full(len(detections), Verdict.FP, np.uint8)
    verdict_found[found] = np.where(small_partner, Verdict.IGNORED, Verdict.TP)
    verdict_there = np.where(objects.small, Verdict.IGNORED, Verdict.FN).astype(np.uint8)
    verdict_there[there] = np.where(small_partner, Verdict.IGNORED, Verdict.TP)
    return (
        objects.replace(verdict=verdict_there, **_partners(len(objects), there, found, values)),
        detections.replace(verdict=verdict_found, **_partners(len(detections), found, there, values)),
    )


def _partners(
    n: int, rows: npt.NDArray[np.int64], partners: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
) -> dict[str, npt.NDArray[Any]]:
    """Return the partner and quality columns of a table of n rows, of which `rows` are matched."""
    partner = np.full(n, -1, np.int64)
    partner[rows] = partners
    columns: dict[str, npt.NDArray[Any]] = {"partner": partner}
    for column, name in enumerate(QUALITIES):
        columns[name] = np.full(n, 0.0 if name == "pPDQ" else np.nan)
        columns[name][rows] = values[:, column]
    return columns


def _in_order(image_ids: npt.NDArray[np.int64]) -> bool:
    return bool((image_ids[1:] > image_ids[:-1]).all())


def join_evaluations(parts: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of all images of all parts, whatever their order.

    Parts must agree in convention and classes and must not share an image.
    """
    first = parts[0]
    for part in parts[1:]:
        if part.convention != first.convention:
            raise InputError("evaluations of different conventions do not add up", remedy="evaluate both alike")
        if part.classes != first.classes or part.measures != first.measures:
            raise InputError("evaluations of different classes or measures do not add up", remedy="evaluate both alike")
    images = ImageTable.join([part.images for part in parts])
    order = np.argsort(images.id, kind="stable")
    ids = images.id[order]
    if np.any(ids[1:] == ids[:-1]):
        twice = int(ids[1:][ids[1:] == ids[:-1]][0])
        raise InputError("the image is in more than one part", image=twice, remedy="evaluate each image once")

    object_starts = np.cumsum([0] + [len(part.objects) for part in parts])
    detection_starts = np.cumsum([0] + [len(part.detections) for part in parts])
    objects = ObjectTable.join([part.objects for part in parts])
    detections = DetectionTable.join([part.detections for part in parts])
    pairs = PairTable.join([part.pairs for part in parts])
    counts = [len(part.pairs) for part in parts]
    of_object = pairs.object + np.repeat(object_starts[:-1], counts)
    of_detection = pairs.detection + np.repeat(detection_starts[:-1], counts)

    pairs = pairs.replace(object=of_object, detection=of_detection)
    masks = Masks.concatenate([part.masks for part in parts])
    if not _in_order(images.id):  # parts that follow each other, as those of a large file do, are left as they are
        object_order = np.argsort(objects.image_id, kind="stable")
        detection_order = np.argsort(detections.image_id, kind="stable")
        new_object, new_detection = np.argsort(object_order), np.argsort(detection_order)
        pair_order = np.argsort(objects.image_id[of_object], kind="stable")
        pairs = pairs.replace(object=new_object[of_object], detection=new_detection[of_detection]).take(pair_order)
        images, objects, detections = images.take(order), objects.take(object_order), detections.take(detection_order)
        masks = masks.take(object_order)
    joined = dataclasses.replace(
        first,
        images=images,
        objects=objects,
        detections=detections,
        pairs=pairs,
        masks=masks,
        inputs=tuple(dict.fromkeys(name for part in parts for name in part.inputs)),
        plain_notes=join_notes(part.plain_notes for part in parts),
    )
    return joined.rematched() if "pdq" in first.measures else joined

"""An evaluation without its tables: what its numbers follow from, in little memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.any_result import AnyResult
from probox.evaluation.grouped import (
    COUNTS,
    GroupTable,
    ImageTable,
    asked_columns,
    counts_per_image,
    image_table,
    with_measures,
)
from probox.evaluation.joining import first_image
from probox.evaluation.notes import join_notes, label_note
from probox.evaluation.oddities import Oddity
from probox.evaluation.oddities.clutter import CLUTTER, warn_of_clutter
from probox.evaluation.part import Part, part_of_all
from probox.evaluation.result import Evaluation
from probox.files.reading import Paths
from probox.measures.boxes.matching import SIZES, BoxMatches
from probox.measures.boxes.mean_ap import AveragePrecision
from probox.measures.boxes.optimal_lrp import LRP
from probox.measures.measure import Groups, Measure
from probox.measures.pdq.pdq_measure import PDQ
from probox.parts.box_columns import BoxColumns, joined_boxes
from probox.parts.keep import Keep, kept_measures
from probox.parts.totals import COUNTED, LEVELS, SUMMED, Total, Totals, totals_of
from probox.tables.arguments import expect_path
from probox.tables.columns import joined as joined_tables
from probox.tables.dataset import Dataset
from probox.tables.flat import named_once

__all__ = ["CompactEvaluation", "compacted", "join_compact"]

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class CompactEvaluation(AnyResult):
    """What `evaluate_part` returns with ``keep="matches"`` or ``"summary"``: numbers, and how they join.

    It has PDQ with its parts, for each class, size and image and above each of a hundred label thresholds, intervals,
    and of ``"matches"`` mAP and LRP too. Numbers are to the bit those of an `Evaluation`, which has the tables besides.

    Parameters
    ----------
    convention : Convention
        What produced the numbers.
    dataset : Dataset
        The truth's images, without their file names, and classes.
    keep : {"matches", "summary"}
        How much is kept.
    measures : tuple of str
        What `summary` holds.
    sums : dict of (I,) arrays
        What PDQ adds up in each image, and how many objects and detections there are.
    totals : Totals
        What PDQ adds up in all of them, without rounding.
    boxes : BoxColumns, optional
        What mAP and LRP follow from.
    inputs, plain_notes, version, part, scored_against
        As of `Evaluation`.
    warnings : tuple of Oddity
        What was odd about the first images that were looked at, of each part that was joined.
    """

    convention: Convention
    dataset: Dataset
    keep: Keep
    measures: tuple[str, ...]
    sums: dict[str, npt.NDArray[Any]]
    totals: Totals
    boxes: BoxColumns | None = None
    inputs: tuple[str, ...] = ()
    plain_notes: tuple[str, ...] = ()
    version: str = ""
    part: Part | None = None
    warnings: tuple[Oddity, ...] = ()
    scored_against: str | None = None

    # --- numbers ---

    @property
    def pdq(self) -> float:
        """Return PDQ; NaN if there is nothing to score, or it was not measured."""
        return self.totals.overall.summary(self.convention)["PDQ"]

    @property
    def counts(self) -> dict[str, int]:
        """Return how many images, objects and detections there are."""
        counted = self.totals.overall.counted()
        return {"images": len(self.dataset), "objects": counted["objects"], "detections": counted["detections"]}

    def summary_of(self, measure: Measure) -> dict[str, float]:
        """Return the numbers of one measure."""
        if measure is PDQ:
            return self.totals.overall.summary(self.convention)
        return measure.summary(self)

    def per_class(self) -> GroupTable:
        """Return the summary of each class, as `Evaluation.per_class` does."""
        names = named_once(self.classes)
        totals = dict(zip(names, self.totals.classes, strict=True))
        asked = dataclasses.replace(self, dataset=self.dataset.replace(classes=names))
        return GroupTable("class", asked._groups(totals, "per_class"), asked_columns(self.measures))

    def per_size(self) -> GroupTable:
        """Return the summary of small, medium and large objects, as `Evaluation.per_size` does."""
        totals = dict(zip(SIZES[1:], self.totals.sizes, strict=True))
        return GroupTable("size", self._groups(totals, "per_size"), asked_columns(self.measures))

    def _groups(self, totals: dict[str, Total], grouped: str) -> Groups:
        def summaries(measure: Measure) -> Any:
            if measure is PDQ:
                return lambda _: {name: total.summary(self.convention) for name, total in totals.items()}
            return getattr(measure, grouped)

        counts = {name: {key: total.counted()[key] for key in COUNTS} for name, total in totals.items()}
        return with_measures(self, {name: {**own} for name, own in counts.items()}, summaries)

    def per_image(self) -> ImageTable:
        """Return the numbers of each image alone, as `Evaluation.per_image` does."""
        counts = {name: self.sums[name].astype(np.int64) for name in COUNTS}
        return image_table(self, self.measures, counts)

    def threshold_curve(self) -> dict[str, Floats]:
        """Return PDQ, TP, FP and FN above each label threshold from 0 to 0.99; NaN where detections are gone.

        Each is to the bit what evaluating with this label threshold gives.
        """
        if not self.has_pairs:
            raise InputError("PDQ was not measured", remedy="evaluate with PDQ among the measures")
        return {"threshold": LEVELS.copy(), **self.totals.curve.columns(self.convention)}

    # --- what measures read ---

    @cached_property
    def average_precision(self) -> AveragePrecision:
        """Return COCO's average precision and recall."""
        return self._boxes().average_precision(self.classes)

    @cached_property
    def lrp(self) -> LRP:
        """Return localisation recall precision, on the paper's grid of thresholds."""
        return self._boxes().lrp(self.classes)

    @cached_property
    def box_matches(self) -> BoxMatches:
        """Return what became of detections and objects, about 80 bytes each: for intervals and single images."""
        return self._boxes().box_matches(self.classes)

    @property
    def object_images(self) -> npt.NDArray[np.int64]:
        """Return the row of each object's image."""
        return self._boxes().object_images()

    def known_of_objects(self) -> tuple[npt.NDArray[Any], dict[str, npt.NDArray[Any]]]:
        """Return how many objects each image has, and columns with what is known of them, by image."""
        if self.boxes is None:
            return self.sums["objects"], {}
        return self.boxes.object_counts, {"labels": self.boxes.object_labels, "sizes": self.boxes.object_sizes}

    @cached_property
    def image_sums(self) -> dict[str, Floats]:
        """Return what PDQ adds up, image by image."""
        sums = {name: self.sums[name].astype(np.float64) for name in (*SUMMED[:-1], *COUNTED[:3])}
        return sums | {"cost": self.sums["cost"] if self.convention.confidence_denominator else sums["FP"]}

    def _boxes(self) -> BoxColumns:
        if self.boxes is None:
            raise InputError("mAP and LRP were not kept", remedy='evaluate with keep="matches"')
        return self.boxes

    def _no_tables(self) -> NoReturn:
        raise InputError(f"the tables were not kept, but the {self.keep}", remedy='evaluate with keep="all"')

    @property
    def detections(self) -> Any:
        """Raise: there is no table of detections."""
        self._no_tables()

    @property
    def objects(self) -> Any:
        """Raise: there is no table of objects."""
        self._no_tables()

    @property
    def pairs(self) -> Any:
        """Raise: there is no table of pairs."""
        self._no_tables()

    @property
    def matched_pairs(self) -> Any:
        """Raise: there is no table of pairs."""
        self._no_tables()

    # --- together ---

    def __add__(self, other: CompactEvaluation) -> CompactEvaluation:
        if not isinstance(other, CompactEvaluation):
            return NotImplemented
        from probox.parts.joining import join

        return join([self, other], complete=False)  # type: ignore[return-value]

    def save(self, folder: Paths) -> None:
        """Write everything into a folder; `probox.load` brings it back equal to the last bit."""
        from probox.parts.storage import save_results

        expect_path(folder, "folder", "name the folder to write to")
        save_results({Path(folder): self})

    @classmethod
    def load(cls, folder: Paths) -> CompactEvaluation:
        """Return what `save` wrote."""
        from probox.parts.storage import load_compact

        expect_path(folder, "folder", "name a folder that CompactEvaluation.save wrote")
        return load_compact(Path(folder))

    def to_bytes(self) -> bytes:
        """Return everything as bytes, with a checksum: for queues and collectives, as `torch.distributed` has them."""
        from probox.parts.storage import compact_to_bytes

        return compact_to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> CompactEvaluation:
        """Return what `to_bytes` returned, equal to the last bit."""
        from probox.parts.storage import compact_from_bytes

        return compact_from_bytes(data)

    # --- words ---

    @property
    def oddities(self) -> tuple[Oddity, ...]:
        """Return what was odd about the first images that were looked at, and false positives that outweigh objects."""
        convention = self.convention
        if "pdq" not in self.measures or convention.label_threshold is not None or convention.confidence_denominator:
            return self.warnings
        curve, numbers = self.threshold_curve(), self.summary_of(PDQ)
        best = int(np.argmax(np.nan_to_num(curve["PDQ"])))
        real = int(numbers["TP"] + numbers["FN"])
        clutter = warn_of_clutter(numbers["PDQ"], numbers["FP"], real, float(LEVELS[best]), float(curve["PDQ"][best]))
        return (*self.warnings, *(clutter if real else ()))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what a reader of the numbers must know: nothing more than what notes say."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what was left out or replaced, and what is odd."""
        return (*self.plain_notes, *map(str, self.warnings))

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"CompactEvaluation(PDQ {self.pdq:.4f}, {counts['images']} images, {counts['objects']} objects, "
            f"{counts['detections']} detections, {self.convention.name}, {self.keep})"
        )

    def __str__(self) -> str:
        from probox.evaluation.text import summary_text

        text = summary_text([("", self.summary())], self.convention, against=self.scored_against)
        text += "" if self.part is None else f"; {self.part}"
        odd = [f"warning: {warning}" for warning in self.warnings]
        return "\n".join([text, *odd, *map(label_note, self.plain_notes)])


def compacted(evaluation: Evaluation, keep: Keep, *, look: bool = True) -> CompactEvaluation:
    """Return what is kept of an evaluation; `look` whether anything is odd about it, which takes its time."""
    measures = kept_measures(evaluation.measures, keep, asked=True)
    dataset = evaluation.dataset
    sums: dict[str, npt.NDArray[Any]] = {}
    counts = counts_per_image(evaluation.detections, evaluation.objects, len(dataset))
    for name, values in {**evaluation.image_sums, **counts}.items():
        whole = name in COUNTED
        sums[name] = values.astype(np.int32) if whole else values
    if not evaluation.convention.confidence_denominator:
        sums["cost"] = np.zeros(len(dataset))  # what false positives cost is how many there are
    boxes = None
    if any(name in measures for name in ("map", "lrp")):
        boxes = BoxColumns.of(evaluation.box_matches, evaluation.object_images)
    return CompactEvaluation(
        convention=evaluation.convention,
        dataset=dataset.replace(file_names=()),
        keep=keep,
        measures=measures,
        sums=sums,
        totals=totals_of(evaluation),
        boxes=boxes,
        inputs=evaluation.inputs,
        plain_notes=evaluation.plain_notes,
        version=evaluation.version,
        part=evaluation.part,
        warnings=tuple(odd for odd in evaluation.oddities if odd.kind != CLUTTER) if look else (),
        scored_against=evaluation.scored_against,
    )


def join_compact(parts: Sequence[CompactEvaluation]) -> CompactEvaluation:
    """Return the evaluation of all images of all parts, whatever their order; they agree and share no image."""
    # By images: what follows each other need not be put into another order.
    parts = sorted(parts, key=first_image)
    first = parts[0]
    ids = np.concatenate([part.dataset.image_ids for part in parts])
    order = np.argsort(ids, kind="stable")
    sums = {name: np.concatenate([part.sums[name] for part in parts])[order] for name in first.sums}
    totals = first.totals
    for part in parts[1:]:
        totals = totals + part.totals
    given = [part.boxes for part in parts if part.boxes is not None]
    records = [part.part for part in parts]
    return dataclasses.replace(
        first,
        dataset=joined_tables([part.dataset for part in parts], order),
        sums=sums,
        totals=totals,
        boxes=joined_boxes(given, order) if given else None,
        inputs=tuple(dict.fromkeys(name for part in parts for name in part.inputs)),
        plain_notes=join_notes([part.plain_notes for part in parts], of_one=first.part is not None),
        part=part_of_all(records),
        warnings=_said_once(odd for part in parts for odd in part.warnings),
        scored_against=max(
            (part.scored_against for part in parts if part.scored_against), default=None
        ),  # "masks" wins
    )


def _said_once(warnings: Iterable[Oddity]) -> tuple[Oddity, ...]:
    """Return the first warning of each kind: its numbers are those of the part that showed it."""
    first: dict[str, Oddity] = {}
    for odd in warnings:
        first.setdefault(odd.kind, odd)
    return tuple(first.values())

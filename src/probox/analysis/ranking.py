"""Rank images: by the uncertainty of their detections, or by the points they lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.input_checks import Columns, check_coverage
from probox.evaluation.result import Evaluation
from probox.measures.pdq.pdq_measure import pdq_per_image
from probox.notes import Note
from probox.support.types import Bools, Floats, Ints
from probox.tables.detections import Detections
from probox.tables.labels import background_classes, scores_alone
from probox.tables.table import Table, column, expect, frozen

LEAST_SIDE = 1.0
"""Pixels: a shorter side counts as so long, that a sliver of a box is not unsure without limit."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ranking(Table):
    """Images, those that a detector is least sure of first; equals by id, and last those with nothing to go by.

    Parameters
    ----------
    image_ids : (N,) int64
        The images.
    values : (N,) float64
        How unsure; NaN where no detection tells.
    detections : (N,) int64
        How many detections that is from.
    by, aggregate : str
        What was ranked by.
    notes : tuple of Note
        What was left out, a sentence each.
    """

    adopts: ClassVar[bool] = True

    image_ids: Ints = column(np.int64)
    values: Floats = column(np.float64)
    detections: Ints = column(np.int64)
    by: str = ""
    aggregate: str = ""
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        return f"Ranking({len(self)} images by {self.by}, {self.aggregate} over detections)"

    def top(self, n: int) -> Ranking:
        """Return the first `n` images."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise InputError(f"expected n to be a whole number, at least 0, but got {n!r:.40}")
        return self.take(np.arange(min(int(n), len(self))))


def rank(
    detections: Detections,
    by: str = "entropy",
    *,
    aggregate: str = "sum",
    label_threshold: float | None = None,
    image_ids: npt.ArrayLike | None = None,
) -> Ranking:
    """Rank images by how unsure a detector is of them, for who chooses what to annotate next; needs no truth.

    Parameters
    ----------
    detections : Detections
        What the detector says.
    by : {"entropy", "spread", "margin"}
        Entropy of a detection's labels in nats, what they leave of 1 being background; how far its edges spread (the
        mean of sigma over the side that an edge moves); or 1 - (p1 - p2) of the two most probable labels, background
        being one.
    aggregate : {"sum", "mean", "max"}
        Over the detections of an image. An image is annotated as a whole, and all detections in it that are unsure
        are settled at once: therefore the sum, unless one asks for another.
    label_threshold : float, optional
        Leave out detections whose highest label probability is not above it. Files often hold a hundred faint
        detections of each image, which add up.
    image_ids : sequence of int, optional
        The images to rank, with detections or without. Default: those with detections.

    Examples
    --------
    >>> found = Detections(
    ...     classes=["cup", "dog"], image_ids=[7, 8, 8], boxes=[[10, 20, 50, 60]] * 3,
    ...     label_probs=[[0.5, 0.5], [0.9, 0], [1, 0]])
    >>> ranking = rank(found, by="margin", image_ids=[6, 7, 8])
    >>> ranking.image_ids.tolist(), ranking.values.round(3).tolist()
    ([7, 8, 6], [1.0, 0.2, nan])
    """
    expect(detections, Detections, "detections", "read them first with probox.read_detections(path, truth)")
    _check_choice("by", by, UNCERTAINTIES)
    _check_choice("aggregate", aggregate, AGGREGATES)
    images = np.unique(detections.image_ids if image_ids is None else frozen(image_ids, np.int64, (-1,), "image_ids"))
    rows, notes = _choose_detections(detections, images, label_threshold, spread=by == "spread")
    chosen = detections.take(rows)
    alone = 0 if by == "spread" else int(_has_one_score(chosen).sum())
    if alone:
        notes.append(Note("background-of-scores", alone, total=len(chosen)))
    uncertainties = UNCERTAINTIES[by](chosen)
    of_image = np.searchsorted(images, chosen.image_ids)
    counts = np.bincount(of_image, minlength=len(images)).astype(np.int64)
    values = np.where(counts > 0, AGGREGATES[aggregate](uncertainties, of_image, counts), np.nan)
    order = np.lexsort((images, -np.nan_to_num(values), counts == 0))
    return Ranking(
        image_ids=images[order],
        values=values[order],
        detections=counts[order],
        by=by,
        aggregate=aggregate,
        notes=(*detections.notes, *notes),
    )


def _choose_detections(
    detections: Detections, images: Ints, threshold: float | None, *, spread: bool
) -> tuple[Ints, list[Note]]:
    """Return the rows of detections that count, and why the others do not."""
    n = len(detections)
    kept = np.isin(detections.image_ids, images)
    notes: list[Note] = []
    if not kept.all():
        notes.append(Note("other-images", n - int(kept.sum()), total=n))
    if threshold is not None:
        if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number) or not 0 <= threshold <= 1:
            raise InputError(f"expected label_threshold to be a number between 0 and 1, but got {threshold!r:.40}")
        kept &= detections.label_probs.max(axis=1, initial=0.0) > np.float32(threshold)
    if spread:
        sigmas = detections.covariances
        probabilistic = np.zeros(n, bool) if sigmas is None else sigmas.any(axis=(1, 2, 3))
        plain = int((kept & ~probabilistic).sum())
        if plain and plain == kept.sum():
            raise InputError(
                "all boxes are plain: they have no spread to rank by",
                file=detections.source or None,
                remedy="rank by entropy or margin",
            )
        if plain:
            notes.append(Note("no-spread", plain, total=int(kept.sum())))
        kept &= probabilistic
    return np.flatnonzero(kept), notes


def _check_choice(name: str, value: object, choices: dict[str, Callable[..., Floats]]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"expected {name} to be one of {', '.join(choices)}, but got {value!r:.40}")


def _distributions(found: Detections) -> Floats:
    """Return the probability of each class and, last, of background, which is whatever the others leave of 1."""
    classes = ~background_classes(found.classes)
    probs = found.label_probs[:, classes].astype(np.float64)
    alone = np.flatnonzero(_has_one_score(found))
    if len(alone):
        probs[alone] = 0.0
        probs[alone, np.cumsum(classes)[found.labels[alone]] - 1] = found.label_probs[alone, found.labels[alone]]
    rest = np.maximum(1.0 - probs.sum(axis=1, keepdims=True), 0.0)
    return np.concatenate([probs, rest], axis=1)


def _has_one_score(found: Detections) -> Bools:
    """Return which detections say a score and nothing else.

    With the rest spread over eighty classes a faint one would be the least sure of all, torn between them, where it
    says that nothing much is there.
    """
    return scores_alone(found.label_probs, found.labels, found.classes)


def compute_entropies(found: Detections) -> Floats:
    """Return the entropy of each detection's labels, background being one, in nats."""
    probs = _distributions(found)
    terms = probs * np.log(np.where(probs > 0, probs, 1.0))
    return np.asarray(np.abs(terms.sum(axis=1)))


def compute_margins(found: Detections) -> Floats:
    """Return 1 - (p1 - p2) of the two most probable labels of each detection, background being one."""
    probs = _distributions(found)
    if probs.shape[1] < 2:  # nothing but background
        return np.zeros(len(probs))
    two = np.partition(probs, -2, axis=1)[:, -2:]
    return np.asarray(1.0 - (two[:, 1] - two[:, 0]))


def compute_spreads(found: Detections) -> Floats:
    """Return how far the edges of each box spread: the mean of sigma / side, the width for x and the height for y."""
    if found.covariances is None:
        return np.zeros(len(found))
    sigmas = np.sqrt(np.diagonal(found.covariances, axis1=2, axis2=3))
    sides = np.maximum(found.boxes[:, 2:] - found.boxes[:, :2], LEAST_SIDE)
    return np.asarray((sigmas / sides[:, None, :]).mean(axis=(1, 2)))


def _sum(values: Floats, of_image: Ints, counts: Ints) -> Floats:
    return np.bincount(of_image, values, minlength=len(counts)).astype(np.float64)


def _mean(values: Floats, of_image: Ints, counts: Ints) -> Floats:
    return np.asarray(_sum(values, of_image, counts) / np.maximum(counts, 1))


def _max(values: Floats, of_image: Ints, counts: Ints) -> Floats:
    greatest = np.zeros(len(counts))
    np.maximum.at(greatest, of_image, values)
    return greatest


UNCERTAINTIES: dict[str, Callable[[Detections], Floats]] = {
    "entropy": compute_entropies,
    "spread": compute_spreads,
    "margin": compute_margins,
}
"""How unsure a detection is: what to rank by."""

AGGREGATES: dict[str, Callable[[Floats, Ints, Ints], Floats]] = {
    "sum": _sum,
    "mean": _mean,
    "max": _max,
}
"""From the detections of an image to the image; the first is the usual one."""

CHOICES = {
    "worst": "with most lost points",
    "best": "of highest PDQ",
    "false-positives": "with most false positives",
    "missed": "with most missed objects",
    "crowded": "with most objects and detections",
}
"""Ways to choose images, and what each goes by."""

_UNSEEN_TOO = "missed"
"""The choice that also has images that the detector did not see: all that is in them was missed."""

_LEAST_LOSS = 1e-9
"""Lost points up to this are rounding of sums."""


def find_seen_images(evaluation: Evaluation) -> Bools:
    """Return which images of the data set the detector saw, one bool each.

    An image without any detection is taken for one that the detector was not run on if there are many of them while
    the others have several each: the rule by which `evaluate` warns of it. Otherwise all were seen: a detector that is
    rarely sure leaves images empty, too.
    """
    seen = np.ones(len(evaluation.dataset), bool)
    if any(check_coverage(Columns.of_evaluation(evaluation))):
        seen = np.bincount(evaluation.detections.image_rows, minlength=len(seen)) > 0
    return seen


def compute_lost_points(evaluation: Evaluation) -> Floats:
    """Return the points of PDQ that each image lost: TP + FP + FN minus the sum of its pPDQ.

    Their sum over all images, divided by TP + FP + FN of all images, is 1 - PDQ (see `probox.analysis.loss_breakdown`).
    A false positive counts as its confidence where the convention says so.
    """
    sums = evaluation.image_sums
    return np.asarray(sums["TP"] + sums["cost"] + sums["FN"] - sums["pPDQ"])


def choose_images(evaluation: Evaluation, choice: str, n: int, *, seen: Bools | None = None) -> list[int]:
    """Return the ids of the `n` images that a choice puts first; ties go by id.

    Images that have none of what the choice goes by, such as lost points, are left out.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured.
    choice : str
        One of `CHOICES`.
    n : int
        How many images; fewer are returned if no others qualify.
    seen : (images,) bool, optional
        Images that the detector saw: others are no failures of it and are left out of every choice but ``missed``.
        Default: `find_seen_images`, of all detections that were evaluated.
    """
    if not evaluation.has_pairs:
        raise InputError(
            "PDQ was not measured, so no image is best or worst", remedy="evaluate with PDQ among the measures"
        )
    table, image_ids = pdq_per_image(evaluation), evaluation.dataset.image_ids
    key = {
        "worst": compute_lost_points(evaluation),
        "best": table["PDQ"],
        "false-positives": table["FP"],
        "missed": table["FN"],
        "crowded": 2 * table["TP"] + table["FP"] + table["FN"],
    }[choice]
    usable = ~np.isnan(key) if choice == "best" else key > _LEAST_LOSS
    if choice != _UNSEEN_TOO:
        usable &= find_seen_images(evaluation) if seen is None else seen
    rows = np.flatnonzero(usable)
    order = np.lexsort((image_ids[rows], -key[rows]))
    return [int(image_id) for image_id in image_ids[rows[order[:n]]]]


def find_images(evaluation: Evaluation, wanted: Sequence[str]) -> list[int]:
    """Return the ids of images given by id or by file name."""
    by_name = {
        name: int(i) for i, name in zip(evaluation.dataset.image_ids, evaluation.dataset.file_names, strict=True)
    }
    by_name.update({name.rsplit("/", 1)[-1]: image_id for name, image_id in list(by_name.items())})
    ids = set(evaluation.dataset.image_ids.tolist())
    found = []
    for text in wanted:
        image_id = int(text) if text.lstrip("-").isdigit() else by_name.get(text)
        if image_id is None or image_id not in ids:
            some = ", ".join(map(str, evaluation.dataset.image_ids[:3].tolist()))
            raise InputError(
                f"no image {text!r} in the evaluation", remedy=f"give an id such as {some}, or a file name"
            )
        found.append(image_id)
    return found

"""Ranking of images by predictive uncertainty, and choice of images by lost points."""

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
"""Minimum box side in pixels when std is divided by it, so that narrow boxes do not dominate."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ranking(Table):
    """Images by descending predictive uncertainty; ties by id, and images without detections last.

    Parameters
    ----------
    image_ids : (N,) int64
        Image ids.
    values : (N,) float64
        Uncertainty; NaN without detections.
    detections : (N,) int64
        Number of detections used.
    by, aggregate : str
        The criterion, and how detections were aggregated.
    notes : tuple of Note
        Excluded data.

    Examples
    --------
    >>> found = Detections(
    ...     classes=["cup", "dog"], image_ids=[7, 8], boxes=[[10, 20, 50, 60]] * 2, label_probs=[[0.9, 0], [0.5, 0.5]])
    >>> rank(found)
    Ranking(2 images by entropy, sum over detections)
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
        """Return the first `n` images.

        Parameters
        ----------
        n : int
            Maximum number of images.

        Returns
        -------
        Ranking
            The images with the highest uncertainty.

        Examples
        --------
        >>> found = Detections(
        ...     classes=["cup", "dog"], image_ids=[7, 8], boxes=[[10, 20, 50, 60]] * 2,
        ...     label_probs=[[0.9, 0], [0.5, 0.5]])
        >>> rank(found).top(1).image_ids.tolist()
        [8]
        """
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
    """Rank images by predictive uncertainty, for example to choose images to annotate next (active learning).

    Parameters
    ----------
    detections : Detections
        Detections; no ground truth is required.
    by : {"entropy", "spread", "margin"}
        ``entropy``: entropy of the label probabilities in nats, background included. ``spread``: mean of the std of
        edges over the box side along their axis. ``margin``: 1 - (p1 - p2) of the two most probable labels, background
        included.
    aggregate : {"sum", "mean", "max"}
        Aggregation over the detections of an image. The default is the sum, because an image is annotated as a whole.
    label_threshold : float, optional
        Exclude detections whose highest label probability is not above it. Files often hold a hundred low scores per
        image, which add up.
    image_ids : sequence of int, optional
        Images to rank, with or without detections. Default: those with detections.

    Returns
    -------
    Ranking
        Images by descending uncertainty.

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
    """Return the rows of the detections used, and notes on the others."""
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
        covariances = detections.covariances
        probabilistic = np.zeros(n, bool) if covariances is None else covariances.any(axis=(1, 2, 3))
        plain = int((kept & ~probabilistic).sum())
        if plain and plain == kept.sum():
            raise InputError(
                "no box has a covariance to rank by",
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


def _of_distributions(found: Detections, function: Callable[[Floats], Floats]) -> Floats:
    """Return a function of the probabilities of classes and, last, of background: 1 minus their sum."""

    def with_rest(matrix: npt.NDArray[np.float32], _: slice) -> Floats:
        probs = matrix.astype(np.float64)
        return function(np.concatenate([probs, np.maximum(1.0 - probs.sum(axis=1, keepdims=True), 0.0)], axis=1))

    single = found.label_probs.alone(found.labels, _has_one_score(found))
    return np.asarray(single[:, ~background_classes(found.classes)].of_rows(with_rest))


def _has_one_score(found: Detections) -> Bools:
    """Return which detections have a score only.

    Their remaining probability counts as background. Spread over all other classes, it would make low scores the most
    uncertain labels of all.
    """
    return scores_alone(found.label_probs, found.labels, found.classes)


def compute_entropies(found: Detections) -> Floats:
    """Return the entropy of each detection's label probabilities in nats, background included."""

    def entropies(probs: Floats) -> Floats:
        terms = probs * np.log(np.where(probs > 0, probs, 1.0))
        return np.asarray(np.abs(terms.sum(axis=1)))

    return _of_distributions(found, entropies)


def compute_margins(found: Detections) -> Floats:
    """Return 1 - (p1 - p2) of the two most probable labels of each detection, background included."""

    def margins(probs: Floats) -> Floats:
        if probs.shape[1] < 2:  # nothing but background
            return np.zeros(len(probs))
        two = np.partition(probs, -2, axis=1)[:, -2:]
        return np.asarray(1.0 - (two[:, 1] - two[:, 0]))

    return _of_distributions(found, margins)


def compute_spreads(found: Detections) -> Floats:
    """Return the mean of std / side over the edges of each box, with the width for x and the height for y."""
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
"""Uncertainty of a detection by criterion."""

AGGREGATES: dict[str, Callable[[Floats, Ints, Ints], Floats]] = {
    "sum": _sum,
    "mean": _mean,
    "max": _max,
}
"""Aggregation over the detections of an image; the first is the default."""

CHOICES = {
    "worst": ("most", "lost points"),
    "best": ("highest", "PDQ"),
    "false-positives": ("most", "false positives"),
    "missed": ("most", "missed objects"),
    "crowded": ("most", "objects and detections"),
}
"""Ways to choose images: those with the most, or highest, of a quantity."""

_UNSEEN_TOO = "missed"
"""The choice that includes images the detector was not run on: all of their objects are missed."""

_LEAST_LOSS = 1e-9
"""Lost points up to this are rounding errors."""


def find_seen_images(evaluation: Evaluation) -> Bools:
    """Return which images of the dataset the detector was run on.

    Images without detections count as not seen if there are many of them while other images have several detections,
    which is when `evaluate` warns about them. Otherwise all images count as seen, because few detections in general
    leave some images empty.
    """
    seen = np.ones(len(evaluation.dataset), bool)
    if any(check_coverage(Columns.of_evaluation(evaluation))):
        seen = np.bincount(evaluation.detections.image_rows, minlength=len(seen)) > 0
    return seen


def compute_lost_points(evaluation: Evaluation) -> Floats:
    """Return the lost points of each image: TP + FP + FN minus the sum of its pPDQ.

    Their sum over all images, divided by TP + FP + FN, is 1 - PDQ (see `probox.analysis.loss_breakdown`). A false
    positive counts as its confidence if the convention has ``confidence_denominator``.
    """
    sums = evaluation.image_sums
    return np.asarray(sums["TP"] + sums["cost"] + sums["FN"] - sums["pPDQ"])


def choose_images(evaluation: Evaluation, choice: str, n: int, *, seen: Bools | None = None) -> list[int]:
    """Return the ids of the first `n` images of a choice; ties go by id.

    Images with a criterion of 0, such as no lost points, are excluded.

    Parameters
    ----------
    evaluation : Evaluation
        Result to choose from.
    choice : str
        One of `CHOICES`.
    n : int
        Maximum number of images.
    seen : (images,) bool, optional
        Images that the detector was run on; others are excluded from every choice but ``missed``. Default:
        `find_seen_images` of all evaluated detections.
    """
    if not evaluation.has_pairs:
        raise InputError(
            "PDQ was not measured, so no image is best or worst", remedy="evaluate again with {option:measures=all}"
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

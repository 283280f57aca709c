"""From candidates to detections: suppression alone, or one of the ways to say how certain a box is."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.detect.cost import pair_scores
from probox.detect.families import Candidates, Labels
from probox.detect.images import Pixels, Placement
from probox.detect.runner import Described, Runner
from probox.errors import InputError
from probox.fusion.fuse import fuse_candidates, fuse_samples, survivors_of
from probox.fusion.gaussian import Border, Spread, apply_border, check_border, floor_std
from probox.tables.covariances import constant_covariances
from probox.tables.detections import Detections
from probox.tables.distributions import AboveOne, check_above_one, to_distribution
from probox.tables.labels import SUMS_TO_ONE

__all__ = [
    "RECIPES",
    "UNCERTAINTIES",
    "Found",
    "Look",
    "Options",
    "detect",
    "detections_from",
    "finish",
    "look",
]

Floats = npt.NDArray[np.float64]
Uncertainty = Literal["none", "constant", "nms-clusters", "mc-dropout", "edge-distribution", "flip-scale", "masks"]
UNCERTAINTIES: tuple[str, ...] = get_args(Uncertainty)
"""Where sigmas may come from, by the names of ``probox detect --uncertainty``."""
Recipe = Literal["probox", "paper"]
RECIPES: tuple[str, ...] = get_args(Recipe)

MAX_CANDIDATES = 3000
"""How many candidates of an image, the best, enter suppression: thousands at 0.01 change nothing but the time."""

SEVERAL_LOOKS = ("mc-dropout", "flip-scale")
"""Uncertainties that look at an image more than once."""

ZOOMS = (1.0, 0.9, 0.8)
"""Sizes at which ``flip-scale`` shows the image, each also mirrored: six samples."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What `detect` does with candidates.

    Parameters
    ----------
    uncertainty : str
        ``none``: suppression alone. ``constant``: the same boxes with one standard deviation for every corner, a share
        of the box's sides, the control of all others. ``nms-clusters``: each survivor with the candidates it
        suppresses. ``mc-dropout``: passes with random masks. ``edge-distribution``: the head's own variances.
        ``flip-scale``: mirrored and shrunk images as samples. ``masks``: the boxes of ``none`` with the head's own
        segmentation as a heatmap each, the probability of every pixel.
    relative_std : float
        For ``constant``: the corners' standard deviation as a share of the box's width and height.
    recipe : {"probox", "paper"}
        ``paper`` is what Hall et al. (2020) write and nothing else: covariances of the members alone, no prior, no
        least standard deviation, no ``border="pin"`` (a cluster of one is then a plain box, covariance 0); label
        distributions averaged over the members of a cluster of samples, not over all passes.
    passes : int
        Passes of ``mc-dropout``.
    score : float
        Keep detections whose score is above.
    nms_iou : float, optional
        IoU above which a candidate is suppressed. Default: the family's.
    labels : {"all", "best"}, optional
        Whether a box makes a detection for each class that scores above `score`, or for the best only. Default: the
        family's own practice.
    max_detections : int
        Detections kept of an image.
    sample_iou, min_members, absent_counts
        For samples, see `probox.fusion.fuse_samples`.
    cluster_iou : float
        For ``nms-clusters``, see `probox.fusion.fuse_candidates`.
    spread : Spread
        Covariances of small clusters; its `min_std` is also the least of an edge distribution.
    border : {"keep", "pin"}
        Edges at the image border: ``keep`` the estimated std, or ``pin`` it to half the distance to the border, which
        is PDQ-optimal and overconfident (`probox.fusion.keep_inside`). Boxes are clipped to the image either way.
    above_one : {"limit", "normalise", "refuse"}
        What happens to a box's label probabilities that add up to more than 1, as one sigmoid per class gives them: see
        `probox.Detections.from_scores`. Scores stay as they are.
    """

    uncertainty: Uncertainty = "none"
    relative_std: float = 0.07
    recipe: Recipe = "probox"
    passes: int = 20
    score: float = 0.05
    nms_iou: float | None = None
    labels: Labels | None = None
    max_detections: int = 100
    sample_iou: float = 0.7
    min_members: int = 1
    absent_counts: bool = True
    cluster_iou: float = 0.75
    spread: Spread = dataclasses.field(default_factory=Spread)
    border: Border = "keep"
    above_one: AboveOne = "limit"

    def __post_init__(self) -> None:
        if self.uncertainty not in UNCERTAINTIES:
            raise InputError(
                f"expected uncertainty to be one of {', '.join(UNCERTAINTIES)}, but got {self.uncertainty!r}"
            )
        if self.recipe not in RECIPES:
            raise InputError(f"expected recipe to be one of {', '.join(RECIPES)}, but got {self.recipe!r}")
        if not 0.0 < self.relative_std < float("inf"):
            raise InputError(f"expected relative_std above 0 and finite, but got {self.relative_std!r}")
        check_border(self.border)
        if self.as_published and (self.spread != Spread() or self.border != "keep"):
            raise InputError(
                'min_std, prior_std, shrinkage and border="pin" are no part of the paper\'s recipe',
                remedy='leave them out, or write recipe="probox"',
            )
        check_above_one(self.above_one)
        if self.passes < 1:
            raise InputError(f"expected at least 1 pass, but got {self.passes}")
        if not 0.0 <= self.score < 1.0:
            raise InputError(f"expected score between 0 and 1, but got {self.score!r}")

    @property
    def as_published(self) -> bool:
        """Whether nothing is added to what the paper describes."""
        return self.recipe == "paper"

    def nms_iou_of(self, family: Described) -> float:
        """Return the IoU of suppression: what was asked for, or the family's."""
        return family.nms_iou if self.nms_iou is None else self.nms_iou

    @property
    def fusing(self) -> dict[str, Any]:
        """Return the words of `Spread` that the recipe asks of the fusion."""
        spread = Spread(min_std=0.0, prior_std=0.0, shrinkage=0.0) if self.as_published else self.spread
        return dataclasses.asdict(spread)


def check_options(family: Described, options: Options) -> None:
    """Raise if a detector of this family can't do what the options ask."""
    if options.uncertainty == "edge-distribution" and not family.has_edges:
        raise InputError(
            f"{family.name} predicts no distribution of its edges",
            remedy="use constant or flip-scale"
            if family.suppresses
            else "use nms-clusters, mc-dropout, flip-scale or constant",
        )
    if options.uncertainty == "masks" and not getattr(family, "has_masks", False):
        raise InputError(f"{family.name} predicts no masks", remedy="use another uncertainty, or a model that segments")
    if options.uncertainty == "nms-clusters" and family.suppresses:
        raise InputError(
            f"the boxes of {family.name} are final: there are no suppressed candidates to cluster",
            remedy="use edge-distribution" if family.has_edges else "use constant or flip-scale",
        )


@dataclasses.dataclass(frozen=True)
class Look:
    """What a detector says of one image, in one pass or several."""

    passes: Sequence[Candidates]
    plain: Candidates | None = None
    """With masks: what it says without."""


@dataclasses.dataclass(frozen=True)
class Found:
    """The detections of one image."""

    detections: Detections
    plain_scores: npt.NDArray[np.float32] | None = None
    """With masks: the scores of the detections without, and of the same ones with masks: see `pair_scores`."""


def detect(detector: Runner, images: Sequence[Pixels], image_ids: Sequence[int], options: Options) -> list[Detections]:
    """Return the detections of each image, for images in memory; `detect_images` is for files.

    Parameters
    ----------
    detector : Runner
        A `Detector`, a model held in torch, or one's own.
    images : sequence of (H, W, 3) uint8 arrays
        RGB, each of its own size; `read_image` reads one.
    image_ids : sequence of int
        The id of each, which its detections get, and which random masks are drawn from.
    options : Options
        How detections are made.
    """
    check_options(detector.family, options)
    seen = look(detector, images, image_ids, options)
    return [
        finish(own, detector.family, (image.shape[1], image.shape[0]), image_id, options).detections
        for own, image, image_id in zip(seen, images, image_ids, strict=True)
    ]


def look(detector: Runner, images: Sequence[Pixels], image_ids: Sequence[int], options: Options) -> list[Look]:
    """Let a detector look at images, as often as the options ask: the part of `detect` that runs the network."""
    if options.uncertainty == "mc-dropout":
        seen: list[Look] = []
        for image, passes in zip(images, detector.sample(images, options.passes, image_ids), strict=True):
            plain: Candidates | None = getattr(passes, "plain", None)
            seen.append(Look(passes, detector.candidates([image])[0] if plain is None else plain))
        return seen
    if options.uncertainty == "flip-scale":
        return [Look(_flip_and_scale(detector, image)) for image in images]
    return [Look([candidates]) for candidates in detector.candidates(images)]


@np.errstate(all="ignore")  # candidates that are not finite are dropped
def finish(seen: Look, family: Described, size: tuple[int, int], image_id: int, options: Options) -> Found:
    """Return the detections of one image, of this width and height: the part of `detect` that needs no network."""
    if options.uncertainty not in SEVERAL_LOOKS:
        return Found(_from_candidates(seen.passes, family, size, image_id, options))
    found = _from_samples(seen.passes, family, size, image_id, options)
    if seen.plain is None:
        return Found(found)
    without, rows = _suppressed(seen.plain, family, size, options)
    return Found(found, pair_scores(without.boxes[rows], without.labels[rows], without.scores[rows], found))


def detections_from(
    candidates: Candidates, family: Described, size: tuple[int, int], image_id: int, options: Options
) -> Detections:
    """Return the detections of one image whose candidates are there; `size` is its width and height."""
    if options.uncertainty in SEVERAL_LOOKS:
        raise InputError(
            f"{options.uncertainty} looks at an image several times, but there is one set of candidates",
            remedy="use nms-clusters or edge-distribution",
        )
    check_options(family, options)
    return _from_candidates([candidates], family, size, image_id, options)


@dataclasses.dataclass(frozen=True)
class Hypotheses:
    """Candidates with one class each, best first: a box that speaks for several classes stands here several times.

    A row's label distribution leaves out the classes that outrank its own on the same box: they have rows themselves.
    """

    boxes: Floats
    whole: Floats
    """Boxes as they were before they were clipped to the image."""
    probs: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    scores: Floats
    rows: npt.NDArray[np.int64]
    """Which candidate each comes from."""


def hypotheses(
    candidates: Candidates, size: tuple[int, int], score: float, labels: str, limit: int = MAX_CANDIDATES
) -> Hypotheses:
    """Return candidates that score above `score`, boxes clipped to the image."""
    if candidates.labels is not None:
        columns = candidates.labels
        named = candidates.scores[np.arange(len(columns)), columns]
        wanted = named > score
        if labels == "best":
            wanted &= named >= candidates.scores.max(axis=1, initial=0.0)
        rows = np.flatnonzero(wanted)
        columns = columns[rows]
    elif labels == "all":
        rows, columns = np.nonzero(candidates.scores > score)
    else:
        best = candidates.scores.argmax(axis=1)
        rows = np.flatnonzero(candidates.scores[np.arange(len(best)), best] > score)
        columns = best[rows]
    found = candidates.scores[rows, columns].astype(np.float64)
    if len(found) > limit:  # sorting a hundred thousand takes longer than the network
        top = np.sort(np.argpartition(-found, limit)[:limit])
        rows, columns, found = rows[top], columns[top], found[top]
    whole = candidates.boxes[rows]
    boxes = np.clip(whole, 0.0, np.array(size * 2, np.float64))
    # NaN corners stay NaN and fail both comparisons.
    usable = np.isfinite(found) & (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    order = np.flatnonzero(usable)
    order = order[np.argsort(-found[order], kind="stable")]
    rows, columns, found = rows[order], columns[order], found[order]
    probs = np.clip(candidates.scores[rows], 0.0, 1.0)
    outranked = probs > probs[np.arange(len(rows)), columns][:, None]
    probs = np.where(outranked, np.float32(0), probs)
    return Hypotheses(boxes[order], whole[order], probs, columns, np.minimum(found, 1.0), rows)


def _suppressed(
    candidates: Candidates, family: Described, size: tuple[int, int], options: Options
) -> tuple[Hypotheses, Any]:
    """Return one pass's hypotheses and the rows that survive suppression, best first."""
    mode = options.labels or family.labels
    found = hypotheses(candidates, size, options.score, mode)
    if family.suppresses:
        return found, np.arange(len(found.boxes))[: options.max_detections]
    iou = options.nms_iou_of(family)
    boxes = found.boxes if family.clips_first else found.whole
    _, rows = survivors_of(boxes, found.scores, found.labels, iou, max_detections=options.max_detections)
    return found, rows


def _from_candidates(
    passes: Sequence[Candidates], family: Described, size: tuple[int, int], image_id: int, options: Options
) -> Detections:
    candidates = passes[0]
    if options.uncertainty == "nms-clusters":
        found = hypotheses(candidates, size, options.score, options.labels or family.labels)
        fused = fuse_candidates(
            found.boxes, _accepted(found.probs, options), labels=found.labels, classes=family.classes,
            image_id=image_id, image_size=size, border=options.border,
            nms_iou=options.nms_iou_of(family), cluster_iou=options.cluster_iou,
            max_detections=options.max_detections, **options.fusing,
        )  # fmt: skip
        return _normalised(fused, options)
    found, rows = _suppressed(candidates, family, size, options)
    boxes, covariances = found.boxes[rows], None
    heatmaps: tuple[Any, ...] | None = None
    if options.uncertainty == "edge-distribution":
        if candidates.covariances is None:
            raise InputError(
                f"{family.name} gave no distributions of its edges for this image", remedy="use another uncertainty"
            )
        covariances = candidates.covariances[found.rows[rows]]
        if not options.as_published:
            covariances = floor_std(covariances, options.spread.min_std)
    elif options.uncertainty == "constant":
        covariances = constant_covariances(boxes, options.relative_std, least_side=0.0)
    elif options.uncertainty == "masks":
        if candidates.heatmaps is None:
            raise InputError(f"{family.name} gave no masks for this image", remedy="use another uncertainty")
        heatmaps = tuple(candidates.heatmaps(found.rows[rows], boxes))
    if covariances is not None:
        boxes, covariances = apply_border(boxes, covariances, size, options.border)
    return Detections(
        classes=family.classes,
        image_ids=np.full(len(rows), image_id, np.int64),
        boxes=boxes,
        covariances=covariances,
        heatmaps=heatmaps,
        label_probs=to_distribution(_accepted(found.probs[rows], options), options.above_one),
        labels=found.labels[rows].astype(np.int32),
        scores=found.scores[rows],
    )


def _accepted(probs: npt.NDArray[np.float32], options: Options) -> npt.NDArray[np.float32]:
    """Return label probabilities; raise if they are no distribution and the options refuse that."""
    if options.above_one == "refuse" and len(probs):
        highest = float(probs.sum(axis=1, dtype=np.float64).max())
        if highest > 1.0 + SUMS_TO_ONE:
            raise InputError(
                f"label probabilities of a box add up to {highest:.6g}: one sigmoid per class is no distribution",
                remedy='write above_one="limit" to scale such rows down, or "normalise" for all rows',
            )
    return probs


def _normalised(fused: Detections, options: Options) -> Detections:
    """Return fused detections, every row of label probabilities divided by its sum if the options want that."""
    if options.above_one != "normalise":
        return fused
    return fused.replace(label_probs=to_distribution(fused.label_probs, options.above_one))


def _from_samples(
    passes: Sequence[Candidates], family: Described, size: tuple[int, int], image_id: int, options: Options
) -> Detections:
    boxes, probs = [], []
    for candidates in passes:
        found, rows = _suppressed(candidates, family, size, options)
        boxes.append(found.boxes[rows])
        probs.append(_accepted(found.probs[rows], options))
    fused = fuse_samples(
        boxes, probs, classes=family.classes, image_id=image_id,
        image_size=size, border=options.border, iou=options.sample_iou, min_members=options.min_members,
        absent_counts=options.absent_counts and not options.as_published, **options.fusing,
    )  # fmt: skip
    kept = fused.select(np.flatnonzero(fused.scores > options.score)[: options.max_detections])
    return _normalised(kept, options)


def _flip_and_scale(detector: Runner, image: Pixels) -> list[Candidates]:
    """Return candidates of the image mirrored and shrunk onto a grey ground, moved back onto the image."""
    height, width = image.shape[:2]
    views: list[Pixels] = []
    places: list[tuple[Placement, bool]] = []
    for zoom in ZOOMS:
        wide, high = round(width / zoom), round(height / zoom)
        left, top = (wide - width) // 2, (high - height) // 2
        canvas = np.full((high, wide, 3), 114, np.uint8)
        canvas[top : top + height, left : left + width] = image
        for mirrored in (False, True):
            views.append(np.ascontiguousarray(canvas[:, ::-1]) if mirrored else canvas)
            places.append((Placement((1.0, 1.0), (float(left), float(top)), (width, height)), mirrored))
    # No more at once than it asks for.
    chunks = [views[start : start + detector.batch] for start in range(0, len(views), detector.batch)]
    seen = [candidates for chunk in chunks for candidates in detector.candidates(chunk)]
    moved: list[Candidates] = []
    for candidates, (placement, mirrored), view in zip(seen, places, views, strict=True):
        boxes = candidates.boxes
        if mirrored:
            boxes = np.stack(
                [view.shape[1] - boxes[:, 2], boxes[:, 1], view.shape[1] - boxes[:, 0], boxes[:, 3]], axis=1
            )
        placed = placement.boxes_to_image(boxes)
        moved.append(dataclasses.replace(candidates, boxes=placed, covariances=None, heatmaps=None))
    return moved

"""Turn candidates into detections: suppression, and the methods that estimate box uncertainty."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.detect.candidates import Candidates, Described, Labels, Passes, Pixels, Placement, Runner
from probox.errors import InputError
from probox.fusion.fuse import fuse_candidates, fuse_samples, survivors_of
from probox.fusion.gaussian import Border, Spread, apply_border, check_border, floor_std
from probox.measures.boxes.box_definition import match_greedily, overlaps
from probox.notes import InputWarning, Note, as_notes
from probox.support.types import Floats, Ints
from probox.tables.detections import Detections
from probox.tables.geometry import constant_covariances
from probox.tables.labels import SUMS_TO_ONE, AboveOne, check_above_one, to_distribution

Uncertainty = Literal["none", "constant", "nms-clusters", "mc-dropout", "edge-distribution", "flip-scale", "masks"]
UNCERTAINTIES: tuple[str, ...] = get_args(Uncertainty)
"""Uncertainty methods, by the names of ``probox detect --uncertainty``."""
Recipe = Literal["probox", "paper"]
RECIPES: tuple[str, ...] = get_args(Recipe)
MAX_CANDIDATES = 3000
"""Limit of candidates per image before suppression, by score: low-scoring ones only cost time."""
SEVERAL_PASSES = ("mc-dropout", "flip-scale")
"""Uncertainty methods that run the network several times per image."""
ZOOMS = (1.0, 0.9, 0.8)
"""Image scales of ``flip-scale``, each also mirrored: six samples."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of `detect`: uncertainty method, suppression and covariances.

    Parameters
    ----------
    uncertainty : str
        ``none``: suppression only. ``constant``: a constant-variance baseline, with the std as a fraction of the box
        size. ``nms-clusters``: each survivor with the candidates it suppresses. ``mc-dropout``: passes with random
        masks. ``edge-distribution``: variances predicted by the head. ``flip-scale``: mirrored and downscaled images as
        samples. ``masks``: the boxes of ``none``, with the predicted segmentation as heatmap.
    relative_std : float
        For ``constant``: standard deviation of the corners, as a fraction of box width and height.
    recipe : {"probox", "paper"}
        ``paper`` implements Hall et al. (2020): sample covariances without prior, minimum std or ``border="pin"`` (a
        cluster of one has covariance 0), and label distributions averaged over the members of a cluster, not over all
        passes.
    passes : int
        Number of passes of ``mc-dropout``.
    score_threshold : float
        Minimum score; detections must exceed it.
    nms_iou : float, optional
        IoU threshold of NMS. Default: the family's.
    label_mode : {"all", "best"}, optional
        ``all``: a box makes a detection for each class that scores above `score_threshold`; ``best``: for the best
        class only. Default: that of the family.
    max_detections : int
        Maximum number of detections per image, by score.
    sample_iou, min_members, absent_counts
        For sampling methods, see `probox.fusion.fuse_samples`.
    cluster_iou : float
        For ``nms-clusters``, see `probox.fusion.fuse_candidates`.
    spread : Spread
        Estimation of covariances of small clusters; its `min_std` also applies to edge distributions.
    border : {"keep", "pin"}
        Edges at the image border: ``keep`` the estimated std, or ``pin`` it to half the distance to the border, which
        is PDQ-optimal and overconfident (`probox.fusion.keep_inside`). Boxes are clipped to the image either way.
    above_one : {"limit", "normalise", "refuse"}
        Treatment of label probabilities of a box that sum to more than 1, as with one sigmoid per class: see
        `probox.Detections.from_scores`. Scores are unchanged.

    Examples
    --------
    >>> Options(uncertainty="nms-clusters").score_threshold > 0
    True
    """

    uncertainty: Uncertainty = "none"
    relative_std: float = 0.07
    recipe: Recipe = "probox"
    passes: int = 20
    score_threshold: float = 0.05
    nms_iou: float | None = None
    label_mode: Labels | None = None
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
                "{option:min_std}, {option:prior_std}, {option:shrinkage} and {option:border=pin} do not apply to "
                "the paper's recipe",
                remedy="leave them out, or use {option:recipe=probox}",
            )
        check_above_one(self.above_one)
        if self.passes < 1:
            raise InputError(f"expected at least 1 pass, but got {self.passes}")
        if not 0.0 <= self.score_threshold < 1.0:
            raise InputError(f"expected score_threshold between 0 and 1, but got {self.score_threshold!r}")

    @property
    def as_published(self) -> bool:
        """Whether the paper's recipe is used without extensions."""
        return self.recipe == "paper"

    def nms_iou_of(self, family: Described) -> float:
        """Return the IoU threshold of NMS: the option, or the family's."""
        return family.nms_iou if self.nms_iou is None else self.nms_iou

    @property
    def fusing(self) -> dict[str, Any]:
        """Return the keywords of `Spread` that the recipe prescribes for fusion."""
        spread = Spread(min_std=0.0, prior_std=0.0, shrinkage=0.0) if self.as_published else self.spread
        return dataclasses.asdict(spread)


def check_options(family: Described, options: Options) -> None:
    """Raise if a detector of this family does not support the options."""
    if options.uncertainty == "edge-distribution" and not family.has_edges:
        raise InputError(
            f"{family.name} predicts no edge distributions",
            remedy="use constant or flip-scale"
            if family.suppresses
            else "use nms-clusters, mc-dropout, flip-scale or constant",
        )
    if options.uncertainty == "masks" and not family.has_masks:
        raise InputError(f"{family.name} predicts no masks", remedy="use another uncertainty, or a segmentation model")
    if options.uncertainty == "nms-clusters" and family.suppresses:
        raise InputError(
            f"the boxes of {family.name} are final: there are no suppressed candidates to cluster",
            remedy="use edge-distribution" if family.has_edges else "use constant or flip-scale",
        )


@dataclasses.dataclass(frozen=True)
class Found:
    """The detections of one image."""

    detections: Detections
    plain_scores: npt.NDArray[np.float32] | None = None
    """Scores (N, 2) without masks and with masks, see `pair_scores`; None without dropout."""


def detect(detector: Runner, images: Sequence[Pixels], image_ids: Sequence[int], options: Options) -> list[Detections]:
    """Return the detections of each image in memory; `detect_images` reads files.

    Parameters
    ----------
    detector : Runner
        A `Detector`, a torch detector, or a detector of the user.
    images : sequence of (H, W, 3) uint8 arrays
        RGB images, which may differ in size; `read_image` reads one.
    image_ids : sequence of int
        Image ids of the detections, which also seed the random masks.
    options : Options
        Uncertainty method and suppression.

    Returns
    -------
    list of Detections

    Examples
    --------
    >>> detector = Detector("yolox_nano.onnx")                                          # doctest: +SKIP
    >>> detections = detect(detector, [read_image("photo.jpg")], [1], Options())        # doctest: +SKIP
    """
    check_options(detector.family, options)
    seen = collect_passes(detector, images, image_ids, options)
    return [
        make_detections(own, detector.family, (image.shape[1], image.shape[0]), image_id, options).detections
        for own, image, image_id in zip(seen, images, image_ids, strict=True)
    ]


def collect_passes(
    detector: Runner, images: Sequence[Pixels], image_ids: Sequence[int], options: Options
) -> list[Passes]:
    """Run a detector on images, in as many passes as the options require: the part of `detect` with the network."""
    if options.uncertainty == "mc-dropout":
        sampled = detector.sample(images, options.passes, image_ids)
        plain = [getattr(passes, "plain", None) for passes in sampled]
        return [
            Passes(passes, detector.candidates([image])[0] if own is None else own)
            for image, passes, own in zip(images, sampled, plain, strict=True)
        ]
    if options.uncertainty == "flip-scale":
        return [Passes(_flip_and_scale(detector, image)) for image in images]
    return [Passes([candidates]) for candidates in detector.candidates(images)]


@np.errstate(all="ignore")  # non-finite candidates are dropped
def make_detections(passes: Passes, family: Described, size: tuple[int, int], image_id: int, options: Options) -> Found:
    """Return the detections of one image of `size` (width, height): the part of `detect` without the network."""
    if options.uncertainty not in SEVERAL_PASSES:
        return Found(_from_candidates(passes[0], family, size, image_id, options))
    found = _from_samples(passes, family, size, image_id, options)
    if passes.plain is None:
        return Found(found)
    boxes, probs, labels, _ = _suppress(passes.plain, family, size, options)
    return Found(found, pair_scores(boxes, labels, _scores_of(probs, labels).astype(np.float64), found))


def detections_from(
    candidates: Candidates, family: Described, size: tuple[int, int], image_id: int, options: Options
) -> Detections:
    """Return the detections of one image from its candidates; `size` is its width and height."""
    if options.uncertainty in SEVERAL_PASSES:
        raise InputError(
            f"{options.uncertainty} needs several passes, but got one set of candidates",
            remedy="use nms-clusters or edge-distribution",
        )
    check_options(family, options)
    return _from_candidates(candidates, family, size, image_id, options)


def choose_candidates(
    candidates: Candidates, size: tuple[int, int], score_threshold: float, label_mode: str, limit: int = MAX_CANDIDATES
) -> tuple[Ints, Ints]:
    """Return rows of candidates above a score threshold inside the image, and a class for each, best first.

    A box with several classes above the threshold occurs once per class.
    """
    if candidates.labels is not None:
        columns = candidates.labels
        named = candidates.scores[np.arange(len(columns)), columns]
        wanted = named > score_threshold
        if label_mode == "best":
            wanted &= named >= candidates.scores.max(axis=1, initial=0.0)
        rows = np.flatnonzero(wanted)
        columns = columns[rows]
    elif label_mode == "all":
        rows, columns = np.nonzero(candidates.scores > score_threshold)
    else:
        best = candidates.scores.argmax(axis=1)
        rows = np.flatnonzero(candidates.scores[np.arange(len(best)), best] > score_threshold)
        columns = best[rows]
    scores = candidates.scores[rows, columns].astype(np.float64)
    if len(scores) > limit:  # sorting a hundred thousand would take longer than the network
        top = np.sort(np.argpartition(-scores, limit)[:limit])
        rows, columns, scores = rows[top], columns[top], scores[top]
    boxes = clip_boxes(candidates.boxes[rows], size)
    # NaN corners remain NaN and fail both comparisons.
    usable = np.isfinite(scores) & (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    order = np.flatnonzero(usable)
    order = order[np.argsort(-scores[order], kind="stable")]
    return rows[order], columns[order]


def clip_boxes(boxes: Floats, size: tuple[int, int]) -> Floats:
    """Return boxes clipped to an image of (width, height)."""
    return np.clip(boxes, 0.0, np.array(size * 2, np.float64))


def label_probs_of(candidates: Candidates, rows: Ints, labels: Ints) -> npt.NDArray[np.float32]:
    """Return a label distribution per row, without classes that score higher: these have rows of their own."""
    probs = np.clip(candidates.scores[rows], 0.0, 1.0)
    outranked = probs > _scores_of(probs, labels)[:, None]
    return np.where(outranked, np.float32(0), probs)


def _scores_of(probs: npt.NDArray[np.float32], labels: Ints) -> npt.NDArray[np.float32]:
    return probs[np.arange(len(labels)), labels]


def _suppress(
    candidates: Candidates, family: Described, size: tuple[int, int], options: Options
) -> tuple[Floats, npt.NDArray[np.float32], Ints, Ints]:
    """Return boxes inside the image, label probabilities, labels and rows of the survivors of NMS, best first."""
    rows, labels = choose_candidates(candidates, size, options.score_threshold, options.label_mode or family.labels)
    if family.suppresses:
        kept = np.arange(len(rows))[: options.max_detections]
    else:
        boxes = candidates.boxes[rows]
        boxes = clip_boxes(boxes, size) if family.clips_first else boxes
        scores = np.minimum(candidates.scores[rows, labels].astype(np.float64), 1.0)
        iou = options.nms_iou_of(family)
        _, kept = survivors_of(boxes, scores, labels, iou, max_detections=options.max_detections)
    rows, labels = rows[kept], labels[kept]
    return clip_boxes(candidates.boxes[rows], size), label_probs_of(candidates, rows, labels), labels, rows


def _from_candidates(
    candidates: Candidates, family: Described, size: tuple[int, int], image_id: int, options: Options
) -> Detections:
    if options.uncertainty == "nms-clusters":
        rows, labels = choose_candidates(candidates, size, options.score_threshold, options.label_mode or family.labels)
        fused = fuse_candidates(
            clip_boxes(candidates.boxes[rows], size), _check_sums(label_probs_of(candidates, rows, labels), options),
            labels=labels, classes=family.classes, image_id=image_id, image_size=size, border=options.border,
            nms_iou=options.nms_iou_of(family), cluster_iou=options.cluster_iou,
            max_detections=options.max_detections, **options.fusing,
        )  # fmt: skip
        return _normalise(fused, options)
    boxes, probs, labels, rows = _suppress(candidates, family, size, options)
    scores = _scores_of(probs, labels).astype(np.float64)
    covariances: Floats | None = None
    heatmaps: tuple[Any, ...] | None = None
    if options.uncertainty == "edge-distribution":
        if candidates.covariances is None:
            raise InputError(
                f"{family.name} returned no edge distributions for this image", remedy="use another uncertainty"
            )
        covariances = candidates.covariances[rows]
        if not options.as_published:
            covariances = floor_std(covariances, options.spread.min_std)
    elif options.uncertainty == "constant":
        covariances = constant_covariances(boxes, options.relative_std, least_side=0.0)
    elif options.uncertainty == "masks":
        if candidates.heatmaps is None:
            raise InputError(f"{family.name} returned no masks for this image", remedy="use another uncertainty")
        heatmaps = tuple(candidates.heatmaps(rows, boxes))
    if covariances is not None:
        boxes, covariances = apply_border(boxes, covariances, size, options.border)
    return Detections(
        classes=family.classes,
        image_ids=np.full(len(rows), image_id, np.int64),
        boxes=boxes,
        covariances=covariances,
        heatmaps=heatmaps,
        label_probs=to_distribution(_check_sums(probs, options), options.above_one),
        labels=labels.astype(np.int32),
        scores=scores,
    )


def _check_sums(probs: npt.NDArray[np.float32], options: Options) -> npt.NDArray[np.float32]:
    """Return label probabilities; raise if a row sums to more than 1 and the options refuse that."""
    if options.above_one == "refuse" and len(probs):
        highest = float(probs.sum(axis=1, dtype=np.float64).max())
        if highest > 1.0 + SUMS_TO_ONE:
            raise InputError(
                f"label probabilities of a box add up to {highest:.6g}: expected at most 1, as from a softmax",
                remedy='write above_one="limit" to scale such rows down, or "normalise" for all rows',
            )
    return probs


def _normalise(fused: Detections, options: Options) -> Detections:
    """Return fused detections; with ``normalise``, each row of label probabilities is divided by its sum."""
    if options.above_one != "normalise":
        return fused
    return fused.replace(label_probs=to_distribution(fused.label_probs, options.above_one))


def _from_samples(
    passes: Sequence[Candidates], family: Described, size: tuple[int, int], image_id: int, options: Options
) -> Detections:
    boxes, probs = [], []
    for candidates in passes:
        own_boxes, own_probs, *_ = _suppress(candidates, family, size, options)
        boxes.append(own_boxes)
        probs.append(_check_sums(own_probs, options))
    fused = fuse_samples(
        boxes, probs, classes=family.classes, image_id=image_id,
        image_size=size, border=options.border, iou=options.sample_iou, min_members=options.min_members,
        absent_counts=options.absent_counts and not options.as_published, **options.fusing,
    )  # fmt: skip
    kept = fused.select(np.flatnonzero(fused.scores > options.score_threshold)[: options.max_detections])
    return _normalise(kept, options)


def _flip_and_scale(detector: Runner, image: Pixels) -> list[Candidates]:
    """Return candidates of the image mirrored and downscaled on grey, mapped back to the image."""
    height, width = image.shape[:2]
    views: list[tuple[Pixels, Placement, bool]] = []
    for zoom in ZOOMS:
        wide, high = round(width / zoom), round(height / zoom)
        left, top = (wide - width) // 2, (high - height) // 2
        canvas = np.full((high, wide, 3), 114, np.uint8)
        canvas[top : top + height, left : left + width] = image
        placement = Placement((1.0, 1.0), (float(left), float(top)), (width, height))
        views += [(canvas, placement, False), (np.ascontiguousarray(canvas[:, ::-1]), placement, True)]
    moved: list[Candidates] = []
    for start in range(0, len(views), detector.batch):  # at most the detector's batch size at once
        batch = views[start : start + detector.batch]
        seen = detector.candidates([view for view, _, _ in batch])
        for candidates, (view, placement, mirrored) in zip(seen, batch, strict=True):
            boxes = candidates.boxes
            if mirrored:
                wide = view.shape[1]
                boxes = np.stack([wide - boxes[:, 2], boxes[:, 1], wide - boxes[:, 0], boxes[:, 3]], axis=1)
            placed = placement.boxes_to_image(boxes)
            moved.append(dataclasses.replace(candidates, boxes=placed, covariances=None, heatmaps=None))
    return moved


LEVEL = 0.5
"""Score threshold of the counted detections."""
SAME_IOU = 0.5
"""Minimum IoU of two detections of one class to be matched."""
LARGE = 0.3
"""Fraction of the detections above the threshold that may disappear, or appear, without a warning."""


@dataclasses.dataclass(frozen=True)
class MaskCost:
    """Number and mean score of detections above a threshold, without and with dropout masks."""

    level: float
    plain: int
    masked: int
    remain: int
    """Detections above the threshold in both; the others of `plain` disappear, the others of `masked` appear."""
    plain_mean: float
    masked_mean: float

    @property
    def disappear(self) -> int:
        """Return the number of detections above the threshold without masks only."""
        return self.plain - self.remain

    @property
    def appear(self) -> int:
        """Return the number of detections above the threshold with masks only."""
        return self.masked - self.remain

    @property
    def large(self) -> bool:
        """Return whether masks remove or add a large fraction of the detections."""
        return self.plain > 0 and max(self.disappear, self.appear) > LARGE * self.plain

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return notes on both directions, and a warning if a change is large."""
        which = f"detections above {self.level:g}" if self.level else "detections"
        if not self.plain:
            return as_notes([f"without masks there are no {which}, with masks {self.masked:,}"])
        means = f", with masks {self.masked_mean:.2f}" if self.masked else ""
        false = ", which may be false positives" if self.appear else ""
        text = (
            f"with random masks, {self.remain:,} of {self.plain:,} {which} remain, {self.disappear:,} disappear and "
            f"{self.appear:,} appear{false}. Mean score without masks {self.plain_mean:.2f}{means}."
        )
        said = as_notes([text])
        if not self.large:
            return said
        removed, added = self.disappear / self.plain, self.appear / self.plain
        return (*said, InputWarning("masks-costly", removed=removed, added=added, which=which))

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name; the mean of an empty set is None."""
        numbers = dataclasses.asdict(self)
        named = {name: None if value != value else value for name, value in numbers.items()}
        return named | {"disappear": self.disappear, "appear": self.appear, "large": self.large}


def pair_scores(
    boxes: Floats,
    labels: npt.NDArray[np.integer[Any]],
    scores: Floats,
    masked: Detections,
) -> npt.NDArray[np.float32]:
    """Return the score (N, 2) of each detection without masks, and of its match with masks, 0 if unmatched.

    Matches have one class and an IoU of at least 0.5. Each detection with masks, in order of score, is matched to the
    remaining detection without masks of highest IoU.
    """
    order = np.argsort(-masked.scores, kind="stable")
    with_masks, without = (
        np.concatenate([own[:, :2], own[:, 2:] - own[:, :2]], axis=1) for own in (masked.boxes[order], boxes)
    )
    nothing = np.zeros(len(boxes), bool)
    ious = overlaps(with_masks, without, nothing) * (masked.labels[order][:, None] == labels)
    match = match_greedily(ious, SAME_IOU, nothing, nothing)
    pairs = np.stack([scores, np.zeros(len(scores))], axis=1).astype(np.float32)
    pairs[match[match >= 0], 1] = masked.scores[order][match >= 0]
    return pairs


def mask_cost(masked: npt.ArrayLike, plain: npt.ArrayLike) -> MaskCost:
    """Return the effect of masks on scores, from all scores with masks and the pairs of `pair_scores`.

    Detections above 0.5 are counted; all are counted if no detection without masks scores above 0.5.

    >>> cost = mask_cost([0.9, 0.6, 0.4], [[0.9, 0.9], [0.8, 0.4], [0.7, 0.0], [0.3, 0.6]])
    >>> cost.remain, cost.disappear, cost.appear
    (1, 2, 1)
    """
    scores, pairs = np.asarray(masked, np.float64), np.asarray(plain, np.float64).reshape(-1, 2)
    level = LEVEL if (pairs[:, 0] > LEVEL).any() else 0.0
    before, after = pairs[pairs[:, 0] > level], scores[scores > level]
    return MaskCost(
        level=level,
        plain=len(before),
        masked=len(after),
        remain=int((before[:, 1] > level).sum()),
        plain_mean=float(before[:, 0].mean()) if len(before) else float("nan"),
        masked_mean=float(after.mean()) if len(after) else float("nan"),
    )

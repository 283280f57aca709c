"""PDQ as a metric of a training loop: torchvision's dictionaries in, numbers out, in any number of processes."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probox.adapters.dictionaries import (
    LabelNaming,
    Target,
    expect_entries,
    image_id_of,
    read_found,
    read_target,
    split_background,
    truth_of,
)
from probox.adapters.image_masks import check_size
from probox.adapters.image_rows import ImageRows, check_order, of_image, stack_rows
from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.evaluate import evaluate
from probox.evaluation.result import Evaluation
from probox.notes import Note
from probox.options import Settings, resolve_settings, takes_settings
from probox.tables.dataset import Dataset
from probox.tables.geometry import BoxFormat, check_box_format, extents_of
from probox.tables.labels import AboveOne, check_above_one

if TYPE_CHECKING:
    from typing_extensions import Unpack

REACH = 8.0
"""Standard deviations beyond which a corner's Gaussian does not affect any metric."""
FAR = 2000.0
"""Largest margin in pixels that a Gaussian adds to an image of unknown size."""
LARGEST = 1 << 30
"""Largest side of an image of unknown size."""
MANY = 5
"""Least number of predictions that are all within 0 and 1 to be taken for fractions of the image size."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageState:
    """One image: its objects and its detections."""

    target: Target
    found: ImageRows

    @property
    def image_id(self) -> int | None:
        return self.target.image_id

    @property
    def size(self) -> tuple[int, int] | None:
        """Return width and height of the image, as the target states or as its masks have; None if unknown."""
        masks = self.found.masks
        return self.target.size or (None if masks is None else masks.size)


def naming_of(classes: Any, first_label: Any) -> LabelNaming:
    """Return a metric's naming of labels: from 0, unless background comes first or `first_label` is 1."""
    names, background = (None, None) if classes is None else split_background(classes)
    if first_label not in (None, 0, 1):
        raise InputError(f"expected first_label to be 0 or 1, but got {first_label!r:.40}")
    if first_label and background == "first":
        raise InputError(
            f"classes begin with {classes[0]!r}, so labels count from it and its number is 0",
            remedy="omit first_label, or remove the background",
        )
    plain = not first_label and background is None
    return LabelNaming(
        names=names,
        first_label=1 if first_label or background == "first" else 0,
        background=background,
        zero="leave out first_label=1 if labels count from 0" if first_label else "leave background out",
        next_beyond="if they begin at 1, as torchvision's do, give first_label=1" if plain else None,
    )


def bounding_size(seen: ImageState, least_variance: float) -> tuple[int, int]:
    """Return a width and height that contain an image's boxes and their Gaussians."""
    far = np.ones(2)
    if len(seen.target.boxes):
        far = np.maximum(far, seen.target.boxes[:, 2:].max(axis=0))
    rows = seen.found
    if len(rows.boxes):
        # Variances of x and y of both corners: the top-left corner's Gaussian may reach farther than the other's.
        var = np.full((len(rows.boxes), 2, 2), least_variance)
        if rows.covariances is not None:
            var = np.maximum(var, np.diagonal(rows.covariances, axis1=2, axis2=3))
        corners = rows.boxes.reshape(-1, 2, 2)
        with np.errstate(invalid="ignore", over="ignore"):  # tables reject NaN and infinity with a better message
            reach = corners + np.minimum(REACH * np.sqrt(np.maximum(var, 0.0)), FAR)
        far = np.maximum(far, np.nan_to_num(reach.max(axis=(0, 1)), posinf=LARGEST))
    wide, high = np.minimum(np.ceil(far) + 2, LARGEST).astype(np.int64).tolist()
    return wide, high


ENOUGH = 20
"""Least number of detections in a batch to check the order of classes in label_probs."""
Gather = Callable[[list[ImageState]], Sequence[list[ImageState]]]


class PDQ:
    """PDQ, mAP and moLRP of batches, with the interface of torchmetrics.

    Parameters
    ----------
    classes : sequence of str, optional
        Class names, indexed by labels. If the first is a background (``"background"``, ``"__background__"``), labels of
        objects begin at 1. Default: as many classes as `label_probs` have columns, or up to the highest label; `result`
        then has a note, because label quality depends on the number of classes that divide the rest of a score.
    box_format : {"xyxy", "xywh", "cxcywh"}
        Format of boxes in predictions and targets, in pixels.
    image_size : (width, height), optional
        Size of all images that do not state their own. Default: each image is assumed to contain all of its boxes.
        This only affects boxes at the right or lower border, and adds a note.
    first_label : {0, 1}, optional
        Label of the first class; torchvision's labels begin at 1, with 0 for the background. Default: 0.
    covariance_format : {"xyxy", "xywh", "cxcywh"}, optional
        The four numbers to which 4 x 4 covariances refer; required if boxes are not ``xyxy``.
    above_one : {"limit", "normalise", "refuse"}
        Treatment of rows of `label_probs` that sum to more than 1, see `probox.Detections.from_scores`.
    convention, measures, threads
        As for `probox.evaluate`. Default: PDQ, mAP and moLRP of preset ``"reference"``.
    **settings
        ``preset``, ``label_threshold`` and other settings, as for `probox.evaluate`.

    Examples
    --------
    >>> metric = PDQ(classes=["cup", "dog"], image_size=(64, 48))
    >>> preds = [{"boxes": [[11, 19, 41, 40]], "scores": [0.9], "labels": [0]}]
    >>> metric.update(preds, [{"boxes": [[11, 19, 41, 40]], "labels": [0]}])
    >>> round(metric.compute()["PDQ"], 4)  # a perfect box; the label has probability 0.9
    0.9487
    """

    @takes_settings
    def __init__(
        self,
        classes: Sequence[str] | None = None,
        *,
        box_format: BoxFormat = "xyxy",
        image_size: tuple[int, int] | None = None,
        first_label: int | None = None,
        covariance_format: BoxFormat | None = None,
        above_one: AboveOne = "limit",
        convention: str | Convention | None = None,
        measures: str | Sequence[str] | None = None,
        threads: int | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        self._convention = resolve_settings(PDQ, convention, settings)
        self._naming = naming_of(classes, first_label)
        check_box_format(box_format)
        check_above_one(above_one)
        self._formats = box_format, covariance_format
        self._above_one = above_one
        self._size = None if image_size is None else _check_size(image_size)
        self._measures = measures
        self._threads = threads
        self._seen: list[ImageState] = []
        self._others: tuple[list[ImageState], ...] | None = None
        self._repeated = 0
        self._result: Evaluation | None = None
        self.result()  # raises for invalid arguments now, not after an epoch

    # --- the interface of torchmetrics ---

    def update(self, preds: Iterable[Mapping[str, Any]], target: Iterable[Mapping[str, Any]]) -> None:
        """Add a batch: one dictionary for each image in both lists.

        Parameters
        ----------
        preds : list of dict
            ``boxes`` (n, 4), ``scores`` (n,) and ``labels`` (n,). Optional: ``label_probs`` (n, C), the probability of
            each class, ``covariances`` (n, 2, 2, 2) of corners or (n, 4, 4), and ``masks`` (n, H, W) or (n, 1, H, W),
            in which floats are probabilities of pixels. With `label_probs`, `scores` and `labels` may be omitted.
            Tensors on any device, NumPy arrays or lists.
        target : list of dict
            ``boxes`` (m, 4) and ``labels`` (m,). Optional: ``masks`` (m, H, W), ``iscrowd`` (m,), ``area`` (m,),
            ``image_id``, and the size of the image as ``image_size`` (width, height), or ``orig_size`` or ``size``
            (height, width) as in DETR. Images without an id are numbered in order.

        Examples
        --------
        >>> metric = PDQ(classes=["cup"], image_size=(64, 48))
        >>> metric.update([{"boxes": [[9, 9, 40, 40]], "scores": [0.9], "labels": [0]}], [{"boxes": [], "labels": []}])
        >>> len(metric)
        1
        """
        batch = self._read(preds, target)
        known = {seen.image_id for seen in self._seen}
        for seen in batch:
            if seen.image_id is not None and seen.image_id in known:
                raise InputError(
                    "the image was added before", image=seen.image_id, remedy="call reset() before each epoch"
                )
            known.add(seen.image_id)
        _check_labels(batch)
        self._seen.extend(batch)
        self._others, self._result = None, None

    def compute(self) -> dict[str, float]:
        """Return the metrics of all images so far.

        Returns
        -------
        dict of str to float
            PDQ, mAP, moLRP and their components, in 0 to 1.

        Examples
        --------
        >>> metric = PDQ(classes=["cup"], image_size=(64, 48))
        >>> metric.update([{"boxes": [], "labels": [], "scores": []}], [{"boxes": [[9, 9, 40, 40]], "labels": [0]}])
        >>> metric.compute()["FN"]
        1.0
        """
        return {name: float(value) for name, value in self.result().summary().items()}

    def forward(self, preds: Iterable[Mapping[str, Any]], target: Iterable[Mapping[str, Any]]) -> dict[str, float]:
        """Add a batch, and return the metrics of this batch alone.

        Parameters
        ----------
        preds, target : list of dict
            As for `update`.

        Returns
        -------
        dict of str to float
            The metrics of the batch, as from `compute`.

        Examples
        --------
        >>> metric = PDQ(classes=["cup"], image_size=(64, 48))
        >>> batch = [{"boxes": [[9, 9, 40, 40]], "scores": [1.0], "labels": [0]}]
        >>> metric(batch, [{"boxes": [[9, 9, 40, 40]], "labels": [0]}])["PDQ"]
        1.0
        """
        before = len(self._seen)
        self.update(preds, target)
        alone = copy.copy(self)
        alone._seen, alone._result = self._seen[before:], None
        return {name: float(value) for name, value in alone._evaluate().summary().items()}

    __call__ = forward

    def reset(self) -> None:
        """Remove all images, for example at the start of an epoch.

        Examples
        --------
        >>> metric = PDQ(classes=["cup"])
        >>> metric.reset()
        >>> len(metric)
        0
        """
        self._seen, self._others, self._result, self._repeated = [], None, None, 0

    def to(self, device: Any = None, *_: Any, **__: Any) -> PDQ:
        """Return itself, for compatibility with torchmetrics. Arguments are ignored: NumPy computes all numbers.

        Returns
        -------
        PDQ
            This object.

        Examples
        --------
        >>> len(PDQ(classes=["cup"]).to("cpu"))
        0
        """
        return self

    # --- additions to it ---

    def result(self) -> Evaluation:
        """Return the evaluation of all images so far; bit-identical to one call of `probox.evaluate`.

        Returns
        -------
        Evaluation
            The result with its tables and notes.

        Examples
        --------
        >>> metric = PDQ(classes=["cup"], image_size=(64, 48))
        >>> batch = [{"boxes": [[9, 9, 40, 40]], "scores": [1.0], "labels": [0]}]
        >>> metric.update(batch, [{"boxes": [[9, 9, 40, 40]], "labels": [0]}])
        >>> metric.result().tp
        1
        """
        if self._result is None:
            self._warn_if_alone()
            self._result = self._evaluate()
        return self._result

    def sync(self, gather: Gather | None = None) -> PDQ:
        """Collect the images of all processes. Every process must call it; then all have the same numbers.

        An image with an id counts once even if several processes saw it: samplers repeat some images to give all
        processes the same number.

        Parameters
        ----------
        gather : callable, optional
            Takes this process's images and returns the list of all processes' images, in the same order everywhere.
            Default: ``torch.distributed.all_gather_object`` if a process group is initialized; otherwise nothing
            happens.

        Returns
        -------
        PDQ
            This object.

        Examples
        --------
        >>> len(PDQ(classes=["cup"]).sync())
        0
        """
        gather = gather or _torch_gather()
        if gather is None:
            return self
        self._others = tuple(list(part) for part in gather(self._seen))
        self._result = None
        return self

    def merge(self, other: PDQ) -> None:
        """Add all images of another metric.

        Parameters
        ----------
        other : PDQ
            A metric with the same arguments.

        Examples
        --------
        >>> metric, other = PDQ(classes=["cup"]), PDQ(classes=["cup"])
        >>> metric.merge(other)
        """
        if not isinstance(other, PDQ) or other._choices != self._choices:
            raise InputError("metrics of different classes or conventions do not merge", remedy="use equal arguments")
        known = {seen.image_id for seen in self._seen}
        for seen in other._seen:
            if seen.image_id is not None and seen.image_id in known:
                raise InputError("the image was added before", image=seen.image_id, remedy="add each image once")
        self._seen = [*self._seen, *other._seen]
        self._others, self._result = None, None

    @property
    def _choices(self) -> tuple[Any, ...]:
        return self._naming, self._formats, self._above_one, self._convention

    def __len__(self) -> int:
        return len(self._all())

    def __bool__(self) -> bool:
        return True  # an empty metric, with len() 0, must not be falsy in `metric or PDQ()`

    def __repr__(self) -> str:
        return f"PDQ({len(self)} images, {self._convention.describe()})"

    # --- implementation ---

    def _read(self, preds: Any, target: Any) -> list[ImageState]:
        pairs = []
        for name, given in (("preds", preds), ("target", target)):
            if isinstance(given, Mapping) or not isinstance(given, Iterable):
                raise InputError(
                    f"expected {name} to be a list of dictionaries, but got {type(given).__name__}",
                    remedy=f"write [{name}] for one image",
                )
            pairs.append(list(given))
        if len(pairs[0]) != len(pairs[1]):
            raise InputError(
                f"expected as many predictions as targets, but got {len(pairs[0])} and {len(pairs[1])}",
                remedy="give a dictionary for each image, also for those without detections",
            )
        return [self._read_image(entry, *both) for entry, both in enumerate(zip(*pairs, strict=True))]

    def _read_image(self, entry: int, prediction: Any, target: Any) -> ImageState:
        expect_entries(prediction, f"preds[{entry}]", ("boxes", "scores", "labels"))
        expect_entries(target, f"target[{entry}]", ("boxes", "labels"))
        image, (box_format, covariance_format) = image_id_of(target), self._formats
        with of_image(image, f"update's entry {entry}" if image is None else None):
            seen = ImageState(
                target=read_target(target, self._naming, box_format),
                found=read_found(prediction, self._naming, box_format, covariance_format),
            )
            if seen.found.masks is not None and seen.target.size is not None:
                check_size(seen.found.masks.size, seen.target.size[::-1])
            return seen

    def _all(self) -> list[ImageState]:
        """Return the images of all processes, each once."""
        parts = [self._seen] if self._others is None else self._others
        seen_ids: set[int] = set()
        images: list[ImageState] = []
        for part in parts:
            images.extend(seen for seen in part if seen.image_id is None or seen.image_id not in seen_ids)
            seen_ids.update(seen.image_id for seen in part if seen.image_id is not None)
        self._repeated = sum(map(len, parts)) - len(images)
        return images

    def _evaluate(self) -> Evaluation:
        images = self._all()
        notes: list[Note] = []
        if self._repeated:
            notes.append(Note("repeated-images", self._repeated))
        classes, about_classes = self._classes(images)
        # Images without an id get unused numbers.
        free = itertools.count(max((seen.image_id for seen in images if seen.image_id is not None), default=-1) + 1)
        ids = [next(free) if seen.image_id is None else seen.image_id for seen in images]
        sizes = [seen.size or self._size for seen in images]
        unsized = sum(size is None for size in sizes)
        if unsized:
            notes.append(Note("sizes-unknown", unsized))
        least = self._convention.fixed_variance or 0.0
        shapes = [size or bounding_size(seen, least) for seen, size in zip(images, sizes, strict=True)]
        dataset = Dataset.from_sizes(classes, dict(zip(ids, shapes, strict=True)))
        ordered = [images[row] for row in np.argsort(np.array(ids, np.int64), kind="stable").tolist()]
        truth = truth_of(dataset, [seen.target for seen in ordered])
        rows = [seen.found for seen in ordered]
        found = stack_rows(rows, dataset.image_ids.tolist(), classes, pixels=False, above_one=self._above_one)
        extents = [extents_of(each.boxes) if each.extents is None else each.extents for each in rows]
        found = found.replace(extents=np.concatenate([np.zeros((0, 2)), *extents]))
        if len(found) >= MANY and len(truth) and found.boxes.max() <= 1.0 < truth.boxes.max():
            raise InputError(
                "the predictions' boxes are between 0 and 1, the targets' are not",
                remedy="multiply predictions by the image's width and height",
            )
        result = evaluate(truth, found, convention=self._convention, measures=self._measures, threads=self._threads)
        return dataclasses.replace(result, input_notes=(*about_classes, *notes, *result.input_notes))

    def _classes(self, images: Sequence[ImageState]) -> tuple[tuple[str, ...], tuple[Note, ...]]:
        """Return the names of the classes, and a note if they are unnamed."""
        names = self._naming.classes
        if names is not None:
            return names, ()
        rows = [seen.found for seen in images if len(seen.found.boxes)]
        widths = {each.label_probs.shape[1] for each in rows if each.label_probs is not None}
        if len(widths) > 1:
            raise InputError(
                f"label_probs have {' and '.join(map(str, sorted(widths)))} columns",
                remedy="give one probability for each class, always in the same order",
            )
        labels = [*(each.labels for each in rows), *(seen.target.labels for seen in images)]
        count = max((int(each.max()) for each in labels if each is not None and len(each)), default=-1) + 1
        first = self._naming.first_label
        if widths:
            (width,) = widths
            if count > width:
                raise InputError(
                    f"expected label_probs with a column for label {count - 1 + first}, but got width {width}",
                    remedy="name the classes: classes=[...]; if labels begin at 1, give first_label=1",
                )
            count, why = width, "as label_probs have columns"
        else:
            why = "up to the highest label that was seen"
        notes = (Note("classes-not-named", count, why=why),) if images else ()
        return tuple(str(number + first) for number in range(count)), notes

    def _warn_if_alone(self) -> None:
        """Warn if other processes have images that are missing here."""
        if self._others is not None or not self._seen:
            return
        group = _process_group()
        if group is not None and group.get_world_size() > 1:
            warnings.warn(
                f"these are the numbers of process {group.get_rank()} of {group.get_world_size()} alone: call sync() "
                "in all of them first",
                stacklevel=4,
            )


def _check_labels(batch: Sequence[ImageState]) -> None:
    """Raise if a batch's label_probs do not fit its labels; small batches are checked at the end."""
    rows = [seen.found for seen in batch if seen.found.label_probs is not None]
    full = [(each.label_probs, each.labels, each.scores) for each in rows if len(each.boxes)]
    if full and len({each[0].shape[1] for each in full if each[0] is not None}) == 1:
        probs, labels, scores = (np.concatenate(parts) for parts in zip(*full, strict=True))
        check_order(probs, labels, scores, least=ENOUGH)


def _process_group() -> Any:
    """Return ``torch.distributed`` if it is initialized. torch is not imported for this."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed


def _torch_gather() -> Gather | None:
    group = _process_group()
    if group is None or group.get_world_size() < 2:
        return None

    def gather(part: list[ImageState]) -> list[list[ImageState]]:
        parts: list[Any] = [None] * group.get_world_size()
        group.all_gather_object(parts, part)
        return parts

    return gather


def _check_size(size: Any) -> tuple[int, int]:
    numbers = np.asarray(size)
    if numbers.shape != (2,) or numbers.dtype.kind not in "iu" or not (numbers >= 1).all():
        raise InputError(f"expected image_size to be (width, height), but got {size!r:.60}")
    return int(numbers[0]), int(numbers[1])

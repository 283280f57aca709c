"""Table of images, with sizes and names, and the list of classes, to which all other tables refer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from operator import index
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.support.formatting import with_count
from probox.tables.table import LONGEST_NAME, Table, check_classes, column, expect, frozen

MAX_SIDE, MAX_PIXELS = 1_000_000, 1 << 30
"""Limits on the pixels of an image: per side and in total."""

Rules = Literal["coco", "challenge", "lvis", "openimages"]
"""Settings used where a convention leaves the choice to the dataset: see `Convention.for_rules`."""

PARTLY_ANNOTATED: tuple[Rules, ...] = ("lvis", "openimages")
"""Rules by which an image is evaluated for some classes only."""

CLASS_LISTS = ("negatives", "not_exhaustive")
"""Columns of partly annotated images with lists of classes."""

FREQUENCIES = ("r", "c", "f")
"""LVIS' groups of classes: rare (in at most 10 training images), common (at most 100) and frequent."""

PerImage = tuple[tuple[int, ...], ...]
"""Classes of each image, as indices."""


def is_image_size(width: int, height: int, pixels: int = MAX_PIXELS) -> bool:
    """Return whether an image size is within the limits, and has at most `pixels` pixels."""
    return 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE and width * height <= pixels


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset(Table):
    """Images, one row each, and the classes of a dataset.

    Objects and evaluated detections refer to its rows ("image rows"). Image ids are used in files only;
    `Dataset.rows_of` converts them to rows.

    Parameters
    ----------
    classes : sequence of str
        Class names; labels are indices of this list.
    image_ids : (I,) int64
        Distinct image ids in ascending order.
    widths, heights : (I,) int32
        Image sizes in pixels.
    file_names : sequence of str, optional
        One per image; empty where unknown.
    category_ids : (C,) int64, optional
        COCO category id of each class. Default: 1, 2, ...
    rules : {"coco", "challenge", "lvis", "openimages"}
        Source of the data. With ``challenge``, small objects are ignored unless a convention decides otherwise,
        only all-zero covariances count as missing, and names of classes and files are the challenge's. With ``lvis``
        or ``openimages``, an image is evaluated only for the classes of its objects and its `negatives`.
    source : str
        File of origin, for messages.
    negatives : sequence of sequence of int, optional
        For each image that is annotated for some classes only, the classes that are verified to be absent. With
        ``openimages``, all verified classes. Default: none.
    not_exhaustive : sequence of sequence of int, optional
        For each such image, the classes that have more objects than are annotated. Default: none.
    frequencies : sequence of {"r", "c", "f"}, optional
        With ``lvis``: whether each class is rare, common or frequent, for APr, APc and APf.

    Examples
    --------
    >>> dataset = Dataset(classes=["cup", "dog"], image_ids=[7, 9], widths=[64, 32], heights=[48, 24])
    >>> dataset.rows_of([9, 8, 7]).tolist()
    [1, -1, 0]
    """

    classes: tuple[str, ...]
    image_ids: npt.NDArray[np.int64] = column(np.int64)
    widths: npt.NDArray[np.int32] = column(np.int32)
    heights: npt.NDArray[np.int32] = column(np.int32)
    file_names: tuple[str, ...] = column(object, optional=True)
    category_ids: npt.NDArray[np.int64] = None  # type: ignore[assignment]
    rules: Rules = "coco"
    source: str = ""
    negatives: PerImage = column(object, optional=True)
    not_exhaustive: PerImage = column(object, optional=True)
    frequencies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # assignment in a frozen dataclass
        put("classes", check_classes(self.classes, file=self.source or None))
        super().__post_init__()
        categories = np.arange(1, len(self.classes) + 1) if self.category_ids is None else self.category_ids
        put("category_ids", frozen(categories, np.int64, (len(self.classes),), "category_ids"))
        put("frequencies", tuple(self.frequencies))
        self._check()
        self._check_lists_allowed()

    def _default(self, name: str) -> Any:
        if name == "file_names":
            return ("",) * len(self.image_ids)
        return ((),) * len(self.image_ids) if self.partly_annotated else None

    def _check_column(self, name: str, declared: Any, values: Any, rows: int) -> Any:
        if name in CLASS_LISTS:
            return self._check_lists(name, values, rows)
        checked = super()._check_column(name, declared, values, rows)
        if name == "file_names" and len(checked) != rows:
            if len(checked):
                raise self._fail(f"expected one file name per image, but got {len(checked)} for {rows} images")
            return self._default(name)
        return checked

    def _check_lists(self, name: str, values: Any, rows: int) -> PerImage:
        """Return classes of each image as tuples; raise for anything else."""
        try:
            lists = tuple(tuple(map(index, own)) for own in values)
        except TypeError:
            raise self._fail(f"expected {name} to be a list of class indices for each image") from None
        if len(lists) != rows:
            raise self._fail(f"expected {name} of each image, but got {len(lists)} for {rows} images")
        for row, own in enumerate(lists):
            if own and not 0 <= min(own) <= max(own) < len(self.classes):
                raise self._fail(f"expected {name} to be classes below {len(self.classes)}, but got {own!r:.80}", row)
        return lists

    def _check_lists_allowed(self) -> None:
        """Raise for lists of classes under other rules, and for unknown frequencies."""
        given = self.negatives is not None or self.not_exhaustive is not None or self.frequencies
        if given and not self.partly_annotated:
            problem = f"negatives, not_exhaustive and frequencies do not fit the rules {self.rules}"
            raise self._fail(problem, remedy='give rules="lvis" or rules="openimages"')
        if self.frequencies and (len(self.frequencies) != len(self.classes) or {*self.frequencies} - {*FREQUENCIES}):
            raise self._fail(
                f"expected one of {', '.join(FREQUENCIES)} for each class, but got {self.frequencies!r:.80}"
            )

    def _fail(self, problem: str, row: int | None = None, remedy: str | None = None) -> InputError:
        image = None if row is None else int(self.image_ids[row])
        return InputError(problem, file=self.source or None, image=image, remedy=remedy)

    def _check(self) -> None:
        if self.rules not in get_args(Rules):
            raise self._fail(f"expected rules to be one of {', '.join(get_args(Rules))}, but got {self.rules!r:.40}")
        numbers, counts = np.unique(self.category_ids, return_counts=True)
        if (counts > 1).any():
            twice = int(numbers[counts > 1][0])
            raise self._fail(f"the category id {twice} is given to several classes", remedy="give each class its own")
        lengths = [len(name) for name in self.file_names]
        if lengths and max(lengths) > LONGEST_NAME:  # a column of names is as wide as its longest name
            at = lengths.index(max(lengths))
            problem = f"expected a file name of at most {LONGEST_NAME:,} characters, but got one of {lengths[at]:,}"
            raise self._fail(problem, at, "shorten or omit it")
        falls = np.diff(self.image_ids) <= 0
        if falls.any():
            raise self._fail("image ids must be distinct and ascending", int(np.argmax(falls)) + 1)
        least, most = np.minimum(self.widths, self.heights), np.maximum(self.widths, self.heights)
        pixels = self.widths.astype(np.int64) * self.heights
        strange = (least < 1) | (most > MAX_SIDE) | (pixels > MAX_PIXELS)
        if strange.any():
            at = int(np.argmax(strange))
            raise self._fail(
                f"expected a size of 1 to {MAX_SIDE:,} pixels per side and up to {MAX_PIXELS:,} in all, "
                f"but got {self.widths[at]} x {self.heights[at]}",
                at,
                "correct the size, or divide the image into tiles",
            )

    @classmethod
    def from_sizes(cls, classes: Sequence[str], images: Mapping[int, tuple[int, int]], **others: Any) -> Dataset:
        """Create a dataset from image sizes; ids may be in any order.

        Parameters
        ----------
        classes : sequence of str
            Class names.
        images : mapping of image id to (width, height)
            Image sizes in pixels.
        **others
            Other columns of `Dataset`, such as ``category_ids``.

        Returns
        -------
        Dataset
            The dataset, with ascending image ids.

        Examples
        --------
        >>> Dataset.from_sizes(["cup"], {9: (32, 24), 7: (64, 48)}).image_ids.tolist()
        [7, 9]
        """
        expect(images, Mapping, "images", "give a dictionary of image id to (width, height)")
        ids = np.sort(frozen(list(images), np.int64, (-1,), "image ids"))
        shapes = frozen([images[int(i)] for i in ids], np.int32, (len(ids), 2), "width and height of images")
        # The constructor converts the classes to a tuple, or raises.
        return cls(classes=classes, image_ids=ids, widths=shapes[:, 0], heights=shapes[:, 1], **others)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"Dataset({with_count(len(self), 'image')}, {with_count(len(self.classes), 'class')})"

    def _flat_columns(self, label_probs: bool) -> dict[str, Any]:
        from probox.tables.flat import image_columns

        self._has_no_label_probs(label_probs)
        return {**image_columns(self, np.arange(len(self))), "width": self.widths, "height": self.heights}

    @property
    def partly_annotated(self) -> bool:
        """Whether images are evaluated for some classes only, as in LVIS and Open Images."""
        return self.rules in PARTLY_ANNOTATED

    @property
    def shapes(self) -> npt.NDArray[np.int32]:
        """Return width and height of every image, (I, 2)."""
        return np.stack([self.widths, self.heights], axis=1)

    def rows_of(self, image_ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the row of each image id, -1 for unknown ids.

        Parameters
        ----------
        image_ids : sequence of int
            Image ids.

        Returns
        -------
        (N,) int64
            Rows of the dataset.

        Examples
        --------
        >>> Dataset.from_sizes(["cup"], {9: (32, 24), 7: (64, 48)}).rows_of([9, 8]).tolist()
        [1, -1]
        """
        return _core.rows_of_ids(np.asarray(image_ids, dtype=np.int64), self.image_ids)

    def chosen_rows(self, image_ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the rows of the given images, distinct and ascending; raise for unknown ids.

        Parameters
        ----------
        image_ids : sequence of int
            Image ids.

        Returns
        -------
        (N,) int64
            Rows of the dataset.

        Examples
        --------
        >>> Dataset.from_sizes(["cup"], {9: (32, 24), 7: (64, 48)}).chosen_rows([9, 7, 9]).tolist()
        [0, 1]
        """
        return self.rows_of(chosen_ids(image_ids, self.image_ids, file=self.source or None))

    def is_listed(
        self, lists: PerImage, image_rows: npt.NDArray[np.int64], labels: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.bool_]:
        """Return which pairs of an image row and a class are among the classes of each image; -1 never is.

        Parameters
        ----------
        lists : tuple of tuple of int
            `negatives` or `not_exhaustive`.
        image_rows, labels : (N,) int
            Image rows and classes.

        Returns
        -------
        (N,) bool
            Whether the image lists the class.

        Examples
        --------
        >>> dataset = Dataset(classes=["cup", "dog"], image_ids=[7, 9], widths=[64, 32], heights=[48, 24])
        >>> dataset.is_listed(((1,), (0, 1)), np.array([0, 0, 1, -1]), np.array([0, 1, 1, 1])).tolist()
        [False, True, True, False]
        """
        if not any(lists):  # COCO: this is faster than a search among none
            return np.zeros(len(labels), bool)
        rows = np.repeat(np.arange(len(lists)), [len(own) for own in lists])
        listed = np.fromiter((label for own in lists for label in own), np.int64, len(rows))
        return self.are_among(rows, listed, image_rows, labels)

    def are_among(
        self,
        known_rows: npt.NDArray[np.int64],
        known_labels: npt.NDArray[np.integer],
        image_rows: npt.NDArray[np.int64],
        labels: npt.NDArray[np.int32],
    ) -> npt.NDArray[np.bool_]:
        """Return which pairs of an image row and a class are among the known pairs; -1 never is.

        Parameters
        ----------
        known_rows, known_labels : (M,) int
            Image rows and classes of the known pairs.
        image_rows, labels : (N,) int
            Image rows and classes.

        Returns
        -------
        (N,) bool
            Whether the pair is known.

        Examples
        --------
        >>> dataset = Dataset(classes=["cup", "dog"], image_ids=[7, 9], widths=[64, 32], heights=[48, 24])
        >>> dataset.are_among(np.array([1]), np.array([0]), np.array([1, 1, 0]), np.array([0, 1, 2])).tolist()
        [True, False, False]
        """
        known = np.unique(known_rows * len(self.classes) + known_labels)
        valid = (image_rows >= 0) & (labels >= 0) & (labels < len(self.classes))
        return valid & (_core.rows_of_ids(image_rows * len(self.classes) + labels, known) >= 0)

    def offsets(self, image_rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the start of each image's rows in a column of ascending image rows.

        Parameters
        ----------
        image_rows : (N,) int64
            Ascending image rows.

        Returns
        -------
        (images + 1,) int64
            Starts, and the number of rows as last entry.

        Examples
        --------
        >>> Dataset.from_sizes(["cup"], {9: (32, 24), 7: (64, 48)}).offsets(np.array([0, 0, 1])).tolist()
        [0, 2, 3]
        """
        return _core.image_offsets(image_rows, len(self))


def chosen_ids(
    wanted: npt.ArrayLike, known: npt.NDArray[np.int64], *, file: str | None = None
) -> npt.NDArray[np.int64]:
    """Return the given image ids, distinct and ascending; raise if one is not among the ascending known ids."""
    ids = np.unique(frozen(wanted, np.int64, (-1,), "image ids"))
    unknown = ids[_core.rows_of_ids(ids, known) < 0]
    if len(unknown):
        more = f" (and {len(unknown) - 1:,} more)" if len(unknown) > 1 else ""
        raise InputError(
            f"unknown image{more}",
            file=file,
            image=int(unknown[0]),
            remedy=f"choose among its {len(known):,} image ids",
        )
    return ids

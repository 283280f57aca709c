"""Constants and choices that define PDQ, as one frozen record.

The paper gives equations. An implementation also chooses a region of interest, a cut-off for small probabilities, and
values that count as zero. `Convention` holds all of these, and every result stores its convention.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from probox.errors import InputError, KeywordError
from probox.support.formatting import nearest_word

Assignment = Literal["optimal", "greedy"]
Background = Literal["box", "mask"]
Clip = Literal["none", "corners"]
LabelThreshold = float | Literal["auto"]
Ranges = tuple[tuple[float, float], ...]

CHOICES: dict[str, tuple[str, ...]] = {
    "assignment": get_args(Assignment),
    "background": get_args(Background),
    "clip": get_args(Clip),
}
"""Fields with a fixed set of values, and these values."""

BOX_FIELDS = ("iou_thresholds", "max_detections", "area_ranges")
"""Fields that hold the rules of mAP."""

COCO_LIMITS, LVIS_LIMITS = (1, 10, 100), (300,)
"""Limits of detections of COCO, per image and class, and of LVIS, per image."""

SIZE_NAMES = ("small", "medium", "large")
"""Names of the sizes of `Convention.area_ranges`."""

MOST_THRESHOLDS = 16
"""Maximum number of IoU thresholds, including 0.5, which moLRP uses: the kernel stores one bit for each."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Convention:
    """Constants and choices of an evaluation.

    `Convention.preset` returns a named one, optionally changed.

    Parameters
    ----------
    name : str
        The preset it is based on: ``reference`` (the published numbers), ``paper`` (only the equations) or
        ``challenge`` (``reference`` with the robotic vision challenge's denominator).
    epsilon : float
        Added to every probability before the logarithm.
    region_of_interest : bool
        Approximate each corner's cumulative distribution outside a region of interest around its mean.
    rough_sigmas, mahalanobis, min_determinant : float
        The region of interest: within `rough_sigmas` standard deviations per axis and, if the covariance's determinant
        is at least `min_determinant`, the bounding box of the lattice points within the `mahalanobis` distance.
    min_probability : float
        Probabilities below this become 0, in each corner's map and in their product.
    single_precision : bool
        Round each corner's map and their product to float32.
    snap_zero, snap_one : float
        Spatial, foreground and background qualities of at most `snap_zero` become 0, those within `snap_one` of 1
        become 1.
    min_quality : float
        Pairwise qualities of at most this value become 0: the pair cannot match.
    sum_zero_is_plain : bool or None
        A detection has no covariance if the sum of its covariances is 0; otherwise only if all of them are 0. ``None``:
        as for the ground truth's format (challenge: all 0, COCO: the sum).
    label_weight : float
        pPDQ = Q_S^(1 - w) Q_L^w; 0.5 is the paper's geometric mean. With 0, labels have no effect. With 1, spatial
        quality only decides whether a pair can match, because it must be above 0.
    assignment : {"optimal", "greedy"}
        Matching algorithm.
    background : {"box", "mask"}
        Background of an object: everything outside its box, or outside its mask.
    box_truth : bool
        Replace each object's mask with its annotated box.
    fixed_variance : float or None
        Replace the covariance of each corner with this variance on both axes [square pixels].
    label_threshold : float, "auto" or None
        Keep detections whose highest label probability is above it. ``"auto"``: for PDQ only, a threshold per image
        chosen on other images by `Evaluation.at_threshold`.
    clip : {"none", "corners"}
        ``corners`` first moves box corners outside the image to its border.
    object_filter : bool or None
        Ignore small objects. ``None``: as for the ground truth's format (on for challenge, off for COCO).
    min_width, min_height, min_pixels : int
        Objects at or below any of these are small.
    confidence_denominator : bool
        Count a false positive as its highest non-background label probability instead of 1.
    iou_thresholds : tuple of float
        IoU thresholds of mAP and AR, ascending.
    max_detections : tuple of int or None
        Limits of detections per image and class, ascending: matching and AP use the last, AR uses each. For LVIS, the
        last one limits the detections of an image. ``None``: as for the ground truth's format (COCO: 1, 10, 100,
        LVIS: 300).
    area_ranges : tuple of (float, float)
        Smallest and largest area of small, medium and large objects, both included [square pixels].

    Examples
    --------
    >>> Convention.preset("reference", label_threshold=0.5).label_threshold
    0.5
    """

    name: str = "reference"
    epsilon: float = 1e-14
    region_of_interest: bool = True
    rough_sigmas: float = 5.0
    mahalanobis: float = 3.439
    min_determinant: float = 1e-8
    min_probability: float = 0.0027
    single_precision: bool = True
    snap_zero: float = 1e-8
    snap_one: float = 1.001e-5
    min_quality: float = 2.0**-25
    sum_zero_is_plain: bool | None = None
    label_weight: float = 0.5
    assignment: Assignment = "optimal"
    background: Background = "box"
    box_truth: bool = False
    fixed_variance: float | None = None
    label_threshold: LabelThreshold | None = None
    clip: Clip = "none"
    object_filter: bool | None = None
    min_width: int = 10
    min_height: int = 10
    min_pixels: int = 100
    confidence_denominator: bool = False
    iou_thresholds: tuple[float, ...] = tuple(np.linspace(0.5, 0.95, 10).tolist())
    max_detections: tuple[int, ...] | None = None
    area_ranges: Ranges = ((0.0, 32.0**2), (32.0**2, 96.0**2), (96.0**2, 1e10))

    def __post_init__(self) -> None:
        for name in BOX_FIELDS:
            if getattr(self, name) is not None or name != "max_detections":
                object.__setattr__(self, name, _as_tuple(name, getattr(self, name)))
        for name, value in list(vars(self).items()):  # exactly the fields
            if isinstance(value, np.generic):
                object.__setattr__(self, name, value.item())
        self._check_types()
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                words = " or ".join(map(repr, allowed))
                raise InputError(f"expected {name} to be {words}, got {getattr(self, name)!r}")
        if not 0.0 <= self.label_weight <= 1.0:
            raise InputError(f"expected label_weight between 0 and 1, got {self.label_weight!r}")
        if self.fixed_variance is not None and not 0.0 <= self.fixed_variance < float("inf"):
            raise InputError(f"expected fixed_variance to be at least 0 and finite, got {self.fixed_variance!r}")
        if self.fixed_threshold is not None and not 0.0 <= self.fixed_threshold <= 1.0:
            raise InputError(f"expected label_threshold between 0 and 1, got {self.label_threshold!r}")
        # Below, float64 loses digits; above, log(1 + epsilon) of pixels without probability would affect results.
        if not 1e-300 <= self.epsilon <= 1e-9:
            raise InputError(f"expected epsilon between 1e-300 and 1e-9, got {self.epsilon!r}")
        if not 0.0 <= self.rough_sigmas <= 1000.0:
            raise InputError(f"expected rough_sigmas between 0 and 1000, got {self.rough_sigmas!r}")
        for name, value in vars(self).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise InputError(f"expected {name} to be finite, got {value!r}")
        self._check_box_rules()

    def _check_box_rules(self) -> None:
        """Raise for thresholds, limits or areas that are out of range or not ascending."""
        ious, areas = self.iou_thresholds, self.area_ranges
        most = COCO_LIMITS if self.max_detections is None else self.max_detections
        problems = {
            "iou_thresholds to be above 0 and at most 1": (ious, all(0.0 < iou <= 1.0 for iou in ious)),
            "iou_thresholds to ascend": (ious, _ascends(ious)),
            "at least one of iou_thresholds": (ious, len(ious) > 0),
            f"at most {MOST_THRESHOLDS} of iou_thresholds, with 0.5, which moLRP uses": (
                len({0.5, *ious}),
                len({0.5, *ious}) <= MOST_THRESHOLDS,
            ),
            "at least one limit in max_detections": (most, len(most) > 0),
            "max_detections to ascend from 1 to 2^31 - 1": (most, _ascends((0, *most, 2**31))),
            "area_ranges to have small, medium and large": (areas, len(areas) == len(SIZE_NAMES)),
            "area_ranges of finite numbers from 0": (areas, all(0.0 <= area < math.inf for r in areas for area in r)),
            "area_ranges from low to high": (areas, all(low < high for low, high in areas)),
            "area_ranges in the order small, medium, large": (areas, list(areas) == sorted(areas)),
        }
        for problem, (value, fine) in problems.items():
            if not fine:
                raise InputError(f"expected {problem}, got {value!r:.80}")

    def _check_types(self) -> None:
        """Raise for a field of another type than its default; fields with default None are numbers or flags."""
        for field in dataclasses.fields(self):
            value, usual = getattr(self, field.name), field.default
            if field.name in BOX_FIELDS:  # `_as_tuple` checked them
                continue
            optional = usual is None
            if (optional and value is None) or (field.name == "label_threshold" and value == "auto"):
                continue
            flag = isinstance(usual, bool) or field.name in ("object_filter", "sum_zero_is_plain")
            whole = isinstance(usual, int)
            wanted: Any = bool if flag else str if isinstance(usual, str) else int if whole else int | float
            endless = _is_endless(value)
            if not isinstance(value, wanted) or (isinstance(value, bool) and not flag) or endless:
                kind = (
                    "True or False" if flag else "text" if wanted is str else "a whole number" if whole else "a number"
                )
                kind += " up to 2^53" if endless else ""
                others = ', "auto" or None' if field.name == "label_threshold" else " or None" if optional else ""
                raise InputError(f"expected {field.name} to be {kind}{others}, got {value!r:.40}")

    @property
    def fixed_threshold(self) -> float | None:
        """Return the label threshold of all images; None if there is none, or each has its own (``"auto"``)."""
        return None if self.label_threshold == "auto" else self.label_threshold

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Convention:
        """Return a preset, optionally with some fields changed.

        Parameters
        ----------
        name : {"reference", "paper", "challenge"}
            Name of the preset.
        **changes
            Fields by name.

        Returns
        -------
        Convention
            The preset, or a changed copy.

        Examples
        --------
        >>> Convention.preset("paper").min_quality
        0.0
        """
        if not isinstance(name, str) or name not in PRESETS:
            near = nearest_word(name, PRESETS) if isinstance(name, str) else None
            raise InputError(
                f"expected preset to be one of {', '.join(PRESETS)}, got {name!r:.80}",
                remedy=f"did you mean {near}?" if near else None,
            )
        return PRESETS[name].replace(**changes)

    def replace(self, **changes: Any) -> Convention:
        """Return a copy with some fields changed, or this object if there are no changes.

        Parameters
        ----------
        **changes
            Fields by name.

        Returns
        -------
        Convention
            The changed convention.

        Examples
        --------
        >>> Convention().replace(label_weight=0.25).label_weight
        0.25
        """
        if not changes:
            return self
        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                near = nearest_word(name, known)
                remedy = f"did you mean {near}?" if near else f"the fields are {', '.join(known)}"
                raise KeywordError(f"a convention has no field `{name}`", remedy=remedy)
        return dataclasses.replace(self, **changes)

    def for_rules(self, rules: str) -> Convention:
        """Return a copy with the fields that depend on the ground truth's format resolved.

        Parameters
        ----------
        rules : {"coco", "challenge", "lvis", "openimages"}
            Format of the ground truth, ``dataset.rules``.

        Returns
        -------
        Convention
            A convention without None in `sum_zero_is_plain`, `object_filter` and `max_detections`.

        Examples
        --------
        >>> Convention().for_rules("challenge").object_filter
        True
        """
        challenge = rules == "challenge"
        resolved = copy.copy(self)  # not `replace`, which would check all other fields again
        if self.sum_zero_is_plain is None:
            object.__setattr__(resolved, "sum_zero_is_plain", not challenge)
        if self.object_filter is None:
            object.__setattr__(resolved, "object_filter", challenge)
        if self.max_detections is None:
            object.__setattr__(resolved, "max_detections", LVIS_LIMITS if rules == "lvis" else COCO_LIMITS)
        return resolved

    def describe(self) -> str:
        """Return the preset's name and the changed fields as text.

        Returns
        -------
        str
            The description.

        Examples
        --------
        >>> Convention.preset("reference", label_threshold=0.5, box_truth=True).describe()
        'reference, box truth, label threshold 0.5'
        """
        usual = PRESETS.get(self.name, _REFERENCE)
        changed = [
            field.name for field in dataclasses.fields(self) if getattr(self, field.name) != getattr(usual, field.name)
        ]
        return ", ".join([self.name, *(_in_words(name, getattr(self, name)) for name in changed if name != "name")])

    def deviations(self, rules: str = "coco") -> dict[str, str]:
        """Return by field what differs from the preset ``reference``, so that numbers differ from published ones.

        Parameters
        ----------
        rules : {"coco", "challenge", "lvis", "openimages"}
            Format of the ground truth, which decides undefined fields.

        Returns
        -------
        dict of str to str
            The difference in words. Fields that another preset sets are together under ``name``.

        Examples
        --------
        >>> Convention(label_threshold=0.3, max_detections=(100,)).deviations()
        {'label_threshold': 'label threshold 0.3', 'max_detections': 'max detections 100 instead of 1/10/100'}
        """
        preset = PRESETS.get(self.name, _REFERENCE)
        mine, usual, its = (vars(convention.for_rules(rules)) for convention in (self, _REFERENCE, preset))
        differ = [name for name in mine if name != "name" and mine[name] != usual[name]]
        found = {}
        if any(mine[name] == its[name] for name in differ):
            found["name"] = f"preset {self.name} instead of reference"
        for name in differ:
            if mine[name] != its[name]:
                plain = usual[name] is None or isinstance(usual[name], bool)
                instead = "" if plain else f" instead of {value_in_words(name, usual[name])}"
                found[name] = _in_words(name, mine[name]) + (" instead of masks" if name == "box_truth" else instead)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary for JSON.

        Returns
        -------
        dict of str to value
            Fields by name.

        Examples
        --------
        >>> Convention().to_dict()["assignment"]
        'optimal'
        """
        given = {name: getattr(self, name) for name in BOX_FIELDS if getattr(self, name) is not None}
        lists = {name: [[*v] if isinstance(v, tuple) else v for v in values] for name, values in given.items()}
        return dataclasses.asdict(self) | lists

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Convention:
        """Return the convention that `to_dict` described.

        Parameters
        ----------
        fields : mapping of str to value
            Fields by name; missing fields have their defaults.

        Returns
        -------
        Convention
            The convention.

        Examples
        --------
        >>> Convention.from_dict({"name": "reference", "label_threshold": 0.5}).label_threshold
        0.5
        """
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(fields) - known)
        if unknown:
            raise InputError(f"unknown convention field {unknown[0]!r}", remedy="use a newer probox")
        return cls(**fields)


def _in_words(name: str, value: Any) -> str:
    words = name.replace("_", " ")
    if value is None:
        return f"default {words}"
    if isinstance(value, bool):
        return words if value else f"no {words}"
    return f"{words.replace('iou', 'IoU')} {value_in_words(name, value)}"


def value_in_words(name: str, value: Any) -> str:
    """Return the value of a field as in texts and on the command line.

    >>> value_in_words("iou_thresholds", Convention.iou_thresholds), value_in_words("max_detections", (1, 300))
    ('0.50:0.95', '1/300')
    >>> value_in_words("area_ranges", ((0.0, 100.0), (100.0, 900.0), (900.0, 1e10)))
    'small=0:100/medium=100:900/large=900:1e+10'
    """
    if name == "iou_thresholds":
        return thresholds_in_words(value)
    if name == "max_detections":
        return "/".join(map(str, value))
    if name == "area_ranges":
        named = zip(SIZE_NAMES, value, strict=True)
        return "/".join(f"{size}={low:g}:{high:g}" for size, (low, high) in named)
    flags: dict[Any, str] = {None: "none", True: "on", False: "off"}
    return flags[value] if value is None or isinstance(value, bool) else f"{value:g}" if _is_number(value) else value


def thresholds_in_words(values: Sequence[float], between: str = "/") -> str:
    """Return IoU thresholds as text: first and last of a regular sequence in steps of 0.05, or each.

    >>> thresholds_in_words((0.5, 0.75), ","), thresholds_in_words((0.3, 0.4, 0.5))
    ('0.50,0.75', '0.30:0.50:0.10')
    """
    texts = [f"{value:.2f}" if abs(round(value, 2) - value) < 1e-9 else repr(value) for value in values]
    step = (values[-1] - values[0]) / max(len(values) - 1, 1)
    regular = np.allclose(values, values[0] + step * np.arange(len(values)), rtol=0.0, atol=1e-9)
    if len(values) < 3 or not regular or abs(round(step, 2) - step) > 1e-9:
        return between.join(texts)
    return f"{texts[0]}:{texts[-1]}" + ("" if abs(step - 0.05) < 1e-9 else f":{step:.2f}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_endless(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > 2**53  # the kernel has 64-bit floats


def _ascends(values: Sequence[float]) -> bool:
    return all(low < high for low, high in itertools.pairwise(values))


def _as_tuple(name: str, given: Any) -> tuple[Any, ...]:
    """Return a box field as a tuple of numbers of its type; raise for anything else."""
    kind: Any = int if name == "max_detections" else int | float
    try:
        rows = [value.tolist() if isinstance(value, np.ndarray | np.generic) else value for value in given]
        if isinstance(given, str | Mapping):
            raise TypeError
        if name == "area_ranges":
            rows = [(low, high) for low, high in rows]
        cells = [cell for row in rows for cell in row] if name == "area_ranges" else rows
        cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
        if not all(isinstance(cell, kind) and _is_number(cell) and not _is_endless(cell) for cell in cells):
            raise TypeError
    except (TypeError, ValueError):
        what = {"area_ranges": "pairs of numbers", "max_detections": "whole numbers"}.get(name, "numbers")
        raise InputError(f"expected {name} to be a sequence of {what}, got {given!r:.80}") from None
    if name == "max_detections":
        return tuple(cells)
    numbers = list(map(float, cells))
    return tuple(zip(numbers[::2], numbers[1::2], strict=True)) if name == "area_ranges" else tuple(numbers)


_REFERENCE = Convention()

PRESETS: dict[str, Convention] = {
    "reference": _REFERENCE,
    "paper": _REFERENCE.replace(
        name="paper",
        region_of_interest=False,
        min_probability=0.0,
        single_precision=False,
        snap_zero=0.0,
        snap_one=0.0,
        min_quality=0.0,
        sum_zero_is_plain=False,
    ),
    "challenge": _REFERENCE.replace(name="challenge", confidence_denominator=True),
}
"""Named conventions."""


def resolve_convention(convention: str | Convention) -> Convention:
    """Return the convention itself, or the preset with this name."""
    if isinstance(convention, Convention):
        return convention
    if not isinstance(convention, str):
        problem = f"expected argument `convention` to be a name or a Convention, but got {type(convention).__name__}"
        raise InputError(problem, remedy=f"use one of {', '.join(PRESETS)}, or Convention.preset(name, ...)")
    return Convention.preset(convention)

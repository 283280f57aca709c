"""Constants and choices that define PDQ, as one frozen record.

The paper gives equations. An implementation also chooses a region of interest, a cut-off for small probabilities, and
values that count as zero. `Convention` holds all of these, and every result stores its convention.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from probox.errors import InputError, KeywordError
from probox.support.formatting import nearest_word

Assignment = Literal["optimal", "greedy"]
Background = Literal["box", "mask"]
Clip = Literal["none", "corners"]
LabelThreshold = float | Literal["auto"]

CHOICES: dict[str, tuple[str, ...]] = {
    "assignment": get_args(Assignment),
    "background": get_args(Background),
    "clip": get_args(Clip),
}
"""Fields with a fixed set of values, and these values."""


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

    def __post_init__(self) -> None:
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

    def _check_types(self) -> None:
        """Raise for a field of another type than its default; fields with default None are numbers or flags."""
        for field in dataclasses.fields(self):
            value, usual = getattr(self, field.name), field.default
            optional = usual is None
            if (optional and value is None) or (field.name == "label_threshold" and value == "auto"):
                continue
            flag = isinstance(usual, bool) or field.name in ("object_filter", "sum_zero_is_plain")
            whole = isinstance(usual, int)
            wanted: Any = bool if flag else str if isinstance(usual, str) else int if whole else int | float
            endless = isinstance(value, int) and abs(value) > 2**53  # the kernel has 64-bit floats
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
        rules : {"coco", "challenge"}
            Format of the ground truth, ``dataset.rules``.

        Returns
        -------
        Convention
            A convention without None in `sum_zero_is_plain` and `object_filter`.

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
        return dataclasses.asdict(self)

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
    return f"{words} {value:g}" if isinstance(value, int | float) else f"{words} {value}"


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

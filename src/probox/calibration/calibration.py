"""A fitted calibration: its application to detections, its origin, and its JSON file."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from probox.calibration.corner_maps import (
    ClassScale,
    Conformal,
    Constant,
    CornerMap,
    EdgeScale,
    Learned,
    MonotoneCurve,
    RelativeCurves,
    Scale,
    box_reach,
    calibrate_corners,
    find_unchanged,
)
from probox.calibration.label_maps import LabelMap, NoLabelMap, ScoreCurves, Temperature
from probox.calibration.std_regression import SIGMA_FEATURES, Slope, StdModel, feature_names
from probox.errors import InputError
from probox.files.output import Kind, check_replaceable, json_bytes, write_files
from probox.files.reading import Paths, file_head, read_bytes
from probox.fusion.gaussian import BORDERS
from probox.measures.matched import EDGES
from probox.notes import Note
from probox.support.formatting import some_names
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.table import dataset_of, expect, expect_path
from probox.version import __version__

TARGETS = ("pdq", "nll", "coverage")
"""Objectives of fitted corners."""


FORMAT = "probox calibration 2"
"""Format name and version of the JSON file."""

LARGEST = 1e6
"""Largest factor in a file; the smallest is its inverse."""

REMEDY = "correct it, or fit again"

KIND = Kind("a calibration", lambda path: bool(re.search(rb'"format"\s*:\s*"probox calibration', file_head(path))))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Calibration:
    """Calibration found by `probox.calibration.fit`, applicable to detections of any images.

    Parameters
    ----------
    corners : CornerMap
        Map of standard deviations: from `fit`, or for example ``Scale(2.0)`` or ``Constant(0.1)``, a fraction of the
        box sides, of ``probox.calibration.corner_maps``.
    labels : LabelMap
        Map of label probabilities: from `fit`, or for example ``Temperature(1.5)`` of
        ``probox.calibration.label_maps``. Default: no change.
    target : {"pdq", "nll", "coverage"}
        Objective of the fitted corners.
    border : {"keep", "pin"}
        Edges at the image border: ``keep`` the calibrated std, or ``pin`` the edge as `probox.fusion.keep_inside` does.
    classes : tuple of (str, int)
        Names and category ids of the ground truth of the fit, to read COCO results without it.
    origin : tuple of (str, str or int)
        Data and options of the fit, as information for readers.

    Examples
    --------
    >>> from probox.calibration import Calibration
    >>> from probox.calibration.corner_maps import Scale
    >>> found = Detections(
    ...     classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 60]], label_probs=[[0.8]],
    ...     covariances=[[[[4, 1], [1, 4]], [[9, 0], [0, 9]]]])
    >>> Calibration(corners=Scale(2.0)).apply(found).covariances.tolist()
    [[[[16.0, 4.0], [4.0, 16.0]], [[36.0, 0.0], [0.0, 36.0]]]]
    """

    corners: CornerMap
    labels: LabelMap = dataclasses.field(default_factory=NoLabelMap)
    target: str = "nll"
    border: str = "keep"
    classes: tuple[tuple[str, int], ...] = ()
    origin: tuple[tuple[str, str | int], ...] = ()

    def apply(self, detections: Detections, truth: GroundTruth | Dataset | None = None) -> Detections:
        """Return calibrated detections; their notes list what was not changed.

        Parameters
        ----------
        detections : Detections
            Detections of any images.
        truth : GroundTruth or Dataset, optional
            Sizes of the images, required by ``border="pin"``; nothing else is used.

        Returns
        -------
        Detections
            Detections with calibrated covariances and label probabilities.

        Examples
        --------
        >>> from probox.calibration.corner_maps import Constant
        >>> found = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 60]], label_probs=[[0.8]])
        >>> Calibration(corners=Constant(0.1)).apply(found).covariances[0, 0].round(6).tolist()
        [[16.0, 0.0], [0.0, 16.0]]
        """
        expect(detections, Detections, "detections", "read them first with probox.read_detections(path, truth)")
        dataset = None if truth is None else dataset_of(truth, "the order is apply(detections, truth)")
        changed = self.labels.apply(
            calibrate_corners(detections, self.corners, dataset if self.border == "pin" else None)
        )
        return changed.replace(notes=(*detections.notes, *self._notes(detections, sizes=dataset is not None)))

    def _notes(self, found: Detections, *, sizes: bool) -> tuple[Note, ...]:
        """Return notes on unchanged detections, and on classes without values of their own."""
        notes: list[Note] = []
        if self.border == "pin" and sizes:
            notes.append(Note("pinned-calibration"))
        elif self.border == "pin":
            notes.append(Note("not-pinned"))
        maps = int(found.has_heatmap.sum())
        if maps:
            notes.append(Note("heatmaps-kept", maps, total=len(found)))
        plain = int(find_unchanged(found, self.corners).sum()) - maps
        if plain:
            notes.append(Note("plain-boxes-kept", plain, total=len(found)))
        used = [found.classes[label] for label in np.unique(found.labels).tolist()] if found.classes else []
        for what, mapping in (("corners", self.corners), ("labels", self.labels)):
            unknown = [name for name in used if not mapping.has_class(name)]
            if unknown:
                notes.append(Note("classes-not-fitted", len(unknown), what=what, names=some_names(unknown)))
        return tuple(notes)

    def __repr__(self) -> str:
        return f"Calibration({self.corners.method} for {self.target}, labels {self.labels.method})"

    def __str__(self) -> str:
        return "; ".join(words for words in (str(self.corners), str(self.labels)) if words)

    def to_json(self) -> dict[str, Any]:
        """Return a dictionary for JSON; `from_json` reads it.

        Returns
        -------
        dict
            Format, version, maps, classes and origin.

        Examples
        --------
        >>> from probox.calibration.corner_maps import Scale
        >>> Calibration(corners=Scale(2.0)).to_json()["corners"]
        {'method': 'scale', 'target': 'nll', 'border': 'keep', 'factor': 2.0}
        """
        return {
            "format": FORMAT,
            "version": __version__,
            "corners": {"method": self.corners.method, "target": self.target, "border": self.border}
            | _map_to_json(self.corners),
            "labels": {"method": self.labels.method} | _map_to_json(self.labels),
            "classes": dict(self.classes),
            "origin": dict(self.origin),
        }

    @classmethod
    def from_json(cls, content: Any, *, file: str | None = None) -> Calibration:
        """Return the calibration that `to_json` wrote; an error names the first invalid entry.

        Parameters
        ----------
        content : dict
            Content of a file.
        file : str, optional
            Name of the file, for errors.

        Returns
        -------
        Calibration
            The calibration.

        Examples
        --------
        >>> from probox.calibration.corner_maps import Scale
        >>> Calibration.from_json(Calibration(corners=Scale(2.0)).to_json())
        Calibration(scale for nll, labels none)
        """
        whole = _JsonEntry(content, "", file)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            given = content.get("format") if isinstance(content, dict) else None
            got = "a file without it" if given is None else f"{given!r:.60}"
            problem = f'expected a calibration with "format": "{FORMAT}", but got {got}'
            if isinstance(given, str) and given.startswith("probox calibration "):
                raise InputError(problem, file=file, remedy="fit again with this version of probox")
            whole.fail(problem)
        whole.require("format", "version", "corners", "labels", "classes", "origin")
        whole["version"].text()
        corners, target = _read_corners(whole["corners"])
        return cls(
            corners=corners,
            labels=_read_labels(whole["labels"]),
            target=target,
            border=whole["corners"].choice("border", BORDERS),
            classes=tuple((name, entry.whole()) for name, entry in whole["classes"].items()),
            origin=tuple((name, entry.text_or_whole()) for name, entry in whole["origin"].items()),
        )

    def save(self, path: Paths) -> None:
        """Write a JSON file. An existing file is only replaced if it holds a calibration.

        Parameters
        ----------
        path : str or path
            File to write.

        Examples
        --------
        >>> fitted.calibration.save("calibration.json")  # doctest: +SKIP
        """
        expect_path(path)
        check_replaceable(path, KIND)
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        # Keeps each knot [x, y] on one line. json.dumps escapes line breaks in strings, so texts do not match.
        text = re.sub(r"\[\n([^\[\]{}\"]+)\n\s*\]", lambda found: f"[{' '.join(found[1].split())}]", text)
        write_files({Path(path): json_bytes(Path(path), text.encode() + b"\n")})

    @classmethod
    def load(cls, path: Paths) -> Calibration:
        """Read a file that `save` wrote.

        Parameters
        ----------
        path : str or path
            File to read.

        Returns
        -------
        Calibration
            The calibration.

        Examples
        --------
        >>> Calibration.load("calibration.json").apply(found)  # doctest: +SKIP
        """
        expect_path(path)
        name = str(path)
        try:
            content = json.loads(read_bytes(path).decode(), object_pairs_hook=_once, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            if isinstance(error, InputError) and error.file:
                raise
            why = error.problem if isinstance(error, InputError) else str(error)
            raise InputError(
                f"expected a JSON file of a calibration: {why:.200}", file=name, remedy="fit again"
            ) from None
        return cls.from_json(content, file=name)


def _map_to_json(mapping: Any) -> dict[str, Any]:
    """Return the fields of a map: edges and classes by name, curves as knots."""
    if not isinstance(mapping, Learned):
        fields = dataclasses.fields(mapping)
        return {own.name: _field_to_json(getattr(mapping, own.name), own.name == "classes") for own in fields}
    model = mapping.model
    slopes = {own.name: {"mean": own.mean, "scale": own.scale, "slope": own.slope} for own in model.slopes}
    edges = dict(zip(EDGES, model.edges, strict=True))
    return {"level": model.level, "edges": edges, "features": slopes, "classes": dict(model.classes)}


def _field_to_json(value: Any, by_class: bool = False) -> Any:
    if isinstance(value, MonotoneCurve):
        return [[x, y] for x, y in zip(value.x, value.y, strict=True)]
    if by_class:
        return {name: _field_to_json(own) for name, own in value}
    if isinstance(value, tuple):
        return {edge: _field_to_json(own) for edge, own in zip(EDGES, value, strict=True)}
    return value


def _read_corners(entry: _JsonEntry) -> tuple[CornerMap, str]:
    make, readers = _CORNERS[entry.choice("method", tuple(_CORNERS))]
    entry.require("method", "target", "border", *readers)
    target = entry.choice("target", TARGETS)
    mapping = make(**{name: read(entry[name]) for name, read in readers.items()})
    if isinstance(mapping, Conformal):
        if not 0 < mapping.alpha < 1:
            entry["alpha"].fail(f"expected a number between 0 and 1, but got {mapping.alpha:g}")
        reach = box_reach(1 - mapping.alpha)
        if not math.isclose(mapping.factor * reach, mapping.reach, rel_tol=1e-9):
            entry["factor"].fail(f"expected reach / {reach:.6g}, but got {mapping.factor:g}")
    return mapping, target


def _read_labels(entry: _JsonEntry) -> LabelMap:
    make, readers = _LABELS[entry.choice("method", tuple(_LABELS))]
    entry.require("method", *readers)
    return make(**{name: read(entry[name]) for name, read in readers.items()})


class _JsonEntry:
    """A value of the file and its place in it."""

    def __init__(self, value: Any, place: str, file: str | None) -> None:
        self.value, self.place, self.file = value, place, file

    def fail(self, problem: str) -> NoReturn:
        raise InputError(problem, file=self.file, entry=self.place or None, remedy=REMEDY)

    def __getitem__(self, key: str | int) -> _JsonEntry:
        place = f"{self.place}[{key}]" if isinstance(key, int) else f"{self.place}.{key:.60}".lstrip(".")
        return _JsonEntry(self.value[key], place, self.file)

    def items(self) -> Iterator[tuple[str, _JsonEntry]]:
        self.mapping()
        return ((key, self[key]) for key in self.value)

    def mapping(self) -> Mapping[str, Any]:
        if not isinstance(self.value, dict):
            self.fail(f"expected an object, but got {self.value!r:.40}")
        return self.value

    def require(self, *keys: str) -> None:
        """Raise unless exactly these keys exist."""
        there = self.mapping()
        for key in keys:
            if key not in there:
                self.fail(f'expected a key "{key}"')
        for key in there:
            if key not in keys:
                self.fail(f"expected no key {key!r:.60}, only {', '.join(keys)}")

    def each(self, keys: tuple[str, ...]) -> list[_JsonEntry]:
        self.require(*keys)
        return [self[key] for key in keys]

    def choice(self, key: str, known: tuple[str, ...]) -> str:
        if key not in self.mapping():
            self.fail(f'expected a key "{key}"')
        value = self.value[key]
        if not isinstance(value, str) or value not in known:
            self[key].fail(f"expected one of {', '.join(known)}, but got {value!r:.40}")
        return value

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail(f"expected text, but got {self.value!r:.40}")
        return self.value

    def whole(self) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or abs(self.value) >= 1 << 63:
            self.fail(f"expected a whole number, but got {self.value!r:.40}")
        return self.value

    def text_or_whole(self) -> str | int:
        return self.value if isinstance(self.value, str) else self.whole()

    def number(self) -> float:
        number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        # Python compares integers with floats exactly; 10**300 passes the first test and fails the second.
        if not (number and abs(self.value) < 1e300 and abs(float(self.value)) < 1e300):
            self.fail(f"expected a number, but got {self.value!r:.40}")
        return float(self.value)

    def factor(self) -> float:
        value = self.number()
        if not 1 / LARGEST <= value <= LARGEST:
            self.fail(f"expected a number from {1 / LARGEST:g} to {LARGEST:g}, but got {value:g}")
        return value

    def logarithm(self) -> float:
        """Return the logarithm of a factor."""
        value, most = self.number(), math.log(LARGEST)
        if not abs(value) <= most:
            self.fail(f"expected a number from {-most:.4g} to {most:.4g}, but got {value:g}")
        return value

    def curve(self, *, above_zero: bool = False, most: float = LARGEST) -> MonotoneCurve:
        if not isinstance(self.value, list) or not self.value:
            self.fail(f"expected a list of [x, y], but got {self.value!r:.40}")
        knots = [self[at] for at in range(len(self.value))]
        for knot in knots:
            if not isinstance(knot.value, list) or len(knot.value) != 2:
                knot.fail(f"expected [x, y], but got {knot.value!r:.40}")
        x, y = (tuple(knot[axis].number() for knot in knots) for axis in (0, 1))
        least = 1 / LARGEST if above_zero else 0
        for at, knot in enumerate(knots):
            if at and not (x[at] > x[at - 1] and y[at] >= y[at - 1]):
                knot.fail("expected x to rise and y not to fall from knot to knot")
            if not least <= y[at] <= most:
                knot.fail(f"expected y from {least:g} to {most:g}, but got {y[at]:g}")
        return MonotoneCurve(x, y)


def _read_slopes(entry: _JsonEntry) -> tuple[Slope, ...]:
    names = feature_names(own_sigmas=any(name in SIGMA_FEATURES for name in entry.mapping()))
    slopes = []
    for name, own in zip(names, entry.each(names), strict=True):
        own.require("mean", "scale", "slope")
        slopes.append(Slope(name, own["mean"].number(), own["scale"].factor(), own["slope"].logarithm()))
    return tuple(slopes)


def _make_learned(level: float, edges: Any, features: tuple[Slope, ...], classes: Any) -> Learned:
    return Learned(StdModel(level, edges, features, classes))


Reader = Callable[[_JsonEntry], Any]


def _by_edge(read: Reader) -> Reader:
    return lambda entry: tuple(read(own) for own in entry.each(EDGES))


def _by_class(read: Reader) -> Reader:
    return lambda entry: tuple((name, read(own)) for name, own in entry.items())


_NUMBER, _FACTOR, _LOGARITHM = _JsonEntry.number, _JsonEntry.factor, _JsonEntry.logarithm
_STD_CURVE, _PRECISION = partial(_JsonEntry.curve, above_zero=True), partial(_JsonEntry.curve, most=1.0)

_CORNERS: dict[str, tuple[Callable[..., CornerMap], dict[str, Reader]]] = {
    "scale": (Scale, {"factor": _FACTOR}),
    "edge-scale": (EdgeScale, {"factors": _by_edge(_FACTOR)}),
    "class-scale": (ClassScale, {"others": _FACTOR, "classes": _by_class(_FACTOR)}),
    "isotonic": (RelativeCurves, {"curves": _by_edge(_STD_CURVE)}),
    "learned": (
        _make_learned,
        {
            "level": _LOGARITHM,
            "edges": _by_edge(_LOGARITHM),
            "features": _read_slopes,
            "classes": _by_class(_LOGARITHM),
        },
    ),
    "constant": (Constant, {"fraction": _FACTOR}),
    "conformal": (Conformal, {"factor": _FACTOR, "alpha": _NUMBER, "reach": _FACTOR}),
}
"""Constructor of each map of corners, and the reader of each of its entries."""

_LABELS: dict[str, tuple[Callable[..., LabelMap], dict[str, Reader]]] = {
    "none": (NoLabelMap, {}),
    "temperature": (Temperature, {"temperature": _FACTOR}),
    "isotonic": (ScoreCurves, {"others": _PRECISION, "classes": _by_class(_PRECISION)}),
}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a file; raise for duplicate keys, of which json would keep the last."""
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise InputError(f"the key {twice!r:.60} occurs twice")
    return result


def _refuse(constant: str) -> NoReturn:
    raise InputError(f"expected a finite number, but got {constant}")

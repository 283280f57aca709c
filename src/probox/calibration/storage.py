"""Calibrations as JSON files that people can read: written whole, and read strictly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from probox.calibration.corners import (
    ClassScale,
    Conformal,
    Constant,
    CornerMap,
    EdgeScale,
    Learned,
    RelativeCurves,
    Scale,
)
from probox.calibration.gaussians import box_reach
from probox.calibration.isotonic import Curve
from probox.calibration.labels import LabelMap, NoLabelMap, ScoreCurves, Temperature
from probox.calibration.record import TARGETS, Calibration
from probox.calibration.spread_features import SIGMA_FEATURES, feature_names
from probox.calibration.spread_law import Slope, SpreadLaw
from probox.errors import InputError
from probox.files.output import json_bytes, write_files
from probox.files.reading import Paths, file_head, read_bytes
from probox.files.replacing import Kind, check_replaceable
from probox.fusion.gaussian import BORDERS
from probox.measures.matched import EDGES
from probox.tables.arguments import expect_path
from probox.version import __version__

__all__ = ["KIND", "from_json", "load", "save", "to_json"]

FORMAT = "probox calibration 1"
"""What the file is and the version of its layout."""
LARGEST = 1e6
"""No factor is larger, none is smaller than one over it."""
REMEDY = "correct it, or fit again"

KIND = Kind("a calibration", lambda path: bool(re.search(rb'"format"\s*:\s*"probox calibration', file_head(path))))


def save(calibration: Calibration, path: Paths) -> None:
    """Write a calibration; a file that is there is replaced if it holds one."""
    expect_path(path)
    check_replaceable(path, KIND)
    text = json.dumps(to_json(calibration), indent=1, ensure_ascii=False, allow_nan=False)
    # A knot or the weights of a unit stand in one line. No text has a line break of its own, so none is touched.
    text = re.sub(r"\[\n([^\[\]{}\"]+)\n\s*\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    write_files({Path(path): json_bytes(Path(path), text.encode() + b"\n")})


def load(path: Paths) -> Calibration:
    """Return the calibration of a file."""
    expect_path(path)
    name = str(path)
    try:
        content = json.loads(read_bytes(path).decode(), object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError) and error.file:
            raise
        why = error.problem if isinstance(error, InputError) else str(error)
        raise InputError(f"is no JSON file of a calibration: {why:.200}", file=name, remedy="fit again") from None
    return from_json(content, file=name)


def to_json(calibration: Calibration) -> dict[str, Any]:
    """Return a calibration as what JSON can hold."""
    return {
        "format": FORMAT,
        "version": __version__,
        "corners": {"method": calibration.corners.method, "for": calibration.target, "border": calibration.border}
        | _corners(calibration.corners),
        "labels": {"method": calibration.labels.method} | _labels(calibration.labels),
        "classes": dict(calibration.classes),
        "origin": dict(calibration.origin),
    }


def _corners(mapping: CornerMap) -> dict[str, Any]:
    if isinstance(mapping, Scale):
        return {"factor": mapping.factor}
    if isinstance(mapping, EdgeScale):
        return {"factors": dict(zip(EDGES, mapping.factors, strict=True))}
    if isinstance(mapping, ClassScale):
        return {"others": mapping.others, "classes": dict(mapping.classes)}
    if isinstance(mapping, RelativeCurves):
        return {"curves": {edge: _knots(curve) for edge, curve in zip(EDGES, mapping.curves, strict=True)}}
    if isinstance(mapping, Conformal):
        return {"factor": mapping.factor, "alpha": mapping.alpha, "reach": mapping.reach}
    if isinstance(mapping, Learned):
        return _law(mapping.law)
    assert isinstance(mapping, Constant)
    return {"share": mapping.share}


def _law(law: SpreadLaw) -> dict[str, Any]:
    slopes = {own.name: {"mean": own.mean, "scale": own.scale, "slope": own.slope} for own in law.slopes}
    edges = dict(zip(EDGES, law.edges, strict=True))
    return {"level": law.level, "edges": edges, "features": slopes, "classes": dict(law.classes)}


def _labels(mapping: LabelMap) -> dict[str, Any]:
    if isinstance(mapping, Temperature):
        return {"temperature": mapping.temperature}
    if isinstance(mapping, ScoreCurves):
        return {"others": _knots(mapping.others), "classes": {name: _knots(curve) for name, curve in mapping.classes}}
    return {}


def _knots(curve: Curve) -> list[list[float]]:
    return [[x, y] for x, y in zip(curve.x, curve.y, strict=True)]


def from_json(content: Any, *, file: str | None = None) -> Calibration:
    """Return the calibration that `to_json` wrote; raise for the first wrong entry, by name."""
    whole = _Entry(content, "", file)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        given = content.get("format") if isinstance(content, dict) else None
        got = "a file without it" if given is None else f"{given!r:.60}"
        problem = f'expected a calibration with "format": "{FORMAT}", but got {got}'
        if isinstance(given, str) and given.startswith("probox calibration "):
            raise InputError(problem, file=file, remedy="use a newer probox, or fit again")
        whole.fail(problem)
    whole.require("format", "version", "corners", "labels", "classes", "origin")
    whole["version"].text()
    corners, target = _read_corners(whole["corners"])
    # Files from before there was a choice were fitted for PDQ with pinned edges.
    older = "pin" if target == "pdq" else "keep"
    border = whole["corners"].choice("border", BORDERS) if "border" in content["corners"] else older
    return Calibration(
        corners=corners,
        labels=_read_labels(whole["labels"]),
        target=target,
        border=border,
        classes=tuple((name, entry.whole()) for name, entry in whole["classes"].items()),
        origin=tuple((name, entry.text_or_whole()) for name, entry in whole["origin"].items()),
    )


def _read_corners(entry: _Entry) -> tuple[CornerMap, str]:
    method = entry.choice("method", tuple(_CORNER_KEYS))
    entry.require("method", "for", *_CORNER_KEYS[method], optional=("border",))
    target = entry.choice("for", TARGETS)
    if method == "scale":
        return Scale(entry["factor"].factor()), target
    if method == "edge-scale":
        x1, y1, x2, y2 = (own.factor() for own in entry["factors"].each(EDGES))
        return EdgeScale((x1, y1, x2, y2)), target
    if method == "class-scale":
        classes = tuple((name, own.factor()) for name, own in entry["classes"].items())
        return ClassScale(entry["others"].factor(), classes), target
    if method == "isotonic":
        c1, c2, c3, c4 = (own.curve(above_zero=True) for own in entry["curves"].each(EDGES))
        return RelativeCurves((c1, c2, c3, c4)), target
    if method == "constant":
        return Constant(entry["share"].factor()), target
    if method == "learned":
        return Learned(_read_law(entry)), target
    alpha, factor, reach = entry["alpha"].number(), entry["factor"].factor(), entry["reach"].factor()
    if not 0 < alpha < 1:
        entry["alpha"].fail(f"expected a number between 0 and 1, but got {alpha:g}")
    if not math.isclose(factor * box_reach(1 - alpha), reach, rel_tol=1e-9):
        entry["factor"].fail(f"expected reach / {box_reach(1 - alpha):.6g}, but got {factor:g}")
    return Conformal(factor, alpha, reach), target


def _read_law(entry: _Entry) -> SpreadLaw:
    x1, y1, x2, y2 = (own.logarithm() for own in entry["edges"].each(EDGES))
    features = entry["features"]
    names = feature_names(own_sigmas=any(name in SIGMA_FEATURES for name in features.mapping()))
    slopes = []
    for name, own in zip(names, features.each(names), strict=True):
        own.require("mean", "scale", "slope")
        slopes.append(Slope(name, own["mean"].number(), own["scale"].factor(), own["slope"].logarithm()))
    classes = tuple((name, own.logarithm()) for name, own in entry["classes"].items())
    return SpreadLaw(entry["level"].logarithm(), (x1, y1, x2, y2), tuple(slopes), classes)


_CORNER_KEYS: dict[str, tuple[str, ...]] = {
    "scale": ("factor",),
    "edge-scale": ("factors",),
    "class-scale": ("others", "classes"),
    "isotonic": ("curves",),
    "learned": ("level", "edges", "features", "classes"),
    "constant": ("share",),
    "conformal": ("factor", "alpha", "reach"),
}


def _read_labels(entry: _Entry) -> LabelMap:
    method = entry.choice("method", ("none", "temperature", "isotonic"))
    if method == "temperature":
        entry.require("method", "temperature")
        return Temperature(entry["temperature"].factor())
    if method == "isotonic":
        entry.require("method", "others", "classes")
        classes = tuple((name, own.curve(most=1.0)) for name, own in entry["classes"].items())
        return ScoreCurves(entry["others"].curve(most=1.0), classes)
    entry.require("method")
    return NoLabelMap()


class _Entry:
    """A value of the file and where it stands."""

    def __init__(self, value: Any, place: str, file: str | None) -> None:
        self.value, self.place, self.file = value, place, file

    def fail(self, problem: str) -> NoReturn:
        raise InputError(problem, file=self.file, entry=self.place or None, remedy=REMEDY)

    def __getitem__(self, key: str) -> _Entry:
        return _Entry(self.value[key], f"{self.place}.{key:.60}".lstrip("."), self.file)

    def items(self) -> Iterator[tuple[str, _Entry]]:
        self.mapping()
        return ((key, self[key]) for key in self.value)

    def mapping(self) -> Mapping[str, Any]:
        if not isinstance(self.value, dict):
            self.fail(f"expected an object, but got {self.value!r:.40}")
        return self.value

    def require(self, *keys: str, optional: tuple[str, ...] = ()) -> None:
        """Raise unless these are the keys, each there and no other, but for those that may be there."""
        there = self.mapping()
        for key in keys:
            if key not in there:
                self.fail(f'expected a key "{key}"')
        for key in there:
            if key not in keys and key not in optional:
                self.fail(f"expected no key {key!r:.60}, only {', '.join((*keys, *optional))}")

    def each(self, keys: tuple[str, ...]) -> list[_Entry]:
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
        # Integers are compared exactly, and 10^300 is below 1e300 until it is made a float.
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

    def curve(self, *, above_zero: bool = False, most: float = LARGEST) -> Curve:
        if not isinstance(self.value, list) or not self.value:
            self.fail(f"expected a list of [x, y], but got {self.value!r:.40}")
        for at, knot in enumerate(self.value):
            if not isinstance(knot, list) or len(knot) != 2:
                _Entry(knot, f"{self.place}[{at}]", self.file).fail(f"expected [x, y], but got {knot!r:.40}")
        x = [_Entry(knot[0], f"{self.place}[{at}][0]", self.file).number() for at, knot in enumerate(self.value)]
        y = [_Entry(knot[1], f"{self.place}[{at}][1]", self.file).number() for at, knot in enumerate(self.value)]
        for at in range(len(x)):
            here = _Entry(None, f"{self.place}[{at}]", self.file)
            if at and not (x[at] > x[at - 1] and y[at] >= y[at - 1]):
                here.fail("expected x to rise and y not to fall from knot to knot")
            if not 0 <= y[at] <= most or (above_zero and y[at] < 1 / LARGEST):
                least = 1 / LARGEST if above_zero else 0
                here.fail(f"expected y from {least:g} to {most:g}, but got {y[at]:g}")
        return Curve(tuple(x), tuple(y))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a file; a key that stands there twice is a mistake."""
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise InputError(f"the key {twice!r:.60} stands there twice")
    return result


def _refuse(constant: str) -> NoReturn:
    raise InputError(f"{constant} is no number")

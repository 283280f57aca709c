"""Calibration files: the same after reading, and every wrong entry named."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probox import InputError
from probox.calibration import Calibration
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
)
from probox.calibration.label_maps import LabelMap, NoLabelMap, ScoreCurves, Temperature
from probox.calibration.std_regression import Slope, StdModel, feature_names

CURVE = MonotoneCurve((0.01, 0.1 / 3), (0.02, 0.5))


def law(own_sigmas: bool) -> StdModel:
    slopes = [Slope(name, 0.1 * at, 1 / (3 + at), -0.7 / (1 + at)) for at, name in enumerate(feature_names(own_sigmas))]
    return StdModel(-2.0 / 3, (0.1, -0.2, 1 / 7, 0.0), tuple(slopes), (("cup", 0.3), ("Ümlaut\n", -0.1)))


CORNERS: list[CornerMap] = [
    Scale(1 / 3),
    EdgeScale((1.0, 2.0, 3.0, 0.1)),
    ClassScale(1.5, (("cup", 0.7), ("Ümlaut\n", 2.0))),
    RelativeCurves((CURVE, CURVE.scale_by(0.3), MonotoneCurve((0.5,), (0.25,)), CURVE)),
    Constant(0.07),
    Conformal(3.1 / box_reach(0.9), 0.1, 3.1),
    Learned(law(own_sigmas=False)),
    Learned(law(own_sigmas=True)),
]
LABELS: list[LabelMap] = [
    NoLabelMap(),
    Temperature(1.25),
    ScoreCurves(CURVE, (("cup", MonotoneCurve((0.0, 0.5), (0.0, 1.0))),)),
]


@pytest.mark.parametrize("corners", CORNERS, ids=lambda mapping: mapping.method)
@pytest.mark.parametrize("labels", LABELS, ids=lambda mapping: mapping.method)
@pytest.mark.parametrize("name", ["cal.json", "cal.json.gz"])
def test_a_file_gives_back_every_bit(corners: CornerMap, labels: LabelMap, name: str, tmp_path: Path) -> None:
    calibration = Calibration(
        corners=corners, labels=labels, target="nll", classes=(("cup", 3), ("dog", 90)), origin=(("images", 7),)
    )
    calibration.save(tmp_path / name)
    assert Calibration.load(tmp_path / name) == calibration
    assert Calibration.from_json(json.loads(json.dumps(calibration.to_json()))) == calibration


@pytest.mark.parametrize("border", ["keep", "pin"])
def test_a_file_says_what_happens_at_borders(border: str) -> None:
    content = Calibration(corners=Scale(2.0), target="pdq", border=border).to_json()
    assert content["corners"]["border"] == border
    assert Calibration.from_json(content).border == border


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    Calibration(corners=CORNERS[0], labels=LABELS[1]).save(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert Calibration.load(path).labels == LABELS[1]


def test_a_knot_stands_in_a_line(tmp_path: Path) -> None:
    Calibration(corners=CORNERS[3]).save(tmp_path / "c.json")
    assert "   [0.01, 0.02],\n" in (tmp_path / "c.json").read_text()


def test_names_that_look_like_numbers_stay(tmp_path: Path) -> None:
    strange = (("[ 1 2 ]", 1), ("[\n1,\n2\n]", 2))
    Calibration(corners=Scale(1.0), classes=strange).save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json").classes == strange


def written() -> dict[str, Any]:
    return Calibration(corners=CORNERS[3], labels=LABELS[2], classes=(("cup", 3),), origin=(("images", 7),)).to_json()


def put(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for key in path[:-2]:
            content = content[key]
        content[path[-2]] = path[-1]

    return change


def drop(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for key in path[:-1]:
            content = content[key]
        del content[path[-1]]

    return change


def learned(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Return what puts a learned map into a file, and then changes something in it."""

    def change_both(content: dict[str, Any]) -> None:
        content["corners"] = Calibration(corners=CORNERS[-1]).to_json()["corners"]
        change(content)

    return change_both


WRONG = {
    "corners.border: expected one of keep, pin, but got 'clip'": put("corners", "border", "clip"),
    "corners: expected no key 'network', only .* classes": learned(put("corners", "network", [])),
    'corners: expected a key "level"': learned(drop("corners", "level")),
    "corners.level: expected a number from -13.82 to 13.82, but got 14": learned(put("corners", "level", 14)),
    "corners.level: expected a number, but got '-1'": learned(put("corners", "level", "-1")),
    'corners.edges: expected a key "x2"': learned(drop("corners", "edges", "x2")),
    "corners.edges.y1: expected a number, but got None": learned(put("corners", "edges", "y1", None)),
    "corners.features: expected an object, but got \\[\\]": learned(put("corners", "features", [])),
    'corners.features: expected a key "own std"': learned(drop("corners", "features", "own std")),
    'corners.features: expected a key "score"': learned(drop("corners", "features", "score")),
    "corners.features: expected no key 'colour'": learned(
        put("corners", "features", "colour", {"mean": 0, "scale": 1, "slope": 0})
    ),
    'corners.features.score: expected a key "scale"': learned(drop("corners", "features", "score", "scale")),
    "corners.features.score.scale: expected a number from 1e-06": learned(
        put("corners", "features", "score", "scale", 0)
    ),
    "corners.features.score.mean: expected a number, but got True": learned(
        put("corners", "features", "score", "mean", True)
    ),
    "corners.features.score.mean: expected a number, but got 1000": learned(
        put("corners", "features", "score", "mean", 10**300)
    ),
    "corners.features.side along.slope: expected a number from -13.82": learned(
        put("corners", "features", "side along", "slope", -99)
    ),
    "corners.classes.cup: expected a number, but got \\[\\]": learned(put("corners", "classes", "cup", [])),
    "corners: expected no key 'factor', only method, target, border, level": learned(put("corners", "factor", 1)),
    'expected a calibration with "format": "probox calibration 2", but got 2': put("format", 2),
    "version: expected text, but got 7": put("version", 7),
    'expected a key "labels"': drop("labels"),
    "expected no key 'more', only format": put("more", 1),
    "classes.cup: expected a whole number, but got 1.5": put("classes", "cup", 1.5),
    "origin.images: expected a whole number, but got None": put("origin", "images", None),
    "classes: expected an object, but got 3": put("classes", 3),
    'corners: expected a key "method"': drop("corners", "method"),
    "corners.method: expected one of scale, edge-scale, .* but got 'platt'": put("corners", "method", "platt"),
    "corners.target: expected one of pdq, nll, coverage, but got \\['pdq'\\]": put("corners", "target", ["pdq"]),
    "corners: expected no key 'factor'": put("corners", "factor", 1),
    'corners.curves: expected a key "x2"': drop("corners", "curves", "x2"),
    "corners.curves.x1: expected a list of \\[x, y\\], but got \\[\\]": put("corners", "curves", "x1", []),
    "corners.curves.x1\\[0\\]: expected \\[x, y\\], but got 3": put("corners", "curves", "x1", [3]),
    "x1\\[0\\]\\[1\\]: expected a number, but got True": put("corners", "curves", "x1", [[0, True]]),
    "x1\\[1\\]: expected x to rise and y not to fall": put("corners", "curves", "x1", [[0, 1], [0, 2]]),
    "y1\\[1\\]: expected x to rise and y not to fall": put("corners", "curves", "y1", [[0, 1], [1, 0.5]]),
    "x1\\[0\\]: expected y from 1e-06 to 1e\\+06, but got 0": put("corners", "curves", "x1", [[0, 0]]),
    "labels.others\\[0\\]: expected y from 0 to 1, but got 1.1": put("labels", "others", [[0, 1.1]]),
    "labels.classes.cup: expected a list": put("labels", "classes", "cup", 1),
    "labels.method: expected one of none, temperature, isotonic": put("labels", "method", None),
    "corners.factor: expected a number from 1e-06 to 1e\\+06, but got -1": put(
        "corners", {"method": "scale", "target": "pdq", "border": "keep", "factor": -1}
    ),
    "corners.factors.y2: expected a number, but got '1'": put(
        "corners",
        {"method": "edge-scale", "target": "pdq", "border": "keep", "factors": {"x1": 1, "y1": 1, "x2": 1, "y2": "1"}},
    ),
    "corners.fraction: expected a number, but got None": put(
        "corners", {"method": "constant", "target": "pdq", "border": "keep", "fraction": None}
    ),
    "corners.alpha: expected a number between 0 and 1, but got 1": put(
        "corners", {"method": "conformal", "target": "coverage", "border": "keep", "alpha": 1, "factor": 1, "reach": 2}
    ),
    "corners.factor: expected reach / 2.22627, but got 1": put(
        "corners",
        {"method": "conformal", "target": "coverage", "border": "keep", "alpha": 0.1, "factor": 1, "reach": 2},
    ),
    "labels.temperature: expected a number from": put("labels", {"method": "temperature", "temperature": 0}),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_entries_are_named(message: str, tmp_path: Path) -> None:
    content = copy.deepcopy(written())
    WRONG[message](content)
    path = tmp_path / "c.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message) as caught:
        Calibration.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).endswith("; correct it, or fit again")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected JSON, but the file is empty"),
        ("[", "expected a JSON file of a calibration"),
        ('{"a": NaN}', "expected a finite number, but got NaN"),
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ("[" * 100_000, "expected a JSON file of a calibration"),
        ("[]", 'expected a calibration with "format": "probox calibration 2", but got a file without it'),
        ('{"images": []}', 'expected a calibration with "format": "probox calibration 2", but got a file without it'),
        ("1" * 5000, "expected a JSON file of a calibration"),
    ],
)
def test_other_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        Calibration.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < 500


def test_only_calibrations_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"mine": 1}')
    with pytest.raises(InputError, match="exists and does not contain a calibration; choose another name"):
        Calibration(corners=Scale(1.0)).save(path)
    assert path.read_text() == '{"mine": 1}'
    path.unlink()
    Calibration(corners=Scale(1.0)).save(path)
    Calibration(corners=Scale(2.0)).save(path)
    assert Calibration.load(path).corners == Scale(2.0)
    with pytest.raises(InputError, match="no such file"):
        Calibration.load(tmp_path / "none.json")


def test_another_format_asks_for_another_fit(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"format": "probox calibration 1"}')
    with pytest.raises(InputError, match="but got 'probox calibration 1'; fit again with this version of probox"):
        Calibration.load(path)

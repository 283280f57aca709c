"""Results that were not measured alike say so wherever they stand side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.in_process import run

from probox import Convention, Evaluation, evaluate
from probox.demo import Demo
from probox.evaluation.text import label_results
from probox.explorer.payload import index_payload
from probox.plots import Plots


@pytest.fixture(scope="module")
def ways(demo: Demo) -> dict[str, Evaluation]:
    found = demo.detectors["probabilistic"]
    whole = evaluate(demo.truth, found)
    paper = Convention.preset("paper", label_weight=0.25)
    return {
        "plain": whole,
        "deterministic": whole.at_threshold(0.5),
        "paper": evaluate(demo.truth, found, convention=paper),
        "map": evaluate(demo.truth, found, measures=("map",)),
        "first": whole.select_images(demo.truth.image_ids[:3]),
        "last": whole.select_images(demo.truth.image_ids[-3:]),
    }


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["plain"], ["plain"]),
        (["plain", "deterministic"], ["plain (all labels)", "deterministic (> 0.5)"]),
        (["plain", "paper"], ["plain (reference)", "paper (paper, label weight 0.25)"]),
        (["plain", "map"], ["plain (pdq and map and lrp)", "map (map)"]),
        (["plain", "first"], ["plain (12 images)", "first (3 images)"]),
        (["first", "last"], ["first (3 images from 1 to 3)", "last (3 images from 10 to 12)"]),
        (
            ["deterministic", "paper", "first"],
            [
                "deterministic (reference, > 0.5, 12 images)",
                "paper (paper, label weight 0.25, all labels, 12 images)",
                "first (reference, all labels, 3 images)",
            ],
        ),
    ],
)
def test_labels(ways: dict[str, Evaluation], names: list[str], expected: list[str]) -> None:
    assert list(label_results({name: ways[name] for name in names})) == expected


def test_plots_carry_labels(ways: dict[str, Evaluation]) -> None:
    axes = Plots({"ssd": ways["plain"], "yolo": ways["deterministic"]}).thresholds()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ssd (all labels)", "yolo (> 0.5)"]


def test_the_page_carries_labels(ways: dict[str, Evaluation], tmp_path: Path) -> None:
    for name in ("plain", "paper"):
        ways[name].save(tmp_path / "results" / name)
    assert run("report", tmp_path / "results", "--out", tmp_path / "page")[0] == 0
    text = (tmp_path / "page" / "data" / "index.js").read_text()
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    assert [result["name"] for result in index["results"]] == ["paper (paper, label weight 0.25)", "plain (reference)"]
    assert index["results"][0]["about"].startswith("convention: paper, label weight 0.25")


def test_warnings_are_on_the_page(ways: dict[str, Evaluation], demo: Demo) -> None:
    nothing = evaluate(demo.truth, demo.detectors["deterministic"].select([]))
    (result,) = index_payload({"none": nothing}, [""] * 12, 50, [""] * 12)["results"]
    assert "no detections left to score" in result["about"]

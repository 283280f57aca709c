"""The picture of an example has its detection and its object, all that the caption speaks of, and nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.explorer.browser import Browser

import probox
from probox import Evaluation
from probox.pictures.example_pictures import crop_around, draw_example, example_page, view_of_example
from probox.tables.results import Verdict


def test_a_view_has_the_two_that_the_example_is_about(results: dict[str, Evaluation]) -> None:
    result = results["probabilistic"]
    told = list(probox.example_detections(result, 3))
    assert told
    for example in told:
        view = view_of_example(result, example)
        assert (len(view.detections), len(view.objects), len(view.masks), len(view.heatmaps)) == (1, 1, 1, 1)
        assert (len(view.found_masks), len(view.has_mask)) == (1, 1)
        np.testing.assert_array_equal(view.detections.boxes[0], result.detections.boxes[example.detection])
        np.testing.assert_array_equal(view.objects.boxes[0], result.objects.boxes[example.object])
        matched = result.detections.partners[example.detection] == example.object
        assert view.detections.partners.tolist() == view.objects.partners.tolist() == [0 if matched else -1]
        assert (view.detections.verdicts[0] == Verdict.TP) == matched


def test_a_pair_that_pdq_does_not_match_is_none_in_the_view(results: dict[str, Evaluation]) -> None:
    result = results["probabilistic"]
    (example, *_) = probox.example_detections(result, 1)
    there = result.objects.image_rows == result.objects.image_rows[example.object]
    other = next(row for row in np.flatnonzero(there).tolist() if row != example.object)
    assert view_of_example(result, dataclasses.replace(example, object=other)).detections.partners.tolist() == [-1]


def test_the_part_that_is_shown_holds_two_sigmas_and_stays_in_the_image(results: dict[str, Evaluation]) -> None:
    result = results["probabilistic"]
    (example, *_) = probox.example_detections(result, 1)
    view = view_of_example(result, example)
    for sigma in (1.0, 60.0, 5000.0):
        spread = np.broadcast_to(np.eye(2) * sigma**2, (1, 2, 2, 2)).astype(view.detections.covariances.dtype)
        wide = dataclasses.replace(view, detections=view.detections.replace(covariances=spread))
        x1, y1, x2, y2 = crop_around(wide)
        edge = np.array([view.width, view.height]) - 0.5
        boxes = np.stack([view.detections.boxes[0], view.objects.boxes[0]])
        low = np.minimum(view.detections.boxes[0, :2] - 2 * sigma, boxes[:, :2].min(axis=0))
        high = np.maximum(view.detections.boxes[0, 2:] + 2 * sigma, boxes[:, 2:].max(axis=0))
        assert (np.array([x1, y1]) >= -0.5).all()
        assert (np.array([x2, y2]) <= edge).all()
        assert (np.array([x1, y1]) <= np.maximum(low, -0.5)).all()
        assert (np.array([x2, y2]) >= np.minimum(high, edge)).all()
        assert (x2 - x1 < view.width) or sigma > 1.0  # it is cut out


@pytest.fixture(scope="module")
def window(chromium: Browser, results: dict[str, Evaluation], tmp_path_factory: pytest.TempPathFactory) -> Browser:
    folder = tmp_path_factory.mktemp("page")
    (example, *_) = probox.example_detections(results["probabilistic"], 1)
    draw_example(view_of_example(results["probabilistic"], example), caption=example.caption).figure.savefig(
        folder / "one.png"
    )
    (folder / "index.html").write_bytes(example_page([(example, "one.png")], "Examples", []))
    chromium.driver.get((folder / "index.html").resolve().as_uri())
    return chromium


@pytest.mark.slow
@pytest.mark.parametrize(("width", "words"), [(320, True), (390, True), (1300, False)])
def test_captions_are_words_of_the_page_where_pictures_are_small(window: Browser, width: int, words: bool) -> None:
    window.resize(width, 844)
    assert window.js("return document.documentElement.scrollWidth") <= width
    assert ("overconfident: the" in window.js("return document.querySelector('figcaption').innerText")) is words
    assert window.js("return document.querySelector('details').offsetHeight > 0") is not words


@pytest.mark.slow
def test_a_caption_is_there_once_to_be_found(window: Browser) -> None:
    window.resize(1300, 844)
    window.js("document.querySelector('details').open = true")
    shown = window.js("return document.body.innerText")
    assert shown.count("overconfident: the") == 1

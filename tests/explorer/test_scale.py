"""Real data at full size: what a report weighs, how it opens and scrolls."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from tests.explorer.browser import Browser, summary_cell

import probox
from probox import Detections, Evaluation, GroundTruth
from probox.explorer.page import write_report


def weight(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def surer_than(path: Path, truth: GroundTruth, score: float, target: Path) -> Detections:
    """Return the COCO results of the truth's images with at least this score."""
    ids = set(truth.image_ids.tolist())
    with gzip.open(path) as file:
        kept = [entry for entry in json.load(file) if entry["image_id"] in ids and entry["score"] >= score]
    target.write_text(json.dumps(kept))
    return probox.read_detections(target, truth)


@pytest.mark.slow
def test_report_of_three_real_detectors_with_photos(coco_dir: Path, tmp_path: Path, browser: Browser) -> None:
    truth = probox.read_truth(coco_dir / "val2017_masks_206.json")
    found = {
        name: surer_than(coco_dir / "results" / f"{name}_2881.json.gz", truth, 0.05, tmp_path / f"{name}.json")
        for name in ("ssdlite_mbv2", "yolox_nano")
    }
    found["nanodet"] = probox.read_detections(coco_dir / "results" / "nanodet_m_416_206.rvc1.json.gz", truth)
    results = {name: probox.evaluate(truth, table) for name, table in found.items()}
    page, notes = write_report(results, tmp_path / "r", images=coco_dir / "images")
    assert notes == ()
    browser.open(page)
    total = results["nanodet"].at_threshold(0.3).summary()
    browser.choose("#exact", "0.3")
    assert summary_cell(browser, 2, "PDQ") == f"{100 * total['PDQ']:.2f}"


@pytest.fixture(scope="module")
def all_of_val2017(coco_dir: Path) -> Evaluation:
    """Return all 5,000 images with one jittered detection per object, corners of 1 to 15 px."""
    truth = probox.read_truth(coco_dir / "val2017_boxes.json")
    rng = np.random.default_rng(0)
    sigma = rng.uniform(1, 15, len(truth))
    corners = truth.boxes + rng.normal(0, 1, (len(truth), 4)) * sigma[:, None]
    boxes = np.concatenate([corners[:, :2], np.maximum(corners[:, 2:], corners[:, :2] + 1)], axis=1)
    score = rng.beta(5, 2, len(truth))
    probs = np.zeros((len(truth), len(truth.classes)), np.float32)
    probs[np.arange(len(truth)), truth.labels] = score
    correlated = np.array([[1.0, 0.5], [0.5, 1.0]])
    found = Detections(
        classes=truth.classes,
        image_ids=truth.image_ids[truth.image_rows],
        boxes=boxes,
        label_probs=probs,
        covariances=sigma[:, None, None, None] ** 2 * np.stack([correlated, correlated]),
    )
    return probox.evaluate(truth, found, convention=probox.Convention(box_truth=True))


@pytest.mark.slow
def test_report_of_all_of_val2017(all_of_val2017: Evaluation, tmp_path: Path, browser: Browser) -> None:
    page, _ = write_report({"jittered": all_of_val2017}, tmp_path / "r")
    assert weight(page.parent) < 40e6
    browser.open(page)

    loaded = len([address for address in browser.requests() if "chunk-" in address])
    assert loaded < 10  # of a hundred: what is not looked at is not loaded
    assert scroll(browser) < 100  # however many images, only those in sight exist
    browser.wait(lambda: painted(browser))
    browser.choose("#exact", "0.75")
    expected = all_of_val2017.at_threshold(0.75).summary()
    assert browser.text('#summary td[data-column="PDQ"]') == f"{100 * expected['PDQ']:.2f}"

    browser.choose("#exact", "")
    browser.click('#show button[value="objects"]')
    browser.wait(lambda: browser.text("#found").endswith("The first 5,000 are shown."))
    assert 0 < scroll(browser) < 150


def scroll(browser: Browser) -> int:
    """Scroll through the gallery for 120 frames; return how many tiles exist then."""
    return int(
        browser.driver.execute_async_script(
            """
            const done = arguments[0];
            let frames = 0;
            document.getElementById('gallery').scrollIntoView({ behavior: 'instant' });
            const step = () => {
              window.scrollBy({ top: 120, behavior: 'instant' });
              if (++frames < 120) return requestAnimationFrame(step);
              done(document.querySelectorAll('.tile').length);
            };
            requestAnimationFrame(step);
            """
        )
    )


def painted(browser: Browser) -> bool:
    """Return whether every tile in sight shows a box: some pixel of it is clearly blue."""
    return bool(
        browser.js(
            """
            const seen = [...document.querySelectorAll('.tile canvas')].filter((canvas) => {
              const box = canvas.getBoundingClientRect();
              return box.bottom > 0 && box.top < innerHeight;
            });
            return seen.length > 3 && seen.every((canvas) => {
              const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
              copy.canvas.width = canvas.width;
              copy.canvas.height = canvas.height;
              copy.drawImage(canvas, 0, 0);
              const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
              for (let i = 0; i < data.length; i += 4) if (data[i + 2] - data[i] > 100) return true;
              return false;
            });
            """
        )
    )

"""What the page is told: safe in a script, small, and nothing lost."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import random_mask, random_world, with_box_masks

import probox
from probox import Evaluation, evaluate
from probox.demo import make_demo
from probox.explorer.page import constants
from probox.explorer.payload import box_intervals, chunk_payloads, encoded_runs, index_payload, to_script_json
from probox.tables.masks import Masks

ASSETS = Path(probox.__file__).parent / "explorer" / "assets"


def decoded(text: str, box: list[int]) -> list[tuple[int, int, int]]:
    """Read runs as the page does, written from the format's description."""
    data = list(base64.b64decode(text))
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value, shift = 0, 0
    runs, y, begin, length = [], box[1], box[0], 0
    for step, across, longer in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        y += step
        begin += -(across + 1) // 2 if across % 2 else across // 2
        length += -(longer + 1) // 2 if longer % 2 else longer // 2
        runs.append((y, begin, begin + length))
    return runs


@given(st.integers(0, 2**32 - 1))
def test_runs_come_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = int(rng.integers(1, 60)), int(rng.integers(1, 700))
    arrays = [random_mask(rng, height, width) for _ in range(int(rng.integers(1, 5)))]
    masks = Masks.from_arrays(arrays)
    for row, text in enumerate(encoded_runs(masks)):
        begin, end = masks.offsets[row : row + 2]
        assert bool(text) == (end > begin)
        if text:
            assert decoded(text, masks.boxes[row].tolist()) == [tuple(run) for run in masks.runs[begin:end].tolist()]


@given(st.text())
def test_no_text_can_end_a_script(text: str) -> None:
    told = to_script_json({text: text})
    assert json.loads(told) == {text: text}
    for sign in "<>&\u2028\u2029":
        assert sign not in told


@given(st.integers(0, 2**32 - 1))
def test_chunks_hold_every_row_once(seed: int) -> None:
    truth, found = random_world(seed, heatmaps=False)
    result = probox.evaluate(truth, found)
    images = [image for chunk in chunk_payloads({"a": result, "b": result}, result.masks, 2) for image in chunk]
    assert len(images) == len(result.dataset)
    objects = [row for image in images for row in image["o"]]
    np.testing.assert_array_equal([row[:4] for row in objects], result.masks.boxes if objects else [])
    for number in range(2):
        begin = 0
        for image, count in zip(images, np.bincount(result.detections.image_rows, minlength=len(images)), strict=True):
            rows = np.frombuffer(base64.b64decode(image["d"][number]), "<f4").reshape(count, -1 if count else 4)
            table = result.detections.take(np.arange(begin, begin + count))
            covariances = table.covariances[:, :, [0, 0, 1], [0, 1, 1]].reshape(count, 6)
            assert rows.shape[1] == (10 if covariances.any() else 4)
            np.testing.assert_allclose(rows[:, :4], table.boxes, rtol=1e-6)
            np.testing.assert_allclose(rows[:, 4:], covariances[:, : rows.shape[1] - 4], rtol=1e-6)
            begin += count
        assert begin == len(result.detections)


def test_index_is_plain_json(results: dict[str, Evaluation]) -> None:
    index = index_payload(results, [""] * 12, 50, [f"{n}.jpg" for n in range(12)])
    told = json.loads(to_script_json(index))
    assert [result["name"] for result in told["results"]] == ["deterministic", "probabilistic"]
    assert told["results"][1]["whole"]["mAP"] == round(results["probabilistic"].summary()["mAP"], 12)
    confidence = np.frombuffer(base64.b64decode(told["results"][0]["detections"]["confidence"][1]), "<f4")
    np.testing.assert_array_equal(confidence, results["deterministic"].detections.confidences)


def test_every_result_tells_its_convention() -> None:
    truth, found = random_world(3, heatmaps=False)
    results = {name: probox.evaluate(truth, found, convention=name) for name in ("reference", "paper")}
    index = index_payload(results, [""] * len(truth.image_ids), 2, truth.dataset.file_names)
    for told, result in zip(index["results"], results.values(), strict=True):
        assert probox.Convention.from_dict(told["convention"]) == result.recorded_convention


def test_the_script_types_no_constant_of_pythons() -> None:
    script = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ASSETS.glob("*.js")))
    markup = (ASSETS / "explorer.html").read_text(encoding="utf-8")
    told = constants()
    for name in told["SIZES"]:
        assert f'"{name}"' not in script
        assert f">{name}</option>" not in markup
    for name in told["QUALITIES"]:
        assert f">{name}</option>" not in markup
    for number in ("0.0027", "3.439", "1e-14", "1e-8", "% 8"):
        assert number not in script


def test_intervals_of_map_of_masks() -> None:
    demo = make_demo()
    result = evaluate(demo.truth, with_box_masks(demo.truth, demo.detectors["probabilistic"]), measures="map-mask")
    interval = result.intervals()["mask_mAP"]
    assert box_intervals(result)["mask_mAP"] == [interval.low, interval.high]

"""The examples of docs/formats are files that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from tests.readers import read_coco, read_coco_results, read_rvc1, read_rvc1_truth

from .rvc1.test_png import encode

PAGES = Path(__file__).resolve().parents[2] / "docs" / "formats"


def test_examples(tmp_path: Path) -> None:
    written = "".join(page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md")))
    blocks = dict(re.findall(r"```json (\S+)\n(.*?)```", written, flags=re.DOTALL))
    assert set(blocks) == {"truth.json", "labels.json", "results.json", "rvc1.json"}
    for name, text in blocks.items():
        (tmp_path / name).write_text(text)
    truth = read_coco(tmp_path / "truth.json")
    assert (len(truth), truth.masks.pixels.tolist()) == (3, [25, 24, 25])
    results = read_coco_results(tmp_path / "results.json", truth)
    assert len(results) == 2
    assert results.covariances is not None
    assert len(read_rvc1(tmp_path / "rvc1.json", truth)) == 2
    sequence = tmp_path / "gt" / "000000"
    sequence.mkdir(parents=True)
    (tmp_path / "labels.json").rename(sequence / "labels.json")
    pixels = np.full((4, 5, 3), 10, np.uint16)
    for name in ("000000.png", "000001.png"):
        (sequence / name).write_bytes(encode(pixels, 2, 8, [1] * 4))
    challenge = read_rvc1_truth(sequence.parent)
    assert [challenge.classes[at] for at in challenge.labels] == ["television"]

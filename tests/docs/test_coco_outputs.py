"""What pages show of COCO's images is what comes out, where its data is at hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import probox

ROOT = Path(__file__).resolve().parents[2]


def shown(page: str, first: str) -> list[str]:
    """Return the block of text of a page that begins with a word, cut where it has dots, as words."""
    (block,) = re.findall(rf"^```text\n( *{re.escape(first)}.*?)^```", (ROOT / page).read_text("utf-8"), re.M | re.S)
    return [" ".join(part.split()) for part in block.split("\n...\n")]


@pytest.fixture(scope="module")
def truth(coco_dir: Path) -> probox.GroundTruth:
    return probox.read_truth(coco_dir / "val2017_masks_206.json")


@pytest.fixture(scope="module")
def nanodet(coco_dir: Path, truth: probox.GroundTruth) -> probox.Evaluation:
    found = probox.read_detections(coco_dir / "results" / "nanodet_m_416_206.rvc1.json.gz", truth)
    return probox.evaluate(truth, found)


@pytest.mark.slow
def test_the_verdict_of_the_diagnosis(nanodet: probox.Evaluation) -> None:
    said = " ".join(str(nanodet.diagnose()).split())
    (verdict,) = shown("docs/diagnosis.md", "- Underconfident")
    assert verdict in said


@pytest.mark.slow
def test_the_comparison(coco_dir: Path, truth: probox.GroundTruth) -> None:
    files = {"ssdlite": "ssdlite_mbv2_2881.json.gz", "yolox": "yolox_nano_2881.json.gz"}
    results = {
        name: probox.evaluate(truth, probox.read_detections(coco_dir / "results" / file, truth), label_threshold=0.3)
        for name, file in files.items()
    }
    said = " ".join(str(probox.compare(results)).split())
    parts = shown("docs/comparing.md", "ssdlite")
    assert len(parts) == 2
    for part in parts:
        assert part in said

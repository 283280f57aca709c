"""Real detectors on COCO val2017: pycocotools' numbers, on the whole (kept here) and on a part (computed)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.amounts import others_slow

from probox import Detections, GroundTruth
from probox.formats import read_detections, read_truth
from probox.measures.boxes import average_precision

# pycocotools 2.0.11 on the whole files; it takes about 20 seconds for each.
PYCOCOTOOLS = {
    "ssdlite_mbv2": [
        0.2316477318543792, 0.37585448433399027, 0.2406161776214102, 0.01499126945885815, 0.1140518500285839,
        0.4925464268537126, 0.21756112946860873, 0.3059644722804436, 0.3212191286927817, 0.032649511573335524,
        0.22048058564855313, 0.6259482052808564,
    ],
    "yolox_nano": [
        0.21361188053306396, 0.3561074669013833, 0.21954980980877953, 0.04519342118706658, 0.18500100483276002,
        0.3546442022070449, 0.20694995815318748, 0.32543265337522503, 0.3465307737647065, 0.09022413316020467,
        0.33568453794897246, 0.5342972269160421,
    ],
    "nanodet_m_416": [
        0.17940187387622022, 0.31816481743789765, 0.17526957725038328, 0.04228295661517412, 0.16399942734204323,
        0.2939995418849351, 0.18790650585147398, 0.30884763859337766, 0.32887332019489757, 0.09741505789880743,
        0.32934336203837494, 0.5039607515805207,
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def truth(coco_dir: Path) -> GroundTruth:
    ids = json.loads((coco_dir / "subset_2881_image_ids.json").read_text())
    return read_truth(coco_dir / "val2017_boxes.json").select_images(ids)


@pytest.fixture(scope="module", params=others_slow(sorted(PYCOCOTOOLS, reverse=True)))
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def found(coco_dir: Path, truth: GroundTruth, name: str) -> Detections:
    return read_detections(coco_dir / "results" / f"{name}_2881.json.gz", truth)


def test_twelve_numbers_on_the_whole(truth, found, name):
    ours = list(average_precision(truth, found).summary().values())
    np.testing.assert_allclose(ours, PYCOCOTOOLS[name], rtol=0, atol=1e-12)

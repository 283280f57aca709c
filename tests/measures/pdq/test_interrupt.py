"""The kernel can be stopped with Ctrl-C in the middle of an image, and does without threads that cannot be started."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.amounts import others_slow

LIMIT = 60
"""Seconds within which a stopped program must have ended; each of the computations takes many times as long."""

SCENE = """
from probox import Detections, GroundTruth, evaluate
from probox.measures.pdq.kernel import pair_tables
from probox import Convention
rng = np.random.default_rng(0)
n = 20000
corner = rng.random((n, 2)) * 500
boxes = np.concatenate([corner, corner + 1500 + rng.random((n, 2)) * 500], axis=1)
truth = GroundTruth.from_boxes(["cup"], {1: (3000, 3000)}, [1] * 3000, boxes[:3000], [0] * 3000)
covariances = np.broadcast_to(np.eye(2) * 40000.0, (n, 2, 2, 2))
found = Detections(
    classes=["cup"], image_ids=[1] * n, boxes=boxes, label_probs=np.ones((n, 1)), covariances=covariances)
"""

WORK = {
    "scoring": SCENE + "start(); evaluate(truth, found, measures=['pdq'], threads=1)",
    "scoring with threads": SCENE + "start(); evaluate(truth, found, measures=['pdq'], threads=2)",
    "table of pairs": SCENE + "start(); pair_tables(truth, found.select(range(3000)), Convention.preset('paper'), 0)",
    "assignment": """
n = 3000
quality = np.add.outer(np.arange(n), np.arange(n)).astype(float) ** 2
quality /= quality.max()
rows, columns = np.divmod(np.arange(n * n), n)
start(); _core.assign_pairs(
    offsets=np.array([0, n * n]), detections=columns, objects=rows, qualities=quality.ravel(), greedy=False, threads=1)
""",
    "clusters": """
boxes = np.arange(500000.0)[:, None] * 2 + np.array([0.0, 0.0, 1.0, 1.0])
start(); _core.cluster_sequentially(boxes, 0.5)
""",
    "suppression": """
boxes = np.arange(500000.0)[:, None] * 2 + np.array([0.0, 0.0, 1.0, 1.0])
groups, order = np.zeros(500000, np.int64), np.arange(500000)
start(); _core.suppress(boxes, groups, order, 0.5)
""",
    "survivors": """
boxes = np.arange(500000.0)[:, None] * 2 + np.array([0.0, 0.0, 1.0, 1.0])
groups, half = np.zeros(500000, np.int64), np.arange(250000)
start(); _core.members_of_survivors(
    boxes=boxes, groups=groups, stands_for=np.concatenate([half, half]), survivors=half, iou=0.5)
""",
    "box matching": """
n = 60000
boxes = np.random.default_rng(0).random((n, 4)) + np.array([0.0, 0.0, 50.0, 50.0])
start()
_core.match_boxes(
    image_rows=np.zeros(n, np.int64), labels=np.zeros(n, np.int32), boxes=boxes, extents=boxes[:, 2:].copy(),
    scores=np.linspace(1, 0, n), lenient=np.zeros(n, bool), object_offsets=np.array([0, n]),
    object_labels=np.zeros(n, np.int32),
    object_boxes=boxes, object_extents=boxes[:, 2:].copy(), object_areas=np.ones(n), object_crowd=np.zeros(n, bool),
    iou_thresholds=np.array([0.999]), area_ranges=np.array([[0.0, 1e10]]), max_detections=n, threads=1)
""",
}

PRELUDE = """
import sys
import numpy as np
from probox import _core

def start():
    print("started", flush=True)
"""


@pytest.mark.parametrize("work", others_slow(WORK, 3))
def test_ctrl_c_in_the_middle(work: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PRELUDE + WORK[work]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n", process.communicate()[1]
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in errors
    assert process.returncode == -signal.SIGINT


@pytest.mark.slow
def test_the_command_line_says_so(tmp_path: Path) -> None:
    images = [{"id": 1, "width": 3000, "height": 3000}]
    boxes = [[x % 500, x // 500, 1900, 1900] for x in range(3000)]
    annotations = [{"image_id": 1, "category_id": 1, "bbox": box} for box in boxes]
    truth = {"images": images, "categories": [{"id": 1, "name": "cup"}], "annotations": annotations}
    covariances = [[[40000, 0], [0, 40000]]] * 2
    row = {"image_id": 1, "category_id": 1, "score": 0.9, "covars": covariances}
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "found.json").write_text(json.dumps([row | {"bbox": box} for box in boxes]))
    command = "import sys; from probox.cli import main; print('started', flush=True); main(sys.argv[1:])"
    arguments = ["evaluate", str(tmp_path / "truth.json"), str(tmp_path / "found.json"), "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        [sys.executable, "-c", command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(4)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
    assert (process.returncode, errors.strip()) == (130, "probox: interrupted")
    assert not (tmp_path / "out").exists()


THREADS = """
import resource
sizes = {i: (64, 64) for i in range(200)}
truth = GroundTruth.from_boxes(["cup"], sizes, range(200), [[5, 5, 30, 30]] * 200, [0] * 200)
found = Detections(classes=["cup"], image_ids=range(200), boxes=[[6, 5, 30, 31]] * 200, label_probs=np.ones((200, 1)),
                   covariances=np.broadcast_to(np.eye(2), (200, 2, 2, 2)))
alone = evaluate(truth, found, threads=1).pdq
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 20), resource.RLIM_INFINITY))  # a stack needs 8 MB
print(evaluate(truth, found, threads=4).pdq == alone)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_thread_that_cannot_be_started_is_done_without() -> None:
    script = PRELUDE + "from probox import Detections, GroundTruth, evaluate" + THREADS
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr

"""Small files that ask for much memory: read with little of it, or refused in one line."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.amounts import others_slow

import probox
from probox import InputError
from probox.formats.rvc1_truth import decode_png
from probox.tables.label_probs import LabelProbs, check_matrix_size

LIMIT = 120
"""Seconds after which a command hangs."""
MOST = 1_000_000_000
"""Bytes that no small file may make a command use."""

SCRIPT = """
import re, sys
from probox.cli import main
try:
    main(sys.argv[1:])
finally:  # not getrusage: it counts the process that started this one too
    print("peak", re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1] + "000", file=sys.stderr)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def run(*arguments: str | Path) -> tuple[int, str]:
    """Run a command; return its status and what it says, after a look at the memory that it took."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    words, peak = re.fullmatch(r"(.*)peak (\d+)\n", done.stderr, re.DOTALL).groups()  # type: ignore[union-attr]
    assert int(peak) < MOST, words
    return done.returncode, words


def truth_of(width: int, height: int, segmentations: list[Any], **changes: Any) -> dict[str, Any]:
    annotations = [{"image_id": 1, "category_id": 1, "segmentation": piece} for piece in segmentations]
    return {
        "images": [{"id": 1, "width": width, "height": height}],
        "categories": [{"id": 1, "name": "cup"}],
        "annotations": annotations,
    } | changes


def counts_of_columns(height: int, width: int) -> dict[str, Any]:
    """Return run lengths of every second column."""
    return {"size": [height, width], "counts": [height] * width}


def zigzag(width: int, height: int, edges: int) -> list[list[int]]:
    return [[number for edge in range(edges) for number in (edge % 2 * width, edge * height // edges)]]


TOO_MUCH = "annotations[0].segmentation: the masks up to this one take far more memory than a file of"

TRUTHS: dict[str, tuple[Callable[[], Any], str]] = {
    "columns of a huge image": (
        lambda: truth_of(3000, 1000000, [counts_of_columns(1000000, 3000)]),
        "images[0]: expected at most 1073741824 pixels, but got 3000 x 1000000; cut the image into smaller ones",
    ),
    "columns of a high image": (lambda: truth_of(1000, 1000000, [counts_of_columns(1000000, 1000)]), TOO_MUCH),
    "long edges": (lambda: truth_of(1000000, 1000, [zigzag(1000000, 1000, 600)]), TOO_MUCH),
    "many objects of long edges": (
        lambda: truth_of(1000000, 1000, [zigzag(1000000, 1000, 8)] * 2000),
        "take far more memory than a file of",
    ),
    "columns in many objects": (
        lambda: truth_of(40000, 20000, [counts_of_columns(20000, 40000)] * 3),
        TOO_MUCH,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("content", TRUTHS)
def test_masks(tmp_path: Path, content: str) -> None:
    make, message = TRUTHS[content]
    truth, found = tmp_path / "truth.json", tmp_path / "found.json"
    truth.write_text(json.dumps(make()))
    found.write_text("[]")
    status, words = run("evaluate", truth, found)
    assert status == 1
    assert message in words
    assert words.startswith(f"probox: {truth}: ")
    assert words.count("\n") == 1


def packed(start: bytes, repeated: bytes, size: int, end: bytes) -> bytes:
    """Return a gzip file of `size` bytes, made without holding them: what is repeated is packed once."""
    many = repeated * (1 + 1_000_000 // len(repeated))
    times = size // len(many)
    pack = zlib.compressobj(9, wbits=-15)
    parts = [pack.compress(text) + pack.flush(zlib.Z_FULL_FLUSH) for text in (start, many)]
    check = zlib.crc32(start)
    for _ in range(times):
        check = zlib.crc32(many, check)
    total = len(start) + times * len(many) + len(end)
    ending = pack.compress(end) + pack.flush() + struct.pack("<II", zlib.crc32(end, check), total % 2**32)
    return b"\x1f\x8b\x08" + bytes(7) + parts[0] + parts[1] * times + ending


HEAD = b'{"images":[{"id":1,"width":30000,"height":30000}],"categories":[{"id":1,"name":"a"}],"annotations":['
ANNOTATION = b'{"image_id":1,"category_id":1,"segmentation":'

GZIPPED: dict[str, tuple[bytes, bytes, int, bytes]] = {
    "white space": (b"", b" " * 1000, 1_200_000_000, b"{}"),
    "polygons": (HEAD + ANNOTATION + b"[[0", b",0" * 500, 300_000_000, b"]]}]}"),
    "polygons just small enough": (HEAD + ANNOTATION + b"[[0", b",0" * 500, 60_000_000, b"]]}]}"),
    "many polygons": (HEAD, (ANNOTATION + b"[[" + b"0," * 5000 + b"0,0]]},"), 60_000_000, b"null]}"),
    "run lengths": (
        HEAD,
        (ANNOTATION + b'{"size":[30000,30000],"counts":"' + b"1" * 5_000_000 + b'"}},'),
        60_000_000,
        b"null]}",
    ),
    "annotations": (HEAD, ANNOTATION + b"[[0,0,9,9,9,0]]},", 60_000_000, b"null]}"),
    "images": (b'{"images":[', b'{"id":1,"width":9,"height":9},', 60_000_000, b"null]}"),
}


@pytest.mark.parametrize("content", others_slow(GZIPPED, 2))
def test_gzip(tmp_path: Path, content: str) -> None:
    truth, found = tmp_path / "truth.json.gz", tmp_path / "found.json"
    truth.write_bytes(packed(*GZIPPED[content]))
    assert truth.stat().st_size < 3_000_000
    found.write_text("[]")
    status, words = run("evaluate", truth, found)
    assert status == 1
    assert words.startswith(f"probox: {truth}: ")
    assert words.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("row", [b'{"bbox":[0,0,0,0],"label_probs":[1]},', b"{},"])
def test_gzipped_detections(tmp_path: Path, row: bytes) -> None:
    truth, found = tmp_path / "truth.json", tmp_path / "found.json.gz"
    truth.write_text(json.dumps(truth_of(9, 9, [])))
    rows = packed(b'{"classes":["cup"],"detections":[[', row, 60_000_000, b"null]]}")
    found.write_bytes(rows)
    status, words = run("evaluate", truth, found)
    assert status == 1
    assert words.startswith(f"probox: {found}: ")


def png(width: int, height: int, depth: int, color: int, row: bytes) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    pack = zlib.compressobj(1)
    body = b"".join([*(pack.compress(b"\0" + row) for _ in range(height)), pack.flush()])
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def challenge(folder: Path, mask: bytes, objects: int = 1) -> tuple[Path, Path]:
    sequence = folder / "gt" / "000000"
    sequence.mkdir(parents=True)
    (folder / "det").mkdir()
    image = {"_metadata": {"mask_name": "a.png", "mask_channel": 0}}
    image |= {f"{number:05d}": {"class": "cup", "mask_id": 1} for number in range(objects)}  # type: ignore[misc]
    (sequence / "labels.json").write_text(json.dumps({"0": image}))
    (sequence / "a.png").write_bytes(mask)
    (folder / "det" / "000000.json").write_text(json.dumps({"classes": ["cup"], "detections": [[]]}))
    return folder / "gt", folder / "det"


@pytest.mark.slow
def test_a_large_mask_is_decoded_in_strips(tmp_path: Path) -> None:
    """2^26 pixels of four channels with 16 bits each, of which one channel is wanted."""
    row = np.zeros((8192, 4), ">u2")
    row[100:200, 2] = 1
    status, words = run("evaluate", *challenge(tmp_path, png(8192, 8192, 16, 6, row.tobytes())))
    assert status == 0
    assert "1 image, 1 object," in words


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "objects"), [([0, 1], 1), ([0, 0, 0, 0, 0, 0, 0, 1], 20)])
def test_masks_of_too_many_runs(tmp_path: Path, pattern: list[int], objects: int) -> None:
    row = np.tile(np.array(pattern, np.uint8), 8192 // len(pattern))
    status, words = run("evaluate", *challenge(tmp_path, png(8192, 8192, 8, 0, row.tobytes()), objects))
    assert status == 1
    assert "image 0: the masks up to this one need too much memory for files of this size" in words


def test_a_channel_alone_is_that_of_the_whole() -> None:
    """In 8 and in 16 bits, and across the edges of strips."""
    for depth, color, kind in [(8, 6, np.uint8), (16, 2, ">u2"), (16, 6, ">u2")]:
        channels = 4 if color == 6 else 3
        values = np.random.default_rng(depth).integers(0, 1 << depth, (3000, channels)).astype(kind)
        data = png(3000, 500, depth, color, values.tobytes())
        whole = decode_png(data, "x.png")
        assert whole.dtype == (np.uint8 if depth == 8 else np.uint16)
        np.testing.assert_array_equal(whole, np.broadcast_to(values, (500, 3000, channels)))
        for channel in range(channels):
            np.testing.assert_array_equal(decode_png(data, "x.png", lambda _, c=channel: c), whole[:, :, channel])  # type: ignore[misc]


def many_classes(count: int) -> dict[str, Any]:
    return truth_of(64, 48, [], categories=[{"id": number, "name": f"c{number}"} for number in range(count)])


@pytest.mark.parametrize("form", ["coco", "rvc1"])
def test_label_probabilities(tmp_path: Path, form: str) -> None:
    truth, found = tmp_path / "truth.json", tmp_path / "found.json"
    truth.write_text(json.dumps(many_classes(27_000)))
    row = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5}
    rows = {"classes": ["c0"], "detections": [[{"bbox": [0, 0, 9, 9], "label_probs": [0.5]}] * 15_000]}
    found.write_text(json.dumps([row] * 15_000 if form == "coco" else rows))
    status, words = run("evaluate", truth, found)
    assert status == 0, words


TEN_THOUSAND_CLASSES = """
import re, sys
import numpy as np
import probox
from probox import Detections, GroundTruth
from probox.cli import main
from probox.formats import read_detections, write_coco_results, write_parquet

rng, folder, everything = np.random.default_rng(0), sys.argv[1], sys.argv[2] == "True"
n = 12_000
classes, images = [f"c{number}" for number in range(10_000)], np.sort(rng.integers(0, 200, n))
corners = rng.uniform(0, 400, (n, 2))
boxes = np.concatenate([corners, corners + rng.uniform(9, 99, (n, 2))], axis=1).round(1)
labels, scores = rng.integers(0, 10_000, n), rng.random(n).round(4)
truth = GroundTruth.from_boxes(classes, {n: (512, 512) for n in range(200)}, images[::9], boxes[::9] + 1, labels[::9])
write_coco_results(folder + "/found.json", Detections.from_scores(
    boxes, scores, labels, classes=classes, image_ids=images, std=2.0
), truth)
found = read_detections(folder + "/found.json", truth)
write_parquet(folder + "/found.parquet", found)
assert read_detections(folder + "/found.parquet", truth).label_probs.equals(found.label_probs)
result = probox.evaluate(truth, found)
result.save(folder + "/result")
again = probox.load(folder + "/result")
assert again.pdq == result.pdq > 0
if everything:
    probox.Detections.concatenate([found, found.replace(classes=classes[::-1])])
    probox.evaluate(truth, found, measures="all").summary()
    again.diagnose(replicates=3)
    try:
        main(["report", folder + "/result", "--out", folder + "/page"])
    except SystemExit as ended:
        assert not ended.code
print("peak", re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_detections_with_one_score_of_many_classes(tmp_path: Path, everything: bool) -> None:
    """The matrix would take 480 MB."""
    done = subprocess.run(
        [sys.executable, "-c", TEN_THOUSAND_CLASSES, tmp_path, str(everything)],
        capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.rpartition("peak ")[2]) < (350_000 if everything else 250_000)


def test_a_matrix_of_usual_size_is_made_and_a_huge_one_refused() -> None:
    for rows, columns in [(500_000, 80), (1_500_000, 1_203), (5_000, 10_000), (10_000_000, 1), (0, 10**6), (10**6, 0)]:
        check_matrix_size(rows, columns)
    probs = LabelProbs.from_scores(np.full(7_200, 0.5), np.zeros(7_200, np.int32), 1_203_000)
    with pytest.raises(InputError, match=r"7,200 detections with 1,203,000 classes each need 34\.6 GB for all"):
        np.asarray(probs)
    assert np.asarray(probs[:2]).shape == (2, 1_203_000)


@pytest.mark.slow
def test_a_high_and_a_wide_image_are_read(tmp_path: Path) -> None:
    """Memory goes by runs, not by pixels: full and empty columns, a million of them, take neither space nor time."""
    height, width = 1000, 1_000_000
    counts = [1500, height * (width - 10), 8500]
    edges = [[0, 0, width, 0, width, height, 0, height]]
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(truth_of(width, height, [{"size": [height, width], "counts": counts}] * 2000 + [edges])))
    masks = probox.read_truth(path).masks
    assert (masks.pixels[:2000] == height * (width - 10)).all()
    np.testing.assert_array_equal(masks.runs[:2], [[0, 2, 999992], [1, 2, 999992]])
    assert len(masks.runs) == 2000 * height
    assert masks.pixels[2000] == height * width


@pytest.mark.slow
def test_many_objects_and_detections_in_one_image(tmp_path: Path) -> None:
    """Pairs without quality take no memory: here all 64 million, for no box meets an object."""
    truth, found = tmp_path / "truth.json", tmp_path / "found.json"
    annotations = [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5]}] * 8_000
    truth.write_text(json.dumps(truth_of(64, 48, [], annotations=annotations)))
    row = {"image_id": 1, "category_id": 1, "bbox": [30, 30, 9, 9], "score": 0.5}
    found.write_text(json.dumps([row] * 8_000))
    status, words = run("evaluate", truth, found, "--measures", "pdq")
    assert status == 0
    assert "8,000 objects, 8,000 detections" in words


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["reference", "paper"])
def test_corners_unsure_by_a_whole_huge_image(tmp_path: Path, preset: str) -> None:
    """A heatmap takes memory where corners are unsure: a box as large as the image is fine if they are sure."""
    truth, found = tmp_path / "truth.json", tmp_path / "found.json"
    annotations = [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 29_000, 29_000]}]
    truth.write_text(json.dumps(truth_of(30_000, 30_000, [], annotations=annotations)))
    row = {"image_id": 1, "category_id": 1, "bbox": [5, 5, 29_000, 29_000], "score": 0.5}
    for variance, expected in [(100.0, 0), (25e6, 1)]:
        corner = [[variance, 0], [0, variance]]
        found.write_text(json.dumps([row, row | {"covars": [corner, corner]}]))
        status, words = run("evaluate", truth, found, "--preset", preset, "--measures", "pdq")
        assert status == expected, words
    assert "found.json: image 1: detection 1: expected a box whose corners vary over at most 67,108,864 pixels" in words
    assert words.count("\n") == 1


@pytest.mark.parametrize("options", others_slow([[], ["--csv"], ["--intervals"], ["--keep", "matches"]]))
def test_many_class_names(tmp_path: Path, options: list[str]) -> None:
    """What is kept of each class is little, whether anything has it or not."""
    count = 20_000
    categories = [{"id": number, "name": f"class {number}"} for number in range(1, count + 1)]
    images = [{"id": number, "width": 64, "height": 48} for number in (1, 2)]
    boxes = [{"image_id": n % 2 + 1, "category_id": 97 * n, "bbox": [5, 5, 30, 20 + n]} for n in range(1, 9)]
    truth, found = tmp_path / "truth.json", tmp_path / "found.json"
    truth.write_text(json.dumps({"images": images, "categories": categories, "annotations": boxes}))
    found.write_text(json.dumps([box | {"score": 0.5} for box in boxes]))
    place = [tmp_path / "tables"] if options == ["--csv"] else []
    status, words = run("evaluate", truth, found, *options, *place)
    assert status == 0, words


def test_more_classes_than_any_detector_has(tmp_path: Path) -> None:
    categories = [{"id": number, "name": f"class {number}"} for number in range(1, 32_770)]
    truth = tmp_path / "truth.json"
    truth.write_text(json.dumps(truth_of(64, 48, [], categories=categories)))
    with pytest.raises(InputError, match=r"truth\.json: expected at most 32,768 classes, but got 32,769; leave out"):
        probox.read_truth(truth)
    with pytest.raises(InputError, match="expected at most 32,768 classes"):
        probox.Detections(classes=[str(number) for number in range(32_769)], image_ids=[], boxes=[], label_probs=[])

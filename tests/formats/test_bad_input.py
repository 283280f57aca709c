"""Files that are not what they should be: one line that says so, never anything else."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.readers import read_coco

from probox import GroundTruth, InputError
from probox.analysis.validation import validate
from probox.formats import read_detections, read_truth

from .conftest import TRUTH

COVARS = [[[4, 1], [1, 2]], [[9, 0], [0, 1]]]
RESULTS = [
    {"image_id": 9, "category_id": 7, "bbox": [1.5, 2, 4.1, 5], "score": 0.8, "covars": COVARS},
    {"image_id": 4, "category_id": 3, "bbox": [0, 0, 3, 3], "score": 0.25, "all_scores": [0.3, 0.1]},
]
RVC1 = {
    "classes": ["cup", "dog"],
    "detections": [
        [{"bbox": [1, 2, 3, 4], "label_probs": [0.5, 0.25]}],
        [{"bbox": [1.5, 2.5, 3e1, 4], "label_probs": [0, 1], "covars": COVARS}],
    ],
}
TEXT = json.dumps(TRUTH).encode()

CONTENTS = {
    "empty": (b"", "the file is empty"),
    "blank": (b" \n\t ", "the file is empty"),
    "UTF-16": (TEXT.decode().encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
    "UTF-16 without mark": (TEXT.decode().encode("utf-16-le"), "binary file or UTF-16 text"),
    "UTF-32": (TEXT.decode().encode("utf-32"), "UTF-16"),
    "Latin-1": (TEXT.replace(b"dog", b"ch\xeavre"), "expected UTF-8 text, but got byte 0xea"),
    "cut short": (TEXT[: len(TEXT) // 2], "the file ends; the file is cut short"),
    "PNG": (b"\x89PNG\r\n\x1a\n", "is a PNG image"),
    "JPEG": (b"\xff\xd8\xff\xe0", "is a JPEG image"),
    "zip": (b"PK\x03\x04", "is a zip archive; unpack it first"),
    "pickle": (b"\x80\x04\x95", "looks like a pickle"),
    "NumPy": (b"\x93NUMPY\x01\x00", "is a NumPy array"),
    "binary": (bytes(range(256)), "binary file"),
    "random": (random.Random(3).randbytes(1000), "expected"),
    "gzip cut short": (gzip.compress(TEXT)[:-20], "the gzip data is cut short; download it again"),
    "gzip header only": (b"\x1f\x8b", "the gzip data is cut short"),
    "gzip damaged": (gzip.compress(TEXT)[:40] + b"\0\0\0\0" + gzip.compress(TEXT)[44:], "the gzip data is damaged"),
    "gzip and more": (gzip.compress(TEXT) + b"more", "something follows the gzip data"),
    "gzip of nothing": (gzip.compress(b""), "the file is empty"),
    "two values": (TEXT + b"{}", "expected the end of the file"),
    "CSV": (b"image,x,y\n1,2,3\n", "expected"),
    "a string": (b'"text"', "expected an object"),
    "a number": (b"5", "expected an object"),
    "null": (b"null", "expected an object"),
    "NaN": (b"NaN", "expected an object"),
    "deep": (b"[" * 10_000_000, "expected"),
    "deep inside": (b'{"x": ' + b'{"a":[' * 1_000_000, "nested more than 128 levels deep"),
    "Python": (repr(TRUTH).encode(), "expected a key in double quotes"),
    "zero byte": (TEXT.replace(b"cup", b"c\0p"), "expected a closing quote, but got 0x00"),
    "zero byte between": (TEXT.replace(b", ", b",\0", 1), "0x00"),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_byte_order_mark_is_skipped(tmp_path: Path, truth: GroundTruth, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "marked.json"
    for value, read in ((TRUTH, read_truth), (TRUTH, read_coco), (RVC1, lambda p: read_detections(p, truth))):
        path.write_bytes(pack(BOM_UTF8 + json.dumps(value).encode()))
        assert len(read(path)) > 0
    path.write_bytes(pack(BOM_UTF8 + b'{"images": [}'))
    with pytest.raises(InputError, match="line 1, column 13"):  # as editors count, for which the mark is no character
        read_coco(path)


@pytest.mark.parametrize("content", CONTENTS)
def test_contents(tmp_path: Path, truth: GroundTruth, content: str) -> None:
    data, message = CONTENTS[content]
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    for read in (read_truth, read_coco, lambda p: read_detections(p, truth)):
        with pytest.raises(InputError) as caught:
            read(path)
        text = str(caught.value)
        assert text.startswith(f"{path}: ")
        assert "\n" not in text
        assert len(text) < 400
    with pytest.raises(InputError) as caught:
        read_coco(path)
    assert message in str(caught.value)


def test_a_file_that_grows_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from probox.files import reading as files

    monkeypatch.setattr(files, "_ALWAYS_FINE", 1 << 20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b"{" + b" " * (1 << 24)))
    with pytest.raises(InputError, match=r"expands to more than .* decompress it first if you trust it"):
        read_coco(path)


def test_detections_may_shrink_more_than_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Label probabilities that are all alike take next to no space in a gzip file."""
    from probox.files import reading as files

    monkeypatch.setattr(files, "_ALWAYS_FINE", 1 << 10)
    equal = "[" + ",".join(f'"{at:05}{"." * 250}"' for at in range(1000)) + "]"
    path = tmp_path / "alike.json.gz"
    path.write_bytes(gzip.compress(equal.encode()))
    assert 30 < len(equal) / path.stat().st_size < 100
    assert files.read_bytes(path) == equal.encode()
    with pytest.raises(InputError, match="expands to more than"):
        files.read_bytes(path, expansion=files.TRUTH_EXPANDS)


def test_gzip_of_several_members(tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_bytes(gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]) + b"\0" * 10)
    assert len(read_coco(path)) == 3


def test_line_breaks_in_names_do_not_break_the_message(tmp_path: Path, truth: GroundTruth) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"classes": ["cup"], "detections": [[], [{"bbox": "a\\nb", "la\\nbel": 1}]]}')
    with pytest.raises(InputError, match='got the string "a b"'):
        read_detections(path, truth)


def test_paths(tmp_path: Path, truth: GroundTruth) -> None:
    (tmp_path / "folder.json").mkdir()
    for path, message in [
        (tmp_path / "missing.json", "no such file; check the path"),
        (tmp_path / "folder.json", "expected a file, but this is a folder"),
        (tmp_path / "bad\0name.json", "cannot be read"),
        (tmp_path / ("x" * 300), "File name too long"),
        (Path("/dev/null"), "this is a device"),
    ]:
        with pytest.raises(InputError, match=message):
            read_coco(path)
    with pytest.raises(InputError, match="expected folders of sequences"):
        read_truth(tmp_path / "folder.json")
    with pytest.raises(InputError, match="this folder is empty"):
        read_detections(tmp_path / "folder.json", truth)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_bytes(TEXT)
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_coco(path)


# ---- mutations: any change to a good file is an error in words or a file that can be read

PIECES = [piece.encode("latin-1") for piece in [
    "", "[", "]", "{", "}", '"', ",", ":", "-", "1e999", "1e-999", "NaN", "Infinity", "null", "true", "0", "1", ".5",
    "9" * 400, "1e5", "-1", "\\", "\\ud800", "\\n", "\xff", "\0", "[]", "{}", '"x"', "[[]]", "2147483648",
    "9223372036854775808", "1e18", "1e300", '"id"', '"bbox"', "\n",
]]  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn, text: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.sampled_from([0, 0, 1, 2, 5, 20]))
        text = text[:at] + draw(st.sampled_from(PIECES) | st.binary(max_size=2)) + text[at + cut :]
    return text


def attempt(read: Callable[[], Any]) -> bool:
    """Return whether it could be read; anything but an `InputError` of one line fails the test."""
    try:
        read()
    except InputError as error:
        lines = str(error).splitlines()
    else:
        return True
    assert len(lines) == 1
    return False


fuzz = examples(300, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(data=mutations(TEXT))
@fuzz
def test_mutated_truth(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(data)
    good = attempt(lambda: read_truth(path))
    (tmp_path / "d.json").write_bytes(b"[]")
    assert validate(path, tmp_path / "d.json").ok == good


@given(data=mutations(json.dumps(RESULTS).encode()) | mutations(json.dumps(RVC1).encode()))
@fuzz
def test_mutated_detections(tmp_path: Path, truth_file: Path, truth: GroundTruth, data: bytes) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(data)
    assert validate(truth_file, path).ok == attempt(lambda: read_detections(path, truth))


@given(data=st.data())
@fuzz
def test_mutated_challenge(tmp_path: Path, golden_dir: Path, data: st.DataObject) -> None:
    copy = tmp_path / "rvc1"
    if not copy.exists():
        shutil.copytree(golden_dir / "rvc1", copy)
    targets = ["gt/000000/labels.json", "gt/000000/1.png", "det/000001.json"]
    name = data.draw(st.sampled_from(targets))
    original = (golden_dir / "rvc1" / name).read_bytes()
    (copy / name).write_bytes(data.draw(mutations(original)))
    good = attempt(lambda: read_detections(copy / "det", read_truth(copy / "gt")))
    assert validate(copy / "gt", copy / "det").ok == good
    (copy / name).write_bytes(original)


@given(data=st.data())
@fuzz
def test_mutated_heatmaps(tmp_path: Path, golden_dir: Path, data: st.DataObject) -> None:
    copy = tmp_path / "probseg"
    if not copy.exists():
        shutil.copytree(golden_dir / "probseg", copy)
    original = (golden_dir / "probseg" / "107.npy").read_bytes()
    at = data.draw(st.integers(0, 140))
    (copy / "107.npy").write_bytes(original[:at] + data.draw(st.binary(max_size=3)) + original[at + 1 :])
    truth = read_truth(copy / "ground_truth.json")
    good = attempt(lambda: read_detections(copy / "detections.json", truth))
    assert validate(copy / "ground_truth.json", copy / "detections.json").ok == good

"""Names in files may hold what a terminal obeys; the command line shows it instead."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

from rich.table import Table
from tests.cli import in_process

from probox.cli.console import make_console
from probox.support.formatting import printable

EVIL = "\x1b]0;pwned\x07\x9b2J\r\x7f\u202ecup\u2066"
SHOWN = "\\x1b]0;pwned\\x07\\x9b2J\\r\\x7f\\u202ecup\\u2066"
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def run(*arguments: object) -> tuple[int, str, str]:
    status, out, err = in_process.run(*arguments)
    assert not FORBIDDEN.search(out + err), repr(out + err)
    return status, out, err


def files(folder: Path, **changes: Any) -> tuple[Path, Path]:
    truth = {
        "images": [{"id": 1, "width": 64, "height": 48}],
        "categories": [{"id": 1, "name": EVIL}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [5, 5, 30, 20]}],
    }
    found = {
        "classes": [EVIL, f"{EVIL}\nprobox: all is well"],
        "detections": [[{"bbox": [5, 5, 35, 25], "label_probs": [0.9, 0.1]} | changes]],
    }
    paths = folder / "truth.json", folder / f"{EVIL}.json"
    for path, content in zip(paths, (truth, found), strict=True):
        path.write_text(json.dumps(content))
    return paths


def test_every_kind_of_character() -> None:
    assert printable(EVIL) == SHOWN
    assert printable("a\tb\nc äß日本 \U0001f9e1") == "a\tb\nc äß日本 \U0001f9e1"
    assert printable("\udcff") == "\\udcff"


def test_notes_and_tables(tmp_path: Path) -> None:
    truth, found = files(tmp_path)
    for arguments in (["evaluate", truth, found, found], ["table", truth, found], ["validate", truth, found]):
        status, out, err = run(*arguments)
        assert status == 0
        assert "\\x1b]0;pwned" in out + err
        assert not any(line.startswith("probox: all is well") for line in (out + err).splitlines())


FORGED = "cup\n99.99  99.99\ttrue"


def test_a_name_stays_in_its_row(tmp_path: Path) -> None:
    """A line break in a name of a class, image or result must not look like another row of a table."""
    image = {"id": 1, "width": 64, "height": 48, "file_name": f"{FORGED}.png"}
    box = {"image_id": 1, "category_id": 1, "bbox": [5, 5, 30, 20]}
    truth, found, results = tmp_path / "truth.json", tmp_path / f"{FORGED}.json", tmp_path / "results"
    categories = [{"id": 1, "name": FORGED}, {"id": 2, "name": "dog"}]
    truth.write_text(json.dumps({"images": [image], "categories": categories, "annotations": [box]}))
    found.write_text(json.dumps([box | {"score": 0.5}]))
    (tmp_path / "other.json").write_text(json.dumps([box | {"score": 0.75}]))
    scoring = ["evaluate", truth, found, tmp_path / "other.json"]
    commands = [
        [*scoring, "--per-class", "--intervals"],
        [*scoring, "--measures", "nll,energy,d-ece", "--per-class"],
        ["evaluate", truth, tmp_path / "other.json", "--out", results],
        ["table", truth, found, tmp_path / "other.json"],
        ["diagnose", results / "other"],
        ["rank", found, "--truth", truth],
        ["validate", truth, found],
    ]
    for arguments in commands:
        status, out, err = run(*arguments)
        assert status == 0, err
        assert not [line for line in (out + err).splitlines() if line.lstrip().startswith("99.99")], arguments
        assert "\t" not in out, arguments
    assert "cup\\n99.99" in run(*commands[0])[1]


def test_csv_on_a_terminal(tmp_path: Path) -> None:
    truth, found = files(tmp_path)
    content = json.loads(truth.read_text())
    content["images"][0]["file_name"] = EVIL
    truth.write_text(json.dumps(content))
    found.write_text(json.dumps([{"image_id": 1, "category_id": 1, "bbox": [5, 5, 30, 20], "score": 0.5}]))
    status, out, _ = run("rank", found, "--truth", truth, "--format", "csv")
    assert status == 0
    assert SHOWN in out


def test_errors(tmp_path: Path) -> None:
    truth, found = files(tmp_path, bbox=EVIL)
    status, _, err = run("evaluate", truth, found)
    assert status == 1
    assert err.startswith(f"probox: {tmp_path}/\\x1b]0;pwned")
    assert err.count("\n") == 1
    status, _, err = run("evaluate", truth, tmp_path / f"{EVIL} missing.json")
    assert status == 1
    assert "no such file" in err
    status, _, err = run("evaluate", truth, found, "--preset", EVIL)
    assert status == 2
    status, _, err = run(EVIL)
    assert status == 2


def test_names_that_are_no_text(tmp_path: Path) -> None:
    truth, found = files(tmp_path)
    other = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.json")
    os.rename(found, other)
    status, _, err = run("evaluate", truth, other, found)
    assert status == 1
    assert "no such file" in err
    status, out, _ = run("evaluate", truth, other, "--json")
    assert status == 0
    assert json.loads(out)["detections"] == other


def test_json_says_the_same(tmp_path: Path) -> None:
    truth, found = files(tmp_path)
    status, out, err = run("evaluate", truth, found, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["detections"] == str(found)


def test_styles_and_progress_are_left_alone() -> None:
    """What the program itself sends to a terminal passes; what stands in cells and names does not."""
    table = Table("name")
    table.add_row(f"[bold]{EVIL.splitlines()[0]}")
    terminal = make_console(file=io.StringIO(), force_terminal=True, color_system="standard")
    terminal.print(table)
    terminal.show_cursor(False)
    assert isinstance(terminal.file, io.StringIO)
    shown = terminal.file.getvalue()
    assert "\x1b[1m" in shown
    assert "\x1b[?25l" in shown
    assert "\x1b]0;" not in shown
    assert "\\x1b]0;" in shown

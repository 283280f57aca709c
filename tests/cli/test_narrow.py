"""Tables in narrow terminals: all lines fit and all numbers are shown; files and pipes are not affected."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.amounts import others_slow

from probox.cli import main
from probox.cli.console import progress_bar


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert not stopped.value.code
    return capsys.readouterr().out


def commands(files: Path, tmp_path: Path) -> dict[str, list[object]]:
    truth, deterministic, probabilistic = (
        files / f"{name}.json" for name in ("truth", "deterministic", "probabilistic")
    )
    long = f"faster r-cnn, resnet 50, dropout={probabilistic}"
    return {
        "demo": ["demo"],
        "evaluate": ["evaluate", truth, deterministic, probabilistic, "--per-size"],
        "table": ["table", truth, deterministic, long, "--thresholds", "0.5", "0.75"],
        "compare": ["compare", files / "results", "--per-class", "--replicates", "50"],
        "diagnose": ["diagnose", files / "results" / "probabilistic", "--replicates", "50"],
        "calibrate": ["calibrate", "fit", truth, probabilistic, "--out", tmp_path / "calibration.json"],
    }


def table_lines(out: str) -> list[str]:
    """Return the lines of tables, without sentences, which the terminal wraps."""
    prose = r"- |lower is better|convention:|note:|Calibration of |.* is better than|.*: PDQ |.*detector"
    return [line for line in out.splitlines() if not re.match(prose, line)]


NUMBER = re.compile(r"[-+]?\[?[0-9][0-9,]*(?:\.[0-9]+)?\]?[*,]?")


@pytest.mark.parametrize("command", others_slow(["evaluate", "compare", "demo", "table", "diagnose", "calibrate"], 2))
def test_tables_fit_the_terminal_and_lose_no_number(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    demo_files: Path,
    tmp_path: Path,
    command: str,
) -> None:
    arguments = commands(demo_files, tmp_path)[command]
    monkeypatch.setenv("COLUMNS", "60")
    piped = run(capsys, *arguments)
    widest = max(map(len, table_lines(piped)))
    assert widest > 60  # else there is nothing to test
    numbers = set(NUMBER.findall("\n".join(table_lines(piped))))
    for width in (60, 80, 120) if command in ("evaluate", "table") else (60,):  # others take long
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        shown = run(capsys, *arguments)
        assert max(map(len, table_lines(shown))) <= width
        if widest <= width:
            assert shown == piped
        if command != "diagnose":  # its words hold numbers, too
            assert set(NUMBER.findall("\n".join(table_lines(shown)))) == numbers


def test_what_goes_into_a_file_does_not_depend_on_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, demo_files: Path, tmp_path: Path
) -> None:
    written = []
    for width in (40, 60, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("FORCE_COLOR", "1")  # which makes rich take anything for a terminal
        written.append(run(capsys, *commands(demo_files, tmp_path)["evaluate"]))
    assert written[0] == written[1] == written[2]
    assert written[0].count("mAP") == 3  # the table, and two of sizes


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
def test_a_real_terminal_says_how_wide_it_is(demo_files: Path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 60, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    program = "from probox.cli import main; main()"
    arguments = [
        "evaluate",
        demo_files / "truth.json",
        demo_files / "deterministic.json",
        demo_files / "probabilistic.json",
    ]
    subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        check=True, stdout=theirs, stderr=subprocess.DEVNULL, env={**environment, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    shown = os.read(ours, 100_000).decode().replace("\r\n", "\n")
    os.close(ours)
    assert shown.splitlines()[0].split() == ["metric", "unit", "better", "deterministic", "probabilistic"]
    assert max(map(len, shown.splitlines()[:-1])) <= 60


def test_progress_counts_once_it_knows_how_many(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress_bar("images"):
        pass  # nothing is known yet
    err = capsys.readouterr().err
    assert "images" in err
    assert "None" not in err
    with progress_bar("images") as progress:
        progress(0, 12_000)
        progress(12_000, 12_000)
    err = capsys.readouterr().err
    assert "12,000/12,000" in err
    assert "None" not in err


@pytest.mark.slow
@pytest.mark.parametrize("options", [["plot"], ["draw", "--examples", "1"]])
def test_progress_reaches_its_end(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    demo_files: Path,
    tmp_path: Path,
    options: list[str],
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        main([*options, str(demo_files / "results" / "probabilistic"), "--out", str(tmp_path / "out")])
    counts = re.findall(r"([0-9]+)/([0-9]+)", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err))
    assert counts
    assert counts[-1][0] == counts[-1][1]

"""NAME=FILE, the same in every command that takes several files."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from tests.cli.test_diagnose import run

from probox.cli.naming import Named, parse_named, titles_of


def test_a_path_that_exists_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_named(["lr=0.1.json"]) == (Named("0.1.json", "lr"),)
    Path("lr=0.1.json").write_text("[]")
    Path("lr=0.1").mkdir()
    assert parse_named(["lr=0.1.json", "lr=0.1", "A=lr=0.1.json"]) == (
        Named("lr=0.1.json"), Named("lr=0.1"), Named("lr=0.1.json", "A")
    )  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["=a.json"], "no name before the ="),
        ([" =a.json"], "no name before the ="),
        (["A="], "nothing after the ="),
        (["A=a.json", "A=b.json"], "the name 'A' is given twice"),
        (["runs/lr=0.1/a.json"], "no such file, and 'runs/lr' is no name"),
        (["a\\b=a.json"], "no such file, and"),
        (["..=a.json"], "'..' is no name"),
        ([".hidden=a.json"], "'.hidden' is no name"),
        (["A =a.json"], "'A ' is no name"),
        (["a\x1bb=a.json"], "characters that are not printed"),
        ([f"{'a' * 101}=a.json"], "at most 100 characters, but this has 101"),
    ],
)
def test_names_that_are_none(texts: list[str], words: str) -> None:
    with pytest.raises(click.BadParameter, match=words):
        parse_named(texts)


def test_names_that_are_given_stay_and_others_give_way() -> None:
    files = [Named("a/ssd.json"), Named("b.json", "ssd"), Named("c/ssd.json.gz"), Named("..")]
    assert titles_of(files) == ["ssd-2", "ssd", "ssd-3", "detections"]


def test_every_command_with_several_files_takes_names(
    capsys: pytest.CaptureFixture[str], demo_files: Path, tmp_path: Path
) -> None:
    truth, sure, unsure = (demo_files / f"{name}.json" for name in ("truth", "sure", "unsure"))
    kept = tmp_path / "kept"
    code, out, err = run(capsys, "evaluate", truth, f"A b={sure}", unsure, "--out", kept)
    assert code == 0, err
    assert [line.split("  ")[0] for line in out.splitlines()[1:3]] == ["A b", "unsure"]
    assert sorted(folder.name for folder in kept.iterdir()) == ["A b", "unsure"]
    one = json.loads(run(capsys, "evaluate", truth, f"B={sure}", "--json")[1])
    assert (one["name"], one["detections"]) == ("B", str(sure))
    rows = json.loads(run(capsys, "table", truth, sure, f"C={unsure}", "--json")[1])["rows"]
    assert [row["name"] for row in rows] == ["sure", "C"]
    results = demo_files / "results"
    named = [f"one={results / 'sure'}", f"two={kept / 'unsure'}"]
    told = json.loads(run(capsys, "compare", *named, "--measures", "pdq", "--replicates", 10, "--json")[1])
    assert (told["pairs"][0]["first"], told["pairs"][0]["second"]) == ("one", "two")
    told = json.loads(run(capsys, "diagnose", named[0], "--replicates", 10, "--json")[1])
    assert [entry["name"] for entry in told["results"]] == ["one"]
    told = json.loads(run(capsys, "report", *named, "--out", tmp_path / "page", "--json")[1])
    assert told["results"] == ["one", "two"]
    fused = json.loads(run(capsys, "fuse", truth, f"S={sure}", unsure, "--out", tmp_path / "f.json", "--json")[1])
    assert (fused["names"], fused["members"]) == (["S", "unsure"], [str(sure), str(unsure)])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["A={}"], "holds 2 results (sure, unsure), which cannot all be called A; name one of them, say A="),
        (["unsure={}/sure", "{}/unsure"], "is called unsure, as another is; give it another name, NAME=DIR"),
        (["A={}/sure", "B={}/sure"], "is given twice"),
        (["A=nowhere", "B={}/sure"], "nowhere"),
    ],
)
def test_names_of_results_that_clash(
    capsys: pytest.CaptureFixture[str], demo_files: Path, given: list[str], words: str
) -> None:
    code, out, err = run(capsys, "compare", *[text.format(demo_files / "results") for text in given])
    assert (code, out) == (1, "")
    assert words in err


def test_every_argument_that_is_repeated_takes_names() -> None:
    from probox.cli import COMMANDS, cli

    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        several = [entry for entry in command.params if isinstance(entry, click.Argument) and entry.nargs == -1]
        several = [entry for entry in several if entry.name not in ("photos", "parts")]  # which name themselves
        assert all((entry.metavar or "").startswith("[NAME=]") for entry in several), name

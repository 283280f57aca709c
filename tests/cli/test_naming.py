"""NAME=FILE, the same in every command that takes several files."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from tests.cli.in_process import probox, run

from probox.cli.shared_options import Named, make_titles, parse_named
from probox.evaluation.folders import find_results


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
        (["=a.json"], "expected NAME=DETECTIONS, but the name before = is empty"),
        ([" =a.json"], "expected NAME=DETECTIONS, but the name before = is empty"),
        (["A="], "expected NAME=DETECTIONS, but the path after = is empty"),
        (["A=a.json", "A=b.json"], "the name 'A' is used twice; give one of them another name"),
        (["runs/lr=0.1/a.json"], "no such file, and 'runs/lr' is not a valid folder name"),
        (["a\\b=a.json"], r"no such file, and 'a\\\\b' is not a valid folder name"),
        (["..=a.json"], r"'\.\.' is not a valid folder name; begin with a letter or digit"),
        ([".hidden=a.json"], r"'\.hidden' is not a valid folder name; begin with a letter or digit"),
        (["A =a.json"], "'A ' is not a valid folder name; .*without spaces at either end"),
        (["a\x1bb=a.json"], "expected a name of printable characters"),
        ([f"{'a' * 101}=a.json"], "expected a name of at most 100 characters, got 101"),
    ],
)
def test_invalid_names(texts: list[str], words: str) -> None:
    with pytest.raises(click.BadParameter, match=words):
        parse_named(texts)


def test_given_names_are_kept_and_others_numbered() -> None:
    files = [Named("a/ssd.json"), Named("b.json", "ssd"), Named("c/ssd.json.gz"), Named("..")]
    assert make_titles(files) == ["ssd-2", "ssd", "ssd-3", "detections"]


def test_every_command_with_several_files_takes_names(demo_files: Path, tmp_path: Path) -> None:
    truth, deterministic, probabilistic = (
        demo_files / f"{name}.json" for name in ("truth", "deterministic", "probabilistic")
    )
    kept = tmp_path / "kept"
    code, out, err = run("evaluate", truth, f"A b={deterministic}", probabilistic, "--out", kept)
    assert code == 0, err
    assert [line.split("  ")[0] for line in out.splitlines()[2:4]] == ["A b", "probabilistic"]
    assert sorted(folder.name for folder in kept.iterdir()) == ["A b", "probabilistic"]
    one = json.loads(run("evaluate", truth, f"B={deterministic}", "--json")[1])
    assert (one["name"], one["detections"]) == ("B", str(deterministic))
    rows = json.loads(run("table", truth, deterministic, f"C={probabilistic}", "--json")[1])["rows"]
    assert [row["name"] for row in rows] == ["deterministic", "C"]
    results = demo_files / "results"
    named = [f"one={results / 'deterministic'}", f"two={kept / 'probabilistic'}"]
    told = json.loads(run("compare", *named, "--measures", "pdq", "--replicates", 10, "--json")[1])
    assert (told["pairs"][0]["first"], told["pairs"][0]["second"]) == ("one", "two")
    told = json.loads(run("diagnose", named[0], "--replicates", 10, "--json")[1])
    assert [entry["name"] for entry in told["results"]] == ["one"]
    told = json.loads(run("report", *named, "--out", tmp_path / "page", "--json")[1])
    assert told["results"] == ["one", "two"]
    fused = json.loads(
        run("fuse", truth, f"S={deterministic}", probabilistic, "--out", tmp_path / "f.json", "--json")[1]
    )
    assert (fused["names"], fused["members"]) == (["S", "probabilistic"], [str(deterministic), str(probabilistic)])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            ["A={}"],
            "contains 2 results (deterministic, probabilistic), expected one for the name A; give one, such as",
        ),
        (
            ["probabilistic={}/deterministic", "{}/probabilistic"],
            "has the name probabilistic of another result; give it another name, NAME=DIR",
        ),
        (["A={}/deterministic", "B={}/deterministic"], "is given twice"),
        (["A=nowhere", "B={}/deterministic"], "nowhere"),
    ],
)
def test_names_of_results_that_clash(demo_files: Path, given: list[str], words: str) -> None:
    code, out, err = run("compare", *[text.format(demo_files / "results") for text in given])
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


# --- order of the results in a folder ---


def evaluate_into(folder: Path, demo_files: Path, *names: str, options: tuple[str, ...] = ()) -> None:
    """Evaluate one file under some names, in this order, and keep the results in a folder."""
    given = [f"{name}={demo_files / 'probabilistic.json'}" for name in names]
    assert probox("evaluate", demo_files / "truth.json", *given, "--out", folder, *options).returncode == 0


def order_of(folder: Path) -> list[str]:
    return [found.name for found in find_results([str(folder)])]


@pytest.mark.parametrize("options", [(), ("--keep", "matches")])
def test_a_folder_of_results_keeps_the_order_as_given(
    tmp_path: Path, demo_files: Path, options: tuple[str, ...]
) -> None:
    evaluate_into(tmp_path, demo_files, "b", "a", options=options)
    assert order_of(tmp_path) == ["b", "a"]
    evaluate_into(tmp_path, demo_files, "a", "c", "b", options=options)  # replaces everything: the order is the new one
    assert order_of(tmp_path) == ["a", "c", "b"]
    evaluate_into(tmp_path, demo_files, "0", "c", options=options)  # others stay
    assert order_of(tmp_path) == ["a", "c", "b", "0"]


def test_commands_follow_the_order_of_a_folder(tmp_path: Path, demo_files: Path) -> None:
    evaluate_into(tmp_path / "results", demo_files, "b", "a")
    compared = probox("compare", tmp_path / "results", "--replicates", "10", "--json")
    assert [json.loads(compared.stdout)["pairs"][0][key] for key in ("first", "second")] == ["b", "a"]
    reported = probox("report", tmp_path / "results", "--out", tmp_path / "report", "--json")
    assert json.loads(reported.stdout)["results"] == ["b", "a"]
    diagnosed = probox("diagnose", tmp_path / "results", "--json")
    assert diagnosed.stdout.index('"b"') < diagnosed.stdout.index('"a"')


def test_merged_parts_keep_the_order_as_given(tmp_path: Path, demo_files: Path) -> None:
    for part in (1, 2):
        evaluate_into(tmp_path / str(part), demo_files, "b", "a", options=("--part", f"{part}/2"))
    assert probox("merge", tmp_path / "1", tmp_path / "2", "--out", tmp_path / "whole").returncode == 0
    assert order_of(tmp_path / "whole") == ["b", "a"]


def test_results_without_a_position_are_ordered_by_name(tmp_path: Path, demo_files: Path) -> None:
    assert order_of(demo_files / "results") == ["deterministic", "probabilistic"]  # saved by Python
    evaluate_into(tmp_path, demo_files, "b", "a")
    (tmp_path / "a" / "evaluation.json").write_text("{}")  # what cannot be read is named when it is loaded
    assert order_of(tmp_path) == ["a", "b"]

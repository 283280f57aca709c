"""`probox completion`: what real shells offer after a Tab."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from probox.cli import COMMANDS, cli, main
from probox.cli.completion import SHELLS, VARIABLE
from probox.measures.registry import MEASURES

COMMAND = Path(sys.executable).with_name("probox")


def printed(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(["completion", shell])
    assert not exit_.value.code
    return capsys.readouterr().out


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two files and a folder, which is where we are."""
    (tmp_path / "detections.json").write_text("[]")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "one.json").write_text("[]")
    (tmp_path / ".hidden").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(*words: str) -> list[str]:
    """Return what is offered for the last word; a file's name where the shell is to complete it itself."""
    items = ShellComplete(cli, {}, "probox", VARIABLE).get_completions(list(words[:-1]), words[-1])
    return [f"<{item.type}>" if item.type != "plain" else item.value for item in items]


def test_commands_come_without_being_imported() -> None:
    text = "import sys\nfrom probox.cli import main\ntry:\n    main([])\nfinally:\n    print(sorted(sys.modules))"
    asked = {VARIABLE: "bash_complete", "COMP_WORDS": "probox ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    *lines, modules = done.stdout.splitlines()
    assert lines[: len(COMMANDS)] == [f"plain,{name}" for name in COMMANDS]
    assert "'probox.cli'" in modules
    assert "numpy" not in modules
    assert "probox.cli.evaluate" not in modules


def test_commands_options_choices_and_files(place: Path) -> None:
    assert offered("ca") == ["calibrate"]
    assert offered("calibrate", "") == ["apply", "fit"]
    assert "--preset" in offered("evaluate", "--pre")
    assert offered("evaluate", "--preset", "") == ["reference", "paper", "challenge"]
    assert offered("completion", "") == list(SHELLS)
    assert offered("evaluate", "tr") == ["<file>"]
    assert offered("detect", "yolo") == ["<file>"]
    assert offered("demo", "--save", "") == ["<dir>"]
    assert offered("experiment", "run", "transl") == ["translation"]


def test_measures_in_a_list() -> None:
    assert offered("evaluate", "--measures", "") == [measure.name for measure in MEASURES] + ["all"]
    assert offered("compare", "--measures", "pdq,ml") == []
    assert offered("evaluate", "--measures", "pdq,nl") == ["pdq,nll"]
    assert "pdq,pdq" not in offered("evaluate", "--measures", "pdq,")


def test_names_before_files(place: Path) -> None:
    assert offered("evaluate", "truth.json", "SSD=det") == ["SSD=detections.json"]
    assert offered("evaluate", "truth.json", "SSD=") == ["SSD=detections.json", "SSD=results/"]
    assert offered("evaluate", "truth.json", "SSD=results/") == ["SSD=results/one.json"]
    assert offered("evaluate", "truth.json", "SSD=nowhere/") == []
    assert offered("evaluate", "truth.json", "det") == ["<file>"]


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_name_what_they_are_of(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(shell, capsys)
    assert f"{VARIABLE}={shell}_complete" in text
    assert text.endswith("\n")


def shell_says(shell: list[str], text: str, place: Path) -> list[str]:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"no {shell[0]} on this machine")
    # The command of this environment, whatever else is called so.
    environment = {**os.environ, "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(place)}
    done = subprocess.run(
        [*shell, text], cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


BASH = """
set -u
eval "$(probox completion bash)"
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMPREPLY=()
compopt() {{ echo "files:$2"; }}
_probox_completion probox "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
printf '%s\\n' ${{COMPREPLY[@]+"${{COMPREPLY[@]}}"}}
"""


def test_bash(place: Path) -> None:
    assert shell_says(["bash", "-c"], BASH.format(words="probox experiment l"), place) == ["list"]
    # Bash takes a word apart at =, and completes the file itself.
    assert "files:default" in shell_says(["bash", "-c"], BASH.format(words="probox evaluate t.json A = det"), place)


def test_fish(place: Path) -> None:
    text = "probox completion fish | source; complete --do-complete='{}'"
    assert shell_says(["fish", "-c"], text.format("probox ca"), place)[0] == "calibrate"
    assert shell_says(["fish", "-c"], text.format("probox evaluate t.json A=det"), place) == ["A=detections.json"]


# Outside of a line that is being typed, zsh has no `compadd`: this one prints what it is given.
ZSH = """
compdef() { }
eval "$(probox completion zsh)"
words=({words}); CURRENT=$#words
compadd() { print -l -- $completions; }
_describe() { print -l -- ${completions_with_descriptions%%:*}; }
_path_files() { print files; }
_probox_completion
"""


def test_zsh(place: Path) -> None:
    says = lambda words: shell_says(["zsh", "-f", "-c"], ZSH.replace("{words}", words), place)  # noqa: E731
    assert says("probox ca") == ["calibrate"]
    assert says("probox evaluate t.json A=det") == ["A=detections.json"]
    assert says("probox evaluate t.json det") == ["files"]

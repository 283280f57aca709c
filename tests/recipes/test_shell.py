"""The shell recipes: xargs, and a Slurm array.

A short script simulates Slurm: it runs the tasks of an array in turn, each with the variables of Slurm and from a copy
of the script, as Slurm does.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.evaluation.equal import assert_equal
from tests.recipes.recipes import RECIPES, ROOT, lines_of, run_line

import probox

(XARGS,) = lines_of("xargs")
(SLURM,) = lines_of("slurm")

SBATCH = r"""#!/usr/bin/env bash
set -euo pipefail
array="" wrap="" options=()
while [ $# -gt 0 ]; do
  case $1 in
    --array=*) array=${1#*=} ;;
    --wrap) wrap=$2; shift ;;
    --*) options+=("$1") ;;
    *) break ;;
  esac
  shift
done
echo "${options[*]} ${wrap:-$1}" >> sbatch.log
if [ -n "$wrap" ]; then bash -c "$wrap"; exit; fi
array=${array:-$(sed -n 's/^#SBATCH --array=//p' "$1")}
cpus=$(sed -n 's/^#SBATCH --cpus-per-task=//p' "$1")
case $array in *-*) tasks=$(seq "${array%-*}" "${array#*-}") ;; *) tasks=${array//,/ } ;; esac
copy=$(mktemp -d)/slurm_script; cp "$1" "$copy"; shift
for task in $tasks; do
  [[ " ${DOWN:-} " = *" $task "* ]] && continue  # simulates a machine failure
  SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=$(wc -w <<< "$tasks") SLURM_CPUS_PER_TASK=$cpus \
    bash "$copy" "$@" > "slurm-$task.log" 2>&1 || true
done
rm -r "$(dirname "$copy")"
echo "4711;cluster"
"""


@pytest.fixture
def slurm(tmp_path: Path) -> Path:
    """Return a folder with a simulated sbatch."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sbatch").write_text(SBATCH)
    (folder / "sbatch").chmod(0o755)
    return folder


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.sh")))
def test_scripts_are_whole(name: str) -> None:
    assert subprocess.run(["bash", "-n", ROOT / "examples" / name], check=False).returncode == 0


@pytest.mark.slow
def test_xargs_evaluates_missing_parts_only(here: Path, alone: probox.Evaluation) -> None:
    run = run_line(XARGS, here)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(table(alone))
    assert sorted(path.name for path in (here / "R.parts").iterdir()) == list("123456")
    assert_equal(probox.load(here / "R" / "probabilistic"), alone)

    shutil.rmtree(here / "R")
    for part in "35":
        shutil.rmtree(here / "R.parts" / part)
    before = times(here / "R.parts")
    merged = run_line("probox merge R.parts/* --out R", here)
    assert merged.returncode == 1
    assert "parts 3, 5 of 6 are missing" in merged.stderr
    assert not (here / "R").exists()
    (again,) = re.findall(r"`(ONLY=[^`]+)`", RECIPES["xargs"])
    run = run_line(again, here)
    assert run.returncode == 0, run.stderr
    after = times(here / "R.parts")
    assert after.keys() - before.keys() == {"3", "5"}
    assert {name: after[name] for name in before} == before  # these were not evaluated again
    assert_equal(probox.load(here / "R" / "probabilistic"), alone)


@pytest.mark.slow
def test_xargs_rejects_old_parts(here: Path) -> None:
    assert run_line(XARGS.replace("PARTS=6", "PARTS=2"), here).returncode == 0
    other = XARGS.replace("probabilistic.json", "deterministic.json").replace("PARTS=6", "PARTS=2")
    run = run_line(other, here)
    assert run.returncode == 1
    assert run.stdout == ""
    assert "remove R.parts" in run.stderr
    run = run_line(
        f"rm -r R.parts/2 && ONLY=2 {other.replace('demo/deterministic', 'probabilistic=demo/deterministic')}", here
    )
    assert run.returncode == 1
    assert run.stdout == ""
    assert "from other ground truth or detections" in run.stderr


@pytest.mark.slow
def test_xargs_prints_the_error_of_a_part(here: Path) -> None:
    run = run_line(XARGS.replace("probabilistic.json", "broken.json").replace("PARTS=6", "PARTS=2"), here)
    assert run.returncode != 0
    assert run.stdout == ""
    assert "broken.json: image" in run.stderr
    assert not (here / "R").exists()


@pytest.mark.slow
def test_slurm(here: Path, alone: probox.Evaluation, slurm: Path) -> None:
    line = SLURM.removesuffix("R") + "'my result' --label-threshold 0.6"
    run = run_line(line, here, first=slurm)
    assert run.returncode == 0, run.stderr
    expected = alone.at_threshold(0.6)
    assert expected.pdq != alone.pdq
    assert run.stdout.startswith(table(expected))
    assert_equal(probox.load(here / "my result" / "probabilistic"), expected)
    tasks, merge = (here / "sbatch.log").read_text().splitlines()
    assert tasks == "--parsable examples/slurm_array.sh"
    assert merge.startswith("--dependency=afterany:4711 ")

    again = run_line(line, here, first=slurm)
    assert again.returncode != 0
    assert again.stdout == ""
    assert "my result.parts" in again.stderr


@pytest.mark.slow
def test_failed_slurm_tasks_are_named_and_run_again(here: Path, alone: probox.Evaluation, slurm: Path) -> None:
    assert run_line(SLURM, here, first=slurm, DOWN="3 7").returncode != 0
    merged = run_line("probox merge R.parts/* --out R", here)
    assert merged.returncode == 1
    assert "parts 3, 7 of 16 are missing" in merged.stderr
    (again,) = re.findall(r"`(PARTS=16 sbatch [^`]+)`", RECIPES["slurm"])
    (merge,) = re.findall(r"`(probox merge [^`]+)`", RECIPES["slurm"])
    run = run_line(f"{again} && {merge}", here, first=slurm)
    assert run.returncode == 0, run.stderr
    assert_equal(probox.load(here / "R" / "probabilistic"), alone)


def table(result: probox.Evaluation) -> str:
    """Return the printed table of a result, without the line about the convention."""
    return str(result).rpartition("\n")[0]


def times(folder: Path) -> dict[str, int]:
    """Return when each entry of a folder was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}

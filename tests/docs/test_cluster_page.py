"""The blocks of docs/cluster.md before its recipes run in order, as pasted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.recipes.recipes import BLOCK, PAGE, run_line

import probox

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

PAGE_BEFORE = PAGE.read_text(encoding="utf-8").partition("## Recipes\n")[0]
BLOCKS = [(found["language"], found["code"]) for found in BLOCK.finditer(PAGE_BEFORE)]
SHELL = "".join(code for language, code in BLOCKS if language == "sh")
NO_PIP = "pip() { true; }\n"
"""Nothing is installed again."""


def automated(lines: str) -> str:
    """Return the lines with a scheduler on a free port, and a wait until it has started."""
    lines = lines.replace("dask scheduler ", "dask scheduler --host 127.0.0.1 --port 0 --no-dashboard >/dev/null 2>&1 ")
    lines = lines.replace("dask worker ", "dask worker --no-dashboard >/dev/null 2>&1 ")
    waiting = "until [ -s scheduler.json ]; do sleep 0.1; done\nprobox evaluate truth detections --dask scheduler.json"
    assert lines.count("probox evaluate truth detections --dask scheduler.json") == 1
    return lines.replace("probox evaluate truth detections --dask scheduler.json", waiting)


@pytest.mark.slow
def test_lines_for_the_shell_and_for_python(tmp_path: Path) -> None:
    run = run_line(f"{NO_PIP}{automated(SHELL)}kill $(jobs -p)", tmp_path)
    assert run.returncode == 0, run.stderr
    expected = probox.evaluate(
        str(tmp_path / "demo" / "truth.json"), str(tmp_path / "demo" / "probabilistic.json")
    ).summary()
    for folder in ("results/detections", "merged/detections", "small/probabilistic"):
        assert probox.load(tmp_path / folder).summary() == expected, folder
    assert not (tmp_path / "results.partial").exists()
    for number, code in enumerate(code for language, code in BLOCKS if language == "python"):
        printing = "\nimport json\n\nif __name__ == '__main__':\n    print(json.dumps(result.summary()))\n"
        (tmp_path / f"{number}.py").write_text(f"{code}{printing}")
        run = run_line(f"python {number}.py", tmp_path)
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout.splitlines()[-1]) == expected


def test_pages_that_it_links_to_have_these_headings() -> None:
    for page, anchor in re.findall(r"\]\((\w+\.md)#([\w-]+)\)", PAGE_BEFORE):
        headings = re.findall(r"^#+ (.+)$", (PAGE.parent / page).read_text(encoding="utf-8"), re.M)
        slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in slugs, (page, anchor)

"""The recipes of docs/cluster.md: their excerpts equal the files, and their commands run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.recipes.recipes import PAGE, RECIPES, ROOT, blocks_of, lines_of

FILES = {
    "xargs": ("xargs_evaluate.sh", "test_shell.py"),
    "slurm": ("slurm_array.sh", "test_shell.py"),
    "torchrun": ("torchrun_evaluate.py", "test_torchrun.py"),
    "ray": ("ray_evaluate.py", "test_ray.py"),
    "spark": ("spark_evaluate.py", "test_spark.py"),
}
"""The file of each recipe, and the test that runs its shell commands."""


def plain(code: str) -> list[str]:
    """Return the lines of code without indentation, empty lines and comments."""
    return [line.strip() for line in code.splitlines() if line.strip() and not line.strip().startswith("#")]


def test_every_recipe_was_found() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert RECIPES.keys() == FILES.keys()
    assert text.count('<a id="recipe-') == len(FILES)
    for slug, (file, _) in FILES.items():
        assert f"](#recipe-{slug}) | " in text
        assert f"[{file}](../examples/{file})" in text


def test_recipes_have_excerpts() -> None:
    excerpts = [slug for slug in FILES if blocks_of(slug, "python") + blocks_of(slug, "bash")]
    assert excerpts == ["xargs", "slurm", "torchrun"]


@pytest.mark.parametrize("slug", FILES)
def test_lines_of_a_recipe_stand_in_its_file(slug: str) -> None:
    there = plain((ROOT / "examples" / FILES[slug][0]).read_text(encoding="utf-8"))
    for code in blocks_of(slug, "python") + blocks_of(slug, "bash"):
        lines = plain(code)
        starts = [at for at, line in enumerate(there) if line == lines[0]]
        assert any(there[at : at + len(lines)] == lines for at in starts), code


@pytest.mark.parametrize("slug", FILES)
def test_lines_for_the_shell_are_run(slug: str) -> None:
    file, test = FILES[slug]
    lines = lines_of(slug)
    assert lines
    assert all(f"examples/{file}" in line for line in lines)
    code = (Path(__file__).resolve().parents[1] / "recipes" / test).read_text(encoding="utf-8")
    assert re.search(rf'= lines_of\("{slug}"\)$', code, re.M)

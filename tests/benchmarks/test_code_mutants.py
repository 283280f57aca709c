"""The mutation run over probox's own code: what it breaks, and that a test which looks notices it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.code_mutants import main, module_name, mutants_of

import probox

SOURCES = Path(probox.__file__).parent


def test_mutants_of_a_few_lines() -> None:
    text = "def f(x: int = 3) -> bool:\n    return not x < 2 and x + 1 == 4\n"
    changes = [(mutant.line, mutant.change) for mutant in mutants_of(text)]
    assert (1, "3 -> 4") in changes
    assert (2, "x < 2 -> x <= 2") in changes
    assert (2, "x + 1 -> x - 1") in changes
    assert (2, "not x < 2 -> x < 2") in changes
    assert (2, "x + 1 == 4 -> x + 1 != 4") in changes
    assert sum(change.endswith("return None") for _, change in changes) == 1
    assert len({mutant.text for mutant in mutants_of(text)}) == len(changes)


def test_modules_are_named_as_they_are_imported() -> None:
    root = Path(__file__).resolve().parents[2] / "src" / "probox"
    assert module_name(root / "files" / "__init__.py") == "probox.files"
    assert module_name(root / "version.py") == "probox.version"


@pytest.mark.slow
def test_a_mutant_is_noticed_by_tests_that_look_and_survives_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = Path(__file__).resolve().parents[2] / "src" / "probox" / "explorer" / "payload.py"
    looks, away = tmp_path / "test_looks.py", tmp_path / "test_away.py"
    looks.write_text(
        "from probox.explorer.payload import round_number\n\n"
        "def test_digits():\n    assert round_number(0.1234567890123456) == 0.123456789012\n"
    )
    away.write_text("def test_nothing():\n    import probox.explorer.payload\n")
    numbered = [mutant.change for mutant in mutants_of(module.read_text(encoding="utf-8"))]
    assert "12 -> 13" in numbered
    alone = ["--number", "1", "--seed", str(_seed_of("12 -> 13", module))]
    assert main([str(module), "--tests", str(looks), *alone]) == 0
    assert "1 of 1 noticed" in capsys.readouterr().out
    assert main([str(module), "--tests", str(away), *alone]) == 1
    assert "SURVIVES" in capsys.readouterr().out


def _seed_of(change: str, module: Path) -> int:
    """Return a seed that draws this mutant alone."""
    import random

    mutants = mutants_of(module.read_text(encoding="utf-8"))
    wanted = [mutant.change for mutant in mutants].index(change)
    return next(seed for seed in range(10_000) if random.Random(seed).sample(range(len(mutants)), 1) == [wanted])

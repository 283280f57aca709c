"""The plan of the house: a room knows those below it, never those above it or beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import probox

ROOT = Path(probox.__file__).parent

FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "support", "version"),
    ("_core", "convention"),
    ("options",),
    ("tables",),
    ("files",),
    ("measures", "formats", "fusion"),
    ("evaluation",),
    ("analysis",),
    ("calibration",),
    ("parts",),
    ("detect", "pictures", "torch"),
    ("adapters",),
    ("distributed",),
    ("plots",),
    ("explorer",),
    ("demo", "experiments"),
    ("cli",),
    ("__init__", "__main__"),
)
"""From the ground up. CONTRIBUTING.md says what lives in each room."""

FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the room of every import of probox in a module, wherever in it the import stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: import by full names"
            names = [node.module or ""]
            if names == ["probox"]:
                names = [f"probox.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "probox":
                yield node.lineno, [*name.split("."), "__init__"][1]


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py").removesuffix(".pyi")


MODULES = sorted(path for path in ROOT.rglob("*.py"))


def test_every_room_is_on_the_plan() -> None:
    assert {room_of(path) for path in MODULES} | {"_core"} == set(FLOOR_OF)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_room_knows_a_higher_one(path: Path) -> None:
    own = room_of(path)
    wrong = [
        f"line {line}: {room}"
        for line, room in imported(path.read_text(encoding="utf-8"))
        if room != own and not (FLOOR_OF.get(room, len(FLOORS)) < FLOOR_OF[own] or FLOOR_OF[own] == 0 == FLOOR_OF[room])
    ]
    assert wrong == []


def test_an_upward_import_would_be_seen() -> None:
    source = "def f():\n    from probox.cli import main\n    import probox.plots.style\nfrom probox import evaluate\n"
    assert list(imported(source)) == [(4, "evaluate"), (2, "cli"), (3, "plots")]


def test_no_function_hides_its_module() -> None:
    """``import probox.evaluation.run as m`` gives the module: no package exports a name that is also a module of it."""
    for package in sorted(ROOT.rglob("__init__.py")):
        inside = {path.stem for path in package.parent.iterdir() if path.suffix == ".py" or path.is_dir()}
        own = ".".join(("probox", *package.parent.relative_to(ROOT).parts))
        exported = {
            alias.asname or alias.name
            for node in ast.parse(package.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ImportFrom) and node.module != own
            for alias in node.names
        }
        assert not inside & exported, package

"""The plan of the house: a room knows those below it, never those above it or beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import probox

ROOT = Path(probox.__file__).parent

FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "support", "version"),
    ("notes",),
    ("_core", "convention"),
    ("options",),
    ("tables",),
    ("files",),
    ("measures", "formats", "fusion"),
    ("evaluation",),
    ("analysis",),
    ("calibration",),
    ("detect", "pictures", "torch"),
    ("adapters",),
    ("distributed",),
    ("plots",),
    ("explorer",),
    ("demo",),
    ("cli",),
    ("__init__", "__main__"),
)
"""From the ground up. CONTRIBUTING.md says what lives in each room."""

UPWARD = {
    "evaluation/kept.py": {"analysis"},
    "evaluation/result.py": {"analysis", "plots"},
}
"""Methods of results that call higher rooms: these modules import them for types, and when a method is called."""

FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the room of every import of probox in a module, wherever in it the import stands."""
    yield from rooms_among(ast.walk(ast.parse(source)))


def rooms_among(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
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
        if room not in {own, *UPWARD.get(path.relative_to(ROOT).as_posix(), ())}
        and not (FLOOR_OF.get(room, len(FLOORS)) < FLOOR_OF[own] or FLOOR_OF[own] == 0 == FLOOR_OF[room])
    ]
    assert wrong == []


@pytest.mark.parametrize("name", UPWARD)
def test_upward_imports_wait_for_a_call(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    assert not UPWARD[name] & {room for _, room in rooms_among(tree.body)}
    assert UPWARD[name] <= {room for _, room in rooms_among(ast.walk(tree))}


def test_an_upward_import_would_be_seen() -> None:
    source = "def f():\n    from probox.cli import main\n    import probox.plots.style\nfrom probox import evaluate\n"
    assert list(imported(source)) == [(4, "evaluate"), (2, "cli"), (3, "plots")]


def test_probox_knows_nothing_of_distributions_that_add_to_it() -> None:
    imports = re.compile(r"^\s*(?:from|import) (probox_\w+)", re.M)
    assert [path for path in MODULES if imports.search(path.read_text(encoding="utf-8"))] == []
    assert imports.search("def f():\n    from probox_experiments import claims\n")


def test_no_function_hides_its_module() -> None:
    """``import probox.a.b as m`` gives the module: no package exports a name that is also a module of it."""
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

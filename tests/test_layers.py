"""Layers of the package: a module imports only from its own layer's package and from lower layers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import probox

ROOT = Path(probox.__file__).parent

LAYERS: tuple[tuple[str, ...], ...] = (
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
"""Lowest first. CONTRIBUTING.md lists the content of each layer."""

UPWARD = {
    "evaluation/kept.py": {"analysis"},
    "evaluation/result.py": {"analysis", "plots"},
}
"""Methods of results that call higher layers: these modules import them for types, and when a method is called."""

LEVEL_OF = {package: level for level, packages in enumerate(LAYERS) for package in packages}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and package of every import of probox, including those inside functions."""
    yield from packages_among(ast.walk(ast.parse(source)))


def packages_among(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
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


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py").removesuffix(".pyi")


MODULES = sorted(path for path in ROOT.rglob("*.py"))


def test_every_package_has_a_layer() -> None:
    assert {package_of(path) for path in MODULES} | {"_core"} == set(LEVEL_OF)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_layer_imports_a_higher_one(path: Path) -> None:
    own = package_of(path)
    wrong = [
        f"line {line}: {package}"
        for line, package in imported(path.read_text(encoding="utf-8"))
        if package not in {own, *UPWARD.get(path.relative_to(ROOT).as_posix(), ())}
        and not (LEVEL_OF.get(package, len(LAYERS)) < LEVEL_OF[own] or LEVEL_OF[own] == 0 == LEVEL_OF[package])
    ]
    assert wrong == []


@pytest.mark.parametrize("name", UPWARD)
def test_upward_imports_wait_for_a_call(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    assert not UPWARD[name] & {package for _, package in packages_among(tree.body)}
    assert UPWARD[name] <= {package for _, package in packages_among(ast.walk(tree))}


def test_an_upward_import_is_found() -> None:
    source = "def f():\n    from probox.cli import main\n    import probox.plots.style\nfrom probox import evaluate\n"
    assert list(imported(source)) == [(4, "evaluate"), (2, "cli"), (3, "plots")]


def test_probox_imports_no_plug_in() -> None:
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

"""The stub of the kernel says what the built module has: the same names, and the same parameters in the same order.

mypy's stubtest cannot look into nanobind's functions; their own signatures can be read.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import probox
from probox import _core

STUB = ast.parse((Path(probox.__file__).parent / "_core.pyi").read_text())
Parameters = tuple[list[str], list[str]]


def in_stub(function: ast.FunctionDef) -> Parameters:
    """Return the parameters that may be given by position, and those that must be named, with their defaults."""
    assert not function.args.vararg
    assert not function.args.kwarg
    assert not function.args.defaults
    named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return (
        [arg.arg for arg in function.args.args],
        [arg.arg + (f"={ast.unparse(default)}" if default else "") for arg, default in named],
    )


def in_module(function: object) -> Parameters:
    """Return the same of a built function; all of its overloads must agree."""
    found = []
    for signature, _, defaults in function.__nb_signature__:  # type: ignore[attr-defined]
        for number, default in enumerate(defaults or ()):
            signature = signature.replace(f"\\{number}", repr(default))
        plain = re.sub(r"ndarray\[[^]]*\]", "ndarray", signature)  # their brackets hold names too
        parsed = ast.parse(plain.replace("probox._core.", "") + ": ...").body[0]
        assert isinstance(parsed, ast.FunctionDef)
        found.append(in_stub(parsed))
    assert all(parameters == found[0] for parameters in found)
    return found[0]


def stub_names() -> dict[str, ast.stmt]:
    """Return everything the stub declares; what starts with an underscore is for types alone."""
    names: dict[str, ast.stmt] = {}
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
    return {name: node for name, node in names.items() if not name.startswith("_")}


def test_names_are_the_same() -> None:
    assert set(stub_names()) == {name for name in dir(_core) if not name.startswith("_")}


def test_functions_have_the_same_parameters() -> None:
    functions = {name: node for name, node in stub_names().items() if isinstance(node, ast.FunctionDef)}
    assert len(functions) > 20
    for name, node in functions.items():
        assert in_stub(node) == in_module(getattr(_core, name)), name


def test_classes_are_made_from_the_same_parameters() -> None:
    classes = {name: node for name, node in stub_names().items() if isinstance(node, ast.ClassDef)}
    for name, node in classes.items():
        made = [inner for inner in node.body if isinstance(inner, ast.FunctionDef)]
        if issubclass(getattr(_core, name), Exception):
            assert not made
            continue
        assert [inner.name for inner in made] == ["__init__"]
        assert in_stub(made[0]) == in_module(getattr(_core, name).__init__), name


def test_constants_have_the_same_type() -> None:
    constants = {name: node for name, node in stub_names().items() if isinstance(node, ast.AnnAssign)}
    for name, node in constants.items():
        assert ast.unparse(node.annotation).startswith(f"Final[{type(getattr(_core, name)).__name__}"), name


def test_more_than_four_arguments_are_given_by_name() -> None:
    for name in dir(_core):
        if hasattr(getattr(_core, name), "__nb_signature__"):
            assert len(in_module(getattr(_core, name))[0]) <= 4, name


def test_nothing_is_any() -> None:
    assert not [node for node in ast.walk(STUB) if isinstance(node, ast.Name) and node.id == "Any"]

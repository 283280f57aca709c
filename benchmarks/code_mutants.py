"""Mutation testing of the source: change one line of probox at a time and check whether a test fails.

python -m benchmarks.code_mutants src/probox/measures/pdq/definition.py --tests tests/measures/pdq --number 40

A mutant is a module with one change: an inverted comparison, + replaced by -, `and` by `or`, a number increased by one,
a removed `not`, a `return` of None. Each runs in a separate process, with `pytest -x`; the files on disk do not change.
A mutant that passes all tests survives: add the missing test, or verify that the change has no effect. The exit code is
1 if more survive than --allowed.

A mutant takes the time until its first test fails, and a surviving one that of all tests: select the tests of the
module. If these take a second, 40 mutants take one or two minutes.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Pow: ast.Mult,
}  # fmt: skip

# Installed by every Python process of a trial, also those that tests start: the mutant replaces the module.
HOOK = """
import importlib.util, os, sys

class Mutant:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == os.environ["PROBOX_MUTANT_NAME"]:
            return importlib.util.spec_from_file_location(name, os.environ["PROBOX_MUTANT_FILE"])

sys.meta_path.insert(0, Mutant)
"""


class Mutant(NamedTuple):
    """A mutated module: its text, the line, and a description of the change."""

    text: str
    line: int
    change: str


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield the mutations of a node, with descriptions."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            if type(operator) in COMPARISONS:
                changed = copy.deepcopy(node)
                changed.ops[place] = COMPARISONS[type(operator)]()
                yield changed, f"{ast.unparse(node)} -> {ast.unparse(changed)}"
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return
        changed_sum = copy.deepcopy(node)
        changed_sum.op = OPERATORS[type(node.op)]()
        yield changed_sum, f"{ast.unparse(node)} -> {ast.unparse(changed_sum)}"
    elif isinstance(node, ast.BoolOp):
        changed_both = copy.deepcopy(node)
        changed_both.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield changed_both, f"{ast.unparse(node)} -> {ast.unparse(changed_both)}"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand, f"{ast.unparse(node)} -> {ast.unparse(node.operand)}"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        changed_number = ast.Constant(node.value + 1)
        yield changed_number, f"{node.value} -> {node.value + 1}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value), f"{node.value} -> {not node.value}"
    elif isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(ast.Constant(None)), f"{ast.unparse(node)} -> return None"


def is_annotation(node: ast.AST, parent: ast.AST) -> bool:
    """Return whether a node is an annotation, a default text of a class or otherwise without effect."""
    return node in (getattr(parent, "annotation", None), getattr(parent, "returns", None))


def mutants_of(text: str) -> list[Mutant]:
    """Return every mutant of a module's text, by line."""
    tree = ast.parse(text)
    found: list[Mutant] = []

    def visit(parent: ast.AST) -> None:
        for name, value in ast.iter_fields(parent):
            nodes = value if isinstance(value, list) else [value]
            for place, node in enumerate(nodes):
                if not isinstance(node, ast.AST) or is_annotation(node, parent):
                    continue
                for changed, words in changes(node):
                    put(parent, name, place, value, changed)
                    found.append(Mutant(ast.unparse(ast.fix_missing_locations(tree)), node.lineno, words))  # type: ignore[attr-defined]
                    put(parent, name, place, value, node)
                visit(node)

    def put(parent: ast.AST, name: str, place: int, value: object, node: ast.AST) -> None:
        if isinstance(value, list):
            value[place] = node
        else:
            setattr(parent, name, node)

    visit(tree)
    return sorted(found, key=lambda mutant: mutant.line)


def module_name(path: Path) -> str:
    """Return the import name of a source file."""
    parts = list(path.resolve().relative_to(SOURCES).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_noticed(mutant: Mutant, name: str, tests: Sequence[str], seconds: float) -> bool:
    """Return whether a test fails with the mutant, or times out."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
        (place / "mutant.py").write_text(mutant.text, encoding="utf-8")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")])),
            "PROBOX_MUTANT_NAME": name,
            "PROBOX_MUTANT_FILE": str(place / "mutant.py"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return True
    return done.returncode != 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if more mutants survive than are allowed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.code_mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("module", type=Path, help="a file below src/probox")
    parser.add_argument("--tests", nargs="+", required=True, metavar="PATH", help="tests of the mutants")
    parser.add_argument("--number", type=int, metavar="N", help="number of random mutants [default: all]")
    parser.add_argument("--seed", type=int, default=0, help="random seed [default: 0]")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="parallel processes [default: 2]")
    parser.add_argument("--allowed", type=int, default=0, metavar="N", help="allowed number of survivors [default: 0]")
    parser.add_argument("--list", action="store_true", help="list the mutants, without running them")
    given = parser.parse_args(arguments)
    text = given.module.read_text(encoding="utf-8")
    mutants = mutants_of(text)
    if given.number is not None and given.number < len(mutants):
        drawn = random.Random(given.seed).sample(range(len(mutants)), given.number)
        mutants = [mutants[place] for place in sorted(drawn)]
    if given.list:
        print("\n".join(f"{given.module}:{mutant.line}: {mutant.change}" for mutant in mutants))
        return 0
    name = module_name(given.module)
    began = time.perf_counter()
    if is_noticed(Mutant(text, 0, ""), name, given.tests, 3600):
        print("the tests fail without any change", file=sys.stderr)
        return 2
    longest = 60 + 10 * (time.perf_counter() - began)
    began = time.perf_counter()
    with ThreadPoolExecutor(given.processes) as pool:
        noticed = list(pool.map(lambda mutant: is_noticed(mutant, name, given.tests, longest), mutants))
    survivors = [mutant for mutant, seen in zip(mutants, noticed, strict=True) if not seen]
    for mutant in survivors:
        print(f"SURVIVES: {given.module}:{mutant.line}: {mutant.change}")
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} noticed, {time.perf_counter() - began:.0f} s")
    return 1 if len(survivors) > given.allowed else 0


if __name__ == "__main__":
    sys.exit(main())

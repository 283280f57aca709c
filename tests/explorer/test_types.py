"""The types of the page's scripts: what tsc says of them, and that they name what Python tells the page."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probox import Evaluation
from probox.explorer.page import constants
from probox.explorer.payload import chunk_payloads, index_payload

ROOT = Path(__file__).resolve().parents[2]
TYPES = ROOT / "tools" / "types" / "payload.d.ts"
TSC = ROOT / "node_modules" / ".bin" / "tsc"


@pytest.mark.skipif(shutil.which("node") is None or not TSC.exists(), reason="no node, or no `npm ci` here")
def test_scripts_have_the_types_that_they_say() -> None:
    done = subprocess.run([TSC, "-p", ROOT], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout


def keys_of(interface: str) -> tuple[set[str], set[str]]:
    """Return the keys that an interface must have, and those that it may have, one level deep."""
    text = TYPES.read_text(encoding="utf-8")
    found = re.search(rf"^interface {interface}(?: extends \w+)? \{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
    assert found, interface
    keys = re.findall(r"^  (\w+)(\??):", found[1], re.MULTILINE)
    return {name for name, may in keys if not may}, {name for name, may in keys if may}


def check(told: dict[str, Any], interface: str, *more: str) -> None:
    must, may = keys_of(interface)
    for base in more:
        must |= keys_of(base)[0]
    assert must <= set(told) <= must | may, interface


def test_types_name_what_python_tells(results: dict[str, Evaluation]) -> None:
    result = results["probabilistic"]
    nothing = [""] * len(result.dataset)
    index = index_payload({"probabilistic": result}, nothing, 50, nothing)
    check(index, "Index")
    check(index["columns"][0], "Column")
    (told,) = index["results"]
    check(told, "PackedResult")
    check(told["boxes"], "PackedBoxes", "PackedOutcomes")
    check(told["why"], "Why")
    check(next(iter(chunk_payloads({"probabilistic": result}, result.masks, 50)))[0], "PackedImage")
    check(constants(), "Constants")
    # Of a convention the page names only what it needs.
    assert keys_of("Convention")[0] <= set(told["convention"])


def columns(told: Any) -> Iterator[tuple[str, str]]:
    """Give the name and the kind of every packed column."""
    kinds, _ = keys_of("Kinds")
    for name, value in told.items() if isinstance(told, dict) else ():
        match value:
            case [str(kind), str()] if kind in kinds:
                yield name, kind
            case [*several]:
                for one in several:
                    yield from columns(one)
            case _:
                yield from columns(value)


def test_types_name_the_kinds_of_columns(results: dict[str, Evaluation]) -> None:
    nothing = [""] * len(results["probabilistic"].dataset)
    told = set(columns(index_payload(results, nothing, 50, nothing)))
    typed = set(re.findall(r'(\w+)\??: Packed<"(\w+)">', TYPES.read_text(encoding="utf-8")))
    # Costs are told where a convention weighs false positives.
    assert typed - {("cost", "f32")} <= told <= typed

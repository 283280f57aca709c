"""Packages that are installed and cannot be seen: what somebody has who installed one extra and nothing else."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["hide_all_but"]

HIDING = """
import sys
from importlib.machinery import PathFinder

class OthersHidden(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {names!r} else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = OthersHidden
"""


def _distributions_of(requirement: str, found: set[tuple[str, str]] | None = None) -> set[str]:
    """Return the distributions that installing a requirement brings, of those that are installed."""
    found = set() if found is None else found
    asked = Requirement(requirement)
    for extra in ("", *asked.extras):
        key = (canonicalize_name(asked.name), extra)
        if key in found:
            continue
        found.add(key)
        try:
            further = importlib.metadata.requires(asked.name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for one in map(Requirement, further):
            if one.marker is None or one.marker.evaluate({"extra": extra}):
                _distributions_of(f"{one.name}[{','.join(one.extras)}]" if one.extras else one.name, found)
    return {name for name, _ in found}


def hide_all_but(*requirements: str, folder: Path) -> dict[str, str]:
    """Return an environment in which Python imports no package but those that requirements bring."""
    kept = set().union(*map(_distributions_of, requirements))
    owners = importlib.metadata.packages_distributions()
    names = {module for module, these in owners.items() if not kept & set(map(canonicalize_name, these))}
    (folder / "sitecustomize.py").write_text(HIDING.format(names=names), encoding="utf-8")
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *([path] if path else [])])}

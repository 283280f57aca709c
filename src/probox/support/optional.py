"""Import of optional packages, with instructions for installing missing ones."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from probox.errors import InputError

_PACKAGES = {"PIL": "Pillow", "scipy": "SciPy"}
"""Package names that differ from their module names."""


def require(module: str, *, extra: str, purpose: str = "this needs") -> Any:
    """Import a module of an extra, or raise with installation instructions; `purpose` starts the message.

    >>> require("nowhere.near", extra="report", purpose="pictures need")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    probox.errors.InputError: pictures need nowhere; install it with: ...pip install 'probox[report]'
    """
    try:
        return import_module(module)
    except ImportError:
        raise _missing([module], extra, purpose) from None


def import_framework(module: str, package: str | None = None) -> Any:
    """Import a framework that probox does not install, or raise with installation instructions for `package`.

    >>> import_framework("nowhere.near")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    probox.errors.InputError: this model needs nowhere; install it with: ...pip install nowhere
    """
    from importlib.util import find_spec

    root = module.split(".")[0]
    if find_spec(root) is None:
        remedy = f"install it with: {pip_command()} install {package or root}"
        raise InputError(f"this model needs {root}", remedy=remedy)
    try:
        return import_module(module)
    except Exception as error:  # incompatible versions raise many types
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{root} cannot be imported: {first:.200}",
            remedy=f"install versions of {'torch and ' if root == 'torchvision' else ''}{root} "
            f"{'that match' if root == 'torchvision' else 'and its dependencies that match'}; "
            f"`python -c 'import {root}'` shows the whole error",
        ) from None


def check_installed(modules: Sequence[str], *, extra: str, purpose: str = "this needs") -> None:
    """Raise with the names of all missing modules, without importing them."""
    from importlib.util import find_spec

    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise _missing(missing, extra, purpose)


def _missing(modules: Sequence[str], extra: str, purpose: str) -> InputError:
    roots = [module.split(".")[0] for module in modules]
    names = ", ".join(_PACKAGES.get(root, root) for root in roots)
    return InputError(
        f"{purpose} {names}",
        remedy=f"install {'it' if len(roots) == 1 else 'them'} with: {pip_command()} install 'probox[{extra}]'",
    )


def pip_command() -> str:
    """Return the pip command of this environment.

    The pip of another environment would search probox in the package index, where another project may have this name.
    """
    import shlex
    import shutil
    import sys
    from pathlib import Path

    found = shutil.which("pip")
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return "pip"
    return f"{shlex.quote(sys.executable)} -m pip"

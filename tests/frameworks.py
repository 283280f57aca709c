"""Detector frameworks for tests: each is imported where it is installed, quietly and without the network, or skips.

Import nothing of them at the top of a test module; call these in a fixture, so that collecting tests stays quick.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.torchvision_shim import load_torchvision

__all__ = ["quiet", "supervision", "torch", "torchvision", "transformers", "ultralytics"]

_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false"}


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore what a framework warns of on its own; nothing may ask the network."""
    for name, value in _OFFLINE.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("YOLO_CONFIG_DIR", str(Path(tempfile.gettempdir()) / "probox-tests-yolo"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def torch() -> Any:
    """Return torch."""
    with quiet():
        return pytest.importorskip("torch")


def torchvision() -> Any:
    """Return torchvision, whose operators may be stand-ins."""
    torch()
    if not _installed("torchvision"):
        pytest.skip("torchvision is not installed")
    with quiet():
        return load_torchvision()


def transformers() -> Any:
    """Return transformers, which looks for torchvision itself."""
    if _installed("torchvision"):
        torchvision()
    torch()
    with quiet():
        return pytest.importorskip("transformers")


def supervision() -> Any:
    """Return supervision."""
    with quiet():
        return pytest.importorskip("supervision")


def ultralytics() -> Any:
    """Return ultralytics, which imports torchvision itself."""
    torchvision()
    with quiet(), np.printoptions():  # importing it changes how NumPy prints
        return pytest.importorskip("ultralytics")


def _installed(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None

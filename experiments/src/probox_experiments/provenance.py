"""Where numbers come from: which code, which command, which data, which paper."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from pathlib import Path

import probox
from probox import _core

__all__ = ["PAPER", "Provenance", "code_digest"]

PAPER = "Hall et al., Probabilistic Object Detection: Definition and Evaluation, WACV 2020, arXiv:1811.10800"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Provenance:
    """What has to be known to get the same numbers again.

    Parameters
    ----------
    probox, code : str
        The version, and a digest of the files of both packages: a version under development has many.
    command : str
        What to type; without what no number depends on, such as the folder of the results.
    seed : int
        Where random draws start; 0 for experiments without any.
    data : str
        What was measured on, with a digest of it; empty for experiments with scenes of their own.
    paper : str
        Which paper says what is tried, and where in it.
    """

    probox: str
    code: str
    command: str
    seed: int
    data: str
    paper: str

    def to_dict(self) -> dict[str, str | int]:
        """Return the fields as JSON and CSV have them."""
        return dataclasses.asdict(self)


@functools.cache
def code_digest() -> str:
    """Return a short text that differs between versions of probox and of the experiments whose files differ."""
    packages = Path(probox.__file__).parent, Path(__file__).parent
    digest = hashlib.sha256()
    for path in [*(file for package in packages for file in sorted(package.rglob("*.py"))), Path(_core.__file__)]:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]

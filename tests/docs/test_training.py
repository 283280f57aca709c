"""What the page about training shows works as pasted, and says the constants of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "training.md").read_text(encoding="utf-8")


@pytest.mark.torch
def test_lines_work_as_pasted() -> None:
    pytest.importorskip("torch")
    space: dict[str, Any] = {}
    exec(compile(re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)[0], "training.md", "exec"), space)
    assert space["boxes"].grad.abs().min() > 0
    assert space["logits"].grad.abs().max() > 0
    assert space["head"].layer.weight.grad.abs().max() > 0
    assert space["spread"].covariance.shape == (8, 2, 2, 2)


@pytest.mark.torch
def test_constants_and_names_are_those_of_the_code() -> None:
    pytest.importorskip("torch")
    import probox.torch
    from probox.torch.ppdq import LEAK, REACH

    assert f"with `leak` {LEAK:g}" in TEXT
    assert f"The region is {REACH:g} sigmas around the box" in " ".join(TEXT.split())
    for name in probox.torch.__all__:
        assert f"`{name}" in TEXT or f" {name}" in TEXT, name

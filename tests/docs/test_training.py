"""The example on the page about training runs, and the page states the constants of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "training.md").read_text(encoding="utf-8")


@pytest.mark.torch
def test_lines_work_as_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    space: dict[str, Any] = {}
    (example,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
    exec(compile(example, "training.md", "exec"), space)
    model = space["model"]
    for layer in (model.offsets, model.labels, model.corners.layer):
        assert layer.weight.grad.abs().max() > 0
    assert 0.8 < float(capsys.readouterr().out.split()[-1]) < 1.25, "std are learned"
    right = space["logits"].argmax(1) == space["truth_labels"]
    assert right.float().mean() > 0.9
    assert (model.offsets.bias - 3).abs().max() < 1
    assert space["detections"].covariances.shape == (400, 2, 2, 2)


@pytest.mark.torch
def test_constants_and_names_are_those_of_the_code() -> None:
    pytest.importorskip("torch")
    import probox.torch
    from probox.torch.head import MAX_CORRELATION, START_PIXELS, START_SHARE
    from probox.torch.ppdq import LEAK, REACH

    text = " ".join(TEXT.split())
    assert f"with `leak` {LEAK:g}, " in text
    assert f"With `reach` {REACH:g}, pixels beyond {REACH:g} " in text
    assert f"up to {MAX_CORRELATION:g} |" in text
    assert f"a fraction of the sides ({START_SHARE:g}), or pixels ({START_PIXELS:g})" in text
    head = probox.torch.GaussianCorners(1)
    assert f"`min_sigma` ({head.min_sigma:g} pixels) and `max_sigma` ({head.max_sigma:g} pixels)" in text
    for name in probox.torch.__all__:
        assert f"`{name}" in TEXT or f" {name}" in TEXT, name

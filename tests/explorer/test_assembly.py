"""The page is put together from lists: what is on them is there, and what is there is on them; and its colours."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import probox
from probox.explorer import page
from probox.explorer.page import COLOURS

ASSETS = Path(probox.__file__).parent / "explorer" / "assets"


def test_every_script_is_used_once() -> None:
    assert sorted(page.SCRIPTS) == sorted(path.stem for path in ASSETS.glob("*.js"))


def test_the_page_has_every_id_once() -> None:
    text = page.page_text("title", "", "")
    found = re.findall(r'\bid="([^"]+)"', text)
    assert len(found) == len(set(found))


# Linear RGB as people without red or green cones see it (Machado, Oliveira and Fernandes, 2009).
VISIONS = {
    "full": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
}


def oklab(colour: str, vision: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    to_cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    to_lab = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    seen = np.clip(np.array(VISIONS[vision]) @ linear, 0, 1)
    return np.array(to_lab) @ np.cbrt(np.array(to_cones) @ seen)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_a_colour_has_one_meaning(theme: int) -> None:
    colours = {name: both[theme] for name, both in COLOURS.items()}
    outcomes = ("right", "wrong-class", "wrong")
    detectors = [name for name in colours if name.startswith("line-")]
    assert len(detectors) == 8
    for one, other in itertools.combinations([*outcomes, *detectors], 2):
        assert np.linalg.norm(oklab(colours[one], "full") - oklab(colours[other], "full")) > 0.1, (one, other)
    for one, other in itertools.combinations(outcomes, 2):  # detectors have shapes besides
        for vision in VISIONS:
            assert np.linalg.norm(oklab(colours[one], vision) - oklab(colours[other], vision)) > 0.09, (one, other)
    # What is no outcome and no detector has no hue to speak of.
    for name in set(colours) - {*outcomes, *detectors, *(f"{outcome}-ink" for outcome in outcomes)}:
        assert np.linalg.norm(oklab(colours[name], "full")[1:]) < 0.04, name

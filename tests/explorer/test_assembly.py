"""The page is put together from lists: what is on them is there, and what is there is on them."""

from __future__ import annotations

import re
from pathlib import Path

import probox
from probox.explorer import assembly

ASSETS = Path(probox.__file__).parent / "explorer" / "assets"


def names(folder: Path, ending: str) -> set[str]:
    return {path.stem for path in folder.glob(f"*{ending}")}


def test_every_asset_is_used_and_used_once() -> None:
    for listed, folder, ending in (
        (assembly.SCRIPTS, ASSETS, ".js"),
        (assembly.STYLES, ASSETS / "style", ".css"),
        ((*assembly.SECTIONS, *assembly.DIALOGS), ASSETS / "sections", ".html"),
    ):
        assert len(listed) == len(set(listed))
        assert set(listed) == names(folder, ending)


def test_the_page_has_every_id_once() -> None:
    text = assembly.page_text("title", "", "")
    found = re.findall(r'\bid="([^"]+)"', text)
    assert len(found) == len(set(found))

"""Build the site: stage pages, run Sphinx with warnings as errors, check every link, and only then move it into place.

python docs/machinery/build.py FOLDER
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from links import problems_of  # noqa: E402
from navigation import REDIRECTS  # noqa: E402
from staging import stage_site  # noqa: E402

__all__ = ["MARK", "build_site"]

MARK = ".probox-site"
"""The file that marks a folder as a built site, which may be replaced."""


def build_site(folder: Path) -> list[str]:
    """Write the site into a folder and return problems; with problems, the folder keeps its former content."""
    from sphinx.cmd.build import build_main

    if folder.exists() and not (folder / MARK).is_file() and any(folder.iterdir()):
        return [f"{folder} has files of other programs; name another folder, or empty it"]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".docs-") as made:
        staged, doctrees, html = (Path(made) / name for name in ("pages", "doctrees", "html"))
        stage_site(HERE.parents[1], staged)
        options = ["-b", "html", "-W", "--keep-going", "-n", "-q", "-E", "-c", str(HERE.parent), "-d", str(doctrees)]
        if build_main([*options, str(staged), str(html)]) != 0:
            return ["Sphinx warned; see above"]
        wrong = problems_of(html)
        if not wrong:
            (html / ".buildinfo").unlink(missing_ok=True)
            (html / MARK).touch()
            write_redirects(html)
            if folder.exists():
                folder.rename(Path(made) / "before")
            html.rename(folder)
            shutil.rmtree(Path(made) / "before", ignore_errors=True)
        return wrong


def write_redirects(html: Path) -> None:
    """Write a redirect page at each former address."""
    for old, new in REDIRECTS.items():
        target = os.path.relpath(f"{new}.html", Path(old).parent)
        page = html / f"{old}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><title>Moved</title><link rel="canonical" href="{target}">'
            f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">This page has moved.</a>\n',
            encoding="utf-8",
        )


if __name__ == "__main__":
    found = build_site(Path(sys.argv[1]).absolute())
    print("\n".join(found) if found else f"the site is in {sys.argv[1]}: open {sys.argv[1]}/index.html")
    sys.exit(bool(found))

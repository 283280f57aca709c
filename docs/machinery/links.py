"""Check a built site: dead links and anchors, external resources, pages outside the menu, missing Markdown.

python docs/machinery/links.py FOLDER
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["problems_of"]

LOADED = {"img": "src", "script": "src", "source": "src", "iframe": "src", "video": "src", "use": "href"}
"""Elements that a browser loads with a page; for <link>, only the kinds below."""
LOADED_LINKS = ("stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch")
MADE_BY_SPHINX = ("genindex.html", "py-modindex.html", "search.html")
MARKDOWN_CODE = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$|`+[^`\n]+`+", re.M | re.S)
MARKDOWN_LINK = re.compile(r"\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
STYLE_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class _Page(HTMLParser):
    """Anchors, links and loaded resources of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.menu: list[str] = []
        self._menu_depth = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "div" and (self._menu_depth or "sidebar-tree" in given.get("class", "")):
            self._menu_depth += 1
        if tag == "a" and "href" in given:
            (self.menu if self._menu_depth else self.links).append(given["href"])
        if tag == "link" and any(kind in given.get("rel", "").split() for kind in LOADED_LINKS):
            self.loaded.append(given.get("href", ""))
        if tag in LOADED and given.get(LOADED[tag]):
            self.loaded.append(given[LOADED[tag]])
        for part in given.get("srcset", "").split(","):
            if part.strip():
                self.loaded.append(part.split()[0])

    def handle_endtag(self, tag: str) -> None:
        if tag == "div" and self._menu_depth:
            self._menu_depth -= 1


def problems_of(site: Path) -> list[str]:
    """Return the problems of a built site, one line each.

    Parameters
    ----------
    site : Path
        The folder of ``index.html``.
    """
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    wrong: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        for link in page.loaded:
            if _is_elsewhere(link):
                wrong.append(f"{name}: fetches {link}")
        for link in (*page.links, *page.menu, *page.loaded):
            if not _is_elsewhere(link) and not _is_there(link, path, pages):
                wrong.append(f"{name}: dead link {link}")
    for path in sorted(site.rglob("*.css")):
        for link in (one or other for one, other in STYLE_URL.findall(path.read_text(encoding="utf-8"))):
            if _is_elsewhere(link) and not link.startswith("data:"):
                wrong.append(f"{path.relative_to(site).as_posix()}: fetches {link}")
    return wrong + _unlisted_pages(site, pages) + _twin_problems(site, pages)


def _is_elsewhere(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc)


def _is_there(link: str, path: Path, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
    if not target.is_file():
        return False
    page = pages.get(target)
    return not parts.fragment or page is None or unquote(parts.fragment) in page.ids


def _is_own(name: str) -> bool:
    return name not in MADE_BY_SPHINX and not name.startswith("_modules/")


def _unlisted_pages(site: Path, pages: dict[Path, _Page]) -> list[str]:
    """Return pages that are not in the menu."""
    start = (site / "index.html").resolve()
    listed = {start, *((start.parent / unquote(urlsplit(link).path)).resolve() for link in pages[start].menu)}
    names = (path.relative_to(site).as_posix() for path in pages if path.resolve() not in listed)
    return [f"{name}: not in the menu" for name in names if _is_own(name)]


def _twin_problems(site: Path, pages: dict[Path, _Page]) -> list[str]:
    """Return pages without Markdown, and Markdown links that are dead or lead to HTML."""
    wrong = []
    for path, page in pages.items():
        name, twin = path.relative_to(site).as_posix(), path.with_suffix(".md")
        if not _is_own(name):
            continue
        if not twin.is_file() or twin.name not in page.links:
            wrong.append(f"{name}: no Markdown beside it")
            continue
        text = MARKDOWN_CODE.sub("", twin.read_text(encoding="utf-8"))
        for link in MARKDOWN_LINK.findall(text):
            parts = urlsplit(link)
            target = (twin.parent / unquote(parts.path)).resolve() if parts.path else twin.resolve()
            if not _is_elsewhere(link) and (not target.is_file() or target.suffix == ".html"):
                wrong.append(f"{twin.relative_to(site).as_posix()}: dead link {link}")
    return wrong


if __name__ == "__main__":
    found = problems_of(Path(sys.argv[1]).resolve())
    print("\n".join(found))
    sys.exit(bool(found))

"""Collect the site's pages as Markdown in one folder: docs/, generated pages, and files that pages link to.

Pages are written for GitHub, where a link may lead anywhere in the repository. Here each link is changed to the page of
its target. The site also serves the collected files as Markdown.
"""

from __future__ import annotations

import ast
import itertools
import os
import posixpath
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click
from api import PAGES, index_page
from navigation import SECTIONS, Section

__all__ = ["stage_site"]

ELSEWHERE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
"""Files outside docs/ that are pages of the site. The start page takes the place of the README."""
ASSETS = (".png", ".jpg", ".svg", ".csv")
LANGUAGES = {".py": "python", ".sh": "sh", ".toml": "toml", ".json": "json", ".yaml": "yaml", ".cff": "yaml"}
CODE = re.compile(r"(^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$|`+[^`\n]+`+)", re.M | re.S)
LINK = re.compile(r"(?P<open>!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()(?P<target>[^()\s]+)(?P<close>(?:\s+\"[^\"]*\")?\))")


class _Stage:
    """A folder of pages, and the page of each file of the repository."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.page_of = {file: page for file, page in ELSEWHERE.items() if (root / file).is_file()}
        for path in sorted((root / "docs").rglob("*.md")):
            inside = path.relative_to(root / "docs").as_posix()
            if path.name != "README.md":  # for readers of the folder
                self.page_of[f"docs/{inside}"] = inside
        self.page_of |= {f"examples/{path.name}": f"examples/{path.name}.md" for path in examples_of(root)}
        self.waiting = [file for file in self.page_of if file != "README.md"]

    def write(self) -> None:
        self.put("api/index.md", index_page())
        self.put("cli.md", _commands_page())
        for page, made in PAGES.items():
            self.put(f"{page}.md", self.with_links(made.source(), f"docs/{page}.md", f"{page}.md"))
        for file in self.waiting:  # grows while pages link to further files
            page, path = self.page_of[file], self.root / file
            text = path.read_text(encoding="utf-8")
            self.put(page, self.with_links(text, file, page) if path.suffix == ".md" else _listing(file, text))
        self.put("examples/index.md", _examples_page(self.root))
        for section in SECTIONS:
            if section.pages:
                self.put(f"{section.index}.md", _section_page(section, self.folder))
        for path in (self.root / "docs").rglob("*"):
            if path.suffix in ASSETS and "machinery" not in path.parts:
                target = self.folder / path.relative_to(self.root / "docs")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)

    def put(self, page: str, text: str) -> None:
        path = self.folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def with_links(self, text: str, file: str, page: str) -> str:
        """Return the text of a file with its links changed to pages."""
        pieces = CODE.split(text)
        # Splitting gives prose, code, the fence of the code, prose, ...
        pieces[::3] = [LINK.sub(lambda link: self.change_link(link, file, page), prose) for prose in pieces[::3]]
        return "".join(piece for number, piece in enumerate(pieces) if number % 3 != 2)

    def change_link(self, link: re.Match[str], file: str, page: str) -> str:
        target = urlsplit(link["target"])
        if target.scheme or target.netloc or not target.path:
            return link[0]
        named = posixpath.normpath(posixpath.join(posixpath.dirname(file), target.path))
        is_copied = named.startswith("docs/") and Path(named).suffix in ASSETS
        if named not in self.page_of and not is_copied:
            if not (self.root / named).is_file():
                raise SystemExit(f"{file}: {link['target']} is not a file of the repository")
            self.page_of[named] = f"files/{named.removesuffix('.md')}.md"
            self.waiting.append(named)
        there = self.page_of.get(named, named.removeprefix("docs/"))
        relative = os.path.relpath(there, posixpath.dirname(page) or ".")
        return link["open"] + relative + (f"#{target.fragment}" if target.fragment else "") + link["close"]


def examples_of(root: Path) -> list[Path]:
    """Return the example programs."""
    return [path for path in sorted((root / "examples").iterdir()) if path.suffix in (".py", ".sh")]


def _listing(file: str, text: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"# {file}\n\n{fence}{LANGUAGES.get(Path(file).suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


def _examples_page(root: Path) -> str:
    lines = [
        "# Examples",
        "",
        "Complete programs of the folder `examples`.",
        "",
        "| file | content |",
        "| --- | --- |",
    ]
    for path in examples_of(root):
        lines.append(f"| [{path.name}]({path.name}.md) | {_first_words(path)} |")
    return "\n".join(lines) + "\n"


def _section_page(section: Section, folder: Path) -> str:
    """Return the index of a section: a table of its pages."""
    lines = [f"# {section.title}", "", section.about, "", "| page | content |", "| --- | --- |"]
    for name, content in section.pages:
        page = folder / f"{name}.md"
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") if page.is_file() else name
        lines.append(f"| [{title}]({name}.md) | {content} |")
    return "\n".join(lines) + "\n"


def _commands_page() -> str:
    """Return the help of every command."""
    from probox.cli import cli

    lines = ["# Command-line reference", "", "The output of `--help` of every command.", ""]
    for name, command in _commands(cli, "probox"):
        text = command.get_help(click.Context(command, info_name=name, max_content_width=96, terminal_width=96))
        lines += [f"## {name}", "", "```text", text, "```", ""]
    return "\n".join(lines)


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from _commands(found, f"{name} {below}")


def _first_words(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0].replace("\n", " ")
    head = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    comments = " ".join(line.removeprefix("#").strip() for line in head if line.startswith("# "))  # not #! nor #SBATCH
    return comments.partition(". ")[0].removesuffix(".") + "."


def stage_site(root: Path, folder: Path) -> None:
    """Write every page of the site into a folder.

    Parameters
    ----------
    root : Path
        Root of the repository.
    folder : Path
        Output folder.
    """
    _Stage(root, folder).write()

"""Convert numpydoc docstrings to reStructuredText for Sphinx, and to Markdown."""

from __future__ import annotations

import re

__all__ = ["markdown_of", "with_literal_blocks"]

FIELDS = ("Parameters", "Other Parameters", "Returns", "Yields", "Raises", "Attributes", "Warns")
"""Sections of names with an indented description of each."""
PROSE = ("Examples", "Notes", "References", "See Also", "Warnings")
INDENTED = re.compile(r" {2,}\S")
FLAG = re.compile(r"\s*# doctest: .*$")
"""Doctest flags, which Sphinx removes itself."""


def _sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Split a docstring at its underlined headings; text before the first has no name."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line, after in zip(lines, [*lines[1:], ""][: len(lines)], strict=True):
        if line in (*FIELDS, *PROSE) and re.fullmatch("-{3,}", after.strip()):
            found.append((line, []))
        elif not (re.fullmatch("-{3,}", line) and not found[-1][1] and found[-1][0]):
            found[-1][1].append(line)
    return found


def with_literal_blocks(lines: list[str]) -> list[str]:
    """Return a docstring with indented blocks, mostly equations, as literal blocks."""
    made: list[str] = []
    for name, body in _sections(lines):
        if name:
            made += [name, "-" * len(name)]
        before, listing = "", False
        for line in body:
            is_block = name not in FIELDS and INDENTED.match(line) and not before.strip()
            if is_block and not listing and not _in_list(made):
                made += ["::", ""]
                listing = True
            elif line.strip() and not line.startswith("  "):
                listing = False
            literal = listing or line.startswith((">>>", "...", "  >>>"))
            made.append(line if literal else _escaped(line))
            before = line
    return made


def _escaped(line: str) -> str:
    """Return a line with escaped bars: reStructuredText takes text between two bars for a substitution."""
    pieces = re.split(r"(`[^`]*`)", line)
    return "".join(piece if number % 2 else piece.replace("|", "\\|") for number, piece in enumerate(pieces))


def _in_list(lines: list[str]) -> bool:
    """Return whether the next line continues a list item or a literal block."""
    for line in reversed(lines):
        if line.strip() and not line.startswith("  "):
            return line.startswith(("- ", "* ", ">>>", ".. ")) or bool(re.match(r"\d+\. ", line)) or line.endswith("::")
    return False


def markdown_of(lines: list[str]) -> str:
    """Return a docstring as Markdown."""
    made: list[str] = []
    for name, body in _sections(lines):
        if name:
            made += [f"**{name}**", ""]
        made += _fields(body) if name in FIELDS else _prose(body)
        if made and made[-1]:
            made.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(made)).strip() + "\n"


def _fields(body: list[str]) -> list[str]:
    made: list[str] = []
    for line in body:
        if not line.strip():
            continue
        if line.startswith(" "):
            made.append("  " + _ticks(line.strip()))
        else:
            name, colon, kind = line.partition(" : ")
            made.append(f"- `{name.strip()}`" + (f": {_ticks(kind)}" if colon else "") + "  ")
    return made


def _prose(body: list[str]) -> list[str]:
    made: list[str] = []
    fence, before = False, ""
    for line in [*body, "."]:
        code = line.startswith((">>>", "...")) or INDENTED.match(line)
        starts = line.startswith(">>>") or (INDENTED.match(line) and not before.strip() and not _in_list(made))
        if not fence and starts:
            made.append("```pycon" if line.startswith(">>>") else "```text")
            fence = True
        elif fence and not code and (line == "." or not before.strip()):
            while made and not made[-1].strip():
                made.pop()
            made += ["```", ""]
            fence = False
        made.append(FLAG.sub("", line) if fence else _ticks(line.replace("::", ":") if line.endswith("::") else line))
        before = line
    return made[:-1]


def _ticks(line: str) -> str:
    return line.replace("``", "`")

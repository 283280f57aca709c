"""One page with every figure, its claims and what became of them, as Markdown and as HTML."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path

from probox.files.folder import OutputFolder
from probox_experiments.claims import Claim
from probox_experiments.outcome import Outcome, where_in_paper

__all__ = ["PAGES", "html_page", "markdown_page", "write_page"]

PAGES = ("index.md", "index.html")
TITLE = "The experiments"

_CSS = """
:root { color-scheme: light dark; --ink: #1d1d1f; --soft: #5a5a5f; --ground: #fff; --line: #e6e6e8; --code: #f3f3f4;
        --yes: #00664b; --no: #a64500; --link: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #a9b0bb; --ground: #14181f; --line: #333b47; --code: #222936;
          --yes: #58cf9f; --no: #ffa552; --link: #6eb6ff; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; color: var(--ink);
       background: var(--ground); max-width: 62rem; margin: 2.5rem auto 5rem; padding: 0 1.25rem;
       overflow-wrap: anywhere; }
h1 { font-size: 1.9rem; margin-bottom: .3rem; } h2 { font-size: 1.25rem; margin: 0 0 .3rem; }
p.about, .where { color: var(--soft); } .where { font-size: .9rem; margin: 0 0 .8rem; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; margin: 1.2rem 0 2rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .7rem .4rem 0; border-bottom: 1px solid var(--line); }
section { border-top: 2px solid var(--ink); padding-top: 1.1rem; margin-top: 2.6rem; display: grid;
          grid-template-columns: minmax(18rem, 30rem) minmax(0, 1fr); gap: .5rem 2rem; }
section > header { grid-column: 1 / -1; } figure { margin: 0; min-width: 0; } figcaption { font-size: .85rem; }
section img { display: block; width: 100%; height: auto; background: #fff; border-radius: 4px; }
ul { list-style: none; margin: 0; padding: 0; } li { margin-bottom: 1rem; } li p { margin: .15rem 0; }
.numbers, .why { font-size: .9rem; } .why { border-left: 3px solid var(--line); padding-left: .7rem; }
td:first-child { white-space: nowrap; } td:nth-child(2) { min-width: 6.2rem; overflow-wrap: normal; }
.verdict { font-weight: 650; white-space: nowrap; } .yes { color: var(--yes); } .no { color: var(--no); }
.unknown { color: var(--soft); }
a { color: var(--link); } code { font-size: .92em; background: var(--code); padding: 0 .2em; border-radius: 3px; }
@media screen and (max-width: 46rem) {
  body { margin-top: 1.2rem; padding: 0 1rem; } h1 { font-size: 1.5rem; }
  section { grid-template-columns: minmax(0, 1fr); }
  table, tbody, tr, td { display: block; } thead { display: none; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; } td { border: 0; padding: 0; }
  td:first-child { font-weight: 650; } td:nth-child(2)::before { content: "Paper: "; }
  td:nth-child(2) { color: var(--soft); font-size: .9rem; } }
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --ground: #fff; --line: #ccc; --code: #f3f3f4;
          --yes: #00664b; --no: #a64500; --link: #000; }
  body { margin: 0; max-width: none; padding: 0; font-size: 11pt; } a { text-decoration: none; }
  section, tr { break-inside: avoid; } section { grid-template-columns: 9cm minmax(0, 1fr); } }
"""


def write_page(outcomes: Sequence[Outcome], folder: OutputFolder, about: str) -> tuple[Path, Path]:
    """Write ``index.md`` and ``index.html`` beside the figures."""
    texts = (markdown_page(outcomes, about), html_page(outcomes, about))
    markdown, page = (folder.write(name, text.encode()) for name, text in zip(PAGES, texts, strict=True))
    return markdown, page


def summary_line(outcomes: Sequence[Outcome]) -> str:
    """Return how many claims hold, in words."""
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    held, skipped = sum(claim.holds is True for claim in claims), sum(claim.holds is None for claim in claims)
    return f"{held} of {len(claims)} claims hold" + (
        f", {skipped} {'was' if skipped == 1 else 'were'} not measured" if skipped else ""
    )


def markdown_page(outcomes: Sequence[Outcome], about: str) -> str:
    """Return the page as Markdown; figures are named as they lie beside it."""
    lines = [f"# {TITLE}", "", f"{summary_line(outcomes)}. {about}", ""]
    lines += ["| experiment | paper | claim | verdict |", "| --- | --- | --- | --- |"]
    for outcome in outcomes:
        what = outcome.experiment
        link = f"[{what.name}](#{what.name})"
        lines.append(f"| {link} | {_short(what.section)} | {what.claim} | {outcome.verdict} |")
    for outcome in outcomes:
        what = outcome.experiment
        lines += ["", f"## {what.name}", "", f"Paper: {where_in_paper(what.section)}. Varied: {what.varied}.", ""]
        lines += [f"![{what.name}]({outcome.files['png'].name})", ""]
        for claim in outcome.claims:
            lines.append(f"- **{claim.verdict.capitalize()}**: {claim.claim}.")
            lines.append(f"  Measured: {claim.measured}. Required: {claim.required}.")
            if claim.explanation:
                lines.append(f"  {claim.explanation}")
        lines += ["", f"Made by `{outcome.provenance.command}` on {outcome.provenance.data}."]
        lines += ["", "Files: " + ", ".join(f"[{path.name}]({path.name})" for path in outcome.files.values())]
    return "\n".join(lines) + "\n"


def html_page(outcomes: Sequence[Outcome], about: str) -> str:
    """Return the page as HTML in one file, figures included."""
    rows = "".join(
        f'<tr role="row"><td role="cell"><a href="#{o.experiment.name}">{o.experiment.name}</a></td>'
        f'<td role="cell">{_text(_short(o.experiment.section))}</td><td role="cell">{_text(o.experiment.claim)}</td>'
        f'<td role="cell">{_word(o.holds, o.verdict)}</td></tr>\n'
        for o in outcomes
    )
    sections = "".join(_section(outcome) for outcome in outcomes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{TITLE}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n"
        f'<p class="about">{_text(summary_line(outcomes))}. {_text(about)}</p>\n'
        '<table role="table"><thead><tr><th>experiment</th><th>paper</th><th>claim</th><th>verdict</th></tr></thead>\n'
        f'<tbody role="rowgroup">\n{rows}</tbody></table>\n{sections}</body>\n</html>\n'
    )


def _section(outcome: Outcome) -> str:
    what = outcome.experiment
    picture = base64.b64encode(outcome.picture).decode()
    claims = "".join(_claim(claim) for claim in outcome.claims)
    return (
        f'<section id="{what.name}">\n<header><h2>{what.name}</h2>\n'
        f'<p class="where">Paper: {_text(where_in_paper(what.section))}. Varied: {_text(what.varied)}.</p></header>\n'
        f'<figure><img alt="{_text(what.claim)}" src="data:image/svg+xml;base64,{picture}">'
        f"<figcaption>{_files(outcome)}<br>{_text(f'`{outcome.provenance.command}`')}</figcaption></figure>\n"
        f"<ul>\n{claims}</ul>\n</section>\n"
    )


def _files(outcome: Outcome) -> str:
    return ", ".join(f'<a href="{path.name}">{path.name}</a>' for path in outcome.files.values())


def _claim(claim: Claim) -> str:
    why = f'<p class="why">{_text(claim.explanation)}</p>' if claim.explanation else ""
    return (
        f"<li>{_word(claim.holds, claim.verdict)} <span>{_text(claim.claim)}</span>"
        f'<p class="numbers">{_text(claim.measured)}<br>required: {_text(claim.required)}</p>{why}</li>\n'
    )


def _word(holds: bool | None, words: str) -> str:
    looks = "unknown" if holds is None else "yes" if holds else "no"
    return f'<span class="verdict {looks}">{words}</span>'


def _short(section: str) -> str:
    """Return a place in the paper as it fits a narrow column."""
    return section.removeprefix("none: ")


def _text(words: str) -> str:
    """Return words safe for HTML, `quoted` ones as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(words))

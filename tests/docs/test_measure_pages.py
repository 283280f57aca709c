"""Every measure has a page of one shape: numbers that exist, an equation that is run, a figure that can be made."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, blocks_of

from probox.measures.registry import MEASURES

NAMES = [measure.name for measure in MEASURES]
MEASURE = {measure.name: measure for measure in MEASURES}
HEADINGS = ["Definition", "Example", "Interpretation", "Pitfalls", "References"]
FIGURES = DOCS / "figures" / "measures"
LARGEST, ALL_TOGETHER = 60_000, 1_500_000
"""Bytes of a figure, and of all of them."""
MATH = re.compile(r"\$\$(.+?)\$\$|(?<![`\w])\$([^$`\n]+?)\$", re.S)

each_measure = pytest.mark.parametrize("name", NAMES)


def text_of(name: str) -> str:
    return (DOCS / "measures" / f"{name}.md").read_text(encoding="utf-8")


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def sections(name: str) -> dict[str, str]:
    """Return the text of a page's sections by heading, in order; what stands before the first is under its title."""
    parts = re.split(r"^(?=##? )", without_code(text_of(name)), flags=re.M)
    return {part.split("\n", 1)[0].lstrip("# "): part.split("\n", 1)[1].strip() for part in parts if part}


def test_there_is_a_page_for_each_measure_and_no_other() -> None:
    assert sorted(path.stem for path in (DOCS / "measures").glob("*.md")) == sorted([*NAMES, "index"])


@each_measure
def test_pages_have_one_shape(name: str) -> None:
    text = text_of(name)
    (title, *headings) = sections(name)
    assert text.startswith(f"# {title}\n")
    assert headings == HEADINGS
    sentence = sections(name)[title]
    assert re.search(r"better|if calibrated|if it equals", sentence)  # range and direction
    assert sentence.endswith(".")
    assert "\n\n" not in sentence
    assert all(len(sections(name)[heading]) > 60 for heading in HEADINGS if heading != "Example")
    assert "$$" in sections(name)["Definition"]
    assert sections(name)["Pitfalls"].count("\n- ") >= 2
    assert f"--measures {name}" in text


@each_measure
def test_an_example_is_run_and_its_output_compared(name: str) -> None:
    example = text_of(name).split("## Example\n")[1].split("## Interpretation\n")[0]
    blocks = blocks_of(DOCS / "measures" / f"{name}.md")
    assert [block.mark for block in blocks if block.language == "text"] == ["output"]
    assert len([block for block in blocks if block.language == "python" and block.mark is None]) == 1
    printed = example.split("<!-- output -->\n```text\n")[1].split("```")[0]
    assert "NumPy" in printed  # beside probox's own number


@each_measure
def test_numpy_and_probox_agree(name: str) -> None:
    printed = text_of(name).split("<!-- output -->\n```text\n")[1].split("```")[0]
    if name == "map":  # one line each
        found = re.findall(r"([\d.]+)", printed)
        assert len(set(found)) == 1
        return
    pairs = re.findall(r"NumPy ([\d.]+), probox ([\d.]+)", printed)
    assert pairs
    assert all(ours == theirs for ours, theirs in pairs), printed


@each_measure
def test_numbers_of_a_page_are_those_of_the_registry(name: str) -> None:
    (said,) = re.findall(
        r"^\*\*Output\*\* of `--measures [\w-]+`: (.+?)(?:\n\n|\Z)", sections(name)["Definition"], flags=re.M | re.S
    )
    columns = [column.key for column in MEASURE[name].columns]
    told = re.findall(r"`([^`]+)`", said)
    also = {"1-moLRP", "coverage_z68"}  # what tables print
    assert [key for key in told if key not in columns and key not in also] == []
    assert MEASURE[name].headline.key == told[0]
    for key in (column.key for column in MEASURE[name].columns if not column.optional):
        whole = re.sub(r"_(x1|y1|x2|y2|joint)$", "", key)  # edges of other levels, in the same way
        first = re.sub(r"_bin\d+$", "_bin1", key)
        assert {key, whole, first} & set(told), key


@each_measure
def test_a_page_has_its_figure(name: str) -> None:
    plot = sections(name)["Interpretation"]
    assert re.search(rf"!\[[^\]]{{20,}}\]\(\.\./figures/measures/{name}\.png\)", plot)
    figure = FIGURES / f"{name}.png"
    assert 2_000 < figure.stat().st_size < LARGEST


def test_figures_are_small_and_each_has_a_page() -> None:
    assert "`python docs/figures/measures.py NAME`" in text_of("index")
    paths = sorted(FIGURES.glob("*"))
    assert [path.name for path in paths] == sorted(f"{name}.png" for name in NAMES)
    assert sum(path.stat().st_size for path in paths) < ALL_TOGETHER


@each_measure
def test_references_are_papers_with_a_year(name: str) -> None:
    papers = [line for line in re.split(r"^- ", sections(name)["References"], flags=re.M) if line]
    assert papers
    for paper in papers:
        assert re.search(r"\*[^*]{10,}\*", paper), paper  # its title
        assert re.search(r"\b(19|20)\d\d\b", paper), paper
    assert re.search(r"https://(arxiv\.org/abs/|doi\.org/)", sections(name)["References"])


@pytest.mark.parametrize("page", [*(f"measures/{name}" for name in NAMES), "which-measure"])
def test_math_survives_markdown(page: str) -> None:
    # A backslash before punctuation is an escape of Markdown, and gone before anybody sees an equation.
    text = without_code((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    for block, inline in MATH.findall(text):
        assert not re.search(r"\\[!-/:-@\[-`{-~]", block or inline), block or inline
    for line in text.splitlines():
        assert line.count("$") % 2 == 0 or line == "$$", line


def test_the_index_lists_every_measure() -> None:
    rows = re.findall(r"^\| \[`([\w-]+)`\]\(([\w-]+)\.md\) \|(.+)\|$", text_of("index"), flags=re.M)
    assert [row[0] for row in rows] == NAMES
    assert all(row[0] == row[1] and len(row[2].split(" | ")) == 5 for row in rows)
    by_name = {row[0]: [cell.strip() for cell in row[2].split(" | ")] for row in rows}
    for name, (definition, best, _, covariances, labels) in by_name.items():
        assert definition
        better = MEASURE[name].headline.better
        assert {"high": best == "1", "low": best in ("0", "low"), None: best not in ("0", "1", "low")}[
            better or None
        ], name
        assert (labels == "no") == ("labels" not in MEASURE[name].needs and name != "pdq"), name
        assert covariances in ("yes", "no", "optional", "one output")


def test_the_guide_says_of_every_measure_what_it_cannot_see() -> None:
    guide = (DOCS / "which-measure.md").read_text(encoding="utf-8")
    table = guide.split("## Limitations\n")[1].split("\n## ")[0]
    assert sorted(re.findall(r"\]\(measures/([\w-]+)\.md\)", table)) == sorted(NAMES)
    asked = re.findall(r"^\| \[[^\]]+\]\(#([\w-]+)\) \|", guide, flags=re.M)
    headings = re.findall(r"^## (.+)$", guide, flags=re.M)
    slugs = [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
    assert slugs[: len(asked)] == asked
    assert len(asked) >= 10


def test_a_figure_can_be_made_again(tmp_path: Path) -> None:
    command = [sys.executable, str(DOCS / "figures" / "measures.py"), "brier", "--out", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    from PIL import Image

    with Image.open(tmp_path / "brier.png") as made, Image.open(FIGURES / "brier.png") as kept:
        assert made.size == kept.size
        made_again, as_kept = made.convert("L").resize((86, 46)), kept.convert("L").resize((86, 46))
        differ = sum(abs(a - b) for a, b in zip(made_again.tobytes(), as_kept.tobytes(), strict=True)) / (86 * 46)
    assert differ < 6  # of 255: fonts of other machines are others

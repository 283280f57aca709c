"""The documentation's site: built without a warning, no dead link, nothing fetched, every public name explained."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from types import ModuleType

import pytest
from tests.contrast import contrast
from tests.docs.pages import DOCS
from tests.hiding import hide_all_but

import probox
from probox.options import Settings

MACHINERY = DOCS / "machinery"
SETTINGS = set(Settings.__annotations__)
"""What functions that score take as `**settings`: described once, with `probox.evaluate`."""


def machinery(name: str) -> ModuleType:
    """Import a module of docs/machinery, which is no package: Sphinx finds its extensions by their names."""
    sys.path.insert(0, str(MACHINERY))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(MACHINERY))


api, links, staging, docstrings = map(machinery, ("api", "links", "staging", "docstring_text"))


UNREAD = {"Token.Text.Whitespace"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built site. Warnings of Sphinx are errors, and so is what the link checker finds.

    It is built with what ``probox[docs]`` and the experiments install, like docs/build.sh.
    """
    for package in ("sphinx", "myst_parser", "furo", "latex2mathml"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("site") / "docs"
    run = subprocess.run(
        [sys.executable, str(MACHINERY / "build.py"), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=hide_all_but("probox[docs]", "probox-experiments", folder=tmp_path_factory.mktemp("hiding")),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def entries_of(site: Path) -> set[str]:
    """Return the names that have an entry in the reference, by the anchors of its pages."""
    found: set[str] = set()
    for page in (site / "api").glob("*.html"):
        found |= set(re.findall(r'<dt class="sig[^>]* id="([\w.]+)"', page.read_text(encoding="utf-8")))
    return found


# --- the reference ---


def test_every_public_name_is_on_a_page_and_has_a_docstring() -> None:
    listed = {name for page in api.PAGES.values() for name in page.listed}
    for name in probox.__all__:
        assert f"probox.{name}" in listed, f"docs/machinery/api.py has no {name}"
        assert name.startswith("__") or getattr(probox, name).__doc__, f"probox.{name} has no docstring"


def test_every_public_name_of_the_packages_is_on_a_page() -> None:
    shown = {module for page in api.PAGES.values() for module in page.modules}
    assert set(api.PACKAGES) <= shown
    for package in api.PACKAGES:
        if package == "probox.torch":  # may not be here: its page is made without importing torch
            continue
        module = importlib.import_module(package)
        for name in module.__all__:
            assert getattr(module, name).__doc__, f"{package}.{name} has no docstring"


def described(text: str) -> list[str]:
    """Return the parameters that a docstring describes."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", inspect.cleandoc(text), re.S | re.M)
    heads = [line.split(" : ")[0] for line in (section[1] if section else "").splitlines() if line[:1].strip()]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def test_docstrings_describe_the_parameters_that_there_are() -> None:
    named = {name for page in api.PAGES.values() for name in page.listed if not name.startswith("probox.torch")}
    for package in set(api.PACKAGES) - {"probox.torch"}:
        named |= {f"{package}.{name}" for name in importlib.import_module(package).__all__}
    for name in sorted(named):
        owner, _, last = name.rpartition(".")
        thing = getattr(importlib.import_module(owner), last)
        own = vars(thing).items() if inspect.isclass(thing) else ()
        things = {name: thing} | {f"{name}.{key}": getattr(thing, key) for key, value in own if key[0] != "_"}
        for place, one in things.items():
            told = described(one.__doc__ or "") if callable(one) else []
            taken = set(inspect.signature(one).parameters) if told else set()
            wrong = [parameter for parameter in told if parameter not in {*taken, "settings"}]
            assert not wrong, f"{place} describes {wrong}, which it does not take"
            left = taken - {*told, "self"} - (SETTINGS if "settings" in told else set())
            assert not left, f"{place} does not describe {sorted(left)}"


def test_every_public_name_has_an_entry_in_the_site(site: Path) -> None:
    entries = entries_of(site)
    assert {f"probox.{name}" for name in probox.__all__} <= entries
    for package in api.PACKAGES:
        place = Path(probox.__file__).parent / package.removeprefix("probox.")
        source = (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text("utf-8")
        listed = re.search(r"^__all__ = \[(.*?)\]", source, re.M | re.S)
        assert listed, package
        for name in re.findall(r'"(\w+)"', listed[1]):
            # Constants are documented where they are set, and the metric stands once, beside evaluate.
            once = [entry for entry in entries if name.isupper() and entry.endswith(f".{name}")]
            assert f"{package}.{name}" in entries or once, f"{package}.{name}"


def test_the_reference_is_also_markdown(site: Path) -> None:
    text = (site / "api" / "evaluating.md").read_text("utf-8")
    assert "## `probox.evaluate`\n\n```python\nevaluate(truth: SharedTruth | Paths, detections" in text
    assert (
        0
        < text.index("## `probox.Evaluator`")
        < text.index("### `probox.Evaluator.update`")
        < text.index("## `probox.PDQ`")
    )
    assert "**Parameters**" in text
    assert '- `label_threshold`: float or "auto", optional' in text
    assert "```pycon\n>>> import probox" in text
    assert "{eval-rst}" not in text


def test_signatures_are_in_the_words_of_the_source(site: Path) -> None:
    for page in (site / "api").glob("*.md"):
        text = page.read_text("utf-8")
        for noise in ("_SupportsArray", "<factory>", "<function", " object>", "ndarray[", "(*args", "Alias for field"):
            assert noise not in text, f"{page.name}: {noise}"
    assert "corner_covariances(cov: ArrayLike) -> NDArray[float64]" in (site / "api" / "fusion.md").read_text("utf-8")
    assert "GaussianCorners(in_features: int, *, full: bool" in (site / "api" / "torch.md").read_text("utf-8")


def test_what_is_said_of_attributes_is_whole(site: Path) -> None:
    page = unescape(re.sub(r"<[^>]+>", "", (site / "api" / "results.html").read_text("utf-8")))
    assert "Return PDQ: the sum of the matches' pPDQ" in page


# --- the site ---


def test_names_in_prose_lead_to_the_reference(site: Path) -> None:
    assert 'href="api/evaluating.html#probox.PDQ"' in (site / "load-data.html").read_text("utf-8")
    index = (site / "api" / "index.html").read_text("utf-8")
    assert 'href="distributed.html#probox.distributed.evaluate"' in index  # not the one of a single machine
    assert 'href="#probox.detect.choose_images"' in (site / "api" / "detect.html").read_text("utf-8")


def test_equations_are_mathml_and_nothing_is_fetched_for_them(site: Path) -> None:
    page = (site / "speed.html").read_text("utf-8")
    assert "<math " in page
    assert not re.search(r"<script[^>]*math", page, re.I)
    upright = '<mi mathvariant="normal">&#x00045;</mi><mo stretchy="false">&#x02016;</mo>'  # expected value of a length
    assert upright in (site / "measures" / "energy.html").read_text("utf-8")


def test_there_is_an_index_for_programs(site: Path) -> None:
    text = (site / "llms.txt").read_text("utf-8")
    named = re.findall(r"\]\(([^)]+)\)", text)
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.md")}
    assert set(named) == pages


def test_every_page_tells_its_title_in_the_menu(site: Path) -> None:
    start = (site / "index.html").read_text("utf-8")
    for title in ("How-to guides", "Load your data", "API reference", "Numerical parity", "Key concepts"):
        assert title in unescape(start)


# --- the checker would see it ---

PAGE = """<html><head><link rel="stylesheet" href="{style}"></head><body>
<div class="sidebar-tree"><a href="index.html">i</a>{menu}</div>
<h1 id="top">Title</h1><a href="{link}">x</a><a href="{twin}">md</a></body></html>"""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"link": "nowhere.html"}, "dead link nowhere.html"),
        ({"link": "#nowhere"}, "dead link #nowhere"),
        ({"style": "https://elsewhere.example/style.css"}, "fetches https://elsewhere.example/style.css"),
        ({"twin": "#top"}, "no Markdown beside it"),
        ({"menu": ""}, "other.html: not in the menu"),
    ],
)
def test_what_is_wrong_is_found(tmp_path: Path, change: dict[str, str], problem: str | None) -> None:
    usual = {"style": "style.css", "menu": '<a href="other.html">o</a>', "link": "other.html#top", "twin": "index.md"}
    (tmp_path / "style.css").write_text("body {}")
    (tmp_path / "index.html").write_text(PAGE.format(**usual | change))
    (tmp_path / "other.html").write_text(PAGE.format(**usual | {"twin": "other.md"}))
    for name in ("index.md", "other.md"):
        (tmp_path / name).write_text("# Title\n\n[x](other.md)\n")
    found = links.problems_of(tmp_path.resolve())
    assert [line.split(": ", 1)[1] if problem and ": n" not in problem else line for line in found] == (
        [problem] if problem else []
    )


def test_a_dead_link_of_the_markdown_is_found(tmp_path: Path) -> None:
    usual = {"style": "style.css", "menu": "", "link": "#top", "twin": "index.md"}
    (tmp_path / "style.css").write_text("body { background: url(https://elsewhere.example/x.png) }")
    (tmp_path / "index.html").write_text(PAGE.format(**usual))
    (tmp_path / "index.md").write_text("# Title\n\n[x](gone.md), `[y](no.md)`\n")
    assert links.problems_of(tmp_path.resolve()) == [
        "style.css: fetches https://elsewhere.example/x.png",
        "index.md: dead link gone.md",
    ]


# --- parts of the build ---


def test_links_out_of_the_folder_become_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "PAGES", {})
    root, made = tmp_path / "root", tmp_path / "made"
    for path, text in {
        "docs/a.md": "# A\n\n[how](../CONTRIBUTING.md#map), [run](../examples/x.py), [src](../src/y.py), "
        "`[no](../z.py)`\n\n```sh\n[no](../z.py)\n```\n[web](https://example.org/../z.py)\n",
        "docs/below/b.md": '# B\n\n[a](../a.md#a "A"), ![f](../figures/f.png), [r](../../README.md)\n',
        "docs/figures/f.png": "",
        "CONTRIBUTING.md": "# C\n\n[a](docs/a.md), [b](docs/below/b.md)\n",
        "README.md": "# R\n",
        "examples/x.py": '"""Says\nso.\n\nMore."""\n',
        "examples/y.sh": "#!/bin/sh\n#SBATCH --array=1-2\n# Does\n# this. And more.\n#\nset -e\n# Not this.\n",
        "src/y.py": "y = 1\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    staging.stage_site(root, made)
    text = (made / "a.md").read_text()
    assert "[how](contributing.md#map), [run](examples/x.py.md), [src](files/src/y.py.md), `[no](../z.py)`" in text
    assert text.endswith("```sh\n[no](../z.py)\n```\n[web](https://example.org/../z.py)\n")
    assert '[a](../a.md#a "A"), ![f](../figures/f.png), [r](../index.md)' in (made / "below" / "b.md").read_text()
    assert "[a](a.md), [b](below/b.md)" in (made / "contributing.md").read_text()
    assert (made / "files" / "src" / "y.py.md").read_text() == "# src/y.py\n\n```python\ny = 1\n```\n"
    listed = (made / "examples" / "index.md").read_text()
    assert "| [x.py](x.py.md) | Says so. |" in listed
    assert "| [y.sh](y.sh.md) | Does this. |" in listed
    assert (made / "figures" / "f.png").is_file()
    (root / "docs" / "a.md").write_text("# A\n\n[gone](../gone.py)\n")
    with pytest.raises(SystemExit, match=r"docs/a.md: ../gone.py is not a file of the repository"):
        staging.stage_site(root, made)


def test_docstrings_as_markdown() -> None:
    lines = [
        *("Return x.", "", "With a = 1,", "", "    x = |a|", "", "so ``x`` is 1.", ""),
        *("Parameters", "----------", "a : int, optional", "    What |a| is,", "    and `b`.", ""),
        *("Examples", "--------", ">>> f(1)  # doctest: +SKIP", "1", ""),
    ]
    assert docstrings.markdown_of(lines) == (
        "Return x.\n\nWith a = 1,\n\n```text\n    x = |a|\n```\n\nso `x` is 1.\n\n**Parameters**\n\n"
        "- `a`: int, optional  \n  What |a| is,\n  and `b`.\n\n**Examples**\n\n```pycon\n>>> f(1)\n1\n```\n"
    )
    shown = docstrings.with_literal_blocks(lines)
    assert shown[3:7] == ["", "::", "", "    x = |a|"]
    assert "    What \\|a\\| is," in shown


@pytest.mark.parametrize("setting", ["pygments_style", "pygments_dark_style"])
def test_code_can_be_read_on_its_ground(setting: str) -> None:
    styles = pytest.importorskip("pygments.styles")
    (name,) = re.findall(rf'^{setting} = "(\w+)"$', (DOCS / "conf.py").read_text(encoding="utf-8"), re.M)
    style = styles.get_style_by_name(name)
    for token, look in style:
        # A style may mark what is wrong, or a caret, by their ground instead, and nobody reads a blank.
        if look["color"] and not look["bgcolor"] and str(token) not in UNREAD:
            assert contrast(f"#{look['color']}", style.background_color) >= 4.5, token


def test_a_failed_build_leaves_the_site_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    build = machinery("build")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "index.html").write_text("before")
    (folder / build.MARK).touch()
    calls = {"code": 1}

    def without_pages(arguments: list[str]) -> int:
        Path(arguments[-1]).mkdir()
        (Path(arguments[-1]) / "index.html").write_text("after")
        return calls["code"]

    monkeypatch.setattr("sphinx.cmd.build.build_main", without_pages)
    assert build.build_site(folder) == ["Sphinx warned; see above"]
    assert (folder / "index.html").read_text() == "before"
    calls["code"] = 0
    assert any("no Markdown" in line for line in build.build_site(folder))
    assert (folder / "index.html").read_text() == "before"
    monkeypatch.setattr(build, "problems_of", lambda site: [])
    assert build.build_site(folder) == []
    assert (folder / "index.html").read_text() == "after"
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]
    (folder / build.MARK).unlink()  # somebody's own folder
    (folder / "index.html").write_text("mine")
    (said,) = build.build_site(folder)
    assert "files of other programs" in said
    assert (folder / "index.html").read_text() == "mine"
    shutil.rmtree(folder)


def test_former_addresses_lead_to_the_pages_in_their_place(tmp_path: Path) -> None:
    navigation, build = machinery("navigation"), machinery("build")
    build.write_redirects(tmp_path)
    for old, new in navigation.REDIRECTS.items():
        assert not (DOCS / f"{old}.md").exists()
        assert (DOCS / f"{new}.md").is_file()
        (target,) = re.findall(r"url=([^\"]+)", (tmp_path / f"{old}.html").read_text(encoding="utf-8"))
        assert (tmp_path / old).parent.joinpath(target).resolve() == (tmp_path / f"{new}.html").resolve()

"""Draw the figures of the tutorials from the code of their pages.

python docs/figures/tutorials.py    # needs probox[all]

Each page runs up to its figure in a temporary folder, as in its test. The results are drawn.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from make import keep  # noqa: E402
from tests.docs.pages import DOCS, RUN, _python, _Shell, blocks_of  # noqa: E402

OUT = HERE / "tutorials"


@contextmanager
def page(name: str, until: str) -> Iterator[dict[str, Any]]:
    """Run a tutorial in a new folder up to the block that contains a text; give its variables."""
    space: dict[str, Any] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        shell = _Shell(Path(folder), None)
        try:
            for block in blocks_of(DOCS / "tutorials" / f"{name}.md"):
                if block.mark is None and block.language in RUN:
                    place = f"{name}.md:{block.line}"
                    _ = _python(block, space, place) if block.language == "python" else shell.run(block.code, place)
                    if until in block.code:
                        break
            yield space
        finally:
            os.chdir(before)


def save(axes: Any, name: str, width: int = 800) -> None:
    """Save a plot at a width that suits a page."""
    axes.figure.savefig("figure.png", dpi=150, bbox_inches="tight")
    keep(Path("figure.png"), f"tutorials/{name}", width)


def main() -> None:
    """Draw all figures."""
    import probox.plots as plots

    OUT.mkdir(exist_ok=True)
    with page("from-number-to-cause", "probox draw"):
        keep(next(Path("pictures").glob("*.png")), "tutorials/shifted.jpg", 800)
    with page("calibrate-a-detector", "results = {") as names:
        shown = {name: names["results"][name] for name in ("before", "scaled")}
        save(plots.Plots(shown).sigma_error(), "calibration.png")
    with page("choose-a-threshold", "plot.thresholds()") as names:
        save(names["axes"], "threshold.png")
    with page("compare-two-detectors", "against_constant") as names:
        save(plots.Plots(names["results"]).difference(), "differences.png")
    for path in sorted(OUT.iterdir()):
        print(f"{path.name}: {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()

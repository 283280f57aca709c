"""Draw the figures of docs/measures: how each metric responds to changes.

python docs/figures/measures.py            # all of them; needs probox[report]
python docs/figures/measures.py nll crps   # some
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drawn import calibration, finding, informative, proper, scores  # noqa: F401  they register figures
from drawn.common import FIGURES
from PIL import Image

from probox.plots.base import set_style

HERE = Path(__file__).resolve().parent / "measures"
WIDTH = 860
"""Width of a figure in pixels."""


def save(fig: Any, path: Path) -> None:
    """Write a figure as PNG with 128 colours at `WIDTH`."""
    raw = io.BytesIO()
    fig.savefig(raw, format="png")
    with Image.open(raw) as image:
        shown = image.convert("RGB")
        size = WIDTH, round(shown.height * WIDTH / shown.width)
        shown.resize(size, Image.Resampling.LANCZOS).quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def make(names: Sequence[str], folder: Path) -> list[Path]:
    """Draw figures into a folder and return their paths."""
    import matplotlib.pyplot as plt

    paths = []
    for name in names:
        with set_style(False):
            fig = FIGURES[name]()
            paths.append(folder / f"{name}.png")
            save(fig, paths[-1])
            plt.close(fig)
    return paths


def main() -> None:
    """Draw the named figures, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in FIGURES]
    if unknown:
        parser.error(f"unknown figure {unknown[0]!r}, expected one of {', '.join(FIGURES)}")
    given.out.mkdir(parents=True, exist_ok=True)
    for path in make(given.names or list(FIGURES), given.out):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()

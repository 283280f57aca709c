"""Make the figures of the documentation from the demo, with the commands that the pages show.

python docs/figures/make.py    # needs probox[report], selenium, and Debian's chromium and chromium-driver
python docs/figures/make.py --experiments FOLDER    # from the output of `probox experiment run`
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image

HERE = Path(__file__).resolve().parent
WIDTHS = {"training": 1920, "training-scenes": 1344}
"""Widths of figures of experiments in pixels; others are at most 1,600 pixels wide."""


def probox(*arguments: object) -> None:
    """Run a command of probox."""
    program = "from probox.cli import main; main()"
    subprocess.run([sys.executable, "-c", program, *map(str, arguments)], check=True, capture_output=True)


def keep(source: Path, name: str, width: int, *, colours: int | None = 128) -> None:
    """Save a picture for pages at a width: photographs as JPEG, drawings as PNG with few colours.

    Without `colours`, a drawing that contains pictures gets 256 that keep the colours of its thin lines.
    """
    with Image.open(source) as image:
        shown = image.convert("RGB")
        size = (width, round(shown.height * width / shown.width))
        if width < shown.width:
            shown = shown.resize(size, Image.Resampling.LANCZOS)
        if name.endswith(".jpg"):
            shown.save(HERE / name, quality=84, optimize=True, progressive=True)
        else:
            pictures = {"method": Image.Quantize.MAXCOVERAGE, "kmeans": 3} if colours is None else {}
            shown.quantize(colours or 256, dither=Image.Dither.NONE, **pictures).save(HERE / name, optimize=True)


def experiments(run: Path) -> None:
    """Update the stored figures and tables from an output folder of `probox experiment run`."""
    for source in sorted(run.glob("*.png")):
        folder = "training" if source.stem.startswith("training") else "experiments"
        if not (HERE / folder / source.name).exists():
            continue
        colours = None if source.stem == "training-scenes" else 128  # it contains pictures
        keep(source, f"{folder}/{source.name}", WIDTHS.get(source.stem, 1600), colours=colours)
        rows = HERE / folder / f"{source.stem}.csv"
        if rows.exists():
            shutil.copy(run / rows.name, rows)


def beside(left: Path, right: Path, target: Path, gap: int = 12) -> None:
    """Put two pictures next to each other."""
    with Image.open(left) as one, Image.open(right) as other:
        both = Image.new("RGB", (one.width + gap + other.width, max(one.height, other.height)), "white")
        both.paste(one.convert("RGB"), (0, 0))
        both.paste(other.convert("RGB"), (one.width + gap, 0))
        both.save(target)


def close_up(source: Path, target: Path) -> None:
    """Crop and enlarge two objects of a picture of scene 6."""
    with Image.open(source) as image:
        image.crop((395, 575, 835, 900)).resize((792, 585), Image.Resampling.LANCZOS).save(target)


def window(profile: Path, width: int, height: int, *, dark: bool, scale: float) -> Any:
    """Open a Chromium window."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    flags = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-sync"
    for flag in (*flags.split(), "hide-scrollbars", "disable-component-update", f"user-data-dir={profile}"):
        options.add_argument(f"--{flag}")
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or ""))
    size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    taste = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": taste})
    return driver


def screenshots(page: Path, work: Path) -> None:
    """Take screenshots of the report: page, diagnosis, gallery, and one image of two detectors."""
    address = page.resolve().as_uri()
    driver = window(work / "light", 1280, 820, dark=False, scale=1.25)
    driver.get(address + "#t=0.5&detector=1")
    time.sleep(1.0)
    driver.save_screenshot(str(work / "page.png"))
    for section in ("why", "gallery"):
        driver.execute_script(f"document.getElementById('{section}').scrollIntoView({{behavior: 'instant'}})")
        time.sleep(1.5)
        driver.save_screenshot(str(work / f"{section}.png"))
    driver.quit()
    driver = window(work / "dark", 1280, 560, dark=True, scale=1.25)
    driver.get(address + "#image=10&detector=0&beside=1&layers=pmbe")
    time.sleep(1.5)
    place = driver.execute_script(
        "const b = document.querySelectorAll('.stage')[1].getBoundingClientRect(); return [b.x, b.y, b.width]"
    )
    scale = place[2] / 640
    spot = {"type": "mouseMoved", "x": place[0] + 361 * scale, "y": place[1] + 198 * scale}
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", spot)
    time.sleep(0.5)
    driver.save_screenshot(str(work / "compare.png"))
    driver.quit()
    driver = window(work / "phone", 390, 780, dark=False, scale=2)
    driver.get(address + "#image=4&detector=1")
    time.sleep(1.5)
    driver.save_screenshot(str(work / "phone.png"))
    driver.quit()
    keep(work / "page.png", "report.png", 1600, colours=256)
    keep(work / "why.png", "why.png", 1400)
    keep(work / "gallery.png", "gallery.jpg", 1280)
    keep(work / "compare.png", "compare.jpg", 1600)
    keep(work / "phone.png", "phone.jpg", 520)


def main() -> None:
    """Make all figures of the demo, or those of experiments."""
    words = argparse.ArgumentParser(description="Make the figures of the documentation.")
    words.add_argument("--experiments", type=Path, metavar="FOLDER", help="output of probox experiment run")
    run = words.parse_args().experiments
    if run is not None:
        experiments(run)
        return
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        demo, results = work / "demo", work / "demo" / "results"
        probox("demo", "--save", demo)
        probox(
            "evaluate", demo / "truth.json", demo / "deterministic.json", demo / "probabilistic.json", "--out", results
        )
        photos = ["--images", demo / "images"]
        for detector in ("deterministic", "probabilistic"):
            probox("draw", results / detector, *photos, "--out", work / detector, "--image", 6)
        probox(
            "draw",
            results / "probabilistic",
            *photos,
            "--out",
            work / "heat",
            "--image",
            9,
            "--heatmap",
            "--label-text",
            "class",
        )
        options = ["--image", 9, "--corners", "arrow", "--colours", "green-red", "--label-text", "class"]
        probox("draw", results / "probabilistic", *photos, "--out", work / "arrows", *options)
        beside(work / "deterministic" / "scene-06.png", work / "probabilistic" / "scene-06.png", work / "two.png")
        keep(work / "two.png", "two-detectors.jpg", 1600)
        for detector in ("deterministic", "probabilistic"):
            close_up(work / detector / "scene-06.png", work / f"{detector}.png")
        beside(work / "deterministic.png", work / "probabilistic.png", work / "close-ups.png")
        keep(work / "close-ups.png", "close-ups.jpg", 1600)
        beside(work / "heat" / "scene-09.png", work / "arrows" / "scene-09.png", work / "ways.png")
        keep(work / "ways.png", "ways.jpg", 1600)
        probox("plot", results, "--out", work / "plots")
        widths = {"qualities": 1400, "thresholds": 800, "spatial-label": 700, "budget": 900, "sigma-error": 850}
        for plot, width in widths.items():
            keep(work / "plots" / f"{plot}.png", f"{plot}.png", width)
        probox("report", results, *photos, "--out", work / "my report", "--title", "Objects on a table")
        screenshots(work / "my report" / "index.html", work)
    for path in sorted(HERE.glob("*.[jp][pn]g")):
        print(f"{path.name}: {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()

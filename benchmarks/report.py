"""Time of the explorer's page: to create, to open, and to follow its slider.

    python -m benchmarks.report RESULTS [--images DIR] [--repeats 3]

RESULTS is a folder of evaluations written by `probox evaluate --out`. The page is created in a separate process,
including reading, and opened in a headless Chromium (Debian: chromium, chromium-driver; `pip install selenium`). A step
of the slider ends with the second frame after it, when the browser has drawn the update. The table has minimum and
median of creating and opening, and median and maximum of the steps, also with the middle of the page in view.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS = """
const done = arguments[0], slider = document.getElementById("threshold"), times = [];
const one = () => {
  if (times.length >= 15) return done(times);
  slider.value = String(0.02 * times.length + 0.03);
  const started = performance.now();
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  requestAnimationFrame(() => requestAnimationFrame(() => {
    times.push(performance.now() - started);
    setTimeout(one, 400);
  }));
};
one();
"""
PLACES = ("h-summary", "h-plots", "h-groups", "h-gallery")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1400,900")


def make(results: Path, images: Path | None, out: Path) -> float:
    """Return the seconds to create the page."""
    shutil.rmtree(out, ignore_errors=True)
    run = "from probox.cli import main; main()"
    command = [sys.executable, "-c", run, "report", str(results), "--out", str(out)]
    started = time.perf_counter()
    subprocess.run([*command, *(["--images", str(images)] if images else [])], check=True, capture_output=True)
    return time.perf_counter() - started


def window(profile: str) -> Any:
    """Return a headless Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or ""))
    driver.set_script_timeout(120)
    return driver


def opened(driver: Any, page: Path) -> float:
    """Return the seconds until the page is usable."""
    driver.get("about:blank")
    started = time.perf_counter()
    driver.get(page.resolve().as_uri())
    while driver.execute_script("return document.documentElement.dataset.ready") != "true":
        time.sleep(0.01)
    return time.perf_counter() - started


def steps(driver: Any, place: str) -> list[float]:
    """Return the seconds of steps of the slider, with a part of the page in view."""
    where = f"document.getElementById('{place}')"
    driver.execute_script(f"{where}.scrollIntoView({{ behavior: 'instant' }})")
    while not driver.execute_script("return probox.resting"):
        time.sleep(0.05)
    return [milliseconds / 1000 for milliseconds in driver.execute_async_script(STEPS)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="a folder of evaluations")
    parser.add_argument("--images", type=Path, help="a folder of photos")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report"
        made = [make(given.results, given.images, out) for _ in range(given.repeats)]
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
        driver = window(str(Path(folder) / "profile"))
        try:
            open_seconds = [opened(driver, out / "index.html") for _ in range(given.repeats)]
            moved = {place: steps(driver, place) for place in PLACES}
        finally:
            driver.quit()
    print("| task | least | median |\n| --- | ---: | ---: |")
    for task, seconds in (("make the page", made), ("open it", open_seconds)):
        print(f"| {task} | {min(seconds):.2f} s | {statistics.median(seconds):.2f} s |")
    print(f"\nThe page has {size:.1f} MB.\n\n| slider, with in view | median | largest |\n| --- | ---: | ---: |")
    for place, seconds in moved.items():
        middle, largest = 1000 * statistics.median(seconds), 1000 * max(seconds)
        print(f"| {place.removeprefix('h-')} | {middle:.0f} ms | {largest:.0f} ms |")


if __name__ == "__main__":
    main()

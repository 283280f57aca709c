"""A real Chromium to drive: Debian's packages `chromium` and `chromium-driver`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


class Browser:
    """A window on one page, and what one does in it."""

    def __init__(self, profile: Path, *, width: int = 1360, height: int = 900) -> None:
        pytest.importorskip("selenium")
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.service = Service(shutil.which("chromedriver") or "")
        self.driver = webdriver.Chrome(options=options, service=self.service)
        self.driver.set_script_timeout(60)
        self.resize(width, height)

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the page this size, and the user's taste."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        taste = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": taste})

    def open(self, page: Path, address: str = "") -> None:
        """Open a page from disk, anew, and wait until it is usable."""
        self.driver.get("about:blank")
        self.driver.get(page.resolve().as_uri() + (f"#{address}" if address else ""))
        self.wait(lambda: self.js("return document.documentElement.dataset.ready") == "true")

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: Callable[[], Any], seconds: float = 60.0) -> Any:
        """Wait until a condition holds; fail if it never does."""
        end = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.03)

    def text(self, selector: str) -> str:
        found = self.js("const e = document.querySelector(arguments[0]); return e ? e.textContent : null", selector)
        assert found is not None, f"no {selector}"
        return str(found)

    def texts(self, selector: str) -> list[str]:
        return list(self.js("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector))

    def count(self, selector: str) -> int:
        return int(self.js("return document.querySelectorAll(arguments[0]).length", selector))

    def click(self, selector: str) -> None:
        """Click, once more if what was there is drawn anew meanwhile, as tables are when intervals come."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.common.by import By

        def done() -> bool:
            try:
                element = self.driver.find_element(By.CSS_SELECTOR, selector)
                self.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
                element.click()
            except StaleElementReferenceException:
                return False
            return True

        self.wait(done)

    def choose(self, selector: str, value: str) -> None:
        """Choose from a list, or move a slider, as a user's hand would: the value changes, then the events come."""
        self.js(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {bubbles: true}));",
            selector,
            value,
        )

    def keys(self, *names: str) -> None:
        """Press keys wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        for name in names:
            ActionChains(self.driver).send_keys(getattr(Keys, name, name)).perform()

    def hover(self, selector: str, x: float, y: float) -> None:
        """Move the pointer to x, y of an element, counted from its top left."""
        box = self.js(
            "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.x, b.y]", selector
        )
        place = {"type": "mouseMoved", "x": box[0] + x, "y": box[1] + y}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", place)

    def complaints(self) -> list[str]:
        """Return what the console says."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses of everything that was asked for since the last call."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(str(message["params"]["request"]["url"]))
        return found

    def close(self) -> None:
        self.driver.quit()
        # Selenium 4.12 opens a file for the words of its driver, and leaves it open.
        if hasattr(self.service.log_output, "close"):
            self.service.log_output.close()


def settle(browser: Browser) -> None:
    """Wait until nothing is left to be drawn, intervals included."""
    browser.wait(lambda: browser.js("return probox.resting && !probox.resampling.busy"))


def require_chromium() -> None:
    """Skip the tests of a machine without Chromium; `tests/run.sh` installs it where it can."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("Chromium is not on this machine (Debian: chromium, chromium-driver)")


def percent(value: float) -> str:
    return f"{100 * value:.2f}"


def summary_cell(browser: Browser, result: int, column: str) -> str:
    """Return the number that a cell of the summary shows, without the interval below it."""
    cell = f'#summary tr[data-result="{result}"] td[data-column="{column}"]'
    return str(browser.js("return document.querySelector(arguments[0]).firstChild.textContent", cell))

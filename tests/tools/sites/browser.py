# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless Chromium for pages that forewarn writes: as wide as a desk or a phone, light or dark, and watched.

Skips the test where Chromium or its driver is missing.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.sites.requirements import lacking

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

DESKTOP, PHONE = (1280, 900), (390, 844)
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    "--disable-dev-shm-usage",  # a container's is small
    "--host-resolver-rules=MAP * ~NOTFOUND",  # whatever a page asks for, nothing leaves the machine
)


class Browser:
    """One Chromium, which remembers the requests and the complaints of the page that it shows."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def show(self, page: Path, size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> None:
        """Open a file. A narrow one is shown as a phone does, with touch."""
        width, height = size
        phone = width < 600
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self._cdp("Emulation.setDeviceMetricsOverride", metrics)
        self._cdp("Emulation.setTouchEmulationEnabled", {"enabled": phone})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._cdp("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        for kind in ("browser", "performance"):
            self._log(kind)  # what pages before this one said
        self.driver.get(page.as_uri())

    def complaints(self, page: Path) -> list[str]:
        """Return the lines of the console, and every request but the one for the page, so far."""
        said = [f"{entry['level']}: {entry['message']}" for entry in self._log("browser")]
        for entry in self._log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if url.partition("#")[0] not in (page.as_uri(), "data:,"):
                    said.append(f"asks for {url}")
        return said

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script in the page, and return what it returns."""
        return self.driver.execute_script(script, *arguments)

    def tap(self, element: WebElement) -> None:
        """Touch an element as a finger does."""
        script = "arguments[0].scrollIntoViewIfNeeded(); return arguments[0].getBoundingClientRect().toJSON()"
        box = self.run(script, element)
        point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        self._cdp("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
        self._cdp("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        return int(self.run("return document.documentElement.scrollWidth - window.innerWidth"))

    def too_wide(self) -> list[str]:
        """Return the elements that stick out of the window on the right, unless something around them scrolls."""
        found: list[str] = self.run(
            """
            const scrolls = (one) => one && (getComputedStyle(one).overflowX === "auto" || scrolls(one.parentElement));
            return [...document.body.querySelectorAll("*")]
              .filter((one) => one.getBoundingClientRect().right > window.innerWidth + 1 && !scrolls(one))
              .map((one) => `${one.tagName} ${one.className} ${(one.textContent || "").slice(0, 40)}`);
            """
        )
        return found

    def faint(self) -> list[str]:
        """Return texts whose contrast to what is behind them is below 4.5 to 1, as WCAG 2.2 (1.4.3) wants it."""
        found: list[str] = self.run(
            """
            const parse = (text) => text.match(/[\\d.]+/g).map(Number);
            const light = (rgb) => {
              const [r, g, b] = rgb.map((one) => one / 255)
                .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
              return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const behind = (one) => {
              for (; one; one = one.parentElement) {
                const [r, g, b, alpha = 1] = parse(getComputedStyle(one).backgroundColor);
                if (alpha === 1) return [r, g, b];
              }
              return [255, 255, 255];
            };
            const texts = [...document.body.querySelectorAll("*")].filter((one) => one.getClientRects().length
              && [...one.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim()));
            return texts.map((one) => {
              const [first, second] = [parse(getComputedStyle(one).color).slice(0, 3), behind(one)].map(light);
              const contrast = (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
              return [contrast, `${one.tagName} ${one.className}: ${one.textContent.slice(0, 40)}`];
            }).filter(([contrast]) => contrast < 4.5).map(([contrast, text]) => `${contrast.toFixed(2)} ${text}`);
            """
        )
        return found

    def picture(self, path: Path) -> None:
        """Write a picture of the whole page."""
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return window.innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 12_000), "scale": 1}
        found = self._cdp("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(found["data"]))

    def _log(self, kind: str) -> list[dict[str, str]]:
        entries: list[dict[str, str]] = self.driver.get_log(kind)  # type: ignore[no-untyped-call] # has no annotations
        return entries

    def _cdp(self, command: str, arguments: dict[str, Any]) -> Any:
        return self.driver.execute_cdp_cmd(command, arguments)


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium, and end it. Skips the test where it is missing."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        missing = "chromium" if chromium is None else "chromedriver"
        reason = f"there is no {missing} (Debian: apt-get install chromium chromium-driver)"
        lacking("programs", reason)
    from selenium.webdriver import Chrome, ChromeOptions  # here: each process that runs tests imports this file
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = chromium
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with_driver = Chrome(options=options, service=Service(driver))
    try:
        yield Browser(with_driver)
    finally:
        with_driver.quit()

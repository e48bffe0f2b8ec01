# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of verify or diff in a browser: how to write it, and what its map shows."""

from __future__ import annotations

from pathlib import Path

from forewarn.cli.main import main
from selenium.webdriver.common.by import By
from tools.browser import Browser


def verified(directory: Path, *policies: Path) -> Path:
    """Write the page of policies."""
    page = directory / "page.html"
    assert main(["policy", "verify", *map(str, policies), "--html", str(page)]) in (0, 1)
    return page


def compared(directory: Path, old: Path | str, new: Path | str) -> Path:
    """Write the page of a change of policies."""
    page = directory / "diff.html"
    assert main(["policy", "diff", str(old), str(new), "--html", str(page)]) in (0, 1)
    return page


def detail(chromium: Browser) -> str:
    """Return what is shown of the chosen cell."""
    return chromium.driver.find_element(By.ID, "detail").text


def cells(chromium: Browser) -> list[list[str]]:
    """Return the labels of the cells, by the row in which they begin, of all tables."""
    found: list[list[str]] = chromium.run(
        """
        return [...document.querySelectorAll("[role=grid] tbody tr")]
          .map((row) => [...row.querySelectorAll("[role=gridcell]")].map((one) => one.getAttribute("aria-label")));
        """
    )
    return found


def focused(chromium: Browser) -> str:
    """Return the label of the element that has the focus."""
    return str(chromium.run("return document.activeElement.getAttribute('aria-label')"))


def choose(chromium: Browser, label: str, option: str) -> None:
    """Choose an option of a filter."""
    done = chromium.run(
        """
        const [label, option] = arguments;
        const fields = [...document.querySelectorAll("#filters label")];
        const field = fields.find((one) => one.firstChild.textContent === label);
        const select = field.querySelector("select");
        select.value = [...select.options].find((one) => one.textContent === option).value;
        select.dispatchEvent(new Event("change"));
        return true;
        """,
        label,
        option,
    )
    assert done

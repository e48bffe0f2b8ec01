# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation is connected: links lead somewhere, and every page can be found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def pages(repository: Path) -> list[Path]:
    return [
        *repository.glob("*.md"),
        *sorted((repository / "docs").rglob("*.md")),
        *sorted((repository / "roles").rglob("*.md")),
    ]


def links(page: Path) -> list[tuple[Path, str]]:
    """Return the files and anchors that a page links to."""
    found = []
    for target in _LINK.findall(_FENCED.sub("", page.read_text())):
        if not re.match(r"https?:|mailto:", target):
            path, _hash, anchor = target.partition("#")
            found.append(((page.parent / path).resolve() if path else page, anchor))
    return found


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in titles}


def test_links_lead_somewhere(repository: Path) -> None:
    checked = 0
    for page in pages(repository):
        for path, anchor in links(page):
            assert path.exists(), f"{page}: {path}"
            if anchor:
                assert anchor in anchors(path), f"{page}: {path}#{anchor}"
            checked += 1
    assert checked > 100


def test_every_page_is_reached_from_the_readme(repository: Path) -> None:
    reached, todo = set[Path](), [repository / "README.md"]
    while todo:
        page = todo.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            todo += [path for path, _anchor in links(page)]
    assert sorted(set(pages(repository)) - reached) == []


def test_the_readme_is_read_in_a_few_minutes(repository: Path) -> None:
    text = (repository / "README.md").read_text()
    assert len(text.split()) <= 900
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert titles.index("Requirements") < titles.index("Installation")


@pytest.mark.parametrize("name", ["README.md", "docs/README.md"])
def test_the_pages_people_begin_with_name_the_guides(name: str, repository: Path) -> None:
    named = {path.name for path, _anchor in links(repository / name)}
    assert {path.name for path in (repository / "docs" / "guides").glob("*.md")} <= named


def test_the_code_tour_names_what_is_there(repository: Path) -> None:
    text = (repository / "docs" / "CODE-TOUR.md").read_text()
    files = [*(repository / "plugins").rglob("*.py"), *(repository / "tests").rglob("*.py")]
    stops = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert len(stops) == 11, "ten, and where to go on"
    for stop in stops:
        code = ""
        for name in re.findall(r"`([\w/]+\.py)`", stop):
            found = [path for path in files if path.as_posix().endswith(f"/{name}")]
            assert found, name
            code += "".join(path.read_text() for path in found)
        for name in re.findall(r"`([A-Za-z_][\w.]*)`", stop):
            assert name.endswith(".py") or re.search(rf"\b{name.rpartition('.')[2]}\b", code), name

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every fact of the service that is cited has an entry in docs/service-facts.md, and links into that page are right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_ID = re.compile(r"\bSE-\d+\b")
_ENTRY = re.compile(r"^### (SE-\d+): \S", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]*)#([^)\s]+)\)")
FOLDERS = ("plugins", "tests", "docs", "roles", "playbooks", "policies", "extensions", "demo")
UNKNOWN = "SE-" + "99"  # in two parts, or it would be cited here


@pytest.fixture(scope="module")
def page(repository: Path) -> Path:
    return repository / "docs" / "service-facts.md"


def texts(repository: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files that may cite a fact, and what is in them."""
    found = [path for folder in FOLDERS for path in sorted((repository / folder).rglob("*"))]
    for path in [*repository.glob("*.md"), *found]:
        if path.is_file() and path.suffix != ".pyc":
            yield path, path.read_text(errors="ignore")


def unexplained(cited: str, facts: str) -> set[str]:
    """Return the ids in a text that have no entry among the facts."""
    return set(_ID.findall(cited)) - set(_ENTRY.findall(facts))


def wrong_links(origin: Path, text: str, page: Path) -> list[str]:
    """Return a page's links to the facts that lead to another one. That there is one, test_docs.py shows."""
    return [
        f"{label} leads to #{anchor}"
        for label, target, anchor in _LINK.findall(_FENCED.sub("", text))
        if ((origin.parent / target).resolve() if target else origin) == page
        and _ID.fullmatch(label)
        and not anchor.startswith(f"{label.lower()}-")
    ]


def test_every_cited_fact_has_an_entry(repository: Path, page: Path) -> None:
    facts, cited = page.read_text(), set[str]()
    for path, text in texts(repository):
        assert unexplained(text, facts) == set(), path.relative_to(repository)
        if path != page:
            cited.update(_ID.findall(text))
    assert len(cited) > 20


def test_each_fact_has_one_entry(page: Path) -> None:
    entries = _ENTRY.findall(page.read_text())
    assert sorted(set(entries)) == sorted(entries)


def test_links_lead_to_the_fact_that_they_name(repository: Path, page: Path) -> None:
    for path, text in texts(repository):
        if path.suffix == ".md":
            assert wrong_links(path, text, page) == [], path.relative_to(repository)


def test_a_page_that_cites_facts_links_to_them(repository: Path, page: Path) -> None:
    for path, text in texts(repository):
        if path.suffix == ".md" and path != page and _ID.search(text):
            assert f"{page.name})" in text or f"{page.name}#" in text, path.relative_to(repository)


@pytest.mark.parametrize(
    ("cited", "missing"),
    [
        ("as SE-05 says", set()),
        (f"SE-05, {UNKNOWN} and BASE-64", {UNKNOWN}),
        ("SE-" + "5", {"SE-" + "5"}),
    ],
)
def test_an_id_without_an_entry_is_found(cited: str, missing: set[str]) -> None:
    assert unexplained(cited, "### SE-05: A title\n\nText.\n") == missing


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ("[SE-05](service-facts.md#se-05-a-title-twice)", []),
        ("[a title](service-facts.md#se-05-a-title-twice)", []),
        ("[SE-05](emulator.md#se-05)", []),
        ("[SE-14](service-facts.md#se-05-a-title-twice)", ["SE-14 leads to #se-05-a-title-twice"]),
    ],
)
def test_a_wrong_link_is_found(link: str, wrong: list[str], page: Path) -> None:
    assert wrong_links(page.with_name("emulator.md"), link, page) == wrong

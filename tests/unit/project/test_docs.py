# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation is connected: links lead somewhere, and every page can be found. Its numbers are those of today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomllib
from forewarn import bundle
from forewarn.cli.main import COMMANDS
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.suite.timings import BUDGETS

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


NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("README.md", r"brings (\w+) policies"), ("docs/policies.md", r"`policies/` has (\w+) to start")],
)
def test_the_number_of_policies(name: str, sentence: str, repository: Path) -> None:
    policies = [path for path in (repository / "policies").glob("*.yml") if not path.name.endswith(".test.yml")]
    said = re.search(sentence, (repository / name).read_text())
    assert said is not None
    assert NUMBERS.index(said[1]) + 1 == len(policies)


def test_the_page_on_the_runner(repository: Path, package: Path, tmp_path: Path) -> None:
    text = (repository / "docs" / "runner.md").read_text()
    built = bundle.build(package, tmp_path / "forewarn.pyz")
    size = re.search(r"forewarn.pyz: (\d+) bytes", text)
    assert size is not None
    assert int(size[1]) == pytest.approx(built.size, rel=0.1), "a sample of an earlier build, and not of long ago"
    listed, commands = text.split("standard library: ")[1].split(". The file")[0].split("commands", 1)
    assert sorted(re.findall("`(\\w+)`", listed)) == sorted({*bundle.CONTENTS} - {"cli"})
    there = [
        name for name, (module, _help) in COMMANDS.items() if f"cli.{module.partition('.')[0]}" not in bundle.LEFT_OUT
    ]
    assert re.findall("`(\\w+)`", commands) == there


def test_how_long_it_takes_is_what_ci_allows(repository: Path) -> None:
    text = (repository / "CONTRIBUTING.md").read_text()
    minutes = {
        command: int(last)
        for command, last in re.findall(r"^\| `([^`]+)`[^|]*\|[^|]*\| (?:\d+ to )?(\d+) minutes", text, re.M)
    }
    assert minutes["make unit"] * 60 == BUDGETS["unit"]
    assert minutes["make lint"] * 60 == BUDGETS["static checks"]
    assert minutes["make test"] * 60 == BUDGETS["unit"] + BUDGETS["processes"]
    assert minutes[".ci/run"] * 60 == pytest.approx(sum(BUDGETS.values()), rel=0.05)
    assert f"some {NUMBERS[minutes['make unit'] - 1]} minutes on two cores" in (repository / "Makefile").read_text()


def test_pip_installs_only_own_dependencies(repository: Path, package: Path) -> None:
    """``forewarn`` on PyPI would be a stranger's: MAINTAINERS.md. All install the control node as the README does."""
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    known = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    known |= {canonicalize_name(name) for name in ("ansible-core", "ansible-rulebook")}
    collection = "~/.ansible/collections/ansible_collections/forewarn/azure"
    files = [*pages(repository), *package.rglob("*.py"), *(repository / "docs").rglob("*.yml"), *package.rglob("*.yml")]
    found = 0
    for path in files:
        for words in re.findall(r"pip install ((?:[~\w./-]+ ?)+)", path.read_text()):
            for word in words.split():
                assert word == collection or canonicalize_name(word) in known, f"{path}: {word}"
                found += 1
    assert found > 10
    readme = (repository / "README.md").read_text()
    for page in pages(repository):
        for command in re.findall(r"^\$ (pip install [^#\n]+)", page.read_text(), re.MULTILINE):
            assert f"$ {command.strip()}\n" in readme, page

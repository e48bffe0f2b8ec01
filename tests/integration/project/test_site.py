# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation site: every page is on it, it asks no other site for anything, and links that lead nowhere fail."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import pytest
from tools.sites.commands import run_program
from tools.sites.requirements import lacking

REPOSITORY_URL = "https://github.com/forewarn/forewarn.azure/blob/main"
HOME = """\
# Home

[a](docs/a.md#part) [b](policies/b.yml) [c](docs) [d](https://example.test/d) `[e](none.md)`

[![a picture](docs/f.svg)](docs/a.md)
"""
A = """\
# A

## Part

[home](../README.md) ![a picture](f.svg)

```mermaid
x --> y
```

```text
[not a link](none.md)
```
"""
REFERENCE = """\
Azure
=====

.. contents::
   :local:

See :ref:`here <common_return_values>` and :ref:`callback_plugins`.
"""
PAGES = {
    "README.md": HOME,
    "docs/README.md": "# Index\n\n## Guides\n\n- [A](a.md): it\n\n## Others\n\n- [Rules](../CONTRIBUTING.md)\n",
    "docs/a.md": A,
    "docs/f.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>\n',
    "CONTRIBUTING.md": "# Rules\n",
    "policies/b.yml": "b: 1\n",
    "collection/index.rst": REFERENCE,
}


class Links(HTMLParser):
    """Collects what a page links to, and what a browser would fetch for it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is not None and name in ("href", "src", "srcset", "data", "poster"):
                (self.links if tag == "a" else self.fetched).append(unquote(value))


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    if find_spec("sphinx") is None or find_spec("antsibull_docs") is None:
        lacking("programs", "what builds the documentation is not installed: make venv")


def build(repository: Path, directory: Path, **changed: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Build the site of ``PAGES``, some of them changed."""
    for name, text in {**PAGES, **changed}.items():
        (directory / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / "tree" / name).write_text(text)
    options = (
        "--quiet",
        "--fail-on-warning",
        "--keep-going",
        "--conf-dir",
        repository / "tests" / "tools" / "docs" / "site",
    )
    command = (sys.executable, "-m", "sphinx", *options, directory / "tree", directory / "site")
    return run_program(*command), directory / "site"


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    process, site = build(repository, tmp_path_factory.mktemp("site"))
    assert process.returncode == 0, process.stderr
    return site


def test_links_lead_to_pages_or_to_the_repository(site: Path) -> None:
    links = Links(site / "README.html").links
    assert {
        "docs/a.html#part",
        f"{REPOSITORY_URL}/policies/b.yml",
        f"{REPOSITORY_URL}/docs",
        "https://example.test/d",
    } <= {*links}
    assert "../README.html" in Links(site / "docs" / "a.html").links
    assert not any("none.md" in link for link in links)
    references = Links(site / "collection" / "index.html").links
    for page in ("reference_appendices/common_return_values.html", "plugins/callback.html"):
        assert any(link.endswith(f"/{page}") for link in references), page


def test_the_index_is_the_navigation(site: Path) -> None:
    text = (site / "README.html").read_text()
    assert re.findall(r'class="caption-text">([^<]+)<', text)[:3] == ["Reference", "Guides", "Others"]
    links = Links(site / "README.html").links
    places = [links.index(page) for page in ("collection/index.html", "docs/a.html", "CONTRIBUTING.html")]
    assert places == sorted(places)


def test_what_leads_nowhere_fails(repository: Path, tmp_path: Path) -> None:
    """One build with every mistake: each is a warning, and with --fail-on-warning one would be enough."""
    changed = {
        "docs/a.md": "# A\n\n## Part\n\n[x](no-page.md)\n\n![x](no-picture.svg)\n",
        "CONTRIBUTING.md": "# Rules\n\n[x](docs/a.md#no-part)\n\n[y](#no-own-part)\n",
        "docs/README.md": "# Index\n\n## Guides\n\n- [A](a.md): it\n- [B](no-guide.md): it\n",
        "collection/index.rst": "Azure\n=====\n\n:ref:`here <no-label>`\n",
    }
    process, _site = build(repository, tmp_path, **changed)
    assert process.returncode != 0
    warned = [line for line in process.stderr.splitlines() if "WARNING" in line]
    for page, name in (
        ("docs/a.md", "'no-page.md'"),
        ("docs/a.md", "no-picture.svg"),
        ("CONTRIBUTING.md", "'no-part'"),
        ("CONTRIBUTING.md", "'no-own-part'"),
        ("README.md", "docs/no-guide"),  # the table of contents of the start page
        ("docs/README.md", "'no-guide.md'"),
        ("collection/index.rst", "no-label"),
    ):
        assert any(name in line and f"/tree/{page}:" in line for line in warned), (page, name, process.stderr)


def test_the_schemas_are_where_their_ids_say(repository: Path, tmp_path: Path) -> None:
    process = run_program(sys.executable, repository / "tests" / "tools" / "docs" / "site" / "schemas.py", tmp_path)
    assert process.returncode == 0, process.stderr
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")}
    assert names == {"schemas/1/policy.schema.json", "schemas/1/policy-test.schema.json"}
    for name in names:
        assert json.loads((tmp_path / name).read_text())["$id"] == f"https://forewarn.github.io/forewarn.azure/{name}"


@pytest.mark.full  # and by make lint-docs, which builds the site anyway
def test_site_has_every_page_and_no_external_request(repository: Path, tmp_path: Path) -> None:
    process = run_program(repository / "tests" / "tools" / "docs" / "site" / "build.sh", tmp_path / "site")
    assert process.returncode == 0, process.stdout + process.stderr
    assert (tmp_path / "site" / "index.html").is_file()
    for name in ("policy", "policy-test"):
        schema = repository / "plugins" / "module_utils" / "forewarn" / "compiler" / f"{name}.schema.json"
        assert (tmp_path / "site" / "schemas" / "1" / schema.name).read_bytes() == schema.read_bytes()
    written = [*repository.glob("*.md"), *(repository / "docs").rglob("*.md"), *(repository / "roles").rglob("*.md")]
    pages = {path.relative_to(repository).with_suffix(".html") for path in written}
    pages |= {
        Path("collection") / f"{path.stem}_module.html" for path in (repository / "plugins" / "modules").glob("*.py")
    }
    assert len(pages) > 40
    for page in sorted(pages):
        path = tmp_path / "site" / page
        assert path.is_file(), page
        for place in Links(path).fetched:
            assert not re.match(r"https?:|//", place), f"{page} asks for {place}"
            if not place.startswith(("data:", "#")) and "?" not in place.partition("#")[0]:
                assert (path.parent / place.partition("#")[0]).exists(), f"{page}: {place}"
        assert 'class="error"' not in path.read_text()
        assert "Adding a table of contents" not in path.read_text()  # the theme's reproach

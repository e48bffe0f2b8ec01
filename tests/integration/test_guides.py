# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guides and the README tell their readers to do: it works, and prints what they show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
from tools import guides
from tools.listened import free_port

PAGES = {
    "docs/emulator.md": 14,
    "docs/guides/first-policy.md": 10,
    "docs/guides/migrating.md": 10,
    "docs/guides/predicted-failures.md": 3,
}


@pytest.fixture
def environ(tmp_path: Path, collections_path: Path) -> dict[str, str]:
    """Return the environment of somebody who has nothing but the collection, the command and git."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "LC_ALL": "C.UTF-8",
        "NO_PROXY": "*",
        "FOREWARN_ENDPOINT": os.environ["FOREWARN_ENDPOINT"],
        "ANSIBLE_COLLECTIONS_PATH": str(collections_path),
        "GIT_AUTHOR_NAME": "a reader",
        "GIT_AUTHOR_EMAIL": "reader@localhost",
        "GIT_COMMITTER_NAME": "a reader",
        "GIT_COMMITTER_EMAIL": "reader@localhost",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_true(name: str, repository: Path, tmp_path: Path, environ: dict[str, str]) -> None:
    """``PAGES`` has the least number of commands of a page: otherwise a page without any would pass."""
    desk = tmp_path / "desk"
    desk.mkdir()
    (tmp_path / "home").mkdir()
    assert guides.run(repository / name, desk, free_port(), environ) >= PAGES[name]


def test_the_readme_is_true_of_what_it_builds_and_installs(
    repository: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    """In a checkout of what would be committed; Ansible runs the collection that was installed from the build."""
    desk, home = tmp_path / "desk", tmp_path / "home"
    subprocess.run([repository / "tests" / "tools" / "copy-tree.sh", desk], check=True)
    home.mkdir()
    del environ["ANSIBLE_COLLECTIONS_PATH"]
    assert guides.run(repository / "README.md", desk, free_port(), environ) >= 10
    installed = home / ".ansible" / "collections" / "ansible_collections" / "forewarn" / "azure"
    # The wheel can be built from it: pip finds its version and its package.
    hatch = tomllib.loads((installed / "pyproject.toml").read_text())["tool"]["hatch"]
    assert (installed / hatch["version"]["path"]).is_file()
    assert all((installed / package).is_dir() for package in hatch["build"]["targets"]["wheel"]["packages"])


@pytest.mark.parametrize(
    ("session", "message"),
    [
        ("$ echo one\ntwo", "printed was\none"),
        ("$ echo one\n$ false", "ended with 1"),
        ("$ true  # exit code 1", "ended with 0"),
        ("$ printf 'a\\nb\\nc\\n'\na\n…\nd", "printed was\na\nb\nc"),
    ],
)
def test_a_page_that_is_not_true_is_found_out(
    session: str, message: str, tmp_path: Path, environ: dict[str, str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n```console\n{session}\n```\n")
    with pytest.raises(AssertionError, match=message):
        guides.run(page, tmp_path, 1, environ)


def test_dots_stand_for_anything_and_state_is_kept(tmp_path: Path, environ: dict[str, str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- file: deep/a.txt -->\n```text\nfirst\nsecond\nthird\n```\n\n"
        "```console\n$ cd deep && word=x\n$ cat a.txt; echo $word\nfirst\n…\nx\n$ cat \\\n> a.txt\nf…t\n…\n"
        "$ (exit 3)  # exit code 3\n```\n\n<!-- not run: because -->\n```console\n$ false\n```\n"
    )
    assert guides.run(page, tmp_path, 1, environ) == 4

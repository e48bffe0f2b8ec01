# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guides and the README tell their readers to do: it works, and prints what they show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.docs import guides
from tools.servers.galaxy_server import galaxy
from tools.servers.listener_client import free_port
from tools.sites.commands import run_program
from tools.sites.pythons import python
from tools.sites.requirements import lacking

PAGES = {
    "docs/emulator.md": 14,
    "docs/guides/first-policy.md": 10,
    "docs/guides/migrating.md": 10,
    "docs/guides/predicted-failures.md": 3,
    "docs/guides/scale-sets.md": 4,
    "docs/guides/shared-definitions.md": 6,
    "docs/guides/windows.md": 6,
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
@pytest.mark.in_turn(2)
def test_a_page_is_true(name: str, repository: Path, tmp_path: Path, environ: dict[str, str]) -> None:
    """``PAGES`` has the least number of commands of a page: otherwise a page without any would pass."""
    desk = tmp_path / "desk"
    desk.mkdir()
    (tmp_path / "home").mkdir()
    assert guides.run(repository / name, desk, free_port(), environ) >= PAGES[name]


def need_index(interpreter: Path, requirement: str, directory: Path) -> None:
    """Skip where pip cannot get a package."""
    options = ("--quiet", "--no-deps", "--dest", directory)
    process = run_program(interpreter, "-m", "pip", "download", *options, requirement)
    if process.returncode:
        lacking("programs", f"pip cannot get {requirement}: {process.stderr.strip().splitlines()[-1]}")


# The oldest and the newest ansible-core that we support, each with a Python that fits.
@pytest.mark.versions
@pytest.mark.parametrize(("core", "version"), [pytest.param("2.16", "3.11", marks=pytest.mark.full), ("2.21", "3.12")])
def test_the_readme_is_true_on_a_fresh_machine(
    core: str, version: str, repository: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    """There is a Python and nothing else: all that is used comes from Galaxy and by pip, as the README says."""
    tree, desk, programs = (tmp_path / name for name in ("tree", "desk", "programs"))
    subprocess.run([repository / "tests" / "tools" / "copy-tree.sh", tree], check=True)
    run_program("ansible-galaxy", "collection", "build", "--output-path", tmp_path, tree, env=environ)
    desk.mkdir()
    programs.mkdir()
    (programs / "python3").symlink_to(python(version))
    requirement = f"ansible-core=={core}.*"
    (tmp_path / "constraints.txt").write_text(f"{requirement}\n")
    need_index(programs / "python3", requirement, tmp_path)
    del environ["ANSIBLE_COLLECTIONS_PATH"], environ["NO_PROXY"]
    settings = re.compile(r"PIP_|https?_proxy$", re.IGNORECASE)
    environ |= {name: value for name, value in os.environ.items() if settings.match(name)}
    environ |= {
        "PATH": f"{programs}:{os.defpath}",
        "PIP_CONSTRAINT": str(tmp_path / "constraints.txt"),
        "no_proxy": "127.0.0.1,localhost",
    }
    (tarball,) = tmp_path.glob("forewarn-azure-*.tar.gz")
    with galaxy(tarball) as environ["ANSIBLE_GALAXY_SERVER"]:
        assert guides.run(repository / "README.md", desk, free_port(), environ) >= 12


@pytest.mark.parametrize(
    ("session", "message"),
    [
        ("$ echo one\ntwo", "printed was\none"),
        ("$ echo one\n$ false", "ended with 1"),
        ("$ true  # exit code 1", "ended with 0"),
        ("$ printf 'a\\nb\\nc\\n'\na\n…\nd", "printed was\na\nb\nc"),
    ],
)
def test_untrue_page_is_detected(session: str, message: str, tmp_path: Path, environ: dict[str, str]) -> None:
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

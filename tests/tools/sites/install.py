# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installs what one purpose needs into the environment of this Python: ``install.py demo|test|lint|docs``.

The versions are those of constraints.txt. Each purpose is an installation of its own, so that one which fails does not
keep the others; what one has installed, the next finds there. Only that of the demo has the package itself.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import tomllib

REPOSITORY = Path(__file__).resolve().parents[3]
PURPOSES = {
    "demo": "the package and ansible-core",
    "test": "what the tests need",
    "lint": "what the static checks need",
    "docs": "what builds the documentation",
}


def requirements(purpose: str) -> list[str]:
    """Return what pip is asked for: for the demo the checkout, for anything else the extra of that name."""
    if purpose == "demo":
        return ["--editable", f"{REPOSITORY}[ansible]"]
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    return [*extras["ansible"], *extras[purpose]]


def install(purpose: str) -> int:
    """Run pip, and say so; in a terminal, count the seconds. Return pip's exit code."""
    line = f"Installing {PURPOSES[purpose]} into {Path(sys.prefix).name}"
    terminal = sys.stdout.isatty()
    print(line, "…", end="" if terminal else "\n", flush=True)
    began = time.monotonic()
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]  # errors only
    process = subprocess.Popen([*pip, "--constraint", REPOSITORY / "constraints.txt", *requirements(purpose)])
    while terminal and process.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        print(f"\r{line} … {time.monotonic() - began:.0f} s", end="", flush=True)
    status = process.wait()
    outcome = "took" if status == 0 else "failed after"
    print("\r" * terminal + f"{line} {outcome} {time.monotonic() - began:.0f} s", flush=True)
    return status


if __name__ == "__main__":
    with (Path(sys.prefix) / ".installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # make --jobs starts several
        sys.exit(install(sys.argv[1]))

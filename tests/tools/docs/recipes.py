# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recipes of hooks in docs/hooks/recipes: their files, and their scripts as the runner starts them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.docs import guides
from tools.servers import recipe_programs
from tools.sites.commands import run_program

EVENT = "9C2B0A44-1111-2222-3333-444455556666"


def files(page: Path) -> dict[str, str]:
    """Return the files of a page: name -> content."""
    return {block.value: block.text for block in guides.blocks(page) if block.note == "file" and block.value}


class Script:
    """A recipe's script in a directory of its own, with stand-ins for the programs that it calls.

    ``changed`` are texts of the script, such as paths, and what a test has in their place.
    """

    def __init__(self, page: Path, directory: Path, *arguments: str, changed: Mapping[str, str] | None = None) -> None:
        ((name, text),) = [(name, text) for name, text in files(page).items() if name.startswith("hooks/")]
        for old, new in (changed or {}).items():
            assert old in text, f"{page}: {old} is gone"
            text = text.replace(old, new)
        assert "169.254" not in text, "a test never asks the real service"
        self.programs = directory / "programs"
        self.programs.mkdir()
        self.path = directory / Path(name).name
        self.path.write_text(text)
        self.path.chmod(0o755)
        self.arguments = arguments
        self.state_file = directory / "state.json"

    def stand_in(self, *names: str, **state: Any) -> None:
        """Put stand-ins for programs where the script finds them, in a state."""
        self.state = {"calls": [], **state}
        for name in names:
            command = [sys.executable, recipe_programs.__file__, str(self.state_file), name]
            (self.programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            (self.programs / name).chmod(0o755)

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.state_file.read_text())
        return found

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self.state_file.write_text(json.dumps(state))

    def change(self, **values: Any) -> None:
        """Change the state, as something else than the script does."""
        self.state = {**self.state, **values}

    def calls(self, *words: str) -> int:
        """Return how often a program was called with all of these words."""
        return sum(set(words) <= set(call) for call in self.state["calls"])

    def run(
        self, phase: str, *, seconds: int = 30, others: int = 0, event: str = EVENT
    ) -> subprocess.CompletedProcess[str]:
        """Run the script, as the runner would; what has no value is empty."""
        environ = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "HOME": "/",
            "FOREWARN_PHASE": phase,
            "FOREWARN_EVENT_ID": event,
            "FOREWARN_TIMEOUT_SECONDS": str(seconds),
            "FOREWARN_OTHER_EVENTS": str(others),
        }
        return run_program(self.path, *self.arguments, env=environ, stdin="", timeout=seconds + 30)

    def does(self, phase: str, **how: Any) -> str:
        """Run the script, which has to succeed; return what it prints."""
        done = self.run(phase, **how)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fails(self, phase: str, **how: Any) -> str:
        """Run the script, which has to fail; return the reason, its last line."""
        done = self.run(phase, **how)
        assert done.returncode > 0, done.stdout
        return done.stderr.strip().splitlines()[-1]

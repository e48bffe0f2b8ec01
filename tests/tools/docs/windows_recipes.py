# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recipes for Windows in docs/hooks/recipes: their scripts, as cmd.exe of Wine runs them."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools.docs.recipes import EVENT, files
from tools.servers import recipe_programs
from tools.sites.wine import PYTHON, Wine

_HOME = r"C:\recipes"
_DATA = r"C:\ProgramData\Forewarn"
_MAIN = """\
import sys
sys.argv[1:1] = [{state!r}, {name!r}]
import recipe_programs
recipe_programs.main()
"""


class WindowsScript:
    """A recipe's script on a Windows, with a stand-in for the program that it calls.

    ``program`` is the path of that as the script has it, ``name`` that of the stand-in.
    """

    def __init__(self, page: Path, wine: Wine, program: str, name: str, *arguments: str, **state: Any) -> None:
        ((path, text),) = [(path, text) for path, text in files(page).items() if path.startswith("hooks/")]
        assert text.count(program) == 1, f"{page}: {program} is gone"
        text = text.replace(program, rf"{_HOME}\{name}.exe")
        text, pauses = re.subn(r'(ping\.exe" -n) \d', r"\1 1", text)  # without a pause between two
        assert pauses == 1, page
        self._wine = wine
        self._arguments = (rf"{_HOME}\{Path(path).name}", *arguments)
        for directory in (_HOME, _DATA):
            shutil.rmtree(wine.path(directory), ignore_errors=True)
            wine.path(directory).mkdir(parents=True)
        wine.path(self._arguments[0]).write_bytes(text.replace("\n", "\r\n").encode("ascii"))
        self._state_file = wine.path(rf"{_HOME}\state.json")
        wine.path(rf"{_HOME}\{name}.exe").write_bytes(_stand_in(name))
        self.state = {"calls": [], **state}

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._state_file.read_text())
        return found

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._state_file.write_text(json.dumps(state))

    def change(self, **values: Any) -> None:
        """Change the state, as something else than the script does."""
        self.state = {**self.state, **values}

    def calls(self, *words: str) -> int:
        """Return how often the program was called with all of these words, each a part of an argument."""
        return sum(all(any(word in one for one in call) for word in words) for call in self.state["calls"])

    def notes(self) -> list[str]:
        """Return the files that the script has left behind."""
        return sorted(path.name for path in self._wine.path(_DATA).iterdir() if path.is_file())

    def run(self, phase: str, *, seconds: int = 60, others: int = 0) -> subprocess.CompletedProcess[str]:
        """Run the script, as the runner would."""
        environ = {
            "FOREWARN_PHASE": phase,
            "FOREWARN_EVENT_ID": EVENT,
            "FOREWARN_TIMEOUT_SECONDS": str(seconds),
            "FOREWARN_OTHER_EVENTS": str(others),
        }
        return self._wine.run(r"C:\windows\system32\cmd.exe", "/d", "/c", *self._arguments, environ=environ)

    def does(self, phase: str, **how: Any) -> str:
        """Run the script, which has to succeed; return what it prints."""
        done = self.run(phase, **how)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fails(self, phase: str, **how: Any) -> str:
        """Run the script, which has to fail; return the reason, its last line."""
        done = self.run(phase, **how)
        assert done.returncode > 0, done.stdout
        return done.stderr.strip().splitlines()[-1]


def _stand_in(name: str) -> bytes:
    """Return a program of Windows that runs a function of ``recipe_programs``.

    It is as pip makes programs: a launcher, the interpreter's path, and a zip file of the code.
    """
    found = find_spec("distlib")
    launcher = Path(str(found and found.origin)).parent / "t64.exe"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("__main__.py", _MAIN.format(state=rf"{_HOME}\state.json", name=name))
        archive.writestr("recipe_programs.py", Path(recipe_programs.__file__).read_text(encoding="utf-8"))
    return launcher.read_bytes() + f"#!{PYTHON}\n".encode() + content.getvalue()

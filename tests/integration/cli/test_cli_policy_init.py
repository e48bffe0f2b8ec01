# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy init``: whatever the answers are, what it writes is proven; and its questions on a terminal."""

from __future__ import annotations

import itertools
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from forewarn.cli.policy.init.questions import KINDS, LONGEST_FREEZE, QUESTIONS
from tools.sites.commands import FOREWARN, in_process
from tools.suite.sizes import in_turn

policy = partial(in_process, "policy")
init = partial(in_process, "policy", "init")
FREEZES = ("hold", "1", "9", str(LONGEST_FREEZE))
REBOOTS = ("hold", "approve")
PREPARATIONS = ("none", *KINDS, "app@1:x.service", "/usr/local/bin/drain+1")


def files(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("prepare", in_turn(PREPARATIONS))
def test_every_combination_of_answers(prepare: str, tmp_path: Path) -> None:
    """It is checked, tested, proven and formatted, without a finding that anybody would have to look at."""
    for freeze, reboot in itertools.product(FREEZES, REBOOTS):
        directory = tmp_path / f"{freeze}-{reboot}"
        result = init(directory, "--freeze", freeze, "--reboot", reboot, "--prepare", prepare)
        assert (result.returncode, result.stderr) == (0, "")
        assert files(directory) == ["maintenance.test.yml", "maintenance.yml"]
        for command in (("check",), ("test", "--require-coverage"), ("verify", "--strict"), ("fmt", "--check")):
            done = policy(*command, directory)
            assert done.returncode == 0, done.stdout
            if command[0] == "verify":
                assert done.stdout.endswith("1 policy verified for every event: nothing found\n"), done.stdout
        text = (directory / "maintenance.yml").read_text()
        assert (f"default: {freeze}\n" in text) == (freeze != "hold")
        assert (prepare in text) == (prepare != "none")
        assert len(re.findall(r"output: approve", text)) == (freeze != "hold") + (reboot == "approve")


class Terminal:
    """A command whose standard input and error are a terminal."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self._controller, terminal = pty.openpty()
        self._process = subprocess.Popen(
            [*FOREWARN, "policy", "init", *arguments],
            cwd=cwd,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(terminal)
        self.shown = ""

    def answers(self, *texts: str) -> tuple[int, str]:
        """Answer each prompt in turn; return the exit code and the standard output."""
        for text in texts:
            self._read_until(lambda: self.shown.rstrip(" ").endswith("]"))
            self.shown += "\n"
            os.write(self._controller, text.encode())
        self._read_until(lambda: False)
        assert self._process.stdout is not None
        output = self._process.stdout.read().decode()
        self._process.stdout.close()
        os.close(self._controller)
        return self._process.wait(20), output

    def _read_until(self, enough: Callable[[], bool]) -> None:
        """Read what is shown until it is enough, or the command has ended."""
        deadline = time.monotonic() + 20
        while not enough():
            assert time.monotonic() < deadline, self.shown
            if not select.select([self._controller], [], [], 0.1)[0]:
                continue
            try:
                read = os.read(self._controller, 4096)
            except OSError:  # the other end is closed
                return
            if not read:
                return
            self.shown += read.decode()


class TestTerminal:
    def test_three_questions(self, tmp_path: Path) -> None:
        terminal = Terminal(cwd=tmp_path)
        code, output = terminal.answers("9\n", "Approve\n", "\n")
        assert code == 0, terminal.shown
        assert output.startswith("written: policies/maintenance.yml\n")
        for question in QUESTIONS:
            assert question.text in terminal.shown
        text = (tmp_path / "policies" / "maintenance.yml").read_text()
        assert "default: 9\n" in text
        assert "output: approve\n      explanation: \"'approved at once: ' + event.EventType\"" in text

    def test_only_what_no_option_answers_is_asked(self, tmp_path: Path) -> None:
        terminal = Terminal("--freeze", "9", "--prepare", "none", cwd=tmp_path)
        assert terminal.answers("hold\n")[0] == 0
        assert QUESTIONS[0].text not in terminal.shown
        terminal = Terminal("other", "--freeze", "9", "--prepare", "none", "--reboot", "hold", cwd=tmp_path)
        assert terminal.answers()[0] == 0
        assert terminal.shown == ""

    @pytest.mark.parametrize("given_up", [("x\n", "y\n", "z\n"), ("\x04",), ("9\n", "\x04")])
    def test_without_an_answer_nothing_is_written(self, given_up: tuple[str, ...], tmp_path: Path) -> None:
        terminal = Terminal(cwd=tmp_path)
        code, output = terminal.answers(*given_up)
        assert (code, output) == (2, "")
        assert "nothing was written" in terminal.shown
        assert files(tmp_path) == []
        assert "Traceback" not in terminal.shown

    def test_nothing_is_asked_that_would_be_in_vain(self, tmp_path: Path) -> None:
        (tmp_path / "policies").mkdir()
        (tmp_path / "policies" / "maintenance.yml").write_text("mine")
        terminal = Terminal("--prepare", "nonsense", cwd=tmp_path)
        assert terminal.answers()[0] == 2
        assert QUESTIONS[0].text not in terminal.shown

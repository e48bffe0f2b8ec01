# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs playbooks of the collection on the hosts of a lab, as an operator would: ``ansible-playbook`` over SSH."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tools.sites.ansible_cores import CORE, ansible

from ..lab import Lab
from ..machine import LabError
from .chroot import Chroot

_PATIENCE = 1_800.0  # seconds for a playbook, which takes some ten on an idle machine
_RECAP = re.compile(r"^(\S+)\s*: (ok=.*)$", re.MULTILINE)


class PlaybookRun(NamedTuple):
    """How a playbook ended. ``recap``: host -> what is counted -> number; a host that it did not reach is not in it."""

    code: int
    recap: dict[str, dict[str, int]]
    text: str

    def changed(self) -> dict[str, int]:
        """Return the number of changes of each host but this one. AssertionError if the playbook failed."""
        assert self.code == 0, self.text[-6000:]
        return {host: counts["changed"] for host, counts in self.recap.items() if host != "localhost"}


class Playbooks:
    """``ansible-playbook`` in a directory of its own, with an inventory of a lab."""

    def __init__(self, lab: Lab | Chroot, directory: Path, collections_path: Path, core: str | None = CORE) -> None:
        """``core`` is a version of ansible-core, as in 2.16."""
        self.directory = directory
        self._core = core
        (directory / "inventory.json").write_text(lab.inventory())
        (directory / "ansible.cfg").write_text("[defaults]\n")
        self._environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_HOME": str(directory / "home"),
            "ANSIBLE_COLLECTIONS_PATH": str(collections_path),
            "ANSIBLE_PIPELINING": "1",
        }

    def variables(self, name: str, values: Mapping[str, Any]) -> None:
        """Set variables of a host, or with ``all`` of all, as an operator does: in a file beside the inventory."""
        directory = self.directory / ("group_vars" if name == "all" else "host_vars")
        directory.mkdir(exist_ok=True)
        (directory / f"{name}.yml").write_text(json.dumps(values))

    def play(
        self,
        name: str,
        variables: Mapping[str, Any],
        *options: str,
        timeout: float = _PATIENCE,
        heard: Callable[[str], None] | None = None,
    ) -> PlaybookRun:
        """Run a playbook: a path in the directory, or a name such as ``forewarn.azure.rollout``."""
        code, text = self.run(
            "ansible-playbook", "-e", json.dumps(variables), *options, name, timeout=timeout, heard=heard
        )
        recap = {
            host: {key: int(number) for key, number in re.findall(r"(\w+)=(\d+)", counts)}
            for host, counts in _RECAP.findall(text)
        }
        return PlaybookRun(code, recap, text)

    def run(
        self, program: str, *arguments: str, timeout: float = _PATIENCE, heard: Callable[[str], None] | None = None
    ) -> tuple[int, str]:
        """Run a program of Ansible's with the inventory; return its exit code and what it wrote.

        ``heard`` is called with each line as it comes. LabError if it does not end in time.
        """
        command = [str(ansible(program, self._core)), "-i", "inventory.json", *arguments]
        lines = []
        with subprocess.Popen(
            command,
            cwd=self.directory,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            watchdog = threading.Timer(timeout, process.kill)
            watchdog.daemon = True  # a signal may come in the middle of its start
            try:
                watchdog.start()
                for line in process.stdout:
                    lines.append(line)
                    if heard is not None:
                        heard(line)
            except BaseException:  # such as Ctrl-C: Ansible must not go on alone
                process.terminate()
                raise
            finally:
                watchdog.cancel()
        text = "".join(lines)
        if process.returncode == -signal.SIGKILL:
            raise LabError(f"{program} has not ended within {timeout:g} s:\n{text[-6000:]}")
        return process.returncode, text

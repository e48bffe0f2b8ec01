# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether hooks can run on the system that a policy is for, and what to write instead.

For any system, only what runs nowhere is a finding. Which system the compiler itself runs on makes no difference.
"""

from __future__ import annotations

import re

from ...hook_kinds.common.declaration import LINUX, WINDOWS, HookKind
from ...system.common import windows_program
from ..yaml.tree import Scalar, Sequence, YamlFile, YamlNode

ANY = "any"
TARGETS = (ANY, LINUX, WINDOWS)

_HOOKS = {LINUX: "/opt/forewarn/hooks/drain", WINDOWS: r"C:\Program Files\Forewarn\hooks\drain.cmd"}
_INSTEAD = {
    (LINUX, "service"): "write systemd: {unit: NAME.service}",
    (WINDOWS, "systemd"): "write service: {name: NAME}, with the name of a Windows service",
}
# A path of Windows of which YAML has read \n, \t, \P and the like as one character.
_ESCAPED = re.compile(r"[A-Za-z]:[^/]*[\x00-\x1f\x7f\x85\xa0\u2028\u2029]")
# Names of devices, in every directory of Windows and with any suffix; a dot at the end is dropped.
_NO_FILE = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*\.")


class HookSystems:
    """Reports the hooks of one file that cannot run on ``target``, one of ``TARGETS``."""

    def __init__(self, file: YamlFile, target: str) -> None:
        self._file = file
        self._target = target

    def check_kind(self, kind: HookKind, key: Scalar) -> None:
        """Check a hook of a kind, whose name is at ``key``."""
        if self._target != ANY and self._target not in kind.systems:
            message = f"'{kind.name}' runs on {kind.systems_text} alone"
            hint = f"run a program that does this, such as run: ['{_HOOKS[self._target]}']"
            self._refuse(message, key, _INSTEAD.get((self._target, kind.name), hint))

    def check_unit(self, key: Scalar) -> None:
        """Check a hook that starts or stops a unit of systemd, at ``key``."""
        if self._target == WINDOWS:
            message = "'unit' runs on Linux alone: Windows has no systemd"
            self._refuse(message, key, "write service: {name: NAME}, which stops a Windows service and starts it again")

    def check_command(self, command: Sequence) -> None:
        """Check the program and the arguments of a command."""
        program = command.items[0] if command.items else None
        if not isinstance(program, Scalar) or not self._check_program(program):
            return
        on_windows = self._target == WINDOWS or windows_program.is_windows_path(program.text)
        for item in command.items[1:] if on_windows and windows_program.is_batch(program.text) else ():
            problem = windows_program.cmd_argument_problem(item.text) if isinstance(item, Scalar) else None
            if problem is not None:
                hint = "write it into the script, or run an .exe or a .ps1, whose arguments cmd.exe does not read"
                self._file.add("cmd-argument", f"the argument {problem}", item, hint)

    def check_escapes(self, path: Scalar) -> bool:
        """Check that a path of Windows is what its author wrote; return whether it is."""
        is_escaped = path.style == '"' and _ESCAPED.match(path.text) is not None
        if is_escaped:
            message = "within double quotes YAML reads \\ as the beginning of a special character, such as a line break"
            self._file.add("command", message, path, "write the path in single quotes")
        return not is_escaped

    def check_file(self, node: YamlNode | None) -> None:
        """Check the path of a file that a hook reads."""
        if isinstance(node, Scalar) and self.check_escapes(node):
            self._check_path(node, {LINUX: "/etc/forewarn/token", WINDOWS: r"C:\ProgramData\Forewarn\token"})

    def check_credential(self, node: YamlNode | None) -> None:
        """Check the name of a credential, which is a file."""
        if self._target == WINDOWS and isinstance(node, Scalar) and _NO_FILE.fullmatch(node.text):
            self._refuse(f"Windows can have no file {node.text}", node, "give the credential another name")

    def _check_program(self, program: Scalar) -> bool:
        """Check a program by its path; return whether it can be run."""
        text = program.text
        if not self._check_path(program, _HOOKS):
            return False
        problem = None
        if windows_program.is_windows_path(text):
            problem = windows_program.program_problem(text)
        elif self._target == WINDOWS and re.match("[A-Za-z]:", text):
            problem = "is no whole path: a service has no current directory"
        if problem is not None:
            hint = f"write a whole path in single quotes, such as '{_HOOKS[WINDOWS]}'"
            self._file.add("command", f"{text} {problem}", program, hint)
        return problem is None

    def _check_path(self, node: Scalar, examples: dict[str, str]) -> bool:
        """Check that a path, or a name without one, is not that of the other system."""
        other = None
        if self._target == WINDOWS and node.text.startswith("/"):
            other = LINUX
        elif self._target == LINUX and windows_program.is_windows_path(node.text):
            other = WINDOWS
        if other is not None:
            message = f"{node.text} is a path of {other.title()}, and not of {self._target.title()}"
            self._refuse(message, node, f"write one such as '{examples[self._target]}'")
        return other is None

    def _refuse(self, message: str, node: YamlNode, hint: str) -> None:
        self._file.add("wrong-system", message, node, hint)

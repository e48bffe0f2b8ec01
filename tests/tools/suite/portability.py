# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A checker of what differs between operating systems: only ``system/`` names it, and asks which system this is.

mypy checks the package for both systems (tests/tools/mypy.sh), so it finds what one of them lacks. This finds what both
have, and what means something else on each.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

# Modules that one system lacks, or that do another thing there.
_MODULES = frozenset(
    {"_winapi", "ctypes", "fcntl", "grp", "msvcrt", "pwd", "resource", "select", "signal", "termios", "winreg"}
)
_NAMES = re.compile(
    r"os\.(name|O_\w+|P_\w+|W[A-Z]\w+|ch(own|root)|fch(mod|own)|fork\w*|get[e]?[gu]id|getpg\w+|kill|killpg|l?chflags"
    r"|lchown|mkfifo|openpty|pidfd_open|pipe2?|posix_spawn\w*|pread|pwrite|set_blocking|set[e]?[gu]id|setsid|startfile"
    r"|statvfs|symlink|uname|wait\w*)"
    r"|platform\.(system|win32_ver|uname)|socket\.(AF_UNIX|SO_PEERCRED)|sys\.(platform|getwindowsversion)"
    r"|time\.CLOCK_\w+"
)
_PATHS = re.compile(r"/(dev|etc|proc|run|sys|var)/|[A-Za-z]:\\")
# Where more is allowed: a part of the package, what it may name, and why.
ALLOWED = {
    "system": (".*", "it is what differs between systems"),
    "cli.doctor.linux": (".*", "it examines a VM with Linux"),
    "cli.doctor.system": ("sys.platform", "it chooses one of these two"),
    "cli.doctor.windows": (".*", "it examines a VM with Windows"),
    "hook_kinds": (_PATHS.pattern, "a kind knows where the programs that it handles have their files"),
    "hook_kinds.haproxy_api": ("socket.AF_UNIX", "HAProxy runs on Linux alone, and so does its kind of hook"),
    "compiler": (_PATHS.pattern, "its findings have examples for both systems"),
    "fleet.cloud_init": (_PATHS.pattern, "cloud-init is for VMs with Linux"),
    "fleet.first_boot": (_PATHS.pattern, "it runs on such a VM"),
    "fleet.unit": (_PATHS.pattern, "a unit of systemd is for Linux"),
    "fleet.host_answers": (_PATHS.pattern, "it runs the command on VMs with another system than this one"),
    "policy.functions.tzfile": (_PATHS.pattern, "Python 3.8 on Linux has no zoneinfo, and these are its directories"),
}


class SystemName(NamedTuple):
    """A name that differs between systems: in which module, ``file:line``, and the name."""

    module: str
    place: str
    name: str


def system_names(package: Path) -> list[SystemName]:
    """Return what modules name, wherever it is allowed."""
    found = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package)
        module = ".".join(file.with_suffix("").parts)
        names = _names(ast.parse(path.read_bytes(), filename=str(path)))
        found += [SystemName(module, f"{file}:{line}", name) for line, name in names]
    return found


def violations(names: Iterable[SystemName], without: str = "") -> list[str]:
    """Return those that are not allowed, one ``file:line: name`` each. ``without`` is an exception that is not made."""
    exceptions = {part: re.compile(allowed) for part, (allowed, _why) in ALLOWED.items() if part != without}
    return [
        f"{place}: {name}"
        for module, place, name in names
        if not any(f"{module}.".startswith(f"{part}.") and each.match(name) for part, each in exceptions.items())
    ]


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.partition(".")[0] in _MODULES)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            if node.module.partition(".")[0] in _MODULES:
                yield node.lineno, node.module
            for alias in node.names:
                if _NAMES.fullmatch(f"{node.module}.{alias.name}"):
                    yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if _NAMES.fullmatch(f"{node.value.id}.{node.attr}"):
                yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.keyword) and node.arg is not None and node.arg.endswith("dir_fd"):
            yield node.value.lineno, node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _PATHS.match(node.value):
            yield node.lineno, node.value

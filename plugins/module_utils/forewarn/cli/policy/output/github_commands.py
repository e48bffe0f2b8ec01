# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workflow commands of GitHub Actions: lines of a log that become annotations of a change."""

from __future__ import annotations

from pathlib import Path

from ...output.console import clean
from .repository_paths import in_repository

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def github_command(level: str, path: str, line: int, column: int, title: str, message: str) -> str:
    """Return one line. ``level`` is ``error``, ``warning`` or ``note``; the message may have several lines."""
    inside = in_repository(Path(path))
    properties = {
        "file": path if inside is None else inside.as_posix(),
        "line": str(line),
        "col": str(column),
        "title": title,
    }
    described = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[level]} {described}::{_data(message)}"


def _data(text: str) -> str:
    """Return a text with the characters escaped that would end a command, or begin another one."""
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

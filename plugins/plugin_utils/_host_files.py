# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that read the files of a runner on a host, for the shell of its system."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from shlex import quote
from typing import Protocol

from ._windows import quoted


class FileCommands(Protocol):
    """The commands of one system. Each writes to standard output."""

    def in_use(self, config_file: str) -> str:
        """Write the configuration, and then SHA-256 and path of the compiled policies; ``{}`` if there is none."""

    def previous(self, config_file: str) -> str:
        """Write what names the previous policies."""

    def base64(self, path: str) -> str:
        """Write a file in Base64."""


class _Linux:
    def in_use(self, config_file: str) -> str:
        beside = f"{quote(str(PurePosixPath(config_file).parent))}/*.json"
        there = f"cat {quote(config_file)}; echo; sha256sum {beside} || true"
        return f"if [ -e {quote(config_file)} ]; then {there}; else echo '{{}}'; fi"

    def previous(self, config_file: str) -> str:
        return f"cat {quote(str(PurePosixPath(config_file).parent / 'previous.json'))}"

    def base64(self, path: str) -> str:
        return f"base64 {quote(path)}"


class _Windows:
    def in_use(self, config_file: str) -> str:
        policies = quoted(str(PureWindowsPath(config_file).parent / "policies" / "*.json"))
        digest = "(Get-FileHash -LiteralPath $_.FullName).Hash.ToLower() + '  ' + $_.FullName"
        listed = f"Get-ChildItem -Path {policies} | ForEach-Object {{ {digest} }}"
        file = quoted(config_file)
        there = f"[IO.File]::ReadAllText({file}); {listed}"
        return f"if (Test-Path -LiteralPath {file}) {{ {there} }} else {{ '{{}}' }}; exit 0"

    def previous(self, config_file: str) -> str:
        return f"[IO.File]::ReadAllText({quoted(str(PureWindowsPath(config_file).parent / 'previous.json'))})"

    def base64(self, path: str) -> str:
        return f"[Convert]::ToBase64String([IO.File]::ReadAllBytes({quoted(path)}))"


def file_commands(windows: bool) -> FileCommands:
    """Return the commands for a host with Windows, or with Linux."""
    return _Windows() if windows else _Linux()

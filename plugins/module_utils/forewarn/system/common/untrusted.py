# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a file that others can change, on every system."""

from __future__ import annotations

from ...errors import InputError


class UntrustedError(InputError):
    """A file or directory that others can change."""


def subject(what: str, path: str) -> str:
    """Return the beginning of a sentence about a file; ``what`` names what it is for, such as "artifact"."""
    return f"{what} {path}".strip()

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what commands on a VM have written."""

from __future__ import annotations

import json


def json_in(stdout: str) -> tuple[str | None, str]:
    """Return the JSON object in an output, or None, and what follows it.

    On a pseudo-terminal, warnings of a shell can be before it.
    """
    begin = 0 if stdout.startswith("{") else stdout.find("\n{") + 1
    try:
        found, end = json.JSONDecoder().raw_decode(stdout, begin)
    except (ValueError, RecursionError):
        return None, stdout
    return (stdout[begin:end], stdout[end:]) if isinstance(found, dict) else (None, stdout)

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of a service or a task."""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORD = re.compile(r'"([^"]*)"|([^\s"]+)')
_VARIABLE = re.compile("%([^%]+)%")


def words(command: str, environ: Mapping[str, str]) -> list[str]:
    """Return the words of a command line, the program first, with the environment's variables in their place.

    A program whose path has spaces, but no quotes, is several words.
    """
    known = {name.upper(): value for name, value in environ.items()}
    text = _VARIABLE.sub(lambda match: known.get(match.group(1).upper(), match.group()), command)
    return [quoted or plain for quoted, plain in _WORD.findall(text)]

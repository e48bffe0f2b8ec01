# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a file cannot be imported."""

from __future__ import annotations

MISSING, PATH = "import-missing", "import-path"  # codes of findings


class ImportedFileError(Exception):
    """A file cannot be imported. ``code``, ``message`` and ``hint`` are those of the finding about it."""

    def __init__(self, message: str, hint: str = "", code: str = MISSING) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

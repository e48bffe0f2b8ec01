# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors an entry point turns into a message and an exit code; everything else is a defect."""

from __future__ import annotations


class ForewarnError(Exception):
    """An error whose text is meant for an operator.

    ``hint`` says what to do about it (one sentence, may be empty); ``exit_code`` is what a command ends with.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        stop = "" if self.message.endswith((".", ":", "!", "?", "…")) else "."
        return f"{self.message}{stop} {self.hint}"


class InputError(ForewarnError):
    """Bad usage or bad input: a file, an option, an artifact (exit code 2)."""


class ServiceError(ForewarnError):
    """The service or the network did not do what was asked (exit code 3)."""

    exit_code = 3

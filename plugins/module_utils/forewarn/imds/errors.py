# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the service: passing ones, which are retried, and lasting ones, which stay until something changes."""

from __future__ import annotations

from ..errors import ServiceError

# Kinds of faults, for programs and to distinguish one fault from the next.
TIMEOUT = "timeout"
REFUSED = "refused"
CONNECTION = "connection"  # reset, unreachable, name not found …
GARBAGE = "garbage"  # an answer that is cut short, oversized, not HTTP or not a document
HTTP = "http"  # an error status
REDIRECT = "redirect"
API_VERSION = "api-version"
NOT_SENT = "not-sent"  # an approval, because what it rests on may have changed


class Fault(ServiceError):  # noqa: N818 - passing and lasting faults are the standard terms
    """A request that failed. It does not prove that no event is listed, nor that an approval was lost.

    ``kind`` is one of this module's constants, ``status`` the HTTP status or None, ``retry_after`` the seconds that the
    service asked to wait, or None. ``unsure`` says of an approval whether it may have had an effect.
    """

    def __init__(
        self, message: str, hint: str = "", *, kind: str, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.unsure = False


class PassingFault(Fault):
    """A fault that may end by itself: 404, 410, 429, 5xx, a timeout, a lost connection, an unreadable answer."""


class LastingFault(Fault):
    """A fault that stays until somebody acts: 400, 401, 403, a redirect, an unknown api-version."""

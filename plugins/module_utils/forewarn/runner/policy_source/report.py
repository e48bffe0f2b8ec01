# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of the process that asks the policy source. A module of its own: it loads nothing that makes requests."""

from __future__ import annotations

from typing import NamedTuple

# Nothing new; newer policies, which are kept as an offer; no usable answer; an answer that is not to be trusted.
UNCHANGED, UPDATED, FAILED, REFUSED = "unchanged", "updated", "failed", "refused"
RESULTS = (UNCHANGED, UPDATED, FAILED, REFUSED)


class SourceReport(NamedTuple):
    """The outcome of a question. ``reason`` is why it failed or was refused.

    ``etag`` is the version of what is at the address, "" where that has to be looked at again. ``serial`` is that of
    the policies for this VM, ``share`` the percentage of the VMs that they are for. ``again`` is when a wave may begin,
    in seconds since 1970.
    """

    result: str
    reason: str | None = None
    etag: str = ""
    serial: int | None = None
    share: float | None = None
    again: float | None = None

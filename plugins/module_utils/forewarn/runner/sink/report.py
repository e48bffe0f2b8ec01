# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a sink's child process. A module of its own, so that the runner loads nothing that makes requests."""

from __future__ import annotations

from typing import NamedTuple

MOST_ROWS = 500  # of a batch


class SendReport(NamedTuple):
    """The outcome of an attempt.

    ``begins`` is the number of the journal's newest entry, where that was to be found out. ``acknowledged`` is where
    the ``rows`` of the batch end, ``checksum`` that of the last one. ``lost`` counts the entries before it that the
    journal no longer has, ``behind`` those after it. ``replaced``: the journal is not the one that the position is
    about, so nothing was read. ``problem`` is why the sink has not accepted the batch, None if it has. ``lasting``:
    another attempt would probably fail too.
    ``after_seconds`` is how long the sink asks to wait. ``too_large``: a smaller batch may be accepted. ``rejected`` is
    how many rows the sink has refused of those it accepted, with ``rejection`` as its reason.
    """

    begins: int | None = None
    rows: int = 0
    acknowledged: int = 0
    checksum: int | None = None
    lost: int = 0
    behind: int = 0
    replaced: bool = False
    problem: str | None = None
    lasting: bool = False
    after_seconds: float = 0.0
    too_large: bool = False
    rejected: int = 0
    rejection: str = ""

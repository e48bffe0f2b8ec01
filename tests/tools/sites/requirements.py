# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test needs of this machine: without it the test is skipped, or fails where FOREWARN_REQUIRED names its kind.

The kinds are ``hosts`` (what tests/lab needs), ``programs`` (etcd, Chromium, npm and others) and ``versions`` (each
Python and ansible-core of docs/support.md). FOREWARN_REQUIRED has some of them, separated by spaces.
"""

from __future__ import annotations

import os
from typing import NoReturn

KINDS = ("hosts", "programs", "versions")


def required() -> list[str]:
    """Return the kinds of which nothing may be missing."""
    kinds = os.environ.get("FOREWARN_REQUIRED", "").split()
    if unknown := sorted({*kinds} - {*KINDS}):
        raise SystemExit(f"FOREWARN_REQUIRED names {', '.join(unknown)}: it may name {', '.join(KINDS)}")
    return kinds


def lacking(kind: str, reason: str) -> NoReturn:
    """Skip the test for a reason, or let it fail where nothing of this kind may be missing."""
    import pytest  # here: the demos, which find out by themselves what they lack, have none

    if kind in required():
        pytest.fail(reason)
    pytest.skip(reason)

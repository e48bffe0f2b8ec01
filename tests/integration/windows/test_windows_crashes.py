# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner on Windows that is killed at any point keeps its promises: the judge of those on Linux judges it, too.

The time is virtual, and so are the hooks, which end with their runner. All else is real: processes, which SIGKILL ends,
the journal, and the files of drills and pauses, on a disk of Windows.
"""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from tools.sites.wine import Wine
from tools.suite.sizes import SEED, SIZE
from tools.worlds.crash_scripts import make_script
from tools.worlds.crashes import play
from tools.worlds.windows.crashes import chained_kills, in_windows

KILLS = 9  # of one scenario, one after another; some scenarios end before


@pytest.mark.parametrize("part", [0, 1])
def test_promises_hold_after_kills_on_windows(booted: Wine, part: int) -> None:
    killed = 0
    for seed in itertools.count(SEED * 1000 + part * 500):
        killed += play(make_script(seed), chained_kills(seed, KILLS), partial(in_windows, wine=booted)).killed
        if killed >= SIZE.windows_kills / 2:
            break

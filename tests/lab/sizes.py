# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts a run has at its size."""

from __future__ import annotations

from tools.suite.sizes import NAME, SEED, in_turn

from .images import SUITES
from .lab import HOSTS

ONE_SUITE = in_turn(SUITES)
# For files that say so with ``LAB_HOSTS = FEW_HOSTS``: at size small one host, with another seed of another release.
FEW_HOSTS = {"web_0": SUITES[SEED % len(SUITES)]} if NAME == "small" else HOSTS

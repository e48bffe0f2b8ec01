# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forewarn: decides, by policy, what happens to Azure Scheduled Events."""

from __future__ import annotations

__version__ = "0.1.0"  # a test compares it with galaxy.yml, where releases are made

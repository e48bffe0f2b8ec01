# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs about policies with z3: ``encode`` makes formulas of policies and events, ``solver`` asks whether they are
satisfiable, and ``decode`` makes an event of a model. ``effort`` limits what that may cost.
"""

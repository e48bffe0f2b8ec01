# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words that random policies and random events have in common, so that they meet."""

from __future__ import annotations

SECONDS = (-1, 0, 1, 2, 5, 9, 10, 30, 49, 60, 61, 120, 900)
MINUTES = (0, 1, 5, 6, 10, 15, 30, 1440)
NUMBERS = (0, 1, 2, 3, 5, 6, 12, 23)
DAYS = (0, 1, 2, 3, 4, 5, 6)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "+05:30", "-03:00", "Pacific/Auckland", "UTC")
NAMES = ("web_0", "WEB_0", "Web_0", "db_0", "db_1", "vm_0", "VM_0", "7")
TAGS = ("role", "Role", "ROLE", "a.b", "", "env", "missing")
TEXTS = ("web", "WEB", "db", "", "x", "a", "ab", "The host", "the host", "7", "Freeze", "role", "VirtualMachine")
# Letters that are not ASCII, among them some whose other case has more letters; what z3 reads as an escape, and as one
# character less than it is; texts that are printed as inputs are.
STRANGE_NAMES = ("É", "é", "É_0", "é_0", "ß", "İ", "ǆ", "vm.name", "\\u{41}", "A")
STRANGE_TEXTS = ("É", "é", "ß", "İ", "\\u{41}", "A", "C:\\x", "\U00020000", "\U00030000", "vm.name", "event.EventType")
BEGINNINGS = ("Re", "F", "web", "w", "", "The", "db")
STRANGE_BEGINNINGS = ("É", "é", "\\u{41}", "A", "C:\\", "\U00030000", "vm")
LETTERS = ("x", "0", "_", "A", "-", " ", "z9", "é", "w", "}", "\U00030000\U00030000", "\\u{41}\\")
TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
UNKNOWN_TYPES = ("Hibernate", "SpotRebalanceRecommendation", "freeze")
TIMES = (
    *("2026-06-15T12:00:00Z", "2026-03-29T01:00:00Z", "2030-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
    *("2050-07-01T00:00:00Z", "2300-01-01T00:00:00Z", "1750-01-01T00:00:00Z", "2350-01-01T00:00:00Z"),
)

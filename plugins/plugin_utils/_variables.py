# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the variables that users may set: those of the role, and those of the playbooks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ..module_utils.forewarn.compiler.wording import closest

PREFIX = "forewarn_"
# Of the playbooks, beside those of the role. What playbooks keep for themselves begins with __forewarn_.
OF_PLAYBOOKS = (
    "forewarn_drill_duration",
    "forewarn_drill_notice",
    "forewarn_drill_type",
    "forewarn_etcd_address",
    "forewarn_etcd_directory",
    "forewarn_etcd_replace",
    "forewarn_etcd_root_password",
    "forewarn_etcd_users",
    "forewarn_force",
    "forewarn_hosts",
    "forewarn_pause_for",
    "forewarn_pause_reason",
    "forewarn_report",
    "forewarn_serial",
    "forewarn_since",
)
_SPECIFICATION = Path(__file__).parents[2] / "roles" / "forewarn" / "meta" / "argument_specs.yml"


@cache
def known() -> frozenset[str]:
    """Return the names of all variables. Those of the role are read from its specification."""
    # Not by a YAML parser, which takes a tenth of a second: this runs once for each host.
    of_role = re.findall(rf"^ +({PREFIX}\w+):$", _SPECIFICATION.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset([*of_role, *OF_PLAYBOOKS])


def unknown(names: Iterable[str]) -> dict[str, str | None]:
    """Return the names that are meant for the collection and that it does not know, each with what was meant, if known.

    These are those that begin with ``forewarn_``, and those that one mistake of a finger makes of a known name.
    """
    found: dict[str, str | None] = {}
    for name in names:
        lower = str(name).lower()
        # One mistake leaves one of both parts as it is.
        if name in known() or not (lower.startswith("for") or "arn_" in lower[: len(PREFIX) + 1]):
            continue
        near = [each for each in known() if _one_mistake(lower, each)]
        if near or lower.startswith(PREFIX):
            found[name] = min(near) if near else closest(PREFIX + lower[len(PREFIX) :], known())
    return found


def _one_mistake(word: str, other: str) -> bool:
    """Return whether words differ by at most one letter that is dropped, added or replaced, or two that are swapped."""
    begin = _alike(word, other)
    rest, of_other = word[begin:], other[begin:]
    end = _alike(rest[::-1], of_other[::-1])
    rest, of_other = rest[: len(rest) - end], of_other[: len(of_other) - end]
    return max(len(rest), len(of_other)) < 2 or (len(rest) == 2 and rest == of_other[::-1])


def _alike(word: str, other: str) -> int:
    """Return how many letters at the beginning of two words are the same."""
    shorter = min(len(word), len(other))
    return next((place for place in range(shorter) if word[place] != other[place]), shorter)

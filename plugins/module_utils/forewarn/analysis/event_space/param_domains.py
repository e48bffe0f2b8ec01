# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which parameters vary in an analysis, and over which values. The others have their default.

Versions of policies may declare a parameter with different limits. It then varies over all that any version allows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...errors import InputError
from ...policy.params import convert
from ..artifacts import Json, ParamDeclaration, declared_params
from .domains import after

_LIMITS = ("type", "enum", "min", "max")


def varying_params(
    versions: Sequence[Sequence[Json]], given: Json, at_default: Collection[str] = ()
) -> dict[str, Json]:
    """Return the declarations of the parameters that vary, by name. Each version is a list of policies.

    ``given`` are JSON values. Parameters ``at_default`` do not vary where the versions differ in them.

    Raises InputError.
    """
    varying: dict[str, Json] = {}
    for name, places in declared_params(versions, given).items():
        entries = [one.entry for one in places]
        if name in given:
            continue
        if any("default" not in one and not _can_vary(one) for one in entries):
            raise _without_default(name)
        if _alike(entries, (*_LIMITS, "default")):
            entry = entries[0]
            if _has_range(entry) or ("default" not in entry and _can_vary(entry)):
                varying[name] = entry
        elif (by_version := _by_version(places)) and name not in at_default:
            varying[name] = _union(by_version)
        elif any("default" not in one for one in entries):
            raise _without_default(name)
    return varying


def _without_default(name: str) -> InputError:
    return InputError(f"parameter {name} has no default", f"give it a value: --param {name}=…")


def _alike(entries: Sequence[Json], keys: Sequence[str]) -> bool:
    return all(entry.get(key) == entries[0].get(key) for entry in entries for key in keys)


def _by_version(places: Sequence[ParamDeclaration]) -> list[Json]:
    """Return the one declaration of each version, if the parameter can vary between them; otherwise nothing."""
    found: dict[int, Json] = {}
    for version, _policy, entry in places:
        if not _alike([found.setdefault(version, entry), entry], (*_LIMITS, "default")):
            return []
    entries = list(found.values())
    can = _alike(entries, ("type",)) and _can_vary(entries[0]) and len(entries) > 1
    return entries if can and any(_has_range(entry) or "default" not in entry for entry in entries) else []


def _union(entries: Sequence[Json]) -> Json:
    """Return a declaration that allows what one of several does.

    ``cuts`` are where an interval of values begins because a declaration ends, ``texts`` are those that one names.
    """
    kind = entries[0]["type"]
    union: dict[str, Any] = {key: entries[0][key] for key in ("name", "type", "default") if key in entries[0]}
    if all("enum" in entry for entry in entries):
        listed = [item for entry in entries for item in entry["enum"]]
        union["enum"] = list({repr(convert(item, kind)): item for item in listed}.values())
    elif kind == "string":
        union["texts"] = [item for entry in entries for item in entry.get("enum", ())]
    elif kind != "bool":
        lows, highs = ([_bound(entry, end) for entry in entries] for end in ("min", "max"))
        if None not in lows:
            union["min"] = min(lows, key=lambda bound: convert(bound, kind))
        if None not in highs:
            union["max"] = max(highs, key=lambda bound: convert(bound, kind))
        begins = [convert(one, kind) for entry in entries for one in (*entry.get("enum", ()), *_given(entry, "min"))]
        ends = [convert(one, kind) for entry in entries for one in (*entry.get("enum", ()), *_given(entry, "max"))]
        union["cuts"] = [*begins, *map(after, ends)]
    return union


def _given(entry: Json, key: str) -> tuple[Any, ...]:
    return (entry[key],) if key in entry else ()


def _bound(entry: Json, end: str) -> Any:
    """Return the least or greatest value that a declaration allows, or None."""
    if "enum" not in entry:
        return entry.get(end)
    choose = min if end == "min" else max
    return choose(entry["enum"], key=lambda item: convert(item, entry["type"]))


def _has_range(entry: Json) -> bool:
    return entry["type"] == "bool" or (_can_vary(entry) and any(key in entry for key in ("enum", "min", "max")))


def _can_vary(entry: Json) -> bool:
    return not entry["type"].startswith(("list(", "map(")) and entry.get("pattern") is not True

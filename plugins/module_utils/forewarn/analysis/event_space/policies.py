# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiled policies made ready for analysis: parameters settled, every expression read into terms."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...events import EVENT_STATUSES, EVENT_TYPE_SINCE
from ...policy.artifact import Artifact
from ...policy.params import bind
from ..artifacts import Json, extra_values
from ..policy_outcome import with_inner
from .expressions import Reader, ReadMatch
from .param_domains import varying_params
from .space import Space, slices
from .symbol_table import SymbolTable
from .symbols import EVENT_STATUS, EVENT_TYPE, Param


class Invariant(NamedTuple):
    """A claim; ``reads`` are the names of the inputs that its expression reads."""

    name: str
    source: str  # file
    line: int
    column: int
    reads: frozenset[str]


class ReadPolicy(NamedTuple):
    """One policy. ``known`` maps EventType and EventStatus to the values that it does not hold out of hand."""

    name: str
    data: Json
    matches: tuple[ReadMatch, ...]
    known: Mapping[str, frozenset[str]]

    def every(self) -> Iterator[ReadMatch]:
        """Yield all matches in the order of the file."""
        return with_inner(self.matches)


class Reading(NamedTuple):
    """Policies that run together. ``fixed`` are JSON values of parameters given."""

    artifact: Artifact
    policies: tuple[ReadPolicy, ...]
    invariants: tuple[Invariant, ...]
    symbols: SymbolTable
    fixed: Json

    def reads_of(self, rules: Container[tuple[str, str | None]]) -> set[str]:
        """Return the names of the inputs that some rules read, which are named by policy and path."""
        matches = ((policy.name, match) for policy in self.policies for match in policy.every())
        return set().union(*(match.reads() for policy, match in matches if (policy, match.path) in rules))

    def spaces(self) -> Iterator[Space]:
        """Yield the event space, that of all who share the table, in slices where it is large.

        Raises InputError if it is too large.
        """
        return slices(self.symbols.dimensions(), self.symbols.api_version)


def read(artifact: Artifact, params: Json | None = None, invariants: Sequence[Json] = ()) -> Reading:
    """Read compiled policies. ``params`` are JSON values given for parameters, as PolicySet takes them; others vary
    over their declared range, or have their default.

    ``invariants`` are further claims, of entries as the artifact has them, with ``source``. Raises InputError.
    """
    (reading,) = read_together([artifact], params, invariants)
    return reading


def read_together(
    artifacts: Sequence[Artifact],
    params: Json | None = None,
    invariants: Sequence[Json] = (),
    at_default: Collection[str] = (),
) -> list[Reading]:
    """Read versions of policies over one symbol table, so that one space holds the classes of all.

    Parameters ``at_default`` have their default in each version, if the versions differ in them.
    """
    given = dict(params or {})
    varying = varying_params([artifact.data["policies"] for artifact in artifacts], given, at_default)
    extra = extra_values(data for artifact in artifacts for data in artifact.data["policies"])
    symbols = SymbolTable(artifacts[0].api_version, varying, extra)
    for symbol in (EVENT_TYPE, EVENT_STATUS):
        symbols.use(symbol)
    for name, entry in varying.items():
        if "default" not in entry:  # the engine takes no event without it, even if nothing reads it
            symbols.use(Param(name, entry))
    return [_read(artifact, symbols, given, invariants) for artifact in artifacts]


def _read(artifact: Artifact, symbols: SymbolTable, given: Json, further: Sequence[Json]) -> Reading:
    policies, claims = [], []
    everything: dict[str, Any] = {}
    for data in artifact.data["policies"]:
        fixed = _fixed(data, symbols.params, given)
        everything.update(fixed)
        matches = Reader(symbols, fixed, data).block(data["rule"], "", itertools.count())
        extra = data.get("extra_values", {})
        known = {
            "EventType": frozenset((*EVENT_TYPE_SINCE, *extra.get("EventType", ()))),
            "EventStatus": frozenset((*EVENT_STATUSES, *extra.get("EventStatus", ()))),
        }
        policies.append(ReadPolicy(data["name"], data, matches, known))
        claims += [_claim(entry, data["source"], symbols, fixed) for entry in data.get("invariants", ())]
    for entry in further:
        claims.append(_claim(entry, entry["source"], symbols, everything))
    declared = {entry["name"] for entry in artifact.params}
    used = {name: value for name, value in given.items() if name in declared}
    return Reading(artifact, tuple(policies), tuple(claims), symbols, used)


def _claim(entry: Json, source: str, symbols: SymbolTable, fixed: Json) -> Invariant:
    expression = entry["expression"]
    reads: set[str] = set()
    for decision, more in itertools.product(("approve", "hold"), entry.get("known", ({},))):
        known = {"decision": decision, "approve": "approve", "hold": "hold", **more}
        reads |= Reader(symbols, fixed).term(expression, known).reads()
    file = expression.get("file", source)
    return Invariant(entry["name"], file, expression["line"], expression["column"], frozenset(reads))


def _fixed(data: Json, varying: Mapping[str, Json], given: Json) -> dict[str, Any]:
    """Return the values of a policy's parameters that do not vary."""
    entries = [entry for entry in data["params"] if entry["name"] not in varying]
    return bind(entries, given, data["name"])

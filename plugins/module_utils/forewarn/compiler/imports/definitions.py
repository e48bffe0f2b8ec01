# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file has from the libraries that it imports: parameters, variables and invariants, each with its place."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..cel.types import Type
from ..findings import Finding
from ..yaml.tree import YamlFile, YamlNode

PARAMETER, VARIABLE, INVARIANT = "parameter", "variable", "invariant"


@dataclass(frozen=True, eq=False)
class Definition:
    """What a library declares. ``place`` is FILE:LINE; ``entry`` is the artifact's, None where it has mistakes."""

    kind: str
    name: str
    type: Type
    place: str
    entry: Mapping[str, Any] | None


@dataclass(frozen=True)
class Definitions:
    """Definitions by kind and name, in the order in which they are declared.

    They are not ``complete`` if an import could not be read: then it is unknown which names there are.
    """

    found: Mapping[tuple[str, str], Definition] = field(default_factory=dict)
    complete: bool = True

    @property
    def usable(self) -> bool:
        """Whether each of them is without mistakes, and none is missing."""
        return self.complete and all(one.entry is not None for one in self.found.values())

    def of_kind(self, kind: str) -> list[Definition]:
        """Return those of a kind."""
        return [one for one in self.found.values() if one.kind == kind]

    def types(self, kind: str) -> dict[str, Type]:
        """Return the types of those of a kind, by their names."""
        return {one.name: one.type for one in self.of_kind(kind)}

    def places(self, kind: str) -> dict[str, str]:
        """Return the places of those of a kind, by their names."""
        return {one.name: one.place for one in self.of_kind(kind)}

    def entries(self, kind: str) -> list[dict[str, Any]]:
        """Return what the artifact has of those of a kind: copies, since each policy has its own."""
        return [dict(copy.deepcopy(one.entry)) for one in self.of_kind(kind) if one.entry is not None]


class EntryDefinitions(NamedTuple):
    """The definitions of one entry of ``imports``: the library's own, and those that it imports itself."""

    node: YamlNode
    definitions: Definitions


class Imports(NamedTuple):
    """The definitions of the entries of ``imports``, of each one and of all."""

    each: tuple[EntryDefinitions, ...] = ()
    every: Definitions = Definitions()


def merge_imports(file: YamlFile, each: Sequence[EntryDefinitions]) -> Imports:
    """Return the definitions of several imports. What two files declare under one name is reported in ``file``."""
    found: dict[tuple[str, str], Definition] = {}
    for node, definitions in each:
        for key, one in definitions.found.items():
            known = found.setdefault(key, one)
            if known is not one:
                message = f"{one.kind} '{one.name}' of {one.place} is also in {known.place}"
                file.add("import-clash", message, node, "give one of them another name, or import only one")
    return Imports(tuple(each), Definitions(found, all(one.definitions.complete for one in each)))


def drop_findings_of_missing(file: YamlFile, imported: Definitions) -> None:
    """Drop the findings about names that may be in a library that could not be imported: that is reported already."""
    if not imported.complete:
        findings = file.report.findings
        findings[:] = [finding for finding in findings if not _is_about_a_name(finding)]


def _is_about_a_name(finding: Finding) -> bool:
    written = finding.source_line[finding.column - finding.source_column :]
    unknown = finding.code in ("undeclared-name", "unknown-field")
    return unknown and written.startswith(("variables.", "params."))


def report_unused(file: YamlFile, imports: Imports, policy: Mapping[str, Any]) -> None:
    """Warn of each import of which a policy's own part, as the artifact has it, uses nothing.

    An invariant is used by being there.
    """
    used = set(_names_in(policy))
    for node, definitions in imports.each:
        in_use = any(one.kind == INVARIANT or key in used for key, one in definitions.found.items())
        if definitions.usable and not in_use:
            hint = "remove it, or read what it declares, as variables.NAME or params.NAME"
            file.add("unused-import", "nothing of this import is used", node, hint, severity="warning")


def with_file(kind: str, entry: Mapping[str, Any] | None, file: str) -> dict[str, Any] | None:
    """Return an artifact's entry with the name of its file; None if its expression has mistakes."""
    if entry is None or kind == PARAMETER:
        return None if entry is None else {**entry, "file": file}
    key = "expr" if kind == VARIABLE else "expression"
    expression = entry[key]
    if expression is None or expression["form"] is None:
        return None
    return {**entry, key: {**expression, "file": file}}


def _names_in(data: Any) -> Iterator[tuple[str, str]]:
    """Yield the kinds and names of what forms in a part of an artifact read."""
    if isinstance(data, Mapping):
        for value in data.values():
            yield from _names_in(value)
    elif isinstance(data, list):
        if data[:1] == ["variable"] and len(data) == 5:
            yield VARIABLE, str(data[4])
        elif data[:1] in (["field"], ["has"]) and len(data) == 6 and data[4][4:] == ["params"]:
            yield PARAMETER, str(data[5])
        for value in data:
            yield from _names_in(value)

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what several files declare by one name: policies, parameters, groups and libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as AnyMapping
from typing import Any, NamedTuple

from ...policy.params import convert
from ..imports.definitions import PARAMETER, Imports
from ..imports.libraries import Library
from ..imports.origins import LocalOrigin
from ..yaml.tree import Mapping, Scalar, YamlFile, YamlNode, mappings, short_json, text_of, value_at

_BOUNDS = ("min", "max", "enum")


class CompiledFile(NamedTuple):
    """A policy's file, what it imports, and its entry of the artifact, as far as it has no mistakes."""

    file: YamlFile
    imports: Imports
    policy: AnyMapping[str, Any]

    @property
    def path(self) -> str:
        """The file, as findings call it."""
        return self.file.source.path


def compare_policies(files: Iterable[CompiledFile]) -> None:
    """Report names that policies share: their own, of parameters that they declare differently, of limited groups."""
    before = _EarlierPolicies()
    for one in files:
        if isinstance(one.file.root, Mapping):
            before.compare_name(one)
            for entry in one.policy.get("params", ()):
                before.compare_param(one, entry)
            before.compare_limits(one)


def compare_libraries(libraries: Iterable[Library]) -> None:
    """Report files of this machine that are libraries of the same name."""
    names: dict[str, str] = {}
    for library in libraries:
        node = library.file.get("name")
        name = text_of(node)
        if node is None or name is None or not isinstance(library.origin, LocalOrigin):
            continue  # another commit may have another version of one library
        if name in names:
            message = (
                f"a library called '{name}' is in {names[name]} already; an import names the file, so that each counts "
                "where it is imported"
            )
            library.file.add("duplicate-library", message, node, "give it another name", severity="note")
        names.setdefault(name, library.file.source.path)


class _EarlierPolicies:
    """What the policies so far declare, each with the path of the first file that declares it."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._params: dict[str, tuple[AnyMapping[str, Any], str]] = {}  # the artifact's entries
        self._defaults: dict[str, tuple[Any, str]] = {}
        self._limits: dict[str, tuple[set[Any], str]] = {}  # by group

    def compare_name(self, one: CompiledFile) -> None:
        """Report the name of an earlier policy."""
        node = one.file.get("name")
        name = text_of(node)
        if node is not None and name is not None:
            if name in self._names:
                message = f"a policy called '{name}' is in {self._names[name]} already"
                one.file.add("duplicate-policy", message, node, "give it another name")
            self._names.setdefault(name, one.path)

    def compare_param(self, one: CompiledFile, entry: AnyMapping[str, Any]) -> None:
        """Report a parameter, an entry of the artifact, that an earlier policy declares differently."""
        name, kind = entry["name"], entry["type"]
        first, where = self._params.setdefault(name, (entry, one.path))
        if first["type"] != kind and where == one.path:
            return  # it is there twice, which is reported
        if first["type"] != kind:
            message = f"parameter '{name}' is of type {first['type']} in {where}, and one value is given for both"
            one.file.add("param-conflict", message, _place(one, name, "type"), "give it the same type or another name")
            return
        differing = [key for key in _BOUNDS if _bound(entry, key) != _bound(first, key)]
        if differing and where != one.path:
            message = (
                f"parameter '{name}' may be {_bounds(entry)} here and {_bounds(first)} in {where}: a given value has "
                "to be allowed by both"
            )
            place, hint = _place(one, name, *differing), "give it the same limits or another name"
            one.file.add("param-limits", message, place, hint, severity="note")
        if "default" in entry:
            other, where = self._defaults.setdefault(name, (entry["default"], one.path))
            if convert(entry["default"], kind) != convert(other, kind):
                message = (
                    f"the default of parameter '{name}' is {short_json(entry['default'])} here and {short_json(other)} "
                    f"in {where}: without a given value each policy has its own, and a given one is for both"
                )
                place, hint = _place(one, name, "default"), "give it the same default or another name"
                one.file.add("param-default", message, place, hint, severity="note")

    def compare_limits(self, one: CompiledFile) -> None:
        """Report limits of groups that the first policy with a limit of the group does not have."""
        for group, most, node in _limits(one.file.get("rule")):
            known, where = self._limits.setdefault(group, (set(), one.path))
            if where == one.path:
                known.add(most)
            elif most not in known:
                whose = f"group {group}" if group else "the VM's own group"
                others = " and ".join(sorted(map(str, known)))
                message = (
                    f"the limit of {whose} is {most} here and {others} in {where}: the smaller one counts for an event "
                    "that both limit, and each for the other events of its rules"
                )
                hint = "give it the same limit, or another group"
                one.file.add("limit-differs", message, node, hint, severity="note")


def _bound(entry: AnyMapping[str, Any], key: str) -> Any:
    """Return a limit of a parameter as it is compared: an ``enum`` in any order; None without one."""
    if key not in entry:
        return None
    if key == "enum":
        return sorted(repr(convert(item, entry["type"])) for item in entry[key])
    return convert(entry[key], entry["type"])


def _bounds(entry: AnyMapping[str, Any]) -> str:
    """Return in words what a parameter may be."""
    words = [f"one of {short_json(entry['enum'])}"] if "enum" in entry else []
    words += [f"{key} {short_json(entry[key])}" for key in ("min", "max") if key in entry]
    return ", ".join(words) or "anything"


def _place(one: CompiledFile, name: str, *keys: str) -> YamlNode:
    """Return where a policy declares a parameter: the first of some keys that is there, or the import."""
    for item in mappings(one.file.get("params")):
        if text_of(item.get("name")) == name:
            return next((node for node in map(item.get, (*keys, "name")) if node is not None), item)
    return next(node for node, found in one.imports.each if any(each.name == name for each in found.of_kind(PARAMETER)))


def _limits(rule: YamlNode | None) -> Iterator[tuple[str, Any, YamlNode]]:
    """Yield the group of each limit, empty for the VM's own, how many VMs it lets be disturbed, and its place.

    A group whose expression reads variables or parameters has another value in another policy.
    """
    for item in mappings(value_at(rule, "match")):
        yield from _limits(item.get("rule"))
        node = item.get("limit")
        group = value_at(node, "group")
        most = node.get("at_most") if isinstance(node, Mapping) else node
        source = "" if group is None else " ".join((text_of(group) or "params.").split())
        if isinstance(most, Scalar) and "params." not in source and "variables." not in source:
            yield source, most.data(), most

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between two versions of policies without any event: parameters, invariants, explanations and the like.

Descriptions and comments are not compared, nor how a file writes something: ``5m`` is ``300s``, and an expression has
the same meaning with other spaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Mapping, NamedTuple

from ...policy.artifact import Artifact
from ..artifacts import Json
from ..hook_wording import quoted
from . import kinds
from .kinds import ALIKE, FEWER
from .meaning import arrow, explanations, invariants, is_stronger, one_line
from .param_change import declaration_changes

NEW, OLD = "new", "old"


class DeclaredAt(NamedTuple):
    """A place in one version: OLD or NEW, the file, and where known line and column, from 1."""

    version: str
    path: str
    line: int | None = None
    column: int | None = None


class Declaration(NamedTuple):
    """A change of what policies declare. ``what`` is a sentence; ``policy`` is None for what concerns all policies."""

    kind: str
    effect: str
    what: str
    policy: str | None
    place: DeclaredAt | None

    def as_dict(self) -> dict[str, Any]:
        """Return the change for ``--format json``."""
        place = None if self.place is None else self.place._asdict()
        return {**self._asdict(), "place": place}


def changed_declarations(old: Artifact, new: Artifact) -> tuple[Declaration, ...]:
    """Return the differences between what two versions declare, policy by policy in the order of the new version."""
    found: list[Declaration] = []
    if old.api_version != new.api_version:
        what = f"api-version: {old.api_version} → {new.api_version}"
        found.append(Declaration(kinds.API_VERSION, ALIKE, what, None, None))
    before, after = ({data["name"]: data for data in artifact.data["policies"]} for artifact in (old, new))
    for name, data in after.items():
        if name not in before:
            found.append(_at(data, NEW, kinds.POLICY_ADDED, f"policy {name} is new"))
    for name, data in before.items():
        if name not in after:
            found.append(_at(data, OLD, kinds.POLICY_DELETED, f"policy {name} is gone"))
    found += _invariants(before, after)
    for name, data in after.items():
        if name in before:
            found += _params(before[name], data)
            found += _suppressions(before[name], data)
            found += _explanations(before[name], data)
            found += _extra_values(before[name], data)
    return tuple(found)


def _at(data: Json, version: str, kind: str, what: str, effect: str = ALIKE, entry: Json | None = None) -> Declaration:
    """Return a change at an expression or a parameter, in a library if the policy imports it from there."""
    at = entry or {}
    place = DeclaredAt(version, at.get("file", data["source"]), at.get("line"), at.get("column"))
    return Declaration(kind, effect, what, data["name"], place)


def _params(old: Json, new: Json) -> Iterator[Declaration]:
    name = new["name"]
    before, after = ({entry["name"]: entry for entry in data["params"]} for data in (old, new))
    for param, entry in after.items():
        if param not in before:
            default = "" if "default" in entry else ", and each host must set it: it has no default"
            yield _at(new, NEW, kinds.PARAMETER_ADDED, f"parameter {param} of {name} is new{default}", entry=entry)
            continue
        for kind, what in declaration_changes(before[param], entry):
            yield _at(new, NEW, kind, f"parameter {param} of {name}: {what}", entry=entry)
    for param, entry in before.items():
        if param not in after:
            yield _at(old, OLD, kinds.PARAMETER_DELETED, f"parameter {param} of {name} is gone", entry=entry)


def _invariants(old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[Declaration]:
    """Compare by policy and name. What is gone there and has an equal elsewhere has another name, or has moved."""
    before, after = invariants(old), invariants(new)
    added = [key for key in after if key not in before]
    for key, claim in before.items():
        policy, name = key
        said = f"invariant {quoted(name)} of {policy}"
        if key in after:
            if after[key].meaning == claim.meaning:
                continue
            stronger = is_stronger(claim.form, after[key].form)
            how = "promises more" if stronger else "has changed, and may promise less"
            what = f"{said} {how}: {arrow(claim.source, after[key].source)}"
            effect = ALIKE if stronger else FEWER
            yield _at(new[policy], NEW, kinds.INVARIANT_CHANGED, what, effect, after[key].expression)
            continue
        same = next((one for one in added if after[one].meaning == claim.meaning), None)
        if same is None:
            what = f"{said} is gone: {one_line(claim.source)}"
            yield _at(old[policy], OLD, kinds.INVARIANT_DELETED, what, FEWER, claim.expression)
        else:
            added.remove(same)
            what = f"{said} is now {quoted(same[1])} of {same[0]}"
            yield _at(new[same[0]], NEW, kinds.INVARIANT_CHANGED, what, ALIKE, after[same].expression)
    for policy, name in added:
        claim = after[policy, name]
        what = f"invariant {quoted(name)} of {policy} is new: {one_line(claim.source)}"
        yield _at(new[policy], NEW, kinds.INVARIANT_ADDED, what, ALIKE, claim.expression)


def _suppressions(old: Json, new: Json) -> Iterator[Declaration]:
    before, after = _suppressed(old), _suppressed(new)
    for key in (*after, *(key for key in before if key not in after)):
        code, rule = key
        said = f"finding {code} of {new['name']}" + (f", rule {quoted(rule)}," if rule is not None else "")
        if key not in after:
            yield _at(new, NEW, kinds.SUPPRESSION_DELETED, f"{said} is no longer suppressed")
        elif key not in before:
            what = f"{said} is suppressed: {'; '.join(map(quoted, after[key]))}"
            yield _at(new, NEW, kinds.SUPPRESSION_ADDED, what, FEWER)
        elif before[key] != after[key]:
            reasons = " → ".join("; ".join(map(quoted, side[key])) for side in (before, after))
            yield _at(new, NEW, kinds.SUPPRESSION_CHANGED, f"{said} is suppressed for another reason: {reasons}")


def _suppressed(data: Json) -> dict[tuple[str, str | None], list[str]]:
    found: dict[tuple[str, str | None], list[str]] = {}
    for entry in data.get("suppress", ()):
        found.setdefault((entry["code"], entry.get("rule")), []).append(entry["reason"])
    return found


def _explanations(old: Json, new: Json) -> Iterator[Declaration]:
    """Compare the explanations of rules that both versions have. Where a rule is new, events show what it does."""
    before, after = explanations(old["rule"]), explanations(new["rule"])
    for path, one in after.items():
        if path not in before or before[path].meaning == one.meaning:
            continue
        sources = before[path].source, one.source
        words = (
            f"a variable that it reads has changed, in {one_line(one.source or '')}"
            if sources[0] == sources[1]
            else arrow(*sources)
        )
        what = f"explanation of {new['name']}/{path}: {words}"
        yield _at(new, NEW, kinds.EXPLANATION, what, ALIKE, one.place)


def _extra_values(old: Json, new: Json) -> Iterator[Declaration]:
    for field in ("EventType", "EventStatus"):
        before, after = (dict.fromkeys(data.get("extra_values", {}).get(field, ())) for data in (old, new))
        added = [f"{quoted(one)} is new" for one in after if one not in before]
        gone = [f"{quoted(one)} is gone" for one in before if one not in after]
        if added or gone:
            what = f"extra_values of {new['name']}: {field} {', '.join(added + gone)}"
            yield _at(new, NEW, kinds.EXTRA_VALUES, what)

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiles one policy file: checks what the schema cannot check, and makes its part of the artifact."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ...events import EVENT_TYPE_SINCE
from ...hook_kinds.common.declaration import WINDOWS
from ...policy.decision import PHASES
from ...policy.program import Program
from ..cel.environment import (
    EXTENSIBLE,
    hook_declarations,
    invariant_declarations,
    notification_declarations,
    policy_declarations,
    value_types,
)
from ..cel.expression import check
from ..cel.types import BOOL, STRING, UNKNOWN, Declarations, ExpressionFinding, Type
from ..findings import blocks
from ..imports.definitions import (
    INVARIANT,
    PARAMETER,
    VARIABLE,
    Definition,
    Definitions,
    Imports,
    drop_findings_of_missing,
    report_unused,
    with_file,
)
from ..wording import closest
from ..yaml import schema
from ..yaml.tree import Mapping, Scalar, Sequence, YamlFile, YamlNode, mappings, short_json, text_of, value_at
from . import params
from .expressions import expression_entry
from .hook_systems import ANY
from .hooks import HookCompiler, seconds_above_0

SCHEMA = "policy.schema.json"
_PREPARING = ("on_failure", "parallel", "group", "prepare_within")  # keys that say how to prepare
_APPROVING = ("on_failure", "approver", "group")  # keys that say how to approve
_PROSE = re.compile(r"\w[\w',.;:!? -]*")  # words, rather than an expression
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_-]*")  # a name, not an expression that anybody would write
_NOTHING = Imports()


def compile_file(file: YamlFile, api_version: str, imports: Imports = _NOTHING, target: str = ANY) -> dict[str, Any]:
    """Report every mistake in a policy file; return its part of the artifact, complete if there are no mistakes.

    ``target`` is the system on which its hooks are to run.
    """
    schema.check(file, SCHEMA)
    return _Compiler(file, api_version, imports, target).policy(file.root) if isinstance(file.root, Mapping) else {}


def compile_library(file: YamlFile, api_version: str, imports: Imports, name: str, target: str = ANY) -> Definitions:
    """Report every mistake in a library; return what it and its imports define. ``name`` is its own in the artifact."""
    schema.check(file, SCHEMA)
    if not isinstance(file.root, Mapping):
        return Definitions(imports.every.found, complete=False)
    return _Compiler(file, api_version, imports, target).library(file.root, name)


class _Compiler:
    def __init__(self, file: YamlFile, api_version: str, imports: Imports = _NOTHING, target: str = ANY) -> None:
        self.file = file
        self.api_version = api_version
        self.target = target
        self.imports = imports
        self.imported = imports.every
        self.params: dict[str, Type] = {}
        self.extra_values: dict[str, tuple[str, ...]] = {}
        self._inner_names: dict[str, str] = {}

    def policy(self, root: Mapping) -> dict[str, Any]:
        self.extra_values = self._extra_values(root.get("extra_values"))
        declared = self._params(root)
        names = self._declarations({})
        self.hooks = HookCompiler(self.file, hook_declarations(names), notification_declarations(names), self.target)
        block, _decides = self._rule(root.get("rule"), self.imported.types(VARIABLE), "")
        policy: dict[str, Any] = {
            "name": text_of(root.get("name")),
            "description": text_of(root.get("description")) or "",
            "source": self.file.source.path,
            "params": declared,
            "extra_values": {name: list(values) for name, values in self.extra_values.items()},
            "rule": block,
            "invariants": self._invariants(root.get("invariants")),
        }
        drop_findings_of_missing(self.file, self.imported)
        self._add_imports(policy)
        params.check_patterns(self.file, root.get("params"), params.patterns_in(policy), policy["params"])
        suppressed = root.get("suppress")
        if isinstance(suppressed, Sequence) and suppressed.items:
            policy["suppress"] = suppressed.data()
        if not any(blocks(finding) for finding in self.file.report.findings) and self.imported.usable:
            policy["time_dependent"] = Program(policy).time_dependent
        return policy

    # Imports

    def library(self, root: Mapping, name: str) -> Definitions:
        declared = self._params(root)
        variables, visible = self._variables(root.get("variables"), self.imported.types(VARIABLE), "")
        invariants = self._invariants(root.get("invariants"))
        own = {PARAMETER: declared, VARIABLE: variables, INVARIANT: invariants}
        drop_findings_of_missing(self.file, self.imported)
        params.check_patterns(self.file, root.get("params"), params.patterns_in(own), declared)
        found = dict(self.imported.found)
        types = {PARAMETER: self.params, VARIABLE: visible, INVARIANT: {}}
        for kind, key in ((PARAMETER, "params"), (VARIABLE, "variables"), (INVARIANT, "invariants")):
            entries = {entry["name"]: with_file(kind, entry, name) for entry in own[kind]}
            for item in mappings(root.get(key)):
                one, node = text_of(item.get("name")), item.get("name")
                if one is not None and node is not None:
                    place = f"{self.file.source.path}:{self.file.place(node)[0]}"
                    definition = Definition(kind, one, types[kind].get(one, UNKNOWN), place, entries.get(one))
                    found.setdefault((kind, one), definition)
        self._check_patterns(own)
        return Definitions(found, self.imported.complete)

    def _params(self, root: Mapping) -> list[dict[str, Any]]:
        imported = self.imported.places(PARAMETER)
        of_fields = value_types(self.api_version, self.extra_values)
        declared, own = params.read_params(self.file, root.get("params"), of_fields, imported)
        self.params = {**own, **self.imported.types(PARAMETER)}
        return declared

    def _check_patterns(self, part: Any) -> None:
        """Report imported parameters that a part of the artifact takes as patterns, and whose values are none."""
        names = params.patterns_in(part) if self.imported.usable else set()
        for node, definitions in self.imports.each:
            for one in definitions.of_kind(PARAMETER):
                if one.name in names and one.entry is not None and "pattern" not in one.entry:
                    params.check_pattern_values(self.file, node, one.entry, one.place)

    def _add_imports(self, policy: dict[str, Any]) -> None:
        """Add what a policy imports to its part of the artifact, as if it declared that first."""
        self._check_patterns(policy)
        if not any(blocks(finding) for finding in self.file.report.findings):
            report_unused(self.file, self.imports, policy)
        policy["params"] = [*self.imported.entries(PARAMETER), *policy["params"]]
        policy["rule"]["variables"] = [*self.imported.entries(VARIABLE), *policy["rule"]["variables"]]
        policy["invariants"] = [*self.imported.entries(INVARIANT), *policy["invariants"]]

    def _extra_values(self, node: YamlNode | None) -> dict[str, tuple[str, ...]]:
        result: dict[str, tuple[str, ...]] = {}
        for name, values in EXTENSIBLE.items():
            declared = value_at(node, name)
            if not isinstance(declared, Sequence):
                continue
            extra: list[str] = []
            for item in declared.items:
                value = text_of(item)
                if value is None:
                    continue
                if name == "EventType" and value not in extra and EVENT_TYPE_SINCE.get(value, "") > self.api_version:
                    pass  # known, but undocumented for this api-version: the policy says otherwise
                elif value in values or value in extra:
                    again = "is declared twice" if value in extra else "is known already"
                    self.file.add("known-value", f"{name} {value} {again}", item, "remove it", severity="warning")
                elif (meant := closest(value, values)) and meant.lower() == value.lower():
                    message = f"{name} {value} differs from {meant} in case only, and case counts"
                    self.file.add("known-value", message, item, f"remove it, and write {meant}", severity="warning")
                extra.append(value)
            result[name] = tuple(dict.fromkeys(extra))
        return result

    # Rules

    def _rule(self, node: YamlNode | None, outer: dict[str, Type], prefix: str) -> tuple[dict[str, Any], bool]:
        """Return a rule, and whether one of its matches always decides."""
        around = self._inner_names
        variables, visible = self._variables(value_at(node, "variables"), outer, prefix)
        declarations = self._declarations(visible)
        matches: list[dict[str, Any]] = []
        ids: dict[str, int] = {}
        decided_by: str | None = None
        for number, item in enumerate(mappings(value_at(node, "match")), 1):
            rule_id = self._rule_id(item, f"match-{number}", ids)
            path = prefix + rule_id
            if decided_by is not None:
                message = f"rule {path} is never reached: {decided_by} before it always decides"
                self.file.add("unreachable", message, item, f"give {decided_by} a condition, or move it to the end")
            match, always = self._match(item, path, declarations, visible)
            matches.append({"id": rule_id, **match})
            if always and decided_by is None:
                decided_by = path
        self._inner_names = around
        return {"variables": variables, "match": matches}, decided_by is not None

    def _declarations(self, variables: dict[str, Type]) -> Declarations:
        """Return what expressions see, with variables by the names that they are written with."""
        declarations = policy_declarations(self.api_version, self.params, variables, self.extra_values)
        return replace(declarations, inner_names=self._inner_names, named_zones=self.target != WINDOWS)

    def _variables(
        self, node: YamlNode | None, outer: dict[str, Type], prefix: str
    ) -> tuple[list[dict[str, Any]], dict[str, Type]]:
        """Return the variables of a rule, and the types of those that are visible in it.

        One that hides an outer variable has the path of its rule before its name in the artifact.
        """
        declared: list[dict[str, Any]] = []
        own: dict[str, Type] = {}
        imported = self.imported.places(VARIABLE)
        for item in mappings(node):
            params.check_name(self.file, item.get("name"), own, "variable", imported)
            expression, type_ = self._expression(item.get("expression"), self._declarations({**outer, **own}), None)
            name = text_of(item.get("name"))
            if name is not None:
                own[name] = type_
                if name in outer:
                    self._inner_names = {**self._inner_names, name: prefix + name}
                declared.append({"name": self._inner_names.get(name, name), "type": str(type_), "expr": expression})
        return declared, {**outer, **own}

    def _rule_id(self, item: Mapping, default: str, taken: dict[str, int]) -> str:
        given = text_of(item.get("id"))
        rule_id = default if given is None else given
        node = item.get("id") or item
        if rule_id in taken:
            message = f"a rule called {rule_id} is at line {taken[rule_id]} already"
            self.file.add("duplicate-id", message, node, "give it another id")
        taken.setdefault(rule_id, self.file.place(node)[0])
        return rule_id

    def _match(
        self, item: Mapping, path: str, declarations: Declarations, variables: dict[str, Type]
    ) -> tuple[dict[str, Any], bool]:
        """Return a match, and whether it decides every event that reaches it."""
        line, column = self.file.source.place(item.start)
        condition_node = item.get("condition")
        condition, _type = self._expression(condition_node, declarations, BOOL)
        always = condition_node is None or _is_literal(condition, True)
        if condition_node is not None and _is_literal(condition, False):
            message = f"rule {path} never applies: its condition is false"
            self.file.add("never-applies", message, condition_node, "remove the rule", severity="warning")
        match: dict[str, Any] = {"line": line, "column": column, "condition": None if always else condition}
        if "rule" in item.values:
            # By the CEL policy format only a nested rule without a condition lets the next match be tried.
            match["rule"], decides = self._rule(item.get("rule"), variables, f"{path}.")
            return match, always and decides
        explanation, _type = self._expression(item.get("explanation"), declarations, STRING)
        match.update(
            output=(text_of(item.get("output")) or "").strip("'\"") or None,
            explanation=explanation,
            approver=text_of(item.get("approver")) or "leader",
            group=text_of(item.get("group")) or "hold",
            on_failure=text_of(item.get("on_failure")) or "hold",
            parallel=isinstance(parallel := item.get("parallel"), Scalar) and parallel.data() is True,
        )
        for key in PHASES:
            hooks = item.get(key)
            match[key] = [self.hooks.hook(hook, key) for hook in hooks.items] if isinstance(hooks, Sequence) else []
        if "limit" in item.values:
            match["limit"] = self._limit(item.get("limit"), declarations)
        if "recover" not in item.values:
            match["recover"] = self.hooks.recovery(match["prepare"])
        if "prepare_within" in item.values:
            match["prepare_within_seconds"] = seconds_above_0(self.file, item.get("prepare_within"), "prepare_within")
        if text_of(item.get("recover_when")) == "started":
            match["recover_when"] = "started"
        elif match["recover"] and not match["prepare"]:
            message = "'recover' never runs here: it undoes what this match has prepared, which is nothing"
            hint = "write 'recover_when: started' to follow every started event, or move it to the match that prepares"
            self.file.add("nothing-to-recover", message, item.keys["recover"], hint)
        self._warn_of_useless_keys(item, match)
        return match, always

    def _limit(self, node: YamlNode | None, declarations: Declarations) -> dict[str, Any]:
        """Return a limit as the artifact has it. Mistakes in its number are the schema's."""
        group = value_at(node, "group")
        most = node.get("at_most") if isinstance(node, Mapping) else node
        number = most.data() if isinstance(most, Scalar) else None
        limit: dict[str, Any] = {}
        if isinstance(number, str):
            share = number.rstrip("%")
            limit["percent"] = int(share) if share.isdecimal() else None
        elif isinstance(number, (int, float)):
            limit["at_most"] = int(number)
        name = text_of(group)
        if group is not None and name is not None and _NAME.fullmatch(name) and name not in declarations.variables:
            message = f"'group' is a CEL expression, and there is no variable {name}"
            self.file.add("undeclared-name", message, group, f"for a name, write a text of CEL: group: \"'{name}'\"")
        elif group is not None:
            limit["group"], _type = self._expression(group, declarations, STRING)
        return limit

    def _warn_of_useless_keys(self, item: Mapping, match: dict[str, Any]) -> None:
        reasons = dict.fromkeys(_PREPARING, "nothing is prepared") if not match["prepare"] else {}
        if match["group"] == "ready":
            reasons.pop("group", None)
        if not match["recover"]:
            reasons["recover_when"] = "there are no recover hooks"
        if match["output"] == "hold":
            reasons.update(dict.fromkeys(_APPROVING, "a hold is never approved"))
            if not match["prepare"]:
                reasons["limit"] = "nothing is prepared or approved here"
        for key, reason in reasons.items():
            if key in item.keys:
                message = f"'{key}' has no effect: {reason}"
                self.file.add("no-effect", message, item.keys[key], "remove it", severity="warning")

    # Expressions

    def _expression(
        self, node: YamlNode | None, declarations: Declarations, expect: Type | None
    ) -> tuple[dict[str, Any] | None, Type]:
        """Return an expression and its type, unknown if it has mistakes. Its findings are reported in the file."""
        if not isinstance(node, Scalar) or node.empty:
            return None, UNKNOWN
        source = self.file.expression(node)
        checked = check(source, declarations, expect)
        findings = tuple(self._add_yaml_hint(finding, node, source, expect) for finding in checked.findings)
        entry = expression_entry(self.file, node, source, replace(checked, findings=findings))
        return entry, checked.type or UNKNOWN

    def _add_yaml_hint(
        self, finding: ExpressionFinding, node: Scalar, source: str, expect: Type | None
    ) -> ExpressionFinding:
        """Return a finding with a hint about YAML, where YAML's reading of the text is the likely reason."""
        line = self.file.source.text[node.end :].partition("\n")[0]
        hint = ""
        if finding.code == "syntax" and re.match(r"\s+#", line) and finding.end >= len(source.rstrip()):
            hint = (
                "' #' begins a comment in YAML: put the whole expression into quotes, or on a line of its own below >-"
            )
        elif expect == STRING and finding.code in ("syntax", "undeclared-name") and _PROSE.fullmatch(source.strip()):
            text = source.strip().replace("'", "''")
            hint = f"an explanation is an expression; for a text, write '\"{text}\"'"
        return replace(finding, suggestion=hint) if hint else finding

    def _invariants(self, node: YamlNode | None) -> list[dict[str, Any]]:
        declarations = invariant_declarations(self._declarations({}))
        result: list[dict[str, Any]] = []
        names: set[str] = set()
        imported = self.imported.places(INVARIANT)
        for item in mappings(node):
            name, name_node = text_of(item.get("name")), item.get("name")
            if name in imported and name_node is not None:
                message = (
                    f"invariant {short_json(name)} is imported from {imported[name]}, and cannot be declared again"
                )
                self.file.add("import-clash", message, name_node, "give it another name, or remove it here")
            elif name in names and name_node is not None:
                message = f"a second invariant is called {short_json(name)}"
                self.file.add("duplicate-name", message, name_node, "give it another name")
            if name is not None:
                names.add(name)
            expression, _type = self._expression(item.get("expression"), declarations, BOOL)
            result.append({"name": name, "expression": expression})
        return result


def _is_literal(expression: dict[str, Any] | None, value: bool) -> bool:
    form = expression["form"] if expression else None
    return form is not None and form[0] == "lit" and form[4] is value

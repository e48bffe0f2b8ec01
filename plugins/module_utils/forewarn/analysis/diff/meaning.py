# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What expressions of an artifact mean, apart from how they are written: to compare those of two versions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import NamedTuple

from ...policy.forms import And, Form, Or, PolicyVariable, read_form
from ..artifacts import Json
from ..hook_wording import quoted


class ExplanationText(NamedTuple):
    """An explanation. ``place`` has its line and column, or those of its match without one.

    ``source`` is None, and ``meaning`` empty, without one.
    """

    meaning: str
    source: str | None
    place: Json


class InvariantText(NamedTuple):
    """An invariant, and the artifact's entry of its expression."""

    meaning: str
    source: str
    form: Form
    expression: Json


def one_line(source: str) -> str:
    """Return the source of an expression as text, on one line."""
    return f"'{' '.join(source.split())}'"


def arrow(old: str | None, new: str | None) -> str:
    """Return two sources of expressions as text, on one line; None is shown as ``none``."""
    lines = ["none" if one is None else one_line(one) for one in (old, new)]
    if lines[0] == lines[1]:  # they differ in spaces only
        lines = ["none" if one is None else quoted(one) for one in (old, new)]
    return " → ".join(lines)


def meaning(form: Form, variables: Mapping[str, str]) -> str:
    """Return a text that two forms share if they are the same but for their places in the source.

    ``variables`` are the meanings of the policy's variables that the form may read.
    """
    if isinstance(form, PolicyVariable):
        return hashlib.sha256(variables[form.name].encode()).hexdigest()
    operands = [{"form": meaning(one, variables)} if isinstance(one, Form) else {"value": one} for one in form.operands]
    return json.dumps([type(form).__name__, form.type, *operands])


def explanations(block: Json, prefix: str = "", outer: Mapping[str, str] | None = None) -> dict[str, ExplanationText]:
    """Return the explanations of a rule of an artifact and its nested rules, by the paths of their matches."""
    variables = dict(outer or {})
    for variable in block["variables"]:
        variables[variable["name"]] = meaning(read_form(variable["expr"]["form"]), variables)
    found: dict[str, ExplanationText] = {}
    for match in block["match"]:
        path = prefix + match["id"]
        expression = match.get("explanation")
        if "rule" in match:
            found.update(explanations(match["rule"], path + ".", variables))
        elif expression is None:
            found[path] = ExplanationText("", None, match)
        else:
            text = meaning(read_form(expression["form"]), variables)
            found[path] = ExplanationText(text, expression["source"], expression)
    return found


def invariants(policies: Mapping[str, Json]) -> dict[tuple[str, str], InvariantText]:
    """Return the invariants of policies by the names of their policy and their own."""
    found = {}
    for name, data in policies.items():
        for entry in data.get("invariants", ()):
            expression = entry["expression"]
            form = read_form(expression["form"])
            found[name, entry["name"]] = InvariantText(meaning(form, {}), expression["source"], form, expression)
    return found


def is_stronger(old: Form, new: Form) -> bool:
    """Return whether a claim promises all that the old one did, as far as its outermost ``&&`` or ``||`` shows it."""
    required = _parts(old, And) <= _parts(new, And)
    return required or _parts(new, Or) <= _parts(old, Or)


def _parts(form: Form, kind: type[And] | type[Or]) -> set[str]:
    return {meaning(one, {}) for one in (form.parts if isinstance(form, kind) else (form,))}

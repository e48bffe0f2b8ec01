# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the structure of an artifact's policies. Its digest shows that nobody changed them, not that they are valid.

Every check takes any JSON value, and raises ValueError that names the place of the mistake. Code that runs after the
checks may rely on keys and the types of their values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Callable

from .decision import APPROVE, APPROVERS, GROUPS, HOLD, HTTP_TEMPLATES, MOST_SLOTS, RECOVER_WHEN
from .forms import not_a, read_form
from .params import TYPES

_Check = Callable[[Any, str], object]
MAX_ATTEMPTS = 1000  # of a hook

_THIS_MACHINE = r"(?i)https?://(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?(?:[/?#].*)?"


def check_policies(data: Mapping[str, Any]) -> None:
    """Check everything in an artifact that is used at run time. Raises ValueError."""
    _list(_policy)(data.get("policies"), "policies")


def check_source(data: Mapping[str, Any]) -> None:
    """Check ``source``, the origin of an artifact's policies, if there is one. Raises ValueError."""
    text = _or_null(_of_type(str))
    required = {
        "repository": text,
        "ref": text,
        "commit": text,
        "paths": _list(_of_type(str)),
        "modified": _of_type(bool),
    }
    if "source" in data:
        _object(required, {}, "source", data["source"])


def _of_type(kind: type) -> _Check:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):  # a bool is not an int here
            raise not_a(where, f"of type {kind.__name__}")

    return check


def _one_of(*values: str) -> _Check:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in values:
            raise not_a(where, "one of " + ", ".join(values))

    return check


def _list(item: _Check) -> _Check:
    def check(value: Any, where: str) -> None:
        _of_type(list)(value, where)
        for number, one in enumerate(value):
            item(one, f"{where}[{number}]")

    return check


def _or_null(inner: _Check) -> _Check:
    def check(value: Any, where: str) -> None:
        if value is not None:
            inner(value, where)

    return check


def _object(
    required: Mapping[str, _Check], optional: Mapping[str, _Check], where: str, value: Any, *, closed: bool = False
) -> None:
    """Check an object. A ``closed`` one may have no other keys, since an unknown key could change its meaning."""
    if not isinstance(value, Mapping):
        raise not_a(where, "an object")
    for name, check in required.items():
        check(value.get(name), f"{where}.{name}")
    for name, check in optional.items():
        if name in value:
            check(value[name], f"{where}.{name}")
    unknown = sorted(map(str, value.keys() - required.keys() - optional.keys())) if closed else []
    if unknown:
        raise ValueError(f"{where} has {unknown[0]}, which this forewarn does not know")


def _policy(value: Any, where: str) -> None:
    required = {"name": _of_type(str), "source": _of_type(str), "params": _list(_param), "rule": _block}
    _object(required, {"extra_values": _extra_values, "invariants": _list(_invariant)}, where, value)


def _extra_values(value: Any, where: str) -> None:
    names = _list(_of_type(str))
    _object({}, {"EventType": names, "EventStatus": names}, where, value)


def _param(value: Any, where: str) -> None:
    optional = {"enum": _of_type(list), "each": _list(_of_type(str)), "pattern": _of_type(bool), "file": _of_type(str)}
    _object({"name": _of_type(str), "type": _one_of(*TYPES)}, optional, where, value)


def _invariant(value: Any, where: str) -> None:
    place = {"source": _of_type(str), "line": _of_type(int), "column": _of_type(int)}

    def check_place(expression: Any, at: str) -> None:  # not its form, which only proofs use
        _object(place, {"file": _of_type(str)}, at, expression)

    _object({"name": _of_type(str), "expression": check_place}, {}, where, value)


def _block(value: Any, where: str) -> None:
    _object({"variables": _list(_variable), "match": _list(_match)}, {}, where, value)


def _variable(value: Any, where: str) -> None:
    _object({"name": _of_type(str), "expr": _expression}, {}, where, value)


def _match(value: Any, where: str) -> None:
    hooks = _list(_hook)
    required = {"id": _of_type(str), "line": _of_type(int), "column": _of_type(int), "condition": _or_null(_expression)}
    optional: dict[str, _Check] = {
        "explanation": _or_null(_expression),
        "approver": _one_of(*APPROVERS),
        "group": _one_of(*GROUPS),
        "limit": _limit,
        "on_failure": _one_of(HOLD, APPROVE),
        "parallel": _of_type(bool),
        "prepare": hooks,
        "prepare_within_seconds": _seconds,
        "recover": hooks,
        "recover_when": _one_of(*RECOVER_WHEN),
        "notify": _list(_notify_hook),
        "output": _one_of(APPROVE, HOLD),
        "rule": _block,
    }
    _object(required, optional, where, value, closed=True)
    if ("rule" in value) == ("output" in value):
        raise ValueError(f"{where} must have exactly one of rule and output")
    if value.get("recover") and not value.get("prepare") and value.get("recover_when") != "started":
        raise ValueError(f"{where} has recover, and neither prepare nor recover_when: started")


def _limit(value: Any, where: str) -> None:
    numbers = {"at_most": _between(1, MOST_SLOTS), "percent": _between(1, 100)}
    _object({}, {**numbers, "group": _expression}, where, value, closed=True)
    if len(numbers.keys() & value.keys()) != 1:
        raise ValueError(f"{where} must have exactly one of {' and '.join(numbers)}")


def is_local_url(url: str) -> bool:
    """Return whether the host of a URL is this machine."""
    return re.fullmatch(_THIS_MACHINE, url) is not None  # compiled when needed: few artifacts have a URL


def exposes_secret(url: str) -> bool:
    """Return whether a request to a URL would carry its secret over the network unencrypted."""
    return url[:6].lower() != "https:" and not is_local_url(url)


def _hook(value: Any, where: str) -> None:
    kinds: dict[str, _Check] = {"run": _command, "unit": _of_type(str), "http": _of_type(str), "kind": _of_type(str)}
    optional: dict[str, _Check] = {
        **kinds,
        "action": _one_of("start", "stop"),
        "bearer": _bearer,
        "credentials": _credentials,
        "options": _options,
        "template": _one_of(*HTTP_TEMPLATES),
        "body": _expression,
        "timeout_seconds": _number,
        "retry": _retry,
    }
    _object({}, optional, where, value, closed=True)
    if len(kinds.keys() & value.keys()) != 1:
        raise ValueError(f"{where} must have exactly one of {', '.join(kinds)}")
    belongings = {"action": "unit", "bearer": "http", "options": "kind", "template": "http", "body": "http"}
    for name, belongs_to in (*belongings.items(), ("credentials", "run")):
        if name in value and belongs_to not in value:
            raise ValueError(f"{where} has {name} without {belongs_to}")
    for name, requires in (("unit", "action"), ("kind", "options")):
        if name in value and requires not in value:
            raise ValueError(f"{where} has {name} without {requires}")
    if "body" in value and "template" in value:
        raise ValueError(f"{where} has both template and body")
    if value.get("template") == "pagerduty" and "bearer" not in value:
        raise ValueError(f"{where} has template pagerduty without bearer")
    if "bearer" in value and exposes_secret(value["http"]):
        raise ValueError(f"{where} would send a secret unencrypted")


def _options(value: Any, where: str) -> None:
    _object({}, {}, where, value)
    for name, one in value.items():
        for item in one if isinstance(one, list) else [one]:
            if isinstance(item, Mapping):
                _object({"parts": _list(_part)}, {}, f"{where}.{name}", item, closed=True)
            elif not isinstance(item, (str, int, float)):
                raise not_a(f"{where}.{name}", "a text, a number, true, false or a list of texts")


def _part(value: Any, where: str) -> None:
    if not isinstance(value, str):
        _expression(value, where)


def _notify_hook(value: Any, where: str) -> None:
    _hook(value, where)
    if "kind" in value:
        raise ValueError(f"{where} has kind, and notify hooks change nothing")


def _retry(value: Any, where: str) -> None:
    optional = {"attempts": _between(1, MAX_ATTEMPTS), "delay_seconds": _seconds, "max_delay_seconds": _seconds}
    _object({}, optional, where, value)
    if not value or value.keys() - optional.keys():
        raise not_a(where, "made of " + ", ".join(optional))
    if value.get("max_delay_seconds", float("inf")) < value.get("delay_seconds", 0):
        raise not_a(where, "in order: its longest delay is below its first")


def _between(low: int, high: int) -> _Check:
    def check(value: Any, where: str) -> None:
        _of_type(int)(value, where)
        if not low <= value <= high:
            raise not_a(where, f"between {low} and {high}")

    return check


def _command(value: Any, where: str) -> None:
    _list(_of_type(str))(value, where)
    if not value:
        raise not_a(where, "a program and its arguments")


def _bearer(value: Any, where: str) -> None:
    _object({}, {"credential": _of_type(str), "file": _of_type(str)}, where, value)
    if len(value) != 1 or not value.keys() <= {"credential", "file"}:
        raise not_a(where, "either a credential or a file")
    if "credential" in value:
        _credential(value["credential"], f"{where}.credential")


def _credentials(value: Any, where: str) -> None:
    _list(_credential)(value, where)
    if not value:
        raise not_a(where, "a list of names")


def _credential(value: Any, where: str) -> None:
    _of_type(str)(value, where)
    if "/" in value or value.startswith("."):  # it is looked up in one directory
        raise not_a(where, "a name")


def _number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise not_a(where, "a number of seconds")


def _seconds(value: Any, where: str) -> None:
    _number(value, where)
    if not value:
        raise not_a(where, "a number of seconds above 0")


def _expression(value: Any, where: str) -> None:
    """Check an expression. ``file`` is the library from which it was imported, if any."""
    required = {"source": _of_type(str), "line": _of_type(int), "column": _of_type(int), "form": read_form}
    _object(required, {"file": _of_type(str)}, where, value)

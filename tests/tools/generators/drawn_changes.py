# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random changes of policies: one thing is changed, or the same is said in another way."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import yaml

from .drawn_params import declaration
from .drawn_policies import EXPLANATIONS, HOOKS, Data, DrawnPolicies, limit, of, written


def changed(before: DrawnPolicies, chance: random.Random) -> DrawnPolicies:
    """Return another version of policies: one thing is changed, or the same is said in another way."""
    data = [yaml.safe_load(written(one)) for one in before.data]
    for _ in range(20):
        target = chance.choice(data)
        kind = chance.choice(("output", "condition", "rewrite", "limit", "key", "order", "drop", "claim", "default"))
        if _change(target, kind, chance):
            break
    return of(data, before.api_version)


def _matches(block: Data) -> Iterator[tuple[list[Data], Data]]:
    for match in block["match"]:
        yield block["match"], match
        if "rule" in match:
            yield from _matches(match["rule"])


def _change(data: Data, kind: str, chance: random.Random) -> bool:
    """Change one policy; return whether there was something to change."""
    listed, match = chance.choice(list(_matches(data["rule"])))
    if kind in ("limit", "default"):
        if not data["params"]:
            return False
        entry = chance.choice(data["params"])
        again = declaration(entry["name"], chance)
        entry.clear()
        entry.update(again)
    elif kind == "claim":
        if not data["invariants"]:
            return False
        data["invariants"].pop()
    elif kind == "order":
        if len(listed) < 2 or "condition" not in listed[-1]:
            return False
        chance.shuffle(listed)
    elif kind == "drop":
        if len(listed) < 2:
            return False
        listed.remove(match)
    elif kind in ("condition", "rewrite"):
        if "condition" not in match:
            return False
        was = match["condition"]
        ways = (f"!(!({was}))", f"({was}) && ({was})", f"({was}) || ({was})", f"({was}) ? true : false")
        others = (
            f"!({was})",
            f"({was}) && affects_me",
            f"({was}) || event.EventType == 'Terminate'",
            _other_literal(was, chance),
        )
        match["condition"] = chance.choice(ways if kind == "rewrite" else others)
        return bool(match["condition"] != was)
    elif "output" not in match:
        return False
    elif kind == "output":
        match["output"] = {"approve": "hold", "hold": "approve"}[match["output"]]
        match.pop("approver", None)
    else:
        _change_key(match, chance)
    return True


def _other_literal(text: str, chance: random.Random) -> str:
    places = list(re.finditer(r"(?<![\w.'])\d+(?![\w'.])", text))
    if not places:
        return text
    place = chance.choice(places)
    return f"{text[: place.start()]}{int(place[0]) + 1}{text[place.end() :]}"


def _change_key(match: Data, chance: random.Random) -> None:
    kind = chance.choice(("explanation", "prepare", "notify", "approver", "on_failure", "hook", "group", "limit"))
    if kind == "explanation":
        match["explanation"] = chance.choice([one for one in EXPLANATIONS if one != match.get("explanation")])
    elif kind == "prepare":
        if match.pop("prepare", None) is None:
            match["prepare"] = [chance.choice(HOOKS)]
        else:
            for key in ("on_failure", "prepare_within", "group", "recover", "recover_when", "parallel"):
                match.pop(key, None)
    elif kind == "group":
        match["group"] = chance.choice(("hold", "ready", "independent"))
    elif kind == "limit":
        if chance.random() < 0.3 or match.get("limit") == (other := limit(chance)):
            match.pop("limit", None)
        else:
            match["limit"] = other
    elif kind == "notify":
        match["notify"] = [{"run": ["/bin/other"]}]
    elif kind == "approver":
        if match.pop("approver", None) is None and match["output"] == "approve":
            match["approver"] = chance.choice(("any", "witness"))
    elif kind == "on_failure" and "prepare" in match:
        match["on_failure"] = {"approve": "hold", "hold": "approve"}[match.get("on_failure", "hold")]
    elif "prepare" in match:
        match["prepare"] = [chance.choice(HOOKS), *match["prepare"][1:]]

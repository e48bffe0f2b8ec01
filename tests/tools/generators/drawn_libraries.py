# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moves what a policy declares to random libraries that import each other, and writes all of them as files."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .drawn_policies import written

Data = dict[str, Any]
_READS = re.compile(r"\b(params|variables)\.([A-Za-z_]\w*)")
_DIRECTORIES = ("", "shared", "shared/deep", "other")


def with_chain(data: Mapping[str, Any], chance: random.Random) -> Data:
    """Return a policy with further variables, which read those before them, and a rule that reads the last."""
    variables = [dict(one) for one in data["rule"].get("variables", ())]
    for number in range(chance.randint(1, 3)):
        if variables:
            read = f"variables.{chance.choice(variables)['name']}"
            expression = f"[{read}] == [{read}] && affects_me"
        else:
            expression = chance.choice(("affects_me", 'event.EventType == "Freeze"'))
        variables.append({"name": f"x{number}", "expression": expression})
    first = {"id": "chain", "condition": f"!variables.{variables[-1]['name']}", "output": "hold"}
    return {**data, "rule": {"variables": variables, "match": [first, *data["rule"]["match"]]}}


def split(data: Mapping[str, Any], chance: random.Random, directory: Path) -> Path:
    """Write a policy that has much of what it declares from libraries, and return its file.

    Where a definition goes, and which libraries import which beyond what they need, is random: among them are chains
    and diamonds. All of them are imported by the policy, directly or not.
    """
    count = chance.randint(1, 5)
    libraries: list[Data] = [{"params": [], "variables": [], "invariants": []} for _ in range(count)]
    files = [Path(chance.choice(_DIRECTORIES), f"l{number}.yml") for number in range(count)]
    place: dict[str, int] = {}  # of a definition: its library; one that is in the policy itself has none
    needs: list[set[int]] = [set() for _ in range(count)]
    own: Data = {"params": [], "variables": [], "invariants": []}
    declared = [
        *(("params", one) for one in data["params"]),
        *(("variables", one) for one in data["rule"].get("variables", ())),
        *(("invariants", one) for one in data.get("invariants", ())),
    ]
    for kind, entry in declared:
        read = {".".join(found) for found in _READS.findall(str(entry.get("expression", "")))}
        at_least = [place.get(name, count) for name in read]
        lowest = max(at_least, default=0)
        # It may be wherever all that it reads is: that of a later library, or of the policy.
        number = chance.randint(lowest, count) if lowest < count else count
        name = f"{kind}.{entry['name']}"
        if number == count:
            own[kind].append(entry)
            place[name] = count
        else:
            libraries[number][kind].append(entry)
            place[name] = number
            needs[number] |= {at for at in at_least if at != number}
    for number in range(count):
        needs[number] |= {other for other in range(number) if chance.random() < 0.3}
    imported = {number for number in range(count) if chance.random() < 0.5}
    imported |= set(range(count)) - set().union(*needs)
    for number, library in enumerate(libraries):
        content = {"name": f"l{number}", "library": True, **_imports(files, files[number], needs[number], chance)}
        content.update({kind: entries for kind, entries in library.items() if entries})
        _write(directory / files[number], content)
    policy = Path(chance.choice(_DIRECTORIES), "p.yml")
    rule = {key: value for key, value in data["rule"].items() if key != "variables"}
    if own["variables"]:
        rule = {"variables": own["variables"], **rule}
    content = {"name": data["name"], **_imports(files, policy, imported, chance), "params": own["params"]}
    _write(directory / policy, {**content, "rule": rule, "invariants": own["invariants"]})
    return directory / policy


def _imports(files: list[Path], importer: Path, numbers: set[int], chance: random.Random) -> Data:
    listed = sorted(numbers)
    chance.shuffle(listed)
    up = "../" * len(importer.parent.parts)
    return {"imports": [{"path": f"{up}{files[number]}"} for number in listed]} if listed else {}


def _write(path: Path, content: Data) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written(content))

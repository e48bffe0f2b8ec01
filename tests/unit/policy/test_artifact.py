# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An artifact is trusted only as a whole: a changed byte is refused, and damage causes at most a hold."""

from __future__ import annotations

import copy
import json
from collections import Counter
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.events import Document, Event, Vm
from forewarn.policy.artifact import digest_of, load, with_source
from forewarn.policy.decision import APPROVERS, GROUPS, Facts
from forewarn.policy.engine import PolicySet
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.fixtures.policy_data import artifact_data, policy
from tools.suite.sizes import SEED, examples

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
FACTS = Facts(NOW, Vm(name="web_0", tags={"role": "web"}))
EVENT = Event("e1", "Freeze", "VirtualMachine", ("web_0", "b"), "Scheduled", NOW + timedelta(hours=1), "x", "User", 5)
DOCUMENT = Document(1, (EVENT, Event("e2", "Reboot", None, ("b",), "Started")))
DATA = artifact_data(
    policy(
        {"id": "busy", "condition": "variables.short && event.Resources.exists(r, r.matches('^web(_[0-9]+)*$'))",
         "output": "approve", "explanation": "'in ' + string(notice) + event.Resources.map(r, r).join()",
         "approver": "any", "group": "independent", "prepare": [{"run": ["/bin/true"], "timeout_seconds": 5.0}],
         "limit": {"at_most": 2, "group": "vm.tags['role'] + event.EventType"}},
        {"id": "nested", "condition": "has(event.NotBefore) && event.NotBefore > now", "rule": [
            {"condition": "event.EventType in ['Freeze', 'Reboot']", "output": "approve"},
            {"condition": "params.names == ['a'] || params.roles['x'] == 'y'", "output": "hold"}]},
        {"id": "last", "condition": "events.filter(e, e.EventType == 'Reboot').size() == 1 ? leader : b'a' < b'b'",
         "output": "approve"},
        variables={"short": "event.DurationInSeconds * 2 < params.limit", "half": "{'a': 0.5}.a"},
        params=[{"name": "limit", "type": "int", "default": 60, "min": 0, "max": 100},
                {"name": "names", "type": "list(string)", "default": []},
                {"name": "roles", "type": "map(string, string)", "default": {}},
                {"name": "wait", "type": "duration", "default": "5m"}],
    ),
    policy({"output": "approve"}, name="second"),
)  # fmt: skip
TEXT = json.dumps(DATA)


def _signed(data: dict[str, Any]) -> dict[str, Any]:
    """Give changed data the digest it would need: damage that the digest does not show."""
    return {**data, "digest": digest_of(data)}


def test_artifact_loads_from_text_bytes_and_data() -> None:
    for source in (TEXT, TEXT.encode(), DATA, json.dumps(DATA, indent=2), json.dumps(DATA, ensure_ascii=False)):
        artifact = load(source)
        assert artifact.digest == DATA["digest"]
        assert artifact.api_version == "2020-07-01"


def test_digest_is_of_the_canonical_json() -> None:
    import hashlib

    content = {key: value for key, value in DATA.items() if key != "digest"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert DATA["digest"] == "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def test_key_order_and_white_space_do_not_matter() -> None:
    assert load(json.dumps(DATA, sort_keys=True, indent=4)).digest == load(TEXT).digest


@given(st.integers(0, len(TEXT) - 1), st.integers(0x20, 0x7E))
@settings(max_examples=examples(300), deadline=None)
def test_any_changed_character_of_the_content_is_refused(position: int, code: int) -> None:
    changed = TEXT[:position] + chr(code) + TEXT[position + 1 :]
    try:
        same = json.loads(changed) == DATA
    except ValueError:
        same = False
    if same:  # white space, or nothing
        load(changed)
    else:
        with pytest.raises(InputError):
            load(changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a compiled policy"),
        ({"format": None}, "not a compiled policy"),
        ({"version": 2}, "format version 2"),
        ({"version": "1"}, "format version '1'"),
        ({"version": True}, "format version"),
        ({"version": 1.0}, "format version"),
        ({"version": None}, "format version"),
        ({"api_version": "2030-01-01"}, "api-version"),
        ({"api_version": ["2020-07-01"]}, "api-version"),
        ({"api_version": {}}, "api-version"),
        ({"policies": None}, "damaged"),
        ({"policies": {}}, "damaged"),
        ({"policies": [None]}, "damaged"),
        ({"policies": "x"}, "damaged"),
    ],
)
def test_wrong_head_is_refused_with_its_digest_right(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(_signed({**DATA, **change}))


def test_wrong_digest_is_refused() -> None:
    for digest in ("sha256:" + "0" * 64, DATA["digest"].upper(), None, "", 5, DATA["digest"][7:]):
        with pytest.raises(InputError, match="digest does not match"):
            load({**DATA, "digest": digest})


@pytest.mark.parametrize(
    "garbage",
    ["", "null", "[]", "5", '"x"', "{", "{}", b"\xff\xfe", b"\x00", "[" * 100_000, "1" * 5000, "NaN", '{"format": NaN}',
     TEXT[:-1], TEXT + "}", "\ufeff" + TEXT],
)  # fmt: skip
def test_garbage_is_refused(garbage: bytes | str) -> None:
    with pytest.raises(InputError):
        load(garbage)


def test_too_large_an_artifact_is_refused() -> None:
    with pytest.raises(InputError, match="larger than"):
        load(" " * (16 * 1024 * 1024 + 1))


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything within a JSON value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += _places(item, (*path, key))
    return found


JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, 10**30, 0.5, float("nan"), "", "x", "lit", "call", "event", "size", "approve"),
    *([], {}, [[]], ["m"], ["lit", "bool", 0, 1, True], ["lit", "string", 0, 1, "a"], ["var", "bool", 0, 1, "nobody"]),
    *(["local", "int", 0, 1, 9], ["call", "int", 0, 1, "add_int"], {"a": 1}, "\ud800"),
    *(["matches", "bool", 0, 1, [], []], ["lit", "int", 0, 1, 10**30], ["lit", "string", 0, 1, "\ud800"]),
    *(["call", "bool", 0, 1, "lt", ["lit", "string", 0, 1, "a"], ["lit", "int", 0, 1, 5]], ["__init__", "bool", 0, 1]),
)  # fmt: skip


def _mutate(random: Random, data: dict[str, Any]) -> None:
    """Change one thing somewhere in the policies: replace, remove, copy from elsewhere, repeat."""
    places = [path for path in _places(data) if path[0] in ("policies", "sources", "api_version")]
    if random.random() < 0.5:
        places = [path for path in places if "form" in path[:-1]] or places
    *way, last = random.choice(places)
    parent: Any = data
    for step in way:
        parent = parent[step]
    choice = random.randrange(5)
    if choice == 0:
        del parent[last]
    elif choice == 1:
        value: Any = data
        for step in random.choice(places):
            value = value[step]
        parent[last] = copy.deepcopy(value)
    elif choice == 2 and isinstance(parent, list):
        parent.insert(last, copy.deepcopy(parent[last]))
    else:
        parent[last] = copy.deepcopy(random.choice(JUNK))


def test_damage_causes_a_refusal_or_a_decision() -> None:
    """Signed anew, so that the digest hides the damage: what then escapes would stop a runner."""
    random = Random(SEED)
    count: Counter[str] = Counter()
    for _ in range(examples(1_800)):
        data = copy.deepcopy(DATA)
        for _ in range(random.choice((1, 1, 1, 2, 5))):
            _mutate(random, data)
        try:
            policies = PolicySet(load(json.dumps(_signed(data))))
        except InputError:
            count["refused"] += 1
            continue
        for decision in policies.decide(DOCUMENT, FACTS):
            assert decision.output in ("approve", "hold")
            assert decision.approver in APPROVERS
            assert decision.group in GROUPS
            for limit in decision.limits:
                assert (limit.at_most is None) != (limit.percent is None)
                assert limit.group is None or limit.group
            assert isinstance(decision.reason, str)
            assert all(isinstance(hook, dict) for hook in decision.prepare + decision.recover + decision.notify)
            count[decision.output] += 1
        policies.explain(EVENT, DOCUMENT, FACTS)
        assert isinstance(policies.time_dependent, bool)
        assert all(isinstance(hook, dict) for hook in policies.every_hook())
    assert min(count["refused"], count["approve"] + count["hold"]) > examples(30), count


def test_invalid_form_holds_where_it_fails() -> None:
    data = copy.deepcopy(DATA)
    condition = data["policies"][1]["rule"]["match"][0]
    form = ["call", "bool", 0, 1, "lt", ["lit", "string", 0, 1, "a"], ["lit", "int", 0, 1, 5]]
    condition["condition"] = {"source": "'a' < 5", "line": 1, "column": 1, "form": form}
    decision = PolicySet(load(_signed(data))).decide(DOCUMENT, FACTS)[0]
    assert (decision.output, decision.policy) == ("hold", "second")
    assert "internal error (TypeError" in decision.reason
    assert "damaged" not in decision.reason  # its digest is right


SOURCE = {
    "repository": "https://git.example/team/policies.git",
    "ref": "main",
    "commit": "0123456789abcdef0123456789abcdef01234567",
    "paths": ["web/", "größe.yml"],
    "modified": False,
}


def test_source_is_kept_and_leaves_the_digest_alone() -> None:
    assert load(TEXT).source is None
    nowhere: dict[str, Any] = {"repository": None, "ref": None, "commit": None, "paths": [], "modified": True}
    for source in (SOURCE, nowhere, {**SOURCE, "modified": True}, {**SOURCE, "of a newer version": 1}):
        raw = with_source(TEXT.encode(), source)
        artifact = load(raw)
        assert artifact.source == source
        assert artifact.digest == DATA["digest"] == json.loads(raw)["digest"]
        assert {**artifact.data, "source": None} == {**DATA, "source": None}
        assert with_source(raw, source) == raw
        assert with_source(raw, SOURCE) == with_source(TEXT.encode(), SOURCE)
        assert load(with_source(raw, None)).source is None


@pytest.mark.parametrize(
    ("repository", "kept"),
    [
        ("https://user:hunter2@git.example/p.git", "https://git.example/p.git"),
        ("HTTPS://hunter2@git.example/p.git", "HTTPS://git.example/p.git"),
        ("http://user:hunt@er2@git.example/p@q", "http://git.example/p@q"),
        ("https://git.example/p@q.git", "https://git.example/p@q.git"),
        ("git@git.example:p.git", "git@git.example:p.git"),
        ("ssh://git@git.example/p.git", "ssh://git@git.example/p.git"),
        ("/srv/policies", "/srv/policies"),
    ],
)
def test_no_password_of_a_repository_reaches_a_vm(repository: str, kept: str) -> None:
    source = load(with_source(TEXT.encode(), {**SOURCE, "repository": repository})).source
    assert source is not None
    assert source["repository"] == kept


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"repository": 1}, "source.repository"),
        ({"ref": ["main"]}, "source.ref"),
        ({"commit": True}, "source.commit"),
        ({"paths": None}, "source.paths"),
        ({"paths": "web/"}, "source.paths"),
        ({"paths": ["web/", 7]}, r"source.paths\[1\]"),
        ({"modified": 0}, "source.modified"),
        ({"modified": None}, "source.modified"),
    ],
)
def test_source_of_a_wrong_shape_is_refused(change: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        load({**DATA, "source": {**SOURCE, **change}})
    with pytest.raises(InputError, match=what):
        with_source(TEXT.encode(), {**SOURCE, **change})


def test_source_must_be_whole() -> None:
    wrongs: list[Any] = [None, "main", [], 3]
    for wrong in wrongs:
        with pytest.raises(InputError, match="source"):
            load({**DATA, "source": wrong})
    for name in ("paths", "modified"):
        with pytest.raises(InputError, match=f"source.{name}"):
            load({**DATA, "source": {key: value for key, value in SOURCE.items() if key != name}})


def test_a_source_saves_no_damaged_artifact() -> None:
    damaged = {**DATA, "policies": []}
    with pytest.raises(InputError, match="digest"):
        with_source(json.dumps(damaged).encode(), SOURCE)

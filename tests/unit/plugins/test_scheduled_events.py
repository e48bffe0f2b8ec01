# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VM reads is what the control node decides on, nothing lost on the way, least of all a doubt."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

_COLLECTION = "ansible_collections.forewarn.azure.plugins"
_NOW = datetime(2026, 1, 31, 15, 4, 5, 123456, timezone.utc)
_NAMES = st.sampled_from(["web_0", "WEB_0", "web_1", "_db", "ünïcode", ""])
_ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8))
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "EventId": st.sampled_from(["a1", "A1", "b2", "C7061BAC-AFDC-4513-B24B-AA5F13A16123"]),
    "EventType": st.sampled_from(["Freeze", "Terminate", "SpotRebalanceRecommendation", ""]),
    "EventStatus": st.sampled_from(["Scheduled", "Started", "Completed"]),
    "ResourceType": st.just("VirtualMachine"),
    "Resources": st.lists(_NAMES, max_size=3),
    "NotBefore": st.sampled_from(
        ["", "Mon, 19 Sep 2016 18:29:47 GMT", "2026-01-31T15:19:05.5+01:00", "9999-12-31T23:59:59Z", "soon"]
    ),
    "Description": st.text(max_size=8),
    "EventSource": st.sampled_from(["Platform", "User", "Nobody"]),
    "DurationInSeconds": st.sampled_from([-1, 0, 9, "5", 5.5, 2**70]),
    "Later": _ANYTHING,
}
_EVENTS = st.lists(
    st.fixed_dictionaries({}, optional={name: st.one_of(usual, _ANYTHING) for name, usual in _FIELDS.items()}),
    max_size=3,
)
_DOCUMENTS = st.fixed_dictionaries({"DocumentIncarnation": _ANYTHING, "Events": _EVENTS})


@pytest.fixture(scope="module")
def collection(collections_path: Path) -> Iterator[SimpleNamespace]:
    """Return the module, the action and what they share, by their names within Ansible."""
    sys.path.insert(0, str(collections_path))
    names = {
        "module": "modules.scheduled_events",
        "action": "action.scheduled_events",
        "events": "module_utils.forewarn.events",
        "decision": "module_utils.forewarn.policy.decision",
        "approval": "module_utils.forewarn.policy.approval",
    }
    yield SimpleNamespace(**{name: importlib.import_module(f"{_COLLECTION}.{path}") for name, path in names.items()})
    sys.path.remove(str(collections_path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(content=_DOCUMENTS, name=st.sampled_from([None, "web_0"]), version=st.sampled_from(["2017-03-01", "2020-07-01"]))
def test_the_control_node_decides_on_what_the_vm_has_read(
    collection: SimpleNamespace, content: dict[str, Any], name: str | None, version: str
) -> None:
    document = collection.events.parse_document(json.dumps(content), version)
    vm = collection.events.Vm(name=name, tags={"tier": "web"})
    result = {
        "api_version": version,
        "read_at": collection.events.format_time(_NOW),
        "document_incarnation": document.incarnation,
        "events": [collection.module.describe_event(event, vm.name, _NOW) for event in document.events],
        "vm": asdict(vm),
        "problems": list(document.problems),
    }
    reading = collection.action.read(json.loads(json.dumps(result)))
    assert reading.document == replace(document, events=tuple(replace(event, extra={}) for event in document.events))
    assert reading.facts == collection.decision.Facts(now=_NOW, vm=vm)


def test_prepare_hooks_are_left_to_the_runner(collection: SimpleNamespace) -> None:
    """An approval after which nobody has drained would be the most common mistake over again."""
    event = collection.events.Event("a1", "Reboot", resources=("web_0",), event_status="Scheduled")
    plain = collection.decision.Decision(event, "approve", "web", "drain", "because")
    facts = collection.decision.Facts(now=_NOW, vm=collection.events.Vm(name="web_0"))
    assert collection.action.stand(plain, facts).send
    hooked = collection.action.stand(plain._replace(prepare=({"run": ["/bin/true"]},)), facts)
    assert (hooked.send, hooked.code) == (False, "needs-runner")
    assert hooked.reason == "rule drain has hooks to run before the approval, which only the runner on the VM does"
    started = plain._replace(event=replace(event, event_status="Started"), prepare=({"run": ["/bin/true"]},))
    assert collection.action.stand(started, facts).code == "started"


def test_the_summary_stays_one_short_line(collection: SimpleNamespace) -> None:
    events = [collection.events.Event(f"id{number}", "Freeze", event_status="Scheduled") for number in range(5)]
    decisions = [collection.decision.Decision(event, "hold", "web", "calm", "not now") for event in events]
    standings = [collection.approval.Standing("refused-by-policy", "not now")] * 5
    assert collection.action.summary(decisions, standings, [], False) == (
        "Freeze id0: hold by web, rule calm (not now); Freeze id1: hold by web, rule calm (not now); "
        "Freeze id2: hold by web, rule calm (not now); and 2 more"
    )
    assert collection.action.summary([], [], [], False) == "nothing is scheduled"


def test_ids_are_compared_in_either_case_and_sent_as_the_service_spells_them(collection: SimpleNamespace) -> None:
    """SE-11."""
    document = collection.events.Document(2, (collection.events.Event("AB"), collection.events.Event("cd")))
    events, unknown = collection.module.select(document, ["CD", " ab ", "Ab", "ef"])
    assert [event.event_id for event in events] == ["cd", "AB"]
    assert unknown == ["ef"]


def test_doubts_of_an_event_approved_by_hand_are_named(collection: SimpleNamespace) -> None:
    event = collection.events.Event("a1", "Freeze", event_status="Completed", problems=("NotBefore is odd",))
    assert collection.module.doubts(event) == ["NotBefore is odd", "EventStatus 'Completed' is not known"]
    assert collection.module.doubts(collection.events.Event("a1", event_status="Scheduled")) == []


def test_policies_are_compiled_once_a_run_and_again_when_they_change(
    collection: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each host of a run has a process of its own: what one has compiled has to be on disk for the others."""
    compiler = importlib.import_module(f"{_COLLECTION}.module_utils.forewarn.compiler.policyfile")
    compiled: list[list[Path]] = []
    original = compiler.load_policies

    def counted(paths: list[Path], api_version: str) -> Any:
        compiled.append(paths)
        return original(paths, api_version)

    monkeypatch.setattr(compiler, "load_policies", counted)
    monkeypatch.setattr(collection.action.C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    policies = tmp_path / "policies"
    policies.mkdir()
    text = "name: calm\ndescription: Holds.\nrule: {match: [{output: hold}]}\n"
    (policies / "calm.yml").write_text(text)
    first = collection.action.compile_policies([policies], "2020-07-01")
    assert collection.action.compile_policies([policies], "2020-07-01") == first
    assert len(compiled) == 1
    assert collection.action.compile_policies([policies], "2019-08-01").api_version == "2019-08-01"
    assert len(compiled) == 2
    (policies / "calm.yml").write_text(text + "# longer\n")
    collection.action.compile_policies([policies], "2020-07-01")
    (policies / "other.yml").write_text(text.replace("calm", "other"))
    collection.action.compile_policies([policies], "2020-07-01")
    assert len(compiled) == 4
    assert {path.suffix for path in tmp_path.glob("forewarn-*")} == {".json"}, "a half-written file was left"

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VM reads is what the control node decides on, nothing lost on the way, least of all a doubt."""

from __future__ import annotations

import importlib
import json
import multiprocessing
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
from tools.scripted_imds import ScriptedServer, document, instance, raw, status

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
        "vm": "module_utils._scheduled_events",
        "decisions": "plugin_utils._decisions",
        "policies": "plugin_utils._policies",
        "events": "module_utils.forewarn.events",
        "errors": "module_utils.forewarn.errors",
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
        "events": [collection.vm.describe_event(event, vm.name, _NOW) for event in document.events],
        "vm": asdict(vm),
        "problems": list(document.problems),
    }
    reading = collection.decisions.read(json.loads(json.dumps(result)))
    assert reading.document == replace(document, events=tuple(replace(event, extra={}) for event in document.events))
    assert reading.facts == collection.decision.Facts(now=_NOW, vm=vm)


def test_prepare_hooks_are_left_to_the_runner(collection: SimpleNamespace) -> None:
    """An approval after which nobody has drained would be the most common mistake over again."""
    event = collection.events.Event("a1", "Reboot", resources=("web_0",), event_status="Scheduled")
    plain = collection.decision.Decision(event, "approve", "web", "drain", "because")
    facts = collection.decision.Facts(now=_NOW, vm=collection.events.Vm(name="web_0"))
    assert collection.decisions.stand(plain, facts).send
    hooked = collection.decisions.stand(plain._replace(prepare=({"run": ["/bin/true"]},)), facts)
    assert (hooked.send, hooked.code) == (False, "needs-runner")
    assert hooked.reason == "rule drain has hooks to run before the approval, which only the runner on the VM does"
    started = plain._replace(event=replace(event, event_status="Started"), prepare=({"run": ["/bin/true"]},))
    assert collection.decisions.stand(started, facts).code == "started"


def test_the_summary_stays_one_short_line(collection: SimpleNamespace) -> None:
    events = [collection.events.Event(f"id{number}", "Freeze", event_status="Scheduled") for number in range(5)]
    decisions = [collection.decision.Decision(event, "hold", "web", "calm", "not now") for event in events]
    standings = [collection.approval.Standing("refused-by-policy", "not now")] * 5
    assert collection.decisions.summary(decisions, standings, [], False) == (
        "Freeze id0: hold by web, rule calm (not now); Freeze id1: hold by web, rule calm (not now); "
        "Freeze id2: hold by web, rule calm (not now); and 2 more"
    )
    assert collection.decisions.summary([], [], [], False) == "nothing is scheduled"


def test_the_summary_names_a_rule_once(collection: SimpleNamespace) -> None:
    """Without an explanation of its own a rule's reason begins with its name."""
    event = collection.events.Event(event_id="a", event_type="Freeze")
    reason = "rule brief applies: event.DurationInSeconds < 9"
    decision = collection.decision.Decision(event, "approve", "web", "brief", reason)
    its = collection.approval.Standing(collection.approval.SEND, reason)
    text = collection.decisions.summary([decision], [its], ["a"], False)
    assert text == f"Freeze a: approved by web ({reason})"


def test_ids_are_compared_in_either_case_and_sent_as_the_service_spells_them(collection: SimpleNamespace) -> None:
    """SE-11."""
    document = collection.events.Document(2, (collection.events.Event("AB"), collection.events.Event("cd")))
    events, unknown = collection.vm.select(document, ["CD", " ab ", "Ab", "ef"])
    assert [event.event_id for event in events] == ["cd", "AB"]
    assert unknown == ["ef"]


def test_doubts_of_an_event_approved_by_hand_are_named(collection: SimpleNamespace) -> None:
    event = collection.events.Event("a1", "Freeze", event_status="Completed", problems=("NotBefore is odd",))
    assert collection.vm.doubts(event) == ["NotBefore is odd", "EventStatus 'Completed' is not known"]
    assert collection.vm.doubts(collection.events.Event("a1", event_status="Scheduled")) == []


def test_an_approval_that_is_refused_may_have_arrived_at_an_earlier_sending(collection: SimpleNamespace) -> None:
    params = {name: option.get("default") for name, option in collection.vm.ARGUMENTS.items()}
    listed = document({"EventId": "a1", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"]})
    for before, known in (([raw(b"", "close")], False), ([], True)):
        with ScriptedServer(listed, instance("web_0"), *before, status(400)) as server:
            asked = {**params, "endpoint": server.url, "approve": ["a1"], "patience": 0}
            result = collection.vm.perform(asked, False, str)
        assert result["failed"]
        assert result["fault"]["status"] == 400
        assert ("not known whether the approval of a1 arrived" in result["msg"]) != known


@pytest.mark.parametrize(("seconds", "events", "warned"), [(95.0, 0, True), (95.0, 1, False), (0.2, 0, False)])
def test_a_slow_answer_without_events_is_not_the_last_word(
    collection: SimpleNamespace, seconds: float, events: int, warned: bool
) -> None:
    """SE-05: the request that switches the service on is answered late, and lists nothing yet."""
    times = iter([0.0, 0.0, *[seconds] * 10])
    warnings: list[str] = []
    params = {name: option.get("default") for name, option in collection.vm.ARGUMENTS.items()}
    listed = [{"EventId": "a1", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"]}] * events
    with ScriptedServer(document(*listed), instance("web_0")) as server:
        params["endpoint"] = server.url
        result = collection.vm.perform(params, False, warnings.append, monotonic=lambda: next(times))
    assert "failed" not in result
    assert len(warnings) == warned
    assert all("95 s" in text and "five minutes" in text for text in warnings)


@pytest.mark.parametrize(
    ("endpoint", "environ", "tag", "warned"),
    [
        (None, {}, "No Asset Tag", True),
        (None, {}, None, True),
        (None, {}, "7783-7084-3265-9085-8269-3286-77", False),
        (None, {"FOREWARN_PLATFORM": "azure"}, None, False),
        (None, {"FOREWARN_ENDPOINT": "http://127.0.0.1:9"}, None, False),
        ("http://127.0.0.1:9", {}, None, False),
    ],
)
def test_the_task_warns_where_the_vm_may_not_be_in_azure(
    collection: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    endpoint: str | None,
    environ: dict[str, str],
    tag: str | None,
    warned: bool,
) -> None:
    """It goes on all the same. The client is a stub: nobody is asked."""
    asked: list[str] = []

    def client(url: str, *_args: object, **_options: object) -> None:
        asked.append(url)
        raise collection.errors.InputError("nobody is asked")

    monkeypatch.setattr(collection.vm, "Client", client)
    monkeypatch.setattr(collection.vm.azure, "ASSET_TAG_PATH", str(tmp_path / "tag"))
    if tag is not None:
        (tmp_path / "tag").write_text(f"{tag}\n")
    warnings: list[str] = []
    params = {name: option.get("default") for name, option in collection.vm.ARGUMENTS.items()}
    result = collection.vm.perform({**params, "endpoint": endpoint}, False, warnings.append, environ)
    assert result["msg"] == "nobody is asked"
    assert asked == [endpoint or environ.get("FOREWARN_ENDPOINT") or "http://169.254.169.254"]
    assert len(warnings) == warned
    for text in warnings:
        assert "http://169.254.169.254 is asked all the same" in text
        assert "FOREWARN_PLATFORM=azure" in text


POLICY = "name: calm\ndescription: Holds.\nrule: {match: [{output: hold}]}\n"


@pytest.fixture
def compiled(collection: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file to which each compilation adds a character; Ansible's directories are below tmp_path."""
    compiler = importlib.import_module(f"{_COLLECTION}.module_utils.forewarn.compiler.policyfile")
    log = tmp_path / "log"
    log.touch()
    original = compiler.load_policies

    def counted(paths: list[Path], api_version: str) -> Any:
        with log.open("a") as file:
            file.write("x")
        return original(paths, api_version)

    monkeypatch.setattr(compiler, "load_policies", counted)
    (tmp_path / "run").mkdir()
    monkeypatch.setattr(collection.policies.C, "DEFAULT_LOCAL_TMP", str(tmp_path / "run"))
    monkeypatch.setattr(collection.policies.C, "ANSIBLE_HOME", str(tmp_path / "home"))
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "calm.yml").write_text(POLICY)
    return log


def test_policies_are_compiled_once_and_again_when_they_change(
    collection: SimpleNamespace, compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = tmp_path / "policies"
    first = collection.policies.compile_policies([policies], "2020-07-01")
    assert collection.policies.compile_policies([policies], "2020-07-01") == first
    (tmp_path / "run 2").mkdir()
    monkeypatch.setattr(collection.policies.C, "DEFAULT_LOCAL_TMP", str(tmp_path / "run 2"))
    assert collection.policies.compile_policies([policies], "2020-07-01") == first
    assert compiled.read_text() == "x"
    assert collection.policies.compile_policies([policies], "2019-08-01").api_version == "2019-08-01"
    assert compiled.read_text() == "xx"
    (policies / "calm.yml").write_text(POLICY.replace("hold", "deny").replace("deny", "hold") + "#\n")
    collection.policies.compile_policies([policies], "2020-07-01")
    (policies / "other.yml").write_text(POLICY.replace("calm", "other"))
    collection.policies.compile_policies([policies], "2020-07-01")
    assert compiled.read_text() == "xxxx"
    (kept,) = {path.parent for path in tmp_path.rglob("*.json")}
    assert kept == tmp_path / "home" / "forewarn"
    assert {path.suffix for path in kept.iterdir()} == {".json"}, "a half-written file was left"
    for path in kept.iterdir():
        path.write_text(path.read_text()[:-9])
    assert collection.policies.compile_policies([policies], "2019-08-01").api_version == "2019-08-01"
    assert compiled.read_text() == "xxxxx", "a damaged file counts as none"


def test_the_hosts_of_a_run_compile_once_in_all_and_a_refusal_is_remembered(
    collection: SimpleNamespace, compiled: Path, tmp_path: Path
) -> None:
    """Each host has a process of its own, and several start at once."""
    context = multiprocessing.get_context("fork")

    def ask() -> list[int | None]:
        def host() -> None:
            try:
                collection.policies.compile_policies([tmp_path / "policies"], "2020-07-01")
            except collection.policies.PoliciesRefusedError as error:
                sys.exit(3 if len(error.findings) == 2 and str(error).startswith("2 mistakes in the policies:") else 4)

        processes = [context.Process(target=host) for _ in range(6)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        return [process.exitcode for process in processes]

    assert ask() == [0] * 6
    assert compiled.read_text() == "x"
    (tmp_path / "policies" / "calm.yml").write_text(POLICY.replace("hold", "wait").replace("name: calm", "name: 7"))
    assert ask() == [3] * 6
    assert compiled.read_text() == "xx"


def test_a_directory_that_others_write_to_keeps_no_policy(
    collection: SimpleNamespace, compiled: Path, tmp_path: Path
) -> None:
    """What lies there is approved by."""
    (tmp_path / "home" / "forewarn").mkdir(parents=True)
    (tmp_path / "home" / "forewarn").chmod(0o777)
    for _ in range(2):
        collection.policies.compile_policies([tmp_path / "policies"], "2020-07-01")
    assert compiled.read_text() == "x"
    assert list((tmp_path / "home" / "forewarn").iterdir()) == []


def test_nothing_is_not_what_is_ahead_where_the_document_cannot_be_read(collection: SimpleNamespace) -> None:
    params = {name: option.get("default") for name, option in collection.vm.ARGUMENTS.items()}
    event = {"EventId": "a1", "EventType": "Freeze", "EventStatus": "Started", "Resources": ["web_0"]}
    problem = "the document cannot be read in full: Events[0] has no usable EventId: skipped"
    for listed, ahead, msg in (
        ([{}], "unknown: the document cannot be read in full", f"nothing is scheduled that can be read; {problem}"),
        ([{}, event], "Freeze under way, here; and what cannot be read", f"1 event: Freeze Started a1; {problem}"),
    ):
        with ScriptedServer(document(*listed), instance("web_0")) as server:
            result = collection.vm.perform({**params, "endpoint": server.url}, False, str)
        assert (result["ahead"], result["msg"]) == (ahead, msg)
    assert collection.decisions.summary([], [], [], False, ["x"]) == (
        "nothing is scheduled that can be read; the document cannot be read in full: x"
    )


def test_a_glance_tells_what_is_ahead_where_and_what_comes_of_it(collection: SimpleNamespace) -> None:
    document = {
        "DocumentIncarnation": 2,
        "Events": [
            {"EventId": "a", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"],
             "NotBefore": "2026-01-31T15:18:05Z"},
            {"EventId": "b", "EventType": "Reboot", "EventStatus": "Started", "Resources": ["web_1"], "NotBefore": ""},
            {"EventId": "c", "EventType": "Redeploy", "EventStatus": "Scheduled", "Resources": ["web_0"],
             "NotBefore": "2026-01-31T15:04:34Z"},
            {"EventId": "d", "EventType": "Terminate", "EventStatus": "Scheduled", "Resources": ["web_0"],
             "NotBefore": "2026-01-31T15:00:00Z"},
        ],
    }  # fmt: skip
    events = collection.events.parse_document(json.dumps(document)).events
    shown = [collection.vm.describe_event(event, "web_0", _NOW) for event in events]
    assert collection.vm.ahead(shown) == (
        "Freeze in 14 min, here; Reboot under way, elsewhere; Redeploy in 29 s, here; and 1 more"
    )
    assert collection.vm.ahead(shown[3:], ["hold"]) == "Terminate any moment, here: hold"
    unnamed = collection.vm.describe_event(events[0], None, _NOW)
    assert collection.vm.ahead([unnamed], ["approve, not-ours"]) == "Freeze in 14 min, here?: approve, not-ours"
    assert collection.vm.ahead([]) == "nothing"
    assert min("ahead", "ansible_facts", "api_version", "approved", "changed") == "ahead", "the key is printed first"

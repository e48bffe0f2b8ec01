# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenario files: what they say happens, and every mistake is shown with its place."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from forewarn.emulator.clock import ManualClock
from forewarn.emulator.emulation import Emulation
from forewarn.emulator.faults import InjectedFault
from forewarn.emulator.model import Model
from forewarn.emulator.scenario import ScenarioError, load_scenario, parse_scenario
from forewarn.emulator.spec import VmSpec, parse_duration
from forewarn.errors import InputError
from hypothesis import given
from hypothesis import strategies as st


def flaws(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(dedent(text), "s.yml")
    return caught.value.message.splitlines()


def play(text: str) -> tuple[Emulation, ManualClock]:
    clock = ManualClock()
    return Emulation(parse_scenario(dedent(text)), clock), clock


def test_the_samples_in_the_documentation_load(repository: Path) -> None:
    samples = sorted((repository / "docs" / "scenarios").glob("*.yml"))
    assert len(samples) >= 4
    for sample in samples:
        scenario = load_scenario(sample)
        assert scenario.timeline
        clock = ManualClock()
        emulation = Emulation(scenario, clock)
        emulation.model.request()
        clock.advance(86400)
        emulation.model.settle()
        assert "failed" not in {entry.kind for entry in emulation.model.transitions}, sample


def test_the_example_in_the_documentation_loads(repository: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (repository / "docs" / "emulator.md").read_text(), re.DOTALL)
    assert [step.action for step in parse_scenario(example).timeline] == ["schedule", "fault", "cancel"]


def test_an_empty_file_is_the_plain_emulation() -> None:
    scenario = parse_scenario("")
    assert [vm.name for vm in scenario.vms] == ["vm_0"]
    assert scenario.timeline == ()


def test_steps_run_in_time_order() -> None:
    emulation, clock = play("""
        timeline:
          - at: 2m
            cancel: x
          - at: 1m
            schedule: {name: x, type: Reboot, notice: 1h}
          - at: 90s
            fault: {kind: status, status: 503, for: 10s}
          - at: 95s
            clear_faults: true
        """)
    model = emulation.model
    model.request()
    clock.advance(59)
    assert model.document()[1] == ()
    clock.advance(1)
    assert [event.status for event in model.document()[1]] == ["Scheduled"]
    clock.advance(30)
    model.settle()
    (fault,) = emulation.faults.present(model.time)
    assert (fault.status, fault.until) == (503, 100.0)
    clock.advance(5)
    model.settle()
    assert emulation.faults.present(model.time) == ()
    clock.advance(25)
    assert model.document() == (3, ())


def test_fault_duration_counts_from_its_step() -> None:
    """Its time runs from its step, not from the first request."""
    emulation, clock = play("timeline: [{at: 10s, fault: {kind: status, for: 10s}}]")
    clock.advance(25)
    emulation.model.settle()
    assert emulation.faults.present(clock.now()) == ()


def test_reset_starts_the_scenario_again() -> None:
    emulation, clock = play("timeline: [{at: 10s, schedule: {type: Reboot}}]")
    clock.advance(12)
    emulation.model.settle()
    emulation.faults.add(InjectedFault("drop"))
    emulation.reset()
    emulation.model.request()
    assert emulation.model.document() == (1, ())
    assert emulation.faults.present(clock.now()) == ()
    clock.advance(10)
    assert len(emulation.model.document()[1]) == 1


def test_settings_and_vms() -> None:
    scenario = parse_scenario(
        dedent("""
        name: all
        vms:
          - {name: a, group: g, alone: false, location: x, zone: "1", size: s, scale_set: t, fault_domain: 2,
             cloud_service: true, tags: {k: v}}
        settings:
          first_response: 2m
          first_events: 5m
          switch_off: null
          start_delay: 1s
          gone_after: 1h30m
          notice: {Reboot: 1d}
          incarnation_step: 3
          not_before_format: iso8601
          unknown_version_status: 404
          etag: false
          requests_per_second: 0
        """)
    )
    settings = scenario.settings
    assert (settings.first_response, settings.first_events, settings.switch_off) == (120.0, 300.0, None)
    assert (settings.gone_after, settings.notice) == (5400.0, {"Reboot": 86400.0})
    assert (scenario.vms[0].fault_domain, scenario.vms[0].tags) == ("2", {"k": "v"})
    assert (scenario.vms[0].alone, scenario.vms[0].cloud_service) == (False, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vms:\n  - {name: a, gruop: b}", "s.yml:2:15: there is no key 'gruop' here: did you mean 'group'?"),
        ("colour: red", "s.yml:1:1: there is no key 'colour' here: known are description, name, settings, "),
        ("vms: []", "s.yml:1:1: [] should be non-empty."),
        ("vms:\n  - name: a b", "s.yml:2:5: 'a b' does not match"),
        ("vms:\n- name: a\n- name: A", "s.yml:1:1: the VMs must have different names"),
        ("settings:\n  start_delay: soon", "s.yml:2:3: 'soon' is not a duration: write it like"),
        ("timeline:\n  - at: 5m\n", "s.yml:2:5: the step does nothing: add one of cancel, "),
        ("timeline:\n  - cancel: x\n", "s.yml:2:5: 'at' is a required property."),
        (
            "timeline:\n  - at: 1s\n    cancel: x\n    start: x",
            "s.yml:2:5: a step does one thing: write a step for each.",
        ),
        ("timeline:\n  - at: 1s\n    cancel: x", "s.yml:3:5: there is no event 'x'."),
        ("timeline:\n  - {at: 1s, fault: {kind: drop, vms: [nobody]}}", "s.yml:2:14: there is no VM 'nobody'."),
        ("timeline:\n  - {at: 1s, fault: {kind: latency}}", "s.yml:2:14: the fault latency needs a latency."),
        ("timeline:\n  - {at: 1s, schedule: {type: Reboot, event_id: x}}", "s.yml:2:14: the EventId x is not a GUID"),
        ("timeline:\n  - {at: .nan, schedule: {type: Reboot}}", "s.yml:2:10: .nan is not a finite number."),
        ("timeline:\n  - {at: 99999d, schedule: {type: Reboot}}", "s.yml:2:6: the at '99999d' is not a duration."),
        ("settings:\n  start_delay: 99999d", "s.yml:1:1: the start_delay '99999d' is not a duration."),
        ("timeline:\n  - {at: 1s, schedule: {type: R, notice: 99999d}}", "s.yml:2:14: the notice '99999d' is not"),
        ("a: 1\na: 2", "s.yml:2:1: the key 'a' is there twice."),
        ("timeline:\n  - on: 5", "s.yml:2:5: the key 'on' is not a text: put it in quotes."),
        ("name: 2024-99-99", "s.yml:1:7: '2024-99-99' cannot be read:"),
        ("a: &x [*x]", "s.yml:1:4: an alias refers to a value that contains it."),
        ("name: {", "s.yml:1:8: not YAML:"),
        ("a: !!python/name:os.system ''", "s.yml:1:4: not YAML:"),
        ("just text", "s.yml:1:1: 'just text' is not of type 'object'."),
    ],
)
def test_mistakes_are_shown_with_their_place(text: str, expected: str) -> None:
    found = flaws(text)
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_all_mistakes_are_shown_at_once() -> None:
    found = flaws("""
        vms: [{name: a}, {name: b, alone: true}]
        timeline:
          - {at: 2s, cancel: later}
          - {at: 3s, schedule: {name: later, type: Reboot, resources: [a, b]}}
          - {at: 4s, schedule: {type: Terminate, resources: [nobody]}}
        """)
    assert [line.split(":")[1] for line in found] == ["4", "5", "6"]


def test_fault_domain_events_can_be_named() -> None:
    parse_scenario(
        dedent("""
        vms: [{name: a, fault_domain: 0}, {name: b, fault_domain: 1}]
        timeline:
          - {at: 1s, fault_domains: {pause: 1m, event: {name: roll, type: Reboot, resources: [a, b]}}}
          - {at: 1h, cancel: roll-2}
        """)
    )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_scenario(tmp_path / "none.yml")
    (tmp_path / "latin.yml").write_bytes(b"name: \xe9")
    with pytest.raises(InputError, match="UTF-8"):
        load_scenario(tmp_path / "latin.yml")


def test_aliases_of_aliases_do_not_fill_the_memory() -> None:
    lists = ["- &l0 [x]", *(f"- &l{number} [{', '.join([f'*l{number - 1}'] * 10)}]" for number in range(1, 30))]
    (flaw,) = flaws("\n".join(lists))
    assert flaw.endswith("the file has more than 50000 values, aliases counted in full.")


@pytest.mark.parametrize(("module", "package"), [("yaml", "PyYAML"), ("jsonschema", "jsonschema")])
def test_a_missing_library_is_reported(module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=f"need the Python package {package}, which is not installed"):
        parse_scenario("name: x")


@pytest.mark.parametrize("name", ["", "a/b", "a b", "a\n", "x" * 81])
def test_what_is_no_name_of_a_vm(name: str) -> None:
    with pytest.raises(InputError, match="is not the name of a VM"):
        Model(ManualClock(), [VmSpec(name)])


@given(st.text(st.sampled_from("abet:-{}[]&*!|>'\"#%@,0.\n \t\x00ü"), max_size=40))
def test_any_text_loads_or_has_a_located_error(text: str) -> None:
    with contextlib.suppress(ScenarioError):
        parse_scenario(text, "s.yml")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15m", 900),
        ("1h30m", 5400),
        ("7d", 604800),
        ("2.5s", 2.5),
        ("1d2h3m4s", 93784),
        ("0s", 0),
        (90, 90),
        (0.5, 0.5),
    ],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "m", "5", "-5s", "5 m", "1m1h", "5x", "9" * 400 + "d", -1, True, None, float("nan"), 10**400, "٣s"]
)
def test_what_is_not_a_duration(text: object) -> None:
    with pytest.raises(InputError):
        parse_duration(text)

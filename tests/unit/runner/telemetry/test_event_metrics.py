# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the metrics say of open events and of the VM, as the runner's cycle sets them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.policies import load_policies
from forewarn.events import Vm
from forewarn.policy.engine import PolicySet
from forewarn.runner.clocks import Stamp
from forewarn.runner.event_record import EventRecord
from forewarn.runner.telemetry.event_metrics import MOST_RESOURCES, set_event_metrics
from forewarn.runner.telemetry.metrics import Metrics
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.events import NOW, event
from tools.fixtures.loop_bench import Bench, http_fault, listing
from tools.judges.exposition import parse


def series(metrics: Metrics, name: str) -> list[tuple[dict[str, str], float]]:
    """Return labels and values of a gauge."""
    family = parse(metrics.render()).get(name)
    return [] if family is None else [(sample.labels, sample.value) for sample in family.samples]


def labels(metrics: Metrics, name: str) -> list[dict[str, str]]:
    return [found for found, _value in series(metrics, name)]


def test_open_event_is_in_metrics_with_its_decision(bench: Bench) -> None:
    its = event(event_type="Freeze", not_before=NOW + timedelta(seconds=900))
    bench.document = listing(its)
    bench.run(40)
    (info,) = labels(bench.metrics, "forewarn_event_info")
    expected = {
        "event_id": "A",
        "type": "Freeze",
        "status": "Scheduled",
        "source": "Platform",
        "state": "approved",
        "affected": "true",
        "output": "approve",
        "policy": "web-tier",
        "rule": "brief",
        "drill": "false",
    }
    assert info.items() >= expected.items()
    times = {found["step"]: value for found, value in series(bench.metrics, "forewarn_event_timestamp_seconds")}
    assert times.keys() == {"not-before", "first-seen", "approved"}
    assert times["not-before"] == (NOW + timedelta(seconds=900)).timestamp()
    assert 0 <= times["approved"] - times["first-seen"] < 40
    named = labels(bench.metrics, "forewarn_event_resource_info")
    assert [found["vm"] for found in named] == list(its.resources)
    assert labels(bench.metrics, "forewarn_vm_info") == [{"name": "web_0"}]


def test_event_leaves_metrics_with_its_record(bench: Bench) -> None:
    bench.document = listing(event())
    bench.then(20.5, document=listing(incarnation=3))
    bench.run(60)
    assert series(bench.metrics, "forewarn_events") == []
    for name in ("info", "timestamp_seconds", "resource_info", "notice_seconds"):
        assert series(bench.metrics, f"forewarn_event_{name}") == [], name


def test_unknown_vm_has_no_name(bench: Bench) -> None:
    bench.instance_answer = Vm()
    bench.run(20)
    assert series(bench.metrics, "forewarn_vm_info") == []


@pytest.mark.parametrize(("seconds", "up"), [(9, 1.0), (20, 0.0), (40, 1.0)])
def test_service_is_down_while_its_last_poll_failed(bench: Bench, seconds: float, up: float) -> None:
    bench.then(10.5, fault=http_fault(503))
    bench.then(25.5, fault=None)
    bench.run(seconds)
    assert series(bench.metrics, "forewarn_service_up") == [({}, up)]


@pytest.mark.parametrize("vm", ["VM-30", "vm-3", None])
def test_metrics_name_at_most_20_vms(vm: str | None) -> None:
    """This VM is among them, wherever it is in Resources."""
    metrics = Metrics()
    its = event()._replace(resources=tuple(f"vm-{number}" for number in range(40)))
    set_event_metrics(metrics, [EventRecord(1, its, Stamp(0.0, 0.0, ""))], vm, ManualClocks())
    named = [found["vm"] for found in labels(metrics, "forewarn_event_resource_info")]
    assert len(set(named)) == len(named) == MOST_RESOURCES == 20
    assert vm is None or vm.lower() in named


def test_two_records_of_an_event_are_one_series() -> None:
    """Otherwise a query could not join by the event's id."""
    metrics = Metrics()
    records = [EventRecord(number, event(), Stamp(float(number), 0.0, "")) for number in (1, 2)]
    records[0].state = "recovering"
    set_event_metrics(metrics, records, "web_0", ManualClocks())
    assert [found["state"] for found in labels(metrics, "forewarn_event_info")] == ["seen"]
    assert [found["state"] for found in labels(metrics, "forewarn_events")] == ["recovering", "seen"]


POLICY = """
name: drains
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot"
      output: approve
      prepare: [{run: [/bin/true]}, {http: "https://hooks.example.com/x"}]
"""


def test_hooks_of_policies_begin_at_zero(bench: Bench, tmp_path: Path) -> None:
    """To Prometheus, a counter that appears with the value 1 has not increased."""
    (tmp_path / "drains.yml").write_text(POLICY)
    policies: Any = PolicySet(load_policies([tmp_path / "drains.yml"], "2020-07-01"))
    runner = bench.make()
    runner.health.record_policies(policies)
    metrics = runner.recorder.metrics
    found = labels(metrics, "forewarn_hooks_total")
    assert {(its["phase"], its["kind"], its["result"], its["drill"]) for its in found} == {
        (phase, kind, result, "false")
        for phase in ("prepare", "recover", "notify")
        for kind in ("run", "http")
        for result in ("failed", "timed-out", "not-started")
    }
    assert (
        labels(metrics, "forewarn_artifact_info")[0].items()
        >= {"policies": "drains", "ref": "", "modified": "false"}.items()
    )

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules, dashboards and ``forewarn fleet status`` with real Prometheus, which scrapes what a fleet would expose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY
from tools.servers.prometheus_server import PrometheusServer, prometheus_server
from tools.sites.commands import in_process
from tools.worlds.monitored_fleet import SERIALS, exposition_server, monitored_fleet, pages

OBSERVABILITY = REPOSITORY / "docs" / "observability"
FLEET = monitored_fleet(50)
VARIABLES = {"$job": ".*", "$instance": ".*", "$__rate_interval": "5s", "$__range": "1m"}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """Yield a server that has scraped all VMs, of which one has fallen silent, and has recorded that."""
    texts = FLEET.texts()
    directory = tmp_path_factory.mktemp("prometheus")
    rules = [OBSERVABILITY / "rules.yml", OBSERVABILITY / "alerts.yml"]
    with (
        exposition_server(pages(texts, 2)) as served,
        prometheus_server(directory, [served.job()], rules) as server,
    ):
        server.wait_for("count(forewarn_build_info) == 50")
        served.pages[:] = pages({**texts, **dict.fromkeys(FLEET.silent, "")}, 2)
        server.wait_for("sum(job:forewarn_silent:count) == 1")
        server.wait_for("sum(job_version:forewarn_build_info:count) == 49")
        server.wait_for("instance:forewarn_policy_serial:outdated")
        yield server


def test_rules_say_who_is_disturbed_outdated_and_silent(prometheus: PrometheusServer) -> None:
    def instances(expression: str) -> set[str]:
        return {labels["instance"] for labels, _value in prometheus.query(expression)}

    assert instances("instance:forewarn_event_timestamp_seconds:min") == {*FLEET.affected}
    assert instances("instance:forewarn_policy_serial:outdated") == {*FLEET.outdated}
    assert instances("instance:forewarn_silent:group") == {*FLEET.silent}
    serials = {labels["serial"]: value for labels, value in prometheus.query("job_serial:forewarn_policy_serial:count")}
    assert serials == {str(SERIALS[0]): 1, str(SERIALS[1]): 48}
    decided = prometheus.query("job_policy_rule_output:forewarn_event_info:count")
    assert sorted((labels["rule"], labels["output"], value) for labels, value in decided) == [
        ("drain", "approve", 1),
        ("rest", "hold", 1),
    ]
    trouble = {labels["trouble"]: value for labels, value in prometheus.query("job:forewarn_trouble:count")}
    assert trouble == {"service": 1}


@pytest.mark.parametrize("file", ["grafana-fleet-dashboard.json", "grafana-dashboard.json"])
def test_every_panel_can_be_evaluated_for_all_vms(prometheus: PrometheusServer, file: str) -> None:
    """Joins of series that are not unique would fail only here."""
    shown = {}
    for panel in json.loads((OBSERVABILITY / file).read_text())["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            shown[panel["title"]] = prometheus.query(expression)
    if "Who is about to be disturbed" in shown:
        rows = shown["Who is about to be disturbed"]
        assert {(labels["instance"], labels["event_id"], labels["output"]) for labels, _left in rows} == {
            (FLEET.affected[0], f"{FLEET.affected[0]}-event", "approve"),
            (FLEET.affected[1], f"{FLEET.affected[1]}-event", "hold"),
        }
        assert all(0 < left <= 900 for _labels, left in rows)


def test_fleet_status_sums_up_the_same_vms(prometheus: PrometheusServer, tmp_path: Path) -> None:
    page = tmp_path / "fleet.html"
    done = in_process("fleet", "status", "--url", prometheus.url, "--json", "--output", page)
    assert (done.returncode, done.stderr) == (1, "")
    content = json.loads(done.stdout)
    assert content["summary"] == "50 hosts, 2 with trouble; 2 events pending for 2 VMs"
    assert {*content["with_trouble"]} == {*FLEET.silent, *FLEET.troubled}
    assert content["reports"][FLEET.silent[0]]["problems"] == ["silent: Prometheus has no fresh metrics of it"]
    serials = [report["runner"].get("serial") for report in content["reports"].values()]
    assert sorted(serial for serial in serials if serial) == sorted([SERIALS[0], *[SERIALS[1]] * 48])
    assert page.read_text().count("<article") == 2


def test_vms_with_one_instance_are_an_error(tmp_path: Path) -> None:
    """As if an agent on each VM sent the address of loopback."""
    texts = {
        name: text.replace(f'instance="{name}"', 'instance="127.0.0.1:9750"') for name, text in FLEET.texts().items()
    }
    two = [text.encode() for text in list(texts.values())[20:22]]
    with exposition_server(two) as served, prometheus_server(tmp_path, [served.job()]) as server:
        server.wait_for("forewarn_vm_info", 2)
        done = in_process("fleet", "status", "--url", server.url)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'127.0.0.1' for 2 VMs: vm-00020, vm-00021" in done.stderr

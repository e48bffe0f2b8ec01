# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recipes of hooks: their policies, and their scripts against stand-ins for programs, in both phases and twice."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path

import pytest
import yaml
from tools.docs.recipes import EVENT, Script, files
from tools.sites.commands import in_process, run_program
from tools.sites.requirements import lacking

pytestmark = pytest.mark.in_turn(2)

RECIPES = Path(__file__).parents[3] / "docs" / "hooks" / "recipes"
PAGES = sorted(set(RECIPES.glob("*.md")) - {RECIPES / "README.md"})
PARTS = ["Rights and rollout", "To see that it worked", "What can go wrong"]


def test_the_list_names_every_recipe() -> None:
    names = re.findall(r"^\| \[[^]]+\]\(([\w-]+\.md)\)", (RECIPES / "README.md").read_text(), re.MULTILINE)
    assert sorted(names) == [page.name for page in PAGES]
    assert len(names) == 11


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_page_has_its_trial_and_every_part(page: Path) -> None:
    text = page.read_text()
    assert re.match(r"<!-- .* -->\n# .+\n\n\*\*(Not tried|Tried)\*\* ", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS
    assert "](https://" in text, "a page cites the vendor's documentation"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_policy_has_no_finding_and_names_its_script(page: Path, tmp_path: Path) -> None:
    (policy,) = [(name, text) for name, text in files(page).items() if name.startswith("policies/")]
    (script,) = [name for name in files(page) if name.startswith("hooks/")]
    path = tmp_path / Path(policy[0]).name
    path.write_text(policy[1])
    windows = script.endswith(".cmd")
    target = ["--target", "windows" if windows else "linux"]
    for command in (["check", *target], ["verify", "--strict"]):
        done = in_process("policy", *command, path)
        assert done.returncode == 0, done.stdout + done.stderr
    (rule,) = [rule for rule in yaml.safe_load(policy[1])["rule"]["match"] if "prepare" in rule]
    for phase in ("prepare", "recover"):
        programs = [hook["run"][0] for hook in rule[phase] if "run" in hook]
        installed = rf"C:\Program Files\Forewarn\hooks\{Path(script).name}" if windows else f"/opt/forewarn/{script}"
        assert programs == [installed]
        assert all("timeout" in next(iter(hook.values())) or "timeout" in hook for hook in rule[phase])
    assert f"forewarn_policies: [{policy[0]}]\nforewarn_hooks: [{script}]\n" in page.read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_a_script_has_no_finding(page: Path, tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    if not all((programs / name).exists() for name in ("ruff", "shellcheck")):
        lacking("programs", "the static checks are not installed: make venv")
    for name, text in files(page).items():
        path = tmp_path / Path(name).name
        path.write_text(text)
        if text.startswith("#!/bin/sh\n"):
            done = run_program(programs / "shellcheck", path)
        elif text.startswith("#!"):
            assert text.startswith("#!/usr/bin/env python3\n")
            done = run_program(sys.executable, "-m", "ruff", "check", "--isolated", "--ignore=EXE", path)
            compile(text, name, "exec", dont_inherit=True)
        elif name.endswith(".cmd"):
            assert_labels_are_known(text)
            continue
        elif name.endswith(".yml"):
            assert yaml.safe_load(text)
            continue
        else:
            assert name.endswith(".sql")
            continue
        assert done.returncode == 0, done.stdout + done.stderr


def assert_labels_are_known(script: str) -> None:
    """Each label of a script for cmd.exe is there once. Nothing depends on a code page."""
    labels = re.findall(r"^:(\w+)$", script, re.MULTILINE)
    jumps = set(re.findall(r"(?:goto |call :)(\w+)", script))
    assert script.isascii()
    assert len(labels) == len(set(labels))
    assert jumps <= {*labels}


@pytest.fixture
def kubernetes(tmp_path: Path) -> Script:
    script = Script(RECIPES / "kubernetes.md", tmp_path, "/etc/kubeconfig")
    script.stand_in("kubectl", cordoned=False, annotation="", ready=["True"], stuck=False, pods=3)
    return script


def test_kubernetes_drains_and_uncordons_a_node(kubernetes: Script) -> None:
    for _time in range(2):
        kubernetes.does("prepare")
    assert kubernetes.state["cordoned"]
    assert kubernetes.state["annotation"] == EVENT
    assert kubernetes.state["pods"] == 0
    assert kubernetes.calls("drain", socket.gethostname().lower(), "--timeout=25s") == 2
    kubernetes.does("recover", others=1)
    assert kubernetes.state["cordoned"]
    kubernetes.change(ready=["Unknown", "True"])
    for _time in range(2):
        kubernetes.does("recover")
    assert not kubernetes.state["cordoned"]
    assert kubernetes.state["annotation"] == ""
    assert kubernetes.calls("uncordon") == 1


def test_kubernetes_leaves_a_node_cordoned_that_was_before(kubernetes: Script) -> None:
    kubernetes.change(cordoned=True)
    for phase in ("prepare", "prepare", "recover", "recover"):
        assert "stays so" in kubernetes.does(phase)
    assert kubernetes.state["cordoned"]
    assert kubernetes.state["pods"] == 0


def test_kubernetes_says_why_it_fails_and_is_undone(kubernetes: Script) -> None:
    kubernetes.change(stuck=True)
    assert "disruption budget" in kubernetes.fails("prepare")
    kubernetes.change(ready=["False"])
    assert "is not Ready" in kubernetes.fails("recover", seconds=6)
    kubernetes.change(ready=["True"])
    kubernetes.does("recover")
    assert not kubernetes.state["cordoned"]


@pytest.fixture
def nomad(tmp_path: Path) -> Script:
    token = tmp_path / "token"
    script = Script(RECIPES / "nomad.md", tmp_path, changed={"/run/credentials/forewarn.service/nomad": str(token)})
    node = {"Drain": False, "SchedulingEligibility": "eligible", "LastDrain": None, "Status": "ready"}
    script.stand_in("nomad", node=node, drains=True, ends="complete")
    return script


def test_nomad_drains_a_client_and_restores_eligibility(nomad: Script) -> None:
    for _time in range(2):
        nomad.does("prepare", seconds=60)
    assert nomad.calls("drain", "-enable", "-self", "30s") == nomad.calls("drain") == 1
    assert nomad.state["node"]["SchedulingEligibility"] == "ineligible"
    for _time in range(2):
        nomad.does("recover")
    assert nomad.state["node"]["SchedulingEligibility"] == "eligible"
    assert nomad.calls("eligibility") == 1


def test_nomad_ends_a_drain_that_goes_on(nomad: Script) -> None:
    nomad.change(drains=False)
    assert "waited in vain" in nomad.fails("prepare", seconds=6)
    nomad.does("recover")
    assert nomad.state["node"]["SchedulingEligibility"] == "eligible"
    assert nomad.calls("drain", "-disable") == 1


def test_nomad_leaves_a_client_ineligible_that_was_before(nomad: Script) -> None:
    nomad.change(node={**nomad.state["node"], "SchedulingEligibility": "ineligible"})
    for phase in ("prepare", "prepare", "recover", "recover"):
        nomad.does(phase)
    assert nomad.calls("drain", "-enable") == 1, "its allocations leave all the same"
    assert nomad.state["node"]["SchedulingEligibility"] == "ineligible"


@pytest.mark.parametrize("last", [EVENT, "other"])
def test_nomad_restores_eligibility_after_the_last_event(nomad: Script, last: str) -> None:
    (first,) = {EVENT, "other"} - {last}
    nomad.does("prepare")
    nomad.does("prepare", event="other", others=1)
    nomad.does("recover", event=first, others=1)
    assert nomad.state["node"]["SchedulingEligibility"] == "ineligible"
    nomad.does("recover", event=last)
    assert nomad.state["node"]["SchedulingEligibility"] == "eligible"


def test_nomad_notices_a_drain_that_somebody_ended(nomad: Script) -> None:
    nomad.change(ends="canceled")
    assert nomad.fails("prepare") == "somebody ended the drain: its status is canceled"


def line(topic: str, replicas: str, in_sync: str) -> str:
    return f"\tTopic: {topic}\tPartition: 0\tLeader: 1\tReplicas: {replicas}\tIsr: {in_sync}\tElr: \tLastKnownElr: "


@pytest.fixture
def kafka(tmp_path: Path) -> Script:
    settings, client = tmp_path / "server.properties", tmp_path / "client.properties"
    settings.write_text("process.roles=broker\nnode.id=2\n")
    changed = {
        "/opt/kafka/bin": str(tmp_path / "programs"),
        "/opt/kafka/config/server.properties": str(settings),
        "/etc/forewarn-kafka.properties": str(client),
        "sleep 2": "sleep 0.1",
    }
    script = Script(RECIPES / "kafka.md", tmp_path, "kafka.example.com:9092", changed=changed)
    options: dict[str, list[list[str]]] = {
        f"--{name}-partitions": [[]] for name in ("at-min-isr", "under-min-isr", "under-replicated")
    }
    script.stand_in("kafka-topics.sh", "kafka-leader-election.sh", "systemctl", active=True, **options)
    return script


def test_kafka_prepare_waits_for_independent_partitions(kafka: Script) -> None:
    other, ours = line("a", "1,3,12", "1,3"), line("b", "1,2,3", "2,1")
    kafka.change(**{"--at-min-isr-partitions": [[other, ours], [other]]})
    kafka.does("prepare")
    assert kafka.calls("--at-min-isr-partitions", "kafka.example.com:9092") == 2
    kafka.does("prepare")
    kafka.change(**{"--under-min-isr-partitions": [[ours]]})
    assert kafka.fails("prepare", seconds=6).strip() == "without broker 2 these have too few replicas: b-0"


def test_kafka_recover_waits_for_sync_and_leadership(kafka: Script) -> None:
    kafka.change(**{"--under-replicated-partitions": [[line("b", "1,2,3", "1,3")], [line("b", "1,2,3", "2,1")]]})
    for _time in range(2):
        kafka.does("recover")
    assert kafka.calls("kafka-leader-election.sh", "preferred") == 2
    kafka.change(**{"--under-replicated-partitions": [[line("b", "1,2,3", "1,3")]]})
    assert kafka.fails("recover", seconds=6).strip() == "broker 2 is not in sync: b-0"


def test_kafka_stopped_broker_gets_no_requests(kafka: Script) -> None:
    kafka.change(active=False)
    kafka.does("prepare")
    assert "is not running" in kafka.does("recover")
    assert kafka.calls("kafka-topics.sh") == kafka.calls("kafka-leader-election.sh") == 0


@pytest.fixture
def sql_server(tmp_path: Path) -> Script:
    (tmp_path / "password").write_text("secret\n")
    changed = {"/run/credentials/forewarn.service/sql-server": str(tmp_path / "password"), "sleep 2": "sleep 0.1"}
    script = Script(RECIPES / "sql-server.md", tmp_path, "ag1", changed=changed)
    script.stand_in("sqlcmd", role_desc=["PRIMARY"], synchronization_health_desc=["HEALTHY"], **{"COUNT(": [1]})
    return script


def test_sql_server_prepare_waits_for_a_ready_secondary(sql_server: Script) -> None:
    sql_server.change(**{"COUNT(": [0, 0, 1]})
    for _time in range(2):
        sql_server.does("prepare")
    sql_server.change(**{"COUNT(": [0]})
    assert "no synchronous secondary of ag1" in sql_server.fails("prepare", seconds=6)
    sql_server.change(role_desc=["SECONDARY"])
    sql_server.does("prepare")
    sql_server.change(role_desc=["RESOLVING"])
    assert sql_server.fails("prepare", seconds=6) == "this replica of ag1 is RESOLVING"


def test_sql_server_recover_waits_for_a_healthy_replica(sql_server: Script) -> None:
    sql_server.change(synchronization_health_desc=[None, "NOT_HEALTHY", "HEALTHY"], role_desc=[None, "PRIMARY"])
    sql_server.does("recover")
    sql_server.does("prepare")
    sql_server.change(synchronization_health_desc=["NOT_HEALTHY"], role_desc=[None])
    assert sql_server.fails("recover", seconds=6) == "this replica of ag1 is not healthy: NOT_HEALTHY"
    assert "Login timeout expired" in sql_server.fails("prepare", seconds=6)


def test_sql_server_takes_no_statement_for_a_name(sql_server: Script) -> None:
    sql_server.arguments = ("ag'; DROP LOGIN sa --",)
    assert "no name of an availability group" in sql_server.fails("prepare")
    assert sql_server.calls("sqlcmd") == 0

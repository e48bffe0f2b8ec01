# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recipes of hooks whose scripts call HTTP services, against stand-ins, in both phases and twice."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.docs.recipes import EVENT, Script
from tools.servers.recipe_servers import EXCLUDE, Elasticsearch, GitHub, ResourceManager, served

RECIPES = Path(__file__).parents[3] / "docs" / "hooks" / "recipes"
HOST = socket.gethostname()
MARK = f"cluster.metadata.forewarn.{HOST}"
FAST = {"time.sleep(5)": "time.sleep(0.1)", "IDLE_SECONDS = 5 ": "IDLE_SECONDS = 0.1 "}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Elasticsearch, Script]]:
    (tmp_path / "key").write_text("a2V5\n")
    service = Elasticsearch(HOST)
    changed = {"/run/credentials/forewarn.service/elasticsearch": str(tmp_path / "key"), "sleep(1)": "sleep(0.1)"}
    with served(service) as url:
        yield service, Script(RECIPES / "elasticsearch.md", tmp_path, url, changed=changed)


def test_elasticsearch_excludes_a_node_during_the_event(cluster: tuple[Elasticsearch, Script]) -> None:
    service, script = cluster
    service.persistent = {EXCLUDE: "es-5"}
    for _time in range(2):
        script.does("prepare")
    assert service.persistent == {EXCLUDE: f"es-5,{HOST}", MARK: EVENT}
    assert service.shards == 0
    assert len(service.writes()) == 1
    script.does("recover", others=1)
    assert len(service.writes()) == 1
    for _time in range(2):
        script.does("recover")
    assert service.persistent == {EXCLUDE: "es-5"}
    assert all(headers["Authorization"] == "ApiKey a2V5" for *_request, headers in service.requests)


def test_elasticsearch_removes_an_empty_list(cluster: tuple[Elasticsearch, Script]) -> None:
    service, script = cluster
    script.does("prepare")
    script.does("recover")
    assert service.persistent == {}


def test_elasticsearch_leaves_a_node_excluded_that_was_before(cluster: tuple[Elasticsearch, Script]) -> None:
    service, script = cluster
    service.persistent = {EXCLUDE: HOST}
    for phase in ("prepare", "prepare", "recover", "recover"):
        script.does(phase)
    assert service.writes() == []


def test_elasticsearch_repairs_an_overwritten_list(cluster: tuple[Elasticsearch, Script]) -> None:
    service, script = cluster
    script.does("prepare")
    service.persistent[EXCLUDE] = "es-5"
    script.does("prepare")
    assert service.persistent == {EXCLUDE: f"es-5,{HOST}", MARK: EVENT}


def test_elasticsearch_says_why_it_fails(cluster: tuple[Elasticsearch, Script]) -> None:
    service, script = cluster
    service.refusals = [503]
    service.shards = 10**6
    assert script.fails("prepare", seconds=6).endswith(f"shards are left on {HOST}")
    service.names.remove(HOST)
    assert script.fails("recover", seconds=6) == f"{HOST} is not in the cluster"
    service.refusals = [403]
    assert script.fails("prepare").startswith("Elasticsearch answered 403")
    service.transient = {EXCLUDE: "es-5"}
    assert "overrides the persistent one" in script.fails("prepare")


@pytest.fixture
def github(tmp_path: Path) -> Iterator[tuple[GitHub, Script]]:
    (tmp_path / "token").write_text("secret\n")
    service = GitHub(HOST)
    with served(service) as url:
        changed = {
            "https://api.github.com": url,
            "/run/credentials/forewarn.service/github": str(tmp_path / "token"),
            **FAST,
        }
        yield service, Script(RECIPES / "github-runner.md", tmp_path, "orgs/example", "azure", changed=changed)


def test_github_hides_a_runner_and_awaits_its_job(github: tuple[GitHub, Script]) -> None:
    service, script = github
    service.busy = [False, False, True, True, False]
    for _time in range(2):
        script.does("prepare")
    assert service.custom == ["azure-drained", "gpu"]
    assert service.busy == [False], "a job that was assigned in the last moment is waited for"
    script.does("recover", others=1)
    assert len(service.writes()) == 1
    for _time in range(2):
        script.does("recover")
    assert service.custom == ["azure", "gpu"]
    assert len(service.writes()) == 2


def test_github_leaves_a_runner_hidden_that_was_before(github: tuple[GitHub, Script]) -> None:
    service, script = github
    service.custom = ["gpu"]
    for phase in ("prepare", "prepare", "recover", "recover"):
        script.does(phase)
    assert service.writes() == []


def test_github_says_why_it_fails(github: tuple[GitHub, Script]) -> None:
    service, script = github
    service.refusals = [502]
    service.busy = [True]
    assert script.fails("prepare", seconds=6) == f"{HOST} has a job"
    service.status = "offline"
    assert f"{HOST} is offline" in script.fails("recover", seconds=6)
    service.refusals = [401]
    assert script.fails("prepare").startswith("GitHub answered 401")
    service.runner = "another"
    assert script.fails("prepare") == f"orgs/example has no runner {HOST}"


@pytest.fixture
def azure(tmp_path: Path) -> Iterator[tuple[ResourceManager, Script]]:
    service, settings = ResourceManager(), tmp_path / "settings.json"
    (tmp_path / "kept").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener, served(service) as url:
        port = listener.getsockname()[1]
        settings.write_text(
            json.dumps({"pool": "/subscriptions/s/backendAddressPools/web", "entry": "web-1", "port": port})
        )
        changed = {
            "http://169.254.169.254": url,
            "https://management.azure.com": url,
            "/var/lib/forewarn-hooks": str(tmp_path / "kept"),
            "sleep(2)": "sleep(0.1)",
        }
        yield service, Script(RECIPES / "azure-load-balancer.md", tmp_path, str(settings), changed=changed)


def test_azure_sets_and_restores_the_admin_state(azure: tuple[ResourceManager, Script]) -> None:
    service, script = azure
    service.refusals, service.refused_writes = [429], [412]
    for _time in range(2):
        script.does("prepare")
    assert service.states == [None, "Down"]
    assert [headers["If-Match"] for *_request, headers in service.requests if "If-Match" in headers] == ['W/"1"'] * 2
    script.does("recover", others=1)
    assert service.states == [None, "Down"]
    for _time in range(2):
        script.does("recover")
    assert service.states == [None, "None"]
    assert len(service.writes()) == 3


@pytest.mark.parametrize("state", ["Down", "Up"])
def test_azure_restores_the_admin_state_of_an_operator(azure: tuple[ResourceManager, Script], state: str) -> None:
    service, script = azure
    service.pool["properties"]["loadBalancerBackendAddresses"][1]["properties"]["adminState"] = state
    for phase in ("prepare", "prepare"):
        script.does(phase)
        assert service.states == [None, "Down"]
    for phase in ("recover", "recover"):
        script.does(phase)
        assert service.states == [None, state]


def test_azure_waits_until_the_last_connection_has_ended(azure: tuple[ResourceManager, Script], tmp_path: Path) -> None:
    _service, script = azure
    port = json.loads((tmp_path / "settings.json").read_text())["port"]
    with socket.create_connection(("127.0.0.1", port)):
        assert script.fails("prepare", seconds=6) == "1 connections are open"
    script.does("prepare")


def test_azure_says_why_it_fails(azure: tuple[ResourceManager, Script]) -> None:
    service, script = azure
    service.refusals = [403]
    assert "answered 403" in script.fails("prepare")
    service.pool["properties"]["provisioningState"] = "Updating"
    assert script.fails("prepare", seconds=6) == "the pool is Updating"
    service.pool["properties"]["loadBalancerBackendAddresses"].pop()
    assert script.fails("prepare") == "the pool has no entry web-1"

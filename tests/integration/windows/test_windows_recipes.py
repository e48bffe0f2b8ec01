# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recipes of hooks for Windows: their scripts in Wine's cmd.exe, in both phases and twice.

Each calls one program, in whose place there is a stand-in: it shows what a script does with what it is told.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.docs.windows_recipes import WindowsScript
from tools.sites.wine import Wine

pytestmark = pytest.mark.in_turn(2)  # each call of a stand-in starts a Python on Wine

RECIPES = Path(__file__).parents[3] / "docs" / "hooks" / "recipes"
SITE = "Default Web Site"
SQLCMD = r"%ProgramFiles%\Microsoft SQL Server\Client SDK\ODBC\170\Tools\Binn\sqlcmd.exe"


@pytest.fixture
def iis(booted: Wine) -> WindowsScript:
    program = r"%windir%\System32\inetsrv\appcmd.exe"
    state = {"site": SITE, "state": "Started", "requests": [[]]}
    return WindowsScript(RECIPES / "iis.md", booted, program, "appcmd", SITE, **state)


def test_iis_stops_and_starts_a_site(iis: WindowsScript) -> None:
    iis.change(requests=[["/slow?a=1&b=2"], []])
    for _time in range(2):
        iis.does("prepare")
    assert iis.state["state"] == "Stopped"
    assert iis.calls("stop") == 1
    assert "stays stopped" in iis.does("recover", others=1)
    assert iis.state["state"] == "Stopped"
    for _time in range(2):
        iis.does("recover")
    assert iis.state["state"] == "Started"
    assert iis.calls("start") == 1
    assert iis.notes() == []


def test_iis_leaves_a_stopped_site_stopped(iis: WindowsScript) -> None:
    iis.change(state="Stopped")
    iis.does("prepare")
    assert "stays as it is" in iis.does("recover")
    assert iis.calls("start") == iis.calls("stop") == 0


def test_iis_says_why_it_fails(iis: WindowsScript) -> None:
    iis.change(requests=[["/slow?a=1&echo=2>x|y"]])
    assert iis.fails("prepare", seconds=7) == "requests have not ended: /slow?a=1&echo=2>x|y"
    iis.does("recover")
    iis.change(site="another")
    assert iis.fails("prepare") == f"{SITE} is neither started nor stopped, but ''"


@pytest.fixture
def cluster(booted: Wine) -> WindowsScript:
    program = r"%windir%\System32\WindowsPowerShell\v1.0\powershell.exe"
    state = {"node": ["Up"], "drains": True, "refuses": False}
    return WindowsScript(RECIPES / "failover-cluster.md", booted, program, "powershell", **state)


def test_cluster_node_is_drained_and_resumed(cluster: WindowsScript) -> None:
    for _time in range(2):
        cluster.does("prepare")
    assert cluster.state["node"] == ["Paused", "Completed"]
    assert cluster.calls("Suspend-ClusterNode -Name ([Environment]::MachineName) -Drain") == 1
    assert "stays paused" in cluster.does("recover", others=1)
    cluster.change(node=["Down"])  # right after the reboot
    for _time in range(2):
        cluster.does("recover")
    assert cluster.state["node"] == ["Up"]
    assert cluster.calls("Resume-ClusterNode -Name ([Environment]::MachineName) -Failback Policy") == 1
    assert cluster.notes() == []


def test_cluster_node_paused_before_stays_paused(cluster: WindowsScript) -> None:
    cluster.change(node=["Paused", "NotInitiated"])
    cluster.does("prepare")
    assert cluster.state["node"] == ["Paused", "Completed"]
    assert "stays as it is" in cluster.does("recover")
    assert cluster.calls("Resume-ClusterNode") == 0


def test_cluster_node_that_does_not_drain_is_resumed(cluster: WindowsScript) -> None:
    cluster.change(drains=False)
    assert cluster.fails("prepare", seconds=25) == "this node is: Paused InProgress"
    cluster.does("recover")
    assert cluster.state["node"] == ["Up"]


def test_cluster_that_refuses_is_quoted(cluster: WindowsScript) -> None:
    cluster.change(refuses=True)
    assert cluster.fails("prepare", seconds=20) == "this node is: Suspend-ClusterNode : Access is denied."


@pytest.fixture
def sql(booted: Wine) -> WindowsScript:
    state = {"role_desc": ["PRIMARY"], "synchronization_health_desc": ["HEALTHY"], "replica_server_name": ["SQL2"]}
    return WindowsScript(RECIPES / "sql-server-windows.md", booted, SQLCMD, "sqlcmd", "ag1", **state)


def test_sql_server_group_fails_over_once(sql: WindowsScript) -> None:
    sql.change(replica_server_name=["", "SQL2"])
    for _time in range(2):
        sql.does("prepare")
    assert sql.calls("ALTER AVAILABILITY GROUP [ag1] FAILOVER") == sql.calls("SQL2") == 1
    sql.change(synchronization_health_desc=[None, "NOT_HEALTHY", "HEALTHY"])
    sql.does("recover")
    assert sql.notes() == []


def test_sql_server_says_why_it_waits(sql: WindowsScript) -> None:
    sql.change(replica_server_name=[""])
    assert "no synchronous secondary of ag1 can take over" in sql.fails("prepare", seconds=19)
    sql.change(role_desc=[None])
    assert "Login timeout expired" in sql.fails("prepare", seconds=19)
    sql.change(synchronization_health_desc=["NOT_HEALTHY"])
    assert sql.fails("recover", seconds=19) == "this replica of ag1 is not healthy: NOT_HEALTHY"
    assert sql.calls("FAILOVER") == 0

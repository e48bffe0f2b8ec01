# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks for a fleet on hosts that are pretended: whoever is asked, however they answer or do not."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from forewarn.policy import pause
from tools.sites.adhoc import AdHoc
from tools.sites.ansible_cores import ansible
from tools.sites.commands import run_program
from tools.suite.sizes import in_turn
from tools.worlds.fleets import event, fleet, report

pytestmark = pytest.mark.in_turn(3)

STATUS, REPORT = "forewarn.azure.status", "forewarn.azure.report"
NO_ROUTE = "Failed to connect to the host via ssh: ssh: connect to host {} port 22: No route to host\r\n"
NOT_FOUND = [127, "/bin/sh: 1: /usr/local/bin/forewarn: not found\r\n", ""]
GARBAGE = [1, "\x1b[31mTraceback (most recent call last):\x1b[0m\r\nOSError: disk\r\n", ""]


class Playbooks:
    """Runs a playbook of the collection on hosts that answer from files."""

    def __init__(self, directory: Path, collections_path: Path, repository: Path) -> None:
        self.directory = directory
        self.vms = directory / "vms"
        self.vms.mkdir()
        self.environ = {
            **AdHoc(directory, collections_path).environ,
            "ANSIBLE_CONNECTION_PLUGINS": str(repository / "tests" / "tools" / "sites" / "connection"),
            "SCRIPTED_VMS": str(self.vms),
            "PWD": str(directory),
        }
        self.groups: dict[str, dict[str, Any]] = {}

    def host(self, name: str, script: dict[str, Any], **variables: Any) -> None:
        """Add a host, to the group that its name begins with."""
        (self.vms / f"{name}.json").write_text(json.dumps(script))
        group = self.groups.setdefault(re.split(r"[_\d]", name)[0] or "others", {"hosts": {}})
        group["hosts"][name] = {"ansible_connection": "scripted_vm", **variables}

    def answers(self, results: dict[str, dict[str, Any]]) -> None:
        """Add hosts with what runner_report returns of them, as a pseudo-terminal shows it."""
        for name, result in results.items():
            stdout = "bash: warning: setlocale\r\n" + result["stdout"].replace("\n", "\r\n")
            self.host(name, {"status": [0, stdout, ""], "history": [0, result["history"], ""]})

    def play(self, playbook: str, *options: str, **environ: str) -> tuple[int, str, str]:
        """Return the exit code, the standard output and the standard error."""
        (self.directory / "hosts.json").write_text(json.dumps({"all": {"children": self.groups}}))
        process = run_program(
            *(ansible("ansible-playbook"), "-i", "hosts.json", playbook, *options),
            cwd=self.directory,
            env={**self.environ, **environ},
        )
        return process.returncode, process.stdout, process.stderr


@pytest.fixture
def playbooks(tmp_path: Path, collections_path: Path, repository: Path) -> Playbooks:
    return Playbooks(tmp_path, collections_path, repository)


def test_a_fleet_without_trouble(playbooks: Playbooks) -> None:
    playbooks.answers({name: report([event(0, ["web_2"])], vm=name) for name in ("web_10", "web_2", "db_0")})
    code, stdout, _stderr = playbooks.play(STATUS)
    assert code == 0, stdout
    assert stdout.count(event(0, [])["event_id"]) == 1
    assert "    web_2  held  held by web-tier" in stdout
    assert "    2 other hosts not affected" in stdout
    assert "3 hosts, 0 with trouble; 1 event pending for 1 VM" in stdout
    assert "3f2a9c1d0e4b" in stdout


@pytest.mark.parametrize("setting", in_turn(["STRATEGY=linear", "STRATEGY=free", "ANY_ERRORS_FATAL=1", "FORKS=1"]))
def test_each_trouble_is_one_sentence_and_an_error(playbooks: Playbooks, setting: str) -> None:
    playbooks.host("aaa", {"unreachable": NO_ROUTE.format("10.0.0.1")})  # the first of all
    playbooks.host("web_7", {"unreachable": NO_ROUTE.format("10.0.0.7")})
    playbooks.host("web_8", {"status": NOT_FOUND})
    playbooks.host("web_9", {"status": GARBAGE})
    playbooks.host("bad", {}, ansible_host="{{ there_is_no_such_variable }}")
    playbooks.answers({"web_1": report(problems=["the journal: the disk is full"]), "web_2": report()})
    name, _equals, value = setting.partition("=")
    code, stdout, stderr = playbooks.play(STATUS, **{f"ANSIBLE_{name}": value})
    assert code == 2
    table = stdout[stdout.index("TROUBLE on 6 hosts") : stdout.index("POLICIES")]
    assert re.search(r"^  aaa +not reached: No route to host \(ssh, port 22\)$", table, re.MULTILINE)
    assert re.search(r"^  web_7 +not reached: No route to host \(ssh, port 22\)$", table, re.MULTILINE)
    assert re.search(
        r"^  web_8 +no runner: /usr/local/bin/forewarn is not installed on this host$", table, re.MULTILINE
    )
    assert re.search(r"^  web_9 +no status: OSError: disk$", table, re.MULTILINE)
    assert re.search(r"^  web_1 +the journal: the disk is full$", table, re.MULTILINE)
    assert re.search(r"^  bad +.*there_is_no_such_variable", table, re.MULTILINE)
    assert "web_2 " not in table
    assert "7 hosts, 6 with trouble; 0 events pending" in stdout
    assert stdout.count("TROUBLE on") == 1
    assert "6 of 7 hosts with trouble: aaa, bad, web_1, web_7, web_8 and 1 more" in stdout
    assert "\\r" not in stdout + stderr
    assert "\x1b" not in stdout + stderr
    assert "u001b" not in stdout + stderr
    for line in stdout.split("\n"):
        assert len(line) < 400


def test_with_the_callback_there_is_only_the_table(playbooks: Playbooks) -> None:
    playbooks.host("web_7", {"unreachable": NO_ROUTE.format("10.0.0.7")})
    playbooks.answers({"web_1": report(vm="web_1")})
    code, stdout, stderr = playbooks.play(STATUS, ANSIBLE_STDOUT_CALLBACK="forewarn.azure.fleet")
    assert (code, stderr) == (2, "")
    assert stdout.split("\n") == [
        "TROUBLE on 1 host",
        "  web_7  not reached: No route to host (ssh, port 22)",
        "",
        "POLICIES",
        "  web-tier, defaults v1.4 (3f2a9c1d0e4b) 4558453758da  forewarn 0.2.0  1 host",
        "",
        "2 hosts, 1 with trouble; 0 events pending",
        "localhost | FAILED: 1 of 2 hosts with trouble: web_7",
        "",
    ]


def test_nobody_is_reached(playbooks: Playbooks) -> None:
    for number in range(12):
        playbooks.host(f"web_{number}", {"unreachable": NO_ROUTE.format(f"10.0.0.{number}")})
    code, stdout, _stderr = playbooks.play(STATUS)
    assert code == 2
    assert "  12 hosts  not reached: No route to host (ssh, port 22)\n" in stdout
    assert "12 hosts, 12 with trouble" in stdout
    code, stdout, _stderr = playbooks.play(REPORT)
    assert code == 2
    assert "web_11" in (playbooks.directory / "forewarn-report.html").read_text()


ASKED = [
    (("--limit", "web_1"), "1 host, 0 with trouble"),
    (("--limit", "web_1,db_0"), "2 hosts, 0 with trouble"),
    (("-e", "forewarn_hosts=web"), "2 hosts, 0 with trouble"),
    (("-e", "forewarn_hosts=web,db", "--limit", "all:!web_0"), "2 hosts, 0 with trouble"),
    (("-e", '{"forewarn_hosts": ["web", "db", "!web_0"]}'), "2 hosts, 0 with trouble"),
    (("-e", "forewarn_hosts=web[0]"), "1 host, 0 with trouble"),
    (("--check",), "3 hosts, 0 with trouble"),
    (("--diff", "-v"), "3 hosts, 0 with trouble"),
    (("-e", '{"ansible_become_method": "su"}'), "3 hosts, 0 with trouble"),
]


@pytest.mark.in_turn(1)  # in_turn takes some of its cases
@pytest.mark.parametrize(("options", "shown"), in_turn(ASKED, 2))
@pytest.mark.parametrize("playbook", [STATUS, REPORT])
def test_whoever_is_asked_is_shown(playbooks: Playbooks, playbook: str, options: tuple[str, ...], shown: str) -> None:
    playbooks.answers({name: report(vm=name) for name in ("web_0", "web_1", "db_0")})
    code, stdout, stderr = playbooks.play(playbook, *options)
    assert (code, shown in stdout) == (0, True), stdout + stderr
    page = playbooks.directory / "forewarn-report.html"
    assert page.exists() == (playbook == REPORT and "--check" not in options)
    if page.exists():
        assert shown in page.read_text()


@pytest.mark.parametrize("options", [("-e", "forewarn_hosts=nobody"), ("-e", "forewarn_hosts=web", "--limit", "db")])
@pytest.mark.parametrize("playbook", [STATUS, REPORT])
def test_run_without_hosts_ends_with_an_error(playbooks: Playbooks, playbook: str, options: tuple[str, ...]) -> None:
    playbooks.answers({name: report(vm=name) for name in ("web_0", "db_0")})
    code, stdout, _stderr = playbooks.play(playbook, *options)
    assert code == 2
    assert "No host was asked: check forewarn_hosts and --limit." in stdout
    assert not (playbooks.directory / "forewarn-report.html").exists()


def test_an_empty_inventory_ends_with_an_error(playbooks: Playbooks) -> None:
    code, stdout, _stderr = playbooks.play(STATUS)
    assert code == 2
    assert "No host was asked" in stdout


def test_report_contains_the_requested_history(playbooks: Playbooks) -> None:
    results = {name: answer for name, answer in fleet(9, trouble=0, past=3).items() if not answer.get("failed")}
    playbooks.answers(results)
    page = playbooks.directory / "somewhere.html"
    code, stdout, _stderr = playbooks.play(REPORT, "-e", f"forewarn_report={page}", "-e", "forewarn_since=30d")
    assert code == 2, stdout  # the preparation of one event failed
    content = page.read_text()
    assert "3 earlier events in 30d" in content
    for name in results:
        assert name in content


HOOK = "run /usr/local/bin/drain"
# How far this VM is with an event: its hooks, and the state of the event.
WITH_EVENTS: list[tuple[str, list[dict[str, Any]], bool]] = [
    ("held", [], False),  # an event of another VM
    ("preparing", [{"phase": "prepare", "hook": HOOK, "status": "running", "attempts": 1}], True),
    ("prepared", [{"phase": "prepare", "hook": HOOK, "status": "succeeded", "attempts": 1}], True),
    ("failed", [{"phase": "prepare", "hook": HOOK, "status": "failed", "attempts": 3}], True),
    ("approved", [{"phase": "notify", "hook": HOOK, "status": "succeeded", "attempts": 1}], False),
    ("held", [{"phase": "prepare", "hook": HOOK, "status": "waiting", "attempts": 0}], False),
    ("seen", [{"phase": "recover", "hook": HOOK, "status": "waiting", "attempts": 0}], False),
    ("started", [{"phase": "recover", "hook": HOOK, "status": "waiting", "attempts": 0}], True),
    ("started", [], False),
    ("recovering", [{"phase": "recover", "hook": HOOK, "status": "failed", "attempts": 3}], True),
    ("recovering", [{"phase": "recover", "hook": HOOK, "status": "skipped", "attempts": 0}], False),
]


def test_removal_is_refused_only_on_prepared_hosts(playbooks: Playbooks) -> None:
    """The list has the events of other VMs too. What goes on asks the host, which then does not answer."""
    for number, (state, hooks, _kept) in enumerate(WITH_EVENTS):
        listed = [event(1, ["db_0"], "held", hooks=[]), event(2, ["web_1"], state, hooks=hooks)]
        answer = report(listed)
        playbooks.host(f"web_{number}", {"status": [0, answer["stdout"], ""], "other": [1, "", "gone away"]})
    code, stdout, _stderr = playbooks.play("forewarn.azure.remove")
    assert code == 2
    kept = set(re.findall(r"fatal: \[web_(\d+)\].*This host was prepared for an event that has not ended", stdout))
    assert kept == {str(number) for number, (_state, _hooks, kept) in enumerate(WITH_EVENTS) if kept}
    code, stdout, _stderr = playbooks.play("forewarn.azure.remove", "-e", "forewarn_force=true")
    assert "This host was prepared" not in stdout


# Pausing. The hosts are this machine, each with its own state directory, and the command is the real one.
_INTERPRETER = """\
#!/bin/sh
sed -i "s#/usr/local/bin/forewarn#{command}#g" "$1"
exec {python} "$@"
"""
_COMMAND = '#!/bin/sh\nverb=$1; shift\nexec {forewarn} "$verb" --state {state} "$@"\n'
PAUSE, RESUME = "forewarn.azure.pause", "forewarn.azure.resume"
HOSTILE = 'it\'s "quoted" and `id` and $(id) $HOME; größer 発 %s {} * ? rm -rf / # \\n \\'
REASONS = [HOSTILE, "--for=9h --state=/tmp", "  - list: [a, b]  ", "yes", "12:30"]


def pausing(playbooks: Playbooks, name: str) -> Path:
    """Add a host with the real command, and return its state directory."""
    state = playbooks.directory / f"state-{name}"
    state.mkdir(mode=0o700)
    command, interpreter = playbooks.directory / f"forewarn-{name}", playbooks.directory / f"python-{name}"
    command.write_text(_COMMAND.format(forewarn=Path(sys.executable).parent / "forewarn", state=state))
    interpreter.write_text(_INTERPRETER.format(command=command, python=sys.executable))
    for program in (command, interpreter):
        program.chmod(0o755)
    playbooks.host(
        name, {}, ansible_connection="local", ansible_become=False, ansible_python_interpreter=str(interpreter)
    )
    return state


def paused(state: Path) -> str | None:
    """Return the reason of the pause of a state directory, None without one."""
    found = pause.read_pause(str(state))
    return None if found is None or not found.is_active(time.time()) else found.reason


@pytest.mark.parametrize("reason", in_turn(REASONS), ids=lambda reason: str(REASONS.index(reason)))
def test_pause_reason_reaches_reachable_hosts_unchanged(playbooks: Playbooks, reason: str) -> None:
    playbooks.host("aaa", {"unreachable": NO_ROUTE.format("10.0.0.1")})  # the first of all
    states = [pausing(playbooks, name) for name in ("web_1", "web_2")]
    playbooks.host("web_9", {"unreachable": NO_ROUTE.format("10.0.0.9")})
    asked = json.dumps({"forewarn_pause_for": "2h", "forewarn_pause_reason": reason})
    code, stdout, _stderr = playbooks.play(PAUSE, "-e", asked)
    assert code == 4, stdout
    assert [paused(state) for state in states] == [reason.strip()] * 2, stdout
    assert stdout.count("paused: until ") == 2
    assert set(re.findall(r"^(\w+) .*unreachable=1", stdout, re.MULTILINE)) == {"aaa", "web_9"}
    code, stdout, _stderr = playbooks.play(RESUME)
    assert code == 4, stdout
    assert [paused(state) for state in states] == [None, None], stdout
    assert set(re.findall(r"^(\w+) .*changed=1 ", stdout, re.MULTILINE)) == {"web_1", "web_2"}


@pytest.mark.parametrize("reason", in_turn(["one\ntwo", "\n", "a\u202eb", "x" * 3000, ""]))
def test_a_reason_that_is_no_line_pauses_nothing(playbooks: Playbooks, reason: str) -> None:
    states = [pausing(playbooks, name) for name in ("web_1", "web_2")]
    asked = json.dumps({"forewarn_pause_for": "2h", "forewarn_pause_reason": reason})
    code, stdout, _stderr = playbooks.play(PAUSE, "-e", asked)
    assert code == 2, stdout
    said = "Nothing was paused." if not reason else "the reason is not one line of 1 to"
    assert said in stdout
    assert [paused(state) for state in states] == [None, None]

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of a fleet: every event once, with the VMs that it affects; every host with trouble; nobody is lost."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from forewarn.fleet.status import host_states, natural
from forewarn.fleet.table import TROUBLE, policies, table, trouble_text
from hypothesis import given
from hypothesis import strategies as st
from tools.worlds.fleets import event, fleet, report

HOSTILE = ["\x1b[2J", "a\nb", "\u202egpj", "\ud800", "{{ 7 * 7 }}", "x" * 500, "", " ", "héllo", "日本"]
names = st.one_of(
    st.from_regex(r"(web|db|WEB)[_-]?[0-9]{0,4}(\.example\.com)?", fullmatch=True),
    st.sampled_from(["10.0.0.9", "10.0.0.10", "a", "0", "007", "7", "9" * 5000, *HOSTILE[:6]]).filter(bool),
)
garbage = st.sampled_from(["", "[]", "null", '{"runner": 1}', '{"runner": {}, "service": {}}', "\x00", "5", "[" * 9999])


def text(answers: dict[str, dict[str, Any]]) -> str:
    return "\n".join(line.text for line in table(host_states(answers)))


def section(shown: str, title: str) -> str:
    """Return the lines below a title, up to the next one."""
    match = re.search(rf"^{title}.*\n((?:  .*\n|\n(?=  ))*)", shown, re.MULTILINE)
    return match[1] if match else ""


@st.composite
def fleets(draw: st.DrawFn) -> tuple[dict[str, dict[str, Any]], list[list[str]], set[str]]:
    """Return results by host, the VMs that each event affects, and the hosts that have trouble."""
    hosts = draw(st.lists(names, unique_by=str.lower, max_size=30))
    affected = draw(st.lists(st.lists(st.sampled_from(hosts), min_size=1, unique=True), max_size=4)) if hosts else []
    answers: dict[str, dict[str, Any]] = {}
    troubled = set()
    for host in hosts:
        kind = draw(st.sampled_from(["well", "well", "well", "problem", "stopped", "silent", "garbage", "never"]))
        listed = [
            event(number, its, draw(st.sampled_from(["held", "preparing", "approved", "started", *HOSTILE])))
            for number, its in enumerate(affected)
            if host in its or draw(st.booleans())
        ]
        if kind != "well":
            troubled.add(host)
        if kind == "silent":
            answers[host] = {"failed": True, "msg": draw(st.sampled_from(["no runner", *HOSTILE]))}
        elif kind == "garbage":
            answers[host] = {"stdout": draw(garbage)}
        elif kind == "never":
            answers[host] = {}
        else:
            problems = [draw(st.sampled_from(["the journal: full", *HOSTILE]))] if kind == "problem" else []
            condition = "not-running" if kind == "stopped" else "running"
            answers[host] = report(listed, problems, vm=host, condition=condition)
    return answers, affected, troubled


@given(fleets())
def test_nobody_is_lost(made: tuple[dict[str, dict[str, Any]], list[list[str]], set[str]]) -> None:
    answers, affected, troubled = made
    lines = table(host_states(answers))
    assert all(char.isprintable() for line in lines for char in line.text)
    shown = "\n".join(line.text for line in lines)
    reported = [
        number for number in range(len(affected)) if any(event_id(number) in str(one) for one in answers.values())
    ]
    events = section(shown, "EVENTS")
    blocks = {number: block for number in reported for block in events.split("\n\n") if event_id(number) in block}
    assert len(blocks) == len(reported)
    for number, block in blocks.items():
        assert events.count(event_id(number)) == 1
        for host in affected[number]:
            assert re.search(rf"^    {re.escape(printed(host))} ", block, re.MULTILINE), (host, block)
    trouble = section(shown, "TROUBLE")
    for host in troubled:
        assert printed(host) in trouble
    assert ("TROUBLE" in shown) == bool(troubled)
    assert (
        f"{len(answers)} host{'' if len(answers) == 1 else 's'}, {len(troubled)} with trouble" in shown.split("\n")[-1]
    )
    assert bool(trouble_text(host_states(answers))) == bool(troubled)
    assert (lines[-1].kind == TROUBLE) == bool(troubled)


def event_id(number: int) -> str:
    return str(event(number, [])["event_id"])


def printed(name: str) -> str:
    return "".join(char if char.isprintable() else r"\n" if char == "\n" else ascii(char)[1:-1] for char in name)


def test_hosts_are_in_natural_order_and_neighbours_counted() -> None:
    answers = {name: report([event(0, ["web_10", "web_2"])], vm=name) for name in ("web_10", "web_1", "web_2", "db_3")}
    (block,) = section(text(answers), "EVENTS").rstrip().split("\n\n")
    assert [line.split()[0] for line in block.split("\n")[2:4]] == ["web_2", "web_10"]
    assert block.split("\n")[4] == "    2 other hosts not affected"
    assert "web_1 " not in block
    assert "Reboot in 2 min (not before 2026-11-21 16:12:00 UTC), from Platform, lasts 9 s, " in block
    assert "approve by web-tier, rule drain: a Reboot waits for the drain" in block


@given(st.lists(names))
def test_the_natural_order_is_that_of_numbers(found: list[str]) -> None:
    ordered = sorted(found, key=natural)
    assert sorted(ordered) == sorted(found)
    backwards = found[::-1]
    assert sorted(backwards, key=natural) == ordered
    assert sorted(["web_10", "web_9", "Web_8", "web", "a"], key=natural) == ["a", "web", "Web_8", "web_9", "web_10"]


def test_hosts_that_disagree_are_named() -> None:
    decision = {"output": "hold", "policy": "web-tier", "rule": "rest", "reason": "no rule"}
    later = {**event(0, ["a", "b"])["event"], "NotBefore": "2026-11-21T16:30:00Z"}
    answers = {
        "a": report([event(0, ["a", "b"])], vm="a"),
        "b": report(
            [event(0, ["a", "b"], decision=decision, event=later)], vm="b", policy="sha256:feed", policies=["old"]
        ),
    }
    shown = text(answers)
    assert "approve by web-tier, rule drain: a Reboot waits for the drain [a]" in shown
    assert "hold by web-tier, rule rest: no rule [b]" in shown
    assert "hosts differ: NotBefore 2026-11-21 16:12:00 UTC [a]" in shown
    assert "hosts differ: NotBefore 2026-11-21 16:30:00 UTC [b]" in shown
    assert re.search(r"old v1\.4 \(3f2a9c1d0e4b\) feed +forewarn 0\.2\.0  1 host: b", shown)


def test_silent_affected_vm_is_shown_with_the_reason() -> None:
    affected = ["up", "down", "stranger"]
    answers = {"up": report([event(0, affected)], vm="up"), "down": {"failed": True, "msg": "not reached: no route"}}
    block = section(text(answers), "EVENTS")
    assert re.search(r"^    down +- +not reached: no route$", block, re.MULTILINE)
    assert re.search(r"^    stranger +- +not among the hosts of this run$", block, re.MULTILINE)


def test_vm_name_counts_instead_of_the_host_name() -> None:
    answers = {
        "10.0.0.1": report([event(0, ["WEB_0"])], vm="web_0"),
        "web_0": report([event(0, ["WEB_0"])], vm="db_0"),
        "unnamed": report([event(0, ["WEB_0"])], vm=None),
    }
    block = section(text(answers), "EVENTS")
    assert "10.0.0.1 (web_0)  held" in block
    assert "2 other hosts not affected" in block


def test_hosts_with_equal_trouble_share_an_entry() -> None:
    answers = {f"web_{number}": {"failed": True, "msg": "not reached: No route to host"} for number in range(30)}
    trouble = section(text(answers), "TROUBLE on 30 hosts").rstrip().split("\n")
    assert trouble[0] == "  30 hosts  not reached: No route to host"
    assert trouble[1].split(", ")[-1] == "web_29"
    assert len(trouble) == 2


def test_what_an_older_or_a_newer_runner_reports() -> None:
    old = json.loads(report()["stdout"])
    for name in ("policies", "source", "version"):
        del old["runner"][name]
    missing = ["drain: there is no such file"]
    dirty = {"repository": "r", "ref": "main", "commit": "0123456789abcdef", "paths": [], "modified": True}
    answers = {
        "old": {"stdout": json.dumps(old)},
        "new": report(
            problems=[f"a hook lacks what it needs: {missing[0]}"],
            missing=[*missing, "another"],
            source=dirty,
            dry_run=True,
        ),
    }
    shown = text(answers)
    assert re.search(r"^  4558453758da +1 host: old$", shown, re.MULTILINE)
    assert "web-tier, defaults main (0123456789ab, modified) 4558453758da  forewarn 0.2.0, dry run  1 host" in shown
    assert section(shown, "TROUBLE").count(missing[0]) == 1
    assert "another" in section(shown, "TROUBLE")


def test_hosts_are_counted_by_build_during_an_upgrade() -> None:
    """Also where both builds have one version, and on the page."""
    builds = ["0.2.0+aaaaaaaaaaaa"] * 3 + ["0.2.0+bbbbbbbbbbbb"]
    answers = {f"web_{number}": report(version=build) for number, build in enumerate(builds)}
    block = section(text(answers), "POLICIES")
    assert re.search(r"forewarn 0\.2\.0\+aaaaaaaaaaaa  3 hosts$", block, re.MULTILINE)
    assert re.search(r"forewarn 0\.2\.0\+bbbbbbbbbbbb  1 host: web_3$", block, re.MULTILINE)
    assert f"  2 builds of the runner: {builds[0]} on 3 hosts, {builds[3]} on 1 host\n" in block
    assert "builds of the runner" not in text({"web_0": answers["web_0"], "web_1": {}})
    found = [(version, len(hosts)) for _policy, version, hosts in policies(host_states(answers))]
    assert found == [(f"forewarn {builds[0]}", 3), (f"forewarn {builds[3]}", 1)]


@pytest.mark.parametrize("hosts", [0, 1, 2, 60, 300])
def test_the_simulated_fleet(hosts: int) -> None:
    shown = text(fleet(hosts))
    assert shown.count("other host") <= 6
    assert len(shown.split("\n")) < 60


def test_paused_hosts_are_listed_with_their_pause() -> None:
    """Hosts that one playbook has paused end some seconds apart, and share a line."""

    def pause(second: int, **changed: Any) -> dict[str, Any]:
        return {"until": f"2026-11-27T14:00:0{second}Z", "by": "root (sudo: alice)", "reason": "release 4.2", **changed}

    answers = {f"web_{number}": report(vm=f"web_{number}", pause=pause(number)) for number in range(3)}
    answers["db_0"] = report(vm="db_0", pause=pause(0, reason="work on the disks"))
    answers["db_1"] = report(vm="db_1")
    answers["db_2"] = report(vm="db_2", problems=["approvals count as paused"], pause={"until": None, "problem": "x"})
    shown = text(answers)
    assert "APPROVALS PAUSED on 4 hosts" in shown
    assert section(shown, "APPROVALS PAUSED").splitlines() == [
        "  until 2026-11-27T14:00:00Z, by root (sudo: alice): work on the disks: db_0",
        "  until 2026-11-27T14:00:00Z to 2026-11-27T14:00:02Z, by root (sudo: alice): release 4.2: web_0, web_1, web_2",
    ]
    assert "6 hosts, 1 with trouble" in shown

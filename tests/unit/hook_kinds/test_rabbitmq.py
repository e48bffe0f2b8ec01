# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kind rabbitmq makes of nodes and programs that a real cluster, as in tests/lab, seldom has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forewarn.hook_kinds.common.process import PREPARE, RECOVER, perform
from forewarn.hook_kinds.common.work import HookFailedError, ProgramResult, Work
from forewarn.hook_kinds.rabbitmq import _are_queues, _is_status, _read_json
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples

# All three programs: they write down their arguments, and the files of the directory are what they know.
_PROGRAM = """#!/bin/sh
cd {directory}
echo "$(basename "$0") $*" >> calls
case "$*" in
*status*) printf '{{"is_under_maintenance": %s}}' "$(cat maintenance)" ;;
*list_queues*) cat queues ;;
*await*) [ -e quorum ] || {{ echo "time is up" >&2; exit 69; }} ;;
*drain*) echo true > maintenance; [ ! -e drain-fails ] || {{ rm drain-fails; echo "drain broke" >&2; exit 69; }} ;;
*revive*) echo false > maintenance; [ "$(grep -c revive calls)" -lt "$(cat revives)" ] || touch quorum ;;
esac
[ ! -e usage ] || exit 64
"""
_LED = '[{"name": "orders", "type": "quorum"}, {"name": "local", "type": "classic"}]'


class Node:
    """A node whose state are files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("rabbitmq-upgrade", "rabbitmq-diagnostics", "rabbitmqctl"):
            (directory / name).write_text(_PROGRAM.format(directory=directory))
            (directory / name).chmod(0o755)
        self.set("maintenance", "false")
        self.set("queues", "[]")
        self.set("revives", "1")  # after so many the members of queues are there
        self.set("quorum")

    def set(self, name: str, text: str = "") -> None:
        (self.directory / name).write_text(text)

    def changes(self) -> list[str]:
        """Return the commands that change something."""
        calls = (self.directory / "calls").read_text().splitlines()
        return [words[1] for words in map(str.split, calls) if words[1] in ("drain", "revive")]

    def run(self, phase: str = PREPARE, seconds: float = 3.0) -> None:
        perform("rabbitmq", phase, {}, {}, seconds, str(self.directory / "memory"))

    def refusal(self, phase: str = PREPARE) -> str:
        with pytest.raises(HookFailedError) as caught:
            self.run(phase, 1.2)
        return str(caught.value)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return Node(tmp_path)


def test_a_node_is_drained_and_revived(node: Node) -> None:
    node.run()
    assert (node.directory / "maintenance").read_text().strip() == "true"
    node.run(RECOVER)
    assert node.changes() == ["drain", "revive"]


def test_revive_is_repeated_while_members_are_down(node: Node) -> None:
    node.run()
    (node.directory / "quorum").unlink()
    node.set("revives", "3")
    node.run(RECOVER, 10.0)
    assert node.changes() == ["drain", "revive", "revive", "revive"]


def test_undrained_node_is_not_revived(node: Node) -> None:
    (node.directory / "quorum").unlink()
    assert "no member online to spare: rabbitmq-upgrade await_online" in node.refusal(RECOVER)
    assert node.changes() == []


def test_earlier_maintenance_mode_is_restored_after_a_reboot(node: Node) -> None:
    node.set("maintenance", "true")
    (node.directory / "quorum").unlink()
    node.run()
    node.set("maintenance", "false")
    node.run(RECOVER)
    assert node.changes() == ["drain", "drain"]


def test_failed_drain_is_repeated_and_later_revived(node: Node) -> None:
    """RabbitMQ is in maintenance mode then, and a second drain succeeds (its issue 3369)."""
    node.set("drain-fails")
    node.run()
    node.run(RECOVER)
    assert node.changes() == ["drain", "drain", "revive"]


_NOISE = (
    "12:00:00.100 [warning] Wrong permissions on cookie [debug]",
    "\x1b[33m09:53:57.406 [warning] <0.9.0> TLS: [{verify, none}] {x, 1}\x1b[0m",
    "[1] {} [] [[0.5]]",
    '{"level": "warning", "msg": "a log as JSON, with [brackets]", "queues": [{"name": 1}]}',
    "Asking node rabbit@r1 ...",
    "\x1b[1;31m{\x1b[0m",
)


@given(
    st.lists(st.sampled_from(_NOISE), max_size=3),
    st.lists(st.sampled_from(_NOISE), max_size=2),
    st.sampled_from([None, 2]),
    st.data(),
)
@settings(max_examples=examples(200))
def test_json_is_found_among_warnings(
    before: list[str], after: list[str], indent: int | None, data: st.DataObject
) -> None:
    queue = {"name": "[orders}", "type": "quorum"}
    status = {"is_under_maintenance": True, "listeners": [{"port": 5672}, {}], "tags": ["[", "}"]}
    value = data.draw(st.sampled_from([status, [], [queue], [queue, queue]]))
    text = "\n".join([*before, json.dumps(value, indent=indent), *after])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Work, "run", lambda *_words, **_options: ProgramResult(0, text, ""))
        fits = _is_status if value is status else _are_queues
        assert _read_json(Work({}, {}, 9.0), fits, "rabbitmqctl", "list_queues") == value


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("queues", _LED, "this node still leads orders"),
        ("queues", "Error: no", "rabbitmqctl list_queues answered no JSON: Error: no"),
        ("usage", "", "rabbitmq-upgrade await_online_quorum_plus_one failed: exit code 64"),
    ],
)
def test_what_keeps_a_node_from_being_drained(node: Node, name: str, text: str, says: str) -> None:
    node.set(name, text)
    assert says in node.refusal()

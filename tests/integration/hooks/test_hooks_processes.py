# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks from a policy file to what they do: programs, systemctl, and requests by a Python of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn import __version__, bundle
from forewarn.compiler.policies import load_policies
from forewarn.events import Event, Vm, parse_document
from forewarn.policy.decision import Facts
from forewarn.policy.engine import PolicySet
from forewarn.runner.hooks.commands import HookContext, HookSettings, command
from forewarn.runner.hooks.executor import Executor, HookResult
from forewarn.system.posix import programs
from tools.servers.webhooks import HANG, Answer, Webhook, server_context
from tools.sites.pythons import SUPPORTED, python
from tools.sites.waiting import wait_until

PATIENCE_SECONDS = 30.0
TOKEN = "t0ken-that-nobody-may-see"
EVENT = Event("E-1", "Reboot", "VirtualMachine", ("web_0",), "Scheduled", None, "für web_0", "Platform", -1)
DECISION = {"output": "approve", "policy": "web-tier", "rule": "drain", "reason": "drained"}
OCCASION = HookContext("prepare", None, 1, False, EVENT, "web_0", DECISION, None, 600.0, 0)
# Runs hooks as the runner does, from a directory or forewarn.pyz, by any Python. Arguments: where the package is, and
# a JSON object of hook and settings. Prints the outcome, how much memory it took, and whether TLS was loaded for it.
DRIVER = """
import json, re, sys
sys.path.insert(0, sys.argv[1])
import forewarn.runner.skip_openssl
from forewarn.events import Event
from forewarn.runner.hooks.executor import Executor
from forewarn.runner.hooks.commands import HookContext, HookSettings, command
import subprocess, threading
work = json.loads(sys.argv[2])
occasion = HookContext("prepare", None, 1, False, Event("E-1"), None, {}, None, None, 0)
def peak():
    return int(re.search(r"VmHWM:\\\\s+(\\\\d+) kB", open("/proc/self/status").read()).group(1))
done = threading.Event()
executor = Executor(done.set)
before = peak()
executor.start(1, command(work["hook"], occasion, HookSettings(**work["settings"]), 30.0))
done.wait(30)
((_token, outcome),) = executor.take_results()
print(json.dumps({"outcome": outcome, "kilobytes": peak() - before, "ssl": "ssl" in sys.modules}))
""".replace("\\\\", "\\")


@pytest.fixture
def executor() -> Iterator[Executor]:
    running = Executor(lambda: None, grace_seconds=0.3)
    yield running
    running.close()


def outcome_of(executor: Executor, hook: dict[str, Any], settings: HookSettings = HookSettings()) -> HookResult:  # noqa: B008 - immutable
    executor.start(1, command(hook, OCCASION, settings, PATIENCE_SECONDS))
    return wait(executor)


def wait(executor: Executor) -> HookResult:
    ((_token, outcome),) = wait_until(executor.take_results, PATIENCE_SECONDS, what="the hook has not ended")
    return outcome


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def drive(version: str, root: Path, hook: dict[str, Any], **settings: Any) -> dict[str, Any]:
    work = json.dumps({"hook": hook, "settings": settings})
    run = [python(version), "-I", "-S", "-B", "-W", "error", "-c", DRIVER, str(root), work]
    # In / and with nothing in the environment, as a service is started.
    result = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False, cwd="/", env={})
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert isinstance(answer, dict)
    return {**answer, "outcome": HookResult(*answer["outcome"])}


def test_from_a_policy_file_to_a_program(executor: Executor, tmp_path: Path) -> None:
    drain = program(tmp_path / "drain", f'cat > {tmp_path}/stdin; echo "$FOREWARN_RULE|$1|$FOREWARN_DESCRIPTION"')
    policy = tmp_path / "web-tier.yml"
    policy.write_text(
        "name: web-tier\nrule:\n  match:\n    - id: drain\n      output: approve\n"
        f"      prepare: [{{run: [{drain}, $HOME; false], timeout: 5s}}]\n"
    )
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [EVENT.as_dict()]}))
    (decision,) = PolicySet(load_policies([policy])).decide(document, Facts(datetime.now(timezone.utc), Vm("web_0")))
    (hook,) = decision.prepare
    executor.start(1, command(hook, OCCASION._replace(event=decision.event), HookSettings(), hook["timeout_seconds"]))
    outcome = wait(executor)
    assert (outcome.result, outcome.output) == ("succeeded", "drain|$HOME; false|für web_0\n")
    assert json.loads((tmp_path / "stdin").read_text())["event"] == EVENT.as_dict()


def test_a_unit_is_waited_for(executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(
        tmp_path / "systemctl",
        f'sleep 0.2; echo "$@" >> {tmp_path}/calls; [ "$4" = good.service ] && exit; echo "Job for $4 failed."; exit 1',
    )
    monkeypatch.setattr(programs, "SEARCH_PATH", f"{tmp_path}:/usr/bin:/bin")
    outcome = outcome_of(executor, {"unit": "good.service", "action": "stop"})
    assert outcome.result == "succeeded"
    assert outcome.seconds >= 0.2
    outcome = outcome_of(executor, {"unit": "bad.service", "action": "start"})
    assert (outcome.result, outcome.reason) == ("failed", "it ended with exit code 1: Job for bad.service failed.")
    assert (tmp_path / "calls").read_text() == (
        "--no-ask-password stop -- good.service\n--no-ask-password start -- bad.service\n"
    )


def test_a_request_with_a_credential_of_systemd(executor: Executor, certificate: Path, tmp_path: Path) -> None:
    (tmp_path / "webhook").write_text(f"{TOKEN}\n")
    (tmp_path / "webhook").chmod(0o400)
    settings = HookSettings(ca_file=str(certificate), credentials_directory=str(tmp_path))
    with Webhook(tls=server_context(certificate)) as server:
        outcome = outcome_of(executor, {"http": server.url, "bearer": {"credential": "webhook"}}, settings)
    assert (outcome.result, outcome.output) == ("succeeded", f"{server.url}: answered 200\n")
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert json.loads(request.body)["event"] == EVENT.as_dict()
    assert json.loads(request.body)["forewarn"] == {"schema": "hook", "version": 1}


def test_nobody_sees_the_secret(executor: Executor, tmp_path: Path) -> None:
    """Other users see arguments; the same user and root see the environment, too."""
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    secret.chmod(0o600)
    with Webhook(HANG) as server:
        hook = {"http": f"{server.url}?key=QUERY", "bearer": {"file": str(secret)}}
        started = executor.start(1, command(hook, OCCASION, HookSettings(), PATIENCE_SECONDS))
        assert started is not None
        wait_until(lambda: server.requests, PATIENCE_SECONDS, what="no request came")
        process = Path(f"/proc/{started.pid}")
        public = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        executor.end(1, "enough")
        outcome = wait(executor)
    assert b"hooks.webhook" in public
    for part in (TOKEN, "QUERY", str(server.port), str(secret)):
        assert part.encode() not in public
    assert TOKEN not in repr(outcome)
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("form", ["directory", "pyz"])
@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_a_request_by_each_python(version: str, form: str, package: Path, pyz: Path, certificate: Path) -> None:
    root = package.parent if form == "directory" else pyz
    with Webhook(Answer(503), Answer(200), tls=server_context(certificate)) as server:
        answer = drive(version, root, {"http": server.url}, ca_file=str(certificate))
    assert answer["outcome"].output == f"{server.url}: answered 200 (2 tries)\n"
    assert answer["outcome"].result == "succeeded"
    assert answer["ssl"] is False  # the runner itself needs none
    runs = bundle.version() if form == "pyz" else __version__
    assert [request.headers["user-agent"] for request in server.requests] == [f"forewarn/{runs}"] * 2


@pytest.mark.versions
@pytest.mark.parametrize("version", [SUPPORTED[0], SUPPORTED[-1]])
def test_a_gigabyte_in_little_memory(version: str, package: Path) -> None:
    script = "echo first; head -c 1000000000 /dev/zero; echo last"
    answer = drive(version, package.parent, {"run": ["sh", "-c", script]})
    assert answer["outcome"].result == "succeeded"
    assert answer["outcome"].output.startswith("first\n")
    assert answer["outcome"].output.endswith("last\n")
    assert answer["kilobytes"] < 2048


def test_a_relative_path_to_the_runner(pyz: Path, certificate: Path) -> None:
    """``python3 forewarn.pyz run`` from the directory it lies in: the hook starts in another one."""
    with Webhook(tls=server_context(certificate)) as server:
        work = json.dumps({"hook": {"http": server.url}, "settings": {"ca_file": str(certificate)}})
        run = [sys.executable, "-I", "-S", "-c", DRIVER, pyz.name, work]
        result = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True, cwd=pyz.parent)
    assert json.loads(result.stdout)["outcome"][0] == "succeeded"


def test_hooks_do_not_block_the_starting_thread(executor: Executor, tmp_path: Path) -> None:
    """They end only later: one does not read its large input, one prints without end, the others wait."""
    go_on = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
    scripts = [go_on, f"yes & {go_on}; kill $!", *[f"cat >/dev/null; {go_on}"] * 10]
    for number, script in enumerate(scripts):
        occasion = OCCASION._replace(decision={**DECISION, "reason": "x" * 1_000_000})
        executor.start(number, command({"run": ["sh", "-c", script]}, occasion, HookSettings(), PATIENCE_SECONDS))
    assert executor.take_results() == []
    assert executor.running == len(scripts)
    (tmp_path / "go").touch()
    results: list[str] = []
    while len(results) < len(scripts):
        ended = wait_until(executor.take_results, PATIENCE_SECONDS, what="a hook has not ended")
        results.extend(outcome.result for _token, outcome in ended)
    assert results == ["succeeded"] * len(scripts)

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run --check-config`` says of any configuration what a runner says that starts with it, or reloads it."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from forewarn.cli.doctor.linux import machine as doctor_machine
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.policy.artifact import with_source
from tools.servers.listener_client import free_port
from tools.sites.commands import in_process
from tools.sites.runner_process import Start, compiled, program
from tools.sites.waiting import wait_until
from tools.suite.sizes import SEED, SIZE

GOOD = """
name: freezes
params:
  - {name: tolerable, type: int, default: 9, min: 1}
  - {name: until, type: timestamp, default: "2030-01-01T00:00:00Z"}
rule:
  match:
    - {id: brief, condition: "event.DurationInSeconds < params.tolerable && now < params.until", output: approve}
"""
OTHER = GOOD.replace("freezes", "other").replace("approve", "hold")
SOURCE = {"repository": "https://git.example/p.git", "ref": "v3", "commit": "a" * 40, "paths": ["."], "modified": True}


class Host:
    """A VM on which a runner works: each configuration is checked, then reloaded by it, then started with."""

    def __init__(self, directory: Path, server: EmulatorServer, start: Start) -> None:
        directory.chmod(0o700)
        self.directory = directory
        self.endpoint = server.vm_endpoint("web_1")
        self._start = start
        self._chance = Random(SEED)
        self._config = directory / "config.json"
        compiled(directory, GOOD, "good")
        compiled(directory, OTHER, "other")
        (directory / "damaged.json").write_text((directory / "good.json").read_text().replace('"approve"', '"hold"'))
        (directory / "open.json").write_bytes((directory / "good.json").read_bytes())
        (directory / "open.json").chmod(0o666)
        (directory / "ca.pem").write_text("")
        (directory / "file").write_text("")
        self._config.write_text('{"artifact": "good.json"}')
        self._lives = start("--config", str(self._config))
        self._lives.wait_for("started")

    def _files(self) -> list[Path]:
        """Return all files but those of the runner that lives."""
        return sorted(path for path in self.directory.rglob("*") if "state-web_0" not in path.parts)

    def _reloaded(self) -> str | None:
        def lines() -> list[dict[str, Any]]:
            return [line for line in self._lives.lines if line["line"] in ("reloaded", "reload-failed")]

        before = len(lines())
        self._lives.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(lines()) > before)
        return lines()[-1].get("reason")

    def _started(self) -> str | None:
        runner = self._start("--config", str(self._config), vm="web_1")
        wait_until(lambda: any(line["line"] == "started" for line in runner.lines) or runner.process.poll() is not None)
        if any(line["line"] == "started" for line in runner.lines):
            assert runner.stop() == (0, "")
            return None
        code, error = runner.end()
        assert code == 2, error
        assert "Traceback" not in error
        return error

    def judged_alike(self, config: str | bytes, one_of_many: bool = False) -> bool:
        """Return whether a configuration is fine, in which all three agree.

        With ``one_of_many`` a runner starts with it only in some runs at size small, by their seed.
        """
        content = config if isinstance(config, bytes) else config.encode()
        self._config.write_bytes(content)
        # The same environment and options as ``_started`` has.
        options = ["run", "--log-format", "json", "--config", str(self._config), "--check-config", "--json"]
        state = str(self.directory / "state-web_1")
        before = self._files()
        done = in_process(*options, FOREWARN_ENDPOINT=self.endpoint, STATE_DIRECTORY=state)
        assert self._files() == before
        said = json.loads(done.stdout)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert said["config"] == (digest if len(content) <= 1024 * 1024 else None)
        starts = not one_of_many or self._chance.random() * 100 < SIZE.started_configurations_percent
        reloaded = self._reloaded()
        started = self._started() if starts else reloaded
        if said["usable"]:
            assert (said["error"], done.returncode, reloaded, started) == (None, 0, None, None), config
        else:
            assert done.returncode == 2
            assert reloaded is not None, (config, said)
            assert started is not None, (config, said)
            assert said["error"].startswith(reloaded)
            assert reloaded in started
        return bool(said["usable"])


@pytest.fixture
def host(tmp_path: Path, server: EmulatorServer, start: Start) -> Host:
    """Return a VM with a runner."""
    return Host(tmp_path, server, start)


# Option -> values with which a runner works, and values with which it does not.
OPTIONS: dict[str, tuple[list[Any], list[Any]]] = {
    "artifact": (
        ["other.json", "./good.json"],
        ["missing.json", "damaged.json", "open.json", "good.yml", "", ".", 5, None, "a\0b", "\ud800", ["good.json"]],
    ),
    "params": (
        [{}, {"tolerable": 3}, {"until": "2031-01-01T00:00:00Z"}],
        [{"tolerable": "3"}, {"tolerable": 0}, {"nobody": 1}, {"until": "soon"}, {"tolerable": None}, [], "x", 1],
    ),
    "interval": ([1, 5, 2.5, 60], [500, "5", 0, -1, 60.5, True, None, float("nan"), float("inf"), 10**400, [5]]),
    "probe_lead": ([0, 60, 3600.0], [-1, 3601, "60", False, float("nan")]),
    "log_format": (["auto"], [5, None, ""]),
    "vm_name": (["web_1", "größe"], ["", " ", 7, "a\0b", "\udc80"]),
    "dry_run": ([False], ["yes", 0, None]),
    "state": ([], ["file", "file/below", "", 3, "a\0b"]),
    "shadow": (["other.json"], ["missing.json", "damaged.json", "open.json", 1]),
    "metrics_file": (["metrics.prom"], ["", 1, "\ud800"]),
    "metrics_listen": ([], ["0.0.0.0:9750", "127.0.0.1", "127.0.0.1:70000", "localhost:x", "", 9750]),
    "probe_listen": ([], ["9780", "host:9780", "127.0.0.1:99999", "", 9780]),
    "endpoint": ([], ["https://127.0.0.1", "http://192.0.2.1", "127.0.0.1", "http://127.0.0.1/metadata", "", 1]),
    "allow_endpoint": ([True, False], ["true", 1]),
    "hook_proxy": (["http://proxy.example.com:3128"], ["proxy.example.com:3128", "https://proxy", "", 3128]),
    "hook_ca_file": (["ca.pem"], ["missing.pem", "", 1]),
    "sink_url": (["http://127.0.0.1:9/v1/logs"], ["127.0.0.1:4318", "ftp://x", "https://user@x", "", 1]),
    "sink_format": ([], ["xml", "", 1]),
    "sink_bearer_file": ([], ["", 1]),
    "sink_credential": ([], ["../token", "", 1]),
    "api_version": (["2020-07-01"], ["2019-08-01", "latest", "", 1]),
    "policy": ([], [["good.yml"], "good.yml", [], [""], [1]]),
    "intervall": ([], [5]),
}


def test_each_mistake_is_found_as_the_runner_does(host: Host) -> None:
    good: dict[str, Any] = {"artifact": "good.json"}
    for name, (_right, wrong) in OPTIONS.items():
        for value in wrong:
            assert not host.judged_alike(json.dumps({**good, name: value}), one_of_many=True), (name, value)
    for text in ("", "{", "[]", "null", '{"artifact": "good.json",}', '{"artifact": "good.json"} x', "[" * 100_000):
        assert not host.judged_alike(text, one_of_many=True)
    for content in (b"\xff\xfe", b'{"vm_name": "\xff", "artifact": "good.json"}', b"{" + b" " * 1024 * 1024 + b"}"):
        assert not host.judged_alike(content, one_of_many=True)


def test_the_message_names_the_option(hooks: Hooks) -> None:
    for name, value in (("metrics_listen", "0.0.0.0:1"), ("probe_listen", "9780"), ("hook_proxy", "proxy:3128")):
        hooks.config.write_text(json.dumps({"artifact": "policy.json", "state": "state", name: value}))
        error = hooks.check(code=2)["error"]
        assert error.startswith(name)
        assert value in error


def test_configurations_at_random(host: Host, server: EmulatorServer) -> None:
    """What is fine alone is fine together, and one mistake among them is found."""
    random = Random(20261123)
    there: dict[str, list[Any]] = {
        **{name: right for name, (right, _wrong) in OPTIONS.items()},
        "state": ["state-web_1"],
        "endpoint": [host.endpoint],
        "metrics_listen": [f"127.0.0.1:{free_port()}", f"localhost:{free_port()}"],
        "probe_listen": [f"127.0.0.1:{free_port()}"],
    }
    verdicts = []
    for number in range(24):
        names = [name for name, right in there.items() if right and name != "artifact" and random.random() < 0.4]
        config = {"artifact": "good.json", **{name: random.choice(there[name]) for name in names}}
        if number % 2:
            name = random.choice(sorted(OPTIONS))
            config[name] = random.choice(OPTIONS[name][1])
        config = dict(random.sample(sorted(config.items()), len(config)))
        usable = host.judged_alike(json.dumps(config, indent=random.choice([None, 1])), one_of_many=True)
        assert usable is (number % 2 == 0), config
        verdicts.append(usable)
    assert set(verdicts) == {True, False}


def test_policies_that_are_compiled_on_the_spot(host: Host) -> None:
    assert host.judged_alike('{"policy": ["good.yml"], "params": {"tolerable": 2}}')
    assert not host.judged_alike('{"policy": ["good.yml", "nowhere.yml"]}')
    assert not host.judged_alike('{"policy": ["good.yml"], "params": {"tolerable": "2"}}')
    (host.directory / "good.yml").write_text(GOOD.replace("params.tolerable &&", "params.tolerabel &&"))
    assert not host.judged_alike('{"policy": ["good.yml"]}')


def test_state_directory_mode_must_match_dry_run(host: Host) -> None:
    assert host.judged_alike('{"artifact": "good.json", "dry_run": true}')
    assert host.judged_alike('{"artifact": "good.json", "state": "state-web_1/dry-run", "dry_run": true}')
    assert not host.judged_alike('{"artifact": "good.json", "state": "state-web_1/dry-run"}')
    assert host.judged_alike('{"artifact": "good.json", "state": "state-web_1"}')
    assert not host.judged_alike('{"artifact": "good.json", "state": "state-web_1", "dry_run": true}')
    (host.directory / "state-web_1").chmod(0o777)
    assert not host.judged_alike('{"artifact": "good.json", "state": "state-web_1"}')


DRAINS = """
name: drains
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot"
      output: approve
      prepare: [{{run: [{hook}, now]}}, {{unit: drained.service, action: stop}}]
      recover: [{{run: [{hook}, undo]}}]
      notify:
        - {{http: "https://hooks.example.com/x?token=hunter2", bearer: {{credential: pager}}}}
        - {{http: "https://hooks.example.com/y", bearer: {{file: {secret}}}}}
    - {{id: rest, output: hold, notify: [{{run: [sh, -c, "true"]}}]}}
"""


class Hooks:
    """A policy with hooks of each kind, and what they need."""

    def __init__(self, directory: Path) -> None:
        directory.chmod(0o700)
        self.program = program(directory / "drain", "true")
        self.secret = directory / "secret"
        self.secret.write_text("hunter2")
        self.secret.chmod(0o600)
        self.artifact = compiled(directory, DRAINS.format(hook=self.program, secret=self.secret))
        self.config = directory / "config.json"
        self.config.write_text('{"artifact": "policy.json", "state": "state"}')

    def check(
        self, *options: str, code: int, credentials: object = "", endpoint: str = "http://127.0.0.1:9"
    ) -> dict[str, Any]:
        """Return what ``--check-config --json`` writes, and expect that exit code."""
        command = ["run", "--config", self.config, "--check-config", "--json", *options]
        done = in_process(*command, FOREWARN_ENDPOINT=endpoint, CREDENTIALS_DIRECTORY=str(credentials))
        assert (done.returncode, done.stderr) == (code, "")
        said: dict[str, Any] = json.loads(done.stdout)
        return said


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """Return a policy with hooks, on a machine without systemd."""
    monkeypatch.setattr(doctor_machine, "SEARCH_PATH", str(tmp_path / "no-systemd"))
    return Hooks(tmp_path)


def problems(said: dict[str, Any]) -> list[str]:
    return [entry["problem"] for entry in (*said["hooks"], *said["credentials"]) if entry["problem"]]


def test_what_hooks_need_is_listed(hooks: Hooks) -> None:
    hooks.artifact.write_bytes(with_source(hooks.artifact.read_bytes(), SOURCE))
    said = hooks.check("--credential", "other", "--credential", "pager", code=0)
    assert said["forewarn"] == {"schema": "check-config", "version": 1}
    assert (said["version"], said["usable"], said["error"], said["api_version"]) == (1, True, None, "2020-07-01")
    assert (said["policies"], said["source"]) == (["drains"], SOURCE)
    assert said["policy"] == json.loads(hooks.artifact.read_text())["digest"]
    place = {"policy": "drains", "rule": "drain", "problem": None}
    assert said["hooks"] == [
        {"kind": "run", "name": str(hooks.program), **place},
        {"kind": "unit", "name": "drained.service", **place},
        {"kind": "http", "name": "https://hooks.example.com/x?token=…", **place},
        {"kind": "http", "name": "https://hooks.example.com/y", **place},
        {"kind": "run", "name": "sh", "policy": "drains", "rule": "rest", "problem": None},
    ]
    assert said["credentials"] == [{"name": "pager", **place}]
    assert said["missing"] == []


def test_a_credential_is_given_or_promised(hooks: Hooks, tmp_path: Path) -> None:
    (said,) = problems(hooks.check(code=1))
    assert said.startswith("there is no credential pager: the runner has none; add LoadCredential=pager:")
    given = tmp_path / "credentials"
    given.mkdir()
    (said,) = problems(hooks.check(code=1, credentials=given))
    assert said.startswith(f"there is no credential pager in {given}")
    (given / "pager").write_text("x")
    (given / "pager").chmod(0o604)
    (said,) = problems(hooks.check(code=1, credentials=given))
    assert "readable by everybody" in said
    (given / "pager").chmod(0o400)
    assert not problems(hooks.check(code=0, credentials=given))


def _make_directory(hooks: Hooks) -> None:
    hooks.program.unlink()
    hooks.program.mkdir()


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda hooks: hooks.program.unlink(), "there is no program"),
        (lambda hooks: hooks.program.chmod(0o644), "may not be executed"),
        (_make_directory, "is not a regular file"),
        (lambda hooks: hooks.secret.unlink(), "No such file"),
    ],
)
def test_missing_hook_program_exits_with_1(
    hooks: Hooks, spoil: Callable[[Hooks], None], what: str, start: Start, tmp_path: Path
) -> None:
    spoil(hooks)
    found = hooks.check("--credential", "pager", code=1)
    (said,) = problems(found)
    assert what in said
    assert found["missing"] == [f"rule drain of policy drains: {said}"]
    runner = start("--config", str(hooks.config))
    runner.wait_for("hook-missing", reason=f"rule drain of policy drains: {said}")
    assert runner.stop()[0] == 0
    assert hooks.check("--dry-run", "--state", str(tmp_path / "dry"), code=0)["hooks"] == []


def test_program_writable_by_others_is_refused(hooks: Hooks, start: Start) -> None:
    hooks.program.chmod(0o777)
    said = hooks.check("--credential", "pager", code=2)
    assert not said["usable"]
    assert "is writable by" in said["error"]
    assert problems(said) == [said["error"]]
    code, error = start("--config", str(hooks.config)).end()
    assert code == 2
    assert said["error"].partition(". Run:")[0] in error


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ("loaded", None),
        ("not-found", "unit drained.service: systemd knows no such unit"),
        ("masked", None),  # it is to be stopped
        ("bad-setting", "unit drained.service: the unit's file has a setting that systemd refuses"),
        ("", None),
    ],
)
def test_units_are_looked_up_where_there_is_systemd(
    hooks: Hooks, state: str, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemctl = program(tmp_path / "systemctl", f'echo "$@" >> {tmp_path}/asked; echo LoadState={state}')
    asked = tmp_path / "asked"
    assert hooks.check("--credential", "pager", code=0)["hooks"][1]["problem"] is None
    assert not asked.exists()
    monkeypatch.setattr(doctor_machine, "SEARCH_PATH", str(systemctl.parent))
    said = hooks.check("--credential", "pager", code=0 if problem is None else 1)
    assert said["hooks"][1]["problem"] == problem
    assert asked.read_text() == "show --property=LoadState -- drained.service\n"


def test_for_people(hooks: Hooks) -> None:
    def check(*options: str) -> tuple[int, str, str]:
        done = in_process("run", "--config", hooks.config, "--check-config", *options)
        return done.returncode, done.stdout, done.stderr

    code, out, err = check("--credential", "pager")
    assert (code, err) == (0, "")
    assert out.startswith("usable: 1 policy (drains), sha256:")
    hooks.program.unlink()
    code, out, err = check()
    assert (code, err) == (1, "")
    first, second = out.splitlines()
    assert first == f"warning: rule drain of policy drains: there is no program {hooks.program}"
    assert second.startswith("warning: rule drain of policy drains: there is no credential pager")
    hooks.config.write_text('{"artifact": "policy.json", "interval": 500}')
    code, out, err = check()
    assert (code, out) == (2, "")
    assert err.startswith("error: the interval is not between 1s")
    done = in_process("run", "--config", hooks.config, "--json")
    assert (done.returncode, "belong to --check-config" in done.stderr) == (2, True)


def test_nothing_is_locked_and_nobody_asked(hooks: Hooks, start: Start, emulator: EmulatorClient) -> None:
    """It can be asked while the runner runs that it speaks of, and the service hears nothing of it."""
    endpoint = emulator.vm_endpoint("web_1")
    runner = start("--config", str(hooks.config))
    runner.wait_for("document")
    assert hooks.check("--credential", "pager", code=0, endpoint=endpoint)["usable"]
    assert runner.stop()[0] == 0
    assert not [entry for entry in emulator.requests() if entry.get("vm") == "web_1"]

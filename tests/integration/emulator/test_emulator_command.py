# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn emulate`` as a process, asked by curl and by requests."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from forewarn.emulator.client import EmulatorClient
from tools.sites.commands import FOREWARN, forewarn, run_program
from tools.sites.waiting import wait_until
from tools.suite.sizes import in_turn

pytestmark = pytest.mark.in_turn(2)

TARGET = "/metadata/scheduledevents?api-version=2020-07-01"


@contextlib.contextmanager
def emulating(tmp_path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command on a free port; the URL comes from its ready file."""
    ready = tmp_path / "ready"
    command = [*FOREWARN, "emulate", "--port", "0", "--ready-file", str(ready), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: ready.exists() or process.poll() is not None)
            assert ready.exists(), process.communicate()
            yield process, ready.read_text().strip()
        finally:
            process.kill()


def refused(*options: str) -> str:
    result = forewarn("emulate", *options)
    assert result.returncode == 2
    assert result.stdout == ""
    return result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_logs_requests_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with emulating(tmp_path, "--vm", "web_0", "--vm", "web_1") as (process, url):
        with EmulatorClient(url) as client:
            event = client.schedule("Reboot", "web_1")
            assert requests.get(url + TARGET, headers={"Metadata": "true"}, timeout=10).status_code == 200
            assert requests.get(url + TARGET, timeout=10).status_code == 400
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"Emulating Scheduled Events at {url}"
    assert f"  web_0: {url}/vm/web_0 (the default)" in lines
    assert f"  curl -H Metadata:true '{url}{TARGET}'" in lines
    assert any(line.endswith(f"{event} scheduled Reboot of web_1") for line in lines)
    assert any(" web_0 GET /metadata/scheduledevents 2020-07-01 200 incarnation 2 " in line for line in lines)
    assert any(" 400 (The header 'Metadata: true' is missing.) " in line for line in lines)
    assert lines[-1] == "Stopped."
    assert "\x1b" not in out
    assert not (tmp_path / "ready").exists()


def test_names_for_the_control_api(tmp_path: Path) -> None:
    with emulating(tmp_path, "--allow-host", "one.test", "--allow-host", "two.test") as (_process, url):
        for host, status in (("one.test", 200), ("two.test:80", 200), ("three.test", 403)):
            answer = requests.get(f"{url}/emulator/v1/state", headers={"Host": host}, timeout=10)
            assert answer.status_code == status
    assert "is not the name or address of a host" in refused("--allow-host", "one.test/")


def test_json_lines(tmp_path: Path) -> None:
    with emulating(tmp_path, "--json", "--vm", "a", "--time-scale", "1000") as (process, url):
        with EmulatorClient(url) as client:
            client.schedule("Preempt", notice_seconds=0)
            requests.get(url + TARGET, headers={"Metadata": "true"}, timeout=10)
            wait_until(lambda: client.state()["events"][0]["status"] == "Finished")
        process.terminate()
        out, _err = process.communicate(timeout=10)
    lines = [json.loads(line) for line in out.splitlines()]
    assert all(line["forewarn"] == {"schema": "emulate", "version": 1} for line in lines)
    assert [line["event"] for line in lines[:1] + lines[-1:]] == ["listening", "stopped"]
    assert lines[0]["vms"] == {"a": f"{url}/vm/a"}
    kinds = [line["kind"] for line in lines if line["event"] == "transition"]
    assert sorted(kinds) == ["enabled", "finished", "scheduled", "started"]
    (request,) = [line for line in lines if line["event"] == "request"]
    assert (request["vm"], request["status"]) == ("a", 200)


def test_log_shows_transitions_without_requests(tmp_path: Path, repository: Path) -> None:
    scenario = repository / "docs" / "scenarios" / "live-migration.yml"
    with emulating(tmp_path, "--scenario", str(scenario), "--time-scale", "600") as (process, _url):
        assert process.stdout is not None
        found = []
        for line in process.stdout:
            found.append(line)
            if "finished" in line:
                break
        kinds = [line.split()[2] for line in found if "C7061BAC" in line]
        assert kinds == ["scheduled", "started", "finished"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_se30_curl_as_in_the_documentation(tmp_path: Path) -> None:
    """curl sends its form type with -d, and that is fine."""
    with emulating(tmp_path) as (_process, url):

        def curl(*options: str) -> str:
            command = ["curl", "-sS", "-w", " %{http_code}", "-m", "10", *options]
            return run_program(*command).stdout

        assert curl(url + TARGET).endswith(" 400")
        assert curl("-H", "Metadata:true", url + TARGET) == '{"DocumentIncarnation": 1, "Events": []} 200'
        made = curl("-H", "Content-Type:application/json", "-d", '{"type": "Reboot"}', url + "/emulator/v1/events")
        event = json.loads(made.rpartition(" ")[0])["event_id"]
        body = json.dumps({"StartRequests": [{"EventId": event}]})
        assert curl("-H", "Metadata:true", "-d", body, url + TARGET) == " 200"
        assert curl("-H", "Metadata:true", "-d", body.replace(event, "nonsense"), url + TARGET).endswith(" 400")


def test_a_reader_that_goes_away_ends_it(tmp_path: Path) -> None:
    with emulating(tmp_path) as (process, url):
        assert process.stdout is not None
        process.stdout.close()
        with contextlib.suppress(requests.RequestException):
            requests.get(url + TARGET, headers={"Metadata": "true"}, timeout=10)
        assert process.wait(10) == 141
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.in_turn(1)  # in_turn takes some of its cases
@pytest.mark.parametrize("form", in_turn([[], ["--json"]]))
def test_stalled_log_reader_blocks_neither_requests_nor_exit(tmp_path: Path, form: list[str]) -> None:
    with emulating(tmp_path, *form) as (process, url):  # nobody reads, and a pipe has room for 64 KiB
        for _ in range(1000):
            answer = requests.get(url + TARGET + "&more=" + "x" * 2000, headers={"Metadata": "true"}, timeout=10)
            assert answer.status_code
        process.terminate()
        assert process.wait(10) == 0
        assert process.stdout is not None
        assert "mulat" in process.stdout.readline()


def test_bad_usage(tmp_path: Path) -> None:
    assert "can be reached from other machines" in refused("--listen", "0.0.0.0:0")
    assert "add --allow-remote" in refused("--vm-listen", "vm_0=169.254.169.254:80")
    assert "is not HOST:PORT" in refused("--listen", "8000")
    assert "is not a port" in refused("--port", "70000")
    assert "out of range" in refused("--port", "0", "--time-scale", "-1")
    assert "no '='" in refused("--vm-listen", "127.0.0.1:1")
    assert "there is no VM 'x'" in refused("--port", "0", "--vm-listen", "x=127.0.0.1:0")
    assert "--rate-limit is negative" in refused("--rate-limit", "-1")
    (tmp_path / "s.yml").write_text("timeline:\n  - at: soon\n    cancel: x\n")
    scenario = str(tmp_path / "s.yml")
    assert f"{scenario}:2:5: 'soon' is not a duration" in refused("--scenario", scenario)
    assert "Give one of them" in refused(
        "--scenario", str(Path(__file__).parents[3] / "docs/scenarios/scale-in.yml"), "--vm", "a"
    )


def test_a_vm_with_a_port_of_its_own(tmp_path: Path) -> None:
    with emulating(tmp_path, "--vm", "a", "--vm", "b", "--vm-listen", "b=127.0.0.1:0") as (process, _url):
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        own = lines[2].split()[1]
        assert lines[2].startswith("  b: http://127.0.0.1:")
        response = requests.get(
            own + "/metadata/instance?api-version=2021-02-01", headers={"Metadata": "true"}, timeout=10
        )
        assert response.json()["compute"]["name"] == "b"

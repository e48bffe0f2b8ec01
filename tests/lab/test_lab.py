# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab itself: hosts are what they say, reboots keep the disk, and the metadata address stays where it belongs."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import listen
from .lab import Lab, Start
from .machine import LabError
from .places import METADATA, Place, own_network

ASK = (
    'python3 -c "import urllib.request as u; print(u.urlopen(u.Request('
    f"'http://{METADATA}/metadata/scheduledevents?api-version=2020-07-01', headers={{'Metadata': 'true'}}"
    ')).read().decode())"'
)
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


def addresses() -> str:
    return subprocess.run(["ip", "address"], capture_output=True, text=True, check=True).stdout


def running_since(pid: str) -> str | None:
    """Return when a process began, None if it has ended.

    Its number may be another's by then, or be kept for a parent who has not asked for it yet, as a zombie.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def test_each_release_has_its_python_and_systemd(lab: Lab) -> None:
    found = {}
    for host in lab.hosts:
        version = host.ssh("systemctl --version").stdout.split()[1]
        found[host.suite] = (host.ssh("python3 --version").stdout.split()[1].rpartition(".")[0], version)
    assert found == {"bullseye": ("3.9", "247"), "bookworm": ("3.11", "252"), "trixie": ("3.13", "257")}


def test_each_host_is_another_machine(lab: Lab) -> None:
    for command in ("cat /etc/machine-id", "hostname", BOOT_ID):
        assert len({host.ssh(command).stdout for host in lab.hosts}) == len(lab.hosts), command


def test_hosts_see_one_document_each_as_itself(lab: Lab) -> None:
    """This machine does not have the metadata address."""
    event_id = lab.emulator.schedule("Reboot", ["web_1"])
    lab.emulator.clear_requests()
    for host in lab.hosts:
        (event,) = json.loads(host.ssh(ASK).stdout)["Events"]
        assert (event["EventId"], event["Resources"]) == (event_id, ["web_1"])
    assert [entry["vm"] for entry in lab.emulator.requests()] == [host.name for host in lab.hosts]
    lab.emulator.cancel(event_id)
    assert METADATA not in addresses()


def test_reboot_keeps_the_disk_and_resets_clocks(lab: Lab) -> None:
    host = lab.host("web_2")
    host.write("kept\n", "/var/lib/lab/file", 0o600)
    before = host.ssh(BOOT_ID).stdout
    asked = time.monotonic()
    host.reboot()
    assert host.ssh(BOOT_ID).stdout != before
    uptime = float(host.read("/proc/uptime").split()[0])
    assert uptime < time.monotonic() - asked + 1  # its clock begins within its first second
    assert host.ssh("stat --format='%a %s' /var/lib/lab/file").stdout == "600 5\n"
    host.cut_power()
    host.start()
    assert host.read("/var/lib/lab/file") == "kept\n"


def test_a_reset_is_a_new_machine(lab: Lab) -> None:
    host = lab.host("web_1")
    host.write("gone", "/var/lib/lab/file")
    before = host.read("/etc/machine-id")
    host.reset()
    assert host.read("/etc/machine-id") != before
    assert host.ssh("test -e /var/lib/lab/file", check=False).returncode == 1


def test_a_frozen_host_does_nothing_and_goes_on(lab: Lab) -> None:
    host = lab.host("web_0")
    host.ssh("systemd-run --quiet --unit=ticks sh -c 'while sleep 0.1; do date +%s.%N >> /run/ticks; done'")
    host.wait_for(lambda: "." in host.ssh("cat /run/ticks", check=False).stdout)
    host.freeze(2)

    def longest() -> float:
        times = [float(line) for line in host.read("/run/ticks").splitlines()[:-1]]  # the last may be half written
        return max((later - earlier for earlier, later in zip(times, times[1:], strict=False)), default=0)

    host.wait_for(lambda: longest() > 1.9)
    host.ssh("systemctl stop ticks")


def test_what_fails_says_where_and_why(lab: Lab) -> None:
    host = lab.host("web_0")
    with pytest.raises(LabError, match=r"web_0 \(bullseye\): 'echo out; false' ended with 1:\nout"):
        host.ssh("echo out; false")
    assert host.ssh("exit 3", check=False).returncode == 3
    with pytest.raises(LabError, match=r"nothing within 0\.1 s; its journal ends:\n"):
        host.wait_for(lambda: False, timeout=0.1)


def lab_process(repository: Path) -> subprocess.Popen[str]:
    """Return a process with a joined lab: it has written its processes, and ends in order when its stdin is closed."""
    script = """
import sys
from lab.lab import Lab
with Lab({"web_0": "bookworm"}, joined=True) as lab:
    print(*lab.hosts[0].place.processes(), flush=True)
    sys.stdin.read()
"""
    return subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=repository / "tests",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def processes_of(running: subprocess.Popen[str]) -> dict[str, str]:
    """Return the processes of a lab process' host, and when each began."""
    assert running.stdout
    processes = {pid: begin for pid in running.stdout.readline().split() if (begin := running_since(pid))}
    assert len(processes) > 3
    return processes


def assert_nothing_remains(processes: dict[str, str]) -> None:
    assert not [pid for pid, begin in processes.items() if running_since(pid) == begin]
    # Every place that is left is somebody's: of a place that nobody has, nothing is there.
    for lock in Path("/run/forewarn-lab").glob("*.lock"):
        with lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            assert not lock.with_suffix("").exists()
            assert not Path(f"/run/netns/forewarn-lab-{lock.stem}").exists()
            assert not Path(f"/sys/class/net/fwlab{lock.stem}").exists()


def test_nothing_remains_of_a_run_that_was_killed(start_lab: Start, repository: Path) -> None:
    with lab_process(repository) as killed:
        processes = processes_of(killed)
        killed.kill()
    lab = start_lab({"web_0": "trixie"})  # clears the places, and may take one
    assert lab.host("web_0").ssh("systemctl --version").stdout.split()[1] == "257"
    assert_nothing_remains(processes)


def test_nothing_remains_of_a_run_that_has_ended(start_lab: Start, repository: Path) -> None:
    start_lab({"web_0": "trixie"})  # what runs before this one left is not its fault
    with lab_process(repository) as ended:
        processes = processes_of(ended)
        ended.communicate(timeout=60)
    assert ended.returncode == 0
    assert_nothing_remains(processes)


def test_metadata_address_in_the_own_network_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert listen.main(-1, ":".join(map(str, own_network()))) == 1
    assert "the network of the machine itself" in capsys.readouterr().err


def test_place_without_its_own_namespace_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        place = Place(1, lock)
        place.namespace = Path("/proc/self/ns/net")
        with pytest.raises(LabError, match="this machine's own network"):
            place.listen()

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host: a Debian release with its own systemd as process 1, booted by systemd-nspawn on a disk of its own."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from tools.sites.waiting import PATIENCE_SECONDS

from .machine import LabError, environment
from .places import Place

_BOOT = PATIENCE_SECONDS  # seconds a boot may take; it takes one or two
_FORCED_RESTART = 133  # what systemd-nspawn --keep-unit ends with when the host reboots itself
_TAIL = 2_000

T = TypeVar("T")


def own_name(name: str) -> str:
    """Return the name that the host of a resource has by itself."""
    return name.lower().replace("_", "-")


class Host:
    """A host that runs, or can be started again, until ``remove``.

    ``name`` is its resource name in the emulated service, ``suite`` its image, ``address`` where SSH answers. The
    host's own name differs from ``name``, as it does in Azure. ``peers`` are the hosts of a joined lab, this one too:
    own name -> address. Everything here raises LabError where it fails.
    """

    python = "/usr/bin/python3"
    user = "root"

    def __init__(
        self, name: str, suite: str, image: Path, key: Path, place: Place, peers: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.suite = suite
        self.key = key
        self.place = place
        self.address = place.address
        self.host_name = own_name(name)
        self._peers = dict(peers or {})
        self._image = image
        self._console = place.directory / "console"
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._connection: subprocess.Popen[bytes] | None = None  # which later commands share, for speed
        self._shared = ("-o", f"ControlPath={place.directory}/ssh")

    def __repr__(self) -> str:
        return f"<Host {self.name} {self.suite} {self.address}>"

    @property
    def peer_address(self) -> str:
        """Where the other hosts of a joined lab reach this one. Raises LabError in a lab that is not joined."""
        if self.host_name not in self._peers:
            raise LabError(f"no other host reaches {self.name}: start the lab with joined=True")
        return self._peers[self.host_name]

    # Power.

    def start(self) -> None:
        """Boot, with the disk as it is or a new one, and wait until SSH answers and systemd has started everything."""
        if not self.place.root.exists():
            self.place.insert_disk(self._image)
            self._make_distinct()
        uptime = Path("/proc/uptime").read_text().split(".")[0]
        self.place.make_group()
        command = [
            *("sh", "-c", f'echo $$ > {self.place.group}/cgroup.procs && exec "$@"', "sh"),
            # The clocks begin at each boot, as a machine's do.
            *("unshare", "--time", "--boottime", f"-{uptime}", "--monotonic", f"-{uptime}"),
            *("systemd-nspawn", "--quiet", "--boot", f"--directory={self.place.root}", f"--hostname={self.host_name}"),
            # The name is also that of directories in which systemd-nspawn keeps things: no two hosts may share it.
            f"--machine={self.place.namespace.name}",
            *("--register=no", "--keep-unit", "--link-journal=no", "--console=pipe", "--resolv-conf=off"),
            f"--network-namespace-path={self.place.namespace}",
        ]
        with self._console.open("ab") as console:
            self._supervisor = subprocess.Popen(
                command,
                env={**environment(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait_for_boot()

    def stop(self) -> None:
        """Shut down in order; the disk stays."""
        self._send("poweroff")
        self._wait_for_end()

    def cut_power(self) -> None:
        """End it as a power cut does: no process is warned, nothing is written; the disk stays."""
        self.place.cut_power()
        self._wait_for_end()

    def cut_off(self) -> None:
        """Take its power and its second cable at once: nobody is left who would answer, refuse or close a connection.

        The kernel, which all hosts share, would deliver later what was answered in between: so nothing is.
        """
        self.place.stand_still(True)
        self.place.plug(False)
        self.cut_power()

    def reboot(self) -> None:
        """Reboot in order, and wait until it is up again."""
        self._send("reboot")
        code = self._wait_for_end()
        if code != _FORCED_RESTART:
            raise LabError(f"{self.name} has ended with {code}, not rebooted: {self._last_words()}")
        self.start()

    def reset(self) -> None:
        """Throw the disk away and boot a new machine at the same address."""
        self.cut_power()
        self.place.eject_disk()
        self.start()

    def freeze(self, seconds: float) -> None:
        """Freeze the whole host for some seconds, as for a live migration."""
        self.place.stand_still(True)
        time.sleep(seconds)  # how long the host stands still
        self.place.stand_still(False)

    def remove(self) -> None:
        """End the host and remove every trace of it."""
        self.place.leave()
        if self._supervisor is not None:
            self._wait_for_end()

    # Work on it.

    @property
    def ssh_command(self) -> list[str]:
        """The SSH command and options for this host; the remote command follows them."""
        return ["ssh", *self.ssh_options, f"{self.user}@{self.address}"]

    @property
    def ssh_options(self) -> list[str]:
        """Options for SSH: this host's key, and not the user's configuration."""
        settings = {
            "BatchMode": "yes",
            "ConnectTimeout": "5",
            "IdentitiesOnly": "yes",
            "LogLevel": "ERROR",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
        }
        options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        return ["-F", "/dev/null", "-i", str(self.key), *options]

    def ssh(
        self, command: str, *, check: bool = True, stdin: str | bytes = b"", timeout: float = PATIENCE_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command there as root. With ``check``, a failure raises LabError with what the command wrote."""
        done = self._ssh(command, stdin.encode() if isinstance(stdin, str) else stdin, timeout)
        if check and done.returncode:
            raise LabError(
                f"{self.name} ({self.suite}): {command!r} ended with {done.returncode}:\n"
                f"{done.stdout[-_TAIL:]}{done.stderr[-_TAIL:]}"
            )
        return done

    def copy(self, source: Path, target: str, mode: int = 0o644) -> None:
        """Copy a file there, whole or not at all."""
        self.write(source.read_bytes(), target, mode)

    def write(self, content: str | bytes, target: str, mode: int = 0o644) -> None:
        """Make a file there, whole or not at all, and the directories above it."""
        draft = f"{target}.new"
        write = f"mkdir -p {Path(target).parent} && cat > {draft} && chmod {mode:o} {draft} && mv {draft} {target}"
        self.ssh(f"umask 022 && {write}", stdin=content)

    def read(self, path: str) -> str:
        """Return the text of a file there."""
        return self.ssh(f"cat {path}").stdout

    def properties(self, unit: str, *names: str) -> dict[str, str]:
        """Return properties of a unit, as ``systemctl show`` has them."""
        lines = self.ssh(f"systemctl show --property={','.join(names)} {unit}").stdout.splitlines()
        return dict(line.partition("=")[::2] for line in lines if line)

    def wait_for(self, what: Callable[[], T | None], timeout: float = PATIENCE_SECONDS, every: float = 0.1) -> T:
        """Return the first true answer of ``what``. Raises LabError, with the end of the journal, if there is none.

        ``every`` is a pause in seconds. It is longer where a look is slow: what is waited for needs the processor too.
        """
        deadline = time.monotonic() + timeout
        while (began := time.monotonic()) < deadline:
            found = what()
            if found:
                return found
            time.sleep(max(every, 2 * (time.monotonic() - began)))  # until the next look
        journal = self.ssh("journalctl --no-pager --lines=40", check=False).stdout
        raise LabError(f"{self.name} ({self.suite}): nothing within {timeout:g} s; its journal ends:\n{journal}")

    # Inside.

    def _make_distinct(self) -> None:
        """Write to the new disk what two machines must not share, and who may log in."""
        root = self.place.root
        (root / "etc/machine-id").write_text(uuid.uuid4().hex + "\n")
        (root / "etc/hostname").write_text(self.host_name + "\n")
        # A host of a joined lab knows itself by the address that the others know, as clustered software expects it.
        names = self._peers or {self.host_name: "127.0.1.1"}
        lines = [f"{address} {name}\n" for name, address in names.items()]
        (root / "etc/hosts").write_text("".join(["127.0.0.1 localhost\n", *lines]))
        # The firmware of the machine below says nothing about a host of the lab, which stands for a VM in Azure.
        sessions, units = root / "etc/ssh/sshd_config.d/platform.conf", root / "etc/systemd/system.conf.d/platform.conf"
        sessions.write_text("SetEnv FOREWARN_PLATFORM=azure\n")
        units.parent.mkdir(exist_ok=True)
        units.write_text("[Manager]\nDefaultEnvironment=FOREWARN_PLATFORM=azure\n")
        keys = root / "root/.ssh/authorized_keys"
        keys.parent.mkdir(mode=0o700, exist_ok=True)
        keys.write_text(self.key.with_name("key.pub").read_text())
        keys.chmod(0o600)

    def _send(self, verb: str) -> None:
        self._ssh(
            f"systemctl {verb}", b"", PATIENCE_SECONDS
        )  # the connection may be cut before it ends: its result says nothing

    def _connect(self) -> None:
        """Open the connection that later commands share; where it is broken, they make their own."""
        self._connection = subprocess.Popen(
            # It ends by itself, should this process be killed and the host be removed.
            ["ssh", *self._shared, "-M", "-N", "-o", "ServerAliveInterval=5", *self.ssh_command[1:]],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection.wait()
            self._connection = None

    def _ssh(self, command: str, stdin: bytes, timeout: float) -> subprocess.CompletedProcess[str]:
        words = ["ssh", *self._shared, *self.ssh_command[1:], command]
        try:
            done = subprocess.run(
                words, input=stdin, env=environment(), capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{self.name} ({self.suite}): {command!r} has not ended within {timeout:g} s") from error
        output, errors = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(words, done.returncode, output, errors)

    def _wait_for_boot(self) -> None:
        assert self._supervisor is not None
        deadline = time.monotonic() + _BOOT
        state = ""
        while time.monotonic() < deadline:
            if self._supervisor.poll() is not None:
                raise LabError(f"{self.name} ({self.suite}) does not boot: {self._last_words()}")
            # It answers once all units are started, or at once where systemd cannot be asked yet.
            state = self._ssh("systemctl is-system-running --wait", b"", _BOOT).stdout.strip()
            if state in ("running", "degraded"):
                break
            time.sleep(0.1)  # until the next look
        if state != "running":
            failed = self._ssh("systemctl --failed --no-legend --no-pager", b"", PATIENCE_SECONDS).stdout
            raise LabError(
                f"{self.name} ({self.suite}) is {state or 'not to be reached'}: {failed}{self._last_words()}"
            )
        self._connect()

    def _wait_for_end(self) -> int:
        assert self._supervisor is not None
        try:
            code = self._supervisor.wait(_BOOT)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{self.name} ({self.suite}) does not end: {self._last_words()}") from error
        self._disconnect()
        return code

    def _last_words(self) -> str:
        return self._console.read_text(errors="replace")[-_TAIL:] if self._console.exists() else ""

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up world for each kind of hook, in which somebody undoes at chosen steps what the hook does.

A step is whatever a hook asks its software for: a program, a request, a command on a socket, a look at a file. What is
undone is undone right before the answer. A world knows by itself, without the hook, whether the effect is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from forewarn.hook_kinds import checkpoint, haproxy_api, service_control, systemd, systemd_blocks
from forewarn.hook_kinds.common import work
from forewarn.hook_kinds.common.process import PREPARE, perform
from forewarn.hook_kinds.common.work import HttpReply, ProgramResult, Work
from tools.worlds.fake_services import FakeService, FakeServices
from tools.worlds.fake_systemd import FakeSystemd, FakeUnit

EVENT = {"EventId": "E1", "EventType": "Reboot"}
_LASTS = 2.0  # seconds that software takes to let go of what it does
_MOST_STEPS = 2000


class World:
    """Software whose state is in attributes. Work that has begun lasts until ``busy_until``."""

    kind: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now = 0.0
        self.steps = 0
        self.busy_until = _LASTS
        self.begins = _LASTS  # seconds for which new work keeps what was undone busy: 0, there is none
        self.breaks: Collection[int] = ()
        self.meddle: Callable[[], None] = self.undo

    def holds(self) -> bool:
        """Return whether what a preparation promises is true now."""
        raise NotImplementedError

    def undo(self) -> None:
        """Put back what the hook has drained."""
        raise NotImplementedError

    def recovered(self) -> bool:
        """Return whether what a recovery promises is true now."""
        return True

    def again(self) -> None:
        """Take out of service what the hook has put back."""

    def program(self, words: tuple[str, ...]) -> str:
        """Run a program; return what it writes."""
        raise NotImplementedError(words)

    def request(self, method: str, url: str) -> HttpReply:
        """Answer a request."""
        raise NotImplementedError(method, url)

    @property
    def busy(self) -> bool:
        return self.now < self.busy_until

    def step(self) -> None:
        self.steps += 1
        assert self.steps < _MOST_STEPS, "the hook asks, and time does not pass"
        if self.steps in self.breaks:
            self.meddle()

    def run(
        self, monkeypatch: pytest.MonkeyPatch, phase: str, breaks: Collection[int] = (), seconds: float = 60.0
    ) -> None:
        """Run the hook, whose every contact with its software is a step. Raises HookFailedError."""
        self.steps, self.breaks = 0, breaks
        self.meddle = self.undo if phase == PREPARE else self.again

        def program(_work: Work, *words: str, **_given: object) -> ProgramResult:
            self.step()
            return ProgramResult(0, self.program(words), "")

        def request(_work: Work, method: str, url: str, *_given: object, **_more: object) -> HttpReply:
            self.step()
            return self.request(method, url)

        def sleep(pause: float) -> None:
            self.now += pause

        with monkeypatch.context() as patch:
            patch.setattr(Work, "run", program)
            patch.setattr(Work, "http", request)
            patch.setattr(work, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=sleep))
            self.patch(patch)
            memory = str(self.directory / "memory")
            perform(self.kind, phase, self.options, EVENT, seconds, memory, "127.0.0.1:1", "finished")

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        """Put the world where a kind has another contact with it than programs and requests."""


class Probe(World):
    kind = "probe"
    options: ClassVar = {"wait": 3.0}
    since = 1.0

    def request(self, method: str, url: str) -> HttpReply:
        return HttpReply(503 if self.now >= self.since else 200, "")

    def undo(self) -> None:
        self.since = self.now + 1.0

    def holds(self) -> bool:
        return bool(self.now - self.since >= self.options["wait"])


class HAProxy(World):
    kind = "haproxy"
    options: ClassVar = {"socket": "/x", "server": "web/s1"}
    admin, checked = 0, 0.0

    def undo(self) -> None:
        self.admin, self.busy_until = 0, self.now + self.begins

    def holds(self) -> bool:
        return self.admin == 8 and not self.busy

    def again(self) -> None:
        self.admin = 8

    def recovered(self) -> bool:
        return self.admin == 0 and self.now >= self.checked

    def ask(self, command: str) -> str:
        self.step()
        up = self.now >= self.checked
        if command.startswith("show servers"):
            columns = "be_name srv_name srv_op_state srv_admin_state"
            return f"1\n# {columns}\nweb s1 {2 if up else 0} {self.admin}\n"
        if command == "show stat":
            return f"# pxname,svname,qcur,scur,check_status,\nweb,s1,0,{int(self.busy)},L7OK,\n"
        order = command.partition("web/s1 ")[2]
        if order == "health down":
            self.checked = self.now + _LASTS
        else:
            self.admin = {"state drain": 8, "state ready": 0}[order]
        return "\n"

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(haproxy_api.Server, "_ask", lambda _server, command: self.ask(command))


class Systemd(World):
    """A service, and the socket that triggers it. Somebody allows starts again, and starts both."""

    kind = "systemd"
    options: ClassVar = {"unit": "app.service"}

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.systemd = FakeSystemd(directory / "run")
        self.systemd.drop_ins.mkdir()
        service = FakeUnit("app.service", state="active", needs_socket="app.socket", stops_within=_LASTS)
        self.systemd.add(FakeUnit("app.socket", state="active", triggers="app.service"), service)
        self._ahead = self.systemd.now

    def undo(self) -> None:
        self.systemd.allow()
        for name in self.systemd.units:
            self.systemd.start(name)

    def holds(self) -> bool:
        self._catch_up()
        down = set(self.systemd.states().values()) == {"inactive"}
        return down and not any(map(self.systemd.start, self.systemd.units)) and not self.systemd.storms

    def again(self) -> None:
        for name in self.systemd.units:
            path = self.systemd.drop_ins / f"{name}.d" / "50-forewarn.conf"
            path.parent.mkdir(exist_ok=True)
            path.touch()
        self.systemd.run("systemctl", "--no-ask-password", "daemon-reload")

    def recovered(self) -> bool:
        self._catch_up()
        return set(self.systemd.states().values()) == {"active"} and not any(self.systemd.drop_ins.iterdir())

    def program(self, words: tuple[str, ...]) -> str:
        self._catch_up()
        return self.systemd.run(*words).output

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(systemd_blocks, "DROP_INS", str(self.systemd.drop_ins))
        patch.setattr(systemd, "time", SimpleNamespace(monotonic=lambda: self.systemd.now))

    def _catch_up(self) -> None:
        self.systemd.pause(self._ahead + self.now - self.systemd.now)


class Checkpoint(World):
    kind = "checkpoint"
    options: ClassVar = {"file": "/saved", "run": ["save"], "restore": ["restore"]}
    written, restored = 0.0, False  # when the file was, or will be; 0: never

    def undo(self) -> None:
        self.written = 0.0 if self.holds() else self.written

    def holds(self) -> bool:
        return 0 < self.written <= self.now

    def recovered(self) -> bool:
        return self.restored

    def program(self, words: tuple[str, ...]) -> str:
        if words == ("save",):
            self.written = self.now + _LASTS
        self.restored = self.restored or words == ("restore",)
        return ""

    def stat(self, _path: str) -> SimpleNamespace:
        self.step()
        if not self.holds():
            raise FileNotFoundError
        return SimpleNamespace(st_mtime_ns=int(self.written * 1e9))

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(checkpoint, "os", SimpleNamespace(stat=self.stat))


class Patroni(World):
    kind = "patroni"
    options: ClassVar = {"url": "http://n1", "member": "n1"}
    leader, writable_from = "n1", 0.0

    def undo(self) -> None:
        self.leader, self.writable_from = "n1", self.now

    def holds(self) -> bool:
        return self.leader == "n2" and self.now >= self.writable_from

    def again(self) -> None:
        self.leader, self.writable_from = "n2", self.now + _LASTS

    def recovered(self) -> bool:
        return self.now >= self.writable_from

    def request(self, method: str, url: str) -> HttpReply:
        if method == "POST":
            self.leader, self.writable_from = "n2", self.now + _LASTS
            return HttpReply(200, "")
        if url.endswith("/cluster"):
            roles = {name: "leader" if name == self.leader else "replica" for name in ("n1", "n2")}
            members = {name: {"role": role, "api_url": f"http://{name}/patroni"} for name, role in roles.items()}
            return HttpReply(200, {"members": [{"name": name, **member} for name, member in members.items()]})
        if url.endswith("/leader"):
            return HttpReply(200 if self.leader == "n1" else 503, {})
        name = url.split("/")[2]
        other = "n1" if name == "n2" else "n2"
        leads = name == self.leader and self.now >= self.writable_from
        streams = [{"application_name": other, "state": "streaming"}] if leads else []
        return HttpReply(200, {"state": "running", "role": "primary" if leads else "replica", "replication": streams})


class Slurm(World):
    kind = "slurm"
    options: ClassVar = {"node": "n1"}
    reason = ""  # of a drain

    def undo(self) -> None:
        self.reason, self.busy_until = "", self.now + self.begins

    def holds(self) -> bool:
        return bool(self.reason) and not self.busy

    def again(self) -> None:
        self.reason = "a ticket"

    def recovered(self) -> bool:
        return self.reason in ("", "a ticket")

    def program(self, words: tuple[str, ...]) -> str:
        if words[0] == "squeue":
            return "7 RUNNING\n" if self.busy else ""
        if "show" in words:
            state = ("MIXED" if self.busy else "IDLE") + ("+DRAIN" if self.reason else "")
            return f"NodeName=n1 State={state} SlurmdStartTime=1 Reason={self.reason} [root@now]\n"
        self.reason = "" if "state=resume" in words else words[-1].partition("=")[2]
        return ""


class RabbitMQ(World):
    kind = "rabbitmq"
    maintenance = False

    def undo(self) -> None:
        self.maintenance, self.busy_until = False, self.now + self.begins

    def holds(self) -> bool:
        return self.maintenance and not self.busy

    def again(self) -> None:
        self.maintenance = True

    def recovered(self) -> bool:
        return not self.maintenance

    def program(self, words: tuple[str, ...]) -> str:
        if "status" in words:
            return json.dumps({"is_under_maintenance": self.maintenance})
        if "list_queues" in words:
            return json.dumps([{"name": "orders", "type": "quorum"}] if self.busy else [])
        if words[1] in ("drain", "revive"):
            self.maintenance = words[1] == "drain"
        return ""


class Galera(World):
    kind = "galera"
    running = True

    def undo(self) -> None:
        self.running, self.busy_until = True, self.now

    def holds(self) -> bool:
        return not self.running and not self.busy

    def recovered(self) -> bool:
        return self.running

    def program(self, words: tuple[str, ...]) -> str:
        if words[0] == "mariadb":
            status = {"local_state_comment": "Synced", "cluster_status": "Primary", "cluster_size": 3, "ready": "ON"}
            return "".join(f"wsrep_{name}\t{value}\n" for name, value in status.items())
        if "show" in words:
            state = "active" if self.running else "deactivating" if self.busy else "inactive"
            return f"ActiveState={state}\nJob=\nLoadState=loaded\n"
        self.running, self.busy_until = "start" in words, self.now + _LASTS
        return ""


class Pacemaker(World):
    kind = "pacemaker"
    standby = False

    def undo(self) -> None:
        self.standby, self.busy_until = False, self.now + self.begins

    def holds(self) -> bool:
        return self.standby and not self.busy

    def again(self) -> None:
        self.standby = True

    def recovered(self) -> bool:
        return not self.standby

    def program(self, words: tuple[str, ...]) -> str:
        if "crm_node" in words:
            return "p1\n"
        if "crm_attribute" in words:
            self.standby = "--update" in words
            return ""
        nodes = f'<node name="p1" online="true" standby="{str(self.standby).lower()}"/><node name="p2" online="true"/>'
        where = "p1" if self.busy or not self.standby else "p2"
        resource = f'<resource id="web" managed="true"><node name="{where}"/></resource>'
        return f"<x><nodes>{nodes}</nodes><resources>{resource}</resources></x>"


class Service(World):
    """A service, what needs it, what needs that, and one that does not run. Somebody starts what has stopped."""

    kind = "service"
    options: ClassVar = {"name": "App"}

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        chain = FakeService("App", stops_within=_LASTS), FakeService("Web", ("App",)), FakeService("Report", ("Web",))
        self.manager = FakeServices(*chain, FakeService("Idle", ("App",), "stopped"))

    def undo(self) -> None:
        self._order("start")

    def holds(self) -> bool:
        return set(self._states().values()) == {"stopped"}

    def again(self) -> None:
        self._order("stop")

    def recovered(self) -> bool:
        return self._states() == {"App": "running", "Web": "running", "Report": "running", "Idle": "stopped"}

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        def step() -> None:
            self.manager.now = self.now
            self.step()

        self.manager.step = step
        patch.setattr(service_control, "services", self.manager)

    def _order(self, verb: str) -> None:
        """Start or stop all but what was not running, as somebody else may: without a step of the hook."""
        step, self.manager.step = self.manager.step, lambda: None
        for name in ("App", "Web", "Report") if verb == "start" else ("Report", "Web", "App"):
            getattr(self.manager, verb)(name)
        self.manager.step = step

    def _states(self) -> dict[str, str]:
        self.manager.now = self.now
        return self.manager.states()


WORLDS: dict[str, type[World]] = {world.kind: world for world in World.__subclasses__()}

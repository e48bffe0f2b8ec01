# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the audience sees: a timeline as it happens, and the table at the end."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Sequence

from forewarn.cli.console import Console
from stage import EMULATOR, Line

_ACTOR_WIDTH = 8
_STYLES = {"approve": "green", "hold": "yellow", "yes": "green", "no": "red"}
_HAPPENINGS = {
    "approved": ("has the approval", "green"),
    "started": ("starts it, because of", "cyan"),
    "finished": ("is done with it", "cyan"),
    "cancelled": ("cancels it", "cyan"),
}


class Narrator:
    """Writes the timeline: seconds since the start, who, what. Only events that were introduced are talked about."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # better a question mark than no demo
        self.console = Console(sys.stdout)
        self._begin = time.monotonic()
        self._lock = threading.RLock()
        self._resources: dict[str, Sequence[str]] = {}
        self._bystanders: set[str] = set()

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self._begin

    def introduce(self, event_id: str, resources: Sequence[str]) -> None:
        """Let the timeline follow an event, as its VMs see it."""
        self._resources[event_id] = resources

    def pause(self, seconds: float) -> None:
        """Let people read. Nobody reads a pipe at that speed."""
        if self.console.stream.isatty():
            time.sleep(seconds)

    def act(self, title: str, *texts: str) -> None:
        """Begin an act."""
        with self._lock:
            self.console.line()
            self.console.line(self.console.style(title, "bold"))
            for text in texts:
                self.console.line(f"  {text}")
        self.pause(2.0)

    def say(self, actor: str, text: str, *styles: str) -> None:
        """Write one line of the timeline."""
        with self._lock:
            stamp = self.console.style(f"{self.seconds:6.1f}s", "dim")
            name = self.console.style(f"{actor:<{_ACTOR_WIDTH}}", "bold")
            self.console.line(f"{stamp}  {name}{self.console.style(text, *styles)}")
            self.console.stream.flush()

    def hear(self, line: Line) -> None:
        """Tell what a process wrote, if it is of interest."""
        if line.source == EMULATOR:
            self._hear_platform(line)
        else:
            self._hear_runner(line)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write the table at the end."""
        self.console.line()
        self.console.table(header, rows, _STYLES)

    def _hear_platform(self, line: Line) -> None:
        if line.data["event"] != "transition" or line.data["subject"] not in self._resources:
            return
        if line.data["kind"] in _HAPPENINGS:
            words, style = _HAPPENINGS[line.data["kind"]]
            detail = line.data["detail"].removeprefix("by ")
            if line.data["kind"] == "approved":
                words, detail = f"{words} of {detail}", ""
            self.say("Azure", f"{words} {detail}".rstrip(), style)

    def _hear_runner(self, line: Line) -> None:
        data, vm = line.data, line.source
        name = data["line"]
        if name == "decision":
            self._decision(vm, data["event_id"], data["standing"], data)
        elif name == "event-gone" and vm in self._resources.get(data["event_id"], ()):
            self.say(vm, f"sees it gone: {data['outcome']}", "dim")
        elif name == "poll-failed":
            self.say(vm, f"gets {data['status']} and tries again, less and less often", "yellow")
        elif name == "approval-failed":
            self.say(vm, f"could not approve: {data['reason']}", "red")
        elif name == "poll-recovered":
            self.say(vm, f"has an answer again, after {data['failures']} failures", "green")

    def _decision(self, vm: str, event_id: str, standing: str, data: dict[str, object]) -> None:
        affected = vm in self._resources.get(event_id, ())
        if standing == "not-ours":
            if vm not in self._bystanders:  # once is enough
                self._bystanders.add(vm)
                self.say(vm, f"leaves it alone: {data['reason']}", "dim")
        elif affected and standing == "approve":
            self.say(vm, f"approves · rule {data['rule']} · {data['reason']}", "green")
        elif affected and standing == "refused-by-policy":
            self.say(vm, f"holds · rule {data['rule']} · {data['reason']}", "yellow")
        elif affected and standing != "started":
            self.say(vm, f"lets others approve · {data['reason']}", "yellow")

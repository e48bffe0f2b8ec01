# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the audience sees: a timeline as it happens, and the table at the end."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from forewarn.cli.output.console import Console
from forewarn.cli.output.page import Page, wrap
from stage import EMULATOR, Line

_ACTOR_WIDTH = 10
_PROSE_COLUMNS = 100
_STYLES = {"approve": "green", "hold": "yellow", "yes": "green", "2nd attempt": "green", "no": "red", "failed": "red"}
_HAPPENINGS = {
    "approved": ("has the approval of", "green"),
    "started": ("starts the {}, because of", "cyan"),
    "finished": ("is done with the {}", "cyan"),
    "cancelled": ("cancels the {}", "cyan"),
}


class Narrator:
    """Writes the timeline: seconds since the start, who, what. Only events that were introduced are talked about."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a question mark is better than no demo
        self.console = Console(sys.stdout)
        self._page = Page(self.console)
        self._begin = time.monotonic()
        self._lock = threading.RLock()
        self._types: dict[str, str] = {}
        self._resources: dict[str, Sequence[str]] = {}
        self._bystanders: set[str] = set()

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self._begin

    def introduce(self, event_id: str, event_type: str, resources: Sequence[str]) -> None:
        """Let the timeline follow an event, as its VMs see it."""
        self._types[event_id] = event_type
        self._resources[event_id] = resources

    def pause(self, seconds: float) -> None:
        """Let people read. Nobody reads a pipe at that speed."""
        if self.console.stream.isatty():
            time.sleep(seconds)  # for people to read

    def act(self, title: str, *texts: str) -> None:
        """Begin an act."""
        with self._lock:
            self.console.line()
            self.console.line(self.console.style(title, "bold"))
            for text in texts and wrap(" ".join(texts), min(_PROSE_COLUMNS, self._page.width or _PROSE_COLUMNS) - 2):
                self.console.line(f"  {text}")
        self.pause(2.0)

    def say(self, actor: str, text: str, *styles: str) -> None:
        """Write one entry of the timeline; on a terminal it may take several lines."""
        with self._lock:
            stamp, name = f"{self.seconds:6.1f}s  ", f"{actor:<{_ACTOR_WIDTH}}"
            lead = self.console.style(stamp, "dim") + self.console.style(name, "bold")
            width = self._page.width
            margin = len(stamp) + len(name)
            for part in [text] if width is None else wrap(text, max(20, width - margin)):
                self.console.line(lead + self.console.style(part, *styles))
                lead = " " * margin
            self.console.stream.flush()

    def hear(self, line: Line) -> None:
        """Show a line that a process wrote, if the audience needs it."""
        if line.source == EMULATOR:
            self._hear_platform(line)
        else:
            self._hear_runner(line)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table."""
        self.console.line()
        self.console.table(header, rows, _STYLES)

    def conclude(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], differences: Sequence[str], praise: str
    ) -> int:
        """Write the table at the end, and each difference, or ``praise``; return the exit code."""
        self.table(header, rows)
        self.console.line()
        for difference in differences:
            self.console.error(difference)
        if not differences:
            self.say("", praise, "green")
        return 1 if differences else 0

    def _hear_platform(self, line: Line) -> None:
        if line.data["event"] != "transition" or line.data["subject"] not in self._resources:
            return
        if line.data["kind"] in _HAPPENINGS:
            words, style = _HAPPENINGS[line.data["kind"]]
            text = f"{words.format(self._types[line.data['subject']])} {line.data['detail'].removeprefix('by ')}"
            self.say("Azure", text.rstrip(), style)

    def _hear_runner(self, line: Line) -> None:
        data, vm = line.data, line.source
        name = data["line"]
        if name == "decision":
            self._decision(vm, data["event_id"], data["eligibility"], data)
        elif name == "event-gone" and vm in self._resources.get(data["event_id"], ()):
            self.say(vm, f"sees it gone: {data['outcome']}", "dim")
        elif name in ("hook-started", "hook-ended"):
            self._hook(vm, data)
        elif name == "resumed":
            self.say(vm, f"resumes the event: {data['state']}", "yellow")
        elif name == "hook-left-over":
            self.say(vm, f"ends the {_program(data)} that the previous runner left over", "yellow")
        elif name == "poll-failed":
            self.say(vm, f"gets {data['status']} and tries again, less and less often", "yellow")
        elif name == "approval-failed":
            self.say(vm, f"could not approve: {data['reason']}", "red")
        elif name == "poll-recovered":
            self.say(vm, f"has an answer again, after {data['failures']} failures", "green")

    def _hook(self, vm: str, data: Mapping[str, Any]) -> None:
        program, attempt = _program(data), data["attempt"]
        if data["line"] == "hook-started":
            again = f" again, attempt {attempt}" if attempt > 1 else ""
            self.say(vm, f"runs {program}{again}, for {data['timeout_seconds']:.0f} s at most", "cyan")
        elif data["result"] == "succeeded":
            self.say(vm, f"{program} has succeeded, after {data['seconds']:.1f} s", "green")
        else:
            self.say(vm, f"{program} has failed: {data['reason']}", "red")

    def _decision(self, vm: str, event_id: str, eligibility: str, data: dict[str, object]) -> None:
        affected = vm in self._resources.get(event_id, ())
        if eligibility == "not-ours":
            if vm not in self._bystanders:  # once is enough
                self._bystanders.add(vm)
                self.say(vm, f"leaves it alone: {data['reason']}", "dim")
        elif affected and eligibility == "approve":
            self.say(vm, f"approves · rule {data['rule']} · {data['reason']}", "green")
        elif affected and eligibility == "refused-by-policy":
            self.say(vm, f"holds · rule {data['rule']} · {data['reason']}", "yellow")
        elif affected and eligibility == "preparing":
            self.say(vm, f"prepares first · rule {data['rule']} · {data['policy_reason']}", "yellow")
        elif affected and eligibility == "preparation-failed":
            self.say(vm, f"holds · rule {data['rule']} · the preparation failed", "yellow")
        elif affected and eligibility == "not-the-leader":
            self.say(vm, f"lets others approve · {data['reason']}", "yellow")


def _program(data: Mapping[str, Any]) -> str:
    """Return the name of a hook's program, of which the log has ``run`` and its path, or the hook's kind."""
    first, _space, rest = str(data["hook"]).partition(" ")
    return PurePath(rest).name if first == "run" else first

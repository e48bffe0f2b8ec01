# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``policy verify`` and ``policy diff`` claim, as plain data, and what the engine decides.

Tests that judge the prover reach it only through this module, and this module only through the commands: it knows
nothing of how they find out. Policies are texts of YAML; ``p.yml``, ``p1.yml``, … are their files.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from forewarn.compiler.policies import load_policies
from forewarn.errors import InputError
from forewarn.events import LATEST_API_VERSION, Document, Vm, parse_document, parse_time
from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet

from ..fixtures.policy_files import written
from ..sites.commands import in_process

MORE, LESS, INCOMPARABLE, ALIKE, NO_CHANGE = "more-permissive", "less-permissive", "incomparable", "alike", "no-change"
UNPROVEN = "unproven"  # then there may be any change
INVARIANTS = "claims.yml"  # the file of further invariants
GAVE_UP = 124  # the exit code of a command that took too long, as that of timeout(1)
T = TypeVar("T")


class _TooLongError(BaseException):
    """A command takes too long. Not an Exception: a command takes those for its own defects."""


class Finding(NamedTuple):
    """One finding of verify. ``file`` is a base name; ``case`` is as the command writes it, or None."""

    code: str
    severity: str
    policy: str
    rule: str | None
    file: str
    line: int
    message: str
    certain: bool
    case: Mapping[str, Any] | None
    explain: tuple[str, ...]


class Proof(NamedTuple):
    """What verify says. ``code`` is its exit code, with ``--strict`` in ``strict_code``; ``problem`` is its complaint.

    There are findings only where the exit code is 0 or 1.
    """

    code: int
    strict_code: int
    findings: tuple[Finding, ...]
    problem: str

    @property
    def answered(self) -> bool:
        """Whether it claims anything."""
        return self.code in (0, 1)

    def codes(self, rule: str | None = None) -> set[str]:
        """Return the codes of all findings, or of those about one rule."""
        return {one.code for one in self.findings if rule in (None, one.rule)}

    def having(self, *codes: str) -> list[Finding]:
        """Return the findings with one of some codes."""
        return [one for one in self.findings if one.code in codes]


class Comparison(NamedTuple):
    """What diff says. ``changes`` are as the command writes them; ``verdict`` is "" where it gives no answer."""

    code: int
    verdict: str
    changes: tuple[Mapping[str, Any], ...]
    problem: str

    @property
    def answered(self) -> bool:
        """Whether it claims anything."""
        return self.code in (0, 1)


class Case(NamedTuple):
    """One document, with all else that a decision about its first event reads. ``params`` are JSON values."""

    document: Document
    facts: Facts
    params: Mapping[str, Any]


def verify(
    *texts: str,
    invariants: str = "",
    params: Sequence[str] = (),
    api_version: str = LATEST_API_VERSION,
    seconds: float = 0,
) -> Proof:
    """Run ``policy verify`` on policies. ``invariants`` is the text of a file, ``params`` are NAME=VALUE.

    After so many ``seconds`` of CPU time, if any, it is ended, and the exit code is GAVE_UP.
    """
    with _directory() as directory:
        command: list[object] = ["policy", "verify", *written(directory, *texts), "--json"]
        if invariants:
            (directory / INVARIANTS).write_text(invariants)
            command += ["--invariants", directory / INVARIANTS]
        done = _run(seconds, *command, *_options(params, api_version))
    if done.returncode not in (0, 1) or not done.stdout:
        return Proof(done.returncode if done.returncode > 1 else 2, 2, (), done.stderr)
    findings = []
    for one in json.loads(done.stdout)["findings"]:
        names = ("code", "severity", "policy", "rule", "line", "message", "certain", "case")
        given = {name: one[name] for name in names}
        findings.append(Finding(**given, file=Path(one["path"]).name, explain=tuple(one["explain"])))
    severe = any(one["severity"] != "note" and not one["suppressed"] for one in json.loads(done.stdout)["findings"])
    return Proof(done.returncode, 1 if done.returncode or severe else 0, tuple(findings), "")


def strict_exit(*texts: str) -> int:
    """Return the exit code of ``policy verify --strict`` itself."""
    with _directory() as directory:
        return in_process("policy", "verify", *written(directory, *texts), "--strict").returncode


def diff(
    old: str | Sequence[str],
    new: str | Sequence[str],
    params: Sequence[str] = (),
    api_version: str = LATEST_API_VERSION,
    seconds: float = 0,
) -> Comparison:
    """Run ``policy diff`` on two versions, each the text of one policy or of several. ``seconds`` as for verify."""
    with _directory() as directory:
        sides = []
        for name, texts in (("old", old), ("new", new)):
            sides.append(directory / name)
            sides[-1].mkdir()
            written(sides[-1], *([texts] if isinstance(texts, str) else texts))
        done = _run(seconds, "policy", "diff", *sides, "--format", "json", *_options(params, api_version))
    if done.returncode not in (0, 1) or not done.stdout:
        return Comparison(done.returncode if done.returncode > 1 else 2, "", (), done.stderr)
    found = json.loads(done.stdout)
    return Comparison(done.returncode, found["verdict"], tuple(found["changes"]), "")


def within(seconds: float, work: Callable[[], T]) -> T | None:
    """Return what some work returns, None if it is not done after so many seconds of the processor."""
    late = False

    def end(*_about: object) -> None:
        nonlocal late
        late = True
        raise _TooLongError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again and again: Python ignores what arrives in a __del__
    done = None
    try:
        done = work()
    except Exception:  # of any kind: ctypes makes an ArgumentError of what arrives while it converts an argument
        if not late:
            raise
    except _TooLongError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return None if late else done


def _run(seconds: float, *command: object) -> subprocess.CompletedProcess[str]:
    done = within(seconds, lambda: in_process(*command)) if seconds else in_process(*command)
    return done or subprocess.CompletedProcess([], GAVE_UP, "", f"not done after {seconds} s")


def _options(params: Sequence[str], api_version: str) -> Iterator[str]:
    for one in params:
        yield from ("--param", one)
    if api_version != LATEST_API_VERSION:
        yield from ("--api-version", api_version)


@contextmanager
def _directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="forewarn-claims-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


# The engine, which is the judge


def compiled(*texts: str, api_version: str = LATEST_API_VERSION) -> Artifact:
    """Compile policies. Raises PolicyError."""
    with _directory() as directory:
        return load_policies(written(directory, *texts), api_version)


def case(
    now: str = "2026-06-15T12:00:00Z",
    vm: Vm | None = None,
    params: Mapping[str, Any] | None = None,
    age: str | None = None,
    others: Sequence[Mapping[str, Any]] = (),
    api_version: str = LATEST_API_VERSION,
    **fields: Any,
) -> Case:
    """Return a case: a Freeze of unknown length that names web_0 alone, a Monday; None leaves a field out.

    ``age`` is the time at which it was first seen. The VM is web_0, if none is given.
    """
    event = {
        "EventId": "a",
        "EventType": "Freeze",
        "ResourceType": "VirtualMachine",
        "Resources": ["web_0"],
        "EventStatus": "Scheduled",
        "NotBefore": "Mon, 15 Jun 2026 12:15:00 GMT",
        "Description": "",
        "EventSource": "Platform",
        "DurationInSeconds": -1,
        **fields,
    }
    given = {name: value for name, value in event.items() if value is not None}
    return _case([given, *others], now, age or now, Vm(name="web_0") if vm is None else vm, params or {}, api_version)


def shown(found: Mapping[str, Any], api_version: str = LATEST_API_VERSION) -> Case:
    """Return the case of a finding or a change, from what the command writes."""
    vm = Vm(**found["vm"])
    return _case([found["event"]], found["now"], found["first_seen"], vm, found["params"], api_version)


def _case(
    events: Sequence[Mapping[str, Any]], now: str, seen: str, vm: Vm, params: Mapping[str, Any], api_version: str
) -> Case:
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": list(events)}), api_version)
    first_seen: dict[str, datetime] = {one.key: parse_time(seen) for one in document.events}
    return Case(document, Facts(parse_time(now).astimezone(timezone.utc), vm, first_seen), params)


def decide(policies: str | Artifact | Sequence[str], given: Case) -> Decision | None:
    """Return the engine's decision for a case; None if the policies refuse its parameters and do not run."""
    if not isinstance(policies, Artifact):
        texts = [policies] if isinstance(policies, str) else policies
        policies = compiled(*texts, api_version=given.document.api_version)
    declared = {entry["name"] for entry in policies.params}
    try:
        engine = PolicySet(policies, {name: value for name, value in given.params.items() if name in declared})
    except InputError:
        return None
    return engine.decide(given.document, given.facts)[0]

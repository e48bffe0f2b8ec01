# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a policy source costs a runner, and how policies reach 10,000 VMs from one small web server."""

from __future__ import annotations

import contextlib
import heapq
import json
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.footprint import Subject
from benchmarks.processes import RUNNER, artifact_of, emulator, started
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from benchmarks.rules import POLICY
from forewarn.cli.fleet.destination import Files
from forewarn.fleet import signing
from forewarn.fleet.publish import Publisher
from forewarn.policy.artifact import with_serial
from forewarn.policy.signature import Signers
from forewarn.runner.hooks.commands import Command
from forewarn.runner.hooks.executor import SUCCEEDED, Executor, HookResult
from forewarn.runner.journal.null import NoJournal
from forewarn.runner.policy_source import fetch
from forewarn.runner.policy_source.report import UNCHANGED, UPDATED, SourceReport
from forewarn.runner.policy_source.settings import SourceSettings
from forewarn.runner.policy_source.source import PolicySource, SourceOptions
from forewarn.runner.telemetry.log import Log
from forewarn.runner.telemetry.metrics import Metrics
from forewarn.runner.telemetry.recorder import Recorder
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.signing import allow, make_key
from tools.servers.etag_files import EtagServer

VMS = 10_000
QUESTIONS, NEW, THREADS = 10_000, 200, 8
INTERVAL = 60.0  # seconds between two questions, the default
WARM_UP_SECONDS, SECONDS = 15.0, 120.0


def run() -> Report:
    """Compare two runners, then ask as 10,000 VMs do."""
    with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as name, artifact_of(POLICY) as artifact:
        directory = Path(name)
        made = make_key(directory)
        key = str(made.private)
        site = directory / "site"
        site.mkdir()
        signers = allow(directory, made)
        content = with_serial(artifact.read_bytes(), 1)
        (directory / "policy.json").write_bytes(content)
        (directory / "policy.json.sig").write_bytes(signing.sign(content, key))
        publisher = Publisher(Files(str(site / "policy.json")), Signers(signers), key)
        wave = publisher.release(publisher.read(), artifact.read_bytes(), 1, 100.0, None, time.time())
        publisher.publish(publisher.read(), wave, time.time())
        with _served(site) as (url, server):
            quantities, goals = _two_runners(directory, signers, url)
            more = _questions(directory, signers, url, server)
    reach = _simulation()
    return Report(
        "Policies that VMs pull",
        [*quantities, *more, *reach],
        goals,
        [
            f"Two runners side by side for {SECONDS:g} s with the same signed policies; one asks every {INTERVAL:g} s.",
            "A question is a process of its own, without memory in between: its CPU is not in that of the polls.",
            f"{THREADS} threads ask as {QUESTIONS:,} VMs, over a new connection each, without encryption.",
            f"The simulation has {VMS:,} sources with the interval of 60 s, and emulated clocks.",
        ],
    )


@contextlib.contextmanager
def _served(site: Path) -> Iterator[tuple[str, EtagServer]]:
    server = EtagServer(str(site))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/policy.json", server
    finally:
        server.shutdown()
        server.server_close()


def _two_runners(directory: Path, signers: str, url: str) -> tuple[Sequence[Quantity], Sequence[Goal]]:
    (directory / "plain.json").write_text(json.dumps({"signers": signers}))
    source = {"signers": signers, "policy_source": {"url": url, "interval": INTERVAL}}
    (directory / "source.json").write_text(json.dumps(source))
    with emulator(["plain", "source"]) as client:
        client.schedule("Freeze", ["plain", "source"], duration_seconds=-1, notice_seconds=3600)

        def command(name: str) -> list[str]:
            where = ["--endpoint", client.vm_endpoint(name), "--config", str(directory / f"{name}.json")]
            return [*RUNNER, str(directory / "policy.json"), *where]

        with started(command("plain")) as plain, started(command("source")) as sourced:
            subjects = [Subject(plain.pid, "plain"), Subject(sourced.pid, "source")]
            time.sleep(WARM_UP_SECONDS)  # the first question is in it
            before = [subject.read(client) for subject in subjects]
            children = _children_cpu(sourced.pid)
            time.sleep(SECONDS)  # the time that is measured
            after = [subject.read(client) for subject in subjects]
            children = _children_cpu(sourced.pid) - children
            if plain.poll() is not None or sourced.poll() is not None:
                raise AssertionError("one of the two ended by itself")
    polls = [late.polls - early.polls for early, late in zip(before, after)]
    cpu = [(late.cpu - early.cpu) / count * 1e3 for early, late, count in zip(before, after, polls)]
    memory = [late.memory for late in after]
    baseline = "without a source"
    return (
        [
            Quantity("resident memory, without a source", memory[0], "MiB"),
            Quantity("resident memory, with a source", memory[1], "MiB"),
            Quantity("CPU per poll, without a source", cpu[0], "ms"),
            Quantity("CPU per poll, with a source", cpu[1], "ms"),
            Quantity("CPU per question, in a process of its own", children / (SECONDS / INTERVAL) * 1e3, "ms"),
        ],
        [
            Goal("memory", memory[1] / memory[0], baseline, AT_MOST, 1.02),
            Goal("CPU per poll", cpu[1] / cpu[0], baseline, AT_MOST, 1.02),
        ],
    )


def _children_cpu(pid: int) -> float:
    """Return the CPU time (seconds) of the children that a process has waited for: proc(5), cutime and cstime."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / 100.0


def _questions(directory: Path, signers: str, url: str, server: EtagServer) -> list[Quantity]:
    settings: dict[str, Any] = {
        **dict.fromkeys(("proxy", "ca_file", "sas_file", "identity", "endpoint", "revoked_signers", "scratch")),
        "url": url,
        "signers": signers,
        "seconds": 45.0,
        "vm": "vm",
        "etag": "",
    }
    states = [directory / f"state-{number}" for number in range(NEW)]
    for state in states:
        state.mkdir()

    def ask(number: int, etag: str) -> SourceReport:
        return fetch.ask({**settings, "vm": f"vm_{number}", "etag": etag, "state": str(states[number % NEW])})

    with ThreadPoolExecutor(THREADS) as pool:
        began = time.monotonic()
        reports = list(pool.map(lambda number: ask(number, ""), range(NEW)))
        new = (time.monotonic() - began) / NEW
        assert {report.result for report in reports} == {UPDATED}, reports[0]
        etag = reports[0].etag
        before = server.bytes_sent
        began = time.monotonic()
        assert {report.result for report in pool.map(lambda number: ask(number, etag), range(QUESTIONS))} == {UNCHANGED}
        seconds = time.monotonic() - began
    return [
        Quantity("questions without news that were answered", QUESTIONS / seconds, "a second"),
        Quantity("bytes of an answer without news", (server.bytes_sent - before) / QUESTIONS, "bytes"),
        Quantity("time of a question with news, with its proof", new * 1e3, "ms"),
    ]


class QuestionCount(Executor):
    """Answers each question at once; ``asked`` are the moments, ``news`` says whether there are newer policies."""

    def __init__(self, clocks: ManualClocks) -> None:
        super().__init__(lambda: None)
        self.asked: list[float] = []
        self.news = False
        self._clocks = clocks

    def start(self, token: Hashable, command: Command) -> None:
        self.asked.append(self._clocks.monotonic())

    def take_results(self) -> list[tuple[Hashable, HookResult]]:
        report = SourceReport(UNCHANGED, etag="new" if self.news else "old")
        return [("", HookResult(SUCCEEDED, 0, 0.1, json.dumps(report._asdict()), ""))]


def _simulation() -> list[Quantity]:
    """Return how long it takes until all VMs have asked after a publication, and the most questions in a second."""
    generator = random.Random(1)
    options = SourceOptions(SourceSettings("https://policies.example.com/x"), "", None, "", None, None)
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere, tempfile.TemporaryDirectory() as state:
        rigs = []
        for _vm in range(VMS):
            clocks = ManualClocks(1000.0)
            recorder = Recorder(NoJournal(clocks), Log(nowhere, "json"), Metrics())
            executor = QuestionCount(clocks)
            source = PolicySource(options, state, executor, recorder, clocks, {}, generator.random)
            rigs.append((clocks, executor, source))
        # VMs boot within ten minutes; the policies are published in the eleventh.
        queue = [(1000.0 + generator.uniform(0, 600), number) for number in range(VMS)]
        heapq.heapify(queue)
        rates: Counter[int] = Counter()
        last: dict[int, float] = {}
        published = 1000.0 + 660.0
        while len(last) < VMS:
            moment, number = heapq.heappop(queue)
            clocks, executor, source = rigs[number]
            clocks.now = moment
            asked = len(executor.asked)
            source.start_if_due()
            if len(executor.asked) > asked:
                source.collect_results()
                if moment > published:
                    last.setdefault(number, moment - published)
                    rates[int(moment)] += 1
            heapq.heappush(queue, (moment + 1.0, number))
    half = sorted(last.values())[VMS // 2]
    return [
        Quantity(f"until half of {VMS:,} VMs have a new version", half, "s"),
        Quantity(f"until all {VMS:,} VMs have it", max(last.values()), "s"),
        Quantity("most questions in a second", max(rates.values()), ""),
    ]

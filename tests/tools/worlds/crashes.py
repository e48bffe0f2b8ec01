# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills a runner at every point where its journal or the outside world changes, and judges the result.

The runner is the real one on a real journal, in a forked process; what is outside of it is a world of virtual time
(``tools.worlds.crash_scripts``), whose ledger is a file. At its n-th point the process sends itself SIGKILL; the next
one goes on with the state directory and the ledger as they are.

    python -m tools.worlds.crashes --seed 7                       kill scenario 7 at each of its points
    python -m tools.worlds.crashes --seed 7 --kill 12:0.5 3:40:reboot
                                                           at the 12th point, and after half a second the next runner
                                                           at its 3rd; then the machine boots, which takes 40 s
    python -m tools.worlds.crashes --seconds 60            at some points of other scenarios each time, for as long
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import sqlite3  # noqa: F401 - imported once, not by each child
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Callable, NamedTuple

import forewarn.runner.drills.drill  # noqa: F401 - imported once, not by each child
from forewarn.runner.journal.reader import JournalReader
from tools.judges.promises import BrokenPromise, Judge
from tools.judges.promptness import act_promptly
from tools.judges.waiting_promises import NobodyWaits
from tools.worlds.crash_runner import NOT_ENDED, CrashRunner, Files, Kill
from tools.worlds.crash_scripts import Script, make_script
from tools.worlds.runner_profiles import GENERATIONS, policies
from tools.worlds.runner_world import Entry

EACH = 12  # ways to kill one scenario, before the next
MOST_BROKEN = 5  # then there is enough to look at
_REPORT_SECONDS = 10.0


class Scene:
    """One scenario in a directory of its own."""

    def __init__(self, script: Script, directory: Path) -> None:
        self.script = script
        self.files = Files(directory)
        self.files.state.mkdir(mode=0o700)
        self.files.ledger.touch()

    def run(self, kill: Kill | None = None, before: Kill | None = None) -> bool:
        """Run a runner in a process of its own, after the one that ``before`` ended; return whether it was killed.

        Raises BrokenPromise if it ended otherwise than it should.
        """
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = CrashRunner(self.script, self.files, _die).run(kill, before)
            except BaseException:  # a child must never return into its parent's frames
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _pid, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return True
        if status:
            code = os.waitstatus_to_exitcode(status)
            why = "has not come to rest" if code == NOT_ENDED else f"ended with status {code}"
            raise BrokenPromise(f"a runner {why}")
        return False


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class CrashRun(NamedTuple):
    """``points`` is how many the last runner came to, which was not killed; ``killed`` is how many were."""

    points: int
    killed: int
    ledger: list[Entry]


@contextmanager
def forked(script: Script) -> Iterator[Scene]:
    """Yield a scenario whose runners are forks of this process."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # SIGKILL loses nothing that a disk would keep
    with tempfile.TemporaryDirectory(prefix="forewarn-crash-", dir=memory) as directory:
        yield Scene(script, Path(directory))


def play(
    script: Script,
    kills: Sequence[Kill] = (),
    place: Callable[[Script], AbstractContextManager[Scene]] = forked,
) -> CrashRun:
    """Play a scenario with these kills, and to its end. Raises BrokenPromise, with the command that does it again."""
    with place(script) as scene:
        before, killed = None, 0
        try:
            try:
                for kill in kills:
                    if not scene.run(kill, before):
                        break
                    before = kill
                    killed += 1
                else:
                    scene.run(None, before)
            finally:  # if it did not end well, the ledger may show why
                ledger = scene.files.entries()
                judge = Judge(script.vm).read(ledger)
                NobodyWaits().read(ledger)
            judge.over()
            if script.answers:
                act_promptly(judge)
            left = JournalReader(str(scene.files.state)).records(open_only=True)
            if left:
                raise BrokenPromise(f"the journal has open records in the end: {left}")
        except (BrokenPromise, AssertionError) as error:
            again = " ".join(["python -m tools.worlds.crashes --seed", str(script.seed), "--kill", *map(str, kills)])
            raise BrokenPromise(f"{error}\nAgain, in tests/: {again}") from error
        return CrashRun(int(scene.files.points.read_text()), killed, ledger)


def all_kills(seed: int, points: int) -> Iterator[list[Kill]]:
    """Yield the kills to try with a scenario: each point by itself, some with another kill soon after, or a reboot."""
    chance = random.Random(f"kills of {seed}")
    for point in range(1, points + 1):
        first = Kill(point, chance.choice([0.0, 0.0, 0.5, 3.0]))
        second = Kill(chance.randint(1, 12), chance.choice([0.0, 2.0]))
        boot = Kill(point, chance.choice([5.0, 40.0, 100.0]), reboot=True)
        yield [first]
        if point % 3 == seed % 3:
            yield [first, second]
        if point % 4 == seed % 4:
            yield [boot] if point % 8 < 4 else [boot, second]


def some_kills(seed: int, points: int, count: int) -> list[list[Kill]]:
    """Return some of ``all_kills``, spread over the whole scenario."""
    every = list(all_kills(seed, points))
    count = min(count, len(every))
    first = random.Random(seed).random()
    return [every[int((number + first) * len(every) / count)] for number in range(count)]


class Summary:
    """What was tried, and which promises were broken. ``report`` is called with the progress from time to time."""

    def __init__(self, report: Callable[[str], None] = lambda text: None) -> None:
        self.scenarios = 0
        self.crashes = 0
        self.broken: list[str] = []
        self._report = report
        self._began = self._reported = time.monotonic()

    def try_one(self, seed: int, count: int | None = None) -> None:
        """Kill a scenario at each of its points, or at some, until a promise is broken."""
        script = make_script(seed)
        self.scenarios += 1
        try:
            points = play(script).points
            for kills in all_kills(seed, points) if count is None else some_kills(seed, points, count):
                self.crashes += 1
                play(script, kills)
                if time.monotonic() > self._reported + _REPORT_SECONDS:
                    self._reported = time.monotonic()
                    self._report(f"{self._reported - self._began:6.0f} s  {self}")
        except BrokenPromise as error:
            self.broken.append(str(error))
            self._report(str(error))

    def __str__(self) -> str:
        return f"{self.scenarios} scenarios, {self.crashes} crashes, {len(self.broken)} promises broken"


def main(arguments: list[str]) -> int:
    """Report the progress on stderr, and in the end what was tried; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, nargs="+", help="scenarios; without it, others each time")
    parser.add_argument("--kill", type=Kill.of, nargs="*", metavar="POINT[:SECONDS[:reboot]]")
    parser.add_argument("--seconds", type=float, default=60.0, help="without --seed: for how long")
    args = parser.parse_args(arguments)
    if args.kill is not None and len(args.seed or ()) != 1:
        parser.error("--kill needs one --seed")
    for generation in range(len(GENERATIONS)):
        policies(generation)  # so that no child has to compile them
    gc.freeze()
    summary = Summary(lambda text: print(text, file=sys.stderr, flush=True))
    try:
        if args.kill is not None:
            play(make_script(args.seed[0]), args.kill)
            summary.crashes = len(args.kill)
        elif args.seed:
            for seed in args.seed:
                summary.try_one(seed)
        else:
            end = time.monotonic() + args.seconds
            first = random.SystemRandom().randrange(2**30)
            for seed in range(first, first + 2**30):
                if time.monotonic() > end or len(summary.broken) >= MOST_BROKEN:
                    break
                summary.try_one(seed, EACH)
    except BrokenPromise as error:
        summary.broken.append(str(error))
        print(error, file=sys.stderr)
    print(summary)
    for message in summary.broken:  # the rest of it was printed as it happened
        print(message.splitlines()[0], message.splitlines()[-1], sep="\n")
    return 1 if summary.broken else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

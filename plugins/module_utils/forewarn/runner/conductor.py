# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives the plans of all lives: starts hooks when they are due, takes in what became of them, keeps the journal.

The promises, in the order in which they are kept:

- What is about to be done is in the journal before it is done. If the journal cannot be written, nothing is prepared
  that would have to be recovered; recoveries that are due run all the same.
- Preparations of different events run side by side, the soonest NotBefore first. None waits for another event's.
- A recovery does not undo what another listed event has prepared: a recover hook that such an event has too is left to
  it. And what is being undone is not prepared at the same time: a preparation waits for a recover hook that it shares.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ..errors import InputError
from ..events import Event
from ..policy.decision import Verdict
from . import hooks, notices
from . import life as states
from . import plan as plans
from .clocks import Clocks
from .executor import Executor, Outcome, end_leftover
from .journal import Journal, LifeRow
from .life import Life
from .log import Logger
from .metrics import Metrics
from .notices import Notice, Notices
from .plan import Run

# A prepare hook is told to end this long before NotBefore, so that it has ended by then: the executor's grace fits in.
MARGIN_SECONDS = 3.0
GRACE_SECONDS = 2.0
# With less time than this no prepare hook is started.
SHORTEST_SECONDS = 1.0
# Of prepare and recover hooks together; 200 events in one document must not start 200 processes.
MOST_RUNNING = 16
DEFAULT_TIMEOUT_SECONDS = 60.0  # of a hook, as in the policy language
SHORTEST_PAUSE_SECONDS = 0.1  # between two looks at what waits for the time: it may have to wait for room as well


class Conductor:
    """``lives`` are the open ones: listed, or recovering. For the main thread alone."""

    def __init__(
        self,
        executor: Executor,
        journal: Journal,
        log: Logger,
        metrics: Metrics,
        clocks: Clocks,
        settings: hooks.HookSettings,
        now: Callable[[], datetime],
    ) -> None:
        self.lives: list[Life] = []
        self.vm_name: str | None = None
        self._executor = executor
        self._journal = journal
        self._log = log
        self._metrics = metrics
        self._clocks = clocks
        self._settings = settings
        self._now = now
        self._running: dict[Hashable, tuple[Life, Run]] = {}  # by the executor's token
        self._next_token = 0
        self._notices = Notices(executor, self._telling, self._told)

    # What the loop asks for

    def resume(self) -> None:
        """Take up the open lives of the journal, as the runner before left them."""
        self.take_up(self._journal.open())

    def take_up(self, rows: Sequence[LifeRow]) -> list[Life]:
        """Take up lives that an earlier runner left; return them."""
        taken = []
        for row in rows:
            try:
                life = Life.of(row)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                self._log.error("journal-trouble", event_key=row.key, reason=f"an event's record is damaged: {error}")
                self._journal.distrust(row, f"{error.__class__.__name__}: {error}")
                continue
            taken.append(life)
            for run in life.plan.interrupted():
                if run.pid is not None and end_leftover(run.pid, run.pid_started):
                    fields = {
                        "hook": hooks.describe(run.hook),
                        "pid": run.pid,
                        "reason": "it was still running, and was ended",
                    }
                    self._record("hook-left-over", life, fields, failed=True)
                run.pid = run.pid_started = None
            self.lives.append(life)
            self._log.info("resumed", event_id=life.event.event_id, state=life.state, drill=life.drill or None)
            if life.state == states.PREPARING:  # killed between the end of its last hook and what follows from that
                self._look_at_preparation(life)
        return taken

    def supersede(self, life: Life) -> None:
        """Close a life that was begun because an earlier one of the same event could not be read at the time."""
        life.outcome = states.UNSEEN
        self._close(life, "its earlier record was found")

    def born(self, event: Event, drill: bool) -> Life:
        """Begin the life of an event that is listed for the first time."""
        stamp = self._clocks.stamp()
        newest = max((life.identifier for life in self.lives), default=0)
        life = Life(max(int(stamp.wall * 1e6), newest + 1), event, stamp, drill)
        self.lives.append(life)
        self._journal.save(life.as_row())
        return life

    def step(self, life: Life, what: str, why: str) -> None:
        """Move a life on, and write it down if its state has changed."""
        before = life.state
        if not life.step(what):
            return
        fields = {"from": before, "to": life.state, "why": why}
        if life.plan.runs:  # otherwise the other lines say it all
            self._log.info("state", event_id=life.event.event_id, drill=life.drill or None, **fields)
        self._journal.note("state", life.identifier, **fields)
        self._journal.save(life.as_row())

    def prepare(self, life: Life, verdicts: Sequence[Verdict]) -> None:
        """Add what the verdicts ask to prepare. It starts with the next ``advance``."""
        if life.plan.extend(verdicts):
            self._journal.save(life.as_row())

    def started(self, life: Life) -> bool:
        """Note that the service lists the event as Started; return whether that is news."""
        if life.state == states.STARTED:
            return False
        life.started_at = self._clocks.stamp()
        life.plan.stop_preparing("the event had started")
        self.step(life, states.START, "the service lists it as Started")
        return True

    def gone(self, life: Life, outcome: str) -> None:
        """Note that the service no longer lists the event: end what prepares, recover what had begun."""
        life.outcome = outcome
        life.gone_at = self._clocks.stamp()
        for token, (other, run) in self._running.items():
            if other is life and run.phase == plans.PREPARE:
                self._executor.end(token, "the event is no longer listed")
        life.plan.stop_preparing("the event was no longer listed")
        if life.plan.start_recovering() or life.plan.running():
            self.step(life, states.LEAVE, f"no longer listed: {outcome}")
        else:
            self._close(life, f"no longer listed: {outcome}")
        self.notify(life, notices.CALLED_OFF if outcome == states.CALLED_OFF else notices.ENDED)

    def notify(self, life: Life, occasion: str) -> None:
        """Queue the event's notify hooks: they run when there is room, and nothing waits for them."""
        self._notices.add(life, occasion)

    def collect(self) -> bool:
        """Take in the hooks that have ended; return whether an event is now prepared, or can no longer be."""
        news = False
        for token, outcome in self._executor.finished():
            if self._notices.collect(token, outcome):
                continue
            life, run = self._running.pop(token)
            self._hook_ended(life, run, outcome)
            if run.phase == plans.PREPARE and life.state == states.PREPARING:
                news = self._look_at_preparation(life) or news
        return news

    def advance(self) -> None:
        """Start what is due, close what has recovered. Call it after ``collect`` and after each document."""
        # Preparations first: what one of them has in common with a recovery need not be undone and done again.
        for life in sorted((life for life in self.lives if life.listed), key=_urgency):
            self._prepare(life)
        for life in list(self.lives):
            if life.state == states.RECOVERING:
                self._recover(life)
        self._notices.advance()

    def next_in(self) -> float | None:
        """Return the seconds until a hook is to be tried again, None if nothing waits for the time."""
        now = self._clocks.monotonic()
        waits = [life.plan.retry_in(now) for life in self.lives if life.state == states.RECOVERING]
        return min((max(wait, SHORTEST_PAUSE_SECONDS) for wait in waits if wait is not None), default=None)

    def idle(self) -> bool:
        """Tell whether no hook runs or waits."""
        return not self._running and self._notices.idle()

    # Preparing

    def _prepare(self, life: Life) -> None:
        if not life.confirmed or life.state == states.STARTED or life.event.event_status == "Started":
            return
        if self._journal.doubt(life.event.key) is not None:
            return
        for run in life.plan.due_to_prepare():
            if self._journal.trouble is not None or len(self._running) >= MOST_RUNNING or self._being_undone(life, run):
                return
            left = self._seconds_left(life.event)
            if left is not None and left < SHORTEST_SECONDS:
                run.end(plans.FAILED, "there was no time left before NotBefore")
                self.step(life, states.BEGIN, "no time left to prepare")
                self._look_at_preparation(life)
                return
            timeout = float(run.hook.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS))
            self._start(life, run, timeout if left is None else min(timeout, left))
        if life.state == states.PREPARING:
            self._look_at_preparation(life)

    def _seconds_left(self, event: Event) -> float | None:
        if event.not_before is None:
            return None
        return (event.not_before - self._now()).total_seconds() - MARGIN_SECONDS

    def _look_at_preparation(self, life: Life) -> bool:
        state = life.plan.preparation()
        if state == plans.SUCCEEDED:
            self.step(life, states.READY, "every prepare hook succeeded")
        elif state == plans.FAILED:
            failure = life.plan.failure()
            why = "" if failure is None else f"{hooks.describe(failure.hook)}: {failure.reason}"
            self.step(life, states.FAIL, f"a prepare hook failed: {why}")
        self._journal.commit()
        return state in (plans.SUCCEEDED, plans.FAILED)

    def _being_undone(self, life: Life, run: Run) -> bool:
        """Tell whether another event's recovery, which is under way, is one that this stage has too."""
        ours = {other.identity for other in life.plan.of_phase(plans.RECOVER) if other.stage == run.stage}
        return any(run.phase == plans.RECOVER and run.identity in ours for _life, run in self._running.values())

    # Recovering

    def _recover(self, life: Life) -> None:
        if life.plan.running(plans.PREPARE):
            return  # it is being ended
        for run in life.plan.due_to_recover(self._clocks.monotonic()):
            keeper = self._still_needed_by(life, run)
            if keeper is not None:
                run.end(plans.LEFT, f"left to event {keeper.event.event_id}, which has prepared it too")
                self._record("hook-left", life, {"hook": hooks.describe(run.hook), "reason": run.reason})
            elif len(self._running) < MOST_RUNNING:
                self._start(life, run, float(run.hook.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS)))
        if life.plan.recovered():
            failure = next((run for run in life.plan.of_phase(plans.RECOVER) if run.status == plans.FAILED), None)
            self._close(life, "recovered" if failure is None else f"recovery failed: {failure.reason}")

    def _still_needed_by(self, life: Life, run: Run) -> Life | None:
        for other in self.lives:
            if other is life or not other.listed:
                continue
            for theirs in other.plan.of_phase(plans.RECOVER):
                if (
                    theirs.identity == run.identity
                    and theirs.status == plans.WAITING
                    and other.plan.begun(theirs.stage)
                ):
                    return other
        return None

    def _close(self, life: Life, why: str) -> None:
        self.step(life, life.closing(), why)
        self.lives.remove(life)
        self._journal.commit()

    # Hooks

    def _start(self, life: Life, run: Run, timeout: float) -> None:
        run.status = plans.RUNNING
        run.attempts += 1
        run.reason = ""
        text = hooks.describe(run.hook)
        if run.phase == plans.PREPARE:
            self.step(life, states.BEGIN, f"{text} is started")
        fields = {"phase": run.phase, "hook": text, "attempt": run.attempts, "timeout_seconds": round(timeout, 3)}
        self._record("hook-started", life, fields)
        if not self._journal.commit() and run.phase == plans.PREPARE:
            run.status = plans.WAITING  # not without the promise that it will be recovered
            run.attempts -= 1
            reason = "it was not started: the journal could not be written"
            self._record("hook-ended", life, {**fields, "result": "not-started", "reason": reason}, failed=True)
            return
        self._next_token += 1
        token = self._next_token
        self._running[token] = (life, run)
        try:
            command = hooks.command(run.hook, self._occasion(life, run.phase, run.attempts), self._settings, timeout)
        except InputError as error:
            del self._running[token]
            self._hook_ended(life, run, Outcome("not-started", None, 0.0, "", error.message))
            return
        begun = self._executor.start(token, command)
        if begun is not None:
            run.pid, run.pid_started = begun
            self._journal.save(life.as_row())
            self._journal.commit()

    def _hook_ended(self, life: Life, run: Run, outcome: Outcome) -> None:
        run.seconds = round(outcome.seconds, 3)
        run.exit_code = outcome.exit_code
        run.pid = run.pid_started = None
        if outcome.result == "succeeded":
            run.end(plans.SUCCEEDED)
        elif run.phase == plans.RECOVER and run.attempts <= len(plans.RECOVER_RETRY_SECONDS):
            run.status = plans.WAITING
            run.reason = outcome.reason
            run.retry_at = self._clocks.monotonic() + plans.RECOVER_RETRY_SECONDS[run.attempts - 1]
        else:
            run.end(plans.FAILED, outcome.reason)
        fields = {
            "phase": run.phase,
            "hook": hooks.describe(run.hook),
            "attempt": run.attempts,
            "result": outcome.result,
            "exit_code": outcome.exit_code,
            "seconds": run.seconds,
            "reason": outcome.reason or None,
            "output": outcome.output or None,
        }
        self._record("hook-ended", life, fields, failed=outcome.result != "succeeded")
        self._count(run.phase, run.hook, outcome, life)
        self._journal.commit()

    def _telling(self, notice: Notice) -> hooks.Command:
        occasion = self._occasion(notice.life, "notify", 1, notice.occasion)
        timeout = float(notice.hook.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS))
        return hooks.command(notice.hook, occasion, self._settings, timeout)

    def _told(self, notice: Notice, outcome: Outcome, dropped: int) -> None:
        fields = {
            "hook": hooks.describe(notice.hook),
            "occasion": notice.occasion,
            "result": outcome.result,
            "seconds": round(outcome.seconds, 3),
            "reason": outcome.reason or None,
            "dropped": dropped or None,
        }
        self._record("notified", notice.life, fields, failed=outcome.result != "succeeded")
        self._count("notify", notice.hook, outcome, notice.life)

    def _count(self, phase: str, hook: Mapping[str, Any], outcome: Outcome, life: Life) -> None:
        labels = {"phase": phase, "kind": hooks.kind(hook)}
        self._metrics.count("forewarn_hooks_total", result=outcome.result, drill=life.drill, **labels)
        if outcome.result != "not-started":
            self._metrics.observe("forewarn_hook_duration_seconds", outcome.seconds, **labels)

    def _occasion(self, life: Life, phase: str, attempt: int, occasion: str | None = None) -> hooks.Occasion:
        decision = life.decision or {}
        event = life.event
        left = None if event.not_before is None else (event.not_before - self._now()).total_seconds()
        others = sum(1 for other in self.lives if other is not life and other.listed and other.plan.begun())
        return hooks.Occasion(
            phase=phase,
            attempt=attempt,
            event=event,
            vm_name=self.vm_name,
            drill=life.drill,
            output=decision.get("output"),
            policy=decision.get("policy"),
            rule=decision.get("rule"),
            reason=decision.get("reason"),
            outcome=life.outcome,
            occasion=occasion,
            deadline_seconds=left,
            others=others,
        )

    def _record(self, line: str, life: Life, fields: dict[str, Any], failed: bool = False) -> None:
        """Write a line to the log and an entry to the journal, and the life as it now is."""
        write = self._log.warning if failed else self._log.info
        write(line, event_id=life.event.event_id, drill=life.drill or None, **fields)
        self._journal.note(line, life.identifier, **fields)
        self._journal.save(life.as_row())


def _urgency(life: Life) -> tuple[float, int]:
    moment = life.event.not_before
    return (float("inf") if moment is None else moment.timestamp(), life.identifier)

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports the health of the runner: to systemd, in the heartbeat, the metrics and the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import __version__
from ...events import Document
from ...policy.decision import PHASES
from ...policy.engine import PolicySet
from ...policy.pause import Pause
from ...system.service_manager import ServiceNotifier
from ...texts import duration_text
from .. import event_record as states
from ..clocks import Clocks, Stamp
from ..event_record import EventRecord
from ..hooks import commands
from ..hooks.needs_watch import NeedsCheck, NeedsWatch
from ..hooks.scheduler import HookScheduler
from .event_metrics import answer_of, set_event_metrics
from .heartbeat import LONGEST_SILENCE_SECONDS, Heartbeat
from .metrics import Value, write_textfile
from .readiness import Readiness
from .recorder import Recorder

TEXTFILE_SECONDS = 15.0  # a scrape interval; sooner when something has happened
HEARTBEAT_SECONDS = 5.0  # sooner when something has changed, and at every tick during an event
_FAILURES = ("failed", "timed-out", "not-started")  # of hooks, as alerts count them
HEALTHY_SECONDS = 15.0  # a request can take this long, on top of three intervals


class HealthReporter:
    """Without ``heartbeat``, ``textfile``, ``readiness`` or ``watch``, that part is not reported."""

    def __init__(
        self,
        scheduler: HookScheduler,
        recorder: Recorder,
        clocks: Clocks,
        *,
        notifier: ServiceNotifier,
        heartbeat: Heartbeat | None = None,
        textfile: str | None = None,
        readiness: Readiness | None = None,
        watch: NeedsWatch | None = None,
    ) -> None:
        self.facts: dict[str, Any] = {}  # more fields of the heartbeat: policy, interval, dry run
        self.fault: str | None = None  # why the service does not answer
        self.last_good_poll: Stamp | None = None
        self._scheduler = scheduler
        self._journal, self._log, self._metrics = recorder
        self._clocks = clocks
        self._notifier = notifier
        self._heartbeat = heartbeat
        self._textfile = textfile
        self._readiness = readiness
        self._watch = watch
        self._missing: Sequence[str] = ()  # sentences on what hooks lack
        self._started = clocks.stamp()
        self._last_beat: Mapping[str, Any] = {}
        self._last_beat_at = 0.0
        self._last_snapshot: Sequence[object] | None = None
        self._last_snapshot_at = 0.0
        self._textfile_problem: str | None = None
        self._problems: Sequence[str] = ()  # of the last document
        self._journal_trouble: str | None = None

    def report_started(self) -> None:
        """Report that the runner works; the first answer of the service may take 2 minutes more (SE-05)."""
        self._notifier.ready("Waiting for the first answer of the service")
        self._notifier.watchdog()
        self._write_heartbeat(self._scheduler.records)
        self.report_alive(0.0)

    def report_alive(self, within_seconds: float) -> None:
        """Report that the main loop is alive, and will be at its next step ``within_seconds``."""
        if self._readiness is not None:
            if self.last_good_poll is None:
                within_seconds = max(within_seconds, LONGEST_SILENCE_SECONDS)
            records, name = self._scheduler.records, self._scheduler.vm_name
            unread = self._journal.has_unread_records or len(self._journal.lost_records) > 0
            self._readiness.report_alive(records, name, within_seconds, unread=unread)

    def record_poll(self, fault: str | None, age_seconds: float = 0.0) -> None:
        """Record the result of a poll; ``fault`` is None if it was answered, ``age_seconds`` ago."""
        self.fault = fault
        self._metrics.count("forewarn_polls_total", result="failed" if fault else "ok")
        self._metrics.set("forewarn_service_up", 0.0 if fault else 1.0)
        if fault is None:
            self.last_good_poll = latest = self._clocks.stamp(age_seconds)
            self._metrics.set("forewarn_last_good_poll_timestamp_seconds", latest.wall)
            self._metrics.set("forewarn_last_good_poll_age_seconds", lambda: self._clocks.since(latest))

    def record_document(self, document: Document) -> None:
        """Record what could not be read in the last document: it may hide what is scheduled."""
        self._problems = document.problems

    def report(self) -> None:
        """Report what has changed, and that the runner is alive; prune the journal."""
        self._report_journal()
        news = None if self._watch is None else self._watch.take_result()
        if news is not None:
            self._report_missing(news)
        records = self._scheduler.records
        self._write_heartbeat(records)
        if self._notifier.enabled:
            self._notifier.status(self.status(records))
            self._notifier.watchdog()
        self._update_metrics(records)
        self._journal.prune()

    def health(self) -> tuple[bool, str]:
        """Return whether all is well, and a text for people. From any thread."""
        if self._journal.trouble is not None:
            return False, f"nothing can be kept: {self._journal.trouble}"
        if self.fault is not None:
            return False, f"the service does not answer: {self.fault}"
        if self.last_good_poll is None:
            return False, "the service has not answered yet"
        age = self._clocks.since(self.last_good_poll)
        allowed = 3.0 * float(self.facts.get("interval_seconds") or 1.0) + HEALTHY_SECONDS
        if age > allowed:
            return False, f"the service was last asked {duration_text(age)} ago"
        return True, f"the service answered {duration_text(age)} ago"

    def record_policies(self, policies: PolicySet) -> None:
        """Record which policies the runner uses. The first failure of one of their hooks has to be an increase."""
        self.facts["policy"] = policies.digest
        for kind in {commands.kind(hook) for _policy, _rule, hook in policies.hooks_by_rule()}:
            for phase in PHASES:
                for result in _FAILURES:
                    self._metrics.count("forewarn_hooks_total", 0.0, phase=phase, kind=kind, result=result, drill=False)
        source = policies.artifact.source or {}
        origin = (source.get("ref"), source.get("commit"), bool(source.get("modified")))
        info: dict[tuple[object, ...], Value] = {
            (policies.digest, policies.api_version, ", ".join(policies.names), *origin): 1.0
        }
        self._metrics.replace("forewarn_artifact_info", info)
        serial, since = policies.artifact.serial, self.facts.get("serial_since")
        serials: dict[tuple[object, ...], Value] = {} if serial is None else {(): float(serial)}
        self._metrics.replace("forewarn_policy_serial", serials)
        self._metrics.set("forewarn_policy_loaded_timestamp_seconds", since or self._clocks.wall())

    def watch_needs(self, check: NeedsCheck | None, missing: Sequence[str]) -> None:
        """Report what is ``missing`` for hooks now, and what ``check``, unless None, returns from now on."""
        if self._watch is not None:
            self._watch.set_check(check)
        self._report_missing(missing)

    def report_reloading(self) -> None:
        """Report that a reload begins."""
        self._notifier.reloading()

    def report_reloaded(self, problem: str | None) -> None:
        """Report that a reload has ended; ``problem`` is why the new configuration is not used, or None."""
        self.facts["reload_problem"] = problem
        self._metrics.set("forewarn_last_reload_successful", 1.0 if problem is None else 0.0)
        self._notifier.ready(self.status(self._scheduler.records))

    def report_stopping(self) -> None:
        """Report that the runner stops."""
        self._notifier.stopping()

    def close(self) -> None:
        """Close the heartbeat, whose file stays as it is."""
        if self._heartbeat is not None:
            self._heartbeat.close()

    def status(self, records: Sequence[EventRecord]) -> str:
        """Return the sentence that ``systemctl status`` shows."""
        parts = []
        if self.fault is not None:
            parts.append(f"the service does not answer: {self.fault}")
        if self._journal.trouble is not None:
            parts.append(f"nothing can be kept: {self._journal.trouble}")
        if self.facts.get("pause"):
            parts.append(Pause(**self.facts["pause"]).describe())
        failing = sum(len(record.plan.failing_runs()) for record in records if record.state == states.RECOVERING)
        if failing:
            parts.append(f"{failing} {'recovery fails' if failing == 1 else 'recoveries fail'}: forewarn recover")
        ours = [record for record in records if not record.drill]
        if ours:
            parts.append("; ".join(self._line(record) for record in ours[:3]))
            if len(ours) > 3:
                parts.append(f"and {len(ours) - 3} more")
        elif self.fault is None and not self._problems:
            parts.append("nothing is scheduled")
        if self._problems:
            parts.append(f"the service's document cannot be read in full: {self._problems[0]}")
        drills = len(records) - len(ours)
        if drills:
            parts.append(f"{drills} {'drill' if drills == 1 else 'drills'} under way")
        if self._missing:
            parts.append(f"hooks lack what they need: {'; '.join(self._missing)}")
        if self.facts.get("policy_problem"):
            parts.append(f"other policies are in use: {self.facts['policy_problem']}")
        if self.facts.get("reload_problem"):
            parts.append(f"the last reload was refused: {self.facts['reload_problem']}")
        text = "; ".join(parts)
        return text[:1].upper() + text[1:]

    def _line(self, record: EventRecord) -> str:
        text = f"{record.event.event_type or 'an event'} {record.state}"
        moment = record.event.not_before
        if moment is not None and record.listed and record.state not in (states.APPROVED, states.STARTED):
            text += f", not before {moment:%H:%M:%S} UTC"
        return text

    def _write_heartbeat(self, records: Sequence[EventRecord]) -> None:
        if self._heartbeat is None:
            return
        news = {
            **self.facts,
            "version": __version__,
            "state": "failing" if self.fault else "ok",
            "fault": self.fault,
            "events": sum(1 for record in records if record.listed),
            "journal_trouble": self._journal.trouble,
            **self._unsaved_events(records),
            "document_problems": len(self._problems) or None,
            "document_problem": self._problems[0] if self._problems else None,
            "vm": self._scheduler.vm_name,
            "started": self._started,
        }
        # Only while the machine may be reset at any moment is a write to the disk each second worth it.
        durable = any(record.state in (states.APPROVED, states.STARTED) and not record.drill for record in records)
        now = self._clocks.monotonic()
        if durable or news != self._last_beat or now - self._last_beat_at >= HEARTBEAT_SECONDS:
            self._last_beat, self._last_beat_at = news, now
            self._heartbeat.beat({**news, "last_good_poll": self.last_good_poll}, durable)

    def _unsaved_events(self, records: Sequence[EventRecord]) -> dict[str, Any]:
        """Return the events that ``forewarn status`` cannot read, because the journal cannot be written."""
        unkept = self._journal.unsaved_ids
        events = [record for record in records if record.identifier in unkept]
        if not events:
            return {}
        texts = [
            f"{record.event.event_type or 'event'} {record.event.event_id} ({record.state})" for record in events[:3]
        ]
        return {"unkept": len(events), "unkept_events": ", ".join(texts)}

    def _report_missing(self, missing: Sequence[str]) -> None:
        for text in missing:
            if text not in self._missing:
                self._log.error("hook-missing", reason=text, hint="Events that need it will be held.")
        for text in self._missing:
            if text not in missing:
                self._log.info("hook-available", reason=f"no longer: {text}")
        self._missing = missing
        self.facts["missing"] = list(missing)
        self._metrics.set("forewarn_hook_needs_missing", float(len(missing)))

    def _report_journal(self) -> None:
        trouble = self._journal.trouble
        if self._journal.moved_aside is not None:
            reason = f"the journal was corrupt; it is now {self._journal.moved_aside}"
            hint = "What an earlier run had prepared and not recovered is no longer known: is anything still drained?"
            self._log.error("journal-trouble", reason=reason, hint=hint)
            self._journal.moved_aside = None
        for text in self._journal.losses:
            self._log.error("record-damaged", reason=text, hint="The events concerned are held until then.")
        for file in self._journal.cleared_files:
            self._log.info("damage-cleared", file=file)
        self._journal.losses.clear()
        self._journal.cleared_files.clear()
        if trouble == self._journal_trouble:
            return
        self._journal_trouble = trouble
        if trouble is None:
            self._log.info("journal-recovered")
        else:
            hint = "Events with hooks are held until it can be written again."
            self._log.error("journal-trouble", reason=trouble, hint=hint)

    def _update_metrics(self, records: Sequence[EventRecord]) -> None:
        failing = {
            record.identifier: len(record.plan.failing_runs())
            for record in records
            if record.state == states.RECOVERING
        }
        snapshot: list[object] = [
            (
                record.identifier,
                record.state,
                record.event.not_before,
                len(record.plan.active_runs()),
                failing.get(record.identifier),
                answer_of(record),
            )
            for record in records
        ]
        snapshot += (len(self._problems), self._scheduler.vm_name)
        now = self._clocks.monotonic()
        if snapshot == self._last_snapshot and now - self._last_snapshot_at < TEXTFILE_SECONDS:
            return
        self._last_snapshot, self._last_snapshot_at = snapshot, now
        self._metrics.set("forewarn_journal_up", 0.0 if self._journal.trouble else 1.0)
        self._metrics.set("forewarn_journal_damaged_records", float(len(self._journal.lost_records)))
        self._metrics.set("forewarn_document_problems", float(len(self._problems)))
        self._metrics.set("forewarn_log_lines_lost_total", float(self._log.lost))
        self._metrics.set("forewarn_hooks_running", float(sum(len(record.plan.active_runs()) for record in records)))
        for drill in (False, True):
            number = sum(failing.get(record.identifier, 0) for record in records if record.drill == drill)
            self._metrics.set("forewarn_recoveries_failing", float(number), drill=drill)
        vm = self._scheduler.vm_name
        self._metrics.replace("forewarn_vm_info", {} if vm is None else {(vm,): 1.0})
        set_event_metrics(self._metrics, records, vm, self._clocks)
        self._write_textfile()

    def _write_textfile(self) -> None:
        if self._textfile is None:
            return
        problem = write_textfile(self._textfile, self._metrics.render())
        if problem != self._textfile_problem and problem is not None:
            self._log.error("metrics-failed", reason=problem)
        self._textfile_problem = problem

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describes entries of the journal for people; entries of an unknown kind are shown as they were written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from ...policy import approval
from ...runner.journal.reader import JournalEntry
from ...texts import duration_text, exact_text
from ..runner_state import list_of, number_of, object_of, reason_of, text_of

DECISION, DOCUMENT, DRILL = "decision", "document", "drill"
# Kinds of entries that concern all events listed at the time.
OF_THE_RUNNER = (
    *("runner-started", "runner-stopped", "reloaded", "reload-failed", "poll-failed", "poll-recovered"),
    *("journal-trouble", "journal-recovered", "record-damaged", "damage-cleared"),
    *(DRILL, "impact", "recovery-refused", "paused", "resumed"),
)

_FAILED, _WARNED, _GOOD = ("red",), ("yellow",), ("green",)
# States that other entries show already; a change to any other state gets a line.
_SHOWN_STATES = ("seen", "held", "preparing", "approved", "recovering")
_STATE_STYLES = {"prepared": _GOOD, "failed": ("bold", "red"), "started": ("bold",), "done": (), "cancelled": ()}


class Line(NamedTuple):
    """A sentence and its styles; a hook's output and a decision's values follow on separate lines."""

    text: str
    styles: tuple[str, ...] = ()
    output: str = ""
    values: tuple[str, ...] = ()


def describe(entry: JournalEntry, decision: Mapping[str, Any] | None = None) -> Line | None:
    """Describe an entry, or return None if the entries beside it show the same.

    ``decision`` holds the fields of the event's previous decision, which is not repeated.
    """
    if entry.kind == DECISION:
        return _decision(entry.fields, decision or {})
    words = _WORDS.get(entry.kind)
    return generic(entry) if words is None else words(entry.fields)


def generic(entry: JournalEntry) -> Line:
    """Describe an entry of any kind by its fields."""
    fields = " ".join(f"{name}={_plain(value)}" for name, value in entry.fields.items())
    return Line(f"{entry.kind}: {fields}" if fields else entry.kind)


def _plain(value: object) -> str:
    return value if isinstance(value, str) and value and " " not in value else json.dumps(value, ensure_ascii=False)


def _state(fields: Mapping[str, Any]) -> Line | None:
    state, why = text_of(fields, "to"), text_of(fields, "why")
    if state in _SHOWN_STATES or why.startswith("no longer listed"):
        return None
    known = _STATE_STYLES.get(state)
    if known is None:
        return Line(f"{text_of(fields, 'from')} -> {state}: {why}")
    return Line(f"{state}: {why}" if why else state, _FAILED if "failed" in why else known)


def _decision(fields: Mapping[str, Any], before: Mapping[str, Any]) -> Line | None:
    output, policy, rule, reason = (text_of(fields, name) for name in ("output", "policy", "rule", "reason"))
    eligibility, why = text_of(fields, "eligibility"), text_of(fields, "eligibility_reason")
    error, left = text_of(fields, "error"), number_of(fields, "seconds_to_not_before")
    if all(fields.get(name) == before.get(name) for name in ("output", "policy", "rule", "reason")):
        if eligibility == "preparation-failed":  # the entries of the hook and the state show it
            return None
        text = f"decided as before: {output or '?'}"
    else:
        text = f"decided: {output or '?'}"
        if policy:
            text += f", by {policy}" + (f", rule {rule}" if rule else "")
        about = reason_of(fields)
        text += f": {about}" if about else ""
    if text_of(fields, "status") == "Started":
        text += " [Started]"
    elif left is not None:
        text += f" [starts in {duration_text(left)}]" if left > 0 else " [NotBefore has passed]"
    if why and why != reason and eligibility not in (approval.SEND, approval.STARTED):
        text += f". Not approved now: {why}" if output == "approve" else f". {why}"
    if error:
        text += f". Error: {error}"
    values = tuple(f"{expression} = {value}" for expression, value in object_of(fields, "values").items())
    return Line(text, _FAILED if error else _WARNED if output != "approve" else (), values=values)


def _hook(fields: Mapping[str, Any]) -> str:
    phase, occasion = text_of(fields, "phase"), text_of(fields, "occasion")
    kind = f"{phase} hook" if phase else f"notify hook ({occasion})" if occasion else "hook"
    return f"{kind} {text_of(fields, 'hook') or '?'}"


def _attempt(fields: Mapping[str, Any]) -> str:
    attempt = number_of(fields, "attempt") or 1
    return f", attempt {attempt:g}" if attempt > 1 else ""


def _hook_started(fields: Mapping[str, Any]) -> Line:
    most = number_of(fields, "timeout_seconds")
    return Line(
        f"{_hook(fields)}: started{_attempt(fields)}" + ("" if most is None else f", at most {duration_text(most)}")
    )


def _hook_ended(fields: Mapping[str, Any]) -> Line:
    result, reason = text_of(fields, "result"), text_of(fields, "reason")
    seconds, code = number_of(fields, "seconds"), number_of(fields, "exit_code")
    after = "" if seconds is None else f" after {exact_text(seconds)}"
    output = text_of(fields, "output")
    if output.strip() in reason:  # which quotes the last line
        output = ""
    if result == "succeeded":
        return Line(f"{_hook(fields)}: succeeded{after}{_attempt(fields)}", _GOOD, output)
    if not reason and code is not None:
        reason = f"exit code {code:g}"
    word = {"timed-out": "timed out", "not-started": "could not be started"}.get(result, result or "?")
    after = "" if result == "not-started" else after
    return Line(
        f"{_hook(fields)}: {word}{after}{_attempt(fields)}" + (f": {reason}" if reason else ""), _FAILED, output
    )


def _notified(fields: Mapping[str, Any]) -> Line:
    line = _hook_ended(fields)
    dropped = number_of(fields, "dropped")
    text = line.text + (f"; {dropped:g} others were dropped: too many were waiting" if dropped else "")
    return line._replace(text=text, styles=("dim",) if text_of(fields, "result") == "succeeded" else _WARNED)


def _approved(fields: Mapping[str, Any]) -> Line:
    times = number_of(fields, "times")
    again = f" for the {_ordinal(int(times))} time" if times else ""
    return Line(f"approved: the service took it{again}", ("bold", "green"))


def _ordinal(number: int) -> str:
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _approval_failed(fields: Mapping[str, Any]) -> Line:
    status = number_of(fields, "status")
    about = f" (status {status:g})" if status is not None else ""
    again = "" if fields.get("lasting") is True else "; it is tried again"
    again += "; it may have arrived all the same" if fields.get("unsure") is True else ""
    return Line(f"approval failed{about}: {text_of(fields, 'reason') or text_of(fields, 'kind')}{again}", _FAILED)


def _gone(fields: Mapping[str, Any]) -> Line:
    outcome = text_of(fields, "outcome")
    return Line(f"no longer listed{_seconds(fields, 'listed_seconds')}: {OUTCOMES.get(outcome, outcome)}", ("bold",))


OUTCOMES = {"finished": "finished", "cancelled": "cancelled, it never started", "unseen": "its outcome was not seen"}


def _impact(fields: Mapping[str, Any]) -> Line:
    seconds, announced = number_of(fields, "seconds") or 0.0, number_of(fields, "announced_seconds")
    what = "was down" if text_of(fields, "kind") == "reboot" else "stood still"
    announcement = ""
    if announced is not None:
        known = "how long was not" if announced < 0 else f"{exact_text(announced)} were"
        announcement = f"; {known} announced"
    return Line(f"the machine {what} for {exact_text(seconds)}{announcement}", _WARNED)


def _by(fields: Mapping[str, Any], name: str = "by") -> str:
    return f" by {text_of(fields, name)}" if text_of(fields, name) else ""


def _after(fields: Mapping[str, Any], name: str, lead: str = ": ") -> str:
    """Return a text, or a list of names, after ``lead``; nothing if it is empty."""
    text = text_of(fields, name) or _names(fields, name)
    return f"{lead}{text}" if text else ""


def _seconds(fields: Mapping[str, Any], name: str) -> str:
    seconds = number_of(fields, name)
    return "" if seconds is None else f", after {exact_text(seconds)}"


def _names(fields: Mapping[str, Any], name: str, separator: str = ", ") -> str:
    return separator.join(map(str, list_of(fields, name)))


def _recovery_refused(fields: Mapping[str, Any]) -> Line:
    about = " ".join(text for text in (text_of(fields, "action"), text_of(fields, "event_id")) if text)
    about = about or text_of(fields, "request")
    return Line(f"a request to recover was refused ({about}{_by(fields)}): {text_of(fields, 'reason')}", _WARNED)


def _runner_started(fields: Mapping[str, Any]) -> Line:
    version, policy = text_of(fields, "version"), text_of(fields, "policy")
    text = (
        f"the runner started{f', forewarn {version}' if version else ''}{f', policy {policy[:19]}' if policy else ''}"
    )
    return Line(text + (", a dry run" if fields.get("dry_run") is True else ""), ("cyan",))


def _reloaded(fields: Mapping[str, Any]) -> Line:
    policy, before = text_of(fields, "policy"), text_of(fields, "before")
    what = "the policy is the same" if policy == before else f"policy {policy[:19]}, before {before[:19]}"
    if text_of(fields, "from") == "policy-source":
        return Line(f"the policy source has brought serial {number_of(fields, 'serial') or 0:.0f}: {what}", ("cyan",))
    return Line(f"the configuration was read again: {what}", ("cyan",))


def _journal_recovered(fields: Mapping[str, Any]) -> Line:
    reason, lost = text_of(fields, "reason"), number_of(fields, "lost")
    text = f"the journal is kept again{_seconds(fields, 'seconds')}"
    text += f"; {lost:g} entries were lost" if lost else ""
    return Line(text + (f". There was: {reason}" if reason else ""), _WARNED)


def _document(fields: Mapping[str, Any]) -> Line:
    document = object_of(fields, "document")
    incarnation = document.get("DocumentIncarnation", fields.get("incarnation"))
    events = [
        f"{text_of(event, 'EventType') or '?'} {text_of(event, 'EventId')} {text_of(event, 'EventStatus')}"
        for event in list_of(document, "Events")
    ]
    text = f"document {'without a number' if incarnation is None else incarnation}"
    text += f"{', a drill' if fields.get('drill') is True else ''}: {'; '.join(events) or 'no events'}"
    problems = _names(fields, "problems", "; ")
    return Line(text + (f". Not understood: {problems}" if problems else ""), _WARNED if problems else ("dim",))


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], Line | None]] = {
    "state": _state,
    "hook-started": _hook_started,
    "hook-ended": _hook_ended,
    "hook-left": lambda fields: Line(f"recover {_hook(fields)}: {text_of(fields, 'reason')}"),
    "hook-waits": lambda fields: Line(f"recover {_hook(fields)} waits: {text_of(fields, 'reason')}", _WARNED),
    "hook-left-over": lambda fields: Line(f"earlier {_hook(fields)}: {text_of(fields, 'reason')}", _WARNED),
    "notified": _notified,
    "approval-sending": lambda _fields: Line("the approval is sent", ("dim",)),
    "approved": _approved,
    "would-approve": lambda _fields: Line("would be approved, but nothing is sent: a dry run, or a drill", _GOOD),
    "would-run": lambda fields: Line(
        f"would now run {text_of(fields, 'phase')} hook {_names(fields, 'hooks', ', then ')}"
        ", but a dry run runs no hooks",
        _GOOD,
    ),
    "approval-failed": _approval_failed,
    "event-gone": _gone,
    "impact": _impact,
    "shadow": lambda fields: Line(
        f"the shadow policy says {text_of(fields, 'other')}, not {text_of(fields, 'live')}{_after(fields, 'what')}",
        _WARNED,
    ),
    DRILL: lambda fields: Line(
        f"{text_of(fields, 'event_id') or 'drill'} ended: {text_of(fields, 'result')}{_after(fields, 'reason')}"
    ),
    "paused": lambda fields: Line(text_of(fields, "reason") or "approvals are paused", _WARNED),
    "resumed": lambda fields: Line(f"the pause of approvals is over{_by(fields) or ': its time has come'}", ("cyan",)),
    "recovery-again": lambda fields: Line(f"recovery requested again{_by(fields)}{_after(fields, 'hooks')}", ("cyan",)),
    "recovery-dealt-with": lambda fields: Line(
        f"recovery dealt with{_by(fields)}: {text_of(fields, 'note')}"
        f"{_after(fields, 'hooks', '. Not tried any more: ')}",
        ("cyan",),
    ),
    "recovery-refused": _recovery_refused,
    "runner-started": _runner_started,
    "runner-stopped": lambda fields: Line(f"the runner was stopped{_by(fields, 'signal')}", ("cyan",)),
    "reloaded": _reloaded,
    "reload-failed": lambda fields: Line(f"a new configuration was refused: {text_of(fields, 'reason')}", _FAILED),
    "poll-failed": lambda fields: Line(
        f"the service does not answer: {text_of(fields, 'reason') or text_of(fields, 'kind')}", _FAILED
    ),
    "poll-recovered": lambda fields: Line(f"the service answers again{_seconds(fields, 'after_seconds')}", _GOOD),
    "journal-trouble": lambda fields: Line(f"nothing could be kept: {text_of(fields, 'reason')}", _FAILED),
    "journal-recovered": _journal_recovered,
    "record-damaged": lambda fields: Line(
        f"the journal is damaged{f' (event {keys})' if (keys := _names(fields, 'event_keys')) else ''}"
        f"{_after(fields, 'reason')}",
        _FAILED,
    ),
    "damage-cleared": lambda fields: Line(
        f"somebody has dealt with the damage and removed {text_of(fields, 'file')}", _GOOD
    ),
    DOCUMENT: _document,
}

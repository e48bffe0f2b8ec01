# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of people when a recovery fails: to run it again, or to count it as done. ``forewarn recover`` makes them.

STATE/recoveries/ID.json is a request. Its file is removed only when the journal has on the disk that the request was
carried out. So a request survives a runner that is killed, and waits while none runs.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import InputError
from ...events import MAX_ID_CHARACTERS
from ...system import account
from .. import event_record as states
from ..clocks import Stamp
from ..state.inbox import Inbox
from . import commands
from .plan import BY_A_PERSON, Plan
from .run import NOTHING_LEFT_TO_DO, RECOVER, RUNNING, SKIPPED, Run

if TYPE_CHECKING:  # the command needs none of these
    from ..event_record import EventRecord
    from ..telemetry.recorder import Recorder
    from .open_records import OpenRecords

DIRECTORY = "recoveries"
AGAIN, DEALT_WITH = "again", "dealt-with"  # actions
# The kinds of entries in the journal and of lines in the log that answer a request; ``request`` is its id.
ANSWERS = {AGAIN: "recovery-again", DEALT_WITH: "recovery-dealt-with"}
REFUSED = "recovery-refused"

_ID = "recover-[0-9a-f]{12}"
_SUFFIX = ".json"
_LONGEST_NOTE = 1000
_LONGEST_NAME = 200
_SCHEMA = {"schema": "recovery-request", "version": 1}


class RecoveryRequest(NamedTuple):
    """A request. ``note`` is None unless a person has dealt with it; ``by`` names the user who asked."""

    record_id: int
    event_id: str
    action: str
    note: str | None
    by: str
    asked: Stamp


def check(request: RecoveryRequest) -> RecoveryRequest:
    """Return the request if it is valid. Raises InputError with what is wrong."""
    if request.action not in ANSWERS:
        raise InputError(f"action {request.action[:80]!r} is not one of {', '.join(ANSWERS)}.")
    if (request.note is None) != (request.action == AGAIN):
        raise InputError("a note belongs to what was dealt with, and to nothing else.")
    if request.note is not None and not (request.note.strip() and _is_line(request.note, _LONGEST_NOTE)):
        raise InputError(
            f"the note is not one line of 1 to {_LONGEST_NOTE} characters.",
            "Say in a sentence what was done; the history shows it.",
        )
    if not (request.by and _is_line(request.by, _LONGEST_NAME)):
        raise InputError("the request does not say who asked.")
    return request


def submit(directory: str, request: RecoveryRequest) -> str:
    """Submit a request to the runner of a state directory, now or when it is started; return the request's id.

    The request is on the disk then. Raises InputError if it is invalid, or if this user has no permission.
    """
    check(request)
    name = f"recover-{os.urandom(6).hex()}"
    inbox = Inbox(directory, DIRECTORY, "request")
    inbox.create()
    data = {"forewarn": _SCHEMA, **request._asdict()}
    inbox.write(name + _SUFFIX, json.dumps(data).encode("ascii"))
    return name


def is_pending(directory: str, request_id: str) -> bool:
    """Return whether a request is still to be carried out; True if that is unknown."""
    names = Inbox(directory, DIRECTORY, "request").names()
    return names is None or request_id + _SUFFIX in names


def unfinished(plan: Plan) -> list[Run]:
    """Return the recover hooks that are left to run and have been tried, or interrupted, at least once."""
    left = (run for run in plan.of_phase(RECOVER) if run.status not in NOTHING_LEFT_TO_DO)
    return [run for run in left if run.failures or run.reason or run.attempts > (run.status == RUNNING)]


class RecoveryRequests:
    """The requests to one runner. For the main thread; nothing here raises. ``directory`` is the state directory.

    Requests concern hooks that do not run. One that runs may finish: a recovery that is requested again may have
    succeeded by then, and what a person has dealt with is not tried again, whatever its result.
    """

    def __init__(self, directory: str, records: OpenRecords, recorder: Recorder) -> None:
        self._inbox = Inbox(directory, DIRECTORY, "request")
        self._records = records
        self._recorder = recorder
        self._journal, self._log, _metrics = recorder
        self._requests: dict[str, RecoveryRequest] = {}  # by id, in the order of their times
        self._done: set[str] = set()  # to be removed as soon as the journal is on the disk

    def read_requests(self) -> None:
        """Read the requests that are there."""
        names = self._inbox.names()
        if names is None or (not names and not self._requests):  # as nearly always
            return
        files = {name[: -len(_SUFFIX)]: name for name in names if name.endswith(_SUFFIX)}
        for withdrawn in self._requests.keys() - files.keys():
            del self._requests[withdrawn]  # somebody has withdrawn it
        for request_id in files.keys() - self._requests.keys() - self._done:
            self._read(request_id, files[request_id])
        self._requests = dict(sorted(self._requests.items(), key=lambda item: (item[1].asked.wall, item[0])))

    def carry_out(self) -> None:
        """Carry out the requests that are possible now. Call it before the scheduler starts what is due."""
        for request_id, request in list(self._requests.items()):
            record = next((record for record in self._records if record.identifier == request.record_id), None)
            if record is None and self._journal.trouble is not None:
                continue  # its record may not have been read yet
            if record is None or record.state != states.RECOVERING:
                if self._is_answered(request_id, request):
                    self._end(request_id)
                else:
                    self._refuse(request_id, request, "the event is not being recovered, or not any more")
            else:
                self._apply(request_id, request, record)

    def remove_done(self) -> None:
        """Remove the files of requests that are done. Call it when the journal is on the disk."""
        while self._done:
            self._inbox.remove(self._done.pop() + _SUFFIX)

    def _read(self, request_id: str, name: str) -> None:
        try:
            if not re.fullmatch(_ID, request_id):
                raise InputError(f"{name} is not the name of a request's file.")
            request = _request(self._inbox.read(name))
        except OSError:  # the next attempt may read it
            return
        except InputError as error:
            self._inbox.refuse(name)
            reason = f"{error.message} It was moved aside."
            self._log.warning(REFUSED, request=request_id, reason=reason)
            self._journal.note(REFUSED, None, request=request_id, reason=reason)
            return
        if self._is_answered(request_id, request):  # by a runner that was killed before it could remove the file
            self._done.add(request_id)
        else:
            self._requests[request_id] = request

    def _is_answered(self, request_id: str, request: RecoveryRequest) -> bool:
        answers = self._journal.fields_of(ANSWERS[request.action], request.record_id)
        return any(fields.get("request") == request_id for fields in answers)

    def _apply(self, request_id: str, request: RecoveryRequest, record: EventRecord) -> None:
        busy = bool(record.plan.active_runs(RECOVER))
        if request.note is None:
            if busy:
                return
            runs = record.plan.retry_recovery()
            self._records.save(record)
        else:
            if record.plan.skip_recovery(request.note):
                self._records.save(record)
            if busy:
                return
            skipped = (run for run in record.plan.of_phase(RECOVER) if run.status == SKIPPED)
            runs = [run for run in skipped if run.reason.startswith(BY_A_PERSON)]
        hooks = [commands.describe(run.hook) for run in runs]
        fields = {"request": request_id, "by": request.by, "note": request.note, "hooks": hooks}
        self._recorder.write(ANSWERS[request.action], record, fields)
        self._end(request_id)

    def _refuse(self, request_id: str, request: RecoveryRequest, reason: str) -> None:
        fields = {
            "request": request_id,
            "event_id": request.event_id,
            "action": request.action,
            "by": request.by,
            "note": request.note,
            "reason": reason,
        }
        self._log.warning(REFUSED, **fields)
        self._journal.note(REFUSED, None, **fields)
        self._end(request_id)

    def _end(self, request_id: str) -> None:
        del self._requests[request_id]
        self._done.add(request_id)


def requesting_user(environ: Mapping[str, str]) -> str:
    """Return the name of this process's user, and with sudo the name of the user who ran it."""
    name = account.user_name()
    caller = account.calling_user(environ)
    text = f"{name} (sudo: {caller})" if caller not in (None, name) else name
    return text if _is_line(text, _LONGEST_NAME) else name


def _is_line(text: str, most: int) -> bool:
    return len(text) <= most and text.isprintable()


def _request(content: bytes) -> RecoveryRequest:
    """Return what ``submit`` wrote. Raises InputError for anything else."""
    try:
        data: Any = json.loads(content)
        if not isinstance(data, dict) or data.keys() != {"forewarn", *RecoveryRequest._fields}:
            raise ValueError(f"it has not exactly the keys forewarn, {', '.join(RecoveryRequest._fields)}")
        if data["forewarn"] != _SCHEMA:
            raise ValueError("it is of another version of Forewarn")
        record_id = data["record_id"]
        if isinstance(record_id, bool) or not isinstance(record_id, int) or not -(2**63) <= record_id < 2**63:
            raise TypeError("record_id is not a number")
        for name in ("event_id", "action", "by"):
            if not isinstance(data[name], str):
                raise TypeError(f"{name} is not a text")
        if not (data["note"] is None or isinstance(data["note"], str)):
            raise TypeError("note is not a text")
        asked = Stamp.of(data["asked"])
        request = RecoveryRequest(record_id, data["event_id"], data["action"], data["note"], data["by"], asked)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise InputError(f"its file is not a request: {error}.") from error
    if not _is_line(request.event_id, MAX_ID_CHARACTERS):
        raise InputError("its file is not a request: event_id is not the id of an event.")
    return check(request)

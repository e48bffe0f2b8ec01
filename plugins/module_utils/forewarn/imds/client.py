# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the Scheduled Events service (SE-01 … SE-07, SE-30 … SE-33)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import TypeVar

from ..errors import InputError
from ..events import LATEST_API_VERSION, Document, DocumentError, Vm, parse_document, parse_time
from ..system.clock import boot_seconds
from ..texts import duration_text, exact_text
from .endpoint import DEFAULT_ENDPOINT, parse_endpoint
from .errors import (
    API_VERSION,
    CONNECTION,
    GARBAGE,
    HTTP,
    NOT_SENT,
    REDIRECT,
    TIMEOUT,
    Fault,
    LastingFault,
    PassingFault,
)
from .identity import INSTANCE_API_VERSION, parse_instance
from .limiter import READ_RESERVE, Limiter
from .retry import FaultLog, RetryPolicy
from .transport import ImdsRequest, Response, Transport

# The address is on the host: a connection takes milliseconds, or fails.
CONNECT_TIMEOUT_SECONDS = 5.0
# A shorter timeout gains nothing: the service continues with abandoned requests, and soon answers 429.
READ_TIMEOUT_SECONDS = 10.0
# The first request switches the service on, which takes up to 2 minutes (SE-05).
FIRST_READ_TIMEOUT_SECONDS = 120.0
FIRST_PATIENCE_SECONDS = 120.0

_HEADERS = {"Metadata": "true", "Accept": "application/json", "User-Agent": "forewarn"}
_API_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(?:-[a-z]+)?", re.ASCII)
# Matches an error body about the api-version, but not one that merely repeats our URL.
_ABOUT_VERSION = re.compile(r"api[- ]?version(?!=|%3D)|newest-versions", re.IGNORECASE)
_FINDING_FAULT = re.compile(r"invalid|not valid|unsupported|not supported|unknown|newest-versions", re.IGNORECASE)
_WEB_PAGE = re.compile(r"<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]+)</title>", re.IGNORECASE)
_UNSURE = "Whether the approval arrived is not known."
_MAX_EXCERPT = 200  # characters of an error's body
_PASSING_STATUSES = frozenset({404, 408, 409, 410, 425, 429, 499})  # and all below 300 and above 499

_T = TypeVar("_T")


class Client:
    """The client of the service at one endpoint, on one persistent connection, within the budget of ``limiter``.

    Every request has ``Metadata: true`` (SE-02), none goes through a proxy (SE-07), no redirect is followed. Timeouts
    are in seconds; until the service has answered once, ``first_read_timeout`` applies (SE-05). ``clock`` is monotonic,
    ``wall`` returns seconds since 1970; ``age_clock`` is monotonic, and goes on while this process is stopped.
    ``log`` receives texts for the operator; it and ``sleep`` can be set later. ``transport`` replaces the connection.

    Not thread-safe. Raises InputError if the endpoint or the api-version is malformed.
    """

    def __init__(
        self,
        endpoint: str = DEFAULT_ENDPOINT,
        api_version: str = LATEST_API_VERSION,
        *,
        connect_timeout: float = CONNECT_TIMEOUT_SECONDS,
        read_timeout: float = READ_TIMEOUT_SECONDS,
        first_read_timeout: float = FIRST_READ_TIMEOUT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        wall: Callable[[], float] = time.time,
        age_clock: Callable[[], float] = boot_seconds,
        log: Callable[[str], None] | None = None,
        transport: Transport | None = None,
    ) -> None:
        if not _API_VERSION.fullmatch(api_version):
            raise InputError(f"{api_version!r} is not an api-version.", f"Write it like {LATEST_API_VERSION}.")
        self.endpoint = parse_endpoint(endpoint)
        self.api_version = api_version
        self.limiter = Limiter(clock=clock)
        self.answered = False  # whether the service has answered a read of this client
        self._last_read: tuple[bytes, Document] | None = None  # the body of the last read, and its content
        self._read_timeout = read_timeout
        self._first_read_timeout = first_read_timeout
        self.clock = clock
        self.sleep = sleep
        self.log = log
        self.faults = FaultLog(lambda fault: self._report(str(fault)), self._report_end, clock)
        self._wall = wall
        self._transport = transport or Transport(self.endpoint.host, self.endpoint.port, connect_timeout, age_clock)
        self._read_at: float | None = None  # when the last document was read, by the transport's clock; None once used

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. The next request opens another."""
        self._transport.close()

    def _report(self, text: str) -> None:
        if self.log is not None:
            self.log(text)

    def _report_end(self, failures: int, seconds: float) -> None:
        times = "1 failure" if failures == 1 else f"{failures} failures"
        self._report(f"The service answers again, after {times} in {duration_text(seconds)}.")

    def read_ahead(self) -> None:
        """Send the first request for the document; the first read takes its answer, and raises its fault.

        Takes 0.1 s at most, and raises nothing: sends nothing if nobody accepts the connection at once, or if the host
        is a name, which would have to be looked up.
        """
        with suppress(Fault):
            if self.endpoint.is_address and self.limiter.take(reserve=READ_RESERVE):
                self._transport.send_ahead(self._request("scheduledevents", self.api_version), self._timeout())

    def read_once(self) -> Document:
        """Read the document in one attempt (SE-01), once the budget allows. Raises PassingFault or LastingFault."""
        return self._read(self._timeout())

    def read(self, patience_seconds: float = FIRST_PATIENCE_SECONDS) -> Document:
        """Read the document, with retries after passing faults for up to ``patience_seconds``.

        The first attempt may take ``first_read_timeout``, whatever the patience. Raises PassingFault or LastingFault.
        """
        return self._with_retries(self._read, patience_seconds)

    def approve(
        self, event_ids: Sequence[str], incarnation: int | str | None = None, not_after: float | None = None
    ) -> None:
        """Approve events of the last document in one request (SE-30), with each id spelled as in the document.

        ``incarnation`` is the document's, which the api-versions of 2017 require. The request is sent at most once
        (SE-31). It is not sent if the document is out of date, or if ``not_after`` (seconds since 1970) has passed: the
        fault is then of the kind NOT_SENT. Raises PassingFault or LastingFault; ``unsure`` says whether the approval
        may have had an effect, which only another document tells. Raises ValueError without an event.
        """
        if not event_ids:
            raise ValueError("no event to approve")
        content: dict[str, object] = {"StartRequests": [{"EventId": event_id} for event_id in event_ids]}
        if self.api_version.startswith("2017-") and incarnation is not None:
            content["DocumentIncarnation"] = incarnation
        request = self._request("scheduledevents", self.api_version, json.dumps(content).encode())
        try:
            response = self._transport.exchange(request, self._timeout(), lambda: self._admit_approval(not_after))
            if not 200 <= response.status < 300:
                raise self._fault(response, "approving")
        except Fault as fault:
            fault.unsure = fault.kind in (TIMEOUT, CONNECTION, GARBAGE) or (fault.status or 0) >= 500
            if fault.unsure:
                fault.hint = f"{_UNSURE} {fault.hint}".rstrip()
            raise

    def _admit_approval(self, not_after: float | None) -> None:
        """Raise PassingFault unless an approval may be sent now. Each approval needs a document of its own."""
        if self._read_at is None:
            why = "no document has been read since the last one"
        elif (age := self._transport.clock() - self._read_at) > self._transport.fresh_seconds:
            why = f"the document is too old, {exact_text(age)}"
        elif not_after is not None and self._wall() >= not_after:
            why = "NotBefore has passed by this VM's clock"
        elif not self.limiter.take():
            why = "the request budget is used up"
        else:
            self._read_at = None
            return
        raise PassingFault(f"not sent: {why}.", kind=NOT_SENT)

    def read_instance(self, patience_seconds: float = 0.0) -> Vm:
        """Read the identity of this VM, with retries as ``read``. Raises PassingFault or LastingFault."""
        return self._with_retries(self._read_instance, patience_seconds)

    def _timeout(self) -> float:
        return self._read_timeout if self.answered else max(self._first_read_timeout, self._read_timeout)

    def _with_retries(self, attempt: Callable[[float], _T], patience_seconds: float) -> _T:
        deadline = self.clock() + patience_seconds
        policy = RetryPolicy(deadline, clock=self.clock)
        timeout = self._timeout()
        while True:
            try:
                result = attempt(timeout)
            except Fault as fault:  # noqa: PERF203 - attempts are seconds apart
                due = policy.record_failure(fault)
                if policy.is_exhausted(fault):
                    raise
                self.faults.record_failure(fault)
                self.sleep(max(0.0, due - self.clock()))
                timeout = min(self._timeout(), max(self._read_timeout, deadline - self.clock()))
            else:
                self.faults.record_success()
                return result

    def _read(self, timeout: float) -> Document:
        response = self._get("scheduledevents", self.api_version, timeout)
        if response.status != 200:
            raise self._fault(response, "reading the events")
        if self._last_read is not None and self._last_read[0] == response.body:  # true at nearly every poll
            self._read_at = response.since
            return self._last_read[1]
        try:
            document = parse_document(response.body, self.api_version)
        except DocumentError as error:
            raise PassingFault(f"{self.endpoint.url} answered 200, but {error.message}.", kind=GARBAGE) from error
        self.answered = True
        self._last_read, self._read_at = (response.body, document), response.since
        return document

    def _read_instance(self, timeout: float) -> Vm:
        response = self._get("instance", INSTANCE_API_VERSION, timeout)
        if response.status != 200:
            raise self._fault(response, "reading the instance metadata")
        try:
            return parse_instance(response.body)
        except ValueError as error:
            raise PassingFault(
                f"{self.endpoint.url} answered 200, but the instance metadata is unreadable: {error}.", kind=GARBAGE
            ) from error

    def _get(self, resource: str, api_version: str, timeout: float) -> Response:
        return self._transport.exchange(self._request(resource, api_version), timeout, self._admit_read)

    def _request(self, resource: str, api_version: str, body: bytes | None = None) -> ImdsRequest:
        target = f"{self.endpoint.prefix}/metadata/{resource}?api-version={api_version}"
        if body is None:
            return ImdsRequest("GET", target, _HEADERS)
        return ImdsRequest("POST", target, {**_HEADERS, "Content-Type": "application/json"}, body)

    def _admit_read(self) -> None:
        while not self.limiter.take(reserve=READ_RESERVE):
            self.sleep(self.limiter.delay(reserve=READ_RESERVE))

    def _fault(self, response: Response, doing: str) -> Fault:
        """Return the fault for an answer that is not 200."""
        status = response.status
        body = response.body[:4000].decode("utf-8", "replace")
        excerpt = _excerpt(body)
        message = f"{self.endpoint.url} answered {status} {response.reason}".rstrip() + f" when {doing}"
        if 300 <= status < 400:
            location = response.headers.get("location", "nowhere")
            return LastingFault(
                f"{message}: a redirect to {location[:200]}, which is not followed.",
                "The service never redirects: is the endpoint right, or is something in between?",
                kind=REDIRECT,
                status=status,
            )
        message += f": {excerpt}" if excerpt else ""
        message += "" if message.endswith((".", "!", "?", "…")) else "."
        if status in (400, 404) and _ABOUT_VERSION.search(body) and _FINDING_FAULT.search(body):
            return LastingFault(
                message, f"Is api-version {self.api_version} right for this service?", kind=API_VERSION, status=status
            )
        if status in _PASSING_STATUSES or status < 300 or status >= 500:
            return PassingFault(
                message, _HINTS.get(status, ""), kind=HTTP, status=status, retry_after=_retry_after(response)
            )
        return LastingFault(message, _HINTS.get(status, ""), kind=HTTP, status=status)


_HINTS = {
    400: "The service finds the request malformed: check the endpoint and the api-version.",
    403: "Something forbids the request: a host firewall, or the metadata security protocol.",
    404: "Usual for some minutes while the host is updated; otherwise check the endpoint.",
    410: "Usual for some minutes while the host is updated.",
    429: "All agents of a VM share 5 requests a second: another one may be asking too often.",
}


def _excerpt(body: str) -> str:
    """Return an excerpt of an error's body for a message: the title of a web page, or the start of a text."""
    text = " ".join(body.split())
    if _WEB_PAGE.match(text):
        title = _TITLE.search(text)
        return f"a web page with the title {title.group(1).strip()[:_MAX_EXCERPT]!r}" if title else "a web page"
    if len(text) <= _MAX_EXCERPT:
        return text
    whole_words = text[: _MAX_EXCERPT + 1].rpartition(" ")[0]
    return (whole_words or text[:_MAX_EXCERPT]) + " …"


def _retry_after(response: Response) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date; None without a valid one."""
    value = response.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, (parse_time(value) - datetime.now(timezone.utc)).total_seconds())
    except ValueError:
        return None

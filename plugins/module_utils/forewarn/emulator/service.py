# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulated service's answers to requests, without sockets."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ..events import API_VERSIONS
from .documents import FIRST_INSTANCE_API_VERSION, INSTANCE_API_VERSION, etag, instance, render
from .emulation import Emulation
from .faults import REFUSING, InjectedFault
from .lifecycle import UnknownNameError
from .requestlog import LoggedRequest

EVENTS_PATH = "/metadata/scheduledevents"
INSTANCE_PATH = "/metadata/instance"
_VM_PREFIX = "/vm/"
_HEADER_SINCE = "2017-08-01"  # SE-02
_JSON = "application/json; charset=utf-8"


@dataclass(frozen=True)
class HttpRequest:
    """A request as received: ``target`` is the request line's, header names are in lower case, ``vm`` is the VM whose
    own port received it (None: the shared port).
    """

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    body: bytes = b""
    vm: str | None = None


@dataclass(frozen=True)
class HttpResponse:
    """An answer. ``fault``: how the connection ends, instead of it (drop, reset) or within it (cut_head, cut_off)."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    fault: str = ""

    @property
    def lost(self) -> bool:
        """Whether nothing of it is sent."""
        return self.fault in ("drop", "reset")


@dataclass(frozen=True)
class _Call:
    """A request of a VM: its path without the prefix that names the VM, its query, and its entry in the log."""

    request: HttpRequest
    vm: str
    path: str
    query: Sequence[tuple[str, str]]
    entry: LoggedRequest

    @property
    def is_about_instance(self) -> bool:
        return self.path == INSTANCE_PATH or self.path.startswith(INSTANCE_PATH + "/")


class _RefusedError(Exception):
    """The request is answered with an error status."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.response = json_response(status, {"error": message}, headers)


def json_response(status: int, payload: object, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Return an answer with a JSON body. In it a dataclass is the object of its fields."""
    return HttpResponse(status, json.dumps(payload, default=vars).encode(), {"Content-Type": _JSON, **(headers or {})})


class Service:
    """Answers requests to ``/metadata/…`` and ``/vm/NAME/metadata/…``. Blocks as long as a slow answer takes."""

    def __init__(self, emulation: Emulation, real_time: Callable[[], float] = time.monotonic) -> None:
        self.emulation = emulation
        self._allowance = _Allowance(real_time)

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Return the answer to a request, and log both."""
        emulation = self.emulation
        path, query = _split(request.target)
        vm, path, unknown = self._who(path, request.vm)
        versions = [value for name, value in query if name == "api-version"]
        with emulation.lock:
            entry = emulation.log.arrived(
                emulation.stamp(),
                vm=vm,
                method=request.method,
                path=path,
                api_version=versions[0] if versions else None,
                user_agent=request.headers.get("user-agent"),
            )
        try:
            if unknown is not None:
                raise _RefusedError(404, unknown)
            response = self._answer(_Call(request, vm or "", path, query, entry))
        except _RefusedError as refused:
            entry.error = json.loads(refused.response.body)["error"]
            response = refused.response
        with emulation.lock:
            emulation.log.answered(entry, emulation.stamp(), None if response.lost else response.status)
        return response

    def _who(self, path: str, vm: str | None) -> tuple[str | None, str, str | None]:
        """Return the VM that asks, the path without the prefix that names it, and what is wrong with that prefix."""
        with self.emulation.lock:
            if path.startswith(_VM_PREFIX):
                name, slash, rest = path[len(_VM_PREFIX) :].partition("/")
                path, vm = slash + rest, unquote(name)
            try:
                return self.emulation.model.vm(vm).name, path, None
            except UnknownNameError as error:
                return None, path, str(error)

    def _answer(self, call: _Call) -> HttpResponse:
        kind = "instance" if call.is_about_instance else "post" if call.request.method == "POST" else "get"
        emulation = self.emulation
        limit = emulation.scenario.settings.requests_per_second
        if not self._allowance.take(call.vm, limit):
            raise _RefusedError(429, f"More than {limit} requests in a second.")
        with emulation.lock:
            now = emulation.clock.now()
            latency, fault = emulation.faults.take(call.vm, kind, now)
        call.entry.fault = fault.kind if fault else ("latency" if latency else None)
        if latency:
            emulation.wait_until(now + latency)
        if fault is not None and fault.kind in REFUSING:
            if fault.processed:
                self._serve(call)
            return self._refusal(fault)
        response = self._serve(call)
        return response if fault is None else _spoil(response, fault.kind)

    def _refusal(self, fault: InjectedFault) -> HttpResponse:
        if fault.kind != "status":
            return HttpResponse(0, fault=fault.kind)
        headers = {}
        if fault.retry_after is not None:
            headers["Retry-After"] = str(ceil(fault.retry_after / (self.emulation.clock.scale or 1.0)))
        return json_response(fault.status, {"error": "This fault is injected by the emulator."}, headers)

    def _serve(self, call: _Call) -> HttpResponse:
        if call.path == EVENTS_PATH:
            _check_method(call.request.method, ("GET", "POST"))
            unknown_status = self.emulation.scenario.settings.unknown_version_status
            return self._events(call, _check_version(call.query, call.request.headers, unknown_status))
        if call.is_about_instance:
            _check_method(call.request.method, ("GET",))
            return self._instance(call)
        raise _RefusedError(404, f"There is nothing at {call.path}.")

    def _events(self, call: _Call, version: str) -> HttpResponse:
        emulation = self.emulation
        ids = _start_requests(call.request.body) if call.request.method == "POST" else []
        call.entry.event_ids = ids
        with emulation.lock:
            ready_at = emulation.model.request(call.vm)
        emulation.wait_until(ready_at)
        with emulation.lock:
            model = emulation.model
            if ids:
                try:
                    model.approve(ids, call.vm)
                except UnknownNameError as error:
                    raise _RefusedError(400, f"{error.message}: nothing was approved.") from error
                emulation.lock.notify_all()
                return HttpResponse(200)
            incarnation, events = model.document(call.vm, version)
        call.entry.incarnation = incarnation
        settings = emulation.scenario.settings
        body = render(incarnation, events, version, settings.not_before_format)
        headers = {"Content-Type": _JSON}
        if settings.etag:
            headers["ETag"] = etag(body)
            if _matches(call.request.headers.get("if-none-match", ""), headers["ETag"]):
                return HttpResponse(304, headers={"ETag": headers["ETag"]})
        return HttpResponse(200, body, headers)

    def _instance(self, call: _Call) -> HttpResponse:
        _check_headers(call.request.headers)
        version = _single(call.query, "api-version")
        if not INSTANCE_API_VERSION.fullmatch(version) or version < FIRST_INSTANCE_API_VERSION:
            raise _RefusedError(400, f"The api-version {version[:20]!r} is not supported.")
        with self.emulation.lock:
            found: Any = instance(self.emulation.model.vm(call.vm), version)
        inside = call.path[len(INSTANCE_PATH) :].strip("/")
        for part in inside.split("/") if inside else []:
            if not isinstance(found, dict) or part not in found:
                raise _RefusedError(404, f"There is nothing at {call.path}.")
            found = found[part]
        if dict(call.query).get("format", "json") == "text":
            if isinstance(found, (dict, list)):
                raise _RefusedError(400, "Only a single value is available as text.")
            return HttpResponse(200, str(found).encode(), {"Content-Type": "text/plain; charset=utf-8"})
        return json_response(200, found)


class _Allowance:
    """Limits each VM's requests per real second, whatever the time scale: clients poll by their own clock."""

    def __init__(self, real_time: Callable[[], float]) -> None:
        self._real_time = real_time
        self._lock = threading.Lock()
        self._served: dict[str, deque[float]] = {}

    def take(self, vm: str, limit: int) -> bool:
        """Return whether one more request is served now."""
        if limit == 0:
            return True
        with self._lock:
            now = self._real_time()
            served = self._served.setdefault(vm, deque())
            while served and served[0] <= now - 1.0:
                served.popleft()
            if len(served) >= limit:
                return False
            served.append(now)
            return True


def _split(target: str) -> tuple[str, list[tuple[str, str]]]:
    try:
        parts = urlsplit(target)
    except ValueError:
        return target, []
    return parts.path, parse_qsl(parts.query, keep_blank_values=True)


def _check_method(method: str, allowed: tuple[str, ...]) -> None:
    if method not in allowed:
        raise _RefusedError(405, f"{method} is not allowed here.", {"Allow": ", ".join(allowed)})


def _check_headers(headers: Mapping[str, str]) -> None:
    if headers.get("metadata", "").strip().lower() != "true":
        raise _RefusedError(400, "The header 'Metadata: true' is missing.")
    _check_proxy(headers)


def _check_proxy(headers: Mapping[str, str]) -> None:
    if "x-forwarded-for" in headers:
        raise _RefusedError(400, "The request came through a proxy: X-Forwarded-For is refused.")


def _single(query: Sequence[tuple[str, str]], name: str) -> str:
    values = [value for key, value in query if key == name]
    if len(values) != 1:
        raise _RefusedError(400, f"The parameter {name} is {'missing' if not values else 'given more than once'}.")
    return values[0]


def _check_version(query: Sequence[tuple[str, str]], headers: Mapping[str, str], unknown_status: int) -> str:
    """Return the api-version of a Scheduled Events request (SE-03); only the preview needs no header (SE-02)."""
    versions = [value for name, value in query if name == "api-version"]
    if versions == [API_VERSIONS[0]] and versions[0] < _HEADER_SINCE:
        _check_proxy(headers)
    else:
        _check_headers(headers)
    version = _single(query, "api-version")
    if version not in API_VERSIONS:
        raise _RefusedError(
            unknown_status, f"The api-version {version[:20]!r} is not supported: {', '.join(API_VERSIONS)} are."
        )
    return version


def _start_requests(body: bytes) -> list[str]:
    """Return the EventIds of a POST's body (SE-30), each once, whatever its content type."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _RefusedError(400, "The body is not JSON.") from error
    requests = data.get("StartRequests") if isinstance(data, dict) else None
    if not isinstance(requests, list) or not requests:
        raise _RefusedError(400, "The body has no StartRequests.")
    incarnation = data.get("DocumentIncarnation", 0)
    if isinstance(incarnation, bool) or not isinstance(incarnation, (int, str)):
        raise _RefusedError(400, "DocumentIncarnation is neither a number nor a text.")
    ids: dict[str, str] = {}
    for item in requests:
        event_id = item.get("EventId") if isinstance(item, dict) else None
        if not isinstance(event_id, str) or not event_id:
            raise _RefusedError(400, "A StartRequest has no EventId.")
        ids.setdefault(event_id.lower(), event_id)
    return list(ids.values())


def _matches(header: str, tag: str) -> bool:
    """Return whether an If-None-Match names the tag."""
    return any(part.strip().removeprefix("W/") in (tag, "*") for part in header.split(","))


def _spoil(response: HttpResponse, kind: str) -> HttpResponse:
    bodies = {
        "empty": b"",
        "truncated": response.body[: len(response.body) // 2],
        "garbage": b"\x00\xff\xfe<html>\x80" + response.body[:20][::-1],
        "wrong_json": b'["not", {"a": "document"}]',
    }
    if kind in ("cut_head", "cut_off"):
        return replace(response, fault=kind)
    return replace(response, body=bodies[kind], headers={k: v for k, v in response.headers.items() if k != "ETag"})

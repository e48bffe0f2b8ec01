# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulator's own API, under ``/emulator/v1/``: JSON in and out, apart from the emulated service."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, unquote, urlsplit

from ..errors import InputError
from .actions import check
from .allowed_hosts import AllowedHosts
from .emulation import Emulation
from .lifecycle import UnknownNameError, WrongStateError
from .service import HttpRequest, HttpResponse, json_response

PREFIX = "/emulator/v1/"
# POST path -> the action of that name, whose body the schema describes.
_ACTIONS = {
    "events": ("schedule", "event"),
    "hardware-failures": ("hardware_failure", "hardware_failure"),
    "fault-domains": ("fault_domains", "fault_domains"),
    "faults": ("fault", "fault"),
}
_EVENT_ACTIONS = ("cancel", "start", "finish")


class Control:
    """Answers requests to the control API whose host is one of ``hosts``."""

    def __init__(self, emulation: Emulation, hosts: AllowedHosts) -> None:
        self.emulation = emulation
        self._hosts = hosts

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Return the answer: 403 for another host, 404 for what does not exist, 409 if its state forbids the action,
        400 for other bad input.
        """
        complaint = self._hosts.complaint(request.headers)
        if complaint is not None:
            return json_response(403, {"error": complaint})
        url = urlsplit(request.target)
        path = url.path.removeprefix(PREFIX).strip("/")
        try:
            if request.method == "GET":
                return self._get(path, dict(parse_qsl(url.query)))
            if request.method == "DELETE":
                return self._delete(path)
            if request.method == "POST":
                return self._post(path, _body(request))
        except UnknownNameError as error:
            return json_response(404, {"error": str(error)})
        except WrongStateError as error:
            return json_response(409, {"error": str(error)})
        except InputError as error:
            return json_response(400, {"error": str(error)})
        return json_response(405, {"error": f"{request.method} is not allowed here."}, {"Allow": "GET, POST, DELETE"})

    def _get(self, path: str, query: dict[str, str]) -> HttpResponse:
        emulation = self.emulation
        if path == "state":
            return json_response(200, emulation.state())
        if path == "requests":
            since = query.get("since", "0")
            if not since.isdecimal():
                raise InputError("since is not a number.")
            with emulation.lock:
                return json_response(200, {"requests": emulation.log.since(int(since))})
        if path.startswith("events/"):
            with emulation.lock:
                emulation.model.settle()
                event = emulation.model.find(unquote(path.removeprefix("events/")))
                return json_response(200, event.as_dict(emulation.model.time))
        raise UnknownNameError(f"there is nothing at {PREFIX}{path}.")

    def _delete(self, path: str) -> HttpResponse:
        if path == "faults":
            self.emulation.perform("clear_faults", True)
        elif path == "requests":
            with self.emulation.lock:
                self.emulation.log.clear()
        else:
            raise UnknownNameError(f"there is nothing at {PREFIX}{path}.")
        return HttpResponse(204)

    def _post(self, path: str, data: object) -> HttpResponse:
        if path in _ACTIONS:
            action, definition = _ACTIONS[path]
            check(data, definition)
            event_id = self.emulation.perform(action, data)
            return json_response(201, {"event_id": event_id} if event_id else {})
        parts = [unquote(part) for part in path.split("/")]
        if len(parts) == 3 and parts[0] == "events":
            if parts[2] in _EVENT_ACTIONS:
                self.emulation.perform(parts[2], parts[1])
                return json_response(200, {})
            if parts[2] == "impacts" and isinstance(data, dict):
                impact = {"event": parts[1], **data}
                check(impact, "secondary_impact")
                self.emulation.perform("secondary_impact", impact)
                return json_response(201, {})
        if path == "time":
            return self._time(data)
        if path == "reset":
            self.emulation.reset()
            return json_response(200, {})
        if path == "switch-off":
            self.emulation.perform("switch_off", True)
            return json_response(200, {})
        raise UnknownNameError(f"there is nothing to POST to at {PREFIX}{path}.")

    def _time(self, data: object) -> HttpResponse:
        if not isinstance(data, dict) or not data or set(data) - {"scale", "advance"}:
            raise InputError("the body must have scale, advance or both, and nothing else.")
        for value in data.values():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InputError("scale and advance are numbers.")
        if "scale" in data:
            self.emulation.set_scale(data["scale"])
        if "advance" in data:
            self.emulation.advance(data["advance"])
        return json_response(200, {"now": self.emulation.stamp(), "time_scale": self.emulation.clock.scale})


def _body(request: HttpRequest) -> object:
    """Return the JSON of a POST, or an empty object for an empty body.

    The content type is required: a web page in the developer's browser cannot send it here without permission.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise InputError("the content type is not application/json.", "Send 'Content-Type: application/json'.")
    if not request.body.strip():
        return {}
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not JSON: {error}") from error

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of the control API, for ``forewarn emulate COMMAND``, tests and scripts. Needs requests."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ..errors import InputError, ServiceError

_TIMEOUT = 10.0


class EmulatorClient:
    """Drives an emulator at its base URL. Durations are emulated seconds.

    Raises InputError for what the emulator refuses, ServiceError if none answers. It follows no redirect.
    """

    def __init__(self, base_url: str) -> None:
        try:
            import requests  # here: it may be missing
        except ImportError as absent:
            raise InputError(
                "driving an emulator needs the Python package requests, which is not installed.",
                f"Install it: {sys.executable} -m pip install requests",
            ) from absent

        self.base_url = base_url.rstrip("/")
        self._unreachable = requests.RequestException
        self._not_connected = requests.ConnectionError
        self._not_json = requests.exceptions.InvalidJSONError
        self._session = requests.Session()
        self._session.trust_env = False  # never through the environment's proxy

    def vm_endpoint(self, name: str) -> str:
        """Return the endpoint at which a VM finds its service."""
        return f"{self.base_url}/vm/{quote(name, safe='')}"

    def schedule(self, event_type: str, resources: Sequence[str] | str | None = None, **values: Any) -> str:
        """Schedule an event and return its EventId.

        ``values`` are those of the schema's ``event`` (see ``spec.EventSpec``), None for the default of the type. A key
        may end with ``_seconds``: ``notice_seconds`` is ``notice``.
        """
        return self.schedule_event({"type": event_type, "resources": _names(resources), **_keys(values)})

    def schedule_event(self, event: Mapping[str, Any]) -> str:
        """Schedule an event and return its EventId; ``event`` has the keys of the schema's ``event``."""
        return str(self._call("POST", "events", event)["event_id"])

    def hardware_failure(self, resources: Sequence[str] | str | None = None, **values: Any) -> str:
        """List a Reboot as Started at once (SE-22); ``values`` are keys of the schema's ``hardware_failure``."""
        body = {"resources": _names(resources), **values}
        return str(self._call("POST", "hardware-failures", body)["event_id"])

    def schedule_fault_domains(self, event: Mapping[str, Any], pause_seconds: float = 0.0) -> str:
        """Serve fault domains in turn (SE-24); ``event`` as in ``schedule_event``. Return the first EventId."""
        body = {"event": dict(event), "pause": pause_seconds}
        return str(self._call("POST", "fault-domains", body)["event_id"])

    def cancel(self, event: str) -> None:
        """Cancel a Scheduled event (SE-21). ``event`` is an EventId or the name of an event, here and below."""
        self._call("POST", f"events/{quote(event, safe='')}/cancel")

    def start(self, event: str) -> None:
        """Start a Scheduled event now."""
        self._call("POST", f"events/{quote(event, safe='')}/start")

    def finish(self, event: str) -> None:
        """Remove a Started event from the list now."""
        self._call("POST", f"events/{quote(event, safe='')}/finish")

    def secondary_impact(self, event: str, duration_seconds: float) -> None:
        """Make a Started event affect its VMs once more (SE-23)."""
        self._call("POST", f"events/{quote(event, safe='')}/impacts", {"duration": duration_seconds})

    def event(self, event: str) -> dict[str, Any]:
        """Return one event: status, approvals, times."""
        return self._call("GET", f"events/{quote(event, safe='')}")

    def state(self) -> dict[str, Any]:
        """Return everything: ``now``, ``vms``, ``events``, ``faults``, ``transitions``."""
        return self._call("GET", "state")

    def inject_fault(self, kind: str | int, **values: Any) -> None:
        """Begin a fault; a number as ``kind`` is an HTTP status. ``values`` are those of the schema's ``fault``.

        As in ``schedule``, a key may end with ``_seconds``. ``vms`` and ``requests`` are names, or one name.
        """
        status = {"status": int(kind)} if isinstance(kind, int) or kind.isdecimal() else {}
        body = {"kind": "status" if status else kind, **status, **_keys(values)}
        self._call("POST", "faults", {**body, "vms": _names(body.get("vms")), "requests": _names(body.get("requests"))})

    def clear_faults(self) -> None:
        """End all faults."""
        self._call("DELETE", "faults")

    def requests(self, since: int = 0) -> list[dict[str, Any]]:
        """Return the requests to the emulated service, oldest first, after that number (``requestlog.Entry``)."""
        found: list[dict[str, Any]] = self._call("GET", f"requests?since={since}")["requests"]
        return found

    def clear_requests(self) -> None:
        """Forget the requests so far."""
        self._call("DELETE", "requests")

    def advance(self, seconds: float) -> None:
        """Jump ahead in emulated time."""
        self._call("POST", "time", {"advance": seconds})

    def set_time_scale(self, scale: float) -> None:
        """Run emulated time ``scale`` times as fast as real time; 0 pauses it."""
        self._call("POST", "time", {"scale": scale})

    def switch_off(self) -> None:
        """Switch the service off, as a day without requests does (SE-05); the next request switches it on again."""
        self._call("POST", "switch-off")

    def reset(self) -> None:
        """Restart the scenario."""
        self._call("POST", "reset")

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def __enter__(self) -> EmulatorClient:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        url = f"{self.base_url}/emulator/v1/{path}"
        data = None
        if method == "POST":
            data = {name: value for name, value in (body or {}).items() if value is not None}
        try:
            response = self._session.request(method, url, json=data, timeout=_TIMEOUT, allow_redirects=False)
        except self._not_json as error:  # for example NaN
            raise InputError(f"{body} cannot be sent: {error}.") from error
        except self._not_connected as error:
            raise ServiceError(
                f"the emulator at {self.base_url} does not answer: is it running?",
                "Start it with 'forewarn emulate', which prints the address that it listens on.",
            ) from error
        except self._unreachable as error:
            raise ServiceError(f"the emulator at {self.base_url} does not answer: {error}") from error
        if response.status_code == 204:
            return {}
        try:
            answer = response.json()
        except ValueError:
            answer = None
        succeeded = response.status_code < 300
        if not isinstance(answer, dict) or not (succeeded or "error" in answer):
            raise ServiceError(f"{url} answered {response.status_code}, not as an emulator does: is it one?")
        if not succeeded:
            raise InputError(str(answer["error"]))
        return answer


def _names(names: Sequence[str] | str | None) -> list[str] | None:
    if names is None:
        return None
    return [names] if isinstance(names, str) else list(names)


def _keys(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removesuffix("_seconds"): value for name, value in values.items()}

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulator's service without sockets, on a clock that a test moves."""

from __future__ import annotations

import json
from typing import Any

from forewarn.emulator.clock import ManualClock
from forewarn.emulator.emulation import Emulation, Scenario
from forewarn.emulator.service import HttpRequest, HttpResponse, Service
from forewarn.emulator.spec import EventSpec, Settings, VmSpec
from forewarn.events import API_VERSIONS

VMS = (
    VmSpec("web_0", scale_set="web", zone="2", fault_domain="1", tags={"role": "front", "env": "test"}),
    VmSpec("web_1"),
)
GUID = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
HEADERS = {"metadata": "true"}


class Site:
    """A service on a clock moved by hand."""

    def __init__(self, **settings: Any) -> None:
        self.clock = ManualClock()
        self.real = 0.0
        scenario = Scenario(VMS, Settings(**{"requests_per_second": 0, "start_delay": 0.0, **settings}))
        self.emulation = Emulation(scenario, self.clock)
        self.service = Service(self.emulation, lambda: self.real)

    def ask(
        self,
        target: str = "/metadata/scheduledevents?api-version=2020-07-01",
        method: str = "GET",
        body: object = b"",
        headers: dict[str, str] = HEADERS,
        vm: str | None = None,
    ) -> HttpResponse:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.service.handle(HttpRequest(method, target, headers, raw, vm))

    def events(self, version: str = API_VERSIONS[-1], prefix: str = "") -> list[dict[str, Any]]:
        response = self.ask(f"{prefix}/metadata/scheduledevents?api-version={version}")
        assert response.status == 200
        listed: list[dict[str, Any]] = json.loads(response.body)["Events"]
        return listed

    def approve(self, *ids: str, **more: Any) -> int:
        body = {"StartRequests": [{"EventId": event} for event in ids], **more}
        return self.ask(method="POST", body=body).status

    def schedule(self, event_type: str = "Reboot", **values: Any) -> str:
        spec = EventSpec(event_type, **{"resources": ("web_0", "web_1"), **values})
        return self.emulation.model.schedule(spec)

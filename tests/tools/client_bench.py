# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of a scripted server, with a clock of its own."""

from __future__ import annotations

from typing import Any

import pytest
from forewarn.imds import errors
from forewarn.imds.client import Client
from tools.clocks import ManualClocks
from tools.events import MIGRATION
from tools.scripted_imds import Answer, ScriptedServer

OK = b"HTTP/1.1 200 OK\r\n"
EVENT = {**MIGRATION, "Description": ""}


def client_of(server: ScriptedServer, prefix: str = "", **options: Any) -> Client:
    clocks = options.pop("clocks", None) or ManualClocks()
    return Client(server.url + prefix, clock=clocks.monotonic, sleep=clocks.sleep, **options)


def fault_of(answer: Answer, **options: Any) -> errors.Fault:
    """Return what one read makes of an answer; it must be a fault, never a document."""
    with ScriptedServer(answer) as server, client_of(server, **options) as client, pytest.raises(errors.Fault) as info:
        client.read_once()
    return info.value

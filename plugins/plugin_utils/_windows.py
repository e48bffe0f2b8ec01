# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that run Windows: how they are recognised, commands in PowerShell, and requests as tasks of ``win_uri``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from ..module_utils.forewarn.events import parse_time
from ..module_utils.forewarn.imds.endpoint import Endpoint
from ..module_utils.forewarn.imds.errors import CONNECTION, GARBAGE, TIMEOUT, PassingFault
from ..module_utils.forewarn.imds.transport import ImdsRequest, Response, Transport

MODULE = "ansible.windows.win_uri"
INSTALL = "ansible-galaxy collection install ansible.windows"
# Each of these ends a literal of PowerShell, in which two of them are one.
_QUOTES = re.compile("(['\u2018\u2019\u201a\u201b])")
# Every status is an answer; the client interprets it.
_STATUSES = list(range(200, 600))


def is_windows(connection: Any) -> bool:
    """Return whether the host of a connection runs Windows: Ansible talks to PowerShell there."""
    return getattr(connection._shell, "SHELL_FAMILY", "") in ("powershell", "cmd")


def quoted(text: str) -> str:
    """Return a text as a literal of PowerShell."""
    return "'" + _QUOTES.sub(r"\1\1", text) + "'"


def command_of(connection: Any, script: str) -> str:
    """Return the command that runs a script of PowerShell on the host of a connection.

    Over SSH it is read by the host's default shell, which is cmd.exe unless it was changed.
    """
    # As Ansible's own modules are run, so that WinRM and PSRP do not start another PowerShell for it.
    command: str = connection._shell._encode_script(script, strict_mode=False, preserve_rc=False)
    return command


class WindowsTransport(Transport):
    """Carries the client's requests. ``execute`` runs win_uri with the given options, and returns its result.

    ``fresh_seconds``: each request is a task of its own, which takes some seconds.
    """

    fresh_seconds = 30.0

    def __init__(self, execute: Callable[[dict[str, Any]], Mapping[str, Any]], endpoint: Endpoint) -> None:
        super().__init__(endpoint.host, endpoint.port, 0.0)
        self._execute = execute
        # The client's targets begin with the endpoint's prefix.
        self._url = endpoint.url.removesuffix(endpoint.prefix)
        self._date: str | None = None  # of the last answer

    def exchange(self, request: ImdsRequest, timeout: float, admit: Callable[[], None]) -> Response:
        """Send a request and return the whole answer, whatever its status. Raises PassingFault."""
        options: dict[str, Any] = {
            "url": self._url + request.target,
            "url_method": request.method,
            "headers": {"Metadata": request.headers["Metadata"]},
            "http_agent": request.headers["User-Agent"],
            "url_timeout": max(1, round(timeout)),
            "return_content": True,
            "status_code": _STATUSES,
            "follow_redirects": "none",
            "use_proxy": False,  # SE-07
        }
        if request.body is not None:
            options.update(body=request.body.decode(), content_type=request.headers["Content-Type"])
        admit()
        since = self.clock()
        result = self._execute(options)
        status = result.get("status_code")
        if not isinstance(status, int):
            text = str(result.get("msg", "win_uri failed")).rstrip(".")
            kind = TIMEOUT if "timed out" in text.lower() else CONNECTION
            raise PassingFault(f"{self._url}, asked by {MODULE}: {text}.", kind=kind)
        content = result.get("content")
        if not isinstance(content, str):
            raise PassingFault(f"the answer of {self._url} has no content.", kind=GARBAGE, status=int(status))
        # win_uri adds the headers of the answer to its result, their names in snake case.
        known = {"retry-after": result.get("retry_after"), "location": result.get("location")}
        self._date = result.get("date")
        return Response(
            int(status),
            str(result.get("status_description", "")),
            {name: str(value) for name, value in known.items() if value is not None},
            content.encode(),
            since,
        )

    def now(self) -> datetime:
        """Return the time of the service's clock, which each answer carries, or else of our own clock."""
        try:
            return parse_time(str(self._date))
        except ValueError:
            return datetime.now(timezone.utc)

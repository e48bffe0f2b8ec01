# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The template ``alertmanager``, judged by a real Alertmanager: skipped where there is none."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.events import Event
from forewarn.runner.hooks import commands, webhook
from forewarn.runner.hooks.commands import HookContext, HookSettings
from tools.sites.waiting import wait_until

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no alertmanager")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Start an Alertmanager on loopback; yield its API."""
    (tmp_path / "alertmanager.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    options = ["--config.file", str(tmp_path / "alertmanager.yml"), "--storage.path", str(tmp_path / "data")]
    options += ["--web.listen-address", address, "--cluster.listen-address", ""]
    assert PROGRAM
    with subprocess.Popen([PROGRAM, *options], stderr=subprocess.DEVNULL) as process:
        base = f"http://{address}/api/v2"

        def ready() -> bool:
            try:
                with urllib.request.urlopen(f"{base}/status", timeout=5):
                    return True
            except urllib.error.URLError:
                return False

        wait_until(ready)
        yield base
        process.kill()


def alerts(base: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{base}/alerts", timeout=5) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


def tell(base: str, occasion: str, vm_name: str | None) -> None:
    not_before = datetime.fromtimestamp(time.time() + 600, timezone.utc)
    event = Event("C7061BAC", event_type="Reboot", resources=("web_0",), not_before=not_before)
    decision = {"output": "hold", "policy": "web", "rule": "office", "reason": "later"}
    why = HookContext("notify", occasion, 1, False, event, vm_name, decision, None, 600.0, 0)
    hook = {"http": f"{base}/alerts", "template": "alertmanager"}
    settings, _line, content = commands.command(hook, why, HookSettings(), 5.0).stdin.partition(b"\n")
    assert webhook.deliver(json.loads(settings), content)[1:] == ("answered 200", None)


def test_an_alert_fires_and_ends(url: str) -> None:
    tell(url, "decided", None)
    tell(url, "started", "web_0")
    (alert,) = alerts(url)
    assert alert["labels"]["alertname"] == "ScheduledEvent"
    assert alert["annotations"]["summary"] == "Reboot of web_0 has started"
    ends = datetime.fromisoformat(alert["endsAt"])
    assert (ends - datetime.now(timezone.utc)).total_seconds() > 3600
    tell(url, "ended", "web_0")
    wait_until(lambda: alerts(url) == [])

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``forewarn fleet cloud-init`` writes brings the runner to a VM at its first boot."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest
from forewarn.cli.main import main

from ..lab import Start
from .control_node import status
from .first_boot import URL, apply, replace, serve

POLICY = """\
name: mine
description: Approves what affects this VM.
rule: {match: [{id: mine, condition: affects_me, output: approve}]}
"""
_MOST_SECONDS = 60.0  # from the first boot on, within which a VM is protected


def user_data(directory: Path) -> tuple[str, bytes]:
    """Return the user data of VMs, and the runner that they download."""
    (directory / "mine.yml").write_text(POLICY)
    (directory / "config.json").write_text('{"artifact": "policy.json"}')
    pyz, made = directory / "forewarn.pyz", directory / "user-data.yml"
    assert main(["policy", "compile", str(directory / "mine.yml"), "-o", str(directory / "policy.json")]) == 0
    assert main(["bundle", "-o", str(pyz)]) == 0
    digest = hashlib.sha256(pyz.read_bytes()).hexdigest()
    options = ["--config", str(directory / "config.json"), "--bundle-url", URL, "--bundle-sha256", digest]
    assert main(["fleet", "cloud-init", *options, "-o", str(made)]) == 0
    return made.read_text(), pyz.read_bytes()


def test_first_boot_installs_what_was_meant(
    start_lab: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another bundle is refused, and visibly so. The next boot tries again, also after a download that breaks off."""
    text, pyz = user_data(tmp_path)
    lab = start_lab({"web_0": "trixie"})
    (host,) = lab.hosts
    event_id = lab.emulator.schedule("Reboot", ["web_0"])
    serve(host, pyz + b"another", tmp_path)
    assert apply(host, text) != 0
    assert host.properties("forewarn-install", "ActiveState") == {"ActiveState": "failed"}
    assert "has the SHA-256" in host.ssh("journalctl --unit=forewarn-install --output=cat --no-pager").stdout
    assert host.ssh("ls -A /opt/forewarn").stdout == "first_boot.py\n"
    assert host.properties("forewarn", "ActiveState", "UnitFileState") == {
        "ActiveState": "inactive",
        "UnitFileState": "disabled",
    }
    replace(host, pyz, broken=True)
    began = time.monotonic()
    host.reboot()
    host.wait_for(lambda: lab.emulator.event(event_id)["status"] == "Started")
    seconds = time.monotonic() - began
    with capsys.disabled():
        print(f"\nfrom the boot to the approval: {seconds:.0f} s")
    assert seconds < _MOST_SECONDS
    assert "has broken off" in host.ssh("journalctl --unit=forewarn-install --output=cat --no-pager").stdout
    assert status(host)["problems"] == []
    assert host.ssh("systemctl is-enabled forewarn forewarn-install", check=False).stdout == "enabled\ndisabled\n"
    assert apply(host, text) == 0, "it can be run again"
    assert host.ssh("stat -c '%U %a' /etc/forewarn /opt/forewarn/forewarn-*.pyz").stdout == "root 750\nroot 755\n"

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit that the role writes, line by line, and by systemd's own judgement where there is a systemd."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from forewarn.fleet import unit as unit_file

Unit = Callable[..., list[str]]
_HERE = {
    "__forewarn_needs": [],
    "__forewarn_encrypts": False,
    "__forewarn_pyz_name": "forewarn-0123456789abcdef.pyz",
    "__forewarn_unit_checksum": "0123456789abcdef",
    "__forewarn_credential_times": {},
    "__forewarn_credentials_directory": "/etc/forewarn/credentials",
    "__forewarn_found": {"systemd": "252"},
    "__forewarn_settings": {"api_version": "2020-07-01"},
    "__forewarn_program": "/usr/bin/python3 -I -S /opt/forewarn/forewarn.pyz",
    "__forewarn_written_by": "somebody",
    "__forewarn_config_file": "/etc/forewarn/config.json",
}


@pytest.fixture
def render(repository: Path) -> Callable[..., str]:
    """Return a function that renders the template with the role's defaults, and other variables."""
    defaults = yaml.safe_load((repository / "roles" / "forewarn" / "defaults" / "main.yml").read_text())

    def rendered(**variables: Any) -> str:
        given = {**defaults, **_HERE, **variables}
        return unit_file.render(
            {name.removeprefix("__").removeprefix("forewarn_"): value for name, value in given.items()}
        )

    return rendered


@pytest.fixture
def unit(render: Callable[..., str]) -> Unit:
    return lambda **variables: render(**variables).splitlines()


def test_memory_and_tasks_are_limited(unit: Unit) -> None:
    assert {"MemoryMax=512M", "TasksMax=512"} <= set(unit())
    assert {"MemoryMax=2G", "TasksMax=64"} <= set(unit(forewarn_memory_max="2G", forewarn_tasks_max=64))
    assert "MemoryMax=infinity" in unit(forewarn_memory_max="infinity")


def test_oom_kill_of_a_hook_spares_the_runner(unit: Unit) -> None:
    assert {"OOMPolicy=continue", "OOMScoreAdjust=-500"} <= set(unit())


def test_what_an_administrator_sets_comes_last_and_counts(unit: Unit) -> None:
    lines = unit(forewarn_unit_settings=["MemoryMax=1G", "OOMScoreAdjust=0"])
    for name, value in (("MemoryMax", "1G"), ("OOMScoreAdjust", "0")):
        assert [line for line in lines if line.startswith(f"{name}=")][-1] == f"{name}={value}"


def test_unit_is_ordered_after_time_sync(unit: Unit) -> None:
    """systemd.special(7): what needs the right time is ordered after time-sync.target, and does not pull it in."""
    (after,) = (line for line in unit() if line.startswith("After="))
    assert after.removeprefix("After=").split() == ["network.target", "time-sync.target"]
    assert not any(line.startswith(("Wants=", "Requires=")) for line in unit())


@pytest.mark.parametrize(
    ("address", "filtered"),
    [
        *(("", True), ("127.0.0.1:9780", True), ("localhost:9780", True), ("[::1]:9780", True)),
        *(("0.0.0.0:9780", False), ("10.0.0.4:9780", False), ("[::]:9780", False), ("[fd00::1]:9780", False)),
    ],
)
def test_a_probe_can_be_reached(unit: Unit, address: str, filtered: bool) -> None:
    """IPAddressDeny= keeps packets from coming in as well."""
    assert ("IPAddressDeny=any" in unit(forewarn_probe_listen=address)) is filtered


@pytest.mark.parametrize(
    ("url", "filtered"),
    [
        *(
            ("", True),
            ("http://127.0.0.1:4318/v1/logs", True),
            ("http://localhost/x", True),
            ("http://[::1]:80/", True),
        ),
        *(("https://logs.example.com", False), ("http://localhost.example.com/", False), ("http://10.0.0.4/", False)),
    ],
)
def test_a_sink_can_be_reached(unit: Unit, url: str, filtered: bool) -> None:
    assert ("IPAddressDeny=any" in unit(forewarn_sink_url=url)) is filtered


@pytest.mark.parametrize(
    ("store", "filtered"),
    [
        *(({}, True), ({"etcd": ["https://127.0.0.1:2379", "https://[::1]:2379", "https://localhost:2379"]}, True)),
        *(
            ({"etcd": ["https://127.0.0.1:2379", "https://etcd-1:2379"]}, False),
            ({"etcd": ["https://10.0.0.4:1"]}, False),
        ),
        ({"blob": "https://account.blob.core.windows.net/web"}, False),
    ],
)
def test_the_store_of_a_group_can_be_reached(unit: Unit, store: dict[str, Any], filtered: bool) -> None:
    lines = unit(forewarn_group_store=store)
    assert ("IPAddressDeny=any" in lines) is filtered
    (families,) = (line for line in lines if line.startswith("RestrictAddressFamilies="))
    assert ("AF_NETLINK" in families) is bool(store), "names are looked up with it"


# The version of systemd that each of these directives is new in: systemd.exec(5), systemd.service(5), and NEWS.
NEWER = {
    "LoadCredentialEncrypted": 250,
    "LoadCredential": 247,
    "ProtectClock": 245,
    "ProtectKernelLogs": 244,
    "OOMPolicy": 243,
    "ProtectHostname": 242,
    "RestrictSUIDSGID": 242,
}


@pytest.mark.parametrize("systemd", [239, 241, 242, 243, 244, 245, 246, 247, 249, 250, 252, 253, 257])
@pytest.mark.parametrize("encrypts", [False, True])
def test_older_systemd_gets_only_supported_settings(unit: Unit, systemd: int, encrypts: bool) -> None:
    lines = unit(
        __forewarn_found={"systemd": str(systemd)},
        __forewarn_encrypts=encrypts and systemd >= 250,
        forewarn_credentials={"token": "secret"},
        forewarn_credential_files={"other": "/run/other"},
    )
    names = {line.partition("=")[0] for line in lines if not line.startswith("#")}
    assert {name: since for name, since in NEWER.items() if name in names and since > systemd} == {}
    sandbox = {"ProtectClock", "ProtectKernelLogs", "OOMPolicy", "ProtectHostname", "RestrictSUIDSGID"}
    (told,) = [line for line in lines if "this unit leaves out" in line] or [""]
    assert {name for name in sandbox if name in told} == sandbox - names == {n for n in sandbox if NEWER[n] > systemd}
    assert ("Environment=CREDENTIALS_DIRECTORY=/etc/forewarn/credentials" in lines) is (systemd < 247)
    assert ("Type=notify-reload" in lines) is (systemd >= 253)
    assert not any("secret" in line for line in lines)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"forewarn_probe_listen": "0.0.0.0:9780", "forewarn_memory_max": "25%", "forewarn_tasks_max": "infinity"},
        {"__forewarn_needs": ["everything"]},
        {"__forewarn_needs": ["network", "files", "users"], "forewarn_unit_settings": ["OOMPolicy=stop"]},
    ],
)
def test_systemd_finds_nothing_wrong(render: Callable[..., str], tmp_path: Path, variables: dict[str, Any]) -> None:
    path = tmp_path / "forewarn.service"
    text = render(**variables).replace("/usr/bin/python3 -I -S /opt/forewarn/forewarn.pyz", "/bin/true")
    path.write_text(text)
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (checked.returncode, [line for line in checked.stderr.splitlines() if "forewarn" in line]) == (0, [])

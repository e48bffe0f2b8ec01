# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes that people make with inventories, on real hosts: each is refused with a sentence, and harms nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tools.suite.sizes import in_turn

from ..lab import Lab
from ..sizes import FEW_HOSTS
from .control_node import POLICY, ROLLOUT, SITE, VARIABLES, control_node, is_well, refusal, status
from .playbooks import Playbooks

pytestmark = pytest.mark.in_turn(4, together=True)
LAB_HOSTS = FEW_HOSTS
NAMES = tuple(LAB_HOSTS)
IN_USE = (
    "cd / && sha256sum etc/forewarn/config.json opt/forewarn/forewarn.pyz etc/systemd/system/forewarn.service "
    "opt/forewarn/hooks/*; systemctl show --property=MainPID forewarn"
)


@pytest.fixture(scope="module")
def playbooks(lab: Lab, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path) -> Playbooks:
    """Return the playbooks after a rollout that went well."""
    books = control_node(lab, tmp_path_factory.mktemp("control"), installed_collection)
    books.play(ROLLOUT, VARIABLES).changed()
    return books


def in_use(lab: Lab) -> dict[str, str]:
    return {host.name: host.ssh(IN_USE).stdout for host in lab.hosts}


# A variable, and what is said about it.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"forewarn_interval": 500}, "the interval is not between 1s"),
    ({"forewarn_interval": "0.5"}, "the interval is not between 1s"),
    ({"forewarn_metrics_listen": "0.0.0.0:9101"}, "0.0.0.0"),
    ({"forewarn_endpoint": "http://example.com"}, "is neither link-local nor loopback"),
    ({"forewarn_unit_settings": ["Bogus=1"]}, "Bogus"),
    ({"forewarn_unit_settings": ["MemoryMax=lots"]}, "Invalid memory limit 'lots'"),
    ({"forewarn_hook_ca_file": "/etc/missing.pem"}, "CA file /etc/missing.pem"),
    ({"forewarn_python": "/usr/bin/python9"}, "/usr/bin/python9 is not a working Python. Correct forewarn_python."),
    ({"forewarn_vm_name": " "}, "name"),
    ({"forewarn_interval": 61}, "the interval is not between 1s"),
    ({"forewarn_probe_listen": "127.0.0.1:9780", "forewarn_probe_lead": 5000}, "the lead time of the probe is not"),
    ({"forewarn_memory_max": "lots"}, "Invalid memory limit 'lots'"),
]


@pytest.mark.parametrize("first", in_turn(range(0, len(REFUSED), len(NAMES))))
def test_rejected_configuration_is_not_installed(lab: Lab, playbooks: Playbooks, first: int) -> None:
    before = in_use(lab)
    cases = dict(zip(NAMES, REFUSED[first:], strict=False))
    for name, (variables, _) in cases.items():
        playbooks.variables(name, variables)
    try:
        played = playbooks.play(SITE, VARIABLES)
    finally:
        for name in cases:
            playbooks.variables(name, {})
    for name, (_, cause) in cases.items():
        message = refusal(played, name)
        assert cause in message.partition(" The previous")[0], message
    assert in_use(lab) == before


def test_missing_program_or_credential_fails_the_rollout(lab: Lab, playbooks: Playbooks) -> None:
    """With forewarn_policy_gate=warn, status reports it."""
    (playbooks.directory / "lacking").mkdir()
    lacking = POLICY.replace("/opt/forewarn/hooks/drain", "/usr/local/bin/no-drain", 1).replace(
        "recover: [", "recover: [{http: 'http://127.0.0.1/', bearer: {credential: token}}, "
    )
    (playbooks.directory / "lacking" / "drains.yml").write_text(lacking)
    before = in_use(lab)
    wanted = {**VARIABLES, "forewarn_policies": ["lacking"]}
    message = refusal(playbooks.play(ROLLOUT, wanted, "--limit", "web_0"), "web_0")
    assert "rule drain of policy drains: there is no program /usr/local/bin/no-drain" in message
    assert "there is no credential token" in message
    assert "The previous files are restored." in message
    assert in_use(lab)["web_0"].splitlines()[:-1] == before["web_0"].splitlines()[:-1]  # it was started again
    assert is_well(lab.host("web_0"))

    played = playbooks.play(ROLLOUT, {**wanted, "forewarn_policy_gate": "warn"}, "--limit", "web_0")
    assert played.code == 0, played.text[-3000:]
    assert "there is no program /usr/local/bin/no-drain" in played.text
    problems = " ".join(status(lab.host("web_0"))["problems"])
    assert "/usr/local/bin/no-drain" in problems
    assert "token" in problems
    assert playbooks.play(ROLLOUT, VARIABLES, "--limit", "web_0").changed()["web_0"] > 0
    assert is_well(lab.host("web_0"))


def test_seconds_of_health_are_seconds(lab: Lab, playbooks: Playbooks) -> None:
    """A try takes a while itself, so fewer tries than seconds find room."""
    variables = {**VARIABLES, "forewarn_endpoint": "http://127.0.0.1:9", "forewarn_health_seconds": 12}
    played = playbooks.play(ROLLOUT, variables, "--limit", "web_0")
    message = refusal(played, "web_0")
    assert message.startswith("The metadata service "), message
    assert "It was given 12 s. The previous files are restored." in message
    assert 2 <= played.text.count("FAILED - RETRYING: [web_0]") <= 12
    assert is_well(lab.host("web_0"))


@pytest.mark.full
def test_old_systemd_is_refused_or_gets_fewer_settings(lab: Lab, playbooks: Playbooks) -> None:
    host = lab.host("web_1")
    before = in_use(lab)
    fake = '#!/bin/sh\nif [ "$1" = --version ]; then echo \'systemd {} ({}-1)\'; else exec /bin/systemctl "$@"; fi\n'
    host.write(fake.format(237, 237), "/usr/local/sbin/systemctl", 0o755)
    try:
        message = refusal(playbooks.play(ROLLOUT, VARIABLES, "--limit", "web_1"), "web_1")
        assert message.startswith(
            "The runner needs systemd 239 or newer, and this machine has systemd 237. Nothing was"
        )
        assert in_use(lab) == before
        host.write(fake.format(239, 239), "/usr/local/sbin/systemctl", 0o755)
        credentials = {"forewarn_credentials": {"token": "hunter2"}}
        assert playbooks.play(ROLLOUT, {**VARIABLES, **credentials}, "--limit", "web_1").changed()["web_1"] > 0
        unit = host.read("/etc/systemd/system/forewarn.service")
        assert "# systemd 239 does not know, so this unit leaves out: " in unit
        settings = {line.partition("=")[0] for line in unit.splitlines() if "=" in line and line[0] not in "#"}
        newer = {
            "OOMPolicy",
            "ProtectClock",
            "ProtectHostname",
            "ProtectKernelLogs",
            "RestrictSUIDSGID",
            "LoadCredential",
        }
        assert not settings & (newer | {"LoadCredentialEncrypted"})
        environ = host.ssh("tr '\\0' '\\n' < /proc/$(systemctl show -p MainPID --value forewarn)/environ").stdout
        assert "CREDENTIALS_DIRECTORY=/etc/forewarn/credentials\n" in environ
        assert host.read("/etc/forewarn/credentials/token") == "hunter2"
        assert is_well(host)
    finally:
        host.ssh("rm -f /usr/local/sbin/systemctl")
    assert playbooks.play(ROLLOUT, VARIABLES, "--limit", "web_1").changed()["web_1"] > 0
    assert host.ssh("ls -A /etc/forewarn/credentials").stdout == ""
    assert is_well(host)


@pytest.mark.full
def test_old_python_is_refused_also_during_removal(lab: Lab, playbooks: Playbooks) -> None:
    host = lab.host("web_0")
    before = in_use(lab)
    # It answers as 3.6 does: to a question of ours, and to a module of Ansible's.
    host.write(
        '#!/bin/sh\ncase "$*" in *version_info*) echo python=3.6 ;; *) echo SyntaxError >&2; exit 1 ;; esac\n',
        "/usr/local/bin/old-python",
        0o755,
    )
    old = {"ansible_python_interpreter": "/usr/local/bin/old-python"}
    for variables in (dict(VARIABLES), {"forewarn_state": "absent"}):
        message = refusal(playbooks.play(SITE, {**variables, **old}, "--limit", "web_0"), "web_0")
        assert "cannot run its modules with the Python of this VM, which is 3.6. Install a newer one" in message
    played = playbooks.play(SITE, {**VARIABLES, "forewarn_python": "/usr/local/bin/old-python"}, "--limit", "web_0")
    message = refusal(played, "web_0")
    assert message.startswith(
        "The runner needs Python 3.8 or newer, and /usr/local/bin/old-python is Python 3.6. Install"
    )
    assert in_use(lab) == before

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role writes on a VM with Windows with every variable set, as the runner takes it there.

The role runs against a VM that is not there; its files are then those of a Windows on which the runner judges them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.sites.windows_plays import WindowsPlays, embeddable
from tools.worlds.windows.host import DATA, WindowsHost
from tools.worlds.windows.vm import CONFIG, WindowsVm

POLICY = r"""
name: web
params: [{name: who, type: string, default: nobody}]
rule:
  match:
    - id: reboot
      condition: event.EventType == "Reboot" && params.who == "me"
      output: approve
      group: ready
      limit: 1
      prepare: [{run: ['C:\Program Files\Forewarn\hooks\drain.cmd']}]
      recover: [{run: ['C:\Program Files\Forewarn\hooks\drain.cmd']}]
"""
BLOB = {"blob": "https://account.blob.core.windows.net/web", "sas": {"credential": "sas"}}
ETCD = {"etcd": ["https://etcd-1:2379"], "user": "me", "password": {"file": rf"{DATA}\group\password"}}
VARIABLES: dict[str, Any] = {
    "forewarn_policies": ["web.yml"],
    "forewarn_params": {"who": "me"},
    "forewarn_api_version": "2020-07-01",
    "forewarn_dry_run": False,
    "forewarn_interval": 2,
    "forewarn_endpoint": "http://10.0.0.4",
    "forewarn_allow_endpoint": True,
    "forewarn_vm_name": "web_0",
    "forewarn_metrics_file": rf"{DATA}\log\forewarn.prom",
    "forewarn_metrics_listen": "127.0.0.1:9781",
    "forewarn_probe_listen": "127.0.0.1:9780",
    "forewarn_probe_lead": 90.5,
    "forewarn_sink_url": "https://collector.example.com/v1/logs",
    "forewarn_sink_format": "otlp",
    "forewarn_sink_credential": "token",
    "forewarn_group": "web",
    "forewarn_group_members": ["web_0", "web_1"],
    "forewarn_hooks": ["hooks"],
    "forewarn_hook_proxy": "http://proxy.example.com:3128",
    "forewarn_hook_ca_file": rf"{DATA}\log\ca.pem",
    "forewarn_credentials": {"token": "hunter2", "sas": "sv=1&sig=2"},
}
# What is not for the configuration, has no effect on Windows, takes the place of another one, or needs ssh-keygen: Wine
# has none.
OTHERS = {
    "forewarn_accept_less",
    "forewarn_credential_files",
    "forewarn_group_create",
    "forewarn_group_files",
    "forewarn_group_store",
    "forewarn_health_seconds",
    "forewarn_hooks_need",
    "forewarn_hooks_write",
    "forewarn_image",
    "forewarn_keep",
    "forewarn_memory_max",
    "forewarn_policies_git",
    "forewarn_policies_ref",
    "forewarn_policy_gate",
    "forewarn_policy_source",
    "forewarn_policy_version",
    "forewarn_purge",
    "forewarn_python",
    "forewarn_reference_policies",
    "forewarn_revoked_signers",
    "forewarn_signers",
    "forewarn_signing_key",
    "forewarn_sink_bearer_file",
    "forewarn_state",
    "forewarn_tasks_max",
    "forewarn_unit_settings",
    "forewarn_windows_python",
}


@pytest.fixture
def plays(tmp_path: Path, collections_path: Path, repository: Path) -> WindowsPlays:
    directory = tmp_path / "plays"
    (directory / "hooks").mkdir(parents=True)
    (directory / "hooks" / "drain.cmd").write_text("@exit 0\r\n")
    (directory / "web.yml").write_text(POLICY)
    (directory / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    return WindowsPlays(directory, collections_path, repository)


def install(vm: WindowsVm, host: WindowsHost) -> None:
    """Put the files of a VM that is not there on one that is."""
    for path, entry in host.files.items():
        if "python" not in path and path.startswith(("C:\\Program Files\\Forewarn", DATA)):
            target = vm.wine.path(path)
            content = host.read(path)
            if content is None:
                target.mkdir(mode=0o755, exist_ok=True)
            elif entry["content"]:
                target.write_bytes(content)
                target.chmod(0o644)
    for link, directory in host.state["links"].items():
        vm.wine.path(link).unlink(missing_ok=True)  # an earlier VM's
        vm.wine.path(link).symlink_to(vm.wine.path(directory))


def test_every_variable_is_in_one_of_the_lists(repository: Path) -> None:
    specs = yaml.safe_load((repository / "roles" / "forewarn" / "meta" / "argument_specs.yml").read_text())
    assert set(specs["argument_specs"]["main"]["options"]) == set(VARIABLES) | OTHERS


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "given",
    [
        {"forewarn_group_store": BLOB},
        {"forewarn_group_store": ETCD, "forewarn_group_files": {"ca_file": "ca.pem"}},
        {"forewarn_group_store": BLOB, "forewarn_sink_credential": "", "forewarn_sink_bearer_file": rf"{DATA}\token"},
    ],
    ids=["blob", "etcd", "bearer-file"],
)
def test_runner_takes_what_the_role_writes(vm: WindowsVm, plays: WindowsPlays, given: dict[str, Any]) -> None:
    plays.host("vm")
    python = embeddable(plays.directory / "python.zip")
    played = plays.play(
        "forewarn.azure.rollout",
        limit="vm",
        **{**VARIABLES, "forewarn_windows_python": python, "forewarn_health_seconds": 0, **given},
    )
    assert played.code == 0, played.text[-3000:]
    install(vm, plays.vm("vm"))
    for name in ("ca.pem", "token", r"log\ca.pem", r"group\password"):
        vm.wine.path(rf"{DATA}\group").mkdir(exist_ok=True)
        target = vm.wine.path(rf"{DATA}\{name}")
        target.write_text("x\n")
        target.chmod(0o600)
    names = [f"--credential={name}" for name in VARIABLES["forewarn_credentials"]]
    checked = vm.bundle("run", "--check-config", "--json", "--config", CONFIG, *names)
    report = json.loads(checked.stdout)
    assert (checked.returncode, report["usable"], report["missing"]) == (0, True, []), checked.stdout

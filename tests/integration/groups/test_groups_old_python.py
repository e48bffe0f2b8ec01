# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stores by each Python that a VM may have, in a process like the runner's: TLS and http.client differ between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.servers.azurite import azurite, sas
from tools.servers.etcd_server import PASSWORD, USER, etcd_cluster
from tools.sites.commands import run_program
from tools.sites.pythons import SUPPORTED, python

_PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import forewarn.runner.skip_openssl
from forewarn.runner.groups.settings import open_store, store_settings
from forewarn.runner.groups.store import StoreFault

settings, result = json.loads(sys.argv[2]), {}
for name in settings:
    store = open_store(store_settings(settings[name]), None, "http://127.0.0.1:9")
    key = "forewarn/%d.%d" % sys.version_info[:2]
    first = store.swap(key, b"x" * 400000, "")
    second = store.swap(key, b"y", first)
    faults = []
    for change in ({"ca_file": None}, {"ca_file": sys.argv[3]}):
        stranger = dict(settings[name], **change)
        stranger = {part: stranger[part] for part in stranger if stranger[part] is not None}
        try:
            open_store(store_settings(stranger), None, "http://127.0.0.1:9").read(key)
        except StoreFault as fault:
            faults.append([fault.kind, fault.lasting])
    result[name] = {
        "stale": [store.swap(key, b"z", first), store.swap(key, b"z", "")],
        "read": store.read(key).value.decode(),
        "is second": store.read(key).version == second,
        "listed": key in store.list("forewarn/"),
        "removed": [store.swap(key, None, second), store.read(key).version],
        "faults": faults,
    }
    store.close()
print(json.dumps(result))
"""
EXPECTED = {
    "stale": [None, None],
    "read": "y",
    "is second": True,
    "listed": True,
    "removed": ["", ""],
    "faults": [["certificate", True]] * 2,
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Return the settings of two stores that run."""
    secrets = tmp_path_factory.mktemp("secrets")
    for name, secret in (("password", PASSWORD), ("sas", sas(seconds=3600))):
        (secrets / name).write_text(secret)
        (secrets / name).chmod(0o600)
    with (
        etcd_cluster(tmp_path_factory.mktemp("etcd"), 1) as etcd,
        azurite(tmp_path_factory.mktemp("azurite")) as blobs,
    ):
        address = blobs.address
        yield {
            "etcd": {
                "etcd": [etcd.members[0].url],
                **etcd.files._asdict(),
                "user": USER,
                "password": {"file": str(secrets / "password")},
            },
            "blob": {
                "blob": f"https://{address.where}{address.path}",
                "ca_file": blobs.files.ca_file,
                "sas": {"file": str(secrets / "sas")},
            },
        }


@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_each_python(stores: dict[str, Any], version: str, package: Path, certificate: Path) -> None:
    arguments = (str(package.parent), json.dumps(stores), str(certificate))
    result = run_program(python(version), "-I", "-B", "-W", "error", "-c", _PROGRAM, *arguments)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"etcd": EXPECTED, "blob": EXPECTED}

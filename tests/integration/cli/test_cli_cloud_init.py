# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""User data for cloud-init, and what is refused for it."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from forewarn.cli.main import main
from forewarn.fleet import unit
from forewarn.fleet.cloud_init import LARGEST
from tools.fixtures.signing import allow, install, make_key
from tools.sites.requirements import lacking

SHA256 = "0123456789abcdef" * 4
URL = "https://account.blob.core.windows.net/forewarn/forewarn.pyz"
POLICY = """\
name: web
description: Drains.
rule:
  match:
    - id: drain
      condition: affects_me
      prepare:
        - {http: https://lb.example.com/drain, bearer: {credential: token}}
      output: approve
"""
Written = Callable[..., Any]


@pytest.fixture
def written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Written:
    """Return a function that returns exit code, standard output and standard error of the command.

    ``config`` are settings beside the artifact; other options replace those by default, or with None leave them out.
    """
    (tmp_path / "web.yml").write_text(POLICY)
    assert main(["policy", "compile", str(tmp_path / "web.yml"), "-o", str(tmp_path / "policy.json")]) == 0
    capsys.readouterr()

    def run(config: dict[str, Any] | None = None, **options: str | None) -> tuple[int, str, str]:
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"artifact": "policy.json", **(config or {})}))
        given = {
            "config": str(path),
            "bundle_url": URL,
            "bundle_sha256": SHA256,
            "credential_file": "token=/etc/token",
            "output": "-",
            **options,
        }
        words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not None]
        code = main(["fleet", "cloud-init", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def files(text: str) -> dict[str, str]:
    """Return the files of a cloud-config."""
    found = {}
    for file in yaml.safe_load(text)["write_files"]:
        content = file["content"].encode()
        packed = file.get("encoding") == "gz+b64"
        found[file["path"]] = (gzip.decompress(base64.b64decode(content)) if packed else content).decode()
    return found


def test_files_arrive_as_they_are_here(written: Written, tmp_path: Path) -> None:
    code, text, _said = written({"sink_url": "https://logs.example.com/é"})
    found = files(text)
    config = json.loads(found["/etc/forewarn/config.json"])
    assert code == 0
    assert found[config["artifact"]] == (tmp_path / "policy.json").read_text()
    assert config["sink_url"] == "https://logs.example.com/é"


def test_signed_policies_arrive_with_their_proof(written: Written, tmp_path: Path) -> None:
    key = make_key(tmp_path)
    signers = Path(allow(tmp_path, key))
    signers.write_text(f"{signers.read_text()}  # é, a comment: with a colon\n")
    (tmp_path / "revoked").write_text("")
    config = {
        "signers": "allowed_signers",
        "revoked_signers": "revoked",
        "policy_source": "https://example.com/web.json",
    }
    install(tmp_path / "policy.json", key.signed((tmp_path / "policy.json").read_bytes()))
    code, text, _said = written(config)
    found = files(text)
    settings = json.loads(found["/etc/forewarn/config.json"])
    assert code == 0
    assert found[settings["signers"]] == signers.read_text()
    assert found[settings["revoked_signers"]] == ""
    assert found[f"{settings['artifact']}.sig"] == (tmp_path / "policy.json.sig").read_text()
    assert settings["policy_source"] == config["policy_source"]
    (tmp_path / "policy.json").write_bytes((tmp_path / "policy.json").read_bytes() + b"\n")
    code, _text, said = written(config)
    assert code == 2
    assert "has signed it" in said


def test_unit_is_made_for_the_configuration(written: Written) -> None:
    code, text, _said = written({"metrics_file": "/srv/metrics/forewarn.prom"}, python="/opt/python/bin/python3")
    lines = files(text)["/etc/systemd/system/forewarn.service"].splitlines()
    assert code == 0
    assert "LoadCredential=token:/etc/token" in lines
    assert "ReadWritePaths=/srv/metrics" in lines
    assert "IPAddressDeny=any" not in lines  # its hook is of kind http
    assert f"ExecStart={unit.program('/opt/python/bin/python3')} run --config {unit.CONFIG_FILE}" in lines


def test_a_url_survives_the_rules_of_systemd(written: Written) -> None:
    code, text, said = written(bundle_url=f"{URL}?sp=r&sig=a%2Fb$c", bundle_sha256=f"sha256:{SHA256.upper()}")
    assert code == 0
    assert f"{URL}?sp=r&sig=a%%2Fb$$c {SHA256}\n" in files(text)["/etc/systemd/system/forewarn-install.service"]
    assert "user data is not secret" in said


def test_limits_of_the_unit_are_the_roles(repository: Path) -> None:
    """The limits of the unit are written down twice."""
    defaults = yaml.safe_load((repository / "roles" / "forewarn" / "defaults" / "main.yml").read_text())
    lines = unit.unit_of({}, [], {}, "/usr/bin/python3", "forewarn.pyz").splitlines()
    assert f"MemoryMax={defaults['forewarn_memory_max']}" in lines
    assert f"TasksMax={defaults['forewarn_tasks_max']}" in lines


def test_settings_of_the_unit_are_the_roles(repository: Path) -> None:
    variables = yaml.safe_load((repository / "roles" / "forewarn" / "vars" / "main.yml").read_text())
    assert variables["__forewarn_settings"].keys() == unit._SETTINGS.keys()


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        ({}, {"bundle_url": URL.replace("https", "http")}, "the URL of the bundle is"),
        ({}, {"bundle_url": "https://user:secret@example.com/forewarn.pyz"}, "without a user or a password"),
        ({}, {"bundle_url": f"{URL} --more"}, "the URL of the bundle is"),
        ({}, {"bundle_sha256": SHA256[1:]}, "It has 64 hexadecimal digits"),
        ({}, {"python": "python3"}, "Name the full path of a Python"),
        ({}, {"credential_file": "token"}, "Write it like token=/etc/app/token"),
        ({}, {"credential_file": None}, "--credential-file token=/PATH"),
        ({"signers": "none"}, {}, "none: No such file"),
        ({"policy_source": "https://example.com/web.json"}, {}, "policy_source is set, but no signers"),
        ({"vm_name": "web_0"}, {}, "vm_name does not belong into user data"),
        ({"state": "/srv"}, {}, "the unit has its own"),
        ({"api_version": "2019-08-01"}, {}, "the artifact is for 2020-07-01"),
        ({"params": {"who": 1}}, {}, "who"),
        ({"artifact": "none.json"}, {}, "none.json: No such file"),
        ({"group_members": ["web_0"]}, {}, "group is missing"),
    ],
)
def test_wrong_input_gets_a_clear_error(
    written: Written, config: dict[str, Any], options: dict[str, str | None], message: str
) -> None:
    code, text, said = written(config, **options)
    assert (code, text) == (2, "")
    assert message in said


def test_more_than_azure_takes_is_refused(written: Written, tmp_path: Path) -> None:
    """What can be compressed is: this cannot."""
    random = base64.b64encode(os.urandom(LARGEST)).decode()
    code, text, said = written({"hook_proxy": f"http://{random}"})
    assert (code, text) == (2, "")
    assert "and Azure takes 65,535" in said
    assert "forewarn_image" in said


def test_cloud_init_itself_accepts_it(written: Written, tmp_path: Path) -> None:
    program = shutil.which("cloud-init")
    if program is None:
        lacking("programs", "there is no cloud-init: apt-get install cloud-init")
    path = tmp_path / "user-data.yml"
    assert written(output=str(path))[0] == 0
    checked = subprocess.run(
        [program, "schema", "--config-file", str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "Valid" in checked.stdout

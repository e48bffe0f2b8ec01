# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner does not start with policies whose limits nobody could keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli.main import main
from forewarn.cli.run.group import doubtful_limits

POLICY = """
name: web
rule:
  match:
    - id: outer
      rule:
        match:
          - id: drain
            condition: event.EventType == "Reboot"
            output: approve
            {limit}
            prepare: [{{run: [/bin/true]}}]
"""


STORE = {"etcd": ["https://etcd-1.example.com:2379"]}
GROUP = {"group": "web", "group_store": STORE}


def checked(
    limit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *more: str, **config: Any
) -> tuple[int, str]:
    """Check a configuration; return the exit code and all that was written."""
    policy = tmp_path / "web.yml"
    policy.write_text(POLICY.format(limit=limit), encoding="utf-8")
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"policy": ["web.yml"], "state": "state", **config}), encoding="utf-8")
    code = main(["run", "--check", "--config", str(file), "--endpoint", "http://127.0.0.1:9", *more])
    return code, "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("limit", "config", "code", "text"),
    [
        ("limit: 1", {}, 2, "rule web/outer.drain has a limit, and this VM has no group_store"),
        ("group: ready", {}, 0, ""),
        ("limit: 1", GROUP, 0, ""),
        ("limit: 25%", GROUP, 2, "nobody knows how many VMs that has"),
        ("limit: 25%", {**GROUP, "group_members": ["web-1", "web-2"]}, 0, ""),
        ("limit: {at_most: 1, group: vm.scale_set}", GROUP, 0, ""),
        ("limit: {at_most: 25%, group: vm.scale_set}", {**GROUP, "group_members": ["a"]}, 2, "CEL"),
        ("group: ready", {"group": "web"}, 2, "group_store is missing"),
        ("group: ready", {"group_store": STORE}, 2, "group is missing"),
        ("group: ready", {**GROUP, "group_members": ["web-1", ""]}, 2, "group_members is not a list of names"),
        ("group: ready", {**GROUP, "group_members": ["web-1", "WEB-1"]}, 2, "web-1 twice"),
        ("group: ready", {**GROUP, "group": "web/1"}, 2, "group is 'web/1'"),
        ("group: ready", {"group": "web", "group_store": {}}, 2, "exactly one of etcd and blob"),
        ("group: ready", {**GROUP, "group_store": {**STORE, "ca_file": "/nowhere/ca.pem"}}, 2, "/nowhere/ca.pem"),
    ],
)
def test_what_a_limit_needs_is_checked(
    limit: str, config: dict[str, Any], code: int, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, written = checked(limit, tmp_path, capsys, **config)
    assert (found, text in written) == (code, True), written


def test_limits_of_different_groups_are_a_warning() -> None:
    own, other = {"at_most": 1}, {"at_most": 2, "group": {"source": "vm.scale_set"}}

    class Policies:
        limits: tuple[Any, ...] = (("web/a", own), ("base/b", own))

    assert doubtful_limits(Policies()) == []  # type: ignore[arg-type]  # that is all that it reads
    Policies.limits = (("web/a", own), ("base/b", other))
    (text,) = doubtful_limits(Policies())  # type: ignore[arg-type]  # as above
    assert text.startswith("rules web/a and base/b limit different groups, the group of the VM and vm.scale_set: ")
    Policies.limits = (("web/a", own), ("web/b", other))
    assert doubtful_limits(Policies()) == [], "one policy decides by one rule"  # type: ignore[arg-type]  # likewise


@pytest.mark.parametrize("option", ["--dry-run", "--once"])
def test_where_nothing_is_prepared_nobody_is_counted(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, written = checked("limit: 1", tmp_path, capsys, option)
    assert code == 0, written


def test_store_credential_is_promised_or_present(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    group = {**GROUP, "group_store": {**STORE, "user": "vm", "password": {"credential": "store"}}}
    code, written = checked("limit: 1", tmp_path, capsys, **group)
    assert (code, "there is no credential store" in written, "LoadCredential=store:" in written) == (2, True, True)
    assert checked("limit: 1", tmp_path, capsys, "--credential", "store", **group)[0] == 0
    assert checked("limit: 1", tmp_path, capsys, "--dry-run", **group)[0] == 0, "it never asks the store"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert checked("limit: 1", tmp_path, capsys, **group)[0] == 0

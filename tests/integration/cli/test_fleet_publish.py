# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn fleet publish`` into Azurite and into a directory, and what a VM fetches from there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from forewarn.cli.main import main
from forewarn.runner.policy_source import fetch
from forewarn.runner.policy_source.report import UPDATED, SourceReport
from tools.fixtures.signing import SigningKey, allow, make_key
from tools.servers.azurite import Azurite, azurite, sas

POLICY = """\
name: web
rule:
  match:
    - {{id: first, condition: event.EventType == "{}", output: approve}}
    - {{id: rest, output: hold}}
"""
Published = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    with azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return make_key(tmp_path)


@pytest.fixture
def settings(tmp_path: Path, key: SigningKey) -> dict[str, Any]:
    """Return settings, which a test may change, for a directory."""
    allow(tmp_path, key)
    for kind in ("Freeze", "Reboot", "Terminate"):
        (tmp_path / f"{kind}.yml").write_text(POLICY.format(kind))
    (tmp_path / "site").mkdir()
    return {"to": "site/policy.json", "sign": "key", "signers": "allowed_signers"}


@pytest.fixture
def publish(tmp_path: Path, settings: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> Published:
    """Return a function that publishes; it returns the exit code, the JSON object or {}, and the error."""

    def run(*arguments: str, policy: str = "") -> tuple[int, dict[str, Any], str]:
        (tmp_path / "publish.yml").write_text(yaml.safe_dump(settings))
        paths = [str(tmp_path / f"{policy}.yml")] if policy else []
        capsys.readouterr()
        code = main(["fleet", "publish", "--settings", str(tmp_path / "publish.yml"), "--json", *arguments, *paths])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else {}, said.err

    return run


def asked(tmp_path: Path, **given: Any) -> SourceReport:
    """Ask as a VM does."""
    names = ("proxy", "ca_file", "sas_file", "identity", "endpoint", "revoked_signers", "scratch", "vm")
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    known = {"state": str(state), "signers": str(tmp_path / "allowed_signers"), "etag": "", "seconds": 30.0}
    return fetch.ask({**dict.fromkeys(names), **known, **given})


def test_vm_fetches_what_is_in_azure(
    storage: Azurite, tmp_path: Path, settings: dict[str, Any], publish: Published
) -> None:
    url = f"https://{storage.address.where}{storage.address.path}/web/policy.json"
    for name, permissions in (("writer", "rcw"), ("reader", "r")):
        (tmp_path / name).write_text(sas(permissions))
        (tmp_path / name).chmod(0o600)
    ca_file = str(storage.files.ca_file)
    settings.update(to=url, sas_file="writer", ca_file=ca_file)
    code, first, _said = publish("--share", "100", policy="Freeze")
    assert (code, first["waves"][0]["share"]) == (0, 100.0)
    vm = {"url": url, "ca_file": ca_file, "sas_file": str(tmp_path / "reader")}
    report = asked(tmp_path, **vm)
    assert (report.result, report.serial) == (UPDATED, first["waves"][0]["serial"]), report.reason
    assert report.etag
    again = asked(tmp_path, **{**vm, "etag": report.etag})
    assert (again.result, again.etag, again.serial) == ("unchanged", report.etag, None)

    code, second, _said = publish("--share", "5", policy="Reboot")
    assert [wave["share"] for wave in second["waves"]] == [5.0, 100.0]
    assert asked(tmp_path, **{**vm, "etag": report.etag}).serial == report.serial  # its name is not known
    with closing(storage.store()) as store:
        names = store.list("web/")
    assert len(names) == 6  # the manifest and two artifacts, each with a signature


def test_somebody_else_publishes_meanwhile(
    storage: Azurite, tmp_path: Path, settings: dict[str, Any], publish: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forewarn.fleet.publish import Publisher

    (tmp_path / "writer").write_text(sas("rcw"))
    (tmp_path / "writer").chmod(0o600)
    url = f"https://{storage.address.where}{storage.address.path}/other/policy.json"
    settings.update(to=url, sas_file="writer", ca_file=str(storage.files.ca_file))
    assert publish("--share", "100", policy="Freeze")[0] == 0
    read = Publisher.read

    def interrupted(publisher: Publisher) -> Any:
        monkeypatch.undo()
        found = read(publisher)
        assert publish("--share", "100", policy="Terminate")[0] == 0
        return found

    monkeypatch.setattr(Publisher, "read", interrupted)
    code, _answer, said = publish("--share", "100", policy="Reboot")
    assert code == 2
    assert "somebody else has just changed policy.json" in said


def test_forbidden_change_is_not_published(tmp_path: Path, settings: dict[str, Any], publish: Published) -> None:
    settings["forbid"] = ['was == hold && decision == approve && event.EventType == "Terminate"']
    assert publish("--share", "100", policy="Freeze")[0] == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "site").iterdir()}
    code, answer, said = publish("--share", "5", policy="Terminate")
    assert (code, answer["published"], answer["refused"]) == (1, False, True)
    assert "forbidden:" in said
    assert "Nothing was published." in said
    assert {path.name: path.read_bytes() for path in (tmp_path / "site").iterdir()} == before
    settings["fail_on"] = "more-permissive"
    assert publish("--share", "5", policy="Reboot")[0] == 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "site").iterdir()} == before
    del settings["fail_on"]
    assert publish("--share", "5", policy="Reboot")[0] == 0


def test_check_publishes_nothing(tmp_path: Path, publish: Published) -> None:
    code, answer, _said = publish("--share", "5", "--check", policy="Freeze")
    assert (code, answer["published"], answer["waves"][0]["share"]) == (0, False, 5.0)
    assert list((tmp_path / "site").iterdir()) == []


def test_widening_keeps_serial_and_back_renews_it(tmp_path: Path, publish: Published) -> None:
    first = publish("--share", "100", policy="Freeze")[1]["waves"][0]
    second = publish("--share", "5", "--start", "2030-01-01T00:00:00Z", policy="Reboot")[1]["waves"][0]
    assert second["start"] == "2030-01-01T00:00:00Z"
    assert publish("--share", "50")[1]["waves"][0]["serial"] == second["serial"] > first["serial"]
    back = publish("--back")[1]["waves"]
    assert [(wave["serial"] > second["serial"], wave["share"]) for wave in back] == [(True, 100.0)]
    found = [json.loads((tmp_path / "site" / wave["file"]).read_text()) for wave in (first, back[0])]
    assert found[0]["digest"] == found[1]["digest"]


@pytest.mark.parametrize(
    ("changed", "arguments", "message"),
    [
        ({"forbit": "x"}, ("--share", "5"), "there is no setting 'forbit'"),
        ({"forbid": 3}, ("--share", "5"), "forbid is not a list of texts"),
        ({"fail_on": "some"}, ("--share", "5"), "'some' is no kind of change"),
        ({"sign": "none"}, ("--share", "5"), "there is no such key"),
        ({"signers": "none"}, ("--share", "5"), "none"),
        ({"to": "https://account.blob.core.windows.net/policies/p.json"}, ("--share", "5"), "--sas-file is missing"),
        ({"to": "none/policy.json"}, ("--share", "5"), "none"),
        ({}, ("--back",), "there are no policies to go back to"),
        ({}, ("--back", "--start", "2030-01-01T00:00:00Z"), "Leave out policies and --start"),
    ],
)
def test_wrong_settings_get_a_clear_error(
    settings: dict[str, Any], publish: Published, changed: dict[str, Any], arguments: tuple[str, ...], message: str
) -> None:
    settings.update(changed)
    policy = "" if "--back" in arguments else "Freeze"
    code, answer, said = publish(*arguments, policy=policy)
    assert (code, answer) == (2, {})
    assert message in said


@pytest.mark.parametrize("share", ["0", "101", "-1", "nan", "many", ""])
def test_share_is_a_percentage(publish: Published, share: str) -> None:
    with pytest.raises(SystemExit):
        publish(f"--share={share}" if share else "--share= ", policy="Freeze")

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands on a machine that is not in Azure. No client of these tests talks to anybody."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli import main as cli
from forewarn.cli import service_options
from forewarn.cli.run import command as run_command
from forewarn.cli.run import service as run_service
from forewarn.cli.run.setup import read
from forewarn.emulator.server import EmulatorServer
from forewarn.errors import ServiceError
from forewarn.imds import azure
from forewarn.imds.client import Client
from forewarn.system import discovery

DEFAULT = "http://169.254.169.254"
POLICY = "name: calm\ndescription: Holds.\nrule: {match: [{output: hold}]}\n"


class EndpointLog(list[str]):
    """The endpoints of the clients that were made, none of which was used."""

    def client(self, endpoint: str, *_args: object, **_options: object) -> None:
        self.append(endpoint)
        raise ServiceError("this is a test, nobody is asked")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> EndpointLog:
    """Pretend to be a laptop, with no endpoint named."""
    asked = EndpointLog()
    tag = tmp_path / "chassis_asset_tag"
    tag.write_text("No Asset Tag\n")
    monkeypatch.setattr(azure, "ASSET_TAG_PATH", str(tag))
    monkeypatch.delenv("FOREWARN_ENDPOINT")
    monkeypatch.delenv("FOREWARN_PLATFORM", raising=False)
    monkeypatch.setattr(discovery, "discover_endpoint", lambda: None)  # no lease names another
    monkeypatch.setattr(service_options, "Client", asked.client)
    monkeypatch.setattr(run_command, "Client", asked.client)
    return asked


@pytest.fixture
def once(tmp_path: Path) -> list[str]:
    policy = tmp_path / "policy.yml"
    policy.write_text(POLICY)
    return ["run", "--policy", str(policy), "--once"]


@pytest.fixture(params=["events", "approve", "run"])
def command(request: pytest.FixtureRequest, once: list[str]) -> list[str]:
    return {"events": ["events"], "approve": ["approve", "A1"], "run": once}[request.param]


def test_a_command_asks_nobody_by_default(
    asked: EndpointLog, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["--endpoint", "auto"]):
        assert cli.main([*command, *more]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "this machine is not a VM in Azure: its chassis asset tag" in shown.err
        assert f"{DEFAULT} was not asked." in shown.err
        for way_out in ("--endpoint", "forewarn emulate", "FOREWARN_PLATFORM=azure"):
            assert way_out in shown.err
    assert asked == []


def test_one_setting_overrides_that(asked: EndpointLog, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREWARN_PLATFORM", "azure")
    assert cli.main(command) == 3
    assert asked == [DEFAULT]


def test_so_does_an_endpoint(asked: EndpointLog, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli.main([*command, "--endpoint", DEFAULT]) == 3
    monkeypatch.setenv("FOREWARN_ENDPOINT", "http://127.0.0.1:9")
    assert cli.main(command) == 3
    assert asked == [DEFAULT, "http://127.0.0.1:9"]


def test_a_vm_in_azure_asks(asked: EndpointLog, command: list[str]) -> None:
    Path(azure.ASSET_TAG_PATH).write_text("7783-7084-3265-9085-8269-3286-77\n")
    assert cli.main(command) == 3
    assert asked == [DEFAULT]


class Idle:
    """A client that records its endpoint."""

    def __init__(self, endpoint: str, _api_version: str) -> None:
        self.url = endpoint

    def read_ahead(self) -> None:
        pass


@pytest.mark.parametrize("platform", ["", "azure"])
def test_service_outside_azure_continues_with_a_doubt(
    asked: EndpointLog, once: list[str], platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A VM that is wrongly doubted must not lose its warning."""
    served: list[tuple[str, str | None]] = []

    def serve(
        _setup: object, client: Idle, _directory: str, _again: Callable[[], Any], doubt: str | None, *_: object
    ) -> None:
        served.append((client.url, doubt))

    monkeypatch.setenv("FOREWARN_PLATFORM", platform)
    monkeypatch.setattr(run_command, "Client", Idle)
    monkeypatch.setattr(run_service, "serve", serve)
    assert cli.main([*once[:-1], "--state", str(tmp_path / "state")]) == 0
    ((url, doubt),) = served
    assert url == DEFAULT
    assert (doubt is None) is (platform == "azure")
    assert asked == []


def test_the_log_mentions_the_doubt(once: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parser = cli._parser(once)
    given = dict(vars(parser.parse_args([*once, "--log-format", "json"])))
    with EmulatorServer() as server:
        for doubt in ("it is a laptop", None):
            run_service.serve(
                read(given, os.environ), Client(server.url), None, lambda _offer: read(given, os.environ), doubt
            )
            lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            warnings = [line for line in lines if line["line"] == "not-azure"]
            assert [(line["level"], line["reason"]) for line in warnings] == ([("warning", doubt)] if doubt else [])
            assert all("FOREWARN_PLATFORM=azure" in line["hint"] for line in warnings)

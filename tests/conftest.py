# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every test gets: a network that is loopback only, and the places of the repository.

On a VM in Azure a stray request would be real: the first poll enables the service, an approval reboots a machine.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from forewarn.bundle import build
from forewarn.cli import main as cli
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings
from hypothesis import HealthCheck, settings
from tools.fixtures.hook_bench import Hooks, open_files
from tools.fixtures.recorded_state import CommandResult, RecordedState, Run
from tools.servers.webhooks import make_certificate
from tools.sites.browser import Browser, browser
from tools.sites.link_collection import link_collection
from tools.sites.runner_process import Start, runners
from tools.sites.waiting import wait_until
from tools.suite import order, sizes, turns

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "plugins" / "module_utils" / "forewarn"
# Nothing listens on the discard port: a process started without an endpoint of its own is refused at once.
CLOSED_ENDPOINT = "http://127.0.0.1:9"

# A slow machine is not a failure.
settings.register_profile(
    "forewarn",
    settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=False,  # as hypothesis would in CI: each run has another seed there
    max_examples=sizes.examples(settings.get_profile("default").max_examples),
)
settings.load_profile("forewarn")


@pytest.hookimpl(tryfirst=True)  # before hypothesis reads the option
def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis draw by the seed of this run, and the longest files begin."""
    order.keep_order(config)
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(sizes.SEED)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what this run leaves out: tests of size full, those of another seed, and those that need root."""
    order.sort(items)
    for item in turns.left_to_other_seeds(items, config.args):
        item.add_marker(pytest.mark.skip(reason="another seed has its turn: make test-all runs all"))
    for item in items:
        if sizes.NAME == "small" and item.get_closest_marker("full"):
            item.add_marker(pytest.mark.skip(reason="left out at size small: make test-all runs it"))
        elif os.geteuid() != 0 and (marker := item.get_closest_marker("root")):
            item.add_marker(pytest.mark.skip(reason=marker.kwargs.get("reason", "only root may do this")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how to repeat this run."""
    terminalreporter.section(f"FOREWARN_SIZE={sizes.NAME} FOREWARN_SEED={sizes.SEED}")


class NetworkRefusedError(AssertionError):
    """A test tried to leave the machine. Not an OSError: code under test that handles faults must not swallow it."""


def _check(host: object) -> None:
    """Raise NetworkRefusedError unless a host, as the socket functions take it, is this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    if name is None or name == "localhost":
        return
    try:
        local = ipaddress.ip_address(str(name)).is_loopback
    except ValueError:  # a name: even to look it up would leave the machine
        local = False
    if not local:
        raise NetworkRefusedError(f"a test may only talk to loopback, not to {name!r}")


def _guard_method(name: str) -> Callable[..., Any]:
    original = getattr(socket.socket, name)

    def guarded(self: socket.socket, *args: Any) -> Any:
        # The address is the last argument of each of these; sendmsg and sendto may be called without one.
        if self.family in (socket.AF_INET, socket.AF_INET6) and args and isinstance(args[-1], tuple):
            _check(args[-1][0])
        return original(self, *args)

    return guarded


def _guard_function(name: str) -> Callable[..., Any]:
    original = getattr(socket, name)

    def guarded(host: object, *args: Any, **kwargs: Any) -> Any:
        _check(host)
        return original(host, *args, **kwargs)

    return guarded


@pytest.fixture(scope="session", autouse=True)
def loopback_only() -> Iterator[None]:
    """Refuse every connection but loopback, and give subprocesses an endpoint at which nothing listens."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto", "sendmsg"):
            patch.setattr(socket.socket, name, _guard_method(name))
        for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
            patch.setattr(socket, name, _guard_function(name))
        patch.setenv("FOREWARN_ENDPOINT", CLOSED_ENDPOINT)
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the repository, which is the root of the collection."""
    return REPOSITORY


@pytest.fixture(scope="session")
def package() -> Path:
    """Return the directory of the Python package ``forewarn``."""
    return PACKAGE


@pytest.fixture(scope="session")
def collections_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory to put into ANSIBLE_COLLECTIONS_PATH: this checkout as ``forewarn.azure``."""
    return link_collection(tmp_path_factory.mktemp("collections"))


@pytest.fixture(scope="session")
def pyz(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return ``forewarn.pyz``, the file that a VM runs."""
    return build(package, tmp_path_factory.mktemp("vm") / "forewarn.pyz").path


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a certificate for servers on loopback."""
    return make_certificate(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


# For tests of runners and of commands that ask the service


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[EmulatorServer]:
    """Return the emulator with two VMs, whose events are over soon; the marker ``emulated`` changes that."""
    marker = request.node.get_closest_marker("emulated")
    changed = {"start_delay": 0.1, "gone_after": 0.5, **(marker.kwargs if marker else {})}
    vms = changed.pop("vms", ("web_0", "web_1"))
    with EmulatorServer(vms=vms, settings=Settings(**changed)) as running:
        yield running


@pytest.fixture
def emulator(server: EmulatorServer) -> Iterator[EmulatorClient]:
    """Return a client of the server."""
    with EmulatorClient(server.url) as client:
        yield client


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return where runners keep their state; a file may have another."""
    return tmp_path


@pytest.fixture
def start(server: EmulatorServer, place: Path) -> Iterator[Start]:
    """Return a function that starts a runner for web_0, or the VM named."""
    with runners(server, place) as starter:
        yield starter


# For tests of commands that read a state directory


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordedState]:
    """Return a state directory with clocks of its own, which the commands use as well."""
    tmp_path.chmod(0o700)
    directory = tmp_path / "state"
    directory.mkdir(mode=0o700)
    state = RecordedState(directory)
    for command in ("status.command", "history.command", "recover"):
        monkeypatch.setattr(f"forewarn.cli.{command}.Clocks", lambda: state.clocks)
    yield state
    state.journal.close()


@pytest.fixture
def run_command(recorded: RecordedState, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command on that directory."""

    def run(command: str, *arguments: str) -> CommandResult:
        code = cli.main([command, "--state", recorded.directory, *arguments])
        return CommandResult(code, *capsys.readouterr())

    return run


@pytest.fixture
def status(run_command: Run) -> Run:
    return partial(run_command, "status")


@pytest.fixture
def recover(run_command: Run) -> Run:
    return partial(run_command, "recover")


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    """Return hooks of which nothing may be left: no process, no zombie, no open file."""
    before = open_files().items()
    running = Hooks()
    yield running
    running.executor.close()
    running.executor.take_results()
    assert running.executor.running == 0
    # A thread that has reported its hook's end may still have to release what it held.
    wait_until(lambda: not open_files().items() - before, what="a file stays open")
    assert [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE] == []

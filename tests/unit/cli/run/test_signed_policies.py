# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which policies a VM with signers uses, over starts, reloads, offers of a source, permits and kills."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli.doctor import command as doctor_command
from forewarn.cli.doctor.check import TROUBLE
from forewarn.cli.main import main
from forewarn.cli.run import command
from forewarn.cli.run.setup import read
from forewarn.errors import InputError
from forewarn.policy import signature
from forewarn.runner.state import accepted_policy
from forewarn.runner.telemetry.heartbeat import Heartbeat
from forewarn.system.posix import programs
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.signed_vm import ACCEPT, URL, Pool, SignedVm, make_pool
from tools.fixtures.signing import install
from tools.sites.runner_process import program


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Pool:
    return make_pool(tmp_path_factory.mktemp("pool"))


@pytest.fixture
def vm(pool: Pool, tmp_path: Path) -> SignedVm:
    tmp_path.chmod(0o755)
    return SignedVm(pool, tmp_path, source=False)


@pytest.fixture
def pulling(pool: Pool, tmp_path: Path) -> SignedVm:
    """Return a VM that has a source, too."""
    tmp_path.chmod(0o755)
    return SignedVm(pool, tmp_path, source=True)


REFUSED = {
    "5 by another": "nobody in",
    "5 for another purpose": "nobody in",
    "5 changed": "nobody in",
    "without a serial": "has no serial",
    "garbage": "the artifact is not JSON",
    "empty": "nobody in",
    "1": "has serial 1, which is older than 2",
}


@pytest.mark.parametrize(("name", "why"), REFUSED.items())
def test_refused_policies_change_nothing(vm: SignedVm, name: str, why: str) -> None:
    vm.bring("2")
    assert vm.start().loaded.problem is None
    vm.bring(name)
    with pytest.raises(InputError, match=why):
        vm.reload()
    assert vm.name == "2"
    assert why in str(vm.start().loaded.problem)
    assert vm.name == "2"
    vm.bring("3")
    assert vm.start().loaded.problem is None
    assert vm.name == "3"


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "1"])
def test_first_start_needs_signed_policies(vm: SignedVm, name: str) -> None:
    vm.bring(name)
    with pytest.raises(InputError, match=REFUSED[name]):
        vm.start()
    assert not (vm.state / "policy").exists()


@pytest.mark.parametrize("missing", ["policy.json", "policy.json.sig"])
def test_missing_file_is_a_refusal(vm: SignedVm, missing: str) -> None:
    vm.bring("2")
    (vm.directory / missing).unlink()
    with pytest.raises(InputError, match="No such file or directory"):
        vm.start()
    vm.bring("2")
    vm.start()
    (vm.directory / missing).unlink()
    assert "No such file or directory" in str(vm.start().loaded.problem)
    assert vm.name == "2"


def test_what_was_verified_is_what_is_used(vm: SignedVm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if somebody replaces the files, by a link too, while ssh-keygen works."""
    vm.bring("2")
    run = signature._ssh_keygen

    def replaced(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        done = run(*arguments, given=given)
        if "verify" in arguments:
            other = install(vm.directory / "other.json", vm.pool.policies["5 by another"])
            (vm.directory / "policy.json").unlink(missing_ok=True)
            (vm.directory / "policy.json").symlink_to(other)
        return done

    monkeypatch.setattr(signature, "_ssh_keygen", replaced)
    vm.start()
    assert vm.name == "2"
    accepted = accepted_policy.read_accepted(str(vm.state))
    assert accepted is not None
    assert accepted.policy == vm.pool.policies["2"]


def test_signature_that_is_a_pipe_is_refused(vm: SignedVm) -> None:
    vm.bring("2")
    (vm.directory / "policy.json.sig").unlink()
    os.mkfifo(vm.directory / "policy.json.sig")
    with pytest.raises(InputError, match="nobody in"):
        vm.start()


def test_revoked_policies_in_use_are_refused(vm: SignedVm) -> None:
    vm.bring("2")
    vm.start()
    revoked = vm.directory / "revoked"
    revoked.write_text(f"{vm.pool.key.public}\n")
    vm.given["revoked_signers"] = str(revoked)
    with pytest.raises(InputError, match="nobody in"):
        vm.start()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"policy_source": URL, "signers": None}, "policy_source is set, but no signers"),
        ({"revoked_signers": "x", "signers": None}, "revoked_signers is set, but no signers"),
        ({"artifact": None, "policy": ["p.yml"]}, "--policy compiles policies that nobody has signed"),
    ],
)
def test_options_that_do_not_fit(vm: SignedVm, change: dict[str, Any], why: str) -> None:
    config = {**json.loads(vm.config.read_text()), **change}
    vm.config.write_text(json.dumps({name: value for name, value in config.items() if value is not None}))
    with pytest.raises(InputError, match=why):
        vm.start()


def test_shadow_needs_a_signature_too(vm: SignedVm) -> None:
    vm.bring("2")
    vm.given["shadow"] = str(install(vm.directory / "shadow.json", vm.pool.policies["1"]))
    assert vm.start().shadow is not None  # it has no effect, so it may be older
    install(vm.directory / "shadow.json", vm.pool.policies["1 by another"])
    with pytest.raises(InputError, match="nobody in"):
        vm.start()


# Older policies


def test_permit_lets_older_policies_follow_once(vm: SignedVm) -> None:
    vm.bring("4")
    vm.start()
    assert vm.permit(2)
    vm.bring("1")
    with pytest.raises(InputError, match="older than 2"):
        vm.reload()
    vm.bring("3 by another")
    with pytest.raises(InputError, match="nobody in"):
        vm.reload()
    vm.bring("2")
    vm.reload()
    assert (vm.name, vm.start().loaded.problem) == ("2", None)
    vm.bring("4")
    vm.reload()
    vm.bring("3")
    with pytest.raises(InputError, match="older than 4"):
        vm.reload()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("without a serial", "has no serial"),
        ("garbage", "is not JSON"),
        (None, "nothing older than serial 4 was refused here"),
    ],
)
def test_permits_that_cannot_be_meant(
    vm: SignedVm, capsys: pytest.CaptureFixture[str], name: str | None, why: str
) -> None:
    vm.bring("4")
    vm.start()
    older = vm.directory / "older.json"
    older.write_bytes(b"" if name is None else vm.pool.policies[name].artifact)
    arguments = [*ACCEPT, str(older)][: 3 if name is None else None]
    assert main([*arguments, "--state", str(vm.state)]) == 2
    assert why in " ".join(capsys.readouterr().err.split())
    assert accepted_policy.oldest_serial(str(vm.state)) == 4


@pytest.mark.parametrize("serial", [4, 5])
def test_newer_policies_need_no_permit(vm: SignedVm, serial: int) -> None:
    vm.bring("4")
    vm.start()
    assert not vm.permit(serial)
    assert accepted_policy.read_permit(str(vm.state)) is None


def test_first_policies_need_no_permit(vm: SignedVm) -> None:
    assert not vm.permit(1)
    assert accepted_policy.read_permit(str(vm.state)) is None


@pytest.mark.parametrize("source", [None, {"refused_serial": 3}, {"refused_serial": None}])
def test_default_permit_is_for_what_was_refused(
    vm: SignedVm, capsys: pytest.CaptureFixture[str], source: dict[str, Any] | None
) -> None:
    """With a source, the policies of the configuration are older as a rule, and nobody means them."""
    vm.bring("4")
    vm.start()
    vm.bring("1")
    heart = Heartbeat(str(vm.state), ManualClocks())
    heart.beat({"policy_source": source, "options": {"config": str(vm.config)}}, False)
    heart.close()
    code = main(["policy", "accept", "--older", "--state", str(vm.state)])
    expected = 1 if source is None else source["refused_serial"]
    assert code == (2 if expected is None else 0)
    assert accepted_policy.oldest_serial(str(vm.state)) == (expected or 4)


@pytest.mark.parametrize("revoked", [False, True])
def test_key_that_expires_leaves_what_is_in_use(
    vm: SignedVm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, revoked: bool
) -> None:
    now = time.time()
    expiry = time.strftime("%Y%m%d%H%M%S", time.localtime(now - 3600.0))
    signers = tmp_path / "expiring"
    signers.write_text(f'release@example.com valid-before="{expiry}" {vm.pool.key.public}\n')
    options = {**json.loads(vm.config.read_text()), "signers": str(signers)}
    if revoked:
        (tmp_path / "revoked").write_text(f"{vm.pool.key.public}\n")
        options["revoked_signers"] = "revoked"
    with monkeypatch.context() as earlier:
        earlier.setattr(time, "time", lambda: now - 7200.0)
        accepted_policy.accept(str(vm.state), 2, vm.pool.policies["2"])
    vm.config.write_text(json.dumps(options))
    vm.bring("3")
    if revoked:
        with pytest.raises(InputError, match="has signed it"):
            vm.start()
        return
    loaded = vm.start().loaded
    assert (vm.name, "expired" in (loaded.problem or "")) == ("2", True)


def test_expired_policies_in_use_are_read_again(vm: SignedVm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a start does on a full disk, where newer ones of the configuration cannot be remembered."""
    now = time.time()
    expiry = time.strftime("%Y%m%d%H%M%S", time.localtime(now - 3600.0))
    signers = tmp_path / "expiring"
    signers.write_text(f'release@example.com valid-before="{expiry}" {vm.pool.key.public}\n')
    with monkeypatch.context() as earlier:
        earlier.setattr(time, "time", lambda: now - 7200.0)
        accepted_policy.accept(str(vm.state), 2, vm.pool.policies["2"])
    vm.config.write_text(json.dumps({**json.loads(vm.config.read_text()), "signers": str(signers)}))
    kept = accepted_policy.read_accepted(str(vm.state))
    assert kept is not None
    assert read(vm.given, {}, kept.policy).loaded.artifact.serial == 2


# With a source


def test_configuration_does_not_undo_the_source(pulling: SignedVm) -> None:
    pulling.bring("1")
    pulling.start()
    pulling.pull("3")
    pulling.reload()
    assert pulling.name == "3"
    assert (pulling.start().loaded.problem, pulling.name) == (None, "3")
    pulling.bring("4")
    pulling.reload()
    assert pulling.name == "4"
    pulling.bring("5 by another")
    assert "nobody in" in str(pulling.start().loaded.problem)
    assert pulling.name == "4"


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "garbage"])
def test_offer_is_checked_again(pulling: SignedVm, name: str) -> None:
    """Whatever the process that brought it made of it."""
    pulling.bring("2")
    pulling.start()
    with pytest.raises(InputError, match=REFUSED[name]):
        pulling.pull(name)
    assert (pulling.name, pulling.start().loaded.problem) == ("2", None)
    assert pulling.name == "2"


def test_changed_signers_need_a_restart(pulling: SignedVm, pool: Pool) -> None:
    """The process that asks the source has the earlier ones."""
    pulling.bring("2")
    pulling.start()
    other = pulling.directory / "signers"
    shutil.copy(pool.signers, other)
    pulling.config.write_text(json.dumps({**json.loads(pulling.config.read_text()), "signers": str(other)}))
    with pytest.raises(InputError, match="Restart the runner"):
        pulling.reload()


def test_newer_policies_of_another_process_are_kept(vm: SignedVm, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that has read its configuration, and waits for the lock."""
    vm.bring("2")
    setup = read(vm.given, {})
    accepted_policy.accept(str(vm.state), 3, vm.pool.policies["3"])
    with pytest.raises(InputError, match="put in use meanwhile"):
        command._remembered(setup, vm.given)
    assert accepted_policy.oldest_serial(str(vm.state)) == 3


def test_full_disk_keeps_what_was_in_use(
    vm: SignedVm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    vm.bring("2")
    with monkeypatch.context() as patch:
        patch.setattr(accepted_policy, "write_in_directory", fail)
        vm.start()  # there is nothing that it could be older than
        assert "will be forgotten" in capsys.readouterr().err
        assert (vm.name, accepted_policy.oldest_serial(str(vm.state))) == ("2", 0)
    vm.start()
    vm.bring("3")
    monkeypatch.setattr(accepted_policy, "write_in_directory", fail)
    with pytest.raises(InputError, match="No space left on device"):
        vm.reload()
    assert "No space left on device" in str(vm.start().loaded.problem)
    assert vm.name == "2"


# ssh-keygen


@pytest.mark.parametrize(
    ("script", "message"),
    [(None, "there is no ssh-keygen in"), ("echo 'unknown option -- Y' >&2; exit 1", "is older than OpenSSH 8.1")],
    ids=["missing", "too old"],
)
def test_unusable_ssh_keygen_is_the_configurations_problem(
    vm: SignedVm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], script: str | None, message: str
) -> None:
    vm.bring("2")
    if script is not None:
        program(vm.directory / "ssh-keygen", script)
    monkeypatch.setattr(programs, "SEARCH_PATH", str(vm.directory))
    assert main(["run", "--check-config", "--config", str(vm.config)]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert message in shown
    assert "Install OpenSSH 8.1 or newer" in shown
    setup, check = doctor_command._configuration(str(vm.config))
    assert (setup, check.name, check.state) == (None, "config", TROUBLE)
    assert message in check.text
    assert "Install OpenSSH 8.1 or newer" in check.hint

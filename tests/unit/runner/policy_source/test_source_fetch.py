# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A question to the policy source at the wire: what a server can bring a VM to load, which is nothing unsigned."""

from __future__ import annotations

import io
import json
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from forewarn.errors import InputError
from forewarn.policy.waves import place_of
from forewarn.runner.policy_source import fetch
from forewarn.runner.policy_source.report import FAILED, REFUSED, UNCHANGED, UPDATED, SourceReport
from forewarn.runner.state import accepted_policy
from forewarn.runner.state.accepted_policy import SignedPolicy
from tools.fixtures.signing import HOLDS, SigningKey, artifact, make_key
from tools.servers.policy_server import FAULTS, NAME, PolicyServer, PolicySite, PolicyTlsServer
from tools.servers.scripted_imds import ScriptedServer, status
from tools.servers.webhooks import Answer, Proxy

# Three VMs, of which the first alone is among the first 50 %.
FIRST, SECOND, THIRD = sorted((f"web_{number}" for number in range(3)), key=place_of)
SHARE = (place_of(FIRST) + place_of(SECOND)) / 2


class SigningKeys(NamedTuple):
    """Who may sign, who may not, and policies of the serials 1 to 3."""

    directory: Path
    key: SigningKey
    other: SigningKey

    def policy(self, serial: int | None, policy: str = HOLDS) -> SignedPolicy:
        return self.key.signed(artifact(self.directory, serial, policy))

    def for_another_purpose(self, serial: int) -> SignedPolicy:
        content = artifact(self.directory, serial)
        return SignedPolicy(content, self.key.sign(content, "file"))


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> SigningKeys:
    directory = tmp_path_factory.mktemp("signed")
    directory.chmod(0o755)
    found = SigningKeys(directory, make_key(directory), make_key(directory, "other"))
    Path(directory, "signers").write_text(f"release@example.com {found.key.public}\n")
    return found


class PullingVm:
    """A VM whose policies of serial 2 are in use."""

    def __init__(self, state: Path, signed: SigningKeys, url: str) -> None:
        state.chmod(0o700)
        self.state = str(state)
        self.signed = signed
        self.settings: dict[str, Any] = {
            "url": url,
            **dict.fromkeys(("proxy", "ca_file", "sas_file", "identity", "revoked_signers", "scratch", "vm")),
            "endpoint": "http://127.0.0.1:9",
            "signers": str(signed.directory / "signers"),
            "state": self.state,
            "etag": "",
            "seconds": 5.0,
        }
        self.use(2)

    def use(self, serial: int) -> None:
        accepted_policy.accept(self.state, serial, self.signed.policy(serial))

    def ask(self, **settings: Any) -> SourceReport:
        """Ask, with the ETag of the last answer."""
        report = fetch.ask({**self.settings, **settings})
        self.settings["etag"] = report.etag
        return report

    def offer(self) -> SignedPolicy | None:
        try:
            return accepted_policy.read_offer(self.state)
        except InputError:
            return None


@pytest.fixture
def site(signed: SigningKeys) -> PolicySite:
    found = PolicySite()
    found.put(signed.policy(3))
    return found


@pytest.fixture
def server(site: PolicySite) -> Iterator[PolicyServer]:
    found = PolicyServer(site)
    with found:
        yield found


@pytest.fixture
def vm(tmp_path: Path, signed: SigningKeys, server: PolicyServer) -> PullingVm:
    return PullingVm(tmp_path, signed, server.url)


# What is there


def test_newer_policies_become_an_offer(vm: PullingVm, site: PolicySite) -> None:
    report = vm.ask()
    assert (report.result, report.serial, report.reason) == (UPDATED, 3, None)
    assert vm.offer() == vm.signed.policy(3)
    assert site.names() == [NAME, f"{NAME}.sig"]
    assert site.requests[0][0] == f"/policies/{NAME}"
    vm.use(3)
    assert vm.ask().result == UNCHANGED
    assert site.names()[2:] == [NAME]  # the ETag says that nothing has changed
    assert site.requests[-1][1]["if-none-match"] == report.etag
    vm.settings["etag"] = ""
    assert vm.ask().result == UNCHANGED


def test_take_back_is_a_newer_serial(vm: PullingVm, site: PolicySite) -> None:
    """The policies of before, signed again."""
    site.put(vm.signed.policy(3, HOLDS.replace("holds", "others")))
    assert vm.ask().result == UPDATED
    vm.use(3)
    site.put(vm.signed.policy(4))
    assert (vm.ask().serial, vm.offer()) == (4, vm.signed.policy(4))


@pytest.mark.parametrize("faulty", ["", ".sig"], ids=["all", "signature"])
@pytest.mark.parametrize("fault", FAULTS)
def test_useless_answer_changes_nothing(vm: PullingVm, site: PolicySite, fault: str, faulty: str) -> None:
    site.fail(fault, faulty)
    began = time.monotonic()
    report = vm.ask(seconds=0.3)
    assert time.monotonic() - began < 20
    assert report.result in (FAILED, REFUSED)
    assert report.reason
    assert report.etag == ""
    assert vm.offer() is None
    assert accepted_policy.oldest_serial(vm.state) == 2
    site.fail(None)
    assert vm.ask().result == UPDATED


UNTRUSTED: dict[str, tuple[Callable[[SigningKeys], SignedPolicy], str]] = {
    "unsigned": (lambda signed: signed.policy(3)._replace(signature=b""), "nobody in"),
    "signed by another": (lambda signed: signed.other.signed(signed.policy(3).artifact), "nobody in"),
    "signed for another purpose": (lambda signed: signed.for_another_purpose(3), "nobody in"),
    "another file": (lambda signed: signed.key.signed(b'{"format": "other"}'), "is not a compiled policy"),
    "no file": (lambda signed: signed.key.signed(b"garbage"), "not JSON"),
    "without a serial": (lambda signed: signed.policy(None), "serial None"),
    "older": (lambda signed: signed.policy(1), "serial 1 is older than 2"),
    "not UTF-8": (lambda signed: signed.policy(3)._replace(signature=signed.policy(3).signature + b"\xff"), "UTF-8"),
    "a damaged manifest": (lambda signed: signed.key.signed(b'{"format": "forewarn-waves"}'), "is damaged"),
}


@pytest.mark.parametrize("name", UNTRUSTED)
def test_untrusted_policies_are_refused(vm: PullingVm, site: PolicySite, name: str) -> None:
    make, why = UNTRUSTED[name]
    site.put(make(vm.signed))
    report = vm.ask()
    assert (report.result, vm.offer()) == (REFUSED, None)
    assert why in str(report.reason)
    assert report.serial == (1 if name == "older" else None)


def test_file_replaced_before_its_signature(vm: PullingVm, site: PolicySite) -> None:
    """What a release does between two requests: the second attempt finds both."""
    site.put(vm.signed.policy(2))

    def replace(name: str) -> None:
        if name.endswith(".sig") and len(site.requests) == 2:
            site.put(vm.signed.policy(3))

    site.before = replace
    assert vm.ask().result == UPDATED
    assert vm.offer() == vm.signed.policy(3)


def test_signature_that_comes_later(vm: PullingVm, site: PolicySite) -> None:
    site.files[f"{NAME}.sig"] = vm.signed.policy(2).signature
    assert vm.ask().result == REFUSED
    assert len(site.requests) == 4
    site.put(vm.signed.policy(3))
    assert vm.ask().result == UPDATED


@pytest.mark.parametrize("etag", ["", "abc", '"' + "a" * 5000 + '"', '"\xff"', 'x"\t"', "*"])
def test_odd_etag_is_not_sent_back(tmp_path: Path, signed: SigningKeys, etag: str) -> None:
    policy = signed.policy(3)
    headers = {"ETag": etag} if etag else {}
    with ScriptedServer(*[status(200, part, headers) for part in policy] * 2, status(500)) as server:
        vm = PullingVm(tmp_path, signed, f"{server.url}/policy.json")
        assert [vm.ask().result, vm.ask().result] == [UPDATED, UPDATED]
        assert not [request for request in server.requests if "if-none-match" in request.headers]


# Waves


def waves(vm: PullingVm, site: PolicySite, start: float | None = None) -> None:
    """Publish serial 3 for the first VM of three, and serial 2 for all."""
    site.put_waves(vm.signed.key, [(3, vm.signed.policy(3), SHARE, start), (2, vm.signed.policy(2), 100.0, None)])


def test_wave_is_for_one_of_three(vm: PullingVm, site: PolicySite) -> None:
    waves(vm, site)
    found = {name: vm.ask(vm=name, etag="") for name in (FIRST, SECOND, THIRD, FIRST.upper(), None)}
    assert {name: (report.result, report.serial, report.share) for name, report in found.items()} == {
        FIRST: (UPDATED, 3, SHARE),
        FIRST.upper(): (UPDATED, 3, SHARE),
        SECOND: (UNCHANGED, 2, 100.0),
        THIRD: (UNCHANGED, 2, 100.0),
        None: (UNCHANGED, 2, 100.0),
    }
    assert "2.json" not in site.names()  # these are in use


def test_nameless_vm_refuses_no_older_wave(vm: PullingVm, site: PolicySite) -> None:
    """A runner that has just started may not know yet that the first wave is for its VM."""
    waves(vm, site)
    vm.use(3)
    assert vm.ask(vm=None).result == UNCHANGED
    assert vm.ask(vm=SECOND, etag="").result == REFUSED
    assert vm.ask(vm=FIRST, etag="").result == UNCHANGED
    assert vm.offer() is None


def test_wave_that_has_not_begun(vm: PullingVm, site: PolicySite) -> None:
    start = float(int(time.time()) + 3600)
    waves(vm, site, start)
    report = vm.ask(vm=FIRST)
    assert (report.result, report.serial, report.again) == (UNCHANGED, 2, start)
    site.put_waves(vm.signed.key, [(3, vm.signed.policy(3), 100.0, start)])
    assert vm.ask(vm=FIRST)[:1] + vm.ask(vm=FIRST)[3:] == (UNCHANGED, None, None, None)
    assert vm.offer() is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("another file", "is not the file that the manifest is about"),
        ("another serial", "have serial 3, and need 4"),
        ("unsigned", "nobody in"),
        ("missing", "answered 404"),
    ],
)
def test_file_of_a_wave_is_checked(vm: PullingVm, site: PolicySite, name: str, why: str) -> None:
    waves(vm, site)
    if name == "another file":
        site.put(vm.signed.policy(4), "3.json")
    elif name == "another serial":
        site.put_waves(vm.signed.key, [(4, vm.signed.policy(3), 100.0, None)])
    elif name == "unsigned":
        site.put(vm.signed.other.signed(vm.signed.policy(3).artifact), "3.json")
    else:
        del site.files["3.json"]
    report = vm.ask(vm=FIRST)
    assert report.result == (FAILED if name == "missing" else REFUSED)
    assert why in str(report.reason)
    assert vm.offer() is None


def test_manifest_needs_a_signature(vm: PullingVm, site: PolicySite) -> None:
    waves(vm, site)
    site.files[f"{NAME}.sig"] = vm.signed.other.sign(site.files[NAME])
    assert vm.ask(vm=FIRST).result == REFUSED
    assert set(site.names()) == {NAME, f"{NAME}.sig"}


# The way there


def test_own_authority(
    tmp_path: Path, signed: SigningKeys, site: PolicySite, tls: ssl.SSLContext, certificate: Path
) -> None:
    with PolicyTlsServer(site, tls) as server:
        vm = PullingVm(tmp_path, signed, server.url)
        assert vm.ask(ca_file=str(certificate)).result == UPDATED
        report = vm.ask(ca_file=None, etag="")
        assert report.result == FAILED
        assert "was not accepted" in str(report.reason)


@pytest.mark.parametrize("secure", [False, True])
def test_proxy(
    tmp_path: Path, signed: SigningKeys, site: PolicySite, tls: ssl.SSLContext, certificate: Path, secure: bool
) -> None:
    proxy = Proxy()
    with PolicyServer(site) as plain, PolicyTlsServer(site, tls) as encrypted, proxy:
        proxy.target = encrypted.port if secure else plain.port
        vm = PullingVm(tmp_path, signed, encrypted.url if secure else plain.url)
        assert vm.ask(proxy=proxy.url, ca_file=str(certificate)).result == UPDATED
        assert {(request.method, request.target) for request in proxy.requests} == {
            ("CONNECT", f"127.0.0.1:{proxy.target}")
        }
        assert site.requests[0][1]["host"] == f"127.0.0.1:{proxy.target}"


@pytest.mark.parametrize("answer", [Answer(403), Answer(407), Answer(502), "close", "hang"])
def test_proxy_that_refuses(vm: PullingVm, site: PolicySite, answer: Answer | str) -> None:
    with Proxy(0, answer) as proxy:
        report = vm.ask(proxy=proxy.url, seconds=0.5)
    assert report.result == FAILED
    assert site.requests == []
    assert vm.ask(proxy=proxy.url, seconds=0.5).result == FAILED  # it is gone
    assert vm.ask().result == UPDATED


def test_shared_access_signature(vm: PullingVm, site: PolicySite, tmp_path: Path) -> None:
    file = tmp_path / "sas"
    file.write_text("?sv=2021-12-02&sp=r&sig=SecretOfTheTest%3D\n")
    file.chmod(0o600)
    assert vm.ask(sas_file=str(file)).result == UPDATED
    assert {target.partition("?")[2] for target, _headers in site.requests} == {
        "sv=2021-12-02&sp=r&sig=SecretOfTheTest%3D"
    }
    assert site.requests[0][1]["x-ms-version"] == "2021-12-02"
    site.fail("403")
    report = vm.ask(sas_file=str(file), etag="")
    assert "answered 403" in str(report.reason)
    assert "SecretOfTheTest" not in str(report)
    file.write_text("nothing that is one")
    report = vm.ask(sas_file=str(file))
    assert "the secret is not a SAS" in str(report.reason)
    file.unlink()
    assert vm.ask(sas_file=str(file)).result == FAILED


def test_token_of_the_identity(vm: PullingVm, site: PolicySite) -> None:
    token = status(200, json.dumps({"access_token": "token.of-the-test", "expires_in": "3600"}).encode())
    with ScriptedServer(token) as metadata:
        assert vm.ask(identity="", endpoint=metadata.url).result == UPDATED
    assert {headers["authorization"] for _target, headers in site.requests} == {"Bearer token.of-the-test"}
    assert [request.headers["metadata"] for request in metadata.requests] == ["true"]
    assert "client_id" not in metadata.requests[0].target
    with ScriptedServer(status(400)) as metadata:
        report = vm.ask(identity="12345678-1234-1234-1234-123456789abc", endpoint=metadata.url)
    assert report.result == FAILED
    assert "gave no token" in str(report.reason)
    assert "client_id=12345678-" in metadata.requests[0].target


def test_child_reads_settings_and_writes_a_report(vm: PullingVm) -> None:
    written = io.StringIO()
    assert fetch.main(io.BytesIO(json.dumps(vm.settings).encode() + b"\n"), written) == 0
    assert SourceReport(**json.loads(written.getvalue())).result == UPDATED

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has signed a file: the real ssh-keygen says it, about throw-away keys, attacks and damage."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

import pytest
from forewarn.errors import InputError
from forewarn.policy.signature import NAMESPACE, Signers
from forewarn.runner.state.accepted_policy import SignedPolicy
from forewarn.system.posix import programs
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tools.fixtures.signing import SigningKey, make_key
from tools.sites.runner_process import program
from tools.suite.sizes import examples

CONTENT = b'{"format": "forewarn-policy", "serial": 7}\n'
WHO = "release@example.com"


class KeyRing:
    """A key that may sign, another that may not, and a list of allowed signers."""

    def __init__(self, directory: Path) -> None:
        directory.chmod(0o755)
        self.directory = directory
        self.key = make_key(directory)
        self.other = make_key(directory, "other")
        self.policy = self.key.signed(CONTENT)
        self.allowed = directory / "signers"
        self.revoked = directory / "revoked"

    def allow(self, *lines: str | bytes) -> Signers:
        """Write the list; ``KEY`` in a line is the public key."""
        texts = [line.encode() if isinstance(line, str) else line for line in lines or (f"{WHO} KEY",)]
        self.allowed.write_bytes(b"".join(text.replace(b"KEY", self.key.public.encode()) + b"\n" for text in texts))
        return Signers(str(self.allowed))

    def revoke(self, *keys: SigningKey) -> Signers:
        self.revoked.write_text("".join(f"{key.public}\n" for key in keys))
        return self.allow()._replace(revoked=str(self.revoked))


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    return KeyRing(tmp_path_factory.mktemp("keys"))


def refusal(signers: Signers, policy: SignedPolicy) -> str:
    """Return why a signature is refused."""
    with pytest.raises(InputError) as caught:
        signers.verify(policy.artifact, policy.signature)
    return str(caught.value)


# Who may sign


@pytest.mark.parametrize(
    "options", [("-t", "ed25519"), ("-t", "rsa", "-b", "2048"), ("-t", "ecdsa")], ids=["ed25519", "rsa", "ecdsa"]
)
def test_signature_by_an_allowed_key(ring: KeyRing, tmp_path: Path, options: tuple[str, ...]) -> None:
    key = make_key(tmp_path, "another", *options)
    signers = ring.allow(f"{WHO} {key.public}")
    signers.check()
    policy = key.signed(CONTENT)
    assert signers.verify(*policy) == WHO
    assert "nobody in" in refusal(signers, policy._replace(artifact=CONTENT + b" "))


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        (["# who may sign", "", "  # nobody else", f"{WHO} KEY a comment"], WHO),
        (['"release team,deputy" KEY'], "release team"),
        (["*@example.com,!mallory@example.com KEY"], "*@example.com"),
        (["!mallory,* KEY"], "*"),
        ([f"{WHO} KEY\r"], WHO),
        ([f"\t{WHO}\tKEY"], WHO),
        ([f'{WHO} namespaces="git,{NAMESPACE}" KEY'], WHO),
        ([f'{WHO} valid-after="20200101",valid-before="20990101" KEY'], WHO),
        (["somebody ssh-ed25519 garbage", "\0\1 \xff\0", f"{WHO} KEY"], WHO),
        ([b"\xff\xfe\xff KEY"], "\udcff\udcfe\udcff"),
        ([b"a\0b KEY", f"{WHO} KEY"], WHO),
        (["-Y KEY"], "-Y"),
        (["a" * 200_000 + " KEY", f"{WHO} KEY"], WHO),
    ],
)
def test_list_of_allowed_signers(ring: KeyRing, lines: list[str | bytes], who: str) -> None:
    signers = ring.allow(*lines)
    signers.check()
    assert signers.verify(*ring.policy) == who


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f'{WHO} valid-before="20200101" KEY', "key has expired"),
        (f'{WHO} valid-after="20990101" KEY', "key is not yet valid"),
        (f'{WHO} namespaces="git" KEY', "not permitted for use in signature namespace"),
        (f'{WHO} surprise="yes" KEY', "bad options"),
        (f"{WHO} ssh-ed25519 garbage", "nobody in"),
        (f"#{WHO} KEY", "nobody in"),
        ("!* KEY", "nobody in"),
        (b"a\0b KEY", "nobody in"),
        (b"\0" * 1000 + b" \xff \0 KEY", "nobody in"),
        ("a" * 200_000 + " KEY", "nobody in"),
        (f"{WHO} KEY".replace("KEY", "ssh-ed25519 " + "A" * 200_000), "nobody in"),
        ('"no end KEY', "nobody in"),
        ("", "nobody in"),
    ],
)
def test_a_key_that_may_not_sign(ring: KeyRing, line: str | bytes, why: str) -> None:
    assert why in refusal(ring.allow(line), ring.policy)


@settings(max_examples=examples(30))
@given(content=st.binary(max_size=300))
@example(content=b"\0 \0")
def test_garbage_allows_nobody(ring: KeyRing, content: bytes) -> None:
    signers = ring.allow(content.replace(b"KEY", b""))
    with pytest.raises(InputError, match="nobody in"):
        signers.verify(*ring.policy)


def test_a_list_without_signers_is_reported(ring: KeyRing) -> None:
    with pytest.raises(InputError, match="allows nobody to sign"):
        ring.allow("# nobody yet").check()
    ring.allowed.write_bytes(b"x" * 300_000)
    with pytest.raises(InputError, match="larger than 262144 bytes"):
        Signers(str(ring.allowed)).check()


def test_revoked_key_is_refused(ring: KeyRing) -> None:
    assert ring.revoke(ring.other).verify(*ring.policy) == WHO
    assert "nobody in" in refusal(ring.revoke(ring.other, ring.key), ring.policy)
    for content in (b"garbage", b"SSHKRL\n\0" + bytes(40)):
        signers = ring.revoke()
        ring.revoked.write_bytes(content)
        assert "nobody in" in refusal(signers, ring.policy)
    ring.revoked.unlink()
    assert "list of revoked signers" in refusal(signers, ring.policy)


# What was signed


def test_signature_for_another_purpose_or_content(ring: KeyRing) -> None:
    signers = ring.allow()
    for policy in (
        SignedPolicy(CONTENT, ring.key.sign(CONTENT, "file")),
        SignedPolicy(CONTENT, ring.key.sign(CONTENT, f"{NAMESPACE}-2")),
        ring.other.signed(CONTENT),
        SignedPolicy(CONTENT, ring.key.sign(b"another file")),
        SignedPolicy(CONTENT, b""),
        SignedPolicy(b"", ring.policy.signature),
        SignedPolicy(CONTENT, b"garbage"),
        SignedPolicy(CONTENT, b"\0" * 100_000),
        SignedPolicy(CONTENT, ring.policy.signature * 2)._replace(artifact=CONTENT * 2),
    ):
        assert "nobody in" in refusal(signers, policy)


def decoded(signature: bytes) -> bytes | None:
    """Return what is in the armor of a signature, None without any."""
    body = signature.partition(b"-----BEGIN SSH SIGNATURE-----")[2].partition(b"-----END SSH SIGNATURE-----")[0]
    try:
        return base64.b64decode(body)
    except binascii.Error:
        return None


@settings(max_examples=examples(60))
@given(data=st.data())
def test_flipped_bit_is_refused_or_harmless(ring: KeyRing, data: st.DataObject) -> None:
    signers = ring.allow()
    place = data.draw(st.sampled_from(["artifact", "signature"]))
    changed = bytearray(getattr(ring.policy, place))
    bit = data.draw(st.integers(0, 8 * len(changed) - 1))
    changed[bit // 8] ^= 1 << bit % 8
    policy = ring.policy._replace(**{place: bytes(changed)})
    try:
        signers.verify(*policy)
    except InputError:
        return
    assert policy.artifact == CONTENT
    assert decoded(policy.signature) == decoded(ring.policy.signature)


@settings(max_examples=examples(20))
@given(data=st.data())
def test_truncated_file_is_refused(ring: KeyRing, data: st.DataObject) -> None:
    signers = ring.allow()
    for place in ("artifact", "signature"):
        whole = getattr(ring.policy, place).rstrip()
        cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
        assert "nobody in" in refusal(signers, ring.policy._replace(**{place: cut}))


# Files and programs of others


def test_lists_that_others_can_change_are_refused(ring: KeyRing, tmp_path: Path) -> None:
    signers = ring.revoke(ring.other)
    for path in (ring.allowed, ring.revoked):
        path.chmod(0o664)
        with pytest.raises(InputError, match="can be changed by others: it is writable by group"):
            signers.check()
        assert "can be changed by others" in refusal(signers, ring.policy)
        path.chmod(0o644)
    signers.check()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    link = theirs / "signers"
    link.symlink_to(ring.allowed)
    Signers(str(link)).check()
    theirs.chmod(0o777)
    with pytest.raises(InputError, match="theirs is writable by"):
        Signers(str(link)).check()
    with pytest.raises(InputError, match="not a regular file"):
        Signers(str(tmp_path)).check()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "there is no ssh-keygen in"),
        ("echo 'unknown option -- Y' >&2; echo 'usage: ssh-keygen [-q] [-b bits]' >&2; exit 1", "older than OpenSSH"),
    ],
    ids=["missing", "too old"],
)
def test_unusable_ssh_keygen_is_reported(
    ring: KeyRing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, message: str
) -> None:
    if script is not None:
        program(tmp_path / "ssh-keygen", script)
    monkeypatch.setattr(programs, "SEARCH_PATH", str(tmp_path))
    with pytest.raises(InputError, match=message) as caught:
        ring.allow().check()
    assert "Install OpenSSH 8.1 or newer" in caught.value.hint
    assert refusal(ring.allow(), ring.policy)


def test_stuck_ssh_keygen_is_ended(ring: KeyRing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "ssh-keygen", f"echo $$ >{tmp_path}/pid; exec /bin/sleep 600")
    monkeypatch.setattr(programs, "SEARCH_PATH", str(tmp_path))
    monkeypatch.setattr("forewarn.policy.signature._SECONDS", 0.2)
    assert "could not verify a signature" in refusal(ring.allow(), ring.policy)
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_temporary_files_are_private_and_removed(ring: KeyRing, tmp_path: Path) -> None:
    signers = ring.allow()
    signers.verify(*ring.policy, directory=str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="No such file or directory"):
        signers.verify(*ring.policy, directory=str(tmp_path / "missing"))


def test_verification_needs_no_home(ring: KeyRing, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ssh-keygen is given does not depend on the environment of who started the runner."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.delenv("HOME", raising=False)
    assert ring.allow().verify(*ring.policy) == WHO

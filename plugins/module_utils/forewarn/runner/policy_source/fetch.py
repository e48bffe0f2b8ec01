# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The child process that asks the policy source, verifies the answer, and keeps what is newer as an offer.

It reads its settings as the first line of standard input, and writes a ``SourceReport`` as JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple, TextIO

from ...errors import ForewarnError, InputError
from ...imds.errors import HTTP, Fault
from ...policy import artifact, waves
from ...policy.signature import SUFFIX, Signers
from ...policy.waves import Wave
from ..groups.address import parse_address
from ..groups.azure_login import AzureLogin, IdentityLogin, SasLogin
from ..groups.https import PersistentConnection, StoreReply
from ..groups.settings import SecretSource, secret_reader
from ..groups.tls import TlsFiles
from ..state import accepted_policy
from ..state.accepted_policy import SignedPolicy
from .report import FAILED, REFUSED, UNCHANGED, UPDATED, SourceReport

_ATTEMPTS = 2  # a file and its signature are replaced one after the other
_LONGEST_REASON = 300
_ETAG = re.compile(r'(W/)?"[\x21\x23-\x7e]{0,200}"')  # others are not sent back (RFC 9110, 8.8.3)
_API_VERSION = "2021-12-02"  # of Azure Blob Storage, which wants one with a login


def main(source: BinaryIO | None = None, target: TextIO | None = None) -> int:
    """Ask once, by the settings on standard input; return the exit code."""
    settings = json.loads((source or sys.stdin.buffer).readline())
    (target or sys.stdout).write(json.dumps(ask(settings)._asdict()) + "\n")
    return 0


def ask(settings: Mapping[str, Any]) -> SourceReport:
    """Return what the source has for this VM. Newer policies are kept as an offer in the state directory."""
    server = _Server(settings)
    try:
        return _ask(settings, server)
    except Fault as fault:
        return SourceReport(FAILED, _reason(fault))
    except InputError as error:
        return SourceReport(REFUSED, _reason(error))
    finally:
        server.close()


def _ask(settings: Mapping[str, Any], server: _Server) -> SourceReport:
    state: str = settings["state"]
    signers = Signers(settings["signers"], settings["revoked_signers"])
    known = server.get("", settings["etag"])
    if known is None:
        return SourceReport(UNCHANGED, etag=settings["etag"])
    top = server.signed("", signers, settings["scratch"], known)
    wave: Wave | None = None
    again = None
    policy = top.policy
    if waves.is_manifest(policy.artifact):
        wave, again = waves.choose(waves.decode(policy.artifact), settings["vm"], time.time())
        if wave is None:
            return SourceReport(UNCHANGED, etag=top.etag, again=again)
        policy = _of_wave(wave, state) or server.signed(wave.file, signers, settings["scratch"]).policy
        if hashlib.sha256(policy.artifact).hexdigest() != wave.sha256:
            raise InputError(f"{wave.file} is not the file that the manifest is about")
    found = artifact.load(policy.artifact)
    if found.serial is None or (wave is not None and found.serial != wave.serial):
        raise InputError(f"the policies have serial {found.serial}, and need {wave.serial if wave else 'one'}")
    report = SourceReport(UNCHANGED, None, top.etag, found.serial, None if wave is None else wave.share, again)
    accepted = accepted_policy.read_accepted(state)
    if accepted is not None and accepted.policy.artifact == policy.artifact:
        return report
    oldest = accepted_policy.oldest_serial(state)
    if found.serial < oldest:
        if wave is not None and settings["vm"] is None:  # with its name, another wave may be for this VM
            return report
        text = f"serial {found.serial} is older than {oldest}, the one in use (see forewarn policy accept --older)"
        return report._replace(result=REFUSED, reason=text)
    accepted_policy.write_offer(state, policy)
    return report._replace(result=UPDATED)


def _of_wave(wave: Wave, state: str) -> SignedPolicy | None:
    """Return the policies in use if they are those of the wave, so that they need not be brought again."""
    accepted = accepted_policy.read_accepted(state)
    if accepted is None or hashlib.sha256(accepted.policy.artifact).hexdigest() != wave.sha256:
        return None
    return accepted.policy


class _Answer(NamedTuple):
    content: bytes
    etag: str


class _SignedAnswer(NamedTuple):
    policy: SignedPolicy
    etag: str


class _Server:
    """The web server or the container. Raises Fault where it does not answer with what was asked for."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._address = parse_address(settings["url"])
        proxy = None if settings["proxy"] is None else parse_address(settings["proxy"])
        self._connection = PersistentConnection(self._address, TlsFiles(settings["ca_file"]), proxy)
        self._login: AzureLogin | None = None
        if settings["sas_file"] is not None:
            self._login = SasLogin(secret_reader(SecretSource(None, settings["sas_file"]), None))
        elif settings["identity"] is not None:
            self._login = IdentityLogin(settings["endpoint"], settings["identity"] or None)
        self._deadline = time.monotonic() + float(settings["seconds"])

    def close(self) -> None:
        self._connection.close()
        if self._login is not None:
            self._login.close()

    def get(self, file: str, etag: str = "") -> _Answer | None:
        """Return a file beside the address, "" is what is there itself; None if it still has this ETag."""
        headers = {"User-Agent": "forewarn", "Accept": "*/*", **({"If-None-Match": etag} if etag else {})}
        path, query = self._path(file), ""
        if self._login is not None:
            credentials = self._login.credentials(self._deadline)
            headers.update(credentials.headers, **{"x-ms-version": _API_VERSION})
            query = f"?{credentials.query}" if credentials.query else ""
        reply = self._connection.exchange("GET", path + query, headers, None, self._deadline)
        if reply.status == 304 and etag:
            return None
        if reply.status != 200:
            raise self._refusal(reply, path)
        etag = reply.headers.get("etag", "")
        return _Answer(reply.body, etag if _ETAG.fullmatch(etag) else "")

    def signed(self, file: str, signers: Signers, scratch: str | None, first: _Answer | None = None) -> _SignedAnswer:
        """Return a file with a valid signature. Raises InputError if it has none."""
        for attempt in range(1, _ATTEMPTS + 1):
            content = (first if attempt == 1 else None) or self.get(file)
            signature = self.get((file or self._address.path.rpartition("/")[2]) + SUFFIX)
            if content is None or signature is None:  # not without an ETag
                break
            try:
                signers.verify(content.content, signature.content, scratch)
            except InputError as error:
                if attempt == _ATTEMPTS:
                    raise InputError(f"{file or 'what is there'} is refused: {error.message}", error.hint) from error
            else:
                return _SignedAnswer(SignedPolicy(content.content, signature.content), content.etag)
        raise InputError(f"{file or 'what is there'} has no signature")

    def _path(self, file: str) -> str:
        own = self._address.path
        return own if not file else f"{own.rpartition('/')[0]}/{file}"

    def _refusal(self, reply: StoreReply, path: str) -> Fault:
        hint = ""
        if reply.status in (401, 403):
            hint = "The VM's identity needs the role Storage Blob Data Reader, or the SAS the permission r."
        text = f"{self._connection.where}{path} answered {reply.status}."
        return Fault(text, hint, kind=HTTP, status=reply.status)


def _reason(error: ForewarnError) -> str:
    return str(error).rstrip(".")[:_LONGEST_REASON]

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A web server for policies on loopback: files with ETags, in place of which it can do anything else."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Sequence

from forewarn.policy.signature import SUFFIX
from forewarn.policy.waves import Wave, encode
from forewarn.runner.state.accepted_policy import SignedPolicy
from tools.fixtures.signing import SigningKey
from tools.servers import scripted_imds, webhooks
from tools.servers.scripted_imds import Answer, AnsweringServer, raw, status

NAME = "policy.json"
_FOR_EVER = 86_400.0
_HEAD = b"HTTP/1.1 200 OK\r\n"
# What it does in place of an answer.
FAULTS: dict[str, Answer] = {
    "silent": Answer(delay=_FOR_EVER),
    "no body": raw(_HEAD + b"Content-Length: 900\r\n\r\n"),
    "slow": Answer((_HEAD + b"Content-Length: 900\r\n\r\n", *[b"x"] * 900), pause=0.5),
    "endless": Answer((_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"10000\r\n" + bytes(65536) + b"\r\n"] * 99)),
    "too large": status(200, b"", {"Content-Length": "999999999"}),
    "garbage": raw(b"\0\xff" * 500, end="close"),
    "garbage in chunks": raw(_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nx", end="close"),
    "closed": raw(b"", end="close"),
    "cut short": raw(_HEAD + b"Content-Length: 900\r\n\r\nx", end="close"),
    "too long": raw(_HEAD + b"Content-Length: 1\r\n\r\nxyz", end="close"),
    "redirect": status(302, b"", {"Location": "http://127.0.0.1:9/other.json"}),
    "no change": status(304),
    "empty": status(200, b""),
    **{str(code): status(code) for code in (204, 206, 401, 403, 404, 429, 500, 503)},
}


class PolicySite:
    """The files of a directory, as a web server has them. ``fault`` is one of ``FAULTS``, for files in ``faulty``."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.fault: str | None = None
        self.faulty = SUFFIX  # the end of their names; "" for all
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.before: Callable[[str], None] = lambda _name: None  # called before each answer

    def put(self, policy: SignedPolicy, name: str = NAME) -> None:
        """Publish a signed file."""
        self.files.update({name: policy.artifact, f"{name}{SUFFIX}": policy.signature})

    def put_waves(self, key: SigningKey, waves: Sequence[tuple[int, SignedPolicy, float, float | None]]) -> None:
        """Publish a signed manifest of waves: serial, policies, share and start of each."""
        listed = []
        for serial, policy, share, start in waves:
            self.put(policy, f"{serial}.json")
            sha256 = hashlib.sha256(policy.artifact).hexdigest()
            listed.append(Wave(serial, f"{serial}.json", sha256, share, start))
        self.put(key.signed(encode(listed)))

    def fail(self, fault: str | None, faulty: str = "") -> None:
        """Do something else from now on, for the files whose names end like this; None to behave again."""
        self.fault, self.faulty = fault, faulty

    def names(self) -> list[str]:
        """Return which files were asked for."""
        return [target.partition("?")[0].rpartition("/")[2] for target, _headers in self.requests]

    def answer(self, target: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body."""
        self.requests.append((target, headers))
        name = target.partition("?")[0].rpartition("/")[2]
        self.before(name)
        if name not in self.files:
            return 404, {}, b""
        etag = f'"{hashlib.sha256(self.files[name]).hexdigest()[:16]}"'
        if headers.get("if-none-match") == etag:
            return 304, {"ETag": etag}, b""
        return 200, {"ETag": etag}, self.files[name]


class PolicyServer(AnsweringServer):
    """Serves a site over HTTP, with its faults."""

    def __init__(self, site: PolicySite) -> None:
        super().__init__(self._choose)
        self._site = site
        self.url += f"/policies/{NAME}"

    def _choose(self, request: scripted_imds.Request) -> Answer:
        site = self._site
        if site.fault is not None and request.target.partition("?")[0].endswith(site.faulty):
            site.requests.append((request.target, request.headers))
            return FAULTS[site.fault]
        code, headers, body = site.answer(request.target, request.headers)
        return status(code, body, headers)


class PolicyTlsServer(webhooks.Webhook):
    """Serves a site over HTTPS, without faults."""

    def __init__(self, site: PolicySite, tls: ssl.SSLContext) -> None:
        super().__init__(tls=tls)
        self._site = site
        self.url = f"https://127.0.0.1:{self.port}/policies/{NAME}"

    def answer_to(self, request: webhooks.Request) -> webhooks.Answer:
        """Return what the site has."""
        return webhooks.Answer(*self._site.answer(request.target, request.headers))

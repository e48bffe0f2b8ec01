# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The child process of an http hook: one POST, tried again until its time is up, and one line about it.

With ``retry: never`` it is sent once: a request without an answer may have arrived.

It reads its settings as the first line of standard input (``hooks.command`` writes them) and sends what follows.
Exit code 0: the server answered 2xx. Of an answer only the status is ever shown: the rest may repeat the secret.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
import time
from collections.abc import Mapping
from typing import Any, BinaryIO, TextIO
from urllib.parse import SplitResult, quote, urlsplit

from ... import __version__
from ...errors import InputError

_ATTEMPT_SECONDS = 10.0  # an attempt that hangs leaves time for another
_LEAST_SECONDS = 0.2  # with less than this left there is no other attempt
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 8.0
_MOST_INTERIM = 100  # answers of 1xx that come before one
_MOST_CONTENT_BYTES = 64 * 1024
_CONTENT_SECONDS = 2.0
_SECRET = re.compile(rb"[\x21-\x7e]+")  # anything else could end the header


class AttemptError(Exception):
    """An attempt that failed, and why. ``lasting``: another would fail too. ``status`` is the answer's, if any."""

    def __init__(
        self, message: str, lasting: bool = False, after_seconds: float = 0.0, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.lasting = lasting
        self.after_seconds = after_seconds
        self.status = status


def main(source: BinaryIO | None = None, target: TextIO | None = None) -> int:
    """Send the request that standard input describes; return the exit code."""
    source = source or sys.stdin.buffer
    settings = json.loads(source.readline())
    body = source.read()
    tries, answer, failure = deliver(settings, body)
    again = "" if tries <= 1 else f" ({tries} tries)"
    (target or sys.stdout).write(f"{settings['shown']}: {failure or answer}{again}\n")
    return 0 if failure is None else 1


def deliver(settings: Mapping[str, Any], body: bytes) -> tuple[int, str, AttemptError | None]:
    """Return the number of attempts, the answer, and the last failure if no attempt succeeded."""
    # Some of the time is for starting up and for the report.
    whole = float(settings["timeout_seconds"])
    deadline = time.monotonic() + whole - min(1.0, 0.2 * whole)
    pause = _FIRST_PAUSE_SECONDS
    tries = 0
    try:
        request = Request(settings, body)
        while True:
            tries += 1
            try:
                return tries, request.send(min(_ATTEMPT_SECONDS, deadline - time.monotonic())), None
            except AttemptError as failure:
                wait = max(pause, failure.after_seconds)
                if failure.lasting or settings.get("once") or time.monotonic() + wait + _LEAST_SECONDS > deadline:
                    raise
            time.sleep(wait)  # in the hook's own process: nobody waits for it
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
    except AttemptError as failure:
        return tries, "", failure


class Request:
    """A POST, ready to be sent any number of times. Raises AttemptError if it never can be.

    ``content`` is the beginning of the body of the answer, if ``reads`` and that was 2xx.
    """

    def __init__(
        self, settings: Mapping[str, Any], body: bytes, content_type: str = "application/json", reads: bool = False
    ) -> None:
        self.content = b""
        self._reads = reads
        self._body = body
        self._url, self._host, self._port = _split(settings["url"], "the URL")
        self._headers = {"Content-Type": content_type, "User-Agent": f"forewarn/{__version__}", "Connection": "close"}
        if settings["bearer_file"] is not None:
            secret, field = _secret(settings["bearer_file"]), settings.get("secret_field")
            if field is None:
                self._headers["Authorization"] = f"Bearer {secret}"
            else:
                self._body = json.dumps({field: secret, **json.loads(body)}).encode("ascii")
        self._proxy: tuple[str, int] | None = None
        if settings["proxy"] is not None:
            proxy, host, port = _split(settings["proxy"], "the proxy")
            if proxy.scheme != "http":
                raise AttemptError("the proxy is not of the form http://HOST:PORT", lasting=True)
            self._proxy = (host, port)
        self._tls = _tls_context(settings["ca_file"]) if self._url.scheme == "https" else None

    def send(self, seconds: float) -> str:
        """Send it once, and return what was answered if that is 2xx. Raises AttemptError."""
        connection = self._connection(seconds)
        try:
            connection.request("POST", self._target(), self._body, self._headers)
            response = connection.getresponse()
            for _count in range(_MOST_INTERIM):  # http.client knows only 100: RFC 9110, 15.2
                if not 100 <= response.status < 200 or response.status == 101:
                    break
                response.headers = None  # type: ignore[assignment]  # so that begin() reads the next answer
                response.begin()
            if self._reads and 200 <= response.status < 300:
                self.content = _content(response)
        except ssl.SSLCertVerificationError as error:
            message = f"the certificate of {self._host} was not accepted: {error.verify_message}"
            raise AttemptError(message, lasting=True) from error
        except OSError as error:
            raise self._fault(error, seconds) from error
        except (http.client.HTTPException, ValueError) as error:
            raise AttemptError(f"the answer is not HTTP ({type(error).__name__})") from error
        finally:
            connection.close()
        return self._judge(response.status, response.headers.get("Retry-After"))

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        host, port = self._proxy or (self._host, self._port)
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=seconds)
        connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=self._tls)
        if self._proxy is not None:
            headers = {"Host": f"{self._host}:{self._port}", "User-Agent": self._headers["User-Agent"]}
            connection.set_tunnel(self._host, self._port, headers)
        return connection

    def _target(self) -> str:
        url = self._url
        path = quote(url.path or "/", safe="/%!$&'()*+,;=:@~")
        if url.query:
            path += "?" + quote(url.query, safe="/%!$&'()*+,;=:@~?")
        return f"http://{url.netloc}{path}" if self._proxy is not None and self._tls is None else path

    def _judge(self, status: int, retry_after: str | None, who: str = "") -> str:
        if 200 <= status < 300:
            return f"answered {status}"
        if 300 <= status < 400:
            raise AttemptError(
                f"{who}answered {status}, a redirect, and none is followed: name its target", lasting=True
            )
        after = float(retry_after) if retry_after is not None and re.fullmatch("[0-9]+", retry_after) else 0.0
        lasting = status != 429 and status < 500
        raise AttemptError(f"{who}answered {status}", lasting, after, status)

    def _fault(self, error: OSError, seconds: float) -> AttemptError:
        where = (
            f"{self._host} port {self._port}" if self._proxy is None else "the proxy {} port {}".format(*self._proxy)
        )
        tunnel = re.match(r"Tunnel connection failed: (\d{3})", str(error))
        if tunnel:
            try:
                self._judge(int(tunnel.group(1)), None, f"{where} ")
            except AttemptError as failure:
                return failure
        if isinstance(error, TimeoutError) or "timed out" in str(error):  # Python 3.9 has two kinds
            return AttemptError(f"{where} took longer than {seconds:.1f} s")
        return AttemptError(f"{where}: {error.strerror or error}")


def _content(response: http.client.HTTPResponse) -> bytes:
    """Return the beginning of a body. The request was accepted, even if the body never ends."""
    content = b""
    deadline = time.monotonic() + _CONTENT_SECONDS
    try:
        while len(content) < _MOST_CONTENT_BYTES and time.monotonic() < deadline:
            part = response.read1(_MOST_CONTENT_BYTES)
            if not part:
                break
            content += part
    except (OSError, http.client.HTTPException, ValueError):
        pass
    return content


def _split(url: str, what: str) -> tuple[SplitResult, str, int]:
    """Return the parts of a URL, its host and its port. Raises AttemptError."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode("ascii") if parts.hostname else ""
        port = parts.port
    except ValueError as error:
        raise AttemptError(f"{what} cannot be read", lasting=True) from error
    if parts.scheme not in ("http", "https") or not host:
        raise AttemptError(f"{what} is neither http://HOST… nor https://HOST…", lasting=True)
    if "@" in parts.netloc:
        raise AttemptError(f"{what} holds a user name or password: put a secret into 'bearer'", lasting=True)
    return parts, host, port or (443 if parts.scheme == "https" else 80)


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise AttemptError(f"{ca_file} holds no certificate that can be read: {error}", lasting=True) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # Python 3.9 would take less
    return context


def _secret(path: str) -> str:
    """Return the secret in a file. Raises AttemptError, whose text never has any of it."""
    from ..state.secret_file import read_secret  # here: most requests have no secret

    try:
        content = read_secret(path)
    except InputError as error:
        raise AttemptError(str(error), lasting=True) from error
    if not _SECRET.fullmatch(content):
        raise AttemptError(f"the secret {path} is not one line of printable ASCII", lasting=True)
    return content.decode("ascii")

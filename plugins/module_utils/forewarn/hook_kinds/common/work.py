# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the functions of a kind get: the options, the event, the time, programs, HTTP, and a memory."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, NamedTuple
from urllib.parse import urlsplit

from ...atomic_file import replace_file
from ...errors import InputError
from ...system.console import decode
from ...texts import duration_text
from .masking import Masker

_REPORT_SECONDS = 0.5  # at the end of its time, in which a hook reports what it waited for
_LEAST_SECONDS = 0.1
_QUOTED = 300  # characters of what a program wrote
_ANSWER_BYTES = 4 * 1024 * 1024


class HookFailedError(Exception):
    """The effect is not there. The text says why, and what to do."""


class NotReadyError(HookFailedError):
    """The software does not answer yet. ``Work.wait`` reports that, and continues to wait."""


class ProgramResult(NamedTuple):
    """The result of a program: its exit code, its standard output and its standard error."""

    code: int
    output: str
    errors: str

    @property
    def message(self) -> str:
        """The beginning of its output on one line, for a message."""
        return " ".join((self.errors or self.output).split())[:_QUOTED] or f"exit code {self.code}"


class HttpReply(NamedTuple):
    """An HTTP response. ``body`` is the value of the JSON, or the text if it is not JSON."""

    status: int
    body: Any


class Work:
    """One run of a hook. ``options`` include the defaults; ``event`` has the service's field names.

    ``seconds`` is the time for the run. ``outcome`` is finished, cancelled or unseen once the event has left the list,
    None before. ``probe_address`` is HOST:PORT of the runner's ``/readyz``, None if it has none. ``memory`` has the
    values that earlier runs of the hook remembered, also before a reboot; ``notes`` are of this run alone.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        event: Mapping[str, Any],
        seconds: float,
        memory_file: str | None = None,
        probe_address: str | None = None,
        outcome: str | None = None,
        say: Callable[[str], object] | None = None,
    ) -> None:
        self.options = options
        self.event = event
        self.probe_address = probe_address
        self.outcome = outcome
        self._began = time.monotonic()
        self._deadline = self._began + max(_LEAST_SECONDS, seconds - _REPORT_SECONDS)
        self._memory_file = None if memory_file is None else Path(memory_file)
        self._say = say or _to_standard_output
        self.memory: Mapping[str, Any] = self._recall()
        self.notes: dict[str, Any] = {}
        self._secrets: set[bytes] = set()

    # Time

    @property
    def seconds_left(self) -> float:
        """The seconds that are left, 0 or more."""
        return max(0.0, self._deadline - time.monotonic())

    @property
    def seconds_passed(self) -> float:
        """The seconds since the run began."""
        return time.monotonic() - self._began

    def wait(self, missing: Callable[[], str], every: float = 0.5) -> None:
        """Call ``missing`` every ``every`` seconds until it returns an empty text instead of "3 sessions are open".

        Raises HookFailedError with the last text when the time is over. A NotReadyError of ``missing`` counts as such a
        text: software that starts or fails over needs time.
        """
        said = ""
        while True:
            try:
                text = missing()
            except NotReadyError as error:
                text = str(error)
            except HookFailedError as error:
                if said and not self.seconds_left:  # no answer within the time that was left
                    raise self._too_late(said) from error
                raise
            if not text:
                return
            if text != said:
                self.say(f"waiting: {text}")
                said = text
            if self.seconds_left <= every:
                raise self._too_late(text)
            time.sleep(every)  # in the hook's own process: nobody waits for it

    def _too_late(self, missing: str) -> HookFailedError:
        return HookFailedError(f"{missing}, after {duration_text(self.seconds_passed)}")

    # Words

    def say(self, text: str) -> None:
        """Write a line to the hook's output, with secrets masked."""
        self._say(self.mask(text))

    def hide_secret(self, secret: bytes) -> None:
        """Mask a secret in all texts of this hook from now on."""
        self._secrets.add(secret)

    def mask(self, text: str) -> str:
        """Return a text with secrets masked."""
        return Masker(self._secrets).mask(text) if self._secrets else text

    # Programs and requests

    def run(
        self, *words: str, check: bool = True, stdin: str = "", environment: Mapping[str, str] | None = None
    ) -> ProgramResult:
        """Run a program in the time that is left.

        Raises HookFailedError; with ``check`` also for an exit code but 0.
        """
        name = Path(words[0]).name
        try:
            done = subprocess.run(  # noqa: S603 - what the policy names, or a program of the kind; no shell
                words,
                input=stdin.encode("utf-8"),
                capture_output=True,
                timeout=max(_LEAST_SECONDS, self.seconds_left),
                env={**os.environ, **(environment or {})},
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise HookFailedError(f"{name} has not ended in time") from error
        except OSError as error:
            raise HookFailedError(f"{words[0]} cannot be run: {error.strerror}") from error
        result = ProgramResult(done.returncode, decode(done.stdout), decode(done.stderr))
        if check and result.code != 0:
            raise HookFailedError(f"{name} failed: {result.message}")
        return result

    def http(
        self,
        method: str,
        url: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = 5.0,
        ca_file: str | None = None,
    ) -> HttpReply:
        """Send a request, with ``body`` as JSON; return the response, of any status.

        Raises HookFailedError without a response. ``seconds`` is the timeout. ``ca_file`` (PEM) replaces the system's
        certificate authorities.
        """
        parts = urlsplit(url)
        timeout = max(_LEAST_SECONDS, min(seconds, self.seconds_left))
        if parts.scheme == "https":
            context = _tls(ca_file)
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.hostname or "", parts.port, timeout=timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
        sent = {"Connection": "close", **({"Content-Type": "application/json"} if body is not None else {})}
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            content = None if body is None else json.dumps(body).encode("utf-8")
            connection.request(method, target, content, {**sent, **(headers or {})})
            response = connection.getresponse()
            text = response.read(_ANSWER_BYTES).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise HookFailedError(f"{parts.hostname} port {connection.port}: {why}") from error
        finally:
            connection.close()
        try:
            return HttpReply(response.status, json.loads(text))
        except ValueError:
            return HttpReply(response.status, text.strip())

    # Memory

    def remember(self, **values: Any) -> None:
        """Add values to the memory, for the recovery.

        Values of the same name from earlier runs stay. Raises HookFailedError.
        """
        if values.keys() <= self.memory.keys():
            return
        self.memory = {**values, **self.memory}
        if self._memory_file is None:
            return
        try:
            self._memory_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._memory_file, json.dumps(dict(self.memory)).encode("ascii"), 0o600)
        except (OSError, InputError) as error:
            raise HookFailedError(f"{self._memory_file} cannot be written: {error}") from error

    def forget(self) -> None:
        """Clear the memory, once everything is recovered."""
        self.memory = {}
        if self._memory_file is not None and self._memory_file.exists():
            self._memory_file.unlink()

    def _recall(self) -> dict[str, Any]:
        if self._memory_file is None or not self._memory_file.exists():
            return {}
        try:
            found = json.loads(self._memory_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # cut off by a crash: as if there were no memory
            return {}
        return found if isinstance(found, dict) else {}


def _tls(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # also if the file has no certificate
        raise HookFailedError(f"{ca_file} cannot be used: {error.strerror or error}") from error


def _to_standard_output(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

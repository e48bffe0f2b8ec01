# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the code of a kind works with: its options, the event, the time it has, programs and HTTP."""

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

from ..atomic_file import replace_file
from ..errors import InputError
from ..texts import duration_text
from .masking import Masker

_REPORT_SECONDS = 0.5  # of its time a hook keeps for saying what it waited for
_LEAST_SECONDS = 0.1
_QUOTED = 300  # characters of what a program wrote
_ANSWER_BYTES = 4 * 1024 * 1024


class HookFailedError(Exception):
    """The effect is not there; the text says why, and what a person can do."""


class NotYetError(HookFailedError):
    """The software does not answer, or not yet: ``Work.wait`` says so, and goes on waiting."""


class Done(NamedTuple):
    """A program that has ended: its exit code, and what it wrote to standard output and to standard error."""

    code: int
    output: str
    errors: str

    @property
    def said(self) -> str:
        """What it wrote, on one line, for a message."""
        return " ".join((self.errors or self.output).split())[:_QUOTED] or f"exit code {self.code}"


class Reply(NamedTuple):
    """An answer by HTTP. ``body`` is parsed JSON, or the text where it is not JSON."""

    status: int
    body: Any


class Work:
    """One run of a hook. ``options`` are complete; ``event`` has the service's own field names.

    ``outcome`` is finished, cancelled or unseen once the event has left the list. ``probe_address`` is where the runner
    itself answers ``/readyz``, None where it does not. ``memory`` is what an earlier run of the same hook remembered:
    empty for the first. ``notes`` are of this run alone.
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
        """Call ``missing`` until it returns an empty text. Until then it says what is missing: "3 sessions are open".

        Raises HookFailedError, with the last of these texts, when the time is over. A NotYetError of ``missing`` is
        such a text too: software that is being started, or fails over, is waited for.
        """
        said = ""
        while True:
            try:
                text = missing()
            except NotYetError as error:
                text = str(error)
            except HookFailedError as error:
                if said and not self.seconds_left:  # what was asked did not answer in the rest of the time
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
        """Write a line for people, into the hook's output, without what is hidden."""
        self._say(self.masked(text))

    def hide(self, secret: bytes) -> None:
        """Let no text of this hook have a secret in it."""
        self._secrets.add(secret)

    def masked(self, text: str) -> str:
        """Return a text without what is hidden."""
        return Masker(self._secrets).masked(text) if self._secrets else text

    # Programs and requests

    def run(
        self, *words: str, check: bool = True, stdin: str = "", environment: Mapping[str, str] | None = None
    ) -> Done:
        """Run a program in the time that is left. Raises HookFailedError; with ``check`` also if it ends with not 0."""
        name = words[0].rpartition("/")[2]
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
        output, errors = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        result = Done(done.returncode, output, errors)
        if check and result.code != 0:
            raise HookFailedError(f"{name} failed: {result.said}")
        return result

    def http(
        self,
        method: str,
        url: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = 5.0,
        ca_file: str | None = None,
    ) -> Reply:
        """Make one request, with ``body`` as JSON. Raises HookFailedError if there is no answer, of any status.

        ``ca_file`` (PEM) is trusted instead of the system's authorities.
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
            return Reply(response.status, json.loads(text))
        except ValueError:
            return Reply(response.status, text.strip())

    # Memory

    def remember(self, **values: Any) -> None:
        """Keep how things were before the first run, for the recovery. Values that were kept earlier stay."""
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
        """Forget what was remembered, once it is undone."""
        self.memory = {}
        if self._memory_file is not None and self._memory_file.exists():
            self._memory_file.unlink()

    def _recall(self) -> dict[str, Any]:
        if self._memory_file is None or not self._memory_file.exists():
            return {}
        try:
            found = json.loads(self._memory_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # cut off by a crash: as if nothing had been kept
            return {}
        return found if isinstance(found, dict) else {}


def _tls(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # also of what is no certificate
        raise HookFailedError(f"{ca_file} cannot be used: {error.strerror or error}") from error


def _to_standard_output(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

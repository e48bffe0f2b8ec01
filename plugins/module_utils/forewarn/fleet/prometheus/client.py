# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of Prometheus' HTTP API, or of anything that has the same, such as Thanos, Mimir and VictoriaMetrics."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ...errors import InputError, ServiceError
from ...policy.structure import exposes_secret
from ...texts import redacted_url

try:
    import requests
except ImportError:  # a failed import must not break the modules beside this one
    HAVE_REQUESTS = False
else:
    HAVE_REQUESTS = True

_TIMEOUTS = (5.0, 60.0)  # seconds to connect, and between two pieces of an answer
_LONGEST = 300  # characters of a message from outside


class Sample(NamedTuple):
    """The value of a series at the time of the query. ``labels`` do not include ``__name__``."""

    labels: Mapping[str, str]
    value: float


class PrometheusClient:
    """Sends instant queries to ``url``, Prometheus' base address.

    ``bearer_file`` has a token in its first line, ``ca_file`` the certificates to trust instead of the system's.
    ``warnings`` collects what Prometheus warns of. Raises InputError for a setting that cannot be used.
    """

    def __init__(self, url: str, bearer_file: str | None = None, ca_file: str | None = None) -> None:
        if not HAVE_REQUESTS:
            raise InputError(
                f"asking Prometheus needs requests, not installed for {sys.executable}",
                f"install with: {sys.executable} -m pip install requests",
            )
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
            usable = usable and (parts.port is None or parts.port > 0)
        except ValueError:
            usable = False
        if not usable:
            raise InputError(f"--url is {redacted_url(url)!r}.", "Write it like http://prometheus.example.com:9090.")
        self.url = url.rstrip("/")
        self.name = redacted_url(self.url)
        self.warnings: list[str] = []
        self._session = requests.Session()
        self._verify: str | bool = True
        if ca_file is not None:
            _read(ca_file)  # a missing file gets a clear message
            self._verify = ca_file
        if bearer_file is not None:
            if exposes_secret(url):
                raise InputError("--url would send the token without encryption.", "Use https.")
            self._session.auth = _Bearer(bearer_file)

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        """Return the finite samples of an instant query, now or at a time in seconds since 1970.

        Raises InputError for a query that Prometheus refuses, and ServiceError if it does not answer as Prometheus.
        """
        parameters = {"query": expression} if at is None else {"query": expression, "time": f"{at:.3f}"}
        answer = self._get("/api/v1/query", parameters)
        self.warnings += [text for text in map(str, answer.get("warnings") or ()) if text not in self.warnings]
        try:
            data = answer["data"]
            if data["resultType"] == "scalar":
                return [Sample({}, float(data["result"][1]))]
            return [sample for sample in map(_sample, data["result"]) if math.isfinite(sample.value)]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise self._not_prometheus("its answer has no samples") from error

    def now(self) -> float:
        """Return Prometheus' own time, in seconds since 1970. Raises as ``query`` does."""
        found = self.query("time()")
        if not found:
            raise self._not_prometheus("it does not know the time")
        return found[0].value

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def __enter__(self) -> PrometheusClient:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self.close()

    def _get(self, path: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        try:
            response = self._session.get(
                self.url + path, params=parameters, timeout=_TIMEOUTS, verify=self._verify, allow_redirects=False
            )
            content = response.content
        except requests.exceptions.SSLError as error:
            raise ServiceError(
                f"Prometheus at {self.name} cannot be trusted: {_cause(error)}.",
                "Name the file of its certificate authority: --ca-file.",
            ) from error
        except requests.Timeout as error:
            raise ServiceError(f"Prometheus at {self.name} does not answer in time.") from error
        except OSError as error:  # requests' own are, too; as is a CA file without certificates
            hint = "Is --url right, and is Prometheus running?"
            raise ServiceError(f"Prometheus at {self.name} does not answer: {_cause(error)}.", hint) from error
        return self._checked(response.status_code, response.headers.get("Location", ""), content)

    def _checked(self, status: int, location: str, content: bytes) -> Mapping[str, Any]:
        if status in (401, 403):
            hint = "It wants another token: --bearer-file." if self._session.auth else "Name a token: --bearer-file."
            raise ServiceError(f"{self.name} refuses the query with HTTP {status}.", hint)
        if 300 <= status < 400:
            raise self._not_prometheus(f"it answers with HTTP {status} and points to {redacted_url(location)!r}")
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
            raise self._not_prometheus(f"it answers with HTTP {status}, and not as Prometheus does")
        if answer["status"] == "error":
            said = str(answer.get("error") or "no reason given")[:_LONGEST]
            if answer.get("errorType") == "bad_data":
                raise InputError(f"Prometheus refuses the query: {said}.", "Is --match a list of label matchers?")
            raise ServiceError(f"Prometheus at {self.name} cannot answer: {said}.")
        return answer

    def _not_prometheus(self, why: str) -> ServiceError:
        return ServiceError(
            f"{self.name} is not Prometheus: {why}.",
            "--url is the address before /api/v1/query, with the path under which a proxy has it.",
        )


class _Bearer:
    """Adds the token. As an ``auth``, it is not replaced by what ~/.netrc has for the host."""

    def __init__(self, file: str) -> None:
        words = _read(file).split()
        if len(words) != 1 or not words[0].isascii() or not words[0].isprintable():
            raise InputError(f"{file} does not have one token.", "Write the token, and nothing else, into the file.")
        self._token = words[0]

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"{file}: {reason}.") from error


def _sample(item: Mapping[str, Any]) -> Sample:
    labels = {str(name): str(value) for name, value in item["metric"].items() if name != "__name__"}
    return Sample(labels, float(item["value"][1]))


def _cause(error: BaseException) -> str:
    """Return the innermost reason of an error of requests, in one line."""
    found: BaseException = error
    seen = [found]
    while (inner := _inner(found)) is not None and inner not in seen:
        found = inner
        seen.append(found)
    text = (found.strerror if isinstance(found, OSError) else None) or str(found)
    return " ".join(text.split())[:_LONGEST].rstrip(".") or type(found).__name__


def _inner(error: BaseException) -> BaseException | None:
    reason = getattr(error, "reason", None)
    candidates = (reason, *error.args, error.__cause__, error.__context__)
    return next((one for one in candidates if isinstance(one, BaseException)), None)

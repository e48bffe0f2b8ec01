# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an endpoint may look like, and which one applies."""

from __future__ import annotations

import pytest
from forewarn.errors import InputError
from forewarn.imds import endpoint
from forewarn.imds.endpoint import DEFAULT_ENDPOINT, Endpoint, parse_endpoint, resolve_endpoint
from forewarn.system import discovery
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "host", "port", "prefix", "url"),
    [
        ("http://169.254.169.254", "169.254.169.254", 80, "", "http://169.254.169.254"),
        ("http://127.0.0.1:8000/", "127.0.0.1", 8000, "", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/vm/web_0//", "127.0.0.1", 8000, "/vm/web_0", "http://127.0.0.1:8000/vm/web_0"),
        ("http://localhost:80", "localhost", 80, "", "http://localhost"),
        ("http://[::1]:8000/x", "::1", 8000, "/x", "http://[::1]:8000/x"),
    ],
)
def test_what_an_endpoint_may_be(text: str, host: str, port: int, prefix: str, url: str) -> None:
    parsed = parse_endpoint(text)
    assert parsed == Endpoint(host, port, prefix)
    assert parsed.url == url
    assert parse_endpoint(parsed.url) == parsed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("https://169.254.169.254", "http only"),
        ("HTTPS://x", "http only"),
        ("169.254.169.254", "form"),
        ("ftp://x", "form"),
        ("", "form"),
        ("http://", "form"),
        ("http:///path", "form"),
        ("http://x:", "form"),
        ("http://x:0", "port"),
        ("http://x:65536", "port"),
        ("http://x:99999999", "form"),
        ("http://u:secret@x", "user name"),
        ("http://x?api-version=2020-07-01", "api-version"),
        ("http://x#y", "#"),
        ("http://x/a b", "form"),
        ("http://x\r\nX: y", "form"),
        ("http://x\n", "form"),
        ("http://[::1", "form"),
        ("http://a..b", "host"),
        ("http://" + "a" * 64, "host"),
        ("http://x/vm/a/metadata/scheduledevents", "Write http://x/vm/a instead"),
    ],
)
def test_what_an_endpoint_may_not_be(text: str, reason: str) -> None:
    with pytest.raises(InputError) as info:
        parse_endpoint(text)
    assert reason in str(info.value)
    assert "secret" not in str(info.value)


@given(st.one_of(st.text(), st.text().map(lambda text: "http://" + text)))
def test_any_text_is_an_endpoint_or_an_error(text: str) -> None:
    try:
        parsed = parse_endpoint(text)
    except InputError:
        return
    assert parse_endpoint(parsed.url) == parsed
    assert parsed.url.isascii()


def test_the_option_beats_the_environment_beats_the_default() -> None:
    environ = {"FOREWARN_ENDPOINT": "http://127.0.0.1:2/"}
    assert resolve_endpoint("http://127.0.0.1:1/", environ) == "http://127.0.0.1:1"
    assert resolve_endpoint(None, environ) == "http://127.0.0.1:2"
    assert resolve_endpoint(None, {"FOREWARN_ENDPOINT": ""}) == DEFAULT_ENDPOINT
    assert resolve_endpoint(None, {}) == DEFAULT_ENDPOINT == "http://169.254.169.254"


def test_error_names_the_source_of_the_endpoint() -> None:
    with pytest.raises(InputError, match=r"^--endpoint: "):
        resolve_endpoint("", {"FOREWARN_ENDPOINT": "http://127.0.0.1:2/"})
    with pytest.raises(InputError, match=r"^FOREWARN_ENDPOINT: "):
        resolve_endpoint(None, {"FOREWARN_ENDPOINT": "x"})


@pytest.mark.parametrize(("option", "environ"), [("auto", {}), (None, {"FOREWARN_ENDPOINT": "auto"})])
def test_se04_auto_asks_the_leases(
    option: str | None, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ["http://168.63.129.16", None]
    monkeypatch.setattr(discovery, "discover_endpoint", lambda: found.pop(0))
    assert resolve_endpoint(option, environ) == "http://168.63.129.16"
    assert resolve_endpoint(option, environ) == "http://169.254.169.254", "no lease calls for another"
    assert endpoint.AUTO == "auto"

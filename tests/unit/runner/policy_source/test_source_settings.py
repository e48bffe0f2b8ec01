# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The setting ``policy_source``: an address or an object, or a refusal that shows no secret."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.runner.groups.settings import SecretSource
from forewarn.runner.policy_source.settings import SourceSettings, source_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples

URL = "https://policies.example.com/web/policy.json"


def test_address_or_object() -> None:
    assert source_settings(URL) == source_settings({"url": URL}) == SourceSettings(URL)
    everything = {"url": URL + "/", "interval": 10, "sas": {"file": "/sas"}, "ca_file": "/ca.pem"}
    assert source_settings({**everything, "proxy": "http://proxy:3128"}) == SourceSettings(
        URL, 10.0, None, SecretSource(None, "/sas"), "/ca.pem", "http://proxy:3128"
    )
    assert source_settings({"url": URL, "identity": True}).identity == ""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "no URL that can be used"),
        ("policies.example.com/policy.json", "no URL that can be used"),
        ("http://policies.example.com/policy.json", "carries secrets in the clear"),
        ("https://policies.example.com", "names a server and no file"),
        (f"{URL}?sig=s3cret", "has a login in it"),
        ("https://user:s3cret@policies.example.com/policy.json", "has a login in it"),
        ("https://169.254.169.254/policy.json", "link-local address"),
        ("https://[fe80::1]/policy.json", "link-local address"),
        ("https://[FE80::1]/policy.json", "link-local address"),
        ({}, "has no url"),
        ({"url": 5}, "is not a text"),
        ({"url": URL, "urls": []}, "has no setting 'urls'"),
        ({"url": URL, "interval": 9.9}, "from 10 to 86400"),
        ({"url": URL, "interval": True}, "from 10 to 86400"),
        ({"url": URL, "interval": "60"}, "from 10 to 86400"),
        ({"url": URL, "interval": float("nan")}, "from 10 to 86400"),
        ({"url": URL, "interval": 10**400}, "from 10 to 86400"),
        ({"url": URL, "identity": True, "sas": {"file": "/sas"}}, "both identity and sas"),
        ({"url": URL, "identity": False}, "is neither true nor the client id"),
        ({"url": URL, "sas": "s3cret"}, "exactly one of credential and file"),
        ({"url": URL, "sas": {"file": "sas"}}, "is not an absolute path"),
        ({"url": URL, "ca_file": "ca.pem"}, "is not an absolute path"),
        ({"url": URL, "proxy": "https://proxy:3128"}, "Write it like http://proxy"),
        ({"url": URL, "proxy": "http://proxy:3128/x"}, "Write it like http://proxy"),
        ({"url": URL, "proxy": "http://user:s3cret@proxy:3128"}, "no URL that can be used"),
    ],
)
def test_setting_that_cannot_be_meant_is_refused(given: Any, why: str) -> None:
    with pytest.raises(InputError) as caught:
        source_settings(given)
    assert why in str(caught.value)
    assert "s3cret" not in str(caught.value)


_values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)
_names = st.sampled_from(["url", "interval", "identity", "sas", "ca_file", "proxy", "x"])


@settings(max_examples=examples(200))
@given(value=st.text() | st.dictionaries(_names, _values | st.dictionaries(st.text(), _values, max_size=2)))
def test_any_setting_is_read_or_refused(value: Any) -> None:
    with suppress(InputError):
        source_settings(value)
    with suppress(InputError):
        source_settings({"url": URL, **value} if isinstance(value, dict) else value)

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Option 245 as Windows keeps it in the registry: any bytes are a lease or none."""

from __future__ import annotations

import struct
import sys
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from forewarn.system.common.dhcp_lease import Lease
from forewarn.system.windows.discovery import discover_endpoint, parse
from hypothesis import given
from hypothesis import strategies as st

NOW = 1_767_000_000.0
HOST = bytes((168, 63, 129, 16))
TO_SERVICE = bytes((32, 169, 254, 169, 254, 10, 0, 0, 1))
ELSEWHERE = bytes((24, 10, 1, 2, 10, 0, 0, 1))


def option(code: int, data: bytes, expiry: float = NOW + 3600, vendors_own: int = 0) -> bytes:
    return struct.pack("<5L", code, 0, len(data), vendors_own, int(expiry)) + data + bytes(-len(data) % 4)


def test_address_and_route_are_read() -> None:
    before = option(6, bytes((168, 63, 129, 16))) + option(15, b"x.internal.cloudapp.net\0")
    assert parse(before + option(245, HOST), NOW) == Lease("168.63.129.16", False)
    assert parse(before + option(245, HOST) + option(121, ELSEWHERE), NOW) == Lease("168.63.129.16", False)
    for code in (121, 249):
        assert parse(option(code, ELSEWHERE + TO_SERVICE) + option(245, HOST), NOW) == Lease("168.63.129.16", True)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        option(6, HOST),
        option(245, HOST, expiry=NOW - 1),
        option(245, HOST, vendors_own=1),
        option(245, b""),
        option(245, HOST)[:-1],
        option(6, HOST)[:-1] + option(245, HOST),
        None,
        7,
    ],
)
def test_what_is_no_valid_option_counts_for_nothing(content: object) -> None:
    assert parse(content, NOW) is None


@pytest.mark.parametrize("data", [HOST + b"\0", HOST[:3], bytes(4), bytes((224, 0, 0, 1)), b"\xff" * 4])
def test_unusable_address_is_none(data: bytes) -> None:
    assert parse(option(245, data), NOW) == Lease(None, False)


options = st.lists(
    st.tuples(st.sampled_from([1, 3, 6, 121, 245, 249, 255]), st.binary(max_size=12), st.sampled_from([-1.0, 1.0])),
    max_size=6,
)


@given(options, st.integers(0, 3))
def test_what_comes_last_counts(drawn: list[tuple[int, bytes, float]], cut: int) -> None:
    content = b"".join(option(code, data, NOW + 100 * sign) for code, data, sign in drawn)
    valid = {code: data for code, data, sign in drawn if data and sign > 0}
    found = parse(content, NOW)
    assert (found is None) == (245 not in valid)
    if found is not None and len(valid[245]) == 4 and 0 < valid[245][0] < 224:
        assert found.address == ".".join(map(str, valid[245]))
    parse(content[: len(content) - cut], NOW)  # raises nothing


@given(st.binary(max_size=200))
def test_garbage_raises_nothing(content: bytes) -> None:
    parse(content, NOW)


INTERFACES = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"


def interface(host: bytes, obtained: int = 1, dhcp: int = 1) -> dict[str, object]:
    """Return what the registry has of an interface."""
    options = option(245, host, time.time() + 3600)
    return {"DhcpInterfaceOptions": options, "LeaseObtainedTime": obtained, "EnableDHCP": dhcp}


def discovered(monkeypatch: pytest.MonkeyPatch, *interfaces: dict[str, object]) -> str | None:
    """Return the endpoint on a machine with these interfaces."""

    def open_key(key: object, name: object) -> Any:
        assert (key, name) == ("HKLM", INTERFACES) or key == "interfaces"
        return nullcontext("interfaces" if key == "HKLM" else name)

    def value(key: dict[str, object], name: str) -> tuple[object, int]:
        if name not in key:
            raise FileNotFoundError(name)
        return key[name], 3

    def enumerate_keys(_key: object, number: int) -> dict[str, object]:
        if number >= len(interfaces):
            raise OSError(259, "No more data is available")
        return interfaces[number]

    registry = SimpleNamespace(HKEY_LOCAL_MACHINE="HKLM", OpenKey=open_key, QueryValueEx=value, EnumKey=enumerate_keys)
    monkeypatch.setitem(sys.modules, "winreg", registry)
    return discover_endpoint()


def test_last_lease_of_all_interfaces_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    other = bytes((10, 0, 0, 9))
    assert discovered(monkeypatch) is None
    assert discovered(monkeypatch, {}, interface(HOST)) == "http://168.63.129.16"
    assert discovered(monkeypatch, interface(HOST, 2), {}, interface(other, 1)) == "http://168.63.129.16"
    assert discovered(monkeypatch, interface(HOST, 1), interface(other, 2)) == "http://10.0.0.9"


def test_lease_of_a_static_interface_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    assert discovered(monkeypatch, interface(HOST, dhcp=0)) is None

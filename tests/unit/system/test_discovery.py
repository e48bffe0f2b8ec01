# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SE-04: option 245 in the leases of dhclient, systemd-networkd and cloud-init."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.system.common.dhcp_lease import Lease
from forewarn.system.posix.discovery import (
    discover_endpoint,
    parse_cloud_init,
    parse_dhclient,
    parse_networkd,
)
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
HOST = "168.63.129.16"

CLASSIC = """\
lease {
  interface "eth0";
  fixed-address 100.72.34.108;
  server-name "RD000D3A000000";
  option subnet-mask 255.255.254.0;
  option dhcp-lease-time 4294967295;
  option routers 100.72.34.1;
  option unknown-245 %s;
  option domain-name "a;b}c{ \\" lease {";
  renew 2 2154/01/01 08:18:55;
  rebind 2 2154/01/01 08:18:55;
  expire %s;
}
"""
NEVER = "never"
PAST = "5 2026/01/02 03:04:05"
FUTURE = "5 2026/01/02 03:04:06"

NETWORKD = """\
# This is private data. Do not parse.
ADDRESS=10.0.0.4
NETMASK=255.255.255.0
ROUTER=10.0.0.1
SERVER_ADDRESS=168.63.129.16
LIFETIME=4294967295
ROUTES=%s
OPTION_245=a83f8110
"""


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("a8:3f:81:10", HOST),
        ("A8:3F:81:10", HOST),
        ("a83f8110", HOST),
        ("5:4:3:2", "5.4.3.2"),
        ("64:48:3a:6c", "100.72.58.108"),
        ('"dH:l"', "100.72.58.108"),
        ("dH:l", "100.72.58.108"),
        ('"dH\\"l"', "100.72.34.108"),
        ('"d\\\\;l"', "100.92.59.108"),
        ('"bL6 "', "98.76.54.32"),
        ('"\\144H{l"', "100.72.123.108"),
        ("a8:3f:81", None),
        ("a8:3f:81:10:11", None),
        ("1a8:3f:81:10", None),
        ("0:0:0:0", None),
        ("ff:ff:ff:ff", None),
        ("e0:0:0:1", None),
        ('""', None),
        ("zz:3f:81:10", None),
    ],
)
def test_dhclient_address_is_read_in_every_spelling(written: str, address: str | None) -> None:
    lease = parse_dhclient(CLASSIC % (written, NEVER), NOW)
    assert (lease and lease.address) == address


@pytest.mark.parametrize(
    ("expiry", "valid"),
    [
        (NEVER, True),
        (FUTURE, True),
        (PAST, False),
        ("2 2154/01/01 08:18:55", True),
        ("epoch 4102444800", True),
        ("epoch 1; # Thu Jan 01 00:00:01 1970", False),
        ("epoch nan", False),
        ("tomorrow", False),
        ("5 2026/13/45 99:00:00", False),
        ("", False),
    ],
)
def test_an_expired_dhclient_lease_does_not_count(expiry: str, valid: bool) -> None:
    assert (parse_dhclient(CLASSIC % ("a8:3f:81:10", expiry), NOW) is not None) is valid


def test_of_several_leases_the_last_valid_one_counts() -> None:
    text = (
        CLASSIC % ("1:1:1:1", FUTURE)
        + CLASSIC % ("2:2:2:2", FUTURE)
        + CLASSIC % ("3:3:3:3", PAST)
        + CLASSIC % ("4:4:4", FUTURE)
    )
    assert parse_dhclient(text, NOW) == Lease("2.2.2.2")


def test_truncated_lease_does_not_count() -> None:
    whole = CLASSIC % ("1:1:1:1", FUTURE)
    assert parse_dhclient(whole + (CLASSIC % ("2:2:2:2", FUTURE))[:-3], NOW) == Lease("1.1.1.1")
    assert parse_dhclient((CLASSIC % ("2:2:2:2", FUTURE))[:-3] + whole, NOW) == Lease("1.1.1.1")


@pytest.mark.parametrize(
    ("option", "routed"),
    [
        ("rfc3442-classless-static-routes 0,10,0,0,1,32,168,63,129,16,10,0,0,1,32,169,254,169,254,10,0,0,1", True),
        ("rfc3442-classless-static-routes 0 10 0 0 1 32 169 254 169 254 10 0 0 1", True),
        ("unknown-249 0:a:0:0:1:20:a9:fe:a9:fe:a:0:0:1", True),
        ("rfc3442-classless-static-routes 0,10,0,0,1,32,168,63,129,16,10,0,0,1", False),
        ("rfc3442-classless-static-routes 24,169,254,169,254,32,1,1,1,1,1,1,1,1", False),
        ("rfc3442-classless-static-routes 32,169,254", False),
        ("rfc3442-classless-static-routes 99,999", False),
        ("routers 169.254.169.254", False),
    ],
)
def test_lease_reports_a_route_to_the_metadata_address(option: str, routed: bool) -> None:
    text = (CLASSIC % ("a8:3f:81:10", NEVER)).replace("option routers 100.72.34.1", f"option {option}")
    assert parse_dhclient(text, NOW) == Lease(HOST, routed)


def test_networkd() -> None:
    assert parse_networkd(NETWORKD % "0.0.0.0/0,10.0.0.1", NOW) == Lease(HOST)
    virtual_network = "0.0.0.0/0,10.0.0.1 168.63.129.16/32,10.0.0.1 169.254.169.254/32,10.0.0.1"
    assert parse_networkd(NETWORKD % virtual_network, NOW) == Lease(HOST, routes_service=True)
    assert parse_networkd("OPTION_245=\nOPTION_2450=a83f8110\n", NOW) == Lease(None)


@pytest.mark.parametrize("name", ["unknown_245", "private_245"])
def test_cloud_init(name: str) -> None:
    data = {"interface": "eth0", name: "a8:3f:81:10", "dhcp_lease_time": 3600}
    assert parse_cloud_init(json.dumps(data), NOW) == Lease(HOST)
    data["rfc3442_classless_static_routes"] = "0 10 0 0 1 32 169 254 169 254 10 0 0 1"
    assert parse_cloud_init(json.dumps(data), NOW) == Lease(HOST, routes_service=True)
    assert parse_cloud_init(json.dumps({name: 'dH\\"l'}), NOW) == Lease("100.72.34.108")


@pytest.mark.parametrize("parse", [parse_dhclient, parse_networkd])
@given(
    text=st.one_of(
        st.text(),
        st.text(alphabet='lease{};"\\ #\n245option unknown-:=OPTION_'),
        st.text().map(lambda text: CLASSIC % (text, NEVER)),
        st.text().map(lambda text: CLASSIC % ("a8:3f:81:10", text)),
    )
)
def test_no_text_makes_a_parser_fail(parse: Callable[[str, datetime], Lease | None], text: str) -> None:
    lease = parse(text, NOW)
    if lease is not None and lease.address is not None:
        numbers = [int(number) for number in lease.address.split(".")]
        assert len(numbers) == 4
        assert 0 < numbers[0] < 224


@given(st.tuples(st.integers(1, 223), *[st.integers(0, 255)] * 3))
def test_any_address_is_read_in_every_spelling(octets: tuple[int, ...]) -> None:
    address = ".".join(map(str, octets))
    padded = ":".join(f"{octet:02x}" for octet in octets)
    text = "".join(f"\\{octet:03o}" for octet in octets)
    for written in (padded, ":".join(f"{octet:x}" for octet in octets), padded.replace(":", ""), f'"{text}"'):
        assert parse_dhclient(CLASSIC % (written, NEVER), NOW) == Lease(address)


@pytest.mark.parametrize("unit", ['\\\\"', '"', "{", "#", "lease {", "option unknown-245 a8:3f:81:10;", "\\n"])
def test_invalid_file_is_read_in_linear_time(unit: str) -> None:
    began = time.process_time()
    parse_dhclient('"' + unit * 50_000, NOW)
    parse_dhclient("lease {" + unit * 50_000, NOW)
    assert time.process_time() - began < 3


# Files


def write(root: Path, name: str, text: str | bytes, age: float = 0.0) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (1e9 - age, 1e9 - age))
    return path


PLACES = {
    "run/systemd/netif/leases/2": NETWORKD % "0.0.0.0/0,10.0.0.1",
    "var/lib/dhcp/dhclient.eth0.leases": CLASSIC % ("a8:3f:81:10", NEVER),
    "var/lib/dhclient/dhclient--eth0.lease": CLASSIC % ("a8:3f:81:10", NEVER),
    "var/lib/NetworkManager/dhclient-5fb06bd0-eth0.lease": CLASSIC % ("a8:3f:81:10", NEVER),
    "run/dhclient.lease": CLASSIC % ("a8:3f:81:10", NEVER),
    "run/cloud-init/dhclient.hooks/eth0.json": '{"unknown_245": "a8:3f:81:10"}',
}


@pytest.mark.parametrize("place", PLACES)
def test_every_place_is_looked_at(place: str, tmp_path: Path) -> None:
    write(tmp_path, place, PLACES[place])
    assert discover_endpoint(tmp_path, NOW) == f"http://{HOST}"


def test_route_to_the_metadata_address_outweighs_option_245(tmp_path: Path) -> None:
    """Every VM on Azure is given option 245; in a virtual network the default endpoint is the right one."""
    write(tmp_path, "run/systemd/netif/leases/2", NETWORKD % "169.254.169.254/32,10.0.0.1")
    write(tmp_path, "var/lib/dhcp/dhclient.leases", CLASSIC % ("1:2:3:4", NEVER))
    assert discover_endpoint(tmp_path, NOW) is None


def test_without_a_lease_the_default_stays(tmp_path: Path) -> None:
    assert discover_endpoint(tmp_path, NOW) is None


def test_of_several_files_the_one_changed_last_counts(tmp_path: Path) -> None:
    write(tmp_path, "var/lib/dhcp/dhclient.eth0.leases", CLASSIC % ("1:1:1:1", NEVER), age=10)
    write(tmp_path, "var/lib/dhcp/dhclient.eth1.leases", CLASSIC % ("2:2:2:2", NEVER), age=5)
    write(tmp_path, "var/lib/dhcp/dhclient.eth2.leases", CLASSIC % ("3:3:3:3", PAST), age=0)
    assert discover_endpoint(tmp_path, NOW) == "http://2.2.2.2"


def test_invalid_files_and_directories_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "run/systemd/netif/leases/2", b"\xff\x00OPTION_245=\n=\n")
    write(tmp_path, "run/cloud-init/dhclient.hooks/a.json", "[" * 100_000)
    write(tmp_path, "run/cloud-init/dhclient.hooks/b.json", "[]")
    write(tmp_path, "run/cloud-init/dhclient.hooks/c.json", b"\xff")
    write(tmp_path, "run/cloud-init/dhclient.hooks/d.json", '{"unknown_245": "a8:3f:81:10"}', age=100)
    (tmp_path / "var/lib/dhcp/dhclient.eth0.leases").mkdir(parents=True)
    (tmp_path / "var/lib/dhcp/gone.leases").symlink_to("nowhere")
    assert discover_endpoint(tmp_path, NOW) == f"http://{HOST}"


def test_inaccessible_files_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory can be listed though its files cannot be read; root, as whom tests may run, always can."""
    write(tmp_path, "var/lib/dhcp/dhclient.eth0.leases", "")
    stat = Path.stat

    def refused(path: Path, **options: Any) -> Any:
        if path.suffix == ".leases":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refused)
    assert discover_endpoint(tmp_path) is None

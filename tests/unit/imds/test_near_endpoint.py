# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from forewarn.errors import InputError
from forewarn.imds.endpoint import check_endpoint
from hypothesis import given
from hypothesis import strategies as st

NEAR = ["169.254.169.254", "169.254.0.1", "127.0.0.1", "127.255.0.9", "[::1]", "[fe80::1]", "[FEBF::1]"]
NEAR += ["localhost", "LocalHost"]
FAR = ["10.0.0.4", "168.63.129.16", "169.255.0.1", "8.8.8.8", "[::]", "[fec0::1]", "[2001:db8::1]"]
FAR += ["[::ffff:127.0.0.1]", "[::7f00:1]", "0.0.0.0", "localhost.example.com", "metadata", "localhost."]
FAR += ["0x7f000001", "2130706433", "0177.0.0.1", "127.1", "0127.0.0.1", "127.0.0.1.example.com"]


@pytest.mark.parametrize("host", NEAR)
def test_local_or_link_local_service_is_trusted(host: str) -> None:
    check_endpoint(f"http://{host}:8000/prefix", allow=False)


@pytest.mark.parametrize("host", FAR)
def test_any_other_service_must_be_allowed(host: str) -> None:
    with pytest.raises(InputError, match="neither link-local nor loopback") as caught:
        check_endpoint(f"http://{host}", allow=False)
    assert "--allow-endpoint" in caught.value.hint
    check_endpoint(f"http://{host}", allow=True)


@given(packed=st.binary(min_size=4, max_size=4))
def test_of_all_addresses_only_two_networks_are_near(packed: bytes) -> None:
    near = packed[0] == 127 or (packed[0], packed[1]) == (169, 254)
    url = "http://" + ".".join(str(byte) for byte in packed)
    if near:
        check_endpoint(url, allow=False)
    else:
        with pytest.raises(InputError):
            check_endpoint(url, allow=False)


@pytest.mark.parametrize("allow", [True, False])
def test_invalid_endpoint_is_an_error(allow: bool) -> None:
    with pytest.raises(InputError):
        check_endpoint("http://127.0.0.1@evil.example.com", allow)

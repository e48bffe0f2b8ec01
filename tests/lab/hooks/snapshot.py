# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs and listens on a host, before an event and after it: what a hook, or its recovery, broke beside its own."""

from __future__ import annotations

import re

from ..hosts import Host
from ..machine import LabError

_ASK = "systemctl list-units --all --plain --no-legend --no-pager; echo; cd /proc/net; grep '' tcp tcp6 udp udp6 unix"
# They come and go with sessions, programs and hardware, or are for the first boot.
_FLEETING = re.compile(
    r".*\.(scope|device)|(user|session|run|getty|serial-getty|user-runtime-dir)[-@].*|ldconfig\.service"
    r"|systemd-(firstboot|hwdb-update|journal-catalog-update|machine-id-commit|sysusers|update-done)\.service"
)
_LISTENS = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}  # the kernel's numbers of states
_EPHEMERAL = range(32_768, 61_000)
_ACCEPTS = 0x10000  # of the flags of a Unix socket
_SECONDS = 10.0  # for what a boot starts last


def standing(host: Host) -> frozenset[str]:
    """Return each unit that is active or has failed, and each address on which something listens, in words."""
    units, _empty, sockets = host.ssh(_ASK).stdout.partition("\n\n")
    found = {
        f"{name} {state}"
        for name, _load, state in (line.split()[:3] for line in units.splitlines())
        if state in ("active", "failed") and not _FLEETING.fullmatch(name)
    }
    for line in sockets.splitlines():
        family, _colon, rest = line.partition(":")
        fields = rest.split()
        if family == "unix":
            if len(fields) > 7 and fields[3] != "Flags" and int(fields[3], 16) & _ACCEPTS:
                found.add(f"unix {re.sub('[0-9]+', '#', fields[7])}")
        elif fields[3] == _LISTENS[family]:
            address, _colon, port = fields[1].rpartition(":")
            if int(port, 16) not in _EPHEMERAL:
                found.add(f"{family} {address} port {int(port, 16)}")
    return frozenset(found)


def nothing_is_lost(host: Host, before: frozenset[str], moving: frozenset[str] = frozenset()) -> None:
    """Wait until a host stands as before, but for what is ``moving``. AssertionError, with all that differs, if not."""
    try:
        host.wait_for(lambda: before ^ standing(host) <= moving, _SECONDS)
    except LabError:
        after = standing(host)
        differences = {"lost": sorted(before - after - moving), "new": sorted(after - before - moving)}
        assert not any(differences.values()), f"{host.name} ({host.suite}): {differences}"

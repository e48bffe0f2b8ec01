# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab by hand: ``PYTHONPATH=tests python -m lab`` boots hosts, and removes them when it is stopped."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType

from . import machine
from .images import IMAGES
from .lab import HOSTS, Lab


def main() -> int:
    """Keep a lab until a signal comes; return 3 where a lab cannot run."""
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    parser.add_argument(
        "hosts", nargs="*", metavar="NAME=IMAGE", help=f"default: {' '.join(map('='.join, HOSTS.items()))}"
    )
    parser.add_argument("--inventory", type=Path, metavar="FILE", help="write an Ansible inventory there")
    parser.add_argument("--ready-file", type=Path, metavar="FILE", help="write there, once all is up, what there is")
    args = parser.parse_args()
    hosts = dict(host.partition("=")[::2] for host in args.hosts) or dict(HOSTS)
    if unknown := set(hosts.values()) - set(IMAGES):
        parser.error(f"no image is called {sorted(unknown)[0]!r}: there are {', '.join(IMAGES)}")
    try:
        if reason := machine.missing():
            raise machine.LabError(reason)
        _keep(hosts, args.inventory, args.ready_file)
    except machine.LabError as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    return 0


def _keep(hosts: dict[str, str], inventory: Path | None, ready: Path | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell's background ignores it from the start
        signal.signal(number, _interrupt)
    try:
        with Lab(hosts) as lab:
            if inventory:
                inventory.write_text(lab.inventory(), encoding="utf-8")
            for host in lab.hosts:
                sys.stdout.write(f"{host.name} ({host.suite}): {shlex.join(host.ssh_command)}\n")
            sys.stdout.write(f"The emulated service, and its control: {lab.server.url}\nStop with Ctrl-C.\n")
            sys.stdout.flush()
            if ready:
                _write_whole(
                    ready, json.dumps({"emulator": lab.server.url, "hosts": {h.name: h.address for h in lab.hosts}})
                )
            signal.pause()
    except KeyboardInterrupt:
        sys.stdout.write("Stopped.\n")
    finally:
        if ready:
            ready.unlink(missing_ok=True)


def _write_whole(path: Path, text: str) -> None:
    draft = path.with_name(path.name + ".new")
    draft.write_text(text + "\n", encoding="utf-8")
    draft.replace(path)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # while the hosts are removed
    raise KeyboardInterrupt


if __name__ == "__main__":
    raise SystemExit(main())

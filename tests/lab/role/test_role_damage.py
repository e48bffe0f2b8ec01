# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts on which something was damaged or edited by hand: after one rollout the runner works, and starts again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from tools.suite.sizes import in_turn

from ..lab import Lab
from ..sizes import FEW_HOSTS
from .control_node import ROLLOUT, SITE, VARIABLES, control_node, is_well, status
from .playbooks import Playbooks

pytestmark = pytest.mark.in_turn(4, together=True)
LAB_HOSTS = FEW_HOSTS
NAMES = tuple(LAB_HOSTS)
# Of each pair, one is damaged in one way and the other in another, on the same host.
FILES = [
    (("runner", "$(readlink -f /opt/forewarn/forewarn.pyz)"), ("configuration", "/etc/forewarn/config.json")),
    (("link to the runner", "/opt/forewarn/forewarn.pyz"), ("policy", "$(ls -t /etc/forewarn/policy-* | head -n 1)")),
    (("unit", "/etc/systemd/system/forewarn.service"), ("hook", "$(readlink -f /opt/forewarn/hooks)/drain")),
    (("command", "/usr/local/bin/forewarn"), ("link to the hooks", "/opt/forewarn/hooks")),
]
DAMAGES = {
    "gone": 'rm -rf "$file"',
    "empty": 'rm -rf "$file"; : > "$file"',
    "garbage": 'rm -rf "$file"; head -c 4096 /dev/urandom > "$file"',
    "cut short": 'if [ -f "$file" ]; then truncate --size=60 "$file"; fi',
    "writable by everybody": 'chmod 666 "$file" 2>/dev/null || true',
    "somebody else's": 'chown --no-dereference nobody "$file"',
    "a link to nowhere": 'rm -rf "$file"; ln -s /nowhere "$file"',
}
INTERVAL = 'sed -i \'s/"interval": [0-9.]*/"interval": {}/\' /etc/forewarn/config.json'
# Waits until status names the configuration that is installed, for as long as the SSH connection may take.
LOADED = (
    "wanted=$(forewarn run --check-config --json --config /etc/forewarn/config.json | "
    'grep -o \'"config": "sha256:[0-9a-f]*"\'); '
    'until [ -n "$wanted" ] && forewarn status --json | grep -qF "$wanted"; do sleep 0.1; done'
)
EDITED = {
    "an interval that the runner refuses": INTERVAL.format(500),
    "a unit that was edited and loaded": (
        "sed -i 's/^MemoryMax=.*/MemoryMax=64M/' /etc/systemd/system/forewarn.service; systemctl daemon-reload"
    ),
    "a configuration that was loaded, and put back": (
        f"cp -a /etc/forewarn/config.json /root/; {INTERVAL.format(30)}; systemctl reload forewarn; {LOADED}; "
        "mv /root/config.json /etc/forewarn/"
    ),
    "a service that was stopped and disabled": "systemctl disable --now forewarn",
    "a unit that was put in place and never started": (
        "systemctl stop forewarn; sed -i 's/^TasksMax=.*/TasksMax=64/' /etc/systemd/system/forewarn.service; "
        "systemctl start forewarn; systemctl daemon-reload"
    ),
    "a runner that was killed for good": "systemctl kill --signal=KILL forewarn; systemctl stop forewarn",
}


def damages() -> Iterator[tuple[str, str]]:
    """Yield what is damaged, and the commands: each file in each way, two at a time."""
    kinds = list(DAMAGES.items())
    for pair, number in product(FILES, range(len(kinds))):
        chosen = [(file, kinds[(number + place) % len(kinds)]) for place, file in enumerate(pair)]
        what = ", ".join(f"{name}: {damage}" for (name, _), (damage, _) in chosen)
        yield what, "; ".join(f"file={path}; {command}" for (_, path), (_, command) in chosen)


CASES = [*damages(), *EDITED.items()]


@pytest.fixture(scope="module")
def playbooks(lab: Lab, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path) -> Playbooks:
    books = control_node(lab, tmp_path_factory.mktemp("control"), installed_collection)
    books.play(ROLLOUT, VARIABLES).changed()
    return books


@pytest.mark.parametrize("first", in_turn(range(0, len(CASES), len(NAMES)), 2))
def test_one_rollout_heals_it(lab: Lab, playbooks: Playbooks, first: int) -> None:
    cases = dict(zip(NAMES, CASES[first:], strict=False))
    for name, (what, command) in cases.items():
        host = lab.host(name)
        host.ssh(command)
        if what not in EDITED:
            host.ssh("systemctl restart --no-block forewarn", check=False)  # so that it is what runs, or does not
    played = playbooks.play(SITE, VARIABLES, "--limit", ",".join(cases))
    assert played.code == 0, f"{cases}\n{played.text[-6000:]}"
    for name, case in cases.items():
        host = lab.host(name)
        assert status(host)["problems"] == [], (case, status(host))
        assert host.properties("forewarn", "UnitFileState") == {"UnitFileState": "enabled"}, case
        assert is_well(host), (case, status(host))
        assert host.ssh("stat -c '%U %a' -L /opt/forewarn/hooks/drain").stdout == "root 755\n", case

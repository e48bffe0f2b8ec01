# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of known faults fits the code and the tests as they are; make known-faults shows that each is caught."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.suite.known_faults import KnownFault, known_faults

FAULTS = known_faults()


def test_each_fault_is_listed_once() -> None:
    assert len({one.fault for one in FAULTS}) == len(FAULTS)
    assert len({(one.file, one.old, one.new) for one in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=[one.commit for one in FAULTS])
def test_fault_applies_and_its_test_exists(fault: KnownFault, repository: Path) -> None:
    assert re.fullmatch("[0-9a-f]{8}", fault.commit)
    assert fault.file.startswith(("demo/", "playbooks/", "plugins/", "roles/"))
    source = (repository / fault.file).read_text(encoding="utf-8")
    changed = fault.changed(source)
    assert changed != source
    if fault.file.endswith(".py"):
        compile(changed, fault.file, "exec")
    file, _colons, function = fault.test.partition("::")
    assert f"\ndef {function.partition('[')[0]}(" in (repository / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("source", ["", "old old"])
def test_outdated_edit_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="the text to replace is"):
        KnownFault("It fails.", "0" * 8, "plugins/x.py", "old", "new", "tests/unit/test_x.py::test_x").changed(source)

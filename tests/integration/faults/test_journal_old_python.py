# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal by each Python that a VM may have: errors and transactions of its sqlite3 differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools.sites.commands import run_program
from tools.sites.pythons import SUPPORTED, python

_PROGRAM = """
import json, os, sqlite3, sys
sys.path.insert(0, sys.argv[1])
from forewarn.runner.clocks import Clocks
from forewarn.runner.journal import schema, writer as module
from forewarn.runner.journal.writer import Journal, EventRow
from forewarn.runner.journal.reader import JournalReader

schema.BUSY_SECONDS = 0.05
class Later(Clocks):
    passed = 0.0
    def monotonic(self):
        return super().monotonic() + self.passed

os.chdir(sys.argv[2])
clocks, found = Later(), {}

def filled(name, **options):
    os.mkdir(name)
    journal = Journal(name, clocks, **options)
    journal.open()
    for number in range(1, 60):
        journal.save(EventRow(number, "k%d" % number, "seen", number == 7, {"id": number, "text": "x" * 1000}))
        journal.note("state", number, text="y" * 1000)
    assert journal.commit(), journal.trouble
    return journal

def rewrite(name, change):
    with open(name + "/journal.db", "rb") as file:
        content = file.read()
    with open(name + "/journal.db", "wb") as file:
        file.write(change(content))

damage = {
    "header": lambda content: b"?" * 100 + content[100:],
    "cut": lambda content: content[:9000],
    "middle": lambda content: content[:4096] + b"?" * (len(content) - 4096),
    "text": lambda content: content.replace(b'{"id":7,', b'{"id":\\xff\\xfe'),
    "json": lambda content: content.replace(b'{"id":7,', b'{"id"77,'),
    "schema": lambda content: content.replace(b"TABLE lives (id", b"TABLE lives \\xed\\xff\\xfe"),
}
for name, change in damage.items():
    filled(name).close()
    rewrite(name, change)
    journal = Journal(name, clocks)
    records = journal.open()
    found[name] = [len(records), journal.trouble, journal.moved_aside is not None, journal.commit()]
    journal.close()

journal = filled("locked")
other = sqlite3.connect("locked/journal.db", isolation_level=None)
other.execute("BEGIN IMMEDIATE")
journal.note("state")
found["locked"] = [journal.commit(), journal.trouble]
other.close()
clocks.passed += 10
newest = JournalReader("locked").entries(limit=2, newest_first=True)
found["healed"] = [journal.commit(), [entry.kind for entry in newest]]
journal.close()

journal = filled("full")
journal._connection.execute("PRAGMA max_page_count = 60").fetchall()
journal.note("document", None, text="z" * 200000)
found["full"] = [journal.commit(), journal.trouble]
journal.close()

journal = filled("large", max_bytes=60000)
journal.prune()
found["large"] = [journal.trouble, os.path.getsize("large/journal.db") <= 60000]
journal.close()
found["left"] = [row.id for row in JournalReader("large").records(open_only=True)]
print(json.dumps(found))
"""


@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_it_works_the_same(tmp_path: Path, package: Path, version: str) -> None:
    command = [python(version), "-I", "-S", "-B", "-X", "dev", "-W", "error", "-c", _PROGRAM]
    done = run_program(*command, package.parent, tmp_path)
    assert done.stderr == ""  # among them: connections that nobody closed
    aside = [0, None, True, True]
    assert json.loads(done.stdout) == {
        **dict.fromkeys(("header", "cut", "middle", "text", "json", "schema"), aside),
        "locked": [False, "locked/journal.db cannot be used: another program has locked it"],
        "healed": [True, ["journal-recovered", "state"]],
        "full": [False, "full/journal.db cannot be used: the disk is full"],
        "large": [None, True],
        "left": [7],
    }

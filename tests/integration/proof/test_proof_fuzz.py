# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No random event refutes what verify and diff say of random policies. Counts: ``-rP``; much more: ``make soak``."""

from __future__ import annotations

import pytest
from tools.judges.claim_results import CASE_KINDS, DIFF_KINDS, VERIFY_KINDS, Results
from tools.suite.claim_fuzz import Effort, Fuzzer
from tools.suite.sizes import SEED, SIZE

FIRST = 2026 + SEED
EFFORT = Effort(events=700, diff_events=350, seconds=5, small=True)
KINDS = (*VERIFY_KINDS, *CASE_KINDS, *DIFF_KINDS)


@pytest.fixture(scope="module")
def results() -> Results:
    """Return what was found in some drawings."""
    fuzzer = Fuzzer(FIRST, EFFORT)
    for number in range(FIRST, FIRST + SIZE.fuzzed_policies):
        fuzzer.one(number)
    print(fuzzer.results.text())
    return fuzzer.results


@pytest.mark.parametrize("kind", KINDS)
def test_no_event_contradicts_a_claim(results: Results, kind: str) -> None:
    found = results.of(kind)
    assert not found, f"{len(found)} policies, the first:\n{min(map(str, found), key=len)}"


@pytest.mark.full  # few policies do not make every claim
def test_every_kind_of_claim_was_judged(results: Results) -> None:
    # The rarest kind has 14 claims in 331 policies, the next two have 26 and 36.
    assert len([kind for kind in KINDS if not results.claims[kind]]) <= 2, results.claims
    assert not results.claims.keys() - {*KINDS}
    counts = results.counts
    assert min(counts["approved"], counts["pairs"] - counts["approved"]) > counts["pairs"] // 10
    assert counts["changed"] > 100
    judged = counts["policies"] - counts["policies given up"] - counts["policies refused"]
    assert judged > SIZE.fuzzed_policies * 2 // 3


def test_the_prover_does_not_crash(results: Results) -> None:
    assert not results.crashes, "\n".join((results.crashes[0][0], *results.crashes[0][1]))

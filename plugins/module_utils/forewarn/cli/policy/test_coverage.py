# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of policies do not cover, for ``forewarn policy test``: shown, and written as further tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...analysis.coverage.coverage import Gap, Gaps, find_gaps
from ...analysis.coverage.suggestions import append_suggestions, as_yaml, new_test_file
from ...analysis.proof import Progress
from ...analysis.smt.terms import require
from ...atomic_file import replace_file
from ...compiler.paths import is_test, policies_tested_by
from ...compiler.testing.policytest import PolicyTestRun
from ...errors import InputError
from ..output.console import Console, one_line
from .common import plural
from .run_analysis import analysed


class CoverageGaps(NamedTuple):
    """What the tests of each file leave out; ``trouble`` is why nobody knows, if so."""

    files: Sequence[Gaps]
    trouble: str | None = None

    @property
    def complete(self) -> bool:
        """Return whether it is known that the tests leave nothing out."""
        return self.trouble is None and not any(found.gaps or found.trouble for found in self.files)

    def as_json(self) -> dict[str, Any]:
        """Return the gaps for ``--json``."""
        return {"gaps": [_as_json(found) for found in self.files], "trouble": self.trouble}

    def write_suggestions(self) -> None:
        """Write the suggestions as YAML: the text to append to each test file."""
        for found in self.files:
            if found.suggestions:
                sys.stdout.write(f"# To add to {one_line(found.path)}, under 'section':\n{as_yaml(found.suggestions)}")
            elif found.trouble:
                sys.stdout.write(f"# {one_line(found.path)}: {one_line(found.trouble)}\n")

    def add_suggestions(self, path: Path, outcome: PolicyTestRun) -> None:
        """Write the suggestions to a test file, which is made if there is none. Raises InputError."""
        suggestions = [suggestion for found in self.files for suggestion in found.suggestions]
        problems = Console(sys.stderr)
        for found in self.files:
            if found.trouble:
                problems.error(f"{found.path}: {found.trouble}")
        if not suggestions:
            return
        if path.exists():
            text = append_suggestions(path.read_text(encoding="utf-8"), str(path), suggestions)
        else:
            policies = outcome.tested[0].tests.policies
            alike = [one.resolve() for one in policies_tested_by(path)] == [one.resolve() for one in policies]
            text = new_test_file([] if alike else [os.path.relpath(one, path.parent) for one in policies], suggestions)
        replace_file(path, text.encode("utf-8"))
        problems.line(f"{plural(len(suggestions), 'test')} added to {problems.style(str(path))}")

    def show(self, console: Console, *, tip: bool) -> None:
        """Write what each file leaves out; with ``tip``, how to get the suggestions."""
        for found in self.files:
            console.line()
            _show(found, console, tip)
        if self.trouble is not None:
            console.line(f"\n{self.trouble}")


def find_test_gaps(outcome: PolicyTestRun, suggest: str | None) -> CoverageGaps:
    """Return what the tests of a run leave out. ``suggest`` is the value of the option, None without it."""
    try:
        require()
    except InputError as error:
        if suggest is not None:
            raise
        return CoverageGaps((), f"coverage needs the Python package z3-solver: {error.hint}")
    return CoverageGaps(analysed(lambda progress: _find_gaps(outcome, suggest, progress)))


def _find_gaps(outcome: PolicyTestRun, suggest: str | None, progress: Progress) -> list[Gaps]:
    if suggest in (None, "-"):
        return find_gaps(outcome.tested, progress=progress)
    path = Path(str(suggest))
    if not is_test(path):
        raise InputError(
            f"--suggest {path}: this is not the name of a test file.", "Tests are NAME.test.yml, or tests.yml."
        )
    beside = [tested for tested in outcome.tested if path.exists() and path.samefile(tested.tests.file.source.path)]
    if not beside and (path.exists() or len(outcome.tested) != 1):
        raise InputError(
            f"--suggest {path}: it is not clear which tests these belong to.",
            "Name one of the test files that are run; a new file only if one is run.",
        )
    return find_gaps(beside or outcome.tested, alone=not beside, progress=progress)


def _show(found: Gaps, console: Console, tip: bool) -> None:
    if found.trouble:
        console.line(console.style(f"{found.path}: coverage is not known: {found.trouble}", "yellow"))
        return
    counts = f": {found.covered} of {plural(found.possible, 'outcome')} covered"
    if found.unproven:
        counts += f"; {len(found.unproven)} more may be possible"
    console.line(console.style(found.path, "bold") + console.style(counts))
    for line in _gap_lines(found.gaps):
        console.line("  " + console.style(line))
    for why in dict.fromkeys(why for _what, why in found.unproven):
        what = "; ".join(one for one, reason in found.unproven if reason == why)
        console.line("  " + console.style(f"not known whether it is possible: {what} ({why})"))
    for assumption in found.assumptions:
        console.labelled("assumed", assumption, "dim")
    if found.gaps and tip:
        console.line(console.style(f"  {plural(len(found.suggestions), 'test')} would cover them: --suggest", "cyan"))


def _gap_lines(gaps: Sequence[Gap]) -> Iterator[str]:
    """Yield a line for each result, and one for each way to decide, with the event types that lack it."""
    types: dict[str, list[str]] = {}
    for gap in gaps:
        if gap.event_type is None:
            yield f"{gap.where}: {gap.text}" if gap.where else gap.text
        else:
            types.setdefault(gap.way, []).append(gap.event_type)
    for way, names in types.items():
        yield f"no test with {way}: {', '.join(names)}"


def _as_json(found: Gaps) -> dict[str, Any]:
    return {
        "path": found.path,
        "possible": found.possible,
        "covered": found.covered,
        "impossible": len(found.impossible),
        "unproven": [{"outcome": what, "why": why} for what, why in found.unproven],
        "assumptions": list(found.assumptions),
        "trouble": found.trouble,
        "gaps": [gap._asdict() for gap in found.gaps],
        "suggestions": [suggestion.as_dict() for suggestion in found.suggestions],
    }

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies as files: texts of a test, written and compiled, and the policies that the repository ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forewarn.analysis.verify.finding import ProofFinding
from forewarn.analysis.verify.verify import verify
from forewarn.compiler.policies import Compilation, compile_policies, load_policies
from forewarn.events import LATEST_API_VERSION
from forewarn.policy.artifact import Artifact

DIRECTORY = Path(__file__).parents[2] / "policies"
SHIPPED = sorted(path for path in DIRECTORY.glob("*.yml") if not path.stem.endswith(".test"))
HEAD = "name: p\nrule:\n  match:\n"


def written(directory: Path, *texts: str) -> list[Path]:
    """Write policies; the files are ``p.yml``, ``p1.yml``, ``p2.yml``, …"""
    paths = []
    for number, text in enumerate(texts):
        paths.append(directory / f"p{number or ''}.yml")
        paths[-1].write_text(text)
    return paths


def compiled(directory: Path, *texts: str, api_version: str = LATEST_API_VERSION) -> Compilation:
    """Write policies, and compile them."""
    return compile_policies(written(directory, *texts), api_version)


def loaded(directory: Path, *texts: str, api_version: str = LATEST_API_VERSION) -> Artifact:
    """Write policies, compile them, and return their artifact. Raises PolicyError."""
    return load_policies(written(directory, *texts), api_version)


def verified(directory: Path, *texts: str, api_version: str = LATEST_API_VERSION, **options: Any) -> list[ProofFinding]:
    """Write policies; return what ``verify`` finds in them. ``options`` are those of ``read``."""
    return list(verify(loaded(directory, *texts, api_version=api_version), **options).findings)


def changed_web_tier(directory: Path) -> tuple[str, str]:
    """Write a web-tier that drains for fewer freezes, approves evictions and no longer Redeploys; return both files."""
    text = (DIRECTORY / "web-tier.yml").read_text()
    for old, new in (
        ("default: 9", "default: 15"),
        ('"Preempt"\n      output: hold', '"Preempt"\n      output: approve'),
        ('"Redeploy", "Terminate"', '"Terminate"'),
    ):
        assert old in text, old
        text = text.replace(old, new)
    path = directory / "web-tier.yml"
    path.write_text(text)
    return str(DIRECTORY / "web-tier.yml"), str(path)

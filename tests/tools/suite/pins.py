# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Says which versions of constraints.txt some Python that we promise refuses: ``python -m tools.suite.pins``.

A promised 3.11 includes 3.11.0, however new the Python here is. What a version needs is in the metadata of what is
installed, so nothing is asked of an index.
"""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

import tomllib
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[3]
_CLASSIFIER = "Programming Language :: Python :: "


def pinned() -> dict[str, str]:
    """Return the version of each package in constraints.txt."""
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def promised() -> list[str]:
    """Return the oldest patch release of each Python that pyproject.toml names."""
    classifiers = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    return [f"{line.removeprefix(_CLASSIFIER)}.0" for line in classifiers if line.startswith(_CLASSIFIER)]


def required() -> dict[tuple[str, str], str]:
    """Return which Pythons each installed version of a package asks for."""
    found = ((canonicalize_name(one.name), one.version, one.metadata["Requires-Python"]) for one in distributions())
    return {(name, version): pythons or "" for name, version, pythons in found}


def refused(pins: dict[str, str], requires: dict[tuple[str, str], str], pythons: list[str]) -> list[str]:
    """Return a sentence for each pin, as far as it is installed, and Python that do not go together."""
    return [
        f"{name} {version} needs Python {requires[name, version]}, which leaves out {python}: "
        f"give {name} an upper bound in pyproject.toml, and an older version in constraints.txt"
        for name, version in pins.items()
        if (name, version) in requires
        for python in pythons
        if python not in SpecifierSet(requires[name, version])
    ]


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    pins, requires = pinned(), required()
    found = refused(pins, requires, promised())
    print("\n".join(found), end="\n" if found else "")
    judged = sum(pin in requires for pin in pins.items())
    print(f"{judged} of {len(pins)} pinned versions are installed here, and judged for Python {', '.join(promised())}")
    return 1 if found or not judged else 0


if __name__ == "__main__":
    sys.exit(main())

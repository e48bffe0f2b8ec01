# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: Python, and the platform."""

from __future__ import annotations

import sys

from ...imds import azure
from .check import NOT_CHECKED, OK, TROUBLE, Check
from .system import Machine


def python() -> Check:
    """Report the interpreter: an older one than is supported ends before this."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Check("python", OK, f"{version}, {sys.executable or 'its path is not known'}")


def platform(machine: Machine, option: str | None, endpoint: str) -> Check:
    """Check that this is a VM in Azure, where the default address is asked."""
    path = machine.asset_tag_path
    why = azure.platform_problem(option, endpoint, machine.environ, path)
    if why is not None:
        return Check("platform", TROUBLE, why, azure.HINT)
    if azure.asset_tag(path) == azure.AZURE_ASSET_TAG:
        return Check("platform", OK, "a VM in Azure, by its chassis asset tag")
    return Check("platform", NOT_CHECKED, f"the configuration or the environment names the service: {endpoint}")

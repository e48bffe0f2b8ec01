# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this machine is known to be a VM in Azure, so that its link-local metadata address is Azure's (SE-01).

On a laptop, or on another cloud's VM, 169.254.169.254 belongs to somebody else or to nobody. Azure's hosts give every
VM the same chassis asset tag in the firmware's tables (DMI, SMBIOS type 3), which Linux shows; cloud-init identifies
Azure by it, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..system import firmware
from .endpoint import AUTO, DEFAULT_ENDPOINT, ENVIRONMENT_VARIABLE

AZURE_ASSET_TAG = "7783-7084-3265-9085-8269-3286-77"
ASSET_TAG_PATH = firmware.ASSET_TAG
PLATFORM_VARIABLE = "FOREWARN_PLATFORM"
AZURE = "azure"  # the only value

HINT = (
    f"Name the service with --endpoint or {ENVIRONMENT_VARIABLE}; to try things out, 'forewarn emulate' serves one. On "
    f"a VM in Azure that does not show its asset tag, set {PLATFORM_VARIABLE}={AZURE}."
)


def asset_tag(path: str | None = None) -> str | None:
    """Return this machine's chassis asset tag, or None if it cannot be read."""
    return firmware.asset_tag(path or ASSET_TAG_PATH)


def platform_problem(
    option: str | None, endpoint: str, environ: Mapping[str, str], path: str | None = None
) -> str | None:
    """Return why the default address may be somebody else's, None if it is Azure's or another address was given.

    ``option`` is the value of ``--endpoint`` or None; ``endpoint`` is the result of ``resolve_endpoint``. ``path`` is
    the file of the asset tag, by default Linux's.
    """
    named = option if option is not None else environ.get(ENVIRONMENT_VARIABLE)
    if endpoint != DEFAULT_ENDPOINT or named not in (None, "", AUTO):
        return None
    platform = environ.get(PLATFORM_VARIABLE, "")
    if platform == AZURE:
        return None
    tag = asset_tag(path)
    if tag == AZURE_ASSET_TAG:
        return None
    where = path or ASSET_TAG_PATH
    if tag is None:
        why = f"nothing says that this machine is a VM in Azure: {where} cannot be read"
    else:
        why = f"this machine is not a VM in Azure: its chassis asset tag ({where}) is {tag!r}"
    return f"{why}, and {PLATFORM_VARIABLE} is {platform!r}, not {AZURE!r}" if platform else why

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Importing this module loads http.client and hashlib without OpenSSL, unless the process has them already.

Both load it where they can and do without where they cannot. The service speaks plain HTTP only, and one digest needs
no OpenSSL; it would cost each VM 5 MiB of memory and a tenth of the time to the first request. For the runner's own
process alone: http.client has no HTTPSConnection in it.
"""

from __future__ import annotations

import sys

if sys.modules.keys().isdisjoint(("hashlib", "http.client", "ssl", "_hashlib")):
    # None makes an import fail, as on a Python that was built without OpenSSL.
    sys.modules.update({"ssl": None, "_hashlib": None})  # type: ignore[dict-item]  # None is what import takes for "absent"
    try:
        import hashlib
        import http.client

        LOADED = (hashlib, http.client)  # imported only to stay in sys.modules
    finally:
        del sys.modules["ssl"], sys.modules["_hashlib"]

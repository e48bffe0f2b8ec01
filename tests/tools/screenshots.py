# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes pictures of the page of a simulated fleet. Usage: ``python -m tools.screenshots DIRECTORY [HOSTS]``.

There is one for a desk and one for a phone, light and dark, each as it opens and with everything unfolded.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from forewarn.fleet.page import page
from tools.browser import browser
from tools.fleets import AT, fleet, iso

SIZES = {"desk": (1400, 900), "phone": (390, 844)}


def main(directory: Path, hosts: int) -> int:
    """Write the page and its pictures."""
    directory.mkdir(parents=True, exist_ok=True)
    written = directory / "fleet.html"
    written.write_text(page(fleet(hosts, past=40), iso(AT), "7d"), encoding="utf-8")
    try:
        with browser() as chromium:
            for name, size in SIZES.items():
                for scheme in ("light", "dark"):
                    chromium.show(written.resolve(), size, dark=scheme == "dark")
                    chromium.picture(directory / f"{name}-{scheme}.png")
                    chromium.run("for (const one of document.querySelectorAll('details')) one.open = true")
                    chromium.picture(directory / f"{name}-{scheme}-unfolded.png")
    except pytest.skip.Exception as missing:
        print(missing, file=sys.stderr)
        return 1
    print(f"{directory}: {', '.join(sorted(path.name for path in directory.glob('*.png')))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300))

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes pictures of pages. Usage: ``python -m tools.docs.screenshots DIRECTORY [HOSTS]``.

They are those of a simulated fleet, of each shipped policy and all together, and of a change of two. There is one for a
desk and one for a phone, light and dark, each as it opens and with everything unfolded.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from forewarn.cli.main import main as forewarn
from forewarn.fleet.page import page
from tools.fixtures.policy_files import SHIPPED, changed_web_tier
from tools.sites.browser import browser
from tools.worlds.fleets import AT, fleet, iso

SIZES = {"desk": (1400, 900), "phone": (390, 844)}


def main(directory: Path, hosts: int) -> int:
    """Write the pages and their pictures."""
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "fleet.html").write_text(page(fleet(hosts, past=40), iso(AT), "7d"), encoding="utf-8")
    for path in SHIPPED:
        forewarn(["policy", "verify", str(path), "--html", str(directory / f"{path.stem}.html")])
    forewarn(["policy", "verify", *map(str, SHIPPED), "--html", str(directory / "policies.html")])
    forewarn(["policy", "diff", *changed_web_tier(directory), "--html", str(directory / "change.html")])
    try:
        with browser() as chromium:
            for written in sorted(directory.glob("*.html")):
                for name, size in SIZES.items():
                    for scheme in ("light", "dark"):
                        chromium.show(written, size, dark=scheme == "dark")
                        chromium.picture(directory / f"{written.stem}-{name}-{scheme}.png")
                        chromium.run("for (const one of document.querySelectorAll('details')) one.open = true")
                        chromium.picture(directory / f"{written.stem}-{name}-{scheme}-unfolded.png")
    except pytest.skip.Exception as missing:  # there is no Chromium: outside a test, nothing to skip
        print(missing, file=sys.stderr)
        return 1
    print(f"{directory}: {', '.join(sorted(path.name for path in directory.glob('*.png')))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300))

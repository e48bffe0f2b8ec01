# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a host of the lab, by its Python: sends requests, one after the other, until /run/enough appears.

Arguments: the file for the results, in JSON, which appears with the first answer; the URLs where the service may be.
A request goes to the URL that has answered last, and then to the others. It fails if none answers.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time
import urllib.request

RESULT, URLS = pathlib.Path(sys.argv[1]), sys.argv[2:]
INTERVAL, PATIENCE = 0.05, 0.5  # seconds from one request to the next, and for an answer


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return bool(answer.read())
    except OSError:
        return False


answered = failed = 0
pause, last = 0.0, None
while not pathlib.Path("/run/enough").exists():
    found = next((url for url in URLS if answers(url)), None)
    good, now = found is not None, time.monotonic()
    URLS.sort(key=lambda url: url != found)
    if good:
        answered += 1
        pause, last = max(pause, now - (last or now)), now
    elif last is not None:  # before the first answer the service may not be there yet
        failed += 1
    if good and answered == 1:
        RESULT.touch()
    time.sleep(INTERVAL)  # until the next request
RESULT.write_text(json.dumps({"answered": answered, "failed": failed, "pause_seconds": round(pause, 2)}))

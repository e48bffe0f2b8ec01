# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop that many would write with Python alone: poll, sleep, poll. Usage: ``windows_loop.py ENDPOINT``."""

from __future__ import annotations

import json
import sys
import time
import urllib.request

URL = sys.argv[1] + "/metadata/scheduledevents?api-version=2020-07-01"

while True:
    with urllib.request.urlopen(urllib.request.Request(URL, headers={"Metadata": "true"}), timeout=10) as answer:
        document = json.load(answer)
    for event in document["Events"]:
        if event["EventSource"] == "User":
            print(event["EventId"], flush=True)
    time.sleep(1)  # what a script of this kind does

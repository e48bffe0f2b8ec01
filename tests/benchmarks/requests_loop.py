# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop that many would write: poll with requests, sleep, poll. Usage: ``requests_loop.py ENDPOINT``."""

from __future__ import annotations

import sys
import time

import requests

URL = sys.argv[1] + "/metadata/scheduledevents?api-version=2020-07-01"

while True:
    document = requests.get(URL, headers={"Metadata": "true"}, timeout=10).json()
    for event in document["Events"]:
        if event["EventSource"] == "User":
            print(event["EventId"])
    time.sleep(1)  # what a script of this kind does

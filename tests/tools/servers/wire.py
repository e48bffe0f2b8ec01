# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of a client of Scheduled Events, without the package."""

from __future__ import annotations

import json

import requests

TARGET = "/metadata/scheduledevents?api-version=2020-07-01"


def get(endpoint: str, **headers: str) -> requests.Response:
    return requests.get(endpoint + TARGET, headers={"Metadata": "true", **headers}, timeout=10)


def approve(endpoint: str, *events: str) -> int:
    body = json.dumps({"StartRequests": [{"EventId": event} for event in events]})
    return requests.post(endpoint + TARGET, data=body, headers={"Metadata": "true"}, timeout=10).status_code


def statuses(endpoint: str) -> list[str]:
    return [event["EventStatus"] for event in get(endpoint).json()["Events"]]

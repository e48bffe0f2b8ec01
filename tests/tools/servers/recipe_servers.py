# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for the HTTP services that recipes of hooks call: Elasticsearch, GitHub, Azure Resource Manager.

Each answers as its documentation says and keeps what is changed; a test changes the attributes, as others would.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from tools.servers.scripted_imds import Answer, AnsweringServer, Request, status

EXCLUDE = "cluster.routing.allocation.exclude._name"


class Service:
    """What the services have in common.

    ``refusals`` are statuses with which the next requests are answered, ``refused_writes`` the next changes.
    """

    def __init__(self) -> None:
        self.refusals: list[int] = []
        self.refused_writes: list[int] = []
        self.requests: list[tuple[str, str, Any, Mapping[str, str]]] = []

    def reply(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, Any]:
        self.requests.append((method, path, body, headers))
        if self.refusals:
            return self.refusals.pop(0), {"error": "refused"}
        if method == "PUT" and self.refused_writes:
            return self.refused_writes.pop(0), {"error": "refused"}
        return 200, self.answer(method, path, body)

    def answer(self, method: str, path: str, body: Any) -> Any:
        raise NotImplementedError

    def writes(self) -> list[Any]:
        """Return the bodies of all requests to change something."""
        return [body for method, _path, body, _headers in self.requests if method == "PUT"]


class Elasticsearch(Service):
    """A cluster; ``shards`` are those of its one known node, fewer at each look while it is excluded."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self.node = node
        self.persistent: dict[str, str] = {}
        self.transient: dict[str, str] = {}
        self.shards = 2
        self.names = [node, "es-9"]

    def answer(self, method: str, path: str, body: Any) -> Any:
        path = urlsplit(path).path
        if path == f"/_cat/allocation/{self.node}":
            left, self.shards = self.shards, max(self.shards - 1, 0)
            return [{"node": self.node, "shards": str(left)}]
        if path == "/_cat/nodes":
            return [{"name": name} for name in self.names]
        assert path == "/_cluster/settings"
        for key, value in (body or {}).get("persistent", {}).items():
            self.persistent.pop(key, None)
            if value is not None:
                self.persistent[key] = value
        return {"persistent": self.persistent, "transient": self.transient}


class GitHub(Service):
    """An organization with one runner; ``busy`` are the answers to whether it has a job, the last of which stays."""

    def __init__(self, runner: str) -> None:
        super().__init__()
        self.runner = runner
        self.custom = ["azure", "gpu"]
        self.busy = [False]
        self.status = "online"

    def answer(self, method: str, path: str, body: Any) -> Any:
        if method == "PUT":
            assert path == "/orgs/example/actions/runners/7/labels"
            self.custom = body["labels"]
            return {}
        assert path.startswith("/orgs/example/actions/runners?")
        labels = [{"name": "self-hosted", "type": "read-only"}]
        labels += [{"name": name, "type": "custom"} for name in self.custom]
        busy = self.busy.pop(0) if len(self.busy) > 1 else self.busy[0]
        own = {"id": 7, "name": self.runner, "status": self.status, "busy": busy, "labels": labels}
        return {"total_count": 2, "runners": [{**own, "id": 8, "name": f"{self.runner}-2"}, own]}


class ResourceManager(Service):
    """A backend pool of two entries, and the endpoint for tokens, which is never refused."""

    def __init__(self) -> None:
        super().__init__()
        self.pool: dict[str, Any] = {
            "name": "web",
            "etag": 'W/"1"',
            "properties": {
                "provisioningState": "Succeeded",
                "loadBalancerBackendAddresses": [
                    {"name": "web-0", "properties": {"ipAddress": "10.0.0.4"}},
                    {"name": "web-1", "properties": {"ipAddress": "10.0.0.5"}},
                ],
            },
        }

    @property
    def states(self) -> list[str | None]:
        """The admin state of each entry."""
        entries = self.pool["properties"]["loadBalancerBackendAddresses"]
        return [entry["properties"].get("adminState") for entry in entries]

    def reply(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, Any]:
        if path.startswith("/metadata/identity/oauth2/token"):
            assert headers["Metadata"] == "true"
            return 200, {"access_token": "token"}
        assert headers["Authorization"] == "Bearer token"
        return super().reply(method, path, body, headers)

    def answer(self, method: str, path: str, body: Any) -> Any:
        assert path.startswith("/subscriptions/s/backendAddressPools/web?api-version=")
        if method == "PUT":
            self.pool = body
        return self.pool


@contextmanager
def served(service: Service) -> Iterator[str]:
    """Serve a stand-in on loopback; yield its URL."""

    def answer(request: Request) -> Answer:
        body = json.loads(request.body) if request.body else None
        headers = {name.title(): value for name, value in request.headers.items()}
        code, content = service.reply(request.method, request.target, body, headers)
        return status(code, json.dumps(content).encode())

    with AnsweringServer(answer) as server:
        yield server.url

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Galaxy with one collection: as much of its API (v3) as ``ansible-galaxy collection install`` asks for."""

from __future__ import annotations

import hashlib
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@contextmanager
def galaxy(tarball: Path) -> Iterator[str]:
    """Serve a collection on loopback; yield what ANSIBLE_GALAXY_SERVER has to be."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.publish(tarball)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"{server.url}/"
        finally:
            server.shutdown()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def publish(self, tarball: Path) -> None:
        """Make ``answers``: path, without a slash at its end -> what is served there."""
        with tarfile.open(tarball) as archive:
            manifest = archive.extractfile("MANIFEST.json")
            assert manifest is not None
            info = json.load(manifest)["collection_info"]
        collection = f"/api/v3/collections/{info['namespace']}/{info['name']}"
        href = f"{collection}/versions/{info['version']}"
        moment = "2026-01-01T00:00:00Z"
        version: dict[str, Any] = {
            "version": info["version"],
            "href": href,
            "namespace": {"name": info["namespace"]},
            "collection": {"name": info["name"]},
            "download_url": f"{self.url}/download/{tarball.name}",
            "artifact": {
                "filename": tarball.name,
                "sha256": hashlib.sha256(tarball.read_bytes()).hexdigest(),
                "size": tarball.stat().st_size,
            },
            "metadata": {"dependencies": info["dependencies"]},
            "signatures": [],
        }
        self.answers: dict[str, Any] = {
            "/api": {"available_versions": {"v3": "v3/"}},
            collection: {"created_at": moment, "updated_at": moment, "href": collection},
            f"{collection}/versions": {"meta": {"count": 1}, "links": {"next": None}, "data": [version]},
            href: version,
            f"/download/{tarball.name}": tarball,
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        answer = self.server.answers.get(path, {})
        body = answer.read_bytes() if isinstance(answer, Path) else json.dumps(answer).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", "application/gzip" if isinstance(answer, Path) else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Stay quiet."""

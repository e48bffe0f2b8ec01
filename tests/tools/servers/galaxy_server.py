# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Galaxy with one collection: as much of its API (v3) as ``ansible-galaxy collection install`` asks for."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.servers.scripted_imds import Answer, AnsweringServer, Request, status


@contextmanager
def galaxy(tarball: Path) -> Iterator[str]:
    """Serve a collection on loopback; yield what ANSIBLE_GALAXY_SERVER has to be."""

    def answer(request: Request) -> Answer:
        found = answers.get(request.target.partition("?")[0].rstrip("/"), {})
        if isinstance(found, Path):
            return status(200, found.read_bytes(), {"Content-Type": "application/gzip"})
        return status(200 if found else 404, json.dumps(found).encode(), {"Content-Type": "application/json"})

    with AnsweringServer(answer) as server:
        answers = _answers(tarball, server.url)
        yield f"{server.url}/"


def _answers(tarball: Path, url: str) -> dict[str, Any]:
    """Return by its path, without a slash at its end, what is served."""
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
        "download_url": f"{url}/download/{tarball.name}",
        "artifact": {
            "filename": tarball.name,
            "sha256": hashlib.sha256(tarball.read_bytes()).hexdigest(),
            "size": tarball.stat().st_size,
        },
        "metadata": {"dependencies": info["dependencies"]},
        "signatures": [],
    }
    return {
        "/api": {"available_versions": {"v3": "v3/"}},
        collection: {"created_at": moment, "updated_at": moment, "href": collection},
        f"{collection}/versions": {"meta": {"count": 1}, "links": {"next": None}, "data": [version]},
        href: version,
        f"/download/{tarball.name}": tarball,
    }

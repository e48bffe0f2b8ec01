# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``runner_install`` does on a VM: this text is sent there with a request, and answers with one line of JSON.

Sent whole, it has a fiftieth of what a module of Ansible's would bring along. Standard library, Python 3.9, as root.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

MARK = "runner-install:"  # before the answer: what a login shell or sudo writes is not it
_SECONDS = 300  # for one command: the start of the service may take four minutes


def digest_of(content: bytes, archive: bool) -> str | None:
    """Return the SHA-256 of a file in hexadecimal. Of a ZIP archive: of the names and the contents of its files.

    Compression does not count, since one zlib does not compress as another does. None for an archive that is damaged.
    """
    if archive:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as files:
                digests = [(name, hashlib.sha256(files.read(name)).hexdigest()) for name in sorted(files.namelist())]
        except Exception:  # ZipFile raises almost anything where the content is damaged
            return None
        content = json.dumps(digests).encode()
    return hashlib.sha256(content).hexdigest()


def look(request: dict[str, Any]) -> dict[str, Any]:
    """Return what of the request is not so yet. Nothing is changed."""
    service = request.get("service")
    return {
        "directories": [entry["path"] for entry in request["directories"] if not _directory_is_so(entry)],
        "files": [_compare(entry) for entry in request["files"]],
        "service": _look_at(service["name"]) if service else None,
    }


def apply(request: dict[str, Any]) -> dict[str, Any]:
    """Make it so: files first, all of them checked before the first is replaced, then the service."""
    for entry in request["directories"]:
        directory = Path(entry["path"])
        directory.mkdir(parents=True, exist_ok=True)
        os.chown(directory, 0, 0)
        directory.chmod(entry["mode"])
    wanted = [entry for entry in request["files"] if _compare(entry)["differs"]]
    drafts: dict[str, Path] = {}
    backups: list[dict[str, Any]] = []
    try:
        for entry in wanted:
            drafts[entry["path"]] = _draft(entry)
        for entry in wanted:
            if entry["unit"]:
                _verify_unit(drafts[entry["path"]], Path(entry["path"]).name)
        for entry in wanted:
            path = Path(entry["path"])
            if entry["backup"] and path.exists():
                backups.append({"path": str(path), "backup": str(_back_up(path)), "mode": entry["mode"]})
            drafts[entry["path"]].replace(path)
            del drafts[entry["path"]]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return {"error": str(error), "backups": backups, "did": None}
    finally:
        for draft in drafts.values():
            draft.unlink()
    did, failure = None, ""
    if request.get("service"):
        did, failure = _serve(request["service"], [entry["path"] for entry in wanted])
    return {"error": failure, "backups": backups, "did": did}


def remove(request: dict[str, Any]) -> dict[str, Any]:
    """Stop and disable the service, and remove files and directories; a rehearsal only reports what it would do."""
    name = request["service"]["name"]
    found = _look_at(name)
    paths = [path for path in map(Path, request["absent"]) if path.exists() or path.is_symlink()]
    runs, error = found["active"] or found["enabled"], ""
    if not request["rehearsal"]:
        if runs:
            error = _systemctl("disable", "--now", name)
        for path in [] if error else paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        if paths and not error:
            error = _systemctl("daemon-reload")
    return {"error": error, "removed": [str(path) for path in paths], "did": "stopped" if runs else None}


def restore(request: dict[str, Any]) -> dict[str, Any]:
    """Put backups back, and restart the service."""
    for entry in request["restore"]:
        draft = _draft_path(Path(entry["path"]))
        shutil.copyfile(entry["backup"], draft)
        draft.chmod(entry["mode"])
        draft.replace(entry["path"])
    name = request["service"]["name"]
    error = _systemctl("daemon-reload") or _systemctl("restart", name)
    return {"error": error, "backups": [], "did": "restarted"}


def prune(request: dict[str, Any]) -> dict[str, Any]:
    """Remove the oldest files of each pattern."""
    removed = []
    for entry in request["keep"]:
        pattern = Path(entry["pattern"])
        found = [path for path in pattern.parent.glob(pattern.name) if str(path) not in entry["but"]]
        for path in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)[entry["number"] :]:
            path.unlink()
            removed.append(str(path))
    return {"removed": removed}


def _directory_is_so(entry: dict[str, Any]) -> bool:
    directory = Path(entry["path"])
    return directory.is_dir() and _attributes_are_so(directory, entry)


def _attributes_are_so(path: Path, entry: dict[str, Any]) -> bool:
    state = path.stat()
    return (state.st_mode & 0o7777, state.st_uid, state.st_gid) == (entry["mode"], 0, 0)


def _compare(entry: dict[str, Any]) -> dict[str, Any]:
    """Return whether a file differs from what is wanted, and its text if that may be shown."""
    path = Path(entry["path"])
    if path.is_symlink() or not path.is_file():
        return {"path": entry["path"], "differs": True, "digest": None, "text": ""}
    content = path.read_bytes()
    digest = digest_of(content, entry["archive"])
    return {
        "path": entry["path"],
        "differs": digest != entry["digest"] or not _attributes_are_so(path, entry),
        "digest": digest,
        "text": content.decode("utf-8", "replace") if entry["show"] else "",
    }


def _draft_path(path: Path) -> Path:
    # In the same directory: a rename there is atomic, and the file gets the security context of its place.
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    return Path(draft)


def _draft(entry: dict[str, Any]) -> Path:
    source = entry["source"]
    content: bytes = entry["content"].encode() if source is None else Path(source).read_bytes()
    if digest_of(content, entry["archive"]) != entry["digest"]:
        raise ValueError(f"{entry['path']}: what arrived is not what was sent.")
    draft = _draft_path(Path(entry["path"]))
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chown(draft, 0, 0)
        draft.chmod(entry["mode"])
    except BaseException:  # also a signal: no draft is left behind
        draft.unlink()
        raise
    return draft


def _verify_unit(draft: Path, name: str) -> None:
    """Have systemd judge a unit before it replaces another."""
    with tempfile.TemporaryDirectory() as directory:
        # It wants the file under the name of the unit.
        copy = Path(directory, name)
        shutil.copyfile(draft, copy)
        done = _run("systemd-analyze", "verify", str(copy))
    if done.returncode:
        raise ValueError(f"systemd does not accept the unit: {done.stderr.strip()}")


def _back_up(path: Path) -> Path:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    number, backup = 0, path.with_name(f"{path.name}.{stamp}~")
    while backup.exists():
        number += 1
        backup = path.with_name(f"{path.name}.{stamp}.{number}~")
    shutil.copy2(path, backup)
    return backup


def _look_at(name: str) -> dict[str, bool]:
    shown = _run("systemctl", "show", "--property=ActiveState,UnitFileState,NeedDaemonReload", name).stdout
    found = dict(line.partition("=")[::2] for line in shown.splitlines())
    return {
        "active": found.get("ActiveState") in ("active", "activating", "reloading"),
        "enabled": found.get("UnitFileState") == "enabled",
        "stale": found.get("NeedDaemonReload") == "yes",
    }


def _serve(service: dict[str, Any], touched: list[str]) -> tuple[str | None, str]:
    """Return what was done to the service, and what went wrong."""
    name = service["name"]
    found = _look_at(name)
    did = None
    if found["stale"] or any(path.endswith(f"/{name}") for path in touched):
        error = _systemctl("daemon-reload")
        if error:
            return None, error
    if not found["enabled"]:
        error = _systemctl("enable", name)
        if error:
            return None, error
        did = "enabled"
    if not found["active"]:
        return "started", _systemctl("start", name)
    if set(touched) & set(service["restart_for"]):
        return "restarted", _systemctl("restart", name)
    if set(touched) & set(service["reload_for"]):
        return "reloaded", _systemctl("reload", name)
    return did, ""


def _systemctl(*arguments: str) -> str:
    """Return what went wrong."""
    command = ("systemctl", *arguments)
    try:
        done = _run(*command)
    except subprocess.TimeoutExpired:  # report all the same what was backed up before
        return f"{' '.join(command)}: it has not ended within {_SECONDS} s"
    if not done.returncode:
        return ""
    return f"{' '.join(command)}: {(done.stderr or done.stdout).strip() or done.returncode}"


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(  # noqa: S603 - no shell, and the programs are systemd's
        command, capture_output=True, text=True, env=environment, timeout=_SECONDS, check=False
    )


def main(text: str) -> None:
    """Do what the request asks for, and write the answer."""
    request = json.loads(text)
    work = {"look": look, "apply": apply, "remove": remove, "restore": restore, "prune": prune}[request["do"]]
    os.umask(0o077)
    try:
        answer = work(request)
    except (OSError, subprocess.SubprocessError) as error:
        answer = {"error": str(error)}
    sys.stdout.write(f"{MARK}{json.dumps(answer)}\n")

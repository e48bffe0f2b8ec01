# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from forewarn.errors import InputError
from forewarn.runner.state.directories import StateDirectory

STRANGER = 54321  # a user that no machine has
HOLDER = """
import subprocess, sys
from forewarn.runner.state.directories import StateDirectory
directory = StateDirectory(sys.argv[1])
directory.prepare()
directory.lock()
child = subprocess.Popen(["sleep", "60"])  # a hook must not inherit the lock
print(child.pid, flush=True)
sys.stdin.read()
"""


def refusal(directory: StateDirectory, step: str) -> InputError:
    with pytest.raises(InputError) as caught:
        getattr(directory, step)()
    return caught.value


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[StateDirectory]:
    directory = StateDirectory(str(tmp_path / "state"))
    directory.prepare()
    yield directory
    directory.release()


def test_directory_and_parents_are_created_private(tmp_path: Path) -> None:
    previous = os.umask(0)  # the most careless there is
    try:
        StateDirectory(str(tmp_path / "local" / "state" / "forewarn")).prepare()
    finally:
        os.umask(previous)
    for part in ("local", "local/state", "local/state/forewarn"):
        assert stat.S_IMODE((tmp_path / part).stat().st_mode) == 0o700
    StateDirectory(str(tmp_path / "local" / "state" / "forewarn")).prepare()


def test_one_that_others_can_write_is_refused(directory: StateDirectory) -> None:
    for mode in (0o770, 0o707, 0o1777):
        Path(directory.path).chmod(mode)
        assert "can be changed by others: it is writable by" in refusal(directory, "prepare").message
    Path(directory.path).chmod(0o755)  # as StateDirectory= makes it
    directory.prepare()


@pytest.mark.root(reason="only root can give a directory away")
def test_one_of_another_user_is_refused(directory: StateDirectory) -> None:
    os.chown(directory.path, STRANGER, -1)
    assert f"it belongs to user {STRANGER}" in refusal(directory, "prepare").message


def test_none_is_made_where_others_could_replace_it(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    path = tmp_path / "open" / "a" / "b"
    assert refusal(StateDirectory(str(path)), "prepare").message.startswith(
        f"directory above the state directory {tmp_path}/open can be changed by others: it is writable by"
    )
    assert not path.parent.exists()
    (tmp_path / "open").chmod(0o1777)  # as /tmp is: what is ours there nobody can replace
    StateDirectory(str(path)).prepare()


def test_link_is_followed_unless_dangling(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    linked = StateDirectory(str(tmp_path / "link"))
    linked.prepare()
    (tmp_path / "real").chmod(0o777)
    assert f"{tmp_path / 'real'} is writable by" in refusal(linked, "prepare").message
    (tmp_path / "dangling").symlink_to("nothing")
    assert os.strerror(errno.ENOENT) in refusal(StateDirectory(str(tmp_path / "dangling")), "prepare").message


def test_failed_creation_is_reported_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    assert "is not a directory" in refusal(StateDirectory(str(tmp_path / "file")), "prepare").message
    assert "not a directory" in str(refusal(StateDirectory(str(tmp_path / "file" / "x")), "prepare")).lower()
    monkeypatch.setattr(os, "mkdir", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    error = refusal(StateDirectory(str(tmp_path / "x" / "y")), "prepare")
    assert error.message == (
        f"state directory {tmp_path}/x/y cannot be made: {tmp_path}/x: {os.strerror(errno.ENOSPC)}."
    )
    assert error.hint == "Make it, or name another with --state."


def test_second_runner_is_refused_with_the_holder(directory: StateDirectory) -> None:
    directory.lock()
    second = StateDirectory(directory.path)
    error = refusal(second, "lock")
    assert error.message == f"state directory {directory.path} is in use by another runner, process {os.getpid()}."
    assert error.exit_code == 2
    assert "--state" in error.hint
    directory.release()
    second.lock()
    second.release()


def test_nobody_else_can_open_what_is_locked(directory: StateDirectory) -> None:
    Path(directory.path).chmod(0o755)
    directory.lock()
    assert stat.S_IMODE(Path(directory.path, "lock").stat().st_mode) == 0o600


@pytest.mark.parametrize("noted", ["", "no number\n", "-1\n", "0\n", "9" * 30, str(2**31 - 1)])
def test_unknown_holder_is_not_named(directory: StateDirectory, noted: str) -> None:
    directory.lock()
    Path(directory.path, "lock").write_text(noted)
    error = refusal(StateDirectory(directory.path), "lock")
    assert error.message == f"state directory {directory.path} is in use by another runner."


def test_lock_ends_with_the_runner_despite_hooks(tmp_path: Path, package: Path) -> None:
    path = str(tmp_path / "state")
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    hook = 0
    try:
        assert holder.stdout
        hook = int(holder.stdout.readline())
        second = StateDirectory(path)
        assert refusal(second, "lock").message.endswith(f"by another runner, process {holder.pid}.")
        holder.kill()
        holder.wait(10)
        os.kill(hook, 0)  # still there
        second.prepare()
        second.lock()
        assert Path(path, "lock").read_text() == f"{os.getpid()}\n"
        second.release()
    finally:
        holder.kill()
        if hook:
            os.kill(hook, 9)
        holder.communicate()


def test_a_full_disk_does_not_weaken_the_lock(directory: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    directory.lock()
    assert "in use by another runner." in refusal(StateDirectory(directory.path), "lock").message


@pytest.mark.parametrize("used_before", [True, False])
def test_read_only_file_system_can_be_locked(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch, used_before: bool
) -> None:
    if used_before:
        directory.lock()
        directory.release()
    real = os.open

    def read_only(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", read_only)
    directory.lock()
    assert "in use by another runner" in refusal(StateDirectory(directory.path), "lock").message


def test_one_that_cannot_be_opened_is_reported(directory: StateDirectory) -> None:
    Path(directory.path).rmdir()
    error = refusal(directory, "lock")
    assert error.message == f"state directory {directory.path} cannot be used: {directory.path}/lock: " + (
        os.strerror(errno.ENOENT) + "."
    )


def test_somebody_elses_is_not_locked_in_another_way(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: str, flags: int, mode: int = 0o777) -> int:
        if not flags & os.O_DIRECTORY:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        pytest.fail("the directory was opened instead")

    monkeypatch.setattr(os, "open", denied)
    error = refusal(directory, "lock")
    assert "/lock: Permission denied. Run as its owner, or name another with --state." in str(error)

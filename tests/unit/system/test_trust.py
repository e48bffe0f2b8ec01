# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import grp
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from forewarn.errors import InputError
from forewarn.system.trust import check_directory, check_file, check_program
from hypothesis import given
from hypothesis import strategies as st

STRANGER = 54321  # a user that no machine has
needs_root = pytest.mark.root(reason="only root can give a file away")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Return a file that is as it should be, two directories deep."""
    path = tmp_path / "etc" / "forewarn" / "policy.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    for each in (path.parent.parent, path.parent):
        each.chmod(0o755)
    path.chmod(0o644)
    return path


def complaint(path: Path | str, check: Callable[[str], None] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        (check or (lambda text: check_file(text, "artifact")))(str(path))
    return str(caught.value)


def test_file_writable_by_root_and_owner_is_trusted(policy: Path) -> None:
    check_file(str(policy), "artifact")
    policy.chmod(0o400)
    check_file(str(policy), "artifact")


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666, 0o602])
def test_a_file_that_others_can_write_is_refused(policy: Path, mode: int) -> None:
    policy.chmod(mode)
    text = complaint(policy)
    assert text.startswith(f"artifact {policy} can be changed by others: it is writable by ")
    assert f"(mode {mode:04o}). Run: chmod " in text
    assert text.endswith(f"-w {policy}")


def test_message_names_directory_group_and_remedy(policy: Path) -> None:
    gid = policy.parent.stat().st_gid
    policy.parent.chmod(0o775)
    assert complaint(policy) == (
        f"artifact {policy} can be changed by others: {policy.parent} is writable by group {grp.getgrgid(gid).gr_name}"
        f" (mode 0775). Run: chmod g-w {policy.parent}"
    )


def test_what_the_message_says_to_run_helps(policy: Path) -> None:
    policy.parent.parent.chmod(0o777)
    policy.chmod(0o666)
    for _ in range(2):
        command = complaint(policy).rpartition("Run: ")[2]
        assert os.system(command) == 0
    check_file(str(policy), "artifact")


@pytest.mark.parametrize("above", [1, 2])
def test_every_directory_above_counts(policy: Path, above: int) -> None:
    directory = policy.parents[above - 1]
    directory.chmod(0o757)
    assert f"{directory} is writable by everybody (mode 0757)" in complaint(policy)


def test_a_sticky_directory_above_is_fine(policy: Path) -> None:
    policy.parent.chmod(0o1777)
    check_file(str(policy), "artifact")


@needs_root
@pytest.mark.parametrize("above", [0, 1, 2])
def test_another_owner_is_refused(policy: Path, above: int) -> None:
    theirs = (policy, *policy.parents)[above]
    os.chown(theirs, STRANGER, -1)
    text = complaint(policy)
    assert f"belongs to user {STRANGER}. Run: chown root {theirs}" in text


@needs_root
def test_own_user_is_trusted_like_root(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(policy, STRANGER, -1)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    check_file(str(policy), "artifact")


@needs_root
def test_foreign_file_in_a_sticky_directory_is_refused(policy: Path) -> None:
    policy.parent.chmod(0o1777)
    os.chown(policy, STRANGER, -1)
    assert "it belongs to user" in complaint(policy)


def test_link_is_followed_and_both_paths_are_checked(policy: Path, tmp_path: Path) -> None:
    link = tmp_path / "links" / "current"
    link.parent.mkdir(mode=0o755)
    link.symlink_to("../etc/./forewarn/policy.json")
    check_file(str(link), "artifact")
    policy.parent.chmod(0o777)
    assert f"artifact {link} can be changed by others: {policy.parent} is" in complaint(link)
    policy.parent.chmod(0o755)
    link.parent.chmod(0o777)
    assert f"artifact {link} can be changed by others: {link.parent} is" in complaint(link)


def test_linked_directory_is_resolved_like_the_kernel(policy: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(policy.parent)
    # The kernel takes the ".." of where the link leads to: etc, not tmp_path.
    check_file(f"{tmp_path}/elsewhere/../forewarn//policy.json", "artifact")
    (tmp_path / "etc" / "forewarn" / "inner").mkdir(mode=0o755)
    policy.parent.chmod(0o777)
    assert str(policy.parent) in complaint(f"{tmp_path}/etc/forewarn/inner/../../forewarn/policy.json")


@needs_root
def test_a_link_of_somebody_else_is_refused(policy: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(policy)
    os.chown(link, STRANGER, -1, follow_symlinks=False)
    text = complaint(link)
    assert text.endswith(f"it belongs to user {STRANGER}. Run: chown -h root {link}")


def test_a_relative_path_is_checked_from_the_root(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(policy.parent)
    check_file("policy.json", "artifact")
    policy.parent.parent.chmod(0o777)
    assert f"artifact policy.json can be changed by others: {policy.parent.parent} is" in complaint("policy.json")


def test_what_is_no_file_is_said_so(policy: Path, tmp_path: Path) -> None:
    assert complaint(policy.parent) == f"artifact {policy.parent} is not a regular file."
    assert complaint(tmp_path / "none") == f"artifact {tmp_path / 'none'}: {os.strerror(errno.ENOENT)}."
    assert os.strerror(errno.ENOTDIR) in complaint(policy / "x")
    assert "no path can look like this" in complaint("/etc/\0x")
    assert "no path can look like this" in complaint("/etc/\ud800")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "not a regular file" in complaint(pipe)


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert os.strerror(errno.ELOOP) in complaint(tmp_path / "a")


def test_an_access_list_counts(policy: Path) -> None:
    # A POSIX access list as the kernel stores it: version 2, then tag, rights, id; user STRANGER may write.
    entries = [(0x01, 6, -1), (0x02, 6, STRANGER), (0x04, 4, -1), (0x10, 6, -1), (0x20, 4, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(policy, "system.posix_acl_access", acl)
    except OSError as error:
        pytest.skip(f"no access lists here: {error}")
    assert "writable by group" in complaint(policy)


@given(mode=st.integers(0, 0o7777))
def test_mode_is_refused_if_others_may_write(tmp_path_factory: pytest.TempPathFactory, mode: int) -> None:
    path = tmp_path_factory.getbasetemp() / "any-mode"
    path.touch(exist_ok=True)
    path.chmod(mode)
    mode = stat.S_IMODE(path.stat().st_mode)  # not everybody may set every bit
    if mode & 0o022:
        assert f"(mode {mode:04o})" in complaint(path)
    else:
        check_file(str(path), "artifact")


def test_a_program_is_a_trusted_absolute_executable_file(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy.chmod(0o755)
    check_program(str(policy))
    policy.chmod(0o775)
    assert complaint(policy, check_program).startswith(f"hook program {policy} can be changed by others: it is")
    policy.chmod(0o644)
    assert complaint(policy, check_program) == f"hook program {policy} may not be executed. Run: chmod +x {policy}"
    monkeypatch.chdir(policy.parent)
    assert "is not an absolute path. Write the whole path" in complaint("policy.json", check_program)
    assert "is not an absolute path" in complaint("", check_program)


def test_the_programs_of_the_system_pass() -> None:
    check_program("/bin/sh")


def test_a_command_in_a_message_can_be_pasted(policy: Path) -> None:
    odd = policy.parent / "it's; reboot"
    odd.write_text("")
    odd.chmod(0o666)
    assert os.system(complaint(odd).rpartition("Run: ")[2]) == 0
    check_file(str(odd), "artifact")


def test_a_directory_of_state_may_not_be_shared(policy: Path) -> None:
    directory = policy.parent
    check_directory(str(directory), "state directory")
    assert "is not a directory" in complaint(policy, lambda path: check_directory(path, "state directory"))
    directory.chmod(0o1777)
    assert "writable by group" in complaint(directory, lambda path: check_directory(path, "state directory"))
    check_directory(str(directory), "state directory", shared=True)
    directory.chmod(0o777)
    assert "chmod go-w" in complaint(directory, lambda path: check_directory(path, "state directory", shared=True))

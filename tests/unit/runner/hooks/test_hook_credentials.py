# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The credentials that a hook of one's own names: it finds these and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn.events import Event
from forewarn.runner.hooks.commands import Command, HookContext, HookError, HookSettings, command
from forewarn.runner.hooks.needs import examine

OCCASION = HookContext("prepare", None, 1, False, Event("E"), "web_0", {"output": "approve"}, None, None, 0)


@pytest.fixture
def settings(tmp_path: Path) -> HookSettings:
    tmp_path.chmod(0o700)
    given = tmp_path / "given"
    given.mkdir()
    for name in ("drain", "pager", "store"):
        (given / name).write_text(f"s3cret of {name}\n")
        (given / name).chmod(0o400)
    return HookSettings(credentials_directory=str(given), memory_directory=str(tmp_path / "state" / "hooks"))


def made(settings: HookSettings, *names: str, **more: Any) -> Command:
    return command({"run": ["/bin/true"], "credentials": list(names), **more}, OCCASION, settings, 9.0)


def handed(made: Command) -> dict[str, str]:
    """Return what a hook finds in its directory."""
    directory = Path(made.environment["CREDENTIALS_DIRECTORY"])
    return {path.name: path.read_text() for path in directory.iterdir()}


def test_hook_finds_exactly_its_named_credentials(settings: HookSettings) -> None:
    found = made(settings, "drain", "pager")
    assert handed(found) == {"drain": "s3cret of drain\n", "pager": "s3cret of pager\n"}
    assert set(found.secrets) == {b"s3cret of drain\n", b"s3cret of pager\n"}
    assert handed(made(settings, "pager")) == {"pager": "s3cret of pager\n"}
    assert handed(found) == {"drain": "s3cret of drain\n", "pager": "s3cret of pager\n"}  # as long as it runs
    assert not [word for word in (*found.argv, *found.environment.values(), str(found.stdin)) if "s3cret" in word]


def test_a_hook_that_names_none_has_no_directory(settings: HookSettings) -> None:
    found = command({"run": ["/bin/true"]}, OCCASION, settings, 9.0)
    assert "CREDENTIALS_DIRECTORY" not in found.environment
    assert found.secrets == ()


def test_changed_credential_is_found_as_it_is(settings: HookSettings, tmp_path: Path) -> None:
    made(settings, "drain")
    (tmp_path / "given").rename(tmp_path / "other")
    (tmp_path / "other" / "drain").chmod(0o600)
    (tmp_path / "other" / "drain").write_text("newer")
    assert handed(made(settings._replace(credentials_directory=str(tmp_path / "other")), "drain")) == {"drain": "newer"}


def test_nothing_of_a_credential_is_kept(settings: HookSettings) -> None:
    made(settings, "drain")
    kept = [path for path in Path(settings.memory_directory or "").rglob("*") if not path.is_symlink()]
    assert [path for path in kept if not path.is_dir()] == []
    assert [oct(path.stat().st_mode & 0o777) for path in kept] == ["0o700"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"credentials_directory": None},
            "there is no credential drain: the runner has none; add LoadCredential=drain:",
        ),
        ({"credentials_directory": "/nowhere"}, "the secret /nowhere/drain"),
        ({"memory_directory": None}, "no state directory"),
        ({"memory_directory": "/dev/null/x"}, "the credentials cannot be handed over: /dev/null/x: Not a directory"),
    ],
)
def test_missing_credential_prevents_the_hook(
    settings: HookSettings, changes: dict[str, str | None], says: str
) -> None:
    with pytest.raises(HookError) as caught:
        made(settings._replace(**changes), "drain")
    assert says in caught.value.message


def test_a_credential_that_everybody_can_read_is_none(settings: HookSettings, tmp_path: Path) -> None:
    (tmp_path / "given" / "drain").chmod(0o444)
    with pytest.raises(HookError, match="readable by everybody"):
        made(settings, "drain")


def test_what_is_missing_is_known_before_an_event(settings: HookSettings) -> None:
    hooks = [("web", "drain", {"run": ["/bin/true"], "credentials": ["drain", "absent"]})]
    needs = examine(hooks, settings.credentials_directory)
    assert [need.name for need in needs.credentials] == ["drain", "absent"]
    (missing,) = needs.missing()
    assert missing.startswith("rule drain of policy web: there is no credential absent in ")
    assert examine(hooks, None, {"drain", "absent"}).missing() == ()

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of the role's variables is true."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from forewarn.cli.run.config import _OPTIONS
from forewarn.events import LATEST_API_VERSION
from jinja2.nativetypes import NativeEnvironment

UNSAID = {"forewarn_policies", "forewarn_dry_run"}  # which have no default: whether they are said makes a difference
TAGS = {"forewarn_install", "forewarn_service", "forewarn_health"}


@pytest.fixture(scope="module")
def role(repository: Path) -> Path:
    return repository / "roles" / "forewarn"


@pytest.fixture(scope="module")
def options(role: Path) -> dict[str, dict[str, Any]]:
    spec = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())
    found: dict[str, dict[str, Any]] = spec["argument_specs"]["main"]["options"]
    return found


def test_the_documented_defaults_are_the_defaults(role: Path, options: dict[str, dict[str, Any]]) -> None:
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text())
    assert {name: option["default"] for name, option in options.items() if "default" in option} == defaults
    assert options.keys() - defaults.keys() == UNSAID
    assert defaults["forewarn_api_version"] == LATEST_API_VERSION


def test_every_variable_has_a_type_and_a_description(options: dict[str, dict[str, Any]]) -> None:
    for name, option in options.items():
        assert option["type"], name
        assert option["description"], name
        assert (option["type"] == "list") == ("elements" in option), name


def test_documented_variables_are_those_in_use(role: Path, options: dict[str, dict[str, Any]]) -> None:
    files = [path for name in ("tasks", "templates", "vars", "handlers") for path in (role / name).rglob("*.*")]
    used = {name for path in files for name in re.findall(r"(?<!_)\bforewarn_[a-z_]+", path.read_text())} - TAGS
    assert used == options.keys()


def test_every_variable_is_converted_in_vars_main(role: Path, options: dict[str, dict[str, Any]]) -> None:
    """The variables themselves may be texts: tasks and templates use what ``vars/main.yml`` makes of them."""
    variables = yaml.safe_load((role / "vars" / "main.yml").read_text())
    assert {f"__{name}" for name in options} <= variables.keys()
    for path in (path for name in ("tasks", "templates") for path in (role / name).rglob("*.*")):
        code = "".join(line for line in path.read_text().splitlines(keepends=True) if not line.startswith("#"))
        used = set(re.findall(r"(?<!_)\bforewarn_[a-z_]+", code)) & options.keys()
        assert used <= ({"forewarn_dry_run"} if path.name == "compare.yml" else set()), path  # whether it is said


def test_check_entry_point_has_the_same_variables(role: Path, options: dict[str, dict[str, Any]]) -> None:
    spec = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())
    assert spec["argument_specs"]["check"]["options"] == options


def test_the_readme_names_no_variable_that_is_none(role: Path, repository: Path, options: dict[str, Any]) -> None:
    name = re.compile(r"\bforewarn_[a-z_]+")
    playbooks = {found for path in (repository / "playbooks").iterdir() for found in name.findall(path.read_text())}
    for path in (role / "README.md", repository / "docs" / "rollout.md"):
        misspelled = {"forewarn_polices"}  # an example
        assert set(name.findall(path.read_text())) <= options.keys() | playbooks | TAGS | misspelled


def test_the_configuration_has_only_what_the_runner_reads(role: Path) -> None:
    variables = yaml.safe_load((role / "vars" / "main.yml").read_text())
    template = (role / "templates" / "config.json.j2").read_text()
    named = set(re.findall(r"^     '([a-z_]+)':", template, re.MULTILINE))
    assert named == {"api_version", "artifact", "interval", "params"}
    assert variables["__forewarn_settings"].keys() | named <= _OPTIONS.keys()


def test_the_role_has_the_librarys_policy(role: Path, repository: Path) -> None:
    """Everything that works at run time is in the role; the library at the root is for people to copy from."""
    for name in ("observe-only.yml", "observe-only.test.yml"):
        ours, theirs = (
            "".join(line for line in path.read_text().splitlines(keepends=True) if "yaml-language-server" not in line)
            for path in (role / "files" / "policies" / name, repository / "policies" / name)
        )
        assert ours == theirs


@pytest.fixture(scope="module")
def typed(role: Path) -> Callable[[str, str], Any]:
    """Return a function that returns what ``vars/main.yml`` makes of a variable that is a text, as Ansible would."""
    variables = yaml.safe_load((role / "vars" / "main.yml").read_text())
    environment = NativeEnvironment()
    environment.filters["split"] = str.split
    environment.tests["match"] = lambda value, pattern: re.match(pattern, str(value)) is not None

    def value(name: str, text: str) -> Any:
        return environment.from_string(variables[f"__{name}"]).render({**variables, name.removesuffix("_given"): text})

    return value


@pytest.mark.parametrize("name", ["purge", "dry_run", "allow_endpoint", "group_create"])
def test_a_text_for_false_is_false(name: str, typed: Callable[[str, str], Any]) -> None:
    """With -e forewarn_purge=false the journal stays."""
    assert [typed(f"forewarn_{name}", text) for text in ("false", "no", "0")] == [False] * 3
    assert [typed(f"forewarn_{name}", text) for text in ("true", "yes", "1")] == [True] * 3


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("credentials", {"token": "hunter2"}, "in forewarn_credential_files."),
        ("group_files", {"ca_file": "ca.pem", "key_file": "key.pem"}, "in forewarn_group_store."),
        ("vm_name", "web_0", "Leave it out."),
        ("group_create", True, "on the first VM."),
    ],
)
def test_an_image_with_a_secret_is_refused(role: Path, variable: str, value: object, said: str) -> None:
    """Nor does it get a name, or the store a request. ``group_files`` may have certificates."""
    variables = yaml.safe_load((role / "vars" / "main.yml").read_text())
    template = NativeEnvironment().from_string(variables["__forewarn_unfit_for_images"])
    unset = {"credentials": {}, "group_files": {"ca_file": "ca.pem"}, "vm_name": "", "group_create": False}
    given = {f"__forewarn_{name}": each for name, each in {**unset, variable: value}.items()}
    found: Any = template.render(given)
    (refusal,) = found
    assert f"forewarn_{variable}" in refusal
    assert refusal.endswith(said)
    nothing: Any = template.render({f"__forewarn_{name}": each for name, each in unset.items()})
    assert nothing == []


def test_text_of_writable_paths_is_split_at_commas(typed: Callable[[str, str], Any]) -> None:
    """And not a path for each of its characters, the first of which is the root."""
    assert typed("forewarn_hooks_write_given", "/srv/app") == ["/srv/app"]
    assert typed("forewarn_hooks_write_given", "/srv/app, /srv/b") == ["/srv/app", "/srv/b"]

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which machine asks the default address: only one that is known to be in Azure, or declared to be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from forewarn.imds.azure import asset_tag, platform_problem
from forewarn.imds.endpoint import DEFAULT_ENDPOINT

AZURE = "7783-7084-3265-9085-8269-3286-77\n"  # as every VM in Azure shows it
LAPTOP = "No Asset Tag\n"


@pytest.fixture
def tag(tmp_path: Path) -> Path:
    """Return the file of a machine that is not a VM in Azure."""
    path = tmp_path / "chassis_asset_tag"
    path.write_text(LAPTOP)
    return path


def test_azure_vm_is_recognised_by_its_asset_tag(tag: Path) -> None:
    tag.write_text(AZURE)
    assert asset_tag(str(tag)) == AZURE.strip()
    assert platform_problem(None, DEFAULT_ENDPOINT, {}, str(tag)) is None


@pytest.mark.parametrize("content", [LAPTOP, "", "Amazon EC2\n", AZURE.replace("77", "78"), "\xff"])
def test_any_other_machine_is_not(tag: Path, content: str) -> None:
    tag.write_text(content, encoding="latin-1")
    why = platform_problem(None, DEFAULT_ENDPOINT, {}, str(tag))
    assert why is not None
    assert why.startswith(f"this machine is not a VM in Azure: its chassis asset tag ({tag}) is ")


def test_neither_is_one_that_shows_no_tag(tmp_path: Path) -> None:
    """As in a container. /sys may also be closed to us, or have a directory there."""
    for path in (tmp_path / "absent", tmp_path):
        assert asset_tag(str(path)) is None
        assert platform_problem(None, DEFAULT_ENDPOINT, {}, str(path)) == (
            f"nothing says that this machine is a VM in Azure: {path} cannot be read"
        )


@pytest.mark.parametrize(
    ("option", "endpoint", "environ", "doubted"),
    [
        (None, DEFAULT_ENDPOINT, {}, True),
        ("auto", DEFAULT_ENDPOINT, {}, True),  # no lease names another
        (None, DEFAULT_ENDPOINT, {"FOREWARN_ENDPOINT": "auto"}, True),
        (None, DEFAULT_ENDPOINT, {"FOREWARN_ENDPOINT": ""}, True),
        (None, DEFAULT_ENDPOINT, {"FOREWARN_PLATFORM": ""}, True),
        (None, DEFAULT_ENDPOINT, {"FOREWARN_PLATFORM": "aws"}, True),
        ("auto", "http://168.63.129.16", {}, False),  # that lease is Azure's
        ("http://127.0.0.1:8254", "http://127.0.0.1:8254", {}, False),
        (None, "http://127.0.0.1:8254", {"FOREWARN_ENDPOINT": "http://127.0.0.1:8254"}, False),
        (DEFAULT_ENDPOINT, DEFAULT_ENDPOINT, {}, False),  # somebody means it
        (None, DEFAULT_ENDPOINT, {"FOREWARN_ENDPOINT": DEFAULT_ENDPOINT}, False),
        (None, DEFAULT_ENDPOINT, {"FOREWARN_PLATFORM": "azure"}, False),
        ("auto", DEFAULT_ENDPOINT, {"FOREWARN_PLATFORM": "azure"}, False),
    ],
)
def test_only_the_default_address_is_doubted(
    tag: Path, option: str | None, endpoint: str, environ: Mapping[str, str], doubted: bool
) -> None:
    assert (platform_problem(option, endpoint, environ, str(tag)) is not None) is doubted


def test_a_wrong_platform_is_named(tag: Path) -> None:
    why = platform_problem(None, DEFAULT_ENDPOINT, {"FOREWARN_PLATFORM": "aws"}, str(tag))
    assert why is not None
    assert why.endswith("and FOREWARN_PLATFORM is 'aws', not 'azure'")

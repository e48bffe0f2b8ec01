# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Python for a VM with Windows the control node accepts, and what it says of others."""

from __future__ import annotations

import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from forewarn.errors import InputError
from forewarn.fleet.windows_python import windows_python
from tools.sites.windows_plays import embeddable


@pytest.mark.parametrize(("machine", "architecture"), [(0x8664, "AMD64"), (0xAA64, "ARM64"), (0x014C, "x86")])
def test_embeddable_distribution_is_recognised(tmp_path: Path, machine: int, architecture: str) -> None:
    given = embeddable(tmp_path / "python ü.zip", 12, machine)
    assert windows_python({**given, "sha256": given["sha256"].upper()}, Path) == {
        "zip": given["zip"],
        "directory": f"python-{given['sha256'][:12]}",
        "version": "3.12",
        "architecture": architecture,
    }


def test_program_without_header_has_unknown_architecture(tmp_path: Path) -> None:
    given = embeddable(tmp_path / "python.zip", machine=0x1234)
    assert windows_python(given, Path)["architecture"] == "an unknown architecture"


@pytest.mark.parametrize("path", [r"C:\Program Files\Python313\python.exe", r"d:\python.exe"])
def test_an_installed_one_is_a_full_path(path: str) -> None:
    assert windows_python(path, Path) == windows_python({"path": path}, Path) == {"path": path}


@pytest.mark.parametrize(
    "path",
    [
        "python.exe",
        r"\python.exe",
        r"C:\Python",
        r"C:\Pythön\python.exe",
        'C:\\"Python"\\python.exe',
        r"C:\%USER%\python.exe",
        "/usr/bin/python3",
        "C:/Python313/python.exe",
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(InputError, match="not the full path of a python"):
        windows_python(path, Path)


@pytest.mark.parametrize("given", ["", None, {}])
def test_without_a_python_the_variable_is_named(given: object) -> None:
    with pytest.raises(InputError, match="forewarn_windows_python is missing"):
        windows_python(given, Path)


@pytest.mark.parametrize("given", [{"zip": "python.zip"}, {"sha256": "0"}, ["python.exe"], 3])
def test_half_a_zip_is_refused(given: object) -> None:
    with pytest.raises(InputError, match="neither zip and sha256 nor a path"):
        windows_python(given, Path)


def test_zip_with_another_digest_is_refused(tmp_path: Path) -> None:
    given = embeddable(tmp_path / "python.zip")
    with pytest.raises(InputError, match=f"has the SHA-256 {given['sha256']}, and forewarn_windows_python names 00"):
        windows_python({**given, "sha256": "00"}, Path)


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has Python 3\.7\. The runner needs Python 3\.8 or newer"):
        windows_python(embeddable(tmp_path / "python.zip", minor=7), Path)


def test_zip_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.zip"
    given = embeddable(path)
    for content, why in ((b"no zip", "not a zip file"), (None, "it has no python.exe and pythonw.exe")):
        if content is None:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("tools/python.exe", "MZ")
        else:
            path.write_bytes(content)
        digest = sha256(path.read_bytes()).hexdigest()
        with pytest.raises(InputError, match=why):
            windows_python({**given, "sha256": digest}, Path)
    with pytest.raises(InputError, match="No such file"):
        windows_python({**given, "zip": str(tmp_path / "none.zip")}, Path)

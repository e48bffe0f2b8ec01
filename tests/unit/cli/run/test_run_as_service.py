# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option --service is for the service control manager of Windows."""

from __future__ import annotations

import pytest
from forewarn.cli import main as cli


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--service is for a service of Windows: systemd needs no such option."),
        (("--once",), "--service and --once do not go together."),
        (("--check-config",), "--service and --check-config do not go together."),
    ],
)
def test_option_service_is_refused(options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--service", "--artifact", "policy.json", *options]) == 2
    assert message in capsys.readouterr().err

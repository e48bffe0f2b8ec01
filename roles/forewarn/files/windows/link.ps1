# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a junction lead to a directory, which is beside it.
[CmdletBinding(SupportsShouldProcess)]
param(
    [Parameter(Mandatory)] [string] $Link,
    [Parameter(Mandatory)] [string] $Target
)
$ErrorActionPreference = 'Stop'

$before = ''
if (Test-Path -LiteralPath $Link) {
    $before = "$(@((Get-Item -LiteralPath $Link -Force).Target)[0])"
}
$Ansible.Changed = $before -ne $Target
if (-not $Ansible.Changed -or -not $PSCmdlet.ShouldProcess($Link, 'Link')) { return }

# It deletes the junction, not what it leads to.
if ($before) { [IO.Directory]::Delete($Link) }
New-Item -ItemType Junction -Path $Link -Target $Target | Out-Null

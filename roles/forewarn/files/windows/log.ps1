# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Reads the last lines of the runner in the event log, the oldest first. It changes nothing.
[CmdletBinding(SupportsShouldProcess)]
param(
    [int] $Lines = 20
)
$Ansible.Changed = $false

$filter = @{ LogName = 'Application'; ProviderName = 'forewarn' }
$found = @(Get-WinEvent -FilterHashtable $filter -MaxEvents $Lines -ErrorAction SilentlyContinue)
[Array]::Reverse($found)
$Ansible.Result = @{ lines = @($found | ForEach-Object { "$($_.Message)".Trim() }) }

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Tells whether the service runs, and with which command line. It changes nothing.
[CmdletBinding(SupportsShouldProcess)]
param()
$ErrorActionPreference = 'Stop'
$Ansible.Changed = $false

$service = Get-CimInstance -ClassName Win32_Service -Filter "Name='forewarn'"
$process = $null
if ($service -and $service.ProcessId) {
    $process = Get-CimInstance -ClassName Win32_Process -Filter "ProcessId=$($service.ProcessId)"
}
$Ansible.Result = @{
    state = if ($service) { "$($service.State)" } else { '' }
    command_line = if ($process) { "$($process.CommandLine)".Trim() } else { '' }
}

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Tells what the VM has. It changes nothing.
[CmdletBinding(SupportsShouldProcess)]
param(
    [Parameter(Mandatory)] [string] $ConfigFile,
    [Parameter(Mandatory)] [string] $PreviousFile,
    [Parameter(Mandatory)] [string] $Command,
    [Parameter(Mandatory)] [string] $CredentialsDirectory,
    [Parameter(Mandatory)] [string] $HooksLink,
    [AllowEmptyString()] [string] $InstalledPython,
    [AllowEmptyString()] [string] $PythonDirectory
)
$ErrorActionPreference = 'Stop'
$Ansible.Changed = $false

function Read-Base64([string] $Path) {
    if (Test-Path -LiteralPath $Path -PathType Leaf) { [Convert]::ToBase64String([IO.File]::ReadAllBytes($Path)) } else { '' }
}

$user = [Security.Principal.WindowsPrincipal] [Security.Principal.WindowsIdentity]::GetCurrent()
$service = Get-CimInstance -ClassName Win32_Service -Filter "Name='forewarn'"
$image = if ($service) { $service.PathName } else { '' }

# Its version and its platform, such as: 3.13 win-amd64
$python = ''
if ($InstalledPython -and (Test-Path -LiteralPath $InstalledPython -PathType Leaf)) {
    $code = 'import sys, sysconfig; print(str(sys.version_info[0]) + chr(46) + str(sys.version_info[1]), sysconfig.get_platform())'
    # One that this Windows cannot run, such as one for other processors, is no working Python.
    try { $python = "$(& $InstalledPython -I -S -c $code)" } catch { $python = '' }
}
$windowed = $InstalledPython -and (Test-Path -LiteralPath (Join-Path (Split-Path $InstalledPython) 'pythonw.exe') -PathType Leaf)
$brought = $PythonDirectory -and (Test-Path -LiteralPath (Join-Path $PythonDirectory 'pythonw.exe') -PathType Leaf)

$hooks = ''
if (Test-Path -LiteralPath $HooksLink) {
    $target = "$(@((Get-Item -LiteralPath $HooksLink -Force).Target)[0])"
    if ($target) { $hooks = Split-Path -Leaf $target }
}
$credentials = @()
if (Test-Path -LiteralPath $CredentialsDirectory) {
    $credentials = @(Get-ChildItem -LiteralPath $CredentialsDirectory -File | ForEach-Object { $_.Name })
}

$Ansible.Result = @{
    administrator = $user.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)
    architecture = "$env:PROCESSOR_ARCHITECTURE"
    python = $python
    windowed = [bool] $windowed
    brought = [bool] $brought
    image = "$image"
    config = Read-Base64 $ConfigFile
    previous = Read-Base64 $PreviousFile
    command = Read-Base64 $Command
    credentials = $credentials
    hooks = $hooks
}

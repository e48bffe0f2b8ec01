# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Expands a zip file to a directory of its own, which is complete as soon as it is there. One that lacks the file that shows
# this was damaged since, and is replaced.
[CmdletBinding(SupportsShouldProcess)]
param(
    [Parameter(Mandatory)] [string] $Zip,
    [Parameter(Mandatory)] [string] $Directory
)
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

$Ansible.Changed = -not (Test-Path -LiteralPath (Join-Path $Directory 'pythonw.exe') -PathType Leaf)
if (-not $Ansible.Changed -or -not $PSCmdlet.ShouldProcess($Directory, 'Expand')) { return }

$new = "$Directory.new"
if (Test-Path -LiteralPath $new) { Remove-Item -LiteralPath $new -Recurse -Force }
Expand-Archive -LiteralPath $Zip -DestinationPath $new
if (Test-Path -LiteralPath $Directory) { Remove-Item -LiteralPath $Directory -Recurse -Force }
Rename-Item -LiteralPath $new -NewName (Split-Path -Leaf $Directory)

# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Writes a text file by one rename. The content is UTF-8 in Base64; a backup of what was there before is kept on request.
[CmdletBinding(SupportsShouldProcess)]
param(
    [Parameter(Mandatory)] [string] $Path,
    [Parameter(Mandatory)] [string] $Base64,
    [bool] $Backup = $false
)
$ErrorActionPreference = 'Stop'

$content = [Text.Encoding]::UTF8.GetString([Convert]::FromBase64String($Base64))
$before = if (Test-Path -LiteralPath $Path -PathType Leaf) { [IO.File]::ReadAllText($Path) } else { $null }
$Ansible.Changed = $before -cne $content
$Ansible.Diff = @{ before_header = $Path; before = "$before"; after_header = $Path; after = $content }
$Ansible.Result = @{ path = $Path; backup_file = '' }
if (-not $Ansible.Changed -or -not $PSCmdlet.ShouldProcess($Path, 'Write')) { return }

$new = "$Path.new"
[IO.File]::WriteAllText($new, $content)
# The runner trusts files of administrators, and not those of one of them.
$security = [IO.File]::GetAccessControl($new)
$security.SetOwner([Security.Principal.SecurityIdentifier] 'S-1-5-32-544')
[IO.File]::SetAccessControl($new, $security)

if ($null -eq $before) {
    [IO.File]::Move($new, $Path)
    return
}
if ($Backup) {
    $kept = "$Path.$([DateTime]::UtcNow.ToString('yyyyMMddTHHmmssfff'))~"
    [IO.File]::Copy($Path, $kept)
    $Ansible.Result = @{ path = $Path; backup_file = $kept }
}
[IO.File]::Replace($new, $Path, [NullString]::Value)

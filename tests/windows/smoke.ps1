# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
<#
.SYNOPSIS
Tries on a real Windows what tests under Wine cannot show, in five minutes, and says what it found.
.DESCRIPTION
It asks and approves at an emulator on 127.0.0.1 alone, never at Azure's service. It uses a service named forewarn-smoke and the
directory C:\ProgramData\Forewarn-smoke, and removes both in the end. The exit code is the number of checks that failed.
.PARAMETER Python
A Python 3.11 or newer that SYSTEM may run too, with the package requests, and a pythonw.exe beside it; by default the one that
is found first. Only administrators may be able to change it, as one that was installed for all users.
#>
#Requires -Version 5.1
#Requires -RunAsAdministrator
[CmdletBinding()]
param([string] $Python = (Get-Command python.exe -ErrorAction Stop).Source)
$ErrorActionPreference = 'Stop'
Set-StrictMode -Version 2.0

$repository = Split-Path (Split-Path $PSScriptRoot)
$package = Join-Path $repository 'plugins\module_utils'
$here = Join-Path $env:ProgramData 'Forewarn-smoke'
$name = 'forewarn-smoke'
$event1, $event2 = 'C7061BAC-AFDC-4513-B24B-AA5F13A16123', '49871F13-3B97-4705-98A3-6406751AC1DF'
$bundle, $config, $artifact = "$here\forewarn.pyz", "$here\config.json", "$here\policy.json"
$state, $ready = "$here\state", "$here\endpoint"
$script:failed = 0
$script:registered = $false
$emulator = $null

# Without it a mistake here could send a request to Azure's service.
$env:FOREWARN_ENDPOINT = 'http://127.0.0.1:9'
$env:PYTHONPATH = $package

function Test-Step([string] $What, [scriptblock] $Check) {
    try {
        $found = & $Check
        if ($found -is [bool] -and -not $found) { throw 'it is not so' }
        Write-Output "ok      $What"
        if ($found -and $found -isnot [bool]) { Write-Output "          $(@($found) -join "`n          ")" }
    } catch {
        $script:failed++
        Write-Output "FAILED  $What"
        Write-Output "          $("$_".Trim() -replace "`r?`n", "`n          ")"
    }
}

# Runs the command with what a checkout has, or, with -AsOnVm, what a VM gets; returns its output, throws if it fails.
function Invoke-Forewarn([string[]] $Words, [switch] $AsOnVm) {
    $ErrorActionPreference = 'Continue' # what a program writes to standard error is no error of this script
    $output = if ($AsOnVm) { & $Python -I -S -X utf8 $bundle @Words 2>&1 } else { & $Python -X utf8 -m forewarn.cli.main @Words 2>&1 }
    $text = (@($output | ForEach-Object { "$_" }) -join "`n").Trim()
    if ($LASTEXITCODE -ne 0) { throw "forewarn $($Words -join ' ') ended with $LASTEXITCODE`: $text" }
    $text
}

function Wait-For([string] $What, [scriptblock] $Condition, [int] $Seconds = 60) {
    $end = (Get-Date).AddSeconds($Seconds)
    while (-not (& $Condition)) {
        if ((Get-Date) -gt $end) { throw "$What, within $Seconds s" }
        Start-Sleep -Milliseconds 250
    }
}

function Get-Line([string] $Line) {
    $filter = @{ LogName = 'Application'; ProviderName = 'forewarn'; StartTime = $begun }
    @(Get-WinEvent -FilterHashtable $filter -ErrorAction SilentlyContinue | Where-Object { "$($_.Message)" -match "\b$Line\b" })
}

function Remove-All {
    if (Get-Service $name -ErrorAction SilentlyContinue) {
        Stop-Service $name -Force -ErrorAction SilentlyContinue
        & sc.exe delete $name | Out-Null
    }
    if ($script:emulator -and -not $script:emulator.HasExited) { Stop-Process -Id $script:emulator.Id -Force }
    if ($script:registered) { Remove-EventLog -Source forewarn }
    if (Test-Path -LiteralPath $here) { Remove-Item -LiteralPath $here -Recurse -Force -ErrorAction SilentlyContinue }
}

$begun = (Get-Date).AddSeconds(-1)
Write-Output "$((Get-CimInstance Win32_OperatingSystem).Caption), PowerShell $($PSVersionTable.PSVersion), $(& $Python --version)"
Remove-All

try {
    Test-Step 'a directory that only SYSTEM and administrators may change' {
        New-Item -ItemType Directory $here, "$here\hooks", "$here\credentials" | Out-Null
        & icacls.exe $here /inheritance:r /grant '*S-1-5-18:(OI)(CI)F' '*S-1-5-32-544:(OI)(CI)F' /Q | Out-Null
        $LASTEXITCODE -eq 0
    }
    Test-Step 'build the runner' { Invoke-Forewarn @('bundle', '--output', $bundle) }
    Copy-Item "$PSScriptRoot\smoke-policy.json" $artifact
    Set-Content "$here\hooks\drain.ps1" -Encoding UTF8 -Value @'
param([string] $Word)
Add-Content -LiteralPath "$PSScriptRoot\said" -Value "$env:FOREWARN_PHASE $env:FOREWARN_EVENT_TYPE $Word"
'@
    Set-Content "$here\hooks\slow.cmd" -Encoding ASCII -Value '@ping -n 120 127.0.0.1 >nul'

    Test-Step 'the emulator listens on 127.0.0.1' {
        $words = @('-X', 'utf8', '-m', 'forewarn.cli.main', 'emulate', '--port', '0', '--vm', 'web_0', '--ready-file', "`"$ready`"")
        $script:emulator = Start-Process $Python $words -PassThru -WindowStyle Hidden
        Wait-For 'the emulator is not ready' { Test-Path -LiteralPath $ready }
        $script:endpoint = (Get-Content -LiteralPath $ready -Raw).Trim()
        if ($script:endpoint -notmatch '^http://127\.0\.0\.1:\d+') { throw "it listens at $script:endpoint" }
        $script:endpoint
    }
    if ($script:failed) { throw 'Nothing else can be tried.' }
    $control = @('--control', $script:endpoint)
    $options = @{ artifact = $artifact; endpoint = $script:endpoint; state = $state; vm_name = 'web_0' }
    [IO.File]::WriteAllText($config, ($options | ConvertTo-Json))
    & icacls.exe $here /setowner '*S-1-5-32-544' /T /Q | Out-Null

    Test-Step 'the configuration is right' { Invoke-Forewarn @('run', '--check-config', '--config', $config) -AsOnVm }
    Test-Step 'a policy that everybody may change is refused, and the icacls of the refusal mends it' {
        & icacls.exe $artifact /grant '*S-1-1-0:(W)' /Q | Out-Null
        $refusal = ''
        try { Invoke-Forewarn @('run', '--check-config', '--config', $config) -AsOnVm | Out-Null } catch { $refusal = "$_" }
        if (-not $refusal) { throw 'it was not refused' }
        $command = [regex]::Match($refusal, '(?im)\b(icacls|takeown)(\.exe)? .*$').Value.Trim()
        if (-not $command) { throw "there is no command in it: $refusal" }
        & cmd.exe /d /c $command | Out-Null
        Invoke-Forewarn @('run', '--check-config', '--config', $config) -AsOnVm | Out-Null
        $command
    }
    Test-Step 'a secret is encrypted, and only SYSTEM and administrators may read it' {
        'open sesame' | & $Python -I -S -X utf8 $bundle credential smoke-test --directory "$here\credentials"
        $file = "$here\credentials\smoke-test"
        try {
            if ([Text.Encoding]::UTF8.GetString([IO.File]::ReadAllBytes($file)) -match 'sesame') { throw 'it is not encrypted' }
            $others = (Get-Acl -LiteralPath $file).Access | Where-Object {
                $_.IdentityReference.Translate([Security.Principal.SecurityIdentifier]).Value -notin 'S-1-5-18', 'S-1-5-32-544' }
            if ($others) { throw "others may read it: $($others.IdentityReference -join ', ')" }
        } finally { Remove-Item -LiteralPath $file -Force -ErrorAction SilentlyContinue }
    }

    Test-Step 'the service starts, and RUNNING means that it has begun' {
        # Without a registered source nobody can ask for its lines. One that the role has registered stays.
        if (-not [Diagnostics.EventLog]::SourceExists('forewarn')) {
            New-EventLog -LogName Application -Source forewarn -MessageResourceFile "$env:SystemRoot\System32\EventCreate.exe"
            $script:registered = $true
        }
        $pythonw = Join-Path (Split-Path $Python) 'pythonw.exe'
        $image = "`"$pythonw`" -I -S `"$bundle`" run --service --config `"$config`""
        New-Service $name -BinaryPathName $image -StartupType Manual | Out-Null
        & sc.exe failure $name reset= 60 actions= restart/1000/restart/1000/restart/1000 | Out-Null
        & sc.exe failureflag $name 1 | Out-Null
        Start-Service $name
        (Get-Service $name).Status -eq 'Running'
    }
    Test-Step 'its lines are in the event log' {
        Wait-For 'there is no line "started"' { Get-Line started }
        (Get-Line started)[-1].Message.Trim()
    }
    Test-Step 'a short freeze is approved' {
        Invoke-Forewarn (@('emulate', 'publish') + $control + @('--type', 'Freeze', '--duration', '5s', '--event-id', $event1)) | Out-Null
        Wait-For 'it is not approved' { (Get-Line approved) -and (Get-Line approved)[-1].Message -match $event1 }
    }
    Test-Step 'a reboot is prepared by a .ps1, approved and recovered' {
        $times = '--impact', '1s', '--gone-after', '5s'
        Invoke-Forewarn (@('emulate', 'publish') + $control + @('--type', 'Reboot', '--event-id', $event2) + $times) | Out-Null
        Wait-For 'it is not recovered' { (Test-Path "$here\hooks\said") -and @(Get-Content "$here\hooks\said").Count -ge 2 } 120
        $said = Get-Content "$here\hooks\said"
        if (($said -join ',') -ne 'prepare Reboot two words,recover Reboot two words') { throw "the hooks said: $($said -join ', ')" }
    }
    Test-Step 'status, history and doctor work beside it' {
        Invoke-Forewarn @('status', '--state', $state) -AsOnVm | Out-Null
        $history = Invoke-Forewarn @('history', '--state', $state, '--json') -AsOnVm | ConvertFrom-Json
        if (@($history.events).Count -ne 2) { throw "history has $(@($history.events).Count) events" }
        # What doctor finds wrong depends on this machine. To be read by a person.
        $words = 'doctor', '--config', $config, '--unit', $name, '--json'
        $doctor = (& $Python -I -S -X utf8 $bundle @words) -join "`n" | ConvertFrom-Json
        @($doctor.checks | Where-Object { $_.state -ne 'ok' } | ForEach-Object { "doctor: $($_.name): $($_.text)" })
    }
    Test-Step 'a hook that takes too long ends, with all of its processes' {
        Invoke-Forewarn (@('emulate', 'publish') + $control + @('--type', 'Redeploy')) | Out-Null
        $filter = "Name='PING.EXE' AND CommandLine LIKE '%-n 120 127.0.0.1%'"
        Wait-For 'it does not begin' { Get-CimInstance Win32_Process -Filter $filter }
        Wait-For 'it does not end' { -not (Get-CimInstance Win32_Process -Filter $filter) } 30
    }
    Test-Step 'a reload is a line in the log' {
        & sc.exe control $name paramchange | Out-Null
        Wait-For 'there is no line "reloaded"' { Get-Line reloaded }
    }
    Test-Step 'a killed service is started again, and remembers' {
        $process = (Get-CimInstance Win32_Service -Filter "Name='$name'").ProcessId
        Stop-Process -Id $process -Force
        Wait-For 'it does not come back' { $now = Get-CimInstance Win32_Service -Filter "Name='$name'"
            $now.State -eq 'Running' -and $now.ProcessId -ne $process }
        $history = Invoke-Forewarn @('history', '--state', $state, '--json') -AsOnVm | ConvertFrom-Json
        @($history.events).Count -eq 3
    }
    Test-Step 'the service stops in time, with exit code 0' {
        $took = Measure-Command { Stop-Service $name }
        $code = (Get-CimInstance Win32_Service -Filter "Name='$name'").ExitCode
        if ($code -ne 0 -or $took.TotalSeconds -gt 40) { throw "exit code $code after $($took.TotalSeconds) s" }
        "$([Math]::Round($took.TotalSeconds, 1)) s"
    }
    Test-Step 'what Windows has of DHCP option 245 (nothing, outside Azure)' {
        $values = Get-ChildItem HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces |
            ForEach-Object { $_.GetValue('DhcpInterfaceOptions') } | Where-Object { $_ }
        "$(@($values).Count) interfaces have DHCP options"
    }
} catch {
    $script:failed++
    Write-Output "STOPPED $_"
} finally {
    Remove-All
}
Write-Output "$(if ($script:failed) { "$script:failed failed" } else { 'all is well' })"
exit $script:failed

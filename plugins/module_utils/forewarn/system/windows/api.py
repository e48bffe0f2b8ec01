# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions of Windows that the other modules call, with the types of their arguments (Windows API reference)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import wintypes
from typing import Any

HANDLE, DWORD, BOOL, WORD = wintypes.HANDLE, wintypes.DWORD, wintypes.BOOL, wintypes.WORD
TEXT, POINTER = wintypes.LPCWSTR, ctypes.c_void_p
# Values of GetLastError and of functions that return such a code.
ERROR_FILE_NOT_FOUND, ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS = 2, 5, 183


class DynamicLibrary:
    """A library of Windows, which is loaded at the first call.

    ``functions`` has the type of each function's result and then those of its arguments. A result of type BOOL or
    HANDLE that is zero means failure: ask ``last_error``.
    """

    def __init__(self, name: str, functions: Mapping[str, tuple[object, ...]]) -> None:
        self._name = name
        self._functions = functions
        self._library: Any = None

    def __getattr__(self, name: str) -> Any:
        result, *arguments = self._functions[name]
        if self._library is None:
            self._library = ctypes.WinDLL(self._name, use_last_error=True)
        function = getattr(self._library, name)
        function.restype, function.argtypes = result, tuple(arguments)
        setattr(self, name, function)  # the next call finds it without this method
        return function


kernel32 = DynamicLibrary(
    "kernel32",
    {
        "AssignProcessToJobObject": (BOOL, HANDLE, HANDLE),
        "CancelSynchronousIo": (BOOL, HANDLE),
        "CloseHandle": (BOOL, HANDLE),
        "CreateDirectoryW": (BOOL, TEXT, POINTER),
        "CreateEventW": (HANDLE, POINTER, BOOL, BOOL, TEXT),
        "CreateFileW": (HANDLE, TEXT, DWORD, DWORD, POINTER, DWORD, DWORD, HANDLE),
        "CreateJobObjectW": (HANDLE, POINTER, TEXT),
        "CreateMutexW": (HANDLE, POINTER, BOOL, TEXT),
        "GetCurrentProcess": (HANDLE,),
        "GetProcessTimes": (BOOL, HANDLE, POINTER, POINTER, POINTER, POINTER),
        "GetSystemFirmwareTable": (DWORD, DWORD, DWORD, POINTER, DWORD),
        "GetTickCount64": (ctypes.c_uint64,),
        "LocalFree": (POINTER, POINTER),
        "LockFileEx": (BOOL, HANDLE, DWORD, DWORD, DWORD, DWORD, POINTER),
        "OpenEventW": (HANDLE, DWORD, BOOL, TEXT),
        "OpenMutexW": (HANDLE, DWORD, BOOL, TEXT),
        "OpenProcess": (HANDLE, DWORD, BOOL, DWORD),
        "OpenThread": (HANDLE, DWORD, BOOL, DWORD),
        "QueryInformationJobObject": (BOOL, HANDLE, ctypes.c_int, POINTER, DWORD, POINTER),
        "SetEvent": (BOOL, HANDLE),
        "SetInformationJobObject": (BOOL, HANDLE, ctypes.c_int, POINTER, DWORD),
        "TerminateJobObject": (BOOL, HANDLE, DWORD),
        "TerminateProcess": (BOOL, HANDLE, DWORD),
        "UnlockFileEx": (BOOL, HANDLE, DWORD, DWORD, DWORD, POINTER),
        "WaitForMultipleObjects": (DWORD, DWORD, POINTER, BOOL, DWORD),
        "WaitForSingleObject": (DWORD, HANDLE, DWORD),
    },
)
advapi32 = DynamicLibrary(
    "advapi32",
    {
        "CloseServiceHandle": (BOOL, HANDLE),
        "ControlService": (BOOL, HANDLE, DWORD, POINTER),
        "ConvertSidToStringSidW": (BOOL, POINTER, POINTER),
        "ConvertStringSecurityDescriptorToSecurityDescriptorW": (BOOL, TEXT, DWORD, POINTER, POINTER),
        "ConvertStringSidToSidW": (BOOL, TEXT, POINTER),
        "DeregisterEventSource": (BOOL, HANDLE),
        "EnumDependentServicesW": (BOOL, HANDLE, DWORD, POINTER, DWORD, POINTER, POINTER),
        "GetAce": (BOOL, POINTER, DWORD, POINTER),
        "GetSecurityInfo": (DWORD, HANDLE, ctypes.c_int, DWORD, POINTER, POINTER, POINTER, POINTER, POINTER),
        "GetTokenInformation": (BOOL, HANDLE, ctypes.c_int, POINTER, DWORD, POINTER),
        "LookupAccountSidW": (BOOL, TEXT, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER),
        "OpenProcessToken": (BOOL, HANDLE, DWORD, POINTER),
        "OpenSCManagerW": (HANDLE, TEXT, TEXT, DWORD),
        "OpenServiceW": (HANDLE, HANDLE, TEXT, DWORD),
        "QueryServiceStatusEx": (BOOL, HANDLE, DWORD, POINTER, DWORD, POINTER),
        "RegisterEventSourceW": (HANDLE, TEXT, TEXT),
        "RegisterServiceCtrlHandlerExW": (HANDLE, TEXT, POINTER, POINTER),
        "ReportEventW": (BOOL, HANDLE, WORD, WORD, DWORD, POINTER, WORD, DWORD, POINTER, POINTER),
        "SetServiceStatus": (BOOL, HANDLE, POINTER),
        "StartServiceCtrlDispatcherW": (BOOL, POINTER),
        "StartServiceW": (BOOL, HANDLE, DWORD, POINTER),
    },
)
crypt32 = DynamicLibrary(
    "crypt32",
    {
        "CryptProtectData": (BOOL, POINTER, TEXT, POINTER, POINTER, POINTER, DWORD, POINTER),
        "CryptUnprotectData": (BOOL, POINTER, POINTER, POINTER, POINTER, POINTER, DWORD, POINTER),
    },
)
ntdll = DynamicLibrary(
    "ntdll",
    {
        "NtQuerySystemInformation": (ctypes.c_int32, ctypes.c_int, POINTER, DWORD, POINTER),
        "NtResumeProcess": (ctypes.c_int32, HANDLE),
    },
)
shell32 = DynamicLibrary(
    "shell32",
    {
        "IsUserAnAdmin": (BOOL,),
        "SHGetFolderPathW": (ctypes.c_int32, HANDLE, ctypes.c_int, HANDLE, DWORD, POINTER),
    },
)


def last_error() -> int:
    """Return the code of the last failure in this thread."""
    return ctypes.get_last_error()


def error(code: int | None = None) -> OSError:
    """Return the exception for a code, by default that of the last failure in this thread."""
    return ctypes.WinError(last_error() if code is None else code)

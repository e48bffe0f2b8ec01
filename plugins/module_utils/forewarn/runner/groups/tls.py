# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS to a store: the files that it takes, and what its failures mean."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from ...errors import InputError
from ...imds.errors import CONNECTION
from ...system.trust import check_file, check_secret
from .store import CERTIFICATE, StoreFault

_THEIR_REFUSALS = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "HANDSHAKE_FAILURE")  # in the names of TLS alerts


class TlsFiles(NamedTuple):
    """Absolute paths. Without ``ca_file``, the system's authorities are trusted; the other two come together."""

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None

    def context(self) -> ssl.SSLContext:
        """Read the files, which may have been renewed since the last time. Raises StoreFault."""
        try:
            if self.ca_file is not None:
                check_file(self.ca_file, "the CA file")
            if self.key_file is not None:
                check_secret(self.key_file)
        except InputError as error:
            raise StoreFault(error.message, error.hint, kind=CERTIFICATE, lasting=True) from error
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            text = f"the CA file {self.ca_file} holds no certificate that can be read: {_reason(error)}."
            raise StoreFault(text, kind=CERTIFICATE, lasting=True) from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2  # Python 3.9 would take less
        if self.certificate_file is not None:
            try:
                # Without a password of ours, OpenSSL would ask for that of an encrypted key at the terminal.
                context.load_cert_chain(self.certificate_file, self.key_file, password=lambda: b"")
            except (OSError, ValueError) as error:
                text = (
                    f"the certificate {self.certificate_file} and its key {self.key_file} cannot be used: "
                    f"{_reason(error)}."
                )
                hint = "Both have to be in PEM format and belong together; the key must not be encrypted."
                raise StoreFault(text, hint, kind=CERTIFICATE, lasting=True) from error
        return context


def tls_fault(error: ssl.SSLError, where: str) -> StoreFault:
    """Return the fault for a TLS error on the way to a server."""
    if isinstance(error, ssl.SSLCertVerificationError):
        text = f"the certificate of {where} was not accepted: {error.verify_message}."
        return StoreFault(text, kind=CERTIFICATE, lasting=True)
    reason = _reason(error)
    if "ALERT" in reason and any(word in reason for word in _THEIR_REFUSALS):
        text = f"{where} refused TLS with this VM: {reason}."
        hint = "It may want a client certificate, or another than this VM's."
        return StoreFault(text, hint, kind=CERTIFICATE, lasting=True)
    return StoreFault(f"TLS with {where} failed: {reason}.", kind=CONNECTION)


def _reason(error: Exception) -> str:
    """Return the short form of an error: OpenSSL's name for it, or the system's words."""
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__

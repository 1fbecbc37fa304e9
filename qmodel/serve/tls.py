"""TLS of the server: its certificate, and the authority of the clients' certificates."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from qmodel.errors import LocalError


class Tls(NamedTuple):
    """The files of `--tls-cert`, `--tls-key` and `--tls-ca`, in PEM."""

    cert: str = ""
    key: str = ""
    ca: str = ""

    def context(self) -> ssl.SSLContext | None:
        """Make the context of the server; None without a certificate. Raises LocalError for files that do not fit.

        The key may be in the file of the certificate. With an authority, clients must show a certificate signed by it.
        """
        if not self.cert:
            if self.key or self.ca:
                raise LocalError("--tls-key and --tls-ca need a certificate.", "Give it as --tls-cert.")
            return None
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            made.load_cert_chain(self.cert, self.key or None)
            if self.ca:
                made.load_verify_locations(self.ca)
                made.verify_mode = ssl.CERT_REQUIRED
        except OSError as error:  # also ssl.SSLError
            raise LocalError(
                f"The files for TLS cannot be used: {error.strerror or error}.",
                "Give a certificate and its key in PEM, as --tls-cert and --tls-key.",
            ) from error
        return made

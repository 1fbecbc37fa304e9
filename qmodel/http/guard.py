"""Authentication, permission to write, and protection against forged requests, for the HTTP API and the pages.

The danger is a browser. It sends stored credentials with every request to the same host, also with requests that
another site makes it send; and without credentials, any open site can reach a server on this machine. So every request
is checked three times:

- *Credentials.* A password (`user:password`, Basic) or a token (Bearer; for a browser, the password of any user).
  They are compared in constant time.
- *Host.* Without a password only requests to this machine's own names are answered. Otherwise a site that
  makes its name point to 127.0.0.1 after it was loaded (DNS rebinding) could read and change everything.
- *Origin.* A request that changes something must not come from another site: the browser says so in Sec-Fetch-Site,
  an older one in Origin. Forms also carry a token that only a reader of the page can know.

Programs send neither of these two headers; their credentials are enough.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from qmodel.errors import QmodelError

LOCAL: Final = ("localhost", "127.0.0.1", "::1")
"""The names of this machine: a server without a password answers only requests to these."""

FIELD: Final = "csrf"
"""The field of a form that carries the token."""

HEADER: Final = "x-csrf-token"
"""The header that carries the token if there is no form."""

READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that change nothing."""


class Denied(HTTPException):
    """A request that is denied: its status, a code, a sentence, and what to do."""

    def __init__(
        self, status: int, code: str, sentence: str, next_step: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, f"{sentence} {next_step}", headers)
        self.code = code
        self.sentence = sentence
        self.next_step = next_step


class Exposed(QmodelError, ValueError):
    """Raised for a server that anybody in the network could use."""


class Guard:
    """Checks the requests of one server.

    `auth` is `user:password`, or a token (without a colon); with None there is no authentication. Without `writable`
    nothing can be changed. `hosts` are the host names that the server answers to: by default any if there is a
    password, and else those of this machine; `"*"` is any, for a server behind a proxy that authenticates. `secret`
    makes the tokens of forms: several processes that serve the same pages need the same one.
    """

    def __init__(
        self,
        auth: str | None = None,
        writable: bool = False,
        *,
        hosts: Sequence[str] | None = None,
        secret: str | None = None,
    ) -> None:
        self._expected = None if auth is None else _digest(checked(auth).encode())
        self._by_user = auth is not None and ":" in auth
        self.writable = writable
        self.hosts = tuple(map(str.lower, hosts)) if hosts is not None else LOCAL if auth is None else ("*",)
        self._secret = secrets.token_bytes(32) if secret is None else secret.encode()

    def check(self, request: HTTPConnection, *, writes: bool | None = None) -> None:
        """Check a request, or raise Denied. `writes` says whether it changes something."""
        self._check_host(request)
        self._check_credentials(request)
        if writes is None:
            writes = request.scope.get("method", "GET") not in READING
        if not writes:
            return
        check_origin(request)
        if not self.writable:
            raise Denied(403, "READ_ONLY", "This server is read-only.", "Start it with --writable to allow changes.")

    def user(self, request: HTTPConnection) -> str:
        """Give the name of the user, if there is one, as fits a log; it is authenticated only after `check`."""
        scheme, _, rest = request.headers.get("authorization", "").partition(" ")
        if self._expected is None or scheme.lower() != "basic":
            return ""
        pair = _credentials(f"basic {rest}", by_user=True) or b""
        return printable(pair.partition(b":")[0].decode(errors="replace"))

    def token(self, request: HTTPConnection) -> str:
        """Make the token that the forms of a page carry, as the field `csrf` or the header `X-CSRF-Token`."""
        who = request.headers.get("authorization", "")
        return hmac.new(self._secret, who.encode("latin-1"), hashlib.sha256).hexdigest()

    def verify(self, request: HTTPConnection, form: Mapping[str, Any] | None = None) -> None:
        """Verify that a form comes from a page of this server, after `check`; or raise Denied."""
        check_origin(request)
        given = request.headers.get(HEADER) or (form or {}).get(FIELD) or ""
        if not hmac.compare_digest(str(given).encode(), self.token(request).encode()):
            raise Denied(
                403,
                "FORGED",
                "The form does not carry the token of its page.",
                "Load the page again, and send the form again.",
            )

    def _check_host(self, request: HTTPConnection) -> None:
        name = host_of("//" + request.headers.get("host", ""))
        if "*" in self.hosts or name in self.hosts:
            return
        raise Denied(
            403,
            "WRONG_HOST",
            f"This server does not answer to the host name '{name[:100]}'.",
            f"It is {' or '.join(self.hosts)}; with a password (--auth), or hosts=, it has other names, too.",
        )

    def _check_credentials(self, request: HTTPConnection) -> None:
        if self._expected is None:
            return
        given = _credentials(request.headers.get("authorization", ""), by_user=self._by_user)
        if given is None or not hmac.compare_digest(_digest(given), self._expected):
            basic = 'Basic realm="qmodel", charset="UTF-8"'
            raise Denied(
                401,
                "UNAUTHORIZED",
                "This server asks for a password." if given is None else "That is not the password.",
                "Send it as user and password (Basic), or a token as Authorization: Bearer.",
                {"WWW-Authenticate": basic if self._by_user else f'{basic}, Bearer realm="qmodel"'},
            )


def check_origin(request: HTTPConnection) -> None:
    """Raise Denied for a request that a browser sends on behalf of another site."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site is not None:
        foreign = site not in ("same-origin", "none")
    else:
        here = "//" + request.headers.get("host", "")
        foreign = origin is not None and (_place(origin) is None or _place(origin) != _place(here, origin))
    if foreign:
        raise Denied(
            403,
            "FORGED",
            f"A page of another site ({(origin or site or '')[:100]}) sent this request.",
            "Only pages of this server, and programs, may make changes.",
        )


def checked(auth: str) -> str:
    """Read `--auth`, `user:password` or a token; ValueError says what is wrong."""
    user, colon, password = auth.partition(":")
    if not user.strip() or (colon and not password.strip()):
        raise ValueError("it must be user:password, or a token without a colon; neither part empty")
    return auth


def check_binding(host: str, auth: str | None) -> None:
    """Raise Exposed for an address that other machines can reach, if there is no password."""
    if auth is None and not is_local(host):
        raise Exposed(
            f"Anybody who can reach {host} could use this server. "
            "Give --auth user:password, or --auth with a token (QMODEL_AUTH keeps it out of the list of processes)."
        )


def is_local(host: str) -> bool:
    """Say whether only this machine can reach an address.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("::1"), is_local("0.0.0.0"), is_local("")
    (True, True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(url: str) -> str:
    """Give the host of a URL, without its port; empty if there is none.

    >>> host_of("//[::1]:8000"), host_of("http://LocalHost"), host_of("//[")
    ('::1', 'localhost', '')
    """
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def printable(text: str, most: int = 200) -> str:
    """Escape all control characters and other characters without a shape, so that a text cannot forge log lines.

    >>> printable("ada\\n10.0.0.1 root: POST /"), printable("Zoë\\x1b[2J")
    ('ada\\\\n10.0.0.1 root: POST /', 'Zoë\\\\x1b[2J')
    """
    shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text[:most])
    return shown + "…" if len(text) > most else shown


def _place(url: str, like: str = "") -> tuple[str, int | None] | None:
    """Give host and port of a URL; a missing port is the default of its scheme, or of another URL's."""
    try:
        parts = urlsplit(url)
        usual = {"http": 80, "https": 443}.get(parts.scheme or urlsplit(like).scheme)
        return (parts.hostname, parts.port or usual) if parts.hostname else None
    except ValueError:
        return None


def _credentials(header: str, *, by_user: bool) -> bytes | None:
    """Read the credentials of a header: `user:password` or a token; None if there are none."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer" and not by_user:
        return rest.strip().encode("latin-1")
    if scheme.lower() != "basic":
        return None
    try:
        pair = base64.b64decode(rest.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    return pair if by_user else pair.partition(b":")[2]


def _digest(text: bytes) -> bytes:
    """Hash a text, so that texts of any length compare in constant time."""
    return hashlib.sha256(text).digest()

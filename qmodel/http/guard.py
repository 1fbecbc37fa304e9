"""Who may ask, who may change things, and whether it was meant: for the HTTP API and for the pages.

A browser is the danger. It sends the credentials that somebody once typed with every request to the same place, also
with those that another site makes it send; and without credentials, whatever site is open in it can reach a server on
this machine. So three questions stand before every request:

- *Who?* A password (`user:password`, Basic) or a token (Bearer; a browser takes it as the password of any user). They
  are compared in constant time.
- *Where to?* Without a password only requests to this machine's own names are answered. Else a site whose name is made
  to point to 127.0.0.1 after it was loaded (DNS rebinding) could read and change everything.
- *Was it meant?* What changes something must not come from another site: the browser says so itself (Sec-Fetch-Site),
  an older one by Origin. Forms carry a token besides, which nobody can know who cannot read the page.

Programs send neither of those two headers, and are believed by their credentials.
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
"""The names of this machine, to which requests without a password may go."""

FIELD: Final = "csrf"
"""The field of a form that carries the token."""

HEADER: Final = "x-csrf-token"
"""The header that carries it where there is no form."""

READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that change nothing."""


class Denied(HTTPException):
    """A request that is not answered: its status, a code, what is wrong in a sentence, and what to do in another."""

    def __init__(
        self, status: int, code: str, sentence: str, next_step: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, f"{sentence} {next_step}", headers)
        self.code = code
        self.sentence = sentence
        self.next_step = next_step


class Exposed(QmodelError, ValueError):
    """A server that everybody in the network could use."""


class Guard:
    """Answers the three questions for one server.

    `auth` is `user:password`, or a token (without a colon); None asks for nothing. Without `writable` nothing can be
    changed. `hosts` are the names by which the server may be asked: by default any if there is a password, and else
    those of this machine; `"*"` is any, for a server behind one that asks for the password itself. `secret` makes the
    tokens of forms: where several processes serve the same pages they need the same one.
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
        self.hosts = tuple(hosts) if hosts is not None else LOCAL if auth is None else ("*",)
        self._secret = secrets.token_bytes(32) if secret is None else secret.encode()

    def check(self, request: HTTPConnection, *, writes: bool | None = None) -> None:
        """Let a request pass, or raise Denied. `writes` says whether it changes something, where its method does not
        tell.
        """
        self._check_host(request)
        self._check_credentials(request)
        if writes is None:
            writes = request.scope.get("method", "GET") not in READING
        if not writes:
            return
        check_origin(request)
        if not self.writable:
            raise Denied(403, "READ_ONLY", "This server only shows things.", "Start it with --writable to change any.")

    def user(self, request: HTTPConnection) -> str:
        """The name of the user that asks, where there is one; after `check`."""
        scheme, _, rest = request.headers.get("authorization", "").partition(" ")
        if self._expected is None or scheme.lower() != "basic":
            return ""
        pair = _credentials(f"basic {rest}", by_user=True) or b""
        return pair.partition(b":")[0].decode(errors="replace")

    def token(self, request: HTTPConnection) -> str:
        """The token that the forms of a page carry, as the field `csrf` or the header `X-CSRF-Token`."""
        who = request.headers.get("authorization", "")
        return hmac.new(self._secret, who.encode("latin-1"), hashlib.sha256).hexdigest()

    def verify(self, request: HTTPConnection, form: Mapping[str, Any] | None = None) -> None:
        """Let a form pass that a page of this server was sent with, after `check`; or raise Denied."""
        check_origin(request)
        given = request.headers.get(HEADER) or (form or {}).get(FIELD) or ""
        if not hmac.compare_digest(str(given).encode(), self.token(request).encode()):
            raise Denied(
                403,
                "FORGED",
                "The form does not carry the token of its page.",
                "Load the page again, and send it anew.",
            )

    def _check_host(self, request: HTTPConnection) -> None:
        name = host_of("//" + request.headers.get("host", ""))
        if "*" in self.hosts or name in self.hosts:
            return
        raise Denied(
            403,
            "WRONG_HOST",
            f"This server is not asked by the name '{name[:100]}'.",
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
            "Only pages of this server, and programs, may change something.",
        )


def checked(auth: str) -> str:
    """What `--auth` says, if it is `user:password` or a token; ValueError says what is wrong with it."""
    user, colon, password = auth.partition(":")
    if not user or (colon and not password):
        raise ValueError("it must be user:password, or a token without a colon; neither part empty")
    return auth


def check_binding(host: str, auth: str | None) -> None:
    """Raise Exposed for an address that others can reach when nobody is asked for a password."""
    if auth is None and not is_local(host):
        raise Exposed(
            f"Whoever can reach {host} could use this server. "
            "Give --auth user:password, or --auth with a token (QMODEL_AUTH keeps it out of the list of processes)."
        )


def is_local(host: str) -> bool:
    """Whether only this machine reaches an address.

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
    """The host of a URL without its port, or empty for what is none.

    >>> host_of("//[::1]:8000"), host_of("http://LocalHost"), host_of("//[")
    ('::1', 'localhost', '')
    """
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _place(url: str, like: str = "") -> tuple[str, int | None] | None:
    """Host and port of a URL; the port that its scheme, or that of another URL, has by default."""
    try:
        parts = urlsplit(url)
        usual = {"http": 80, "https": 443}.get(parts.scheme or urlsplit(like).scheme)
        return (parts.hostname, parts.port or usual) if parts.hostname else None
    except ValueError:
        return None


def _credentials(header: str, *, by_user: bool) -> bytes | None:
    """What a header says to prove who asks: `user:password`, or a token; None when it says nothing of use."""
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
    """Texts of any length become comparable in constant time by it."""
    return hashlib.sha256(text).digest()

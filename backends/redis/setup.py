"""Connecting to a server: the checks of the server, and loading the library.

This module does no input and output: `setup` is a generator that yields commands and is sent their replies, an error
reply as an exception object. The blocking backend and the asynchronous one drive it.

Loading. At connect a client calls `<library>_digest`, which replies `<revision>:<digest>`. The client loads its library
if the server has none, if the server's has a lower revision, or if it has the same revision and another digest (someone
works on the library: the last client to connect wins). A library of a higher revision stays, because it serves older
clients: an incompatible library has another name (`bundle.LIBRARY`). So clients of different versions settle on the
newest library in any order of connecting. The revision is the package's version, so it need not be raised by hand. To
return to an older library after a bad release, connect once with `load=always`.

A missing library is loaded without REPLACE: of many clients that find none, one loads it, and the others get the error
that it exists. Loading with REPLACE is atomic, and no call fails meanwhile.

Servers without functions (Redis 6, and all with `functions=no`) get the same bundle as a script, which is found by the
digest of its text: there each version has its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, cast

import redis.connection
from redis import exceptions as raised

from qmodel.backends import bundle
from qmodel.backends.redis.confirm import check_confirm
from qmodel.backends.redis.resend import NO_DATABASE, code_of, may_pass, no_database, said_by, server_error
from qmodel.backends.redis.route import Route
from qmodel.backends.redis.url import Options
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.errors import ConnectError

Command = tuple[str, ...]

_pack: Callable[[Command], bytes] | None = None
with contextlib.suppress(ImportError):  # hiredis is optional, as it is for redis-py
    from hiredis import pack_command

    _pack = cast(Any, pack_command)
T = TypeVar("T")
Talk = Generator[Command, Any, T]
"""A dialogue with a server: a generator that yields commands, is sent replies, and returns its findings."""

OLDEST: Final = (6, 0)


class Warned(NamedTuple):
    """A warning about the server, which does not prevent connecting."""

    code: str
    sentence: str
    next_step: str

    def __str__(self) -> str:
        return f"{self.sentence} {self.next_step}"


# ---- how an operation is sent


class Dialect:
    """Writes operations for one server: as FCALL, or as EVALSHA."""

    def __init__(self, prefix: str, functions: bool) -> None:
        self.functions = functions
        self._prefix = prefix
        self._words: dict[type[Operation], Command] = {}
        self._heads: dict[type[Operation], tuple[int, str]] = {}
        for name, spec in CATALOGUE.items():
            words: Command = ("FCALL", bundle.function_name(name), "1", prefix)
            if not functions:
                words = ("EVALSHA", script_digest(), "1", prefix, name)
            self._words[spec.cls] = words
            self._heads[spec.cls] = len(words), "".join(map(_word, words))

    @property
    def _calls(self) -> Command:
        if self.functions:
            return ("FCALL", bundle.CALLS, "1", self._prefix)
        return ("EVALSHA", script_digest(), "1", self._prefix, "calls")

    @property
    def mark(self) -> bytes:
        """The bytes of a write that changes nothing; confirm.py says what for."""
        words = ("FCALL", f"{bundle.LIBRARY}_mark", "1", self._prefix)
        return packed(words if self.functions else ("EVALSHA", script_digest(), "1", self._prefix, "mark"))

    def pack(self, cls: type[Operation], args: list[str]) -> bytes:
        """Write the bytes to send for an operation with encoded arguments."""
        if _pack is not None:
            return _pack((*self._words[cls], *args))
        return self._packed(*self._heads[cls], args)

    def pack_calls(self, calls: Sequence[tuple[Operation, list[str]]]) -> bytes:
        """Write the bytes to send for several operations in one call."""
        words = [word for op, args in calls for word in (op.spec.name, str(len(args)), *args)]
        if _pack is not None:
            return _pack((*self._calls, *words))
        return self._packed(len(self._calls), "".join(map(_word, self._calls)), words)

    def _packed(self, count: int, head: str, args: list[str]) -> bytes:
        text = f"*{count + len(args)}\r\n{head}" + "".join([f"${len(a)}\r\n{a}\r\n" for a in args])
        return text.encode() if text.isascii() else self._pack_wide(count, head, args)

    def _pack_wide(self, count: int, head: str, args: list[str]) -> bytes:
        """Write the bytes for arguments with non-ASCII characters."""
        parts = [f"*{count + len(args)}\r\n{head}".encode()]
        for arg in args:
            raw = arg.encode()
            parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
        return b"".join(parts)


def packed(words: Command) -> bytes:
    """Write the bytes to send for a command."""
    raw = [word.encode() for word in words]
    return b"*%d\r\n" % len(raw) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in raw])


def _word(text: str) -> str:
    return f"${len(text)}\r\n{text}\r\n"


@cache
def script_digest() -> str:
    """Compute the digest by which EVALSHA finds the script."""
    return hashlib.sha1(bundle.script().encode()).hexdigest()


# ---- the library


class ForeignLibrary(ConnectError):
    """The server has a function library of qmodel's name that is not qmodel's."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} has a function library named {bundle.LIBRARY} that is not qmodel's.",
            f"Look at it: FUNCTION LIST LIBRARYNAME {bundle.LIBRARY} WITHCODE. If nothing needs it, remove it: "
            f"FUNCTION DELETE {bundle.LIBRARY}. Or write functions=no in the URL: qmodel then runs as a script.",
        )
        self.library = bundle.LIBRARY


def loading(functions: bool, options: Options) -> Talk[list[Warned]]:
    """Make sure that the server has the library, or the script."""
    if not functions:
        return (yield from _loading_script(options))
    there = yield ("FCALL", f"{bundle.LIBRARY}_digest", "0")
    if code_of_reply(there) == "NOFUNCTION":
        if options.load == "never":
            raise ConnectError(
                f"{options.where} does not have the library {bundle.LIBRARY}, and load=never forbids loading it.",
                "Connect once without load=never, as a user who may FUNCTION LOAD.",
            )
        said = yield ("FUNCTION", "LOAD", bundle.library())
        if not isinstance(said, Exception):
            return []
        if "already exists" not in str(said):
            _refuse_unloadable(said, options)
        there = yield ("FCALL", f"{bundle.LIBRARY}_digest", "0")  # another client has loaded it meanwhile
        if code_of_reply(there) == "NOFUNCTION":
            raise ForeignLibrary(options.where)
    _raise_if_error(there, options)
    if not isinstance(there, bytes | str):
        raise ForeignLibrary(options.where)
    return (yield from _replacing(_revision(there), options.load))


def _replacing(there: tuple[int, str], load: str) -> Talk[list[Warned]]:
    ours = (bundle.revision(), bundle.digest())
    if there == ours or load == "never":
        return []
    if there[0] > ours[0] and load != "always":
        return [
            Warned(
                "NEWER_LIBRARY",
                "The library on the server is of a newer qmodel, and serves this one.",
                "Upgrade this process when you can; load=always would put the older one back.",
            )
        ]
    said = yield ("FUNCTION", "LOAD", "REPLACE", bundle.library())
    if isinstance(said, Exception):
        return [
            Warned(
                "OLDER_LIBRARY",
                f"The library on the server is of an older qmodel, and was not replaced: {said}.",
                "Connect once as a user who may FUNCTION LOAD.",
            )
        ]
    return []


def _revision(raw: Any) -> tuple[int, str]:
    text = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
    revision, _, digest = text.partition(":")
    return (int(revision), digest) if revision.isdigit() else (0, text)


def _loading_script(options: Options) -> Talk[list[Warned]]:
    there = yield ("SCRIPT", "EXISTS", script_digest())
    if there != [1]:
        said = yield ("SCRIPT", "LOAD", bundle.script())
        _raise_if_error(said, options)
    return []


def _refuse_unloadable(error: Exception, options: Options) -> None:
    if code_of(error) == "NOPERM":
        raise ConnectError(
            f"{options.where} does not have the library {bundle.LIBRARY}, and this user may not load it.",
            "Connect once as a user with +function|load, or grant that.",
        ) from error
    _raise_if_error(error, options)


# ---- checks


class Found(NamedTuple):
    """The result of connecting."""

    functions: bool
    warnings: tuple[Warned, ...]
    facts: dict[str, str]


def setup(options: Options, route: Route) -> Talk[Found]:
    """Check the server, load the library, and check the user's permissions."""
    warnings: list[Warned] = []
    facts: dict[str, str] = {}
    info = yield ("INFO",)
    functions = options.functions
    if code_of_reply(info) == "NOPERM":
        warnings.append(_NO_INFO)
    else:
        _raise_if_error(info, options)
        facts = _facts(info)
        functions = functions and _version(facts) >= (7, 0)
        if _is_cluster(facts) and route.kind == "server" and options.seeds:
            route.note(options.seeds[0], (yield ("CLUSTER", "SLOTS")))
        _check_server(facts, options)
        _check_role(facts, options, route)
        warnings += _warnings(facts, options, functions)
        warnings += yield from _persistence(facts)
        check_confirm(options.confirm, facts, options.where)
    warnings += yield from loading(functions, options)
    if functions:
        yield from _check_permissions(options)
    return Found(functions, tuple(warnings), facts)


def _facts(info: Any) -> dict[str, str]:
    text = info if isinstance(info, str) else info.decode("utf-8", "replace")
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value.strip() for name, _, value in pairs}


def _version(facts: dict[str, str]) -> tuple[int, ...]:
    """Read the server's Redis version; for Valkey, the version that it is compatible with."""
    found = re.match(r"(\d+)\.(\d+)", facts.get("redis_version", ""))
    return (int(found[1]), int(found[2])) if found else (7, 0)


def _check_server(facts: dict[str, str], options: Options) -> None:
    where = options.where
    if _version(facts) < OLDEST:
        raise ConnectError(
            f"{where} is Redis {facts['redis_version']}; qmodel needs 6.0 or later.",
            "Upgrade to Valkey, or to Redis 7 or later, which have functions.",
        )
    if _is_cluster(facts) and "{" not in options.prefix:
        raise ConnectError(
            f"{where} is a cluster, where the keys of one namespace must share a slot; the prefix "
            f"'{options.prefix}' has no hash tag.",
            f"Add one to the URL: prefix={{qmodel}}:{options.prefix}",
        )
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and not options.accept_eviction:
        raise ConnectError(
            f"{where} has maxmemory-policy {policy}: when memory is full it would delete jobs.",
            "Set it: CONFIG SET maxmemory-policy noeviction (and in redis.conf); or accept the loss "
            "with eviction=accept in the URL.",
        )


def _is_cluster(facts: dict[str, str]) -> bool:
    return "cluster" in (facts.get("redis_mode"), facts.get("server_mode"))


def _check_role(facts: dict[str, str], options: Options, route: Route) -> None:
    """Refuse a replica; where another node is the master, or will be soon, that one is looked for instead."""
    if facts.get("role") != "slave":
        return
    if route.kind != "server":
        raise raised.ReadOnlyError(f"{options.where} led to a replica, which takes no writes.")
    master = f"{facts.get('master_host', '?')}:{facts.get('master_port', '?')}"
    raise ConnectError(f"{options.where} is a replica, which takes no writes.", f"Connect to its master, {master}.")


_NO_INFO: Final = Warned(
    "NO_INFO",
    "This user may not run INFO, so version, role and maxmemory-policy were not checked.",
    "Grant +info, or check that the policy is noeviction.",
)


def _warnings(facts: dict[str, str], options: Options, functions: bool) -> Iterable[Warned]:
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        yield Warned(
            "EVICTION",
            f"maxmemory-policy is {policy}: when memory is full the server deletes jobs.",
            "Set maxmemory-policy noeviction.",
        )
    if not functions and options.functions:
        yield Warned(
            "NO_FUNCTIONS",
            f"Redis {facts['redis_version']} has no functions; the library runs as a script.",
            "Upgrade to Valkey, or to Redis 7 or later, so that a full server can still drain.",
        )


def _persistence(facts: dict[str, str]) -> Talk[list[Warned]]:
    """Warn if a restart of the server would lose data. Managed servers often forbid CONFIG."""
    if facts.get("aof_enabled") == "1":
        said = yield ("CONFIG", "GET", "appendfsync")
        how = _setting(said)
        facts["appendfsync"] = how.decode() if isinstance(how, bytes) else ""
        if how == b"no":
            return [
                Warned(
                    "NO_FSYNC",
                    "appendfsync is no: a power failure loses what the system has not yet written.",
                    "Set appendfsync everysec, or always to lose nothing that was acknowledged.",
                )
            ]
        return []
    said = yield ("CONFIG", "GET", "save")
    if _setting(said) == b"":
        return [
            Warned(
                "NO_PERSISTENCE",
                "Persistence is off: all jobs are lost when the server stops.",
                "Set appendonly yes; start `qmodel serve` with --data FOLDER.",
            )
        ]
    return [
        Warned(
            "NO_AOF",
            "appendonly is no: when the server stops, the jobs since its last snapshot are lost.",
            "Set appendonly yes.",
        )
    ]


def _setting(said: Any) -> Any:
    """The value in a reply of CONFIG GET: a list, or a dictionary with protocol=3."""
    values = list(said.values()) if isinstance(said, dict) else said[1::2] if isinstance(said, list) else []
    return values[0] if values else None


def _check_permissions(options: Options) -> Talk[None]:
    """Refuse a user without all permissions: an operation would stop in the middle, and its writes would stay."""
    denied = yield ("FCALL", f"{bundle.LIBRARY}_denied", "1", options.prefix)
    if code_of_reply(denied) == "NOFUNCTION":  # an older library, which load=never left there
        return
    _raise_if_error(denied, options)
    if not isinstance(denied, list):
        raise ForeignLibrary(options.where)
    if denied:
        names = [name.decode() for name in denied]
        raise ConnectError(
            f"The user of {options.where} may not run {', '.join(names)} on keys under '{options.prefix}'.",
            f"ACL SETUSER <user> ~{options.prefix}* " + " ".join(f"+{name.lower()}" for name in names),
        )


# ---- errors


def code_of_reply(reply: Any) -> str:
    """Give the code of an error reply; empty for any other reply."""
    return code_of(reply) if isinstance(reply, Exception) else ""


def _raise_if_error(reply: Any, options: Options) -> None:
    if not isinstance(reply, Exception):
        return
    if code_of(reply) == "NOPERM":
        call = "+fcall +function|load" if options.functions else "+evalsha +script|exists +script|load"
        raise ConnectError(
            f"The user of {options.where} lacks a permission: {str(reply).rstrip('.')}.",
            f"ACL SETUSER <user> ~{options.prefix}* {call} {_needed()}",
        ) from reply
    raise reply


def _needed() -> str:
    return " ".join(f"+{name.lower()}" for name in bundle.commands())


def is_hopeless(error: BaseException, options: Options, routed: bool = False) -> bool:
    """Whether trying the first connection again is useless: the server denies access, or the URL is wrong.

    READONLY passes for a call, because a failover ends. A first connection that meets it has found a replica, unless
    it is `routed`: then the master is looked for. A password that a provider gives may be a new one soon.
    """
    code = code_of(error)
    if code == "NOAUTH" and "credential_provider" in options.connection:
        return False
    if (
        (code == "READONLY" and not routed)
        or not may_pass(error)
        or any(NO_DATABASE in str(one) for one in _chain(error))
    ):
        return True
    cause = error.__cause__ or error.__context__  # redis-py wraps what the system said
    return isinstance(cause, PermissionError) or _is_wrong_tls(cause, options)


def _is_wrong_tls(error: BaseException | None, options: Options) -> bool:
    """Whether the two sides cannot agree on TLS: a server without it, a wrong certificate, a missing file."""
    if options.connection.get("connection_class") is not redis.connection.SSLConnection:
        return False
    import ssl

    passing = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
    return isinstance(error, FileNotFoundError) or (isinstance(error, ssl.SSLError) and not isinstance(error, passing))


def failed(error: BaseException, options: Options, routed: bool = False) -> ConnectError:
    """Make the error of a first connection: the diagnosis, and for how long it was tried if trying could help."""
    found = diagnose(error, options)
    if options.first_deadline and not is_hopeless(error, options, routed):
        found.next_step += f" It was tried again for {options.first_deadline:g} seconds."
        found.args = (found.sentence, found.next_step)
    return found


def diagnose(error: BaseException, options: Options) -> ConnectError:
    """Explain why a server could not be reached, and what to do."""
    where, text = options.where, said_by(error)
    if any(NO_DATABASE in str(one) for one in _chain(error)):
        return no_database(where)
    if code_of(error) == "NOAUTH":
        given = "password" in options.connection or "credential_provider" in options.connection
        return ConnectError(
            f"{where} refused the user name or password."
            if given
            else f"{where} wants a password, and the URL has none.",
            "Write it as redis://user:password@host (user may be left out; escape @ : / as %40 %3A %2F).",
        )
    if code_of(error) == "NOPERM":
        return ConnectError(f"The user of {where} lacks a permission: {text}", "Extend its ACL rules.")
    if _is_tls(error):
        return ConnectError(
            f"{where}: no TLS connection: {text}",
            "Use redis:// where the server speaks no TLS; name its authority with ssl_ca_certs=.",
        )
    if "ssl_" not in text and _looks_like_tls(error, options):
        return ConnectError(
            f"{where} closed the connection at once: {text}",
            "If it is a TLS port, use rediss://; otherwise see the server's log.",
        )
    if code_of(error) == "READONLY":
        return ConnectError(f"{where} is a replica, which takes no writes.", "Connect to its master.")
    if isinstance(error, raised.ResponseError):
        return server_error(error, where)
    if isinstance(error, (TimeoutError, raised.TimeoutError)):
        return ConnectError(
            f"{where} did not answer in {options.connection['socket_connect_timeout']} seconds.",
            "If it speaks no TLS, use redis://; otherwise, is a firewall in between?"
            if options.connection.get("connection_class") is redis.connection.SSLConnection
            else "Is a firewall in between? See host and port in the URL.",
        )
    return ConnectError(f"{where} cannot be reached: {text}", "Is the server up, and the URL right?")


def _chain(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_tls(error: BaseException) -> bool:
    import ssl

    return any(isinstance(one, ssl.SSLError) for one in _chain(error)) or "SSL" in str(error)


def _looks_like_tls(error: BaseException, options: Options) -> bool:
    """Guess whether this is a TLS port: it closes the connection of a client without TLS."""
    plain = options.connection.get("connection_class") is None
    return plain and bool(re.search("closed by server|reset by peer|104|broken pipe|lost", str(error), re.I))

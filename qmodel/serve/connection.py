"""Commands about a connection: PING, ECHO, AUTH, HELLO, SELECT, QUIT, RESET, CLIENT and COMMAND."""

from __future__ import annotations

from typing import Any, Final

from qmodel.serve.commands import COMMANDS, COMPATIBLE, command, is_number, subcommand, usage
from qmodel.serve.host import Connection
from qmodel.serve.resp import NO_LIST, OK, Fault, Pairs, Status
from qmodel.serve.session import Session
from qmodel.version import __version__


@command("PING", -1, "fast")
def ping(session: Session, words: list[str]) -> Any:
    """Check that the server answers."""
    if len(words) > 2:
        return usage("PING")
    if session.version == 2 and (session.channels or session.patterns):
        return ["pong", words[1] if len(words) == 2 else ""]
    return words[1] if len(words) == 2 else Status("PONG")


@command("ECHO", 2, "fast")
def echo(session: Session, words: list[str]) -> Any:
    """Return the given text."""
    return words[1]


@command("AUTH", -2, "noscript loading stale fast no_auth")
def auth(session: Session, words: list[str]) -> Any:
    """Authenticate: AUTH [user] password; without a user as `default`."""
    if len(words) > 3:
        return Fault("ERR syntax error")
    if not session.host.users:
        return Fault("ERR AUTH <password> called without any password configured for the default user")
    user, password = ("default", words[1]) if len(words) == 2 else (words[1], words[2])
    return OK if session.host.admit(session, user, password) else _WRONG


_WRONG: Final = Fault("WRONGPASS invalid username-password pair or user is disabled.")


@command("HELLO", -1, "noscript loading stale fast no_auth")
def hello(session: Session, words: list[str]) -> Any:
    """Choose the protocol version: HELLO [2|3 [AUTH user password] [SETNAME name]]."""
    version, name = session.version, session.name
    if len(words) > 1:
        if words[1] not in ("2", "3"):
            return Fault("NOPROTO unsupported protocol version")
        version = int(words[1])
    at = 2
    while at < len(words):
        option = words[at].upper()
        if option == "AUTH" and at + 2 < len(words):
            if not session.host.admit(session, words[at + 1], words[at + 2]):
                return _WRONG
            at += 3
        elif option == "SETNAME" and at + 1 < len(words):
            name = words[at + 1]
            if not _is_plain(name):
                return _NOT_PLAIN
            at += 2
        else:
            return Fault(f"ERR syntax error in HELLO option '{words[at][:64]}'")
    if not session.authenticated:
        return Fault("NOAUTH HELLO must be called with the client already authenticated, or with AUTH")
    session.version, session.name = version, name
    facts = ("server", "qmodel", "version", COMPATIBLE, "proto", version, "id", session.id, "mode", "standalone")
    return Pairs((*facts, "role", "master", "modules", [], "qmodel_version", __version__))


@command("SELECT", 2, "loading stale fast")
def select(session: Session, words: list[str]) -> Any:
    """Select another database; each database has its own namespaces."""
    if not is_number(words[1]):
        return Fault("ERR value is not an integer or out of range")
    if len(words[1]) > 4 or int(words[1]) >= session.host.options.databases:
        return Fault("ERR DB index is out of range")
    session.db = int(words[1])
    return OK


@command("QUIT", -1, "fast no_auth")
def quit_(session: Session, words: list[str]) -> Any:
    """Close the connection."""
    session.closing = True
    return OK


@command("RESET", 1, "fast no_auth")
def reset(session: Session, words: list[str]) -> Any:
    """Reset the connection to its initial state."""
    session.host.channels.leave(session)
    session.db, session.version, session.name, session.queued, session.spoiled = 0, 2, "", None, False
    session.authenticated = not session.host.users
    return Status("RESET")


@command("CLIENT", -2)
def client(session: Session, words: list[str]) -> Any:
    """Show and name connections."""
    found = subcommand(words, "ID", "GETNAME", "SETNAME", "SETINFO", "LIST", "INFO", "NO-EVICT", "NO-TOUCH", "UNBLOCK")
    if isinstance(found, Fault):
        return found
    if found == "ID":
        return session.id
    if found == "GETNAME":
        return session.name or None
    if found == "LIST":
        return "".join(_line(one) + "\n" for one in session.host.sessions)
    if found == "INFO":
        return _line(session) + "\n"
    if found == "UNBLOCK":
        return _unblock(session, words)
    return _set(session, found, words)


def _unblock(session: Session, words: list[str]) -> Any:
    """End the BLPOP or XREAD of another connection, as if its time was up: CLIENT UNBLOCK id [TIMEOUT | ERROR]."""
    how = words[3].upper() if len(words) == 4 else "TIMEOUT"
    if len(words) not in (3, 4) or how not in ("TIMEOUT", "ERROR"):
        return usage("CLIENT|UNBLOCK")
    if not is_number(words[2]):
        return Fault("ERR value is not an integer or out of range")
    waiting = [one.waiting for one in session.host.sessions if str(one.id) == words[2] and one.waiting is not None]
    for one in waiting:
        one.end(NO_LIST if how == "TIMEOUT" else Fault("UNBLOCKED client unblocked via CLIENT UNBLOCK"))
    return len(waiting)


def _set(session: Session, what: str, words: list[str]) -> Any:
    if len(words) != (4 if what == "SETINFO" else 3):
        return usage("CLIENT|" + what)
    if not _is_plain(words[-1]):
        return _NOT_PLAIN
    if what == "SETNAME":
        session.name = words[2]
    elif what == "SETINFO":
        session.library = f"{session.library} {words[3]}".strip()[:128]
    return OK


def _is_plain(word: str) -> bool:
    """Whether a word may stand in a line of CLIENT LIST."""
    return all(33 <= ord(c) <= 126 for c in word)


_NOT_PLAIN: Final = Fault("ERR names of clients have no blanks, line ends or special characters")


def _line(session: Connection) -> str:
    """Write a connection as a line of CLIENT LIST."""
    subscribed = f"sub={len(session.channels)} psub={len(session.patterns)}"
    multi = len(session.queued) if session.queued is not None else -1
    return (
        f"id={session.id} addr={session.peer} name={session.name} db={session.db} {subscribed} multi={multi} "
        f"resp={session.version} lib-name={session.library}"
    )


@command("COMMAND", -1, "loading stale")
def commands(session: Session, words: list[str]) -> Any:
    """List the commands: COMMAND [COUNT | LIST | INFO name ... | DOCS name ...]."""
    if len(words) == 1:
        return [one.described() for one in COMMANDS.values()]
    found = subcommand(words, "COUNT", "LIST", "INFO", "DOCS")
    if isinstance(found, Fault):
        return found
    if found == "COUNT":
        return len(COMMANDS)
    if found == "LIST":
        return [name.lower() for name in COMMANDS]
    named = [COMMANDS.get(name.upper()) for name in words[2:]] or list(COMMANDS.values())
    if found == "INFO":
        return [one.described() if one else None for one in named]
    docs = [(one.name.lower(), Pairs(("summary", one.summary, "since", "0.1.0"))) for one in named if one]
    return Pairs(part for pair in docs for part in pair)

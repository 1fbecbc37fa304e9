"""FUNCTION and FCALL: the library as a client sees it.

No Lua runs here. FUNCTION LOAD recognises a library by its text. Our own library is loaded at the start. After
FUNCTION DELETE or FLUSH it is missing until it is loaded again, so that a binding can test that it loads the library.
"""

from __future__ import annotations

import asyncio
import re
from fnmatch import fnmatchcase
from typing import Any, Final

from qmodel.backends import bundle
from qmodel.dialects.qless import QlessError
from qmodel.serve.commands import command, is_number, subcommand, usage
from qmodel.serve.functions import (
    DENIED,
    DIGEST,
    FUNCTIONS,
    OTHERS,
    QLESS,
    QLESS_DOCUMENT,
    Dialect,
    ModelExecutor,
    calls_of,
)
from qmodel.serve.resp import OK, Fault, Pairs
from qmodel.serve.session import Session

NOT_FOUND: Final = Fault("ERR Function not found")


def _flags(name: str) -> list[str]:
    spec = FUNCTIONS.get(name)
    if name in (QLESS, QLESS_DOCUMENT):
        return []
    if spec is None or spec.reads:
        return ["no-writes"]
    return ["allow-oom"] if spec.finishes else []


# ---- calls


def check_key(words: list[str], name: str) -> Fault | None:
    """Give the error of a call that does not have exactly one key."""
    if not is_number(words[2]):
        return Fault("ERR Bad number of keys provided")
    if words[2] != "1" or len(words) < 4:
        return Fault(f"ERR {name} takes one key, the prefix: {words[0].upper()} {words[1]} 1 ql: '' '' <argument> ...")
    return None


@command("FCALL", -3, "noscript movablekeys")
def fcall(session: Session, words: list[str]) -> Any:
    """Execute an operation: FCALL qmodel_v1_<operation> 1 prefix now request argument ..."""
    host = session.host
    spec = FUNCTIONS.get(words[1])
    if spec is None or not host.loaded:
        return _other(session, words)
    if words[2] != "1" or len(words) < 4:
        return check_key(words, words[1]) or NOT_FOUND
    return host.executor.call(session.db, spec, words[3], words, 4)


@command("FCALL_RO", -3, "noscript movablekeys readonly")
def fcall_ro(session: Session, words: list[str]) -> Any:
    """Execute a reading operation."""
    spec = FUNCTIONS.get(words[1])
    if spec is not None and not spec.reads and session.host.loaded:
        return Fault("ERR Can not execute a script with write flag using *_ro command.")
    return fcall(session, words)


def _other(session: Session, words: list[str]) -> Any:
    """Execute a function that is not an operation: the digest, the qless dialect, and the list of denied commands."""
    judge = session.host.judge
    if judge is not None and words[1] not in (*FUNCTIONS, *OTHERS):
        judge.unknown(session.id, words)
    if not session.host.loaded:
        return NOT_FOUND
    if words[1] == DIGEST:
        return f"{bundle.revision()}:{bundle.digest()}"
    if words[1] == bundle.CALLS:
        return check_key(words, words[1]) or calls(session, words[3], words, 4)
    if words[1] in (QLESS, QLESS_DOCUMENT):
        simulated = words[2:3] == ["2"] and words[4:5] == [bundle.SIMULATED]
        if not simulated and (fault := check_key(words, words[1])):
            return fault
        prefix, given = words[3], words[4 + simulated :]
        if words[1] == QLESS:
            return qless_call(session, prefix, given, "ERR ", simulated)
        return document_call(session, prefix, given, "ERR ", simulated)
    return [] if words[1] == DENIED else NOT_FOUND  # no commands are denied: the model needs none


def calls(session: Session, prefix: str, words: list[str], at: int) -> Any:
    """Execute several operations in order, each a step of its own; give the list of their replies."""
    found = calls_of(words, at)
    if found is None:
        return ["BAD_ARGUMENT", "calls", "operations"]
    call = session.host.executor.call
    if isinstance(session.host.executor, ModelExecutor):
        return [call(session.db, spec, prefix, one, 0) for spec, one in found]

    async def forward() -> list[Any]:
        replies = []
        for spec, one in found:
            raw = call(session.db, spec, prefix, one, 0)
            replies.append(await raw if asyncio.iscoroutine(raw) else raw)
        return replies

    return forward()


def qless_call(session: Session, prefix: str, words: list[str], error_prefix: str, simulated: bool = False) -> Any:
    """Execute a call of the qless dialect, and publish its messages; `error_prefix` stands before its errors. Before a
    simulated call, whose moment is not real, no epoch begins.
    """
    return _dialect_call(session, prefix, "qless", words, error_prefix, simulated)


def document_call(session: Session, prefix: str, words: list[str], error_prefix: str, simulated: bool = False) -> Any:
    """Execute a call of an early document of qless: the document, the operation, and its keys and arguments."""
    if len(words) < 2:
        return Fault(f"ERR {QLESS_DOCUMENT} takes a document and an operation: 000 get")
    return _dialect_call(session, prefix, "document", words, error_prefix, simulated)


def _dialect_call(
    session: Session, prefix: str, dialect: Dialect, words: list[str], error_prefix: str, simulated: bool
) -> Any:
    host = session.host
    if not isinstance(host.executor, ModelExecutor):
        return Fault("ERR the qless dialect needs the model: start qmodel serve without --url")
    try:
        answer = host.executor.dialect(session.db, prefix, dialect, words, simulated)
    except QlessError as error:
        return Fault(error_prefix + error.sentence)
    for channel, message in answer.published:
        host.channels.publish(prefix + channel, message)
    return answer.reply


# ---- FUNCTION


@command("FUNCTION", -2, "noscript")
def function(session: Session, words: list[str]) -> Any:
    """Load, list or delete the library."""
    found = subcommand(words, "LOAD", "LIST", "DELETE", "FLUSH", "STATS")
    if isinstance(found, Fault):
        return found
    if found == "LOAD":
        return _load(session, words)
    if found == "LIST":
        return _list(session, words)
    if found == "STATS":
        libraries = 1 if session.host.loaded else 0
        counts = Pairs(("libraries_count", libraries, "functions_count", libraries * (len(FUNCTIONS) + len(OTHERS))))
        return Pairs(("running_script", None, "engines", Pairs(("LUA", counts))))
    if found == "DELETE" and (words[2:] != [bundle.LIBRARY] or not session.host.loaded):
        return Fault("ERR Library not found")
    session.host.loaded = False
    return OK


def _load(session: Session, words: list[str]) -> Any:
    replace = len(words) == 4 and words[2].upper() == "REPLACE"
    if len(words) != 3 + replace:
        return usage("FUNCTION|LOAD")
    named = re.match(r"#!lua name=(\w+)", words[-1])
    if named is None:
        return Fault("ERR Missing library metadata")
    if named[1] != bundle.LIBRARY:
        return Fault(f"ERR no Lua runs here: this server has the library {bundle.LIBRARY} and no other")
    if session.host.loaded and not replace:
        return Fault(f"ERR Library '{bundle.LIBRARY}' already exists")
    if words[-1] != bundle.library():
        ours = f"{bundle.revision()}:{bundle.digest()}"
        return Fault(
            f"ERR no Lua runs here: this server has version {ours} of {bundle.LIBRARY}; "
            "start the qmodel serve of your version"
        )
    session.host.loaded = True
    return bundle.LIBRARY


def _list(session: Session, words: list[str]) -> Any:
    rest = [word.upper() for word in words[2:]]
    with_code = "WITHCODE" in rest
    pattern = words[2 + rest.index("LIBRARYNAME") + 1] if "LIBRARYNAME" in rest[:-1] else "*"
    if not session.host.loaded or not fnmatchcase(bundle.LIBRARY, pattern):
        return []
    names = [*FUNCTIONS, *OTHERS]
    functions = [Pairs(("name", name, "description", None, "flags", _flags(name))) for name in names]
    code = ("library_code", bundle.library()) if with_code else ()
    return [Pairs(("library_name", bundle.LIBRARY, "engine", "LUA", "functions", functions, *code))]

"""The library, as a client sees it: FUNCTION, FCALL, and the same bundle as a script for servers without functions.

No Lua runs here. What is loaded is recognised: our own library by its text, and our own script by its digest. The
library is there from the beginning; one who deletes it (FUNCTION FLUSH) finds it gone, and can load it again, so that a
binding can test that it does. A script is there once it was loaded, as on Redis.
"""

from __future__ import annotations

import hashlib
import re
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from qmodel.backends import bundle
from qmodel.operations import CATALOGUE
from qmodel.serve.commands import command, subcommand, usage
from qmodel.serve.functions import DENIED, DIGEST, FUNCTIONS
from qmodel.serve.resp import OK, Fault, Pairs

if TYPE_CHECKING:
    from qmodel.serve.session import Session

NOT_FOUND: Final = Fault("ERR Function not found")
NO_SCRIPT: Final = Fault("NOSCRIPT No matching script. Please use EVAL.")


def _flags(name: str) -> list[str]:
    spec = FUNCTIONS.get(name)
    if spec is None or spec.reads:
        return ["no-writes"]
    return ["allow-oom"] if spec.finishes else []


# ---- calls


def _keys(words: list[str], name: str) -> Fault | None:
    """Refuse a call that does not have exactly one key."""
    if not words[2].isdigit():
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
        return _keys(words, words[1]) or NOT_FOUND
    return host.executor.call(session.db, spec, words[3], words, 4)


@command("FCALL_RO", -3, "noscript movablekeys readonly")
def fcall_ro(session: Session, words: list[str]) -> Any:
    """Execute an operation that reads."""
    spec = FUNCTIONS.get(words[1])
    if spec is not None and not spec.reads and session.host.loaded:
        return Fault("ERR Can not execute a script with write flag using *_ro command.")
    return fcall(session, words)


def _other(session: Session, words: list[str]) -> Any:
    """What is no operation: the library's digest, and which commands the caller lacks (none: it needs none)."""
    if not session.host.loaded:
        return NOT_FOUND
    if words[1] == DIGEST:
        return f"{bundle.revision()}:{bundle.digest()}"
    return [] if words[1] == DENIED else NOT_FOUND


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
        counts = Pairs(("libraries_count", libraries, "functions_count", libraries * (len(FUNCTIONS) + 2)))
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
        return Fault(f"ERR no Lua runs here: this server has the library {bundle.LIBRARY}, as the model, and no other")
    if session.host.loaded and not replace:
        return Fault(f"ERR Library '{bundle.LIBRARY}' already exists")
    if words[-1] != bundle.library():
        ours = f"{bundle.revision()}:{bundle.digest()}"
        return Fault(
            f"ERR no Lua runs here: this server is {ours} of {bundle.LIBRARY}; start the qmodel serve of yours"
        )
    session.host.loaded = True
    return bundle.LIBRARY


def _list(session: Session, words: list[str]) -> Any:
    rest = [word.upper() for word in words[2:]]
    with_code = "WITHCODE" in rest
    pattern = words[2 + rest.index("LIBRARYNAME") + 1] if "LIBRARYNAME" in rest[:-1] else "*"
    if not session.host.loaded or not fnmatchcase(bundle.LIBRARY, pattern):
        return []
    names = [*FUNCTIONS, DIGEST, DENIED]
    functions = [Pairs(("name", name, "description", None, "flags", _flags(name))) for name in names]
    code = ("library_code", bundle.library()) if with_code else ()
    return [Pairs(("library_name", bundle.LIBRARY, "engine", "LUA", "functions", functions, *code))]


# ---- scripts


@cache
def own_digest() -> str:
    """The digest of our own script."""
    return digest_of(bundle.script())


def digest_of(text: str) -> str:
    """What EVALSHA calls a script."""
    return hashlib.sha1(text.encode("utf-8", "surrogateescape")).hexdigest()


def is_known(text: str) -> bool:
    """Whether this server can answer for a script."""
    return digest_of(text) == own_digest()


UNKNOWN_SCRIPT: Final = Fault(
    "ERR no Lua runs here: this server knows the script of this version of qmodel, and answers for it; of yours it "
    "knows nothing. Use FCALL, or a Redis or Valkey server"
)


@command("SCRIPT", -2, "noscript")
def script(session: Session, words: list[str]) -> Any:
    """Load a script that the server knows, ask which are there, or forget them."""
    found = subcommand(words, "LOAD", "EXISTS", "FLUSH")
    if isinstance(found, Fault):
        return found
    scripts = session.host.scripts
    if found == "EXISTS":
        return [1 if digest.lower() in scripts else 0 for digest in words[2:]]
    if found == "FLUSH":
        scripts.clear()
        return OK
    if len(words) != 3:
        return usage("SCRIPT|LOAD")
    if not is_known(words[2]):
        return UNKNOWN_SCRIPT
    scripts.add(digest_of(words[2]))
    return digest_of(words[2])


def _evaluate(session: Session, digest: str, words: list[str]) -> Any:
    """Answer for a script: `<prefix> <operation> <now> <request> <argument> ...` stand at words[3:]."""
    wrong = _keys(words, "the script")
    if wrong is not None:
        return wrong
    spec = CATALOGUE.get(words[4]) if len(words) > 4 else None
    if spec is None:
        return Fault("ERR the script's first argument names an operation; see docs/wire.md")
    return session.host.executor.call(session.db, spec, words[3], words, 5)


@command("EVAL", -3, "noscript movablekeys")
def eval_(session: Session, words: list[str]) -> Any:
    """Answer for a script that the server knows, given as text."""
    if not is_known(words[1]):
        return UNKNOWN_SCRIPT
    session.host.scripts.add(digest_of(words[1]))
    return _evaluate(session, digest_of(words[1]), words)


@command("EVALSHA", -3, "noscript movablekeys")
def evalsha(session: Session, words: list[str]) -> Any:
    """Answer for a script that was loaded, given by its digest."""
    digest = words[1].lower()
    return _evaluate(session, digest, words) if digest in session.host.scripts else NO_SCRIPT

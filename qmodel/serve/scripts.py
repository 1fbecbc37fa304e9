"""Scripts that the server knows, and answers for: SCRIPT, EVAL and EVALSHA.

No Lua runs here. Known are our own library as a script, which servers without functions get, and qless.lua in any of
its versions, which is recognised by what stands in it: whoever loads it gets the qless dialect on the model. A script
is there once it was loaded, as on Redis.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from qmodel.backends import bundle
from qmodel.contract.operations import CATALOGUE
from qmodel.dialects import qless
from qmodel.serve.commands import command, subcommand, usage
from qmodel.serve.library import keys_of, qless_call
from qmodel.serve.resp import OK, Fault, encode

if TYPE_CHECKING:
    from qmodel.serve.session import Session

NO_SCRIPT: Final = Fault("NOSCRIPT No matching script. Please use EVAL.")
UNKNOWN: Final = Fault(
    "ERR no Lua runs here: this server knows qless.lua, and the script of this version of qmodel, and not yours. "
    "Use FCALL, or a Redis or Valkey server"
)
_OWN_PREFIX: Final = re.compile(r"qless\.call\('((?:[^'\\\\]|\\\\.)*)', ARGV\)")
"""Where our own qless.lua says under which prefix it works; all others do so under `ql:`."""


class Known(NamedTuple):
    """A script that the server knows: ours, or qless.lua under a prefix."""

    prefix: str = ""
    is_qless: bool = False


@cache
def _own() -> str:
    return bundle.script()


def known(text: str) -> Known | None:
    """What a script is, or None if the server does not know it."""
    if text == _own():
        return Known()
    if not qless.recognise(text):
        return None
    said = _OWN_PREFIX.search(text) if text.startswith(bundle.QLESS_HEAD) else None
    return Known(re.sub(r"\\(.)", r"\1", said[1]) if said else "ql:", True)


def digest_of(text: str) -> str:
    """What EVALSHA calls a script."""
    return hashlib.sha1(encode(text)).hexdigest()


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
    return _loaded(session, words[2]) or UNKNOWN


def _loaded(session: Session, text: str) -> str | None:
    """Load a script; give its digest, or None if the server does not know it."""
    found = known(text)
    if found is None:
        return None
    digest = digest_of(text)
    session.host.scripts[digest] = found
    return digest


def _evaluate(session: Session, found: Known, words: list[str]) -> Any:
    """Answer for a script whose keys and arguments stand at words[2:]."""
    if found.is_qless:
        if words[2] != "0":
            return Fault("ERR user_script:1: No Keys should be provided")
        return qless_call(session, found.prefix, words[3:], "ERR user_script:1: ")
    wrong = keys_of(words, "the script")
    if wrong is not None:
        return wrong
    spec = CATALOGUE.get(words[4]) if len(words) > 4 else None
    if spec is None:
        return Fault("ERR the script's first argument names an operation; see docs/wire.md")
    return session.host.executor.call(session.db, spec, words[3], words, 5)


@command("EVAL", -3, "noscript movablekeys")
def eval_(session: Session, words: list[str]) -> Any:
    """Answer for a script that the server knows, given as text."""
    digest = _loaded(session, words[1])
    return UNKNOWN if digest is None else _evaluate(session, session.host.scripts[digest], words)


@command("EVALSHA", -3, "noscript movablekeys")
def evalsha(session: Session, words: list[str]) -> Any:
    """Answer for a script that was loaded, given by its digest."""
    found = session.host.scripts.get(words[1].lower())
    return NO_SCRIPT if found is None else _evaluate(session, found, words)

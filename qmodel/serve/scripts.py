"""SCRIPT, EVAL and EVALSHA, for the scripts that the server recognises.

No Lua runs here. The server recognises the library of this version as a script, which backends load into servers
without functions, and any version of qless.lua. Loading qless.lua gives the qless dialect on the model. As on Redis, a
script must be loaded before EVALSHA finds it.
"""

from __future__ import annotations

from typing import Any, Final

from qmodel.contract.operations import CATALOGUE
from qmodel.dialects.qless.commands import EARLY
from qmodel.serve.commands import command, subcommand, usage
from qmodel.serve.known_scripts import Known, digest_of, known
from qmodel.serve.library import calls, check_key, document_call, qless_call
from qmodel.serve.resp import OK, Fault
from qmodel.serve.session import Session

NO_SCRIPT: Final = Fault("NOSCRIPT No matching script. Please use EVAL.")
UNKNOWN: Final = Fault(
    "ERR no Lua runs here: this server knows the scripts of qless and the script of this version of qmodel, and no "
    "others. Use FCALL, or a Redis or Valkey server"
)


@command("SCRIPT", -2, "noscript")
def script(session: Session, words: list[str]) -> Any:
    """Load a known script, check which scripts are loaded, or remove them all."""
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
    """Load a script; give its digest, or None if the script is not known."""
    found = known(text)
    if found is None:
        return None
    digest = digest_of(text)
    session.host.scripts[digest] = found
    return digest


def _evaluate(session: Session, found: Known, words: list[str]) -> Any:
    """Execute the call of a known script; its keys and arguments stand at words[2:]."""
    if found.document:
        given = [found.document, found.operation, *words[3:]]
        return document_call(session, found.prefix, given, "ERR user_script:1: ")
    if found.is_qless:
        if words[2] != "0":
            return Fault("ERR user_script:1: No Keys should be provided")
        if found.is_reqless and words[3:]:
            words = [*words[:3], EARLY + words[3], *words[4:]]
        return qless_call(session, found.prefix, words[3:], "ERR user_script:1: ", found.is_simulated)
    error = check_key(words, "the script")
    if error is not None:
        return error
    if words[4:5] == ["calls"]:
        return calls(session, words[3], words, 5)
    spec = CATALOGUE.get(words[4]) if len(words) > 4 else None
    if spec is None:
        return Fault("ERR the script's first argument names an operation; see docs/wire.md")
    return session.host.executor.call(session.db, spec, words[3], words, 5)


@command("EVAL", -3, "noscript movablekeys")
def eval_(session: Session, words: list[str]) -> Any:
    """Execute a call of a known script, given as text."""
    digest = _loaded(session, words[1])
    return UNKNOWN if digest is None else _evaluate(session, session.host.scripts[digest], words)


@command("EVALSHA", -3, "noscript movablekeys")
def evalsha(session: Session, words: list[str]) -> Any:
    """Execute a call of a loaded script, given by its digest."""
    found = session.host.scripts.get(words[1].lower())
    return NO_SCRIPT if found is None else _evaluate(session, found, words)

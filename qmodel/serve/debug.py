"""DEBUG QMODEL: faults while the server runs, the judge's verdict, and the state for whoever compares it.

DEBUG QMODEL FAULT <rule>        put a rule in force (serve.faults)
DEBUG QMODEL FAULTS              the rules, and how often each has applied
DEBUG QMODEL HEAL                take all rules back
DEBUG QMODEL VERDICT             what the judge has found so far
DEBUG QMODEL SNAPSHOT <prefix>   the state of a namespace (conformance.snapshot), as JSON
DEBUG QMODEL RESET <prefix>      empty the namespaces whose prefix begins so
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qmodel.serve.commands import command
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.resp import OK, Fault

if TYPE_CHECKING:
    from qmodel.serve.session import Session

_HELP = "DEBUG QMODEL FAULT <rule> | FAULTS | HEAL | VERDICT | SNAPSHOT <prefix> | RESET <prefix>"


@command("DEBUG", -2, "noscript admin")
def debug(session: Session, words: list[str]) -> Any:
    """Make faults, see the verdict, look at the state: DEBUG QMODEL HELP."""
    what = words[2].upper() if len(words) > 2 and words[1].upper() == "QMODEL" else "HELP"
    rest = words[3:]
    if (what, len(rest)) in (("SNAPSHOT", 1), ("RESET", 1)):
        return _namespace(session, what, rest[0])
    faults = session.host.faults
    if (what, len(rest)) == ("FAULT", 1):
        try:
            faults.add(rest[0])
        except ValueError as error:
            return Fault(f"ERR {error}")
        return OK
    if (what, len(rest)) == ("FAULTS", 0):
        return [[one.text, one.applied] for one in faults.rules]
    if (what, len(rest)) == ("HEAL", 0):
        faults.heal()
        return OK
    if (what, len(rest)) == ("VERDICT", 0):
        judge = session.host.judge
        return Fault("ERR nobody judges: start with --judge") if judge is None else list(judge.lines())
    return [_HELP] if what == "HELP" else Fault(f"ERR write {_HELP}")


def _namespace(session: Session, what: str, prefix: str) -> Any:
    executor = session.host.executor
    if not isinstance(executor, ModelExecutor):
        return Fault("ERR the jobs are behind this server; ask the backend itself")
    if what == "SNAPSHOT":
        from qmodel.model import restore, snapshot

        return restore.dumps(snapshot.of(executor.spaces.look(session.db, prefix).store))
    executor.clear(session.db, prefix)
    if session.host.record is not None:
        session.host.record.cleared(session.db, prefix)
    return OK

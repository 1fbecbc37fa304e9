"""DEBUG QMODEL: change the fault rules of a running server, show the judge's verdict, and show or empty namespaces.

DEBUG QMODEL FAULT <rule>        add a fault rule (see qmodel/serve/faults.py)
DEBUG QMODEL FAULTS              list the rules, and how often each was applied
DEBUG QMODEL HEAL                remove all rules
DEBUG QMODEL VERDICT             show the findings of the judge so far
DEBUG QMODEL SNAPSHOT <prefix>   show the state of a namespace as JSON (see qmodel/model/snapshot.py)
DEBUG QMODEL RESET <prefix>      empty the namespaces whose prefix begins with <prefix>
"""

from __future__ import annotations

from typing import Any

from qmodel.serve.commands import command
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.resp import OK, Fault
from qmodel.serve.session import Session

_HELP = "DEBUG QMODEL FAULT <rule> | FAULTS | HEAL | VERDICT | SNAPSHOT <prefix> | RESET <prefix>"


@command("DEBUG", -2, "noscript admin")
def debug(session: Session, words: list[str]) -> Any:
    """Inject faults, show the verdict, show the state: DEBUG QMODEL HELP."""
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
        return Fault("ERR there is no judge: start with --judge") if judge is None else list(judge.lines())
    return [_HELP] if what == "HELP" else Fault(f"ERR write {_HELP}")


def _namespace(session: Session, what: str, prefix: str) -> Any:
    executor = session.host.executor
    if not isinstance(executor, ModelExecutor):
        return Fault("ERR another backend stores the jobs of this server; ask the backend itself")
    if what == "SNAPSHOT":
        from qmodel.model import restore, snapshot

        return restore.dumps(snapshot.of(executor.spaces.look(session.db, prefix).store))
    executor.clear(session.db, prefix)
    if session.host.record is not None:
        session.host.record.cleared(session.db, prefix)
    return OK

"""`docs/violation.svg`: a history that is not linearizable, as a picture.

The history is written by hand: a client checks which job is next, and claims it in a second step. Between the two,
another client gets the job.
"""

from __future__ import annotations

from qmodel.conformance.concurrency import timeline
from qmodel.conformance.concurrency.calls import Call
from qmodel.conformance.concurrency.linearizability import check
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.model import engine
from qmodel.model.state.store import Store

DAY = 1_700_006_400_000


def history() -> list[Call]:
    """Build the history of three clients, with the replies that each got."""
    store = Store()

    def call(client: str, called: int, returned: int, now: int, op: Operation) -> Call:
        outcome = engine.step(store, DAY + now, op)
        return Call(client, called * 1000, returned * 1000, DAY + now, op, outcome)

    found = [
        call("shop", 0, 220, 0, ops.Put("mail", "a", "SendMail", "{}")),
        call("shop", 260, 470, 1, ops.Put("mail", "b", "SendMail", "{}")),
        call("w1", 520, 980, 2, ops.Pop("mail", "w1")),
        call("shop", 610, 800, 3, ops.Queue("mail")),
    ]
    (job,) = found[2].outcome
    claimed = (job._replace(worker="w2", token=job.token + 1),)
    found.append(Call("w2", 560_000, 1_180_000, DAY + 4, ops.Pop("mail", "w2"), claimed))
    found.append(call("w1", 1040, 1260, 5, ops.Complete("a", job.token)))
    found.append(call("shop", 1300, 1480, 6, ops.Get("a")))
    return found


def svg() -> str:
    """Draw docs/violation.svg."""
    return timeline.svg(check(history()))

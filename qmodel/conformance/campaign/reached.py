"""The outcomes that histories reach: an operation, the situation of the job that it names, and its result.

A pair is an operation and a situation. An operation that names jobs can be tried in every situation of a job; any other
operation has the one situation `any`. So the number of pairs is known, and a campaign can list those it never tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from qmodel.conformance.histories.matrix import JOBLESS, SITUATIONS, situation
from qmodel.conformance.subjects.base import Step
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.state.store import Store

ANY = "any"
NAMES = ("jid", "jids", "jobs")
"""The arguments that name jobs."""


class Reached(NamedTuple):
    """An operation, the situation of a job that it named (or `any`), and its outcome.

    `outcome` is the code of a refusal, `changed` if the operation emitted an event, or else `nothing`.
    """

    operation: str
    situation: str
    outcome: str


def pairs() -> set[tuple[str, str]]:
    """List every possible pair of an operation and a situation."""
    found = set()
    for name, spec in CATALOGUE.items():
        naming = name not in JOBLESS and any(argument.name in NAMES for argument in spec.arguments)
        found |= {(name, one) for one in SITUATIONS if one != ANY} if naming else {(name, ANY)}
    return found


def count_outcomes(history: Iterable[Step], reached: Counter[Reached]) -> None:
    """Run a history on the model, and count the outcomes that it reaches. Stop where the model crashes."""
    store = Store()
    for now, op in history:
        situations = {situation(store, now, jid) for jid in _named(op)} or {ANY}
        before = store.seq
        try:
            outcome = engine.step(store, now, op)
        except Exception:  # the comparison reports it
            return
        code = outcome.code if isinstance(outcome, Refusal) else "nothing" if store.seq == before else "changed"
        reached.update(Reached(op.spec.name, one, code) for one in situations)


def _named(op: Operation) -> Iterator[str]:
    """Give the ids of the jobs that an operation names."""
    if op.spec.name in JOBLESS:
        return
    several: Any = getattr(op, "jids", ())
    inner: Any = getattr(op, "jobs", ())
    found = [getattr(op, "jid", None), *(several if type(several) is tuple else ())]
    found += [getattr(one, "jid", None) for one in (inner if type(inner) is tuple else ())]
    yield from (jid for jid in found if isinstance(jid, str))

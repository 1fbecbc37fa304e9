"""From what became of attempts to the operations that say so, as few as possible, and what the server said to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Complete, CompleteAndPop, CompleteMany, Operation, Pop, Release
from qmodel.worker.attempts import Attempt


def operation(attempt: Attempt) -> Operation:
    """The operation that says how an attempt ended."""
    outcome = attempt.outcome
    if outcome is None:
        return Release(attempt.jid, attempt.token)
    op: Operation = outcome.operation(attempt.job)
    return op


def composed(ended: Iterable[Attempt]) -> Iterator[tuple[Operation, list[Attempt]]]:
    """The operations for attempts that ended: those that are complete in one, of a job that was held twice once."""
    together: dict[str, tuple[Complete, Attempt]] = {}
    for attempt in ended:
        op = operation(attempt)
        if type(op) is Complete and op.next is None and op.jid not in together and len(together) < MOST:
            together[op.jid] = (op, attempt)
        else:
            yield op, [attempt]
    if len(together) == 1:
        ((op, attempt),) = together.values()
        yield op, [attempt]
    elif together:
        yield CompleteMany(tuple(op for op, _ in together.values())), [attempt for _, attempt in together.values()]


def joined(op: Operation, pop: Operation) -> CompleteAndPop | None:
    """One operation for the two, where there is one."""
    if type(op) is not Complete or type(pop) is not Pop:
        return None
    return CompleteAndPop(
        op.jid,
        op.token,
        pop.queue,
        pop.worker,
        pop.count,
        pop.wait,
        op.result,
        op.data,
        op.next,
        op.delay_ms,
        op.depends,
    )

"""Turn the outcomes of attempts into operations, as few as possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qmodel.client.homes import Homes
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Complete, CompleteAndPop, CompleteMany, Operation, Pop, Release
from qmodel.worker.attempt import Attempt


def operation(attempt: Attempt) -> Operation:
    """Make the operation that reports the outcome of an attempt."""
    outcome = attempt.outcome
    if outcome is None:
        return Release(attempt.jid, attempt.token)
    op: Operation = outcome.operation(attempt.job)
    return op


def composed(ended: Iterable[Attempt], homes: Homes | None = None) -> Iterator[tuple[Operation, list[Attempt]]]:
    """Make the operations for ended attempts; completed attempts share one operation, or one for each shard.

    A job that was held twice is completed once in it; its other attempt gets an operation of its own.
    """
    shards: dict[int, dict[str, tuple[Complete, Attempt]]] = {}
    for attempt in ended:
        op = operation(attempt)
        together = shards.setdefault(0 if homes is None else homes.home(attempt.jid), {})
        if type(op) is Complete and op.next is None and op.jid not in together and len(together) < MOST:
            together[op.jid] = (op, attempt)
        else:
            yield op, [attempt]
    for together in shards.values():
        if len(together) == 1:
            ((op, attempt),) = together.values()
            yield op, [attempt]
        elif together:
            yield CompleteMany(tuple(op for op, _ in together.values())), [attempt for _, attempt in together.values()]


def joined(op: Operation, pop: Operation) -> CompleteAndPop | None:
    """Combine a completion and a pop in one operation, if there is one for both."""
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

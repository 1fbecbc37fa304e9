"""Plain commands on the lists of queues: ZCARD of a list, EXISTS of several, and RPUSH of a wake-up.

The Ruby bindings of qless ask for lengths. A worker on a deployment asks whether a shard has anything at all, and
pushes back a wake-up that it cannot use.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from qmodel.backends import bundle
from qmodel.model.state.records import Queue
from qmodel.serve.commands import command
from qmodel.serve.functions import FUNCTIONS, ModelExecutor
from qmodel.serve.namespaces import WAKE, taken_apart
from qmodel.serve.resp import Fault
from qmodel.serve.session import Session

_PROXY: Final = Fault("ERR another backend stores the queues of this server: start qmodel serve without --url")

# ---- lengths

_LISTS: Final = {"work": (1,), "scheduled": (2,), "depends": (3,), "locks": (4, 5)}
"""The lists of a queue of qless, and which numbers of our reply add up to the length of each."""

_LIST: Final = re.compile(r".*?q:.+-(work|scheduled|depends|locks)", re.S)


@command("ZCARD", 2, "readonly fast", (1, 1, 1))
def zcard(session: Session, words: list[str]) -> Any:
    """Count the jobs in a list of a queue, `<prefix>q:<queue>-work`, as the Ruby bindings of qless do."""
    found = _LIST.fullmatch(words[1])
    if found is None:
        return Fault(
            "ERR ZCARD counts the jobs of a queue: its key is <prefix>q:<queue>-work, -scheduled, -depends or -locks"
        )
    prefix, queue = taken_apart(words[1].removesuffix(f"-{found[1]}"))
    asked = session.host.executor.call(session.db, FUNCTIONS[_COUNTS], prefix, ["", "", queue], 0)
    return _awaited(asked, found[1]) if inspect.iscoroutine(asked) else _length(asked, found[1])


_COUNTS: Final = bundle.function_name("queue")


async def _awaited(asked: Any, name: str) -> Any:
    return _length(await asked, name)


def _length(raw: Any, name: str) -> Any:
    """The length of a list, from the counts of its queue; nothing is in a queue with a name that no job has."""
    if isinstance(raw, Fault):
        return raw
    return sum(raw[1][at] for at in _LISTS[name]) if raw[0] == "OK" else 0


# ---- what a queue has

_HAS: Final[dict[str, Callable[[Queue], int]]] = {
    "-work": lambda queue: len(queue.ready),
    "-scheduled": lambda queue: len(queue.scheduled),
    "-locks": lambda queue: len(queue.locks),
    "-recur": lambda queue: len(queue.recur),
    "-gates": lambda queue: len(queue.parked),
}
"""The lists that show whether a queue has a job that is ready or becomes ready by itself, by the ends of their keys."""


@command("EXISTS", -2, "readonly fast", (1, -1, 1))
def exists(session: Session, words: list[str]) -> Any:
    """Count the lists of queues that are not empty: EXISTS <prefix>q:<queue>-work ..."""
    executor = session.host.executor
    if not isinstance(executor, ModelExecutor):
        return _PROXY
    unknown = [key for key in words[1:] if _ending(key) not in _HAS]
    if unknown:
        return Fault(f"ERR EXISTS looks at lists of queues here: <prefix>q:<queue> and {', '.join(_HAS)}")
    return count(executor, session.db, words[1:])


def count(executor: ModelExecutor, db: int, keys: Sequence[str]) -> int:
    """Count those of some lists that are not empty."""
    return sum(any(map(_HAS[_ending(key)], _queues(executor, db, key))) for key in keys)


def _ending(key: str) -> str:
    return key[key.rfind("-") :]


def _queues(executor: ModelExecutor, db: int, key: str) -> Iterator[Queue]:
    for space, name in executor.spaces.queues_of(db, key, _ending(key)):
        if name in space.store.queues:
            yield space.store.queues[name]


# ---- wake-ups


@command("RPUSH", 3, "write fast", (1, 1, 1))
def rpush(session: Session, words: list[str]) -> Any:
    """Give back a wake-up that BLPOP has taken: RPUSH <prefix>q:<queue>-wake 1."""
    executor = session.host.executor
    if not isinstance(executor, ModelExecutor):
        return _PROXY
    if not words[1].endswith(WAKE) or "q:" not in words[1]:
        return Fault("ERR RPUSH gives back wake-ups, and nothing else, on <prefix>q:<queue>-wake; see docs/wire.md")
    return executor.give_back_wake(session.db, words[1])

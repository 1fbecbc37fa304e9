"""Let a server lose the end of its log: readers that have read it meet another history."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from qmodel import Client
from qmodel.contract import operations as ops
from tests.servers import Server


def jobs(client: Client, count: int, name: str) -> None:
    """Make events: put jobs and pop them, so that tokens occur."""
    queue = client.queues["emails"]
    for number in range(count):
        queue.put("Send", {"number": number}, jid=f"{name}{number}")
        for job in queue.pop(1, worker="w"):
            job.complete()


def begin(client: Client, seconds: int) -> int:
    """Begin an epoch as a server does: so many seconds after the current one."""
    epoch = client.position().epoch + seconds * 10**6 + 7
    client.execute(ops.BeginEpoch(epoch))
    return epoch


@contextmanager
def rewound(client: Client) -> Iterator[None]:
    """At the end, put the state of the beginning into a namespace of this process."""
    saved = copy.deepcopy(client.backend.store)  # type: ignore[union-attr]
    yield
    client.backend.namespace.store = saved  # type: ignore[union-attr]


@contextmanager
def restored(server: Server) -> Iterator[None]:
    """At the end, restore a server's keys of the beginning, as from a backup."""
    with server.client() as raw:
        saved = {key: raw.dump(key) for key in raw.keys("*")}
        yield
        raw.flushdb()
        for key, value in saved.items():
            raw.restore(key, 0, value)

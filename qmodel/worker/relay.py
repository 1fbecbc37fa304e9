"""What the workers of a deployment do for it: they pass on how jobs ended that jobs of other shards wait for.

`qmodel/model/deployment/relay.py` has the rules. Stand-ins and errands are jobs, so leases, retries and wake-ups are
those of all jobs.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from qmodel.app.context import Context
from qmodel.app.errors import Fail
from qmodel.errors import RefusedError
from qmodel.model.deployment import relay

if TYPE_CHECKING:
    from qmodel.app import App
    from qmodel.client.sync import Client


class _Raw:
    """Data are JSON, and a result is a text that is stored as it is."""

    def dumps(self, value: Any) -> str:
        return str(value)

    def loads(self, text: str) -> Any:
        return json.loads(text)


def with_queue(app: App, client: Client, queues: tuple[str, ...]) -> tuple[str, ...]:
    """Let a worker of a deployment that relays take the relay's jobs before those of its queues."""
    layout = getattr(client.backend, "layout", None)
    if layout is None or not layout.relay:
        return queues
    _declare(app)
    return (relay.QUEUE, *queues)


def _declare(app: App) -> None:
    """Give an app the job types of the relay, unless it has them."""
    if relay.ERRAND in app.jobs:
        return

    @app.job(name=relay.ERRAND, queue=relay.QUEUE, serializer=_Raw())
    def errand(context: Context, stand_in: str, job: str, after: str) -> str:
        """Tell a stand-in how its job has ended."""
        delivery = relay.deliver(context.jid, stand_in, job=job, after=after)
        reply: Any = None
        with contextlib.suppress(StopIteration):
            while True:
                op = delivery.send(reply)
                try:
                    reply = app.client.execute(op)
                except RefusedError as error:
                    if op.spec.reads:
                        raise
                    reply = error
        return ""

    @app.job(name=relay.STAND_IN, queue=relay.QUEUE, serializer=_Raw())
    def stand_in(job: str, after: str, state: str, text: str) -> str:
        """End as the job has ended that this one stands for."""
        if state == "complete":
            return text
        raise Fail(relay.GROUP, text)

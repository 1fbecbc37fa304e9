"""The deployment: `step(deployment, now, operation)` gives the operation's reply, or its refusal.

Each shard is a store of the model as it is, and executes its calls one by one (`qmodel.model.engine`). What the
deployment adds is where a call goes, and the laws that hold for that:

- Projection: what a deployment does to a shard is what the model does with the calls of that shard.
- Home: every name that a shard stores belongs there.
- Refused before anything is sent: CROSS_SHARD and the other refusals of routing change no store.
- Merge: a merged reply is a function of the replies of the shards. Of a deployment in which nothing happens, it equals
  that of one store that holds the union.

What is sent to every shard is not one step. The first shard decides, and keeps a list of what it has accepted. Each
other shard knows how far in that list it is. Whoever finds a shard behind brings it up first: so what was accepted
holds in every shard before anything else is executed there, even if the client that sent it died between two shards.
"""

from __future__ import annotations

from typing import Any

from qmodel.contract.arguments import TIME_END
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.routing import Layout
from qmodel.model import engine
from qmodel.model.deployment.plans import Call, carry_out, for_shard
from qmodel.model.deployment.turns import Turns
from qmodel.model.state.store import Store


class Deployment:
    """N stores, what was sent to all of them, and how much of that each of them has executed."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.stores = [Store() for _ in range(layout.shards)]
        self.accepted: list[Operation] = []
        self.executed = [0] * layout.shards
        self.turns = Turns(layout.shards)


def step(deployment: Deployment, now: int, op: Any) -> Any:
    """Execute one operation at a moment (milliseconds since the epoch); give its reply, or a Refusal."""
    if type(now) is not int or not 0 <= now < TIME_END:
        return Refusal("BAD_ARGUMENT", (op.spec.name, "now"))
    reply = carry_out(
        deployment.layout, op, deployment.turns, lambda calls: [execute(deployment, now, call, op) for call in calls]
    )
    _forget_executed(deployment)
    return reply


def _forget_executed(deployment: Deployment) -> None:
    """Drop from the list what all shards have executed."""
    done = min(deployment.executed)
    del deployment.accepted[:done]
    deployment.executed = [count - done for count in deployment.executed]


def execute(deployment: Deployment, now: int, call: Call, of: Operation) -> Any:
    """Execute a call of an operation on its shard, after what the shard has missed."""
    everywhere = of.spec == call.op.spec and deployment.layout.route(of) == "every"
    if everywhere and call.shard:
        bring_up(deployment, now, call.shard, len(deployment.accepted) - 1)
        deployment.executed[call.shard] += 1
    else:
        bring_up(deployment, now, call.shard, len(deployment.accepted))
    reply = engine.step(deployment.stores[call.shard], now, call.op)
    if everywhere and not call.shard and not isinstance(reply, Refusal):
        deployment.accepted.append(of)
        deployment.executed[0] += 1
    return reply


def bring_up(deployment: Deployment, now: int, shard: int, upto: int) -> None:
    """Execute on a shard what it has missed of what was sent to all."""
    for op in deployment.accepted[deployment.executed[shard] : upto]:
        engine.step(deployment.stores[shard], now, for_shard(deployment.layout, op, shard))
    deployment.executed[shard] = max(deployment.executed[shard], upto)

"""Dependencies between shards: a job that waits for a job of another shard.

No shard knows the jobs of another one. So three jobs stand for a dependency of `b` on `a`:

- The *stand-in* is a job in the shard of `b`. `b` depends on it, with the policy and the name of the dependency.
- The *errand* is a job in the shard of `a`, and depends on `a`. It becomes ready in the step in which `a` ends.
- `b` itself.

They are put in this order. Whoever performs the errand (`deliver`) writes into the stand-in how `a` has ended, and lets
it begin; only then the errand is complete. Whoever performs the stand-in ends it as its data then say, as `a` has
ended. The ids follow from those of `a` and `b`, and each step may be done again. So whoever dies can begin anew, and
`b` begins after the end of `a`, and once.

What differs from a dependency within a shard:

- The end of `a` arrives later, so `b` still waits for a while. With the policy `cancel`, a failure before the put
  cancels `b`; within a shard it fails `b`.
- What was delivered stays: a failed `a` that is tried again later changes nothing for `b`. With the policy `block` a
  failure is not delivered.
- To cancel `a` with `cascade` does not reach `b`: it deletes the errand, and `b` waits until somebody cancels it.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from qmodel.contract.arguments import LONGEST_MS, Edge, awaited_request
from qmodel.contract.operations import Operation, Promote, Put, Results, Update
from qmodel.contract.routing import Layout, alone, shard_tag

QUEUE: Final = "~relay"
"""The queue of stand-ins and errands. It lies in all shards."""

STAND_IN: Final = "~stand-in"
ERRAND: Final = "~errand"
NAME: Final = "it"
"""The name under which an errand has the result of its job."""

RETRIES: Final = 1_000_000
"""Who performs a stand-in or an errand may die as often."""

GROUP: Final = "failed-in-another-shard"
"""The group of a stand-in of a job that failed."""


class Afar(NamedTuple):
    """What stands for a dependency in another shard: the stand-in and its shard, the errand and its shard."""

    home: int
    stand_in: Put
    there: int
    errand: Put


class Divided(NamedTuple):
    """A put that gives only names of its shard, and what stands for its dependencies in others."""

    job: Put
    afar: list[Afar]


def divided(layout: Layout, op: Put) -> Divided:
    """Divide the put of a job with dependencies in other shards than that of all its other names."""
    home, afar, depends = layout.route(alone(op)), [], []
    assert type(home) is int
    for given in op.depends or ():
        edge = Edge.parse(given)
        there = home if awaited_request(edge.jid) else layout.home(edge.jid)
        if there != home:
            name = blake2b(f"{edge.jid} {op.jid}".encode(), digest_size=16).hexdigest()
            stand_in = _stand_in(f"{{{shard_tag(home, layout.shards)}}}~{name}", edge, op)
            errand = _errand(f"{{{shard_tag(there, layout.shards)}}}~{name}", edge, op, stand_in.jid)
            afar.append(Afar(home, stand_in, there, errand))
            depends.append(edge._replace(jid=stand_in.jid).text)
        else:
            depends.append(given)
    return Divided(replace(op, depends=tuple(depends)), afar)


def _stand_in(jid: str, edge: Edge, op: Put) -> Put:
    return Put(
        QUEUE, jid, STAND_IN, json.dumps({"job": op.jid, "after": edge.jid}), delay_ms=LONGEST_MS, retries=RETRIES
    )


def _errand(jid: str, edge: Edge, op: Put, stand_in: str) -> Put:
    """With `block`, a failure of the job changes nothing, so it is not delivered: the job may still be tried again."""
    policy = "block" if edge.on_failure == "block" else "ignore"
    depends = (Edge(edge.jid, policy, NAME).text,)
    data = json.dumps({"stand_in": stand_in, "job": op.jid, "after": edge.jid})
    return Put(QUEUE, jid, ERRAND, data, retries=RETRIES, depends=depends)


def deliver(jid: str, stand_in: str, **names: str) -> Generator[Operation, Any, None]:
    """Perform an errand with its data. What it yields is executed wherever it belongs, and the replies are sent to it.

    A refusal means nothing: a stand-in that has ended, or is gone, needs nothing more.
    """
    (found,) = yield Results(jid)
    yield Update(stand_in, json.dumps({**names, "state": found.state, "text": found.result}))
    yield Promote(stand_in)

"""Routing in the reference pages: the route of each operation, and vectors for other languages."""

from __future__ import annotations

import json
from typing import Any

from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation, Spec
from qmodel.contract.refusals import Refusal
from qmodel.contract.routing import ROUTES, SLOTS, Layout, shard_tag, slot, tag
from qmodel.wire import as_json

SHARDS = (1, 8, 64)

OTHERWISE = {
    "refuse": "",
    "turn": "The shards are asked in turn, until they have given as many as were asked for",
    "parts": "Shard after shard does its part; the cursor is `<shard>:<cursor in that shard>`",
    "every": "It is executed by shard 0, which may refuse, and then by all others",
    "merge": "All shards execute it, and their replies are merged",
    "first": "Shard 0 answers it",
    "shard": "Refused with `BY_SHARD`: each shard has an answer of its own",
}

NAMES = (
    "order-7", "order-7{cust-1}", "{cust-1}", "cust-1", "{cust-1}-dead-31", "order-7-dead-31",
    "order-7-dead-31-dead-32", "a{}b", "a{b", "a{}{b}", "a{b}{c}", "123456789", "émile", "x" * 128,
)  # fmt: skip

LAYOUT = Layout(8, frozenset({"alone"}), frozenset({"divided"}))

OPERATIONS: tuple[Operation, ...] = (
    ops.Put("q", "order-7", "K", "{}"),
    ops.Put("q", "order-7{cust-1}", "K", "{}", unique="sync{cust-1}", ordered="{cust-1}"),
    ops.Put("q", "order-7", "K", "{}", unique="sync{cust-1}"),
    ops.Put("q", "order-7{cust-1}", "K", "{}", depends=("order-6{cust-1} fail page",)),
    ops.Put("q", "order-7{cust-1}", "K", "{}", throttles=("divided", "api{cust-1}")),
    ops.Put("alone", "order-7{alone}", "K", "{}"),
    ops.Put("alone", "order-7", "K", "{}"),
    ops.PutMany((ops.Put("q", "a{x}", "K", "{}"), ops.Put("q", "b{x}", "K", "{}"))),
    ops.PutMany((ops.Put("q", "a", "K", "{}"), ops.Put("q", "b", "K", "{}"))),
    ops.RequestAdd("album-7", (ops.Put("q", "{album-7}:1", "K", "{}"),)),
    ops.Recur("q", "{nightly}", "K", "{}", 60_000),
    ops.Recur("q", "nightly", "K", "{}", 60_000),
    ops.Pop("q", "w"),
    ops.Pop("alone", "w"),
    ops.Cancel(("a", "b")),
    ops.Pause(("q",), "night"),
    ops.ThrottleSet("api{cust-1}", concurrency=3),
    ops.ThrottleSet("queue/q", concurrency=30),
    ops.ThrottleSet("queue/alone", concurrency=3),
    ops.Length("q"),
    ops.Search("q"),
    ops.ConfigGet("heartbeat"),
    ops.Events(),
)


def of_operation(spec: Spec) -> str:
    """Say how a deployment executes an operation."""
    route = ROUTES[spec.name]
    names, queues = (", ".join(f"`{name}`" for name in some) for some in (route.names, route.queues))
    said = []
    if names:
        said.append(f"One shard executes it, the home of all names in {names}")
    if queues:
        also = "That must be the home of" if names else "One shard executes it, the home of"
        said.append(f"{also} {queues}, if the queue is single")
    if route.makes:
        said.append(f"`{route.makes}` must have a tag")
    if otherwise := OTHERWISE[route.otherwise]:
        said.append(f"Otherwise: {otherwise[0].lower()}{otherwise[1:]}" if said else otherwise)
    return f"**In a deployment:** {'. '.join(said)}.\n"


def vectors() -> dict[str, Any]:
    """Give names and operations, and where they belong."""
    return {
        "slots": SLOTS,
        "names": [
            {"name": name, "tag": tag(name), "slot": slot(name), "home": {str(n): Layout(n).home(name) for n in SHARDS}}
            for name in NAMES
        ],
        "shard_tags": {str(n): [shard_tag(shard, n) for shard in range(n)] for n in SHARDS},
        "layout": {"shards": LAYOUT.shards, "single": sorted(LAYOUT.single), "split": sorted(LAYOUT.split)},
        "operations": [_vector(op) for op in OPERATIONS],
    }


def _vector(op: Operation) -> dict[str, Any]:
    to = LAYOUT.route(op)
    said: dict[str, Any] = {"call": json.loads(as_json.call(0, op))}
    if isinstance(to, Refusal):
        return said | {"refused": [to.code, *to.facts]}
    return said | ({"shard": to} if isinstance(to, int) else {"otherwise": to})

"""Routing: which shard of a deployment executes an operation.

A deployment is one queue system on N namespaces, its shards. Every name has a home, the shard that its tag leads to:

    tag(name)   what stands in the first braces of a name, `cust-1` in `order-7{cust-1}`; otherwise the whole name
    slot(name)  CRC16 of the tag, modulo 16384, as Redis Cluster computes it
    home(name)  slot * N // 16384: each shard has a range of slots

One rule routes everything: all names that an operation gives have one home, and the operation is executed there. If two
of them have different homes, it is refused with CROSS_SHARD before anything is sent. Whoever wants things together
writes one tag into their names. `ROUTES` says for each operation which arguments are such names, and what happens with
an operation that gives none. A deployment may relay the dependencies of a put (`qmodel/model/deployment/relay.py`).

A queue lies in all shards, and its order holds within each of them. A queue that is declared `single` lies in its home,
and its name is one of the names that must have the same home. A throttle lies in its home. The throttle of a queue that
lies in all shards, and a throttle that is declared `split`, are divided: each shard has its part of the limits. All
shards are told of a family of throttles, with its whole limits: each of its throttles lies in its own home.

The engine makes the ids of dead letters and of runs from other ids. In `<jid>-dead-<number>` the end does not count.
The runs of a schedule are called `<schedule>-<number>`, so its id must have a tag.
"""

from __future__ import annotations

import re
from binascii import crc_hqx
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from qmodel.contract.arguments import Edge, Operations, awaited_request, names_family
from qmodel.contract.operations import CATALOGUE, Operation, Put
from qmodel.contract.refusals import Refusal

SLOTS: Final = 16384
MOST_SHARDS: Final = 1024
LONGEST: Final = 100
"""The characters of a name that count: the id of a dead letter begins with at most so many of the job's."""

_DEAD = re.compile(r"(-dead-\d+)+\Z")
_BRACES = re.compile(r"\{([^}]+)\}")

Otherwise = Literal["refuse", "turn", "parts", "every", "merge", "first", "shard", "relay"]


class Route(NamedTuple):
    """How an operation is routed: the arguments that are names with a home, the arguments that are names of queues, and
    what happens with an operation that gives no name with a home.

    refuse  it always gives one
    turn    the shards are asked in turn, until they have given as many as the operation asks for
    parts   shard after shard does its part; the cursor says how far it has come
    every   it is sent to all shards, and each keeps what it says
    merge   it is sent to all shards, and their replies are merged to one
    first   any shard can answer it, because all have been told the same; the first one does
    shard   each shard has an answer of its own, and must be asked itself

    A put gives `relay` if only its dependencies on jobs have other homes, in a deployment that relays.
    """

    names: tuple[str, ...]
    queues: tuple[str, ...]
    otherwise: Otherwise
    makes: str = ""
    """The argument from which the ids of further jobs are made."""


def _route(names: str = "", queues: str = "", otherwise: Otherwise = "refuse", makes: str = "") -> Route:
    return Route(tuple(names.split()), tuple(queues.split()), otherwise, makes)


_JOB = _route("jid")
_SCHEDULE = _route("jid", makes="jid")
_REQUEST = _route("id")
_OF_QUEUE = _route(queues="queue", otherwise="merge")
_IN_ALL = _route(otherwise="merge")
_IN_PARTS = _route(queues="queue", otherwise="parts")
_EVERYWHERE = _route(otherwise="every")
_OF_SHARD = _route(otherwise="shard")
_OF_KLASS = _route("klass")

ROUTES: Final[dict[str, Route]] = {
    "put": _route("jid depends unique ordered throttles", "queue dead_queue"),
    "put_many": _route("jobs"),
    "put_new": _route("jobs"),
    "pop": _route(queues="queue", otherwise="turn"),
    "pop_any": _route(queues="queues", otherwise="turn"),
    "peek": _OF_QUEUE,
    "complete": _route("jid depends", "next"),
    "complete_many": _route("jobs"),
    "complete_and_pop": _route("jid depends", "next queue"),
    "fail": _JOB,
    "retry": _JOB,
    "release": _route("jid depends"),
    "heartbeat": _JOB,
    "timeout": _route("jids"),
    "revoke": _route("jids"),
    "update": _JOB,
    "priority": _JOB,
    "delay": _JOB,
    "promote": _JOB,
    "log": _JOB,
    "progress": _JOB,
    "cancel": _route("jids"),
    "drain": _route(queues="queue", otherwise="turn"),
    "cancel_many": _IN_PARTS,
    "clean": _IN_PARTS,
    "obliterate": _IN_PARTS,
    "depends_on": _route("jid dependencies"),
    "depends_off": _route("jid dependencies"),
    "results": _JOB,
    "unique_get": _route("unique"),
    "unique_release": _route("unique"),
    "tag_add": _JOB,
    "tag_remove": _JOB,
    "tagged": _IN_ALL,
    "top_tags": _IN_ALL,
    "track": _JOB,
    "untrack": _JOB,
    "tracked": _IN_ALL,
    "failed_groups": _IN_ALL,
    "failed": _IN_ALL,
    "replay": _JOB,
    "retry_many": _route("jids", "queue to", "parts"),
    "request_open": _route("id", "queue"),
    "request_add": _route("id jobs"),
    "request_touch": _REQUEST,
    "request_close": _REQUEST,
    "request_put": _route("id jobs", "queue"),
    "request_get": _REQUEST,
    "request_jobs": _REQUEST,
    "requests": _IN_ALL,
    "request_tune": _REQUEST,
    "request_cancel": _REQUEST,
    "request_forget": _REQUEST,
    "recur": _route("jid throttles", "queue", makes="jid"),
    "unrecur": _SCHEDULE,
    "recur_get": _SCHEDULE,
    "recur_update": _route("jid throttles", "queue", makes="jid"),
    "recur_tag": _SCHEDULE,
    "recur_untag": _SCHEDULE,
    "recur_pause": _SCHEDULE,
    "recur_unpause": _SCHEDULE,
    "recur_now": _SCHEDULE,
    "recur_advance": _SCHEDULE,
    "recurring_unset": _IN_ALL,
    "recurring": _OF_QUEUE,
    "fire": _route(queues="queue", otherwise="turn"),
    "throttle_set": _route("throttle", otherwise="every"),
    "throttle_unset": _route("throttle", otherwise="every"),
    "throttle_get": _route("throttle", otherwise="merge"),
    "throttles": _IN_ALL,
    "throttles_used": _IN_ALL,
    "publish": _route("subject"),
    "subscribe": _EVERYWHERE,
    "catch_up": _IN_ALL,
    "unsubscribe": _EVERYWHERE,
    "subscription_get": _IN_ALL,
    "subscriptions": _IN_ALL,
    "messages": _OF_SHARD,
    "trim": _route(otherwise="turn"),
    "why": _JOB,
    "get": _JOB,
    "multiget": _IN_ALL,
    "search": _IN_PARTS,
    "waiting": _OF_QUEUE,
    "scheduled": _OF_QUEUE,
    "depending": _OF_QUEUE,
    "throttled": _OF_QUEUE,
    "running": _OF_QUEUE,
    "stalled": _OF_QUEUE,
    "completed": _IN_ALL,
    "queues": _IN_ALL,
    "queue": _OF_QUEUE,
    "length": _OF_QUEUE,
    "workers": _IN_ALL,
    "worker": _IN_ALL,
    "stats": _OF_QUEUE,
    "metrics": _OF_QUEUE,
    "events": _OF_SHARD,
    "newest": _IN_ALL,
    "journal": _OF_SHARD,
    "pause": _EVERYWHERE,
    "unpause": _EVERYWHERE,
    "forget": _EVERYWHERE,
    "deregister": _EVERYWHERE,
    "config": _route(otherwise="first"),
    "config_get": _route(otherwise="first"),
    "config_set": _EVERYWHERE,
    "config_unset": _EVERYWHERE,
    "begin_epoch": _OF_SHARD,
    "metadata_get": _OF_KLASS,
    "metadata_set": _OF_KLASS,
    "metadata_increment": _OF_KLASS,
    "metadata_unset": _OF_KLASS,
}
"""The route of every operation."""

_NESTED = {
    (name, argument.name): f"{argument.kind.of[0].lower()}{argument.kind.of[1:]}"
    for name, spec in CATALOGUE.items()
    for argument in spec.arguments
    if isinstance(argument.kind, Operations)
}
"""The operations that are an argument of another one."""

_REQUIRED = {
    name: tuple(one.name for one in spec.arguments if one.name in ROUTES[name].names and not one.optional)
    for name, spec in CATALOGUE.items()
}
"""The arguments with names that every call of an operation gives. Most calls give no others."""

_PLAIN = frozenset(("jid", "id", "unique", "ordered", "klass", "subject"))
"""The arguments that are one name each, without a rule of their own."""

_ONLY = {
    name: required[0]
    for name, required in _REQUIRED.items()
    if len(required) == 1 and required[0] in _PLAIN and not ROUTES[name].makes
}
"""The only name that every call of an operation gives."""


def tag(name: str) -> str:
    """Give the part of a name that decides where it belongs.

    >>> tag("order-7{cust-1}"), tag("order-7"), tag("order-7-dead-31")
    ('cust-1', 'order-7', 'order-7')
    """
    found = _BRACES.search(name, 0, LONGEST)
    if found:
        return found[1]
    return (_DEAD.sub("", name) if "-dead-" in name else name)[:LONGEST]


def slot(name: str) -> int:
    """Compute the slot of a name's tag.

    >>> slot("order-7{cust-1}") == slot("cust-1"), slot("123456789")
    (True, 12739)
    """
    return crc_hqx(tag(name).encode(), 0) % SLOTS


@lru_cache(maxsize=4096)
def shard_tag(shard: int, shards: int) -> str:
    """Give a tag that belongs to a shard: the shortest `<shard>.<number>` that does, the lowest of these.

    >>> shard_tag(0, 1), Layout(8).home("job{" + shard_tag(5, 8) + "}")
    ('0.0', 5)
    """
    number = 0
    while slot(f"{shard}.{number}") * shards // SLOTS != shard:
        number += 1
    return f"{shard}.{number}"


class Layout(NamedTuple):
    """What routing must know of a deployment: the number of shards, the queues that lie in one shard, the throttles
    that are divided, and whether dependencies between shards are relayed.
    """

    shards: int
    single: frozenset[str] = frozenset()
    split: frozenset[str] = frozenset()
    relay: bool = False

    def home(self, name: str) -> int:
        """Find the shard of a name."""
        return slot(name) * self.shards // SLOTS

    def plain_home(self, op: Operation) -> int | None:
        """Find the shard of an operation that gives one name only; else None. The arguments need no check before."""
        only = None if op.named or self.single else _ONLY.get(op.spec.name)
        name = None if only is None else getattr(op, only)
        return self.home(name) if type(name) is str and name.isascii() else None

    def is_split(self, throttle: str) -> bool:
        """Say whether a throttle lies in all shards: its limits are divided, but for those of a family."""
        queue = throttle.removeprefix("queue/")
        return throttle in self.split or names_family(throttle) or (queue != throttle and queue not in self.single)

    def names(self, op: Operation) -> Iterator[str]:
        """List the names with a home that an operation gives."""
        route = ROUTES[op.spec.name]
        for argument in route.names if op.named else _REQUIRED[op.spec.name]:
            value = getattr(op, argument)
            if type(value) is str and argument in _PLAIN:
                yield value
            elif (op.spec.name, argument) in _NESTED:
                only = _ONLY.get(_NESTED[op.spec.name, argument]) if not self.single else None
                for one in value:
                    if only is None or one.named:
                        yield from self.names(one)
                    else:
                        yield getattr(one, only)
            elif argument in ("throttle", "throttles"):
                given = (value,) if argument == "throttle" else value or ()
                yield from (one.removeprefix("queue/") for one in given if not self.is_split(one))
            elif argument in ("depends", "dependencies"):
                yield from map(_awaited, value or ())
            else:
                yield from _several(value)
        for argument in route.queues if self.single else ():
            yield from (queue for queue in _several(getattr(op, argument)) if queue in self.single)

    def _can_be_relayed(self, op: Put) -> bool:
        """Whether a put has one home without its dependencies on jobs, and has some."""
        rest = alone(op)
        return (rest.depends or ()) != (op.depends or ()) and type(self.route(rest)) is int

    def route(self, op: Operation) -> int | Otherwise | Refusal:
        """Find the shard that executes an operation; or what happens with one that names none, or a refusal."""
        route = ROUTES[op.spec.name]
        first: str | None = None
        common, home = "", 0
        for name in self.names(op):
            if first is None:
                first, common, home = name, tag(name), self.home(name)
            elif tag(name) != common and self.home(name) != home:
                if self.relay and type(op) is Put and self._can_be_relayed(op):
                    return "relay"
                facts = first, str(home), name, str(self.home(name))
                return Refusal("CROSS_SHARD", facts)
        if first is None:
            return route.otherwise if route.otherwise != "shard" else Refusal("BY_SHARD", (op.spec.name,))
        if route.makes and not _BRACES.search(first, 0, LONGEST):
            return Refusal("UNTAGGED", (op.spec.name, first))
        return home


def _awaited(dependency: str) -> str:
    """Give the job or the request that a dependency names."""
    jid = Edge.parse(dependency).jid
    return awaited_request(jid) or jid


def alone(op: Put) -> Put:
    """Give a put without its dependencies on jobs. Those on requests are not relayed: they have the home of the job."""
    requests = tuple(one for one in op.depends or () if awaited_request(Edge.parse(one).jid))
    return replace(op, depends=requests or None)


def _several(value: Any) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)

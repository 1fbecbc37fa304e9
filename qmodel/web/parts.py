"""Actions that may take more than one step of 1000: a part with each form that is sent, as long as there is more.

A part goes on for about a second. What was done in one part is over in that; otherwise a page says how far it has come,
and sends itself on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.web import bulk
from qmodel.web.actions import jobs
from qmodel.web.forms import Form


class Step(NamedTuple):
    """What became of a step: how many it was done to, how many are left, whether there is more, and from where."""

    done: int
    left: int
    more: bool
    cursor: str = ""


class Part(NamedTuple):
    """The operation of a step, what its reply means, what is told at the end and asked before, and where to go then."""

    make: Callable[[Form, str], ops.Operation]
    read: Callable[[Any], Step]
    tell: Callable[[Form, Step], str]
    asks: str = ""
    leads: str = ""
    ticks: tuple[str, str] = ("", "")


def go_on(client: Client, part: Part, form: Form) -> Step:
    """Do a part: steps for about a second. Raises the refusal of a step, after which those before it stay done."""
    done, cursor, left = form.whole_or_none("done") or 0, form.text("cursor"), -1
    until = time.monotonic() + bulk.SPAN
    while True:
        step = part.read(client.execute(part.make(form, cursor)))
        done, cursor = done + step.done, step.cursor
        stands_still = not step.done and not cursor and step.left == left
        left = step.left
        if not step.more or stands_still or time.monotonic() > until:
            return Step(done, left, step.more and not stands_still, cursor)


def _down_to(left: int) -> Step:
    """The step of an operation that replies what it has left to do."""
    return Step(0, left, left > 0)


def _up_to(count: int) -> Step:
    """The step of an operation that replies how much it did."""
    return Step(count, 0, count > 0)


def _and_left(done: str) -> Callable[[Form, Step], str]:
    return lambda form, step: f"{jobs(step.done, done)} {step.left:,} are left."


PARTS: dict[str, Part] = {
    "drain": Part(
        lambda f, _: ops.Drain(f.needed("queue")),
        lambda reply: Step(reply.canceled, reply.left, reply.canceled > 0),
        _and_left("canceled"),
        "Cancel all jobs of queue {queue} that have not begun? They are deleted, but for those on which others depend.",
    ),
    "obliterate": Part(
        lambda f, cursor: ops.Obliterate(f.needed("queue"), bool(f.text("force")), cursor),
        lambda reply: Step(reply.done, reply.passed, bool(reply.cursor), reply.cursor),
        _and_left("deleted"),
        "Delete queue {queue}: its jobs in any state, what recurs in it, its pauses?",
        leads="/queues",
        ticks=("force", "though jobs run: their workers lose them"),
    ),
    "unfail": Part(
        lambda f, cursor: ops.RetryMany(group=f.needed("group"), to=f.needed("queue"), cursor=cursor),
        lambda reply: Step(reply.done, reply.passed, bool(reply.cursor), reply.cursor),
        lambda form, step: jobs(step.done, f"put into queue {form.text('queue')}"),
        "Put all jobs of group {group} into queue {queue}? They start anew there.",
    ),
    "request-cancel": Part(
        lambda f, _: ops.RequestCancel(f.needed("id")),
        _down_to,
        lambda form, step: f"It is called off; {step.left:,} sub-requests are left to cancel.",
        "Cancel request {id}? Its sub-requests that nobody runs are deleted; those that run are revoked.",
    ),
    "request-forget": Part(
        lambda f, _: ops.RequestForget(f.needed("id")),
        _down_to,
        lambda form, step: f"Request {form.text('id')} is forgotten.",
        "Forget request {id}? Its jobs stay.",
        leads="/requests",
    ),
    "catch-up": Part(
        lambda f, _: ops.CatchUp(f.needed("subscription")),
        _down_to,
        lambda form, step: f"It has got what it was behind; {step.left:,} messages are left.",
    ),
    "trim": Part(
        lambda f, _: ops.Trim(),
        _up_to,
        lambda form, step: f"{step.done:,} messages are dropped.",
        "Drop all messages that are kept for who subscribes later? Subscriptions that are behind get them first.",
    ),
}
"""Every such action, by the name that forms give it."""

"""The actions of `qmodel.present.actions`, bound to forms: a form names an action, and the next page shows its outcome.

An action with a question is sent twice: the first form comes back with the question, the second performs it. An action
of many steps does a part of its work with each form, for about a second; if work is left, a page shows the progress and
submits itself again.
"""

from __future__ import annotations

import time

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.present.actions import Action, Once, Signal, Step, Stepwise, outcome
from qmodel.present.fields import Fields
from qmodel.web import bulk

LEADS = {
    "forget": "/queues",
    "obliterate": "/queues",
    "cancel-jobs": "/jobs",
    "delete-jobs": "/jobs",
    "replay": "/jobs",
    "deregister": "/workers",
    "unrecur": "/schedules",
    "throttle-unset": "/throttles",
    "request-forget": "/requests",
    "request-delete": "/requests",
    "unsubscribe": "/subscriptions",
}
"""The page to go to after an action that may delete what the page of its form is about."""


def perform(client: Client, action: Action, fields: Fields) -> str:
    """Perform an action that is no Stepwise one, and say its outcome. Raises the refusal of a single operation."""
    if isinstance(action, Signal):
        action.send(client.workers, fields)
        return action.tell(fields)
    assert isinstance(action, Once)
    return outcome(action, fields, client.execute_many(_operations(client, action, fields)))


def _operations(client: Client, action: Once, fields: Fields) -> list[ops.Operation]:
    if action.look is None:
        return list(action.make(fields))
    return list(action.choose(fields, client.execute(action.look(fields))))


def go_on(client: Client, action: Stepwise, fields: Fields) -> Step:
    """Do steps of an action for about a second. Raises the refusal of a step; the steps before it stay done."""
    done, cursor, left = fields.whole_or_none("done") or 0, fields.exact("cursor"), -1
    until = time.monotonic() + bulk.SPAN
    while True:
        step = action.read(client.execute(action.step(fields, cursor)))
        done, cursor = done + step.done, step.cursor
        stands_still = not step.done and not cursor and step.left == left
        left = step.left
        if not step.more or stands_still or time.monotonic() > until:
            return Step(done, left, step.more and not stands_still, cursor)

"""Actions on requests and on messages."""

from __future__ import annotations

from qmodel.contract import operations as ops
from qmodel.present.actions.kinds import Action, Once, Step, Stepwise, down_to, either, of_forgotten, said, up_to
from qmodel.present.fields import Fields
from qmodel.present.numbers import counted

_CATCHES = {True: "catches up", False: "has caught up"}


def _forgotten(fields: Fields, step: Step, also: str = "") -> str:
    """Say that a request is forgotten, or of how much of it."""
    left = f"is being forgotten{also}; {counted(step.left, 'sub-request')} left." if step.more else ""
    return f"Request {fields.text('id')} {left or f'is forgotten{also}.'}"


ACTIONS: dict[str, Action] = {
    "request-close": Once(
        "Close",
        make=lambda f: [ops.RequestClose(f.needed("id"))],
        tell=said("Request {id} is closed: it ends with its last sub-request."),
    ),
    "request-tune": Once(
        "Set",
        make=lambda f: [ops.RequestTune(f.needed("id"), f.whole("priority"), f.whole("limit"))],
        tell=said("Request {id} has priority {priority} and runs {limit} at once."),
    ),
    "request-cancel": Stepwise(
        "Cancel",
        "Cancel request {id}? Sub-requests that wait are deleted; those that run are revoked.",
        step=lambda f, _: ops.RequestCancel(f.needed("id")),
        read=down_to,
        tell=lambda f, step: f"Request {f.text('id')} is canceled; {counted(step.left, 'sub-request')} left to cancel.",
    ),
    "request-forget": Stepwise(
        "Forget",
        "Forget request {id}? Its jobs stay.",
        step=lambda f, _: ops.RequestForget(f.needed("id")),
        read=of_forgotten,
        tell=_forgotten,
    ),
    "request-delete": Stepwise(
        "Forget with jobs",
        "Forget request {id} and delete its jobs? Jobs that others depend on stay, and those that were put again.",
        step=lambda f, _: ops.RequestForget(f.needed("id"), delete_jobs=True),
        read=of_forgotten,
        tell=lambda f, step: _forgotten(f, step, f"; {counted(step.done, 'job')} deleted"),
    ),
    "publish": Once(
        "Publish",
        make=lambda f: [ops.Publish(f.needed("subject"), f.data() or "null")],
        tell=lambda f, found: f"Message {found[0]:,} is published.",
    ),
    "unsubscribe": Once(
        "Unsubscribe",
        "End subscription {subscription}? New messages make no jobs for it; jobs that were made stay.",
        make=lambda f: [ops.Unsubscribe(f.needed("subscription"))],
        tell=either("Subscription {subscription} is ended.", "There is no subscription {subscription}."),
    ),
    "catch-up": Stepwise(
        "Catch up",
        step=lambda f, _: ops.CatchUp(f.needed("subscription")),
        read=down_to,
        tell=lambda f, step: f"The subscription {_CATCHES[step.more]}; {counted(step.left, 'message')} left.",
    ),
    "trim": Stepwise(
        "Delete all",
        "Delete all messages that are kept for later subscribers? Subscriptions that are behind get them first.",
        step=lambda f, _: ops.Trim(),
        read=up_to,
        tell=lambda f, step: f"{counted(step.done, 'message')} deleted.",
    ),
}
"""Every action by its name."""

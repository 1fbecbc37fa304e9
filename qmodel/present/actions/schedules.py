"""Actions on recurring jobs."""

from __future__ import annotations

from qmodel.contract import operations as ops
from qmodel.present.actions.kinds import Action, Once, either, said
from qmodel.present.fields import Fields


def _schedule(fields: Fields) -> list[ops.Operation]:
    """Make the update of a recurring job; an empty field of the form changes nothing."""
    update = ops.RecurUpdate(
        fields.needed("jid"),
        queue=fields.exact("queue") or None,
        data=fields.data() or None,
        interval_ms=fields.duration_or_none("every"),
        priority=fields.whole_or_none("priority"),
        retries=fields.whole_or_none("retries"),
    )
    return [update]


ACTIONS: dict[str, Action] = {
    "recur-now": Once(
        "Run now",
        make=lambda f: [ops.RecurNow(f.needed("jid"))],
        tell=lambda f, found: f"Run {found[0]} is enqueued." if found[0] else "No free number was found; try again.",
    ),
    "recur-pause": Once("Pause", make=lambda f: [ops.RecurPause(f.needed("jid"))], tell=said("{jid} is paused.")),
    "recur-unpause": Once(
        "Unpause", make=lambda f: [ops.RecurUnpause(f.needed("jid"))], tell=said("{jid} is unpaused.")
    ),
    "unrecur": Once(
        "Delete",
        "Delete the schedule {jid}? Runs that are enqueued stay.",
        make=lambda f: [ops.Unrecur(f.needed("jid"))],
        tell=either("Schedule {jid} is deleted.", "There is no schedule {jid}."),
    ),
    "recur-update": Once(
        "Save", make=_schedule, tell=said("The schedule is changed; runs that are enqueued stay as they are.")
    ),
    "recur-tag": Once(
        "Add",
        make=lambda f: [ops.RecurTag(f.needed("jid"), (f.needed("tag"),))],
        tell=said("Future runs have the tag {tag}."),
    ),
    "recur-untag": Once(
        "Remove",
        make=lambda f: [ops.RecurUntag(f.needed("jid"), (f.needed("tag"),))],
        tell=said("Future runs do not have the tag {tag}."),
    ),
}
"""Every action by its name."""

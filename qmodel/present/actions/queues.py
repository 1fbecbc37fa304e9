"""Actions on queues."""

from __future__ import annotations

from typing import Any

from qmodel.contract import operations as ops
from qmodel.present.actions.kinds import Action, Once, Step, Stepwise, Tell, and_left, of_bulk, said
from qmodel.present.fields import Fields
from qmodel.present.numbers import counted


def _queues(done: str) -> Tell:
    def tell(fields: Fields, found: list[Any]) -> str:
        names = fields.all("queue")
        return f"Queue {names[0]} is {done}." if len(names) == 1 else f"{counted(len(names), 'queue')} are {done}."

    return tell


ACTIONS: dict[str, Action] = {
    "pause": Once(
        "Pause",
        make=lambda f: [ops.Pause(f.several("queue"), f.text("reason", "by hand"), f.duration_or_none("for") or 0)],
        tell=_queues("paused"),
    ),
    "unpause": Once(
        "Unpause",
        make=lambda f: [ops.Unpause(f.several("queue"), f.exact("reason") or None)],
        tell=_queues("unpaused"),
    ),
    "fire": Once(
        "Make due runs of recurring jobs",
        make=lambda f: [ops.Fire(f.needed("queue"))],
        tell=lambda f, found: f"{counted(sum(found), 'due run')} enqueued.",
    ),
    "forget": Once(
        "Remove this empty queue from the list",
        make=lambda f: [ops.Forget((f.needed("queue"),))],
        tell=said("Queue {queue} is removed from the list."),
    ),
    "drain": Stepwise(
        "Drain: cancel the jobs that have not begun",
        "Cancel all jobs of queue {queue} that have not begun? They are deleted, but for those on which others depend.",
        step=lambda f, _: ops.Drain(f.needed("queue")),
        read=lambda reply: Step(reply.canceled, reply.left, reply.canceled > 0),
        tell=and_left("canceled"),
    ),
    "obliterate": Stepwise(
        "Obliterate: delete the queue",
        "Delete queue {queue}, with its jobs in any state, its schedules and its pauses?",
        ("force", "even while jobs run: their workers lose them"),
        step=lambda f, cursor: ops.Obliterate(f.needed("queue"), bool(f.text("force")), cursor),
        read=of_bulk,
        tell=and_left("deleted"),
    ),
}
"""Every action by its name."""

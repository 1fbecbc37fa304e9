"""How long single jobs are kept that have ended, where their put said so.

A job that was put with `keep_complete_ms` or `keep_failed_ms` is deleted so long after it has completed, or failed. The
options of the namespace (state/completed.py, state/failures.py) hold besides, so that whoever sets them knows what
there can be: of two the shorter holds. What holds of it:

- *It is deleted when another job ends,* or by `fire`: until then it is found as it is. With 0 it is deleted in the step
  in which it ends, once all that it held has been let go of: those jobs come before all others, so that no step leaves
  any of its own.
- A failed job on which others depend, or that depends on others, is not deleted: there is more to come of it. When its
  turn comes it is struck off this list too (failures.keep).
- *Bounded.* A completion deletes 100 of them, a failure three, `fire` 1000.
"""

from __future__ import annotations

from typing import Final

from qmodel.model.state import options
from qmodel.model.state.records import Job, Position
from qmodel.model.state.store import Store

OF_STATE: Final = {"complete": "keep_complete_ms", "failed": "keep_failed_ms"}
"""The option that says how long a job is kept in a state."""


def _place(job: Job) -> Position | None:
    """Where a job that has ended stands among those that say how long they are kept, if it does."""
    said = options.get(job, OF_STATE[job.state])
    if said is None or options.get(job, "kept") is not None:
        return None
    return (job.ended_at + int(said) if said != "0" else 0, job.seq, job.jid)


def enter(store: Store, job: Job) -> None:
    """Enter a job that has ended, if it says how long it is kept."""
    place = _place(job)
    if place is not None:
        store.keeping.add(place)


def leave(store: Store, job: Job) -> None:
    """Strike a job, if it stands here."""
    place = _place(job)
    if place is not None:
        store.keeping.remove(place)


def due(store: Store, now: int, most: int) -> list[Job]:
    """The jobs that are to be kept no longer, by the moments until which they were."""
    return [store.jobs[jid] for _, _, jid in store.keeping.until(now, most)]

"""Tags: the jobs of each tag, in the order in which they were tagged."""

from __future__ import annotations

from collections.abc import Iterable

from qmodel.contract.arguments import MOST
from qmodel.contract.events import BETWEEN_TAGS
from qmodel.contract.refusals import refuse
from qmodel.model.sorted_list import Ordered
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store


def check_room(whose: str, some: Iterable[str], more: Iterable[str]) -> None:
    """Refuse more than 1000 tags of a job or a recurring job: all are removed in the step that deletes it."""
    if len({*some, *more}) > MOST:
        raise refuse("LIMIT_REACHED", "tags of " + whose, MOST)


def add(store: Store, job: Job, tag: str) -> None:
    """Add a new tag to a job. The current sequence is the job's position in the tag."""
    job.tags = job.tags or {}
    job.tags[tag] = store.seq
    of = store.tags.get(tag)
    if of is None:
        of = store.tags[tag] = Ordered()
    of.add((store.seq, job.jid))


def remove(store: Store, job: Job, tag: str) -> None:
    """Remove a tag from a job that has it."""
    of = store.tags[tag]
    of.remove((job.tags.pop(tag), job.jid))
    if not of:
        del store.tags[tag]


def assign(store: Store, job: Job, tags: Iterable[str]) -> None:
    """Give a job exactly these tags, in this order; those that it had keep their positions."""
    wanted = dict.fromkeys(tags)
    for tag in list(job.tags):
        if tag not in wanted:
            remove(store, job, tag)
    for tag in wanted:
        if tag not in job.tags:
            add(store, job, tag)
    job.tags = {tag: job.tags[tag] for tag in wanted}


def fact(job: Job, given: Iterable[str] | None) -> tuple[str, ...]:
    """Give the tags of a job that is put, for the event: those that the put says, or else those that it had."""
    if given is None and not job.tags:
        return ()
    wanted = dict.fromkeys(job.tags if given is None else given)
    return (BETWEEN_TAGS.join(wanted),) if wanted else ()


def pretend(job: Job, tags: Iterable[str]) -> None:
    """Give these tags to a job that is only shown; no tag will list it."""
    job.tags = dict.fromkeys(tags, 0)


def drop(store: Store, job: Job) -> None:
    """Remove all tags from a job."""
    for tag in list(job.tags):
        remove(store, job, tag)


def top(store: Store, offset: int, count: int) -> list[tuple[str, int]]:
    """The tags of at least two jobs, most used first, then by name."""
    used = sorted((-len(jobs), tag) for tag, jobs in store.tags.items() if len(jobs) > 1)
    return [(tag, -jobs) for jobs, tag in used[offset : offset + count]]


def page(store: Store, tag: str, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many jobs have a tag, and a page of them."""
    jobs = store.tags.get(tag) or Ordered()
    return len(jobs), tuple(jid for _, jid in jobs[offset : offset + count])

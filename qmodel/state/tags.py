"""Tags: which jobs have each, in the order in which they got it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sortedcontainers import SortedList

from qmodel.state.store import Store

if TYPE_CHECKING:
    from qmodel.state.jobs import Job


def add(store: Store, job: Job, tag: str) -> bool:
    """Give a job a tag; say whether it was new. The current sequence is its place among the tag's jobs."""
    if tag in job.tags:
        return False
    job.tags[tag] = store.seq
    of = store.tags.get(tag)
    if of is None:
        of = store.tags[tag] = SortedList()
    of.add((store.seq, job.jid))
    return True


def remove(store: Store, job: Job, tag: str) -> bool:
    """Take a tag from a job; say whether it had it."""
    if tag not in job.tags:
        return False
    of = store.tags[tag]
    of.remove((job.tags.pop(tag), job.jid))
    if not of:
        del store.tags[tag]
    return True


def assign(store: Store, job: Job, tags: Iterable[str]) -> None:
    """Let a job have just these tags, in this order; those that it had keep their places."""
    wanted = dict.fromkeys(tags)
    for tag in list(job.tags):
        if tag not in wanted:
            remove(store, job, tag)
    for tag in wanted:
        add(store, job, tag)
    job.tags = {tag: job.tags[tag] for tag in wanted}


def drop(store: Store, job: Job) -> None:
    """Take all tags from a job."""
    for tag in list(job.tags):
        remove(store, job, tag)


def top(store: Store, offset: int, count: int) -> list[tuple[str, int]]:
    """The tags that at least two jobs have, most used first, then by name."""
    used = sorted((-len(jobs), tag) for tag, jobs in store.tags.items() if len(jobs) > 1)
    return [(tag, -jobs) for jobs, tag in used[offset : offset + count]]


def page(store: Store, tag: str, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many jobs have a tag, and a page of them."""
    jobs = store.tags.get(tag) or SortedList()
    return len(jobs), tuple(jid for _, jid in jobs[offset : offset + count])

"""Tags: which jobs have each, in the order in which they got it."""

from __future__ import annotations

from collections.abc import Iterable

from qmodel.model.sorted_list import Ordered
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store


def add(store: Store, job: Job, tag: str) -> None:
    """Give a job a tag that it has not. The current sequence is its place among the tag's jobs."""
    job.tags = job.tags or {}
    job.tags[tag] = store.seq
    of = store.tags.get(tag)
    if of is None:
        of = store.tags[tag] = Ordered()
    of.add((store.seq, job.jid))


def remove(store: Store, job: Job, tag: str) -> None:
    """Take from a job a tag that it has."""
    of = store.tags[tag]
    of.remove((job.tags.pop(tag), job.jid))
    if not of:
        del store.tags[tag]


def assign(store: Store, job: Job, tags: Iterable[str]) -> None:
    """Let a job have just these tags, in this order; those that it had keep their places."""
    wanted = dict.fromkeys(tags)
    for tag in list(job.tags):
        if tag not in wanted:
            remove(store, job, tag)
    for tag in wanted:
        if tag not in job.tags:
            add(store, job, tag)
    job.tags = {tag: job.tags[tag] for tag in wanted}


def pretend(job: Job, tags: Iterable[str]) -> None:
    """Let a job that is only looked at have these tags; no tag will list it."""
    job.tags = dict.fromkeys(tags, 0)


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
    jobs = store.tags.get(tag) or Ordered()
    return len(jobs), tuple(jid for _, jid in jobs[offset : offset + count])

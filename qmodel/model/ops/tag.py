"""Tags, and the list of tracked jobs."""

from __future__ import annotations

from qmodel.contract.operations import TagAdd, Tagged, TagRemove, TopTags, Track, Tracked, Untrack
from qmodel.contract.replies import Page, Tally, TrackedJobs
from qmodel.model.state import budget, jobs, tags, tracking
from qmodel.model.state.store import Store, emit


def tag_add(store: Store, now: int, op: TagAdd) -> tuple[str, ...]:
    """Add tags to a job; those that it has are skipped."""
    job = jobs.find(store, op.jid)
    tags.check_room("job " + job.jid, job.tags, op.tags)

    for tag in op.tags:
        if tag not in job.tags:
            emit(store, now, "tagged", job.jid, tag)
            tags.add(store, job, tag)
    return tuple(job.tags)


def tag_remove(store: Store, now: int, op: TagRemove) -> tuple[str, ...]:
    """Remove tags from a job."""
    job = jobs.find(store, op.jid)

    for tag in op.tags:
        if tag in job.tags:
            emit(store, now, "untagged", job.jid, tag)
            tags.remove(store, job, tag)
    return tuple(job.tags)


def tagged(store: Store, now: int, op: Tagged) -> Page:
    """List the jobs that have a tag."""
    return Page(*tags.page(store, op.tag, op.offset, op.count))


def top_tags(store: Store, now: int, op: TopTags) -> tuple[Tally, ...]:
    """List the most used tags."""
    return tuple(Tally(tag, count) for tag, count in tags.top(store, op.offset, op.count))


def track(store: Store, now: int, op: Track) -> int:
    """Add a job to the list of tracked jobs."""
    job = jobs.find(store, op.jid)

    if tracking.is_tracked(store, job.jid):
        return 0
    emit(store, now, "tracked", job.jid)
    tracking.add(store, job.jid)
    return 1


def untrack(store: Store, now: int, op: Untrack) -> int:
    """Remove a job from the list of tracked jobs."""
    if not tracking.is_tracked(store, op.jid):
        return 0
    emit(store, now, "untracked", op.jid)
    tracking.discard(store, op.jid)
    return 1


def tracked(store: Store, now: int, op: Tracked) -> TrackedJobs:
    """Show the tracked jobs, and the ids of those that no longer exist."""
    jids = tracking.page(store, op.offset, op.count)
    found = [jobs.get(store, jid) for jid in jids]
    budget.check("tracked", len(jids), sum(budget.weight(job) for job in found if job is not None))
    return TrackedJobs(
        tuple(jobs.view(store, now, job) for job in found if job is not None),
        tuple(jid for jid, job in zip(jids, found, strict=True) if job is None),
    )

"""Tags and tracking."""

from __future__ import annotations

from qmodel.contract.arguments import Count, Jid, Offset, RequestId, Tag, Tags
from qmodel.contract.operations.spec import Operation, operation


@operation("names", "memo", "JOB_NOT_FOUND LIMIT_REACHED", "tagged")
class TagAdd(Operation):
    """Add tags to a job; replies all its tags."""

    jid: Jid
    tags: Tags
    request: RequestId = ""


@operation("names", "memo", "JOB_NOT_FOUND", "untagged")
class TagRemove(Operation):
    """Remove tags from a job; replies the tags that are left."""

    jid: Jid
    tags: Tags
    request: RequestId = ""


@operation("page", "read")
class Tagged(Operation):
    """List the jobs with a tag, in the order in which they were tagged."""

    tag: Tag
    offset: Offset = 0
    count: Count = 25


@operation("tallies", "read")
class TopTags(Operation):
    """List the tags that at least two jobs have, most used first."""

    offset: Offset = 0
    count: Count = 25


@operation("number", "memo", "JOB_NOT_FOUND", "tracked")
class Track(Operation):
    """Track a job; replies 1, or 0 if it was tracked already. Tracking outlives the job."""

    jid: Jid
    request: RequestId = ""


@operation("number", "memo", "", "untracked")
class Untrack(Operation):
    """Stop tracking a job, whether or not it still exists; replies 1, or 0 if it was not tracked."""

    jid: Jid
    request: RequestId = ""


@operation("tracked", "read", "OVER_BUDGET")
class Tracked(Operation):
    """Show the tracked jobs, and the ids of tracked jobs that no longer exist."""

    offset: Offset = 0
    count: Count = 25

"""A job's timeline, as a list of stages and as a bar of its states.

A history keeps the first stage and the last ones (option max-job-history). The state between two stages follows from
the first of them: after a pop the job was running, after a put it waited, and so on.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from qmodel.contract import replies
from qmodel.present.durations import format_duration
from qmodel.present.numbers import counted
from qmodel.present.text import why

AFTER = {
    "spawned": "waiting",
    "put": "waiting",
    "popped": "running",
    "completed": "waiting",
    "failed": "failed",
    "retried": "waiting",
    "released": "waiting",
    "lapsed": "stalled",
    "timed_out": "stalled",
    "told": "running",
    "throttled": "throttled",
}
"""The state of a job after each kind of stage, until the next: after `completed` it continued in another queue."""

TONES = {
    "spawned": "plain",
    "put": "waiting",
    "popped": "running",
    "completed": "complete",
    "raised": "failed",
    "failed": "failed",
    "retried": "retried",
    "released": "scheduled",
    "lapsed": "stalled",
    "timed_out": "stalled",
    "told": "stalled",
    "throttled": "throttled",
    "log": "plain",
}
"""The colour of each kind of stage."""

WIDTH = 1000
THINNEST = 4
"""The width of the bar, and the least width of a visible part, in units of the picture."""


class Moment(NamedTuple):
    """A stage: its name, its time, the time since the one before, its description, and its colour."""

    what: str
    at: int
    since: int
    told: str
    tone: str


class Span(NamedTuple):
    """A part of the bar: the state, its duration, and the position and width of the part."""

    state: str
    ms: int
    x: float
    width: float

    @property
    def told(self) -> str:
        """Give the label."""
        return f"{self.state} for {format_duration(self.ms)}"


def moments(job: replies.Job) -> list[Moment]:
    """List the stages of a job, oldest first."""
    found = []
    before = job.history[0].at if job.history else 0
    for stage in job.history:
        found.append(Moment(stage.what.replace("_", " "), stage.at, stage.at - before, _told(stage), TONES[stage.what]))
        before = stage.at
    return found


def _told(stage: replies.Stage) -> str:
    """Describe a stage."""
    facts = stage.named
    sentence = {
        "spawned": "by the recurring job {schedule}",
        "put": "into queue {queue}",
        "popped": "by worker {worker}",
        "raised": "{why}",
        "failed": "into group {group}",
        "retried": "{retries} left",
        "released": "it is {state} again",
        "lapsed": "the lease of worker {worker} ran out",
        "timed_out": "the lease was taken from worker {worker}",
        "told": "worker {worker} was told that its lease ran out",
        "throttled": "in queue {queue}, by throttle {throttle}",
        "log": "{message}",
    }.get(stage.what, "")
    if stage.what == "completed" and facts["state"] != "complete":
        sentence = "and continues: it is {state}"
    left = counted(int(facts.get("remaining", 0)), "retry", "retries")
    return sentence.format(**facts, retries=left, why=why(str(facts.get("group", "")), str(facts.get("message", ""))))


def spans(job: replies.Job, now: int) -> list[Span]:
    """List the states of a job, from its first stage to its end, or to now."""
    cuts: list[tuple[str, int]] = []
    for stage in job.history:
        state = AFTER.get(stage.what)
        if state is not None:
            cuts.append((state, stage.at))
    if not cuts:
        return []
    if job.state not in ("complete", "failed"):
        if job.state != "running":
            cuts[-1] = (job.state, cuts[-1][1])
        cuts.append(("", max(now, cuts[-1][1])))
    elif job.history[-1].what in ("completed", "failed"):
        cuts[-1] = ("", cuts[-1][1])
    else:
        cuts.append(("", max(job.ended_at, cuts[-1][1])))
    parts = [(state, max(end - start, 0)) for (state, start), (_, end) in pairwise(cuts)]
    return _laid_out(parts)


def _laid_out(parts: list[tuple[str, int]]) -> list[Span]:
    """Lay out the parts side by side, each wide enough to be visible."""
    whole = sum(ms for _, ms in parts) or 1
    widths = [max(ms * WIDTH / whole, THINNEST) for _, ms in parts]
    factor, x, found = WIDTH / (sum(widths) or 1), 0.0, []
    for (state, ms), width in zip(parts, widths, strict=True):
        found.append(Span(state, ms, round(x, 2), round(width * factor, 2)))
        x += width * factor
    return found

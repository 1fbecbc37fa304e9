"""Write jobs, queues, workers and statistics in the form of qless's replies."""

from __future__ import annotations

from collections.abc import Iterable

from qmodel.contract.replies import Failure, Job, QueueCounts, Sample, Schedule, Stage, Stats
from qmodel.dialects.qless import texts
from qmodel.dialects.qless.session import Session, state
from qmodel.dialects.qless.settings import ENTRIES, entries_most
from qmodel.dialects.qless.texts import Raw
from qmodel.dialects.qless.throttles import theirs
from qmodel.model.ops.pop import LAPSED, TOO_LONG

EXHAUSTED = "Job exhausted retries in queue "
WHAT = {"put": "put", "popped": "popped", "completed": "done", "failed": "failed", "lapsed": "timed-out",
        "timed_out": "timed-out", "told": "timed-out", "log": "log"}  # fmt: skip
"""The stages of a job's history that qless has, and its names for them; it has none for a retry."""


def job(session: Session, of: Job) -> Raw:
    """Write a job."""
    now = state(session, of)
    told = dict(of.options).get("told")
    data = Raw(of.data) if session.document and texts.is_json(of.data) else of.data
    head = [("id", of.jid), ("type", texts.shown_klass(of.klass))] if session.document else []
    return texts.record(
        (
            *head,
            ("jid", of.jid),
            ("klass", texts.shown_klass(of.klass)),
            ("state", now),
            ("queue", "" if now == "complete" else of.queue),
            ("worker", of.worker),
            ("tracked", of.tracked),
            ("priority", session.sign * of.priority),
            ("expires", texts.seconds(of.expires_at if told is None else int(told))),
            ("retries", of.retries),
            ("remaining", -1 if now == "failed" and of.remaining == 0 and _is_exhausted(of) else of.remaining),
            ("data", data),
            ("tags", of.tags),
            ("history", stages(of.history) if session.document else _history(session, of.history)),
            ("failure", _failure(of.failure)),
            ("spawned_from_jid", of.spawned_from or False),
            ("dependents", of.dependents),
            ("dependencies", of.dependencies),
            *_throttles(session, of),
        )
    )


def _throttles(session: Session, of: Job) -> list[tuple[str, object]]:
    """Name the throttles of a job, as reqless does."""
    return [("throttles", [*map(theirs, dict(of.options).get("throttles", "").split())])] if session.reqless else []


def _is_exhausted(of: Job) -> bool:
    """Whether a job failed because it had no retries left: then no call of its holder ended the lease."""
    failed = [stage.named["token"] for stage in of.history if stage.what == "failed"]
    return failed[-1:] == [0]


def jobs(session: Session, found: Iterable[Job]) -> Raw:
    """Write several jobs."""
    return texts.listed(job(session, one) for one in found)


def granted(session: Session, found: Iterable[Job]) -> Raw | list[str]:
    """Write the jobs of a pop or a peek; in the documents they are a list of texts."""
    return [str(job(session, one)) for one in found] if session.document else jobs(session, found)


def message(of: Failure | None, queue: str) -> str:
    """Write the message of a job that failed in a queue, and may be deleted since."""
    return exhausted(queue) if of is None or of.message in (LAPSED, TOO_LONG) else of.message


def _failure(of: Failure | None) -> Raw:
    """Write the last failure of a job. For a job without retries left, the time is exact, and no worker is named."""
    if of is None:
        return texts.record(())
    said, when, worker = message(of, of.group.removeprefix("failed-retries-")), of.at // 1000 * 1000, of.worker
    if said.startswith(EXHAUSTED):
        when, worker = of.at, ""
    return texts.record((("group", of.group), ("message", said), ("when", texts.seconds(when)), ("worker", worker)))


def exhausted(queue: str) -> str:
    """Write the message of a job that failed without remaining retries."""
    return f'{EXHAUSTED}"{queue}"'


def _history(session: Session, stages: Iterable[Stage]) -> Raw:
    """Write a job's history, without the stages that qless does not have."""
    owners: dict[int, str] = {}
    shown: list[tuple[int, Raw]] = []
    before = ""
    early = not session.reqless or session.early
    for stage in stages:
        if stage.what in WHAT or (session.reqless and stage.what == "throttled"):
            retried = not early and (before, stage.what) == ("retried", "failed")
            what = "failed-retries" if retried else _what(stage)
            shown.append((stage.at, _stage(stage, owners, not early, what)))
        before = stage.what
    begin = _begin(session, [at for at, _ in shown]) if len(shown) > 2 else 1
    return texts.listed(entry for _, entry in (*shown[:1], *shown[begin:]))


def _begin(session: Session, moments: list[int]) -> int:
    """Find the first entry of a history that is left after its first one. Each entry has cut those before it, as far as
    `max-job-history` said at its moment: to that number of entries, but 1 cuts one, and 2 none.
    """
    limits, begin = entries_most(session), 1
    for place, at in enumerate(moments):
        most = ENTRIES
        for since, limit in limits:
            if since <= at:
                most = limit
        if most > 2:
            begin = max(begin, place - most + 2)
        elif most == 1:
            begin = min(begin + 1, max(place, 1))
    return begin


def _stage(stage: Stage, owners: dict[int, str], reqless: bool, what: str) -> Raw:
    facts = stage.named
    said: list[tuple[str, object]] = [("when", stage.at // 1000), ("what", what)]
    if stage.what in ("put", "throttled"):
        said.append(("queue" if reqless or stage.what == "throttled" else "q", facts["queue"]))
    elif stage.what == "popped":
        owners[int(facts["token"])] = str(facts["worker"])
        said.append(("worker", facts["worker"]))
    elif stage.what == "failed":
        worker = owners.get(int(facts["token"]))
        said += [("worker", worker)] if worker is not None else []
        said.append(("group", facts["group"]))
    elif stage.what == "log":
        return _line(stage.at // 1000, str(facts["message"]))
    return texts.record(said)


def _what(stage: Stage) -> str:
    """Name a stage as reqless does, which has one more."""
    return WHAT.get(stage.what, stage.what)


def _line(when: int, text: str) -> Raw:
    """Write a log line: its message, and the names and values of the JSON object that begins on a line behind it, if
    any.
    """
    at = text.find("\n{")
    while at >= 0 and not texts.is_json(text[at + 1 :]):
        at = text.find("\n{", at + 1)
    if at < 0:
        return texts.record((("when", when), ("what", text)))
    what, more = text[:at], text[at + 1 :]
    inner = more.strip(" \t\r\n")[1:-1].strip(" \t\r\n")
    head = texts.record((("when", when), ("what", what)))
    return Raw("{" + inner + "," * (inner != "") + head[1:])


def stages(history: Iterable[Stage]) -> Raw:
    """Write a job's history in the form of the documents: an object for each queue in which the job was."""
    found: list[dict[str, object]] = []
    for stage in history:
        if stage.what == "put" or not found:
            found.append({"q": stage.named.get("queue", ""), "put": stage.at // 1000})
        elif stage.what == "popped":
            found[-1] |= {"popped": stage.at // 1000, "worker": stage.named["worker"]}
        elif stage.what in ("completed", "failed"):
            found[-1][WHAT[stage.what]] = stage.at // 1000
    return texts.listed(texts.record(one.items()) for one in found)


def queue(session: Session, of: QueueCounts) -> Raw:
    """Write a queue's counts. A job that a timeout has taken is waiting. Jobs that wait for a throttle have a number
    of their own in reqless.
    """
    ended = session.ended(of.name)
    waiting = of.waiting + ended + (0 if session.reqless else of.throttled)
    return texts.record(
        (
            ("name", of.name),
            ("waiting", waiting),
            *([("throttled", of.throttled)] if session.reqless else []),
            ("stalled", of.stalled - ended),
            ("running", of.running),
            ("scheduled", of.scheduled),
            ("depends", of.depends),
            ("recurring", of.recurring),
            ("paused", of.paused),
        )
    )


def schedule(session: Session, of: Schedule) -> Raw:
    """Write a recurring job."""
    return texts.record(
        (
            ("jid", of.jid),
            ("klass", texts.shown_klass(of.klass)),
            ("state", "recur"),
            ("queue", of.queue),
            ("priority", session.sign * of.priority),
            ("interval", texts.seconds(of.interval_ms)),
            ("retries", of.retries),
            ("count", of.runs),
            ("data", of.data),
            ("tags", of.tags),
            ("backlog", of.backlog),
            *([("throttles", [*map(theirs, of.throttles)])] if session.reqless else []),
        )
    )


def worker(name: str, jobs: int, stalled: int) -> Raw:
    """Write a worker's counts."""
    return texts.record((("name", name), ("jobs", jobs), ("stalled", stalled)))


def stats(session: Session, of: Stats, *, is_part: bool) -> Raw:
    """Write the statistics of a day; of a part of it, only waits and runs."""
    counts = [("retries", of.retries), ("failed", of.failed), ("failures", of.failures)]
    spans = [("wait", _sample(session, of.wait)), ("run", _sample(session, of.run))]
    return texts.record([*([] if is_part else counts), *spans])


def _sample(session: Session, of: Sample) -> Raw:
    mean, std = texts.rounded(of.mean / 1000), texts.rounded(of.std / 1000)
    more = [("total", of.count), ("variance", texts.rounded(of.variance / 1e6))] if session.document else []
    bins = ("histogram", documented(of.histogram) if session.document else histogram(of.histogram))
    return texts.record((("count", of.count), ("mean", mean), ("std", std), *more, bins))


def documented(bins: tuple[int, ...]) -> tuple[int, ...]:
    """The bins of the documents, which are the engine's; zeros if none are kept."""
    return bins or (0,) * 287


def histogram(bins: tuple[int, ...]) -> tuple[int, ...]:
    """Convert a histogram to the 148 bins of qless: 60 of a second, 59 of a minute, 23 of an hour, 6 of a day.

    The engine's bins of a quarter of an hour, and its bins of an hour after the first day, are added up; a week or
    longer is in no bin. Without a histogram there are no bins.
    """
    if not bins:
        return (0,) * 148
    hours = [sum(bins[at : at + 4]) for at in range(119, 211, 4)]
    days = [sum(bins[211:235]), sum(bins[235:259]), *bins[259:263]]
    return (*bins[:119], *hours, *days)

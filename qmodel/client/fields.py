"""The properties of a job, for both clients."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from qmodel.client.convert import decode, duration_of, moment, utc
from qmodel.client.values import Attempt, Failure, Stage
from qmodel.contract import replies
from qmodel.contract.operations import Put
from qmodel.errors import DataError, NotLoadedError

_NO_CHANGES: Final[dict[str, Any]] = {}


class Fields:
    """The properties of a job as they were when it was fetched.

    Times are aware datetimes in UTC, or None for never; the same names with `_ms` give the stored milliseconds.
    """

    deduplicated = False
    """Whether this job already stood for the job that was to be put, so that nothing was put."""

    def __init__(self, jid: str, known: replies.Job | None = None, given: Put | None = None) -> None:
        self.jid: Final = jid
        self._reply = known
        self._given = given
        self._changed: dict[str, Any] = _NO_CHANGES

    @property
    def _known(self) -> replies.Job | None:
        """The job as it was fetched, with the changes that this object made since."""
        if self._changed and self._reply is not None:
            self._reply, self._changed = self._reply._replace(**self._changed), _NO_CHANGES
        return self._reply

    @_known.setter
    def _known(self, known: replies.Job) -> None:
        self._reply, self._changed = known, _NO_CHANGES

    def _load(self) -> replies.Job:
        """Give the job's record; fetch it first if that is needed and possible."""
        raise NotImplementedError

    def __repr__(self) -> str:
        basic = self._known or self._given
        name = type(self).__name__
        if basic is None:
            return f"<{name} {self.jid}>"
        state = f": {self._known.state}" if self._known else ""
        return f"<{name} {self.jid}: {basic.klass} in {basic.queue}{state}>"

    def __eq__(self, other: object) -> bool:
        """Jobs are the same when their ids are."""
        return isinstance(other, Fields) and other.jid == self.jid

    def __hash__(self) -> int:
        return hash(self.jid)

    @property
    def raw(self) -> replies.Job:
        """The job as the catalogue replies it."""
        return self._load()

    def _basic(self) -> replies.Job | Put:
        return self._known or self._given or self._load()

    @property
    def klass(self) -> str:
        """Its klass, which names the code that performs it."""
        return self._basic().klass

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self._basic().queue

    @property
    def text(self) -> str:
        """Its data as the text that is stored."""
        return self._basic().data

    @property
    def data(self) -> Any:
        """Its data, decoded from JSON."""
        return self._decode(self.text, "data", "text")

    @property
    def state(self) -> str:
        """waiting, scheduled, depends, running, stalled, complete or failed."""
        return self._load().state

    @property
    def priority(self) -> int:
        """Its priority; lower runs sooner."""
        return self._load().priority

    @property
    def retries(self) -> int:
        """How many retries it was put with."""
        return self._load().retries

    @property
    def remaining(self) -> int:
        """How many retries are left."""
        return self._load().remaining

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags, in the order in which they were added."""
        return self._load().tags

    @property
    def worker(self) -> str:
        """The worker that holds it, or the empty string."""
        return self._load().worker

    @property
    def token(self) -> int:
        """The token of its lease. Each claim makes a new one, and only its holder may finish the job."""
        return self._load().token

    @property
    def result(self) -> Any:
        """Its result, decoded from JSON; None without one."""
        return self._decode(self._load().result, "result", "result_text")

    @property
    def result_text(self) -> str:
        """Its result as the text that is stored."""
        return self._load().result

    @property
    def progress_text(self) -> str:
        """The last progress that its worker reported."""
        return self._load().progress

    @property
    def failure(self) -> Failure | None:
        """Its last failure, if it has failed and has not been completed since."""
        failure = self._load().failure
        return failure and Failure(failure.group, failure.message, utc(failure.at), failure.worker)

    @property
    def attempts(self) -> list[Attempt]:
        """Its attempts, oldest first, with the reason of each that was retried or failed.

        They are read from the history, so a job with a long one (option max-job-history) has only its newest attempts.
        The message of an attempt is the end of what the worker reported, up to 1024 bytes.
        """
        return [
            Attempt(
                one.outcome, one.worker, utc(one.began_at), utc(one.ended_at) if one.ended_at else None,
                timedelta(milliseconds=one.ended_at - one.began_at) if one.ended_at else None, one.group, one.message,
            )
            for one in self._load().attempts
        ]  # fmt: skip

    @property
    def subject(self) -> str | None:
        """The subject of the message that this job was made from; None for a job that was put."""
        return self._load().subject

    @property
    def lifo(self) -> bool:
        """Whether it stands before the others of its priority, newest first."""
        return self._load().lifo

    @property
    def lease(self) -> timedelta | None:
        """How long a lease on it lasts, if it differs from the queue's heartbeat."""
        return duration_of(self._load().lease_ms)

    @property
    def throttles(self) -> tuple[str, ...]:
        """The throttles that must admit the job each time it is popped."""
        return self._load().throttles

    @property
    def cost(self) -> int:
        """The tokens that a pop of the job takes from the buckets of its throttles."""
        return self._load().cost

    @property
    def dead_queue(self) -> str | None:
        """The queue for the dead letter if the job fails."""
        return self._load().dead_queue

    @property
    def origin(self) -> str | None:
        """The id of the original job, if this is a dead letter."""
        return self._load().origin

    @property
    def origin_queue(self) -> str | None:
        """The queue in which the original job failed, if this is a dead letter."""
        return self._load().origin_queue

    @property
    def revoked(self) -> bool:
        """Whether it was revoked while it was running: its worker should stop."""
        return self._load().revoked

    @property
    def ttl(self) -> timedelta | None:
        """How long from its put a worker may begin it; None also for a job that has begun."""
        return duration_of(self._load().ttl_ms)

    @property
    def keep_complete(self) -> timedelta | None:
        """How long it is kept at most after it is complete, if its put set that."""
        return duration_of(self._load().keep_complete_ms)

    @property
    def keep_newest(self) -> int | None:
        """How many complete jobs of its type are kept with it, if its put set that."""
        return self._load().keep_newest

    @property
    def keep_failed(self) -> timedelta | None:
        """How long it is kept at most after it has failed, if its put set that."""
        return duration_of(self._load().keep_failed_ms)

    @property
    def longest(self) -> timedelta | None:
        """How long an attempt may run at most from its claim: the `timeout` of its put."""
        return duration_of(self._load().timeout_ms)

    @property
    def ordered(self) -> str | None:
        """Its concurrency key, if it has one: jobs with the same key start one after the other."""
        return self._load().ordered

    @property
    def retry_delay(self) -> timedelta | None:
        """How long its first retry waits at least, if its put set that; each further one waits twice as long."""
        return duration_of(self._load().retry_delay_ms)

    @property
    def retry_delay_max(self) -> timedelta | None:
        """How long a retry waits at most by `retry_delay`, if its put set that."""
        return duration_of(self._load().retry_delay_max_ms)

    @property
    def max_lapses(self) -> int | None:
        """How many of its leases may end by themselves, if that is limited apart from its retries."""
        return self._load().max_lapses

    @property
    def fair_key(self) -> str | None:
        """Its fair key, if it has one of its own: in a fair queue the keys take turns."""
        return self._load().fair_key

    @property
    def fair_weight(self) -> int:
        """How many turns its fair key gets where others get one."""
        return self._load().fair_weight

    @property
    def unique(self) -> str:
        """Its uniqueness key, or empty."""
        return self._load().unique

    @property
    def holder(self) -> str:
        """The id of the job that holds its key, if this job is kept back until that one has ended; or empty."""
        return self._load().holder

    @property
    def spawned_from(self) -> str:
        """The id of its recurring job, if it is a run of one; or empty."""
        return self._load().spawned_from

    @property
    def tracked(self) -> bool:
        """Whether it is tracked."""
        return self._load().tracked

    @property
    def dependencies(self) -> tuple[str, ...]:
        """The ids of the unfinished jobs that it waits for. See `depends_on_requests`."""
        return self._load().depends_on_jobs

    @property
    def depends_on_requests(self) -> tuple[str, ...]:
        """The ids of the requests that it waits for."""
        return self._load().depends_on_requests

    @property
    def dependents(self) -> tuple[str, ...]:
        """The ids of the jobs that wait for it."""
        return self._load().dependents

    @property
    def history(self) -> tuple[Stage, ...]:
        """What happened to it, oldest first."""
        return tuple(Stage(s.what, utc(s.at), s.named) for s in self._load().history)

    @property
    def expires_at(self) -> datetime | None:
        """When its lease ends, unless a heartbeat renews it."""
        return moment(self.expires_at_ms)

    @property
    def expires_at_ms(self) -> int:
        """The end of its lease in milliseconds since the epoch, 0 without a lease."""
        return self._load().expires_at

    @property
    def put_at(self) -> datetime | None:
        """When it was put into its queue."""
        return moment(self.put_at_ms)

    @property
    def put_at_ms(self) -> int:
        """The same in milliseconds since the epoch."""
        return self._load().put_at

    @property
    def ready_at(self) -> datetime | None:
        """When it became, or will become, ready."""
        return moment(self.ready_at_ms)

    @property
    def ready_at_ms(self) -> int:
        """The same in milliseconds since the epoch."""
        return self._load().ready_at

    @property
    def popped_at(self) -> datetime | None:
        """When it was last leased to a worker."""
        return moment(self.popped_at_ms)

    @property
    def popped_at_ms(self) -> int:
        """When it was last leased, in milliseconds since the epoch, 0 for never."""
        return self._load().popped_at

    @property
    def ended_at(self) -> datetime | None:
        """When it was completed, or failed."""
        return moment(self.ended_at_ms)

    @property
    def ended_at_ms(self) -> int:
        """When it ended, in milliseconds since the epoch, 0 for not yet."""
        return self._load().ended_at

    def _decode(self, text: str, what: str, raw: str) -> Any:
        try:
            return decode(text) if text else None
        except ValueError as error:
            message = f"The {what} of job {self.jid} is not JSON ({error}). Read job.{raw} for the text."
            raise DataError(message) from error

    def _now_is(self, **changed: Any) -> None:
        """Record changes that an operation made to the job."""
        self._changed = {**self._changed, **changed}

    def _ended(self, state: str, **changed: Any) -> None:
        """Record that the lease has ended, and the new state."""
        self._finished = True
        self._now_is(state=state, worker="", expires_at=0, **changed)

    _finished = False


class AsyncJobFields(Fields):
    """The properties of an AsyncJob. Unknown ones must be fetched with `await job.refresh()` first."""

    def _load(self) -> replies.Job:
        if self._known is None:
            raise NotLoadedError(f"Only the id of job {self.jid} is known: `await job.refresh()` fetches the rest.")
        return self._known


class JobFields(Fields):
    """The properties of a Job. Unknown ones are fetched at first use."""

    def _load(self) -> replies.Job:
        if self._known is None:
            self.refresh()
            assert self._known is not None
        return self._known

    def refresh(self) -> Any:
        """Fetch the job again."""
        raise NotImplementedError

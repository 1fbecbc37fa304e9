"""Turn events into rows of jobs and of attempts, in SQL that both DuckDB and Spark understand.

    events -> steps -> lives -> jobs: a row for each life of a job, from its put on
                             -> attempts: a row for each lease
                             -> carried: the steps of the lives that are not closed

A put of a new id begins a life, which `completed`, `canceled` or `retired` closes; a put of a job that has not ended
moves it, and continues its life. Rows of closed lives never change. Those of open lives are computed anew from
`carried` whenever they are read.
"""

from __future__ import annotations

from qmodel.pipeline.statistics.sql import Dialect

STEPS = (
    "put", "popped", "completed", "advanced", "failed", "retried", "released", "lock_lost", "unfailed", "canceled",
    "retired",
)  # fmt: skip
"""The events that jobs and attempts are made of."""

COLUMNS = (
    "namespace", "seq", "moment", "event", "jid", "queue", "job_type", "worker", "tags", "failure_group", "cause",
    "wait_ms", "run_ms",
)  # fmt: skip
"""The columns of steps, also of carried ones."""

ENDS = "('completed', 'advanced', 'failed', 'retried', 'released', 'lock_lost', 'canceled')"
"""What ends an attempt: its outcome."""

CLOSES = "('completed', 'canceled', 'retired')"
LIFE = "partition by jid, namespace, life"


def steps(relation: str, ranges: str, dialect: Dialect) -> str:
    """Select the events of jobs in the range of their namespace. `queue` is where the event leaves the job."""
    moment = dialect.ms.format("happened_at")
    kinds = ", ".join(f"'{kind}'" for kind in STEPS)
    return f"""
    select events.namespace, seq, {moment} as moment, event, jid,
      case when event = 'advanced' then to_queue else queue end as queue, klass as job_type, worker, tags,
      failure_group, cause, wait_ms, run_ms
    from {relation} as events join {ranges} as ranges on ranges.namespace = events.namespace
    where event in ({kinds}) and seq > ranges.after and seq <= ranges.until
    """


def lives(relation: str, dialect: Dialect) -> str:
    """Select the steps with their life (the sequence of the put that began it), and whether it is closed.

    Steps after a closed life, such as `retired`, and those of jobs that were put before the first archived event, are
    left out.
    """
    of_job = "over (partition by jid, namespace order by seq rows between unbounded preceding and {0})"
    before = dialect.last.format(f"case when event = 'put' or event in {CLOSES} then event end")
    begins = "event = 'put' and coalesce(before, '') <> 'put'"
    return f"""
    select * from (
      select *, min(case when event in {CLOSES} then seq end) over ({LIFE}) as closing
      from (
        select *, max(case when {begins} then seq end) {of_job.format("current row")} as life
        from (select *, {before} {of_job.format("1 preceding")} as before from {relation}) as told
      ) as begun
    ) as known where life is not null and (closing is null or seq <= closing)
    """


def attempts(relation: str, dialect: Dialect) -> str:
    """Select a row for each lease, from lives. An attempt without an outcome is still running."""
    following = ", ".join(f"lead({name}) over ({LIFE} order by seq) as next_{name}" for name in _FOLLOWING)
    ended = f"case when next_event in {ENDS} then {{0}} end"
    upto = f"over ({LIFE} order by seq rows between unbounded preceding and current row)"
    last_type, last_tags = (f"{dialect.last.format(name)} {upto}" for name in ("job_type", "tags"))
    started, over = dialect.moment.format("moment"), dialect.moment.format(ended.format("next_moment"))
    return f"""
    select namespace, jid, life, cast(row_number() over ({LIFE} order by seq) as int) as attempt, type_of as job_type,
      queue, worker, tags_of as tags, {dialect.moment.format("put_moment")} as put_at,
      {dialect.moment.format("moment - wait_ms")} as ready_at, {started} as started_at, {over} as ended_at,
      wait_ms, {ended.format("coalesce(next_run_ms, next_moment - moment)")} as run_ms,
      {ended.format("next_event")} as outcome, {ended.format("next_failure_group")} as failure_group,
      {ended.format("next_cause")} as cause
    from (
      select *, {following}, {last_type} as type_of, {last_tags} as tags_of,
        min(case when event = 'put' then moment end) over ({LIFE}) as put_moment
      from {relation} where event in ('put', 'popped') or event in {ENDS}
    ) as following where event = 'popped'
    """


_FOLLOWING = ("event", "moment", "run_ms", "failure_group", "cause")


def jobs(relation: str, dialect: Dialect) -> str:
    """Select a row for each life. Its outcome is completed, failed, canceled or open."""
    return f"""
    select namespace, jid, life, job_type, queue, tags, {dialect.moment.format("put_moment")} as put_at,
      {dialect.moment.format("start_moment")} as started_at,
      {dialect.moment.format("case when outcome <> 'open' then end_moment end")} as ended_at,
      case when outcome <> 'open' then end_moment - put_moment end as total_ms,
      attempts, wait_ms, run_ms, outcome, failure_group
    from (
      select namespace, jid, life, max_by(job_type, case when event = 'put' then seq end) as job_type,
        max_by(queue, case when queue is not null then seq end) as queue,
        max_by(tags, case when tags is not null then seq end) as tags,
        min(case when event = 'put' then moment end) as put_moment,
        min(case when event = 'popped' then moment end) as start_moment,
        max(case when event in ('completed', 'failed', 'canceled') then moment end) as end_moment,
        cast(sum(case when event = 'popped' then 1 else 0 end) as int) as attempts,
        cast(sum(wait_ms) as bigint) as wait_ms, cast(sum(run_ms) as bigint) as run_ms,
        max_by(now, case when event <> 'retired' then seq end) as outcome,
        max_by(failure_group, case when event = 'failed' then seq end) as failure_group
      from (
        select *, case when event in ('completed', 'failed', 'canceled') then event else 'open' end as now
        from {relation}
      ) as told group by namespace, jid, life
    ) as summed
    """


def carried(relation: str) -> str:
    """Select the steps that a later run needs, from lives."""
    return f"select {', '.join(COLUMNS)} from {relation} where closing is null"


def events(relation: str, dialect: Dialect) -> str:
    """Select the events of jobs, with the names and types of the other tables."""
    moment = dialect.moment.format(dialect.ms.format("happened_at"))
    return f"""
    select namespace, seq, epoch, {moment} as happened_at, event, jid, queue,
      klass as job_type, worker, tag, tags, failure_group, cause, to_queue, wait_ms, run_ms
    from {relation} where jid is not null
    """

"""Turn events into cells, in SQL that both DuckDB and Spark understand.

    events -> slim -> counted: a row for each thing that counts -> cells: added up by day and queue, klass, worker
                   -> tagged: only of jobs that ever had a tag -> counted -> cells, by tag
                   -> carried: the events that a later run needs

The definition of what counts is `qmodel.pipeline.statistics.fold.Fold`; tests compare the two on histories. A fold
remembers the state of each job. Here the state is found by looking back from an event to earlier ones of its job: the
`put` has the klass, and the last one says what this one revokes. A job that is put again, recovers, or is gone is no
longer failed, on the day and under the names that its failure counted for. What a fold says about lost leases holds
here, too. So an event may count in three ways, and has a `turn` for each.

Windows are partitioned by `jid, namespace`, in this order: Spark compares the first bytes of the first column before
anything else, and few jobs share those.

An event needs little from before: the `put` of its job, the tags since, and the last event. `carried` keeps these. A
later run reads them before the new events, and so counts as if it had read everything.
"""

from __future__ import annotations

from typing import NamedTuple

from qmodel.pipeline.statistics.cells import SHIFT, cell_sql
from qmodel.pipeline.statistics.fold import HANDLERS

COLUMNS = ("namespace", "seq", "moment", "event", "jid", "queue", "klass", "worker", "tag", "failure", "cause", "ms")
"""The columns of counted events and of carried ones."""

CELLS = ("namespace", "day", "kind", "name", "measure", "detail", "cell", "n", "total", "squares", "low", "high")
"""Those of the cells. `kind` is queue, klass, worker or tag. `measure` is wait or run, with a cell for each length;
failed, by group; recovered; retries; and hour: how many were completed in the hour that `detail` names.
"""

LIVES = "('put', 'canceled', 'retired')"
"""The events that begin or end the life of a job: earlier knowledge of the job no longer applies."""

RECOVERS = "('put', 'unfailed', 'canceled', 'retired')"
FINISHES = "('completed', 'advanced')"
TAGS = "('tagged', 'untagged')"
DAY = 86_400_000


class Dialect(NamedTuple):
    """The parts of SQL that DuckDB and Spark write in different ways."""

    quote: str  # the quote around names
    last: str  # the last value that is not null
    escape: str  # what escapes a quote in a text, and itself
    each: str  # the function that makes a row of each element of a list
    moment: str  # a timestamp of milliseconds since 1970
    ms: str  # and the other way around

    def name(self, name: str) -> str:
        """Quote a name."""
        return f"{self.quote}{name}{self.quote}"

    def text(self, value: str) -> str:
        """Quote a text."""
        doubled = value.replace(self.escape, self.escape * 2)
        return "'" + (doubled if self.escape == "'" else doubled.replace("'", f"{self.escape}'")) + "'"


DUCKDB = Dialect('"', "last_value({0} ignore nulls)", "'", "unnest", "epoch_ms(cast({0} as bigint))", "epoch_ms({0})")
SPARK = Dialect("`", "last_value({0}) ignore nulls", "\\", "explode", "timestamp_millis({0})", "unix_millis({0})")


def slim(relation: str, ranges: str, dialect: Dialect) -> str:
    """Select the events that count and are in the range of their `namespace`, with the columns that count.

    Each tag of a put is a row `tagged` with the sequence of the put.
    """
    kinds = ", ".join(f"'{kind}'" for kind in sorted(HANDLERS))
    moment = dialect.ms.format("happened_at")
    joined = f"from {relation} as events join {ranges} as ranges on ranges.namespace = events.namespace"
    return f"""
    select events.namespace, seq, {moment} as moment, 'tagged' as event, jid, queue, klass, worker,
      {dialect.each}(tags) as tag, failure_group as failure, cause, wait_ms as ms
    {joined}
    where event = 'put' and tags is not null and seq > ranges.after and seq <= ranges.until
    union all
    select events.namespace, seq, {moment} as moment, event, jid, queue, klass, worker, tag, failure_group as failure,
      cause, coalesce(wait_ms, run_ms) as ms
    {joined}
    where event in ({kinds}) and seq > ranges.after and seq <= ranges.until
    """


def _seen(relation: str, dialect: Dialect) -> str:
    """Select all events but those of tags, each with what earlier events say about its job.

    `life` is the sequence of the event that began the job's life, and `klass_of` the klass that it said.
    """
    of_job = "over (partition by jid, namespace order by seq)"
    before = "over (partition by jid, namespace order by seq rows between unbounded preceding and 1 preceding)"
    known = f"case when event = 'put' then klass when event in {LIVES} then '' end"
    was = ", ".join(
        f"lag({name}) {of_job} as was_{name}" for name in ("event", "seq", "moment", "queue", "worker", "cause")
    )
    return (
        f"select namespace, seq, moment, event, jid, queue, worker, failure, cause, ms, {was},"
        f" coalesce(max(case when event in {LIVES} then seq end) {before}, 0) as life,"
        f" coalesce({dialect.last.format(known)} {before}, '') as klass_of"
        f" from {relation} where event not in {TAGS}"
    )


TURNS = f"""
    turn = 0 and (event in ('popped', 'failed', 'retried') or event in {FINISHES} or cause = 'lapsed')
    or turn = 1 and (
      was_event = 'failed' and event in {RECOVERS}
      or was_event = 'lock_lost' and (
        was_cause = 'lapsed' and event = 'failed' and was_seq = seq - 1
        or was_cause = 'timeout' and was_moment = moment and (event = 'throttled' or event = 'popped' and ms > 0)))
    or turn = 2 and event in {FINISHES}
    """
"""The ways to count: the event itself, what it says about the one before, and a completion in an hour."""

MEASURE = f"""case
    when turn = 2 then 'hour'
    when turn = 1 then case when was_event = 'failed' then 'recovered' else 'retries' end
    when event = 'popped' then 'wait' when event in {FINISHES} then 'run'
    when event = 'failed' then 'failed' else 'retries' end"""


def counted(relation: str, ranges: str, dialect: Dialect) -> str:
    """Select a row for each thing that counts, from the events behind `after` of their namespace in `ranges`."""
    own = {name: f"case when turn = 1 then was_{name} else {name} end" for name in ("seq", "moment", "queue", "worker")}
    return f"""
    select seen.namespace, jid, life, {own["seq"]} as seq, {own["queue"]} as queue, klass_of as klass,
      coalesce({own["worker"]}, '') as worker, {MEASURE} as measure,
      cast({own["moment"]} - {own["moment"]} % {DAY} as bigint) as day,
      case when turn = 0 and event = 'failed' then failure
        when turn = 2 then cast(cast(floor(moment % {DAY} / 3600000) as int) as string) else '' end as detail,
      case when turn = 1 and event = 'failed' and was_event = 'lock_lost' then -1 else 1 end as n,
      case when turn = 0 then ms end as ms
    from ({_seen(relation, dialect)}) as seen
      join {ranges} as ranges on ranges.namespace = seen.namespace
      cross join (values (0), (1), (2)) as turns(turn)
    where seen.seq > ranges.after and ({TURNS})
    """


MEASURED = f"""{cell_sql("ms")} as cell, cast(ms as decimal(19, 0)) * cast(ms as decimal(19, 0)) as square"""
"""The cell and the square of a duration, computed once before the rows are added up by each kind."""

SUMS = "sum(n) as n, sum(ms) as total, sum(square) as squares, min(ms) as low, max(ms) as high"


def tagged(relation: str) -> str:
    """Select the events of jobs that ever had a tag: usually few, and tags are looked for nowhere else."""
    columns = ", ".join(f"one.{name}" for name in COLUMNS)
    return f"""
    select {columns} from {relation} as one
    semi join (select namespace, jid from {relation} where event = 'tagged') as had
      on had.namespace = one.namespace and had.jid = one.jid
    """


def cells(relation: str) -> str:
    """Add up the rows of `counted` by queue, by klass, and by worker if there is one."""
    kinds = ("queue", "klass", "worker")
    sets = ", ".join(f"(namespace, day, measure, detail, cell, {kind})" for kind in kinds)
    by = " ".join(f"when grouping({kind}) = 0 then '{kind}'" for kind in kinds)
    name = " ".join(f"when grouping({kind}) = 0 then {kind}" for kind in kinds)
    added = f"""
    select namespace, day, case {by} end as kind, case {name} end as name, measure, detail, cell, {SUMS}
    from (select *, {MEASURED} from {relation}) as measured
    group by grouping sets ({sets})
    """
    return f"{_whole('kind', 'name', f'({added}) as added')} where not (kind = 'worker' and name = '')"


def _whole(kind: str, name: str, relation: str) -> str:
    """Select the columns of CELLS with types common to both dialects: a null is written as 0, and no cell as -1."""
    sums = ", ".join(f"cast(coalesce({one}, 0) as bigint) as {one}" for one in ("n", "total"))
    ends = ", ".join(f"cast(coalesce({one}, 0) as bigint) as {one}" for one in ("low", "high"))
    return (
        f"select namespace, day, {kind} as kind, {name} as name, measure, detail, coalesce(cell, -1) as cell, {sums},"
        f" cast(coalesce(squares, 0) as decimal(38, 0)) as squares, {ends} from {relation}"
    )


def spans(relation: str) -> str:
    """Select the ranges of sequences in which a job had a tag, by life."""
    order = f"order by seq, case when event in {TAGS} then 1 else 0 end"  # the tags of a put are behind it
    before = f"over (partition by jid, namespace {order} rows between unbounded preceding and 1 preceding)"
    return f"""
    select namespace, jid, life, tag, since, until from (
      select namespace, jid, life, tag, event, seq as since,
        lead(seq) over (partition by jid, namespace, life, tag order by seq) as until
      from (
        select namespace, jid, event, tag, seq,
          coalesce(max(case when event in {LIVES} then seq end) {before}, 0) as life
        from {relation} where event in {TAGS} or event in {LIVES}
      ) as lives where event in {TAGS}
    ) as changes where event = 'tagged'
    """


def tag_cells(relation: str, spans_relation: str) -> str:
    """Add up the rows of `counted` by tag."""
    added = f"""
    select namespace, day, tag, measure, detail, cell, {SUMS} from (
      select counted.*, tag, {MEASURED} from {relation} as counted
      join {spans_relation} as spans
        on counted.namespace = spans.namespace and counted.jid = spans.jid and counted.life = spans.life
        and counted.seq > spans.since and (spans.until is null or counted.seq < spans.until)
    ) as tagged group by namespace, day, tag, measure, detail, cell
    """
    return _whole("'tag'", "tag", f"({added}) as added")


def carried(relation: str) -> str:
    """Select the events that a later run may need."""
    job = "over (partition by jid, namespace)"
    return f"""
    select {", ".join(COLUMNS)} from (
      select *, coalesce(max(case when event in {LIVES} then seq end) {job}, 0) as born,
        max(case when event not in {TAGS} then seq end) {job} as newest
      from {relation}) as known
    where seq >= born and (event in {TAGS} or event = 'put') or seq = newest and event not in ('canceled', 'retired')
    """


GROUP = "namespace, day, kind, name"
SHARES = (50, 90, 95, 99)
"""The percentiles that are reported."""


def measured(relation: str) -> str:
    """Select a row for the waits and one for the runs of each day and name, with the fine cells of percentiles.

    A percentile is the shortest duration that so many of a hundred do not exceed (nearest rank).
    """
    shares = ", ".join(f"min(case when 100 * upto >= {share} * every then fine end) as p{share}" for share in SHARES)
    whole = f"over (partition by {GROUP}, measure"
    return f"""
    select {GROUP}, measure, cast(sum(n) as bigint) as n, cast(sum(total) as decimal(38, 0)) as total,
      cast(sum(squares) as decimal(38, 0)) as squares, min(low) as low, max(high) as high, {shares}
    from (
      select *, sum(n) {whole} order by fine) as upto, sum(n) {whole}) as every
      from (
        select {GROUP}, measure, cast(floor(cell / {SHIFT}) as bigint) as fine, cast(sum(n) as bigint) as n,
          cast(sum(total) as decimal(38, 0)) as total, cast(sum(squares) as decimal(38, 0)) as squares,
          min(low) as low, max(high) as high
        from {relation} where measure in ('wait', 'run')
        group by {GROUP}, measure, cast(floor(cell / {SHIFT}) as bigint)
      ) as fines
    ) as ranked group by {GROUP}, measure
    """


def tallied(relation: str) -> str:
    """Select failures by group, recoveries, retries, and completions by hour, from cells."""
    return (
        f"select {GROUP}, measure, detail, cast(sum(n) as bigint) as n from {relation}"
        f" where measure not in ('wait', 'run') group by {GROUP}, measure, detail"
    )


def binned(relation: str) -> str:
    """Select the engine's histograms from cells: a row for each bin that is not empty."""
    return (
        f"select {GROUP}, measure, cast(cell % {SHIFT} as bigint) as bin, cast(sum(n) as bigint) as n from {relation}"
        f" where measure in ('wait', 'run') group by {GROUP}, measure, cast(cell % {SHIFT} as bigint)"
    )

"""Cron expressions: which moments they mean, and that runs come at them whoever tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import qmodel
from qmodel import Client
from qmodel.backends.memory import MemoryBackend
from qmodel.client import cron
from qmodel.contract import operations as ops
from qmodel.errors import ScheduleNotFound, ScheduleOver

# ---- which moments

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def moments(expression: str, zone: str, after: str, most: int) -> list[str]:
    """The next moments, as the clocks of the zone show them."""
    at = int(datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)
    found = cron.next_moments(cron.spec(expression, zone), at, most)
    return [f"{datetime.fromtimestamp(one / 1000, ZoneInfo(zone)):%a %m-%d %H:%M %z}" for one in found]


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        # clocks are put forward from 2 to 3: the moment that does not exist is made up for at the first that does
        ("30 2 * * *", BERLIN, "2024-03-30", ["Sat 03-30 02:30 +0100", "Sun 03-31 03:00 +0200"]),
        ("30 2 * * *", NEW_YORK, "2024-03-10", ["Sun 03-10 03:00 -0400", "Mon 03-11 02:30 -0400"]),
        ("0,30 2,3 * * *", BERLIN, "2024-03-31", ["Sun 03-31 03:00 +0200", "Sun 03-31 03:30 +0200"]),
        # a star simply goes on
        ("*/30 * * * *", BERLIN, "2024-03-31 01:00", ["Sun 03-31 01:30 +0100", "Sun 03-31 03:00 +0200"]),
        # and they are put back from 3 to 2: the moment that comes twice is taken once, the first time
        ("30 2 * * *", BERLIN, "2024-10-26 12:00", ["Sun 10-27 02:30 +0200", "Mon 10-28 02:30 +0100"]),
        ("30 1 * * *", NEW_YORK, "2024-11-03", ["Sun 11-03 01:30 -0400", "Mon 11-04 01:30 -0500"]),
        ("0 * * * *", BERLIN, "2024-10-27 01:30", ["Sun 10-27 02:00 +0200", "Sun 10-27 02:00 +0100"]),
        # days that few months and years have
        ("0 0 29 2 *", "UTC", "2023-06-01", ["Thu 02-29 00:00 +0000"]),
        ("0 0 30 * *", "UTC", "2024-01-31", ["Sat 03-30 00:00 +0000", "Tue 04-30 00:00 +0000"]),
        ("0 0 31 * *", "UTC", "2024-03-31 01:00", ["Fri 05-31 00:00 +0000"]),
        ("0 0 L * *", "UTC", "2024-02-01", ["Thu 02-29 00:00 +0000", "Sun 03-31 00:00 +0000"]),
        # the month and the week: one or the other, or both with a star
        ("0 9 13 * FRI", "UTC", "2024-09-12", ["Fri 09-13 09:00 +0000", "Fri 09-20 09:00 +0000"]),
        ("0 9 * * 1-5", BERLIN, "2024-05-03 10:00", ["Mon 05-06 09:00 +0200", "Tue 05-07 09:00 +0200"]),
    ],
)  # fmt: skip
def test_an_expression_means_these_moments(expression: str, zone: str, after: str, expected: list[str]) -> None:
    assert moments(expression, zone, after, len(expected)) == expected


@pytest.mark.parametrize(
    ("expression", "zone", "sentence"),
    [
        ("0 9 * *", "UTC", "no cron expression"),
        ("0 0 30 2 *", "UTC", "no cron expression"),
        ("61 * * * *", "UTC", "no cron expression"),
        ("* * * * *", "Europe/Nowhere", "no time zone"),
        ("* * * * *", "", "no time zone"),
        ("* * * * *", "../../etc/passwd", "no time zone"),
    ],
)
def test_what_is_none_is_told_before_it_is_sent(expression: str, zone: str, sentence: str) -> None:
    client = qmodel.connect("memory://")
    with pytest.raises(ValueError, match=sentence):
        client.queues["q"].recur("K", cron=expression, tz=zone, jid="r")
    assert client.recurring.get("r") is None


def test_moments_are_told_a_month_ahead_a_hundred_at_most_and_one_at_least() -> None:
    assert len(cron.next_moments("* * * * * UTC", 0)) == 100
    assert len(cron.next_moments("0 9 * * * UTC", 0)) == 32
    assert len(cron.next_moments("0 9 1 1 * UTC", 0)) == 1


# ---- runs


def test_a_job_recurs_by_cron(client: Client) -> None:
    queue = client.queues["q"]
    daily = queue.recur("Report", cron="0 9 * * 1-5", tz=BERLIN, jid="daily", missed="one", overlap="skip")

    assert (daily.kind, daily.cron, daily.tz) == ("cron", "0 9 * * 1-5", BERLIN)
    assert (daily.missed, daily.overlap, daily.made, daily.unfinished) == ("one", "skip", 0, 0)
    assert daily.next_at is not None and daily.next_at.astimezone(ZoneInfo(BERLIN)).hour == 9
    assert daily.next_at > datetime.now(UTC) - timedelta(minutes=1)
    assert repr(daily).endswith("at 0 9 * * 1-5 Europe/Berlin>")
    known = daily.raw.due_at
    again = queue.recur("Report", cron="0 9 * * 1-5", tz=BERLIN, jid="daily")
    assert again.raw.due_at[: len(known)] == known
    assert client.advance_schedules() == 0
    assert client.advance_schedules(timedelta(days=40)) == 1


def test_whoever_tells_more_each_moment_has_one_run() -> None:
    client, start = qmodel.connect("memory://"), 1_700_000_000_000
    client.execute(ops.Recur("q", "r", "K", "", 0, kind="cron", cron="* * * * * UTC"), now=start)
    made: list[Any] = []
    for minute in range(1, 400):
        now = start + minute * 60_000
        for _ in range(3):  # three clients, all at once, one of them with what it read before
            found = client.execute(ops.RecurringUnset(600_000), now=now)
            told = list(cron.advances(found, now))
            for op in (*told, *told):
                client.execute(op, now=now)
        made += (leased := client.execute(ops.Pop("q", "w", 10), now=now))
        for job in leased:
            client.execute(ops.Complete(job.jid, job.token), now=now)
    first = start - start % 60_000 + 60_000
    assert [job.ready_at for job in made] == [first + n * 60_000 for n in range(len(made))]
    assert len(made) >= 398


@pytest.mark.parametrize("missed", ["all", "one", "none"])
@pytest.mark.parametrize("hours", [-3, 3])
def test_a_client_with_a_wrong_clock_leaves_out_no_run(
    monkeypatch: pytest.MonkeyPatch, missed: str, hours: int
) -> None:
    at = [1_700_000_040_000]
    client = Client(MemoryBackend(clock=lambda: at[0]))
    monkeypatch.setattr(client, "_now", lambda: at[0] + hours * 3_600_000)
    queue = client.queues["q"]
    queue.recur("K", cron="* * * * *", jid="r", missed=missed)
    runs = 0
    for minute in range(1, 400):
        at[0] += 60_000
        if minute % 7 == 0:
            client.advance_schedules()
        runs += queue.fire()
    assert runs == 399


@pytest.mark.parametrize(("arguments", "runs"), [({}, 2000), ({"missed": "one"}, 1), ({"backlog": 3}, 3)])
def test_what_was_missed_while_nobody_told_is_made_as_it_was_asked(arguments: dict[str, Any], runs: int) -> None:
    client, start = qmodel.connect("memory://"), 1_700_000_000_000
    client.execute(ops.Recur("q", "r", "K", "", 0, kind="cron", cron="* * * * * UTC", **arguments), now=start)
    now = start + 2000 * 60_000
    made = 0
    while found := client.execute(ops.RecurringUnset(0), now=now):
        for op in cron.advances(found, now):
            client.execute(op, now=now)
        made += client.execute(ops.Fire("q"), now=now)
    assert made == runs


def test_an_expression_that_nobody_can_read_keeps_no_other_from_going_on(client: Client) -> None:
    client.execute(ops.Recur("q", "odd", "K", "", 0, kind="cron", cron="when the moon is full"))
    client.execute(ops.Recur("q", "fine", "K", "", 0, kind="cron", cron="0 9 * * * UTC"))
    with pytest.warns(RuntimeWarning, match="odd has no next run"):
        assert client.advance_schedules() == 1
    assert client.recurring["fine"].next_at is not None
    assert client.recurring["odd"].next_at is None


# ---- the other ways to recur


def test_a_run_comes_after_the_end_of_the_one_before(client: Client) -> None:
    queue = client.queues["q"]
    poll = queue.recur("Poll", after=3600, jid="poll")
    job = queue.pop()
    assert job is not None and job.jid == "poll-1"
    assert (poll.refresh().next_at, poll.unfinished, poll.kind) == (None, 1, "after")
    job.fail("g", "m")
    assert poll.refresh().unfinished == 0
    assert poll.next_at is not None and poll.next_at > datetime.now(UTC) + timedelta(minutes=59)


def test_bounds_pause_and_a_run_at_once(client: Client) -> None:
    queue = client.queues["q"]
    start, end = datetime(2100, 1, 1, tzinfo=UTC), datetime(2100, 1, 2, tzinfo=UTC)
    bounded = queue.recur("K", interval=3600, start=start, end=end, limit=2, jid="b", catchup=5)
    assert (bounded.start, bounded.end, bounded.limit, bounded.next_at) == (start, end, 2, start)
    assert bounded.pause() and not bounded.pause()
    assert bounded.paused and bounded.next_at is None
    assert bounded.run_now().spawned_from == "b"
    assert bounded.unpause() and not bounded.unpause()
    assert (bounded.made, bounded.next_at) == (1, start)
    assert bounded.run_now().jid == "b-2"
    with pytest.raises(ScheduleNotFound):
        bounded.refresh()
    with pytest.raises(ScheduleOver):
        queue.recur("K", interval=1, end=datetime(2000, 1, 1, tzinfo=UTC))
    with pytest.raises(TypeError, match="one of interval, cron and after"):
        queue.recur("K", interval=1, cron="* * * * *")

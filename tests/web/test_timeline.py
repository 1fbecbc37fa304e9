"""A job's life as a bar."""

from __future__ import annotations

from qmodel import Client
from qmodel.contract import operations as ops
from qmodel.contract.replies import HISTORY, Job
from qmodel.dialects import qless
from qmodel.web.timeline import TONES, WIDTH, moments, spans

AT = 1_800_000_000_000


def life(*steps: tuple[int, str]) -> Job:
    """A job after some steps, each at a second."""
    client = Client("memory://")
    token = 0
    for second, step in steps:
        now = AT + second * 1000
        if step == "put":
            client.execute(ops.Put("q", "j", "K", ""), now=now)
        elif step == "pop":
            token = client.execute(ops.Pop("q", "w"), now=now)[0].token
        else:
            op = {
                "retry": ops.Retry("j", token, 5000),
                "fail": ops.Fail("j", token, "g", "m"),
                "complete": ops.Complete("j", token),
                "revoke": ops.Revoke(("j",)),
                "timeout": ops.Timeout(("j",)),
            }[step]
            client.execute(op, now=now)
    found = client.execute(ops.Get("j"), now=now)
    assert isinstance(found, Job)
    return found


def told(job: Job, second: int) -> list[tuple[str, int]]:
    """The parts of its bar at a second: what it was, and for how many seconds."""
    return [(span.state, span.ms // 1000) for span in spans(job, AT + second * 1000)]


def test_a_bar_shows_waiting_and_running_in_turn() -> None:
    job = life((0, "put"), (10, "pop"), (30, "retry"), (40, "pop"), (45, "complete"))
    assert told(job, 99) == [("waiting", 10), ("running", 20), ("waiting", 10), ("running", 5)]


def test_a_bar_ends_with_the_job_or_now() -> None:
    assert told(life((0, "put"), (10, "pop"), (30, "fail")), 99) == [("waiting", 10), ("running", 20)]
    assert told(life((0, "put"), (10, "pop")), 12) == [("waiting", 10), ("running", 2)]
    assert told(life((0, "put"), (10, "pop"), (30, "retry")), 32) == [
        ("waiting", 10),
        ("running", 20),
        ("scheduled", 2),
    ]
    assert told(life((0, "put"), (7, "revoke")), 99) == [("waiting", 7)]
    assert told(life((0, "put"), (10, "pop"), (20, "timeout")), 50)[-1] == ("stalled", 30)


def test_every_part_can_be_seen_and_all_of_them_fill_the_bar() -> None:
    found = spans(life((0, "put"), (1, "pop"), (100_000, "complete")), AT)
    assert found[0].width > 3
    assert round(found[-1].x + found[-1].width) == WIDTH


def test_each_kind_of_stage_has_a_colour() -> None:
    assert TONES.keys() == HISTORY.keys()


def test_a_job_that_reqless_has_throttled_is_told() -> None:
    client = Client("memory://")
    seconds = AT // 1000
    store = client.backend.namespace.store  # type: ignore[attr-defined]
    qless.call(store, ["reqless.throttle.set", str(seconds), "t", "1", "0"])
    for jid in "ij":
        qless.call(store, ["reqless.put", str(seconds), "w", "q", jid, "K", "{}", "0", "throttles", '["t"]'])
    qless.call(store, ["reqless.pop", str(seconds + 7), "q", "w", "2"])
    job = client.execute(ops.Get("j"), now=AT + 9000)
    assert isinstance(job, Job)
    assert [(one.what, one.told) for one in moments(job)][-1] == ("throttled", "in queue q, by throttle t")
    assert told(job, 9) == [("waiting", 7), ("throttled", 2)]


def test_stages_are_told_in_words() -> None:
    job = life((0, "put"), (10, "pop"), (30, "fail"))
    assert [(one.what, one.told, one.since) for one in moments(job)] == [
        ("put", "into queue q", 0),
        ("popped", "by worker w", 10_000),
        ("raised", "g: m", 20_000),
        ("failed", "into group g", 0),
    ]

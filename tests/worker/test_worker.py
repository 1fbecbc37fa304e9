"""The worker's handling of jobs, with each runner."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from qmodel.app import App, Context, current
from qmodel.client.sync import Client
from qmodel.contract.operations import Operation, Pop
from qmodel.errors import JobFailed, JobRevoked
from qmodel.worker import Worker
from qmodel.worker.connection import Connection, GivenUp
from tests.servers import Server
from tests.worker import jobs
from tests.worker.support import PATIENCE, lines, until, working


@pytest.fixture(params=["thread", "async", "fork"])
def runner(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def app(url: str) -> Iterator[App]:
    """The app of the test's jobs, in the test's namespace."""
    with jobs.app.using(Client(url)):
        before = jobs.app.connection._given
        jobs.app.connection._given = url
        yield jobs.app
        jobs.app.connection._given = before


def test_jobs_are_performed_and_their_results_come_back(app: App, runner: str) -> None:
    with working(app, concurrency=3, runner=runner):
        put = jobs.add.put_many([(number, 1) for number in range(20)])
        assert [job.wait(timeout=PATIENCE) for job in put] == list(range(1, 21))
        assert jobs.aadd.put(2, y=3).wait(timeout=PATIENCE) == 5
        assert jobs.told.put().wait(timeout=PATIENCE) == "told"


def test_a_burst_ends_when_nothing_is_ready_and_nothing_runs(app: App, runner: str, client: Client) -> None:
    put = [*jobs.add.put_many([(number, 1) for number in range(20)]), jobs.aadd.put(2)]
    after = jobs.add.options(depends=[put[-1].jid]).put(1)
    later = jobs.add.options(delay=3600).put(1)
    Worker(app, concurrency=3, runner=runner, burst=True).run()  # type: ignore[arg-type]
    assert {job.state for job in client.multiget([*(job.jid for job in put), after.jid])} == {"complete"}
    assert client.jobs[later.jid].state == "scheduled"
    Worker(app, runner=runner, burst=True).run()  # type: ignore[arg-type]  # with nothing at all


def test_on_the_model_in_this_process() -> None:
    app = App("memory://")

    @app.job
    def double(x: int) -> int:
        return 2 * x

    with working(app):
        assert double.put(4).wait(timeout=PATIENCE) == 8


def test_what_a_job_raises_is_a_retry_then_a_failure(app: App, runner: str) -> None:
    with working(app, runner=runner):
        job = jobs.wrong.put()
        with pytest.raises(JobFailed, match="this goes wrong") as failed:
            job.wait(timeout=PATIENCE)
        assert failed.value.group == "ValueError"
        with pytest.raises(JobFailed, match="by the job"):
            jobs.refuse.put().wait(timeout=PATIENCE)
    assert [stage.what for stage in job.refresh().history] == [
        "put",
        "popped",
        "raised",
        "retried",
        "popped",
        "raised",
        "retried",
        "failed",
    ]
    assert [(one.outcome, one.group) for one in job.attempts] == [("retried", "ValueError"), ("failed", "ValueError")]


def test_a_job_that_means_to_end_the_worker_ends_itself_only(app: App, runner: str) -> None:
    kind = jobs.aleave if runner == "async" else jobs.leave
    with working(app, runner=runner):
        for interrupt in (False, True):
            with pytest.raises(JobFailed):
                kind.put(interrupt).wait(timeout=PATIENCE)
        assert jobs.add.put(1).wait(timeout=PATIENCE) == 1


def test_a_stop_iteration_is_an_exception_like_others(app: App, runner: str) -> None:
    with working(app, runner=runner):
        with pytest.raises(JobFailed, match="nothing is left") as failed:
            jobs.exhaust.put().wait(timeout=PATIENCE)
        assert failed.value.group == "StopIteration"
        assert jobs.add.put(1).wait(timeout=PATIENCE) == 1


def test_a_backoff_that_raises_does_not_keep_its_job(app: App, runner: str) -> None:
    with working(app, runner=runner):
        kind = jobs.aendless_without_backoff if runner == "async" else jobs.endless_without_backoff
        job = kind.put()
        until(lambda: job.refresh().state == "scheduled")
        assert jobs.add.put(1).wait(timeout=PATIENCE) == 1


def test_a_job_that_runs_for_too_long_is_a_failed_attempt(app: App, runner: str) -> None:
    kind = jobs.aendless if runner == "async" else jobs.endless
    with working(app, runner=runner):
        with pytest.raises(JobFailed, match=r"longer than its timeout of 400 ms") as failed:
            kind.put().wait(timeout=PATIENCE)
        assert failed.value.group == "TimedOut"
        assert jobs.add.put(1).wait(timeout=PATIENCE) == 1


def test_plain_functions_that_go_on_in_an_event_loop_keep_no_other_waiting(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    with working(app, runner="async", concurrency=2):
        late = [jobs.endless.put() for _ in range(3)]
        for job in late:
            with pytest.raises(JobFailed, match="longer than its timeout"):
                job.wait(timeout=PATIENCE)
        assert jobs.add.put(1).wait(timeout=PATIENCE) == 1
    assert caplog.text.count("is a plain function: it continues in its thread") == 1


def test_a_lost_lock_aborts_the_job_and_says_who_has_it(
    app: App, runner: str, notes: Path, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.config["heartbeat"] = 0.6
    lost: list[Context | None] = []
    app.on("lost_lock")(lambda context, outcome: lost.append(context))
    kind = jobs.arest if runner == "async" else jobs.rest
    with working(app, runner=runner):
        job = kind.put(60, str(notes))
        until(lambda: lines(notes))
        client.config["heartbeat"] = 60  # the other's lease outlasts the test
        client.jobs.timeout(job.jid)
        taken = client.queues["default"].pop(worker="the-other")
        assert taken is not None
        until(lambda: "its worker is 'the-other'" in caplog.text)
        if runner != "fork":  # a process is killed, and gets no exception
            until(lambda: lines(notes)[1:] in (["Cancelled"], ["CancelledError"]))
        assert lost
        taken.complete("the other's")
        assert jobs.add.put(1).wait(timeout=PATIENCE) == 1
    assert client.jobs[job.jid].result == "the other's"


def test_a_revoked_job_is_aborted_and_fails(app: App, runner: str, notes: Path, client: Client) -> None:
    client.config["heartbeat"] = 0.6
    kind = jobs.arest if runner == "async" else jobs.rest
    with working(app, runner=runner):
        job = kind.put(60, str(notes))
        until(lambda: lines(notes))
        client.jobs.revoke(job.jid)
        with pytest.raises(JobRevoked):
            job.wait(timeout=PATIENCE)


def test_a_job_that_computes_keeps_its_lease(app: App, runner: str, client: Client, notes: Path) -> None:
    client.config["heartbeat"] = 0.3
    expiries = set()
    with working(app, runner=runner), working(app, runner=runner):  # the other worker would take a lapsed job
        job = jobs.busy.put(60, str(notes))
        until(lambda: lines(notes))
        until(lambda: expiries.add(job.refresh().expires_at) or len(expiries) > 3)  # type: ignore[func-returns-value]
        Path(f"{notes}.enough").touch()
        assert job.wait(timeout=PATIENCE) == "done"
    assert [stage.what for stage in job.refresh().history] == ["put", "popped", "completed"]


def test_an_unknown_klass_is_given_back_and_the_log_says_what_was_meant(
    app: App, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    job = client.queues["default"].put("ad", {"x": 1})
    with working(app):
        until(lambda: "This worker has no job type 'ad'. Did you mean " in caplog.text)
        assert until(lambda: job.refresh().state == "scheduled") and job.remaining == 5


def test_jobs_held_behind_a_slow_one_are_given_back(app: App, notes: Path, client: Client) -> None:
    jobs.add.options(priority=-2).put_many([(1,)] * 100)  # so that the worker expects short jobs
    slow = jobs.rest.options(priority=-1).put(30, str(notes))
    for number in range(5):
        jobs.note.put(str(notes), str(number))
    with working(app):
        until(lambda: lines(notes))
        until(lambda: client.queues["default"].counts.waiting == 5)
        with working(app):
            until(lambda: len(lines(notes)) == 6)
        client.jobs.revoke(slow.jid)


def test_dependents_wait_and_children_are_waited_for(app: App, client: Client) -> None:
    first = jobs.add.put(1, 2)
    second = jobs.add.options(depends=first).put(3, 4)
    with working(app, concurrency=2):
        assert (first.wait(timeout=PATIENCE), second.wait(timeout=PATIENCE)) == (3, 7)


def test_a_result_that_is_too_long_fails_its_job_and_no_other(app: App, runner: str) -> None:
    with working(app, runner=runner):
        with pytest.raises(JobFailed, match="result"):
            jobs.huge.put().wait(timeout=PATIENCE)
        assert jobs.add.put(1).wait(timeout=PATIENCE) == 1


def test_a_job_of_several_queues_is_found_whatever_the_order(app: App) -> None:
    for order in ("ordered", "round-robin", "weighted"):
        with working(app, queues=("a", "b", "c"), order=order):
            for name in "cab":
                assert jobs.add.options(queue=name).put(1).wait(timeout=PATIENCE) == 1


def test_a_delayed_job_begins_by_itself(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmodel.worker.next_job.LONGEST_SLEEP", 1000.0)  # so that it never looks by itself
    with working(app):
        assert jobs.add.options(delay=0.5).put(1).wait(timeout=PATIENCE) == 1


def test_what_recurs_and_what_is_throttled_needs_no_other_process(
    url: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qmodel.worker.next_job.LONGEST_SLEEP", 1000.0)  # so that it never looks by itself
    app = App(url)
    runs: list[str] = []

    @app.job(every=0.2)
    def often() -> None:
        runs.append("often")

    @app.job(cron="* * * * * *")
    def each_second() -> None:
        runs.append("each second")

    @app.job(throttles="slow")
    def slow() -> None:
        runs.append("slow")

    client.throttles["slow"].set(rate=1, per=0.3)
    slow.put_many([()] * 4)
    with working(app, concurrency=2):
        until(lambda: runs.count("often") > 2 and runs.count("slow") == 4 and runs.count("each second") > 1)


def test_a_worker_that_stops_leaves_the_list_and_no_thread(app: App, client: Client, runner: str) -> None:
    before = set(threading.enumerate())
    with working(app, runner=runner, concurrency=4, name="me"):
        assert jobs.add.put(1).wait(timeout=PATIENCE) == 1
        assert [one.name for one in client.workers.counts()] == ["me"]
    assert client.workers.counts() == []
    until(lambda: not {one for one in set(threading.enumerate()) - before if one.name.startswith("qmodel-")})


def test_a_worker_that_gives_up_leaves_no_job_running(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the simulator: its lease ends, and another worker performs it too."""
    app, begun, go, ended, asked = (
        App(url),
        threading.Barrier(3),
        threading.Event(),
        threading.Event(),
        threading.Event(),
    )

    @app.job
    def short() -> None:
        begun.wait(PATIENCE)
        go.wait(PATIENCE)

    @app.job
    def endless() -> None:
        try:
            begun.wait(PATIENCE)
            while True:
                time.sleep(0.001)
        except BaseException as error:
            if type(error).__name__ == "Cancelled":
                ended.set()
            raise

    def unreachable(operations: object) -> None:
        asked.set()
        assert worker.connection.giving_up.wait(PATIENCE)
        raise GivenUp

    endless.put()
    short.put()
    with working(app, concurrency=2) as worker:
        begun.wait(PATIENCE)
        monkeypatch.setattr(worker.connection, "execute_many", unreachable)
        go.set()
        assert asked.wait(PATIENCE)
        worker.stop(now=True)
        assert ended.wait(PATIENCE) and worker.abandoned


def before_a_late_reply(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen to the worker while its first pop that gives jobs is not answered."""
    execute = Connection.execute_many

    def late(connection: Connection, operations: Sequence[Operation]) -> list[Any]:
        found = execute(connection, operations)
        if isinstance(operations[-1], Pop) and found[-1]:
            monkeypatch.setattr(Connection, "execute_many", execute)
            happens()
            connection.while_away()
        return found

    monkeypatch.setattr(Connection, "execute_many", late)


def test_a_job_that_comes_with_a_late_reply_to_a_quiet_worker_is_given_back(
    url: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, performed = App(url), threading.Event()
    app.job(name="note")(performed.set)
    before_a_late_reply(monkeypatch, lambda: worker.quiet(True))
    with working(app) as worker:
        job = client.queues["default"].put("note")
        until(lambda: "released" in [stage.what for stage in job.refresh().history])
        assert (job.state, job.remaining, performed.is_set()) == ("waiting", job.retries, False)
        worker.quiet(False)
        assert performed.wait(PATIENCE)


@pytest.mark.parametrize("now", [False, True])
def test_a_job_that_comes_with_a_late_reply_after_a_stop_is_given_back(
    now: bool, url: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, performed = App(url), threading.Event()
    app.job(name="note")(performed.set)
    before_a_late_reply(monkeypatch, lambda: worker.stop(now))
    job = client.queues["default"].put("note")
    worker = Worker(app)
    worker.run()
    job.refresh()
    assert (job.state, job.remaining, performed.is_set()) == ("waiting", job.retries, False)
    assert not worker.abandoned


def test_a_hook_that_raises_changes_nothing(url: str) -> None:
    app = App(url)

    @app.on("worker_start")
    def _(worker: Worker) -> None:
        raise RuntimeError

    @app.job
    def one() -> int:
        return 1

    with working(app):
        assert one.put().wait(timeout=PATIENCE) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"queues": ()}, "at least one queue"),
        ({"queues": ["\n"]}, "Not a valid queue name"),
        ({"name": "x" * 129}, "cannot have the name 'xxx.*It must be 1 to 128 bytes"),
        ({"name": "x" * 127, "processes": 2}, "cannot have the name 'xxx"),
        ({"order": "random"}, "order must be one of"),
        ({"order": "weighted", "weights": {"x": 1}}, "x, which is not one of"),
        ({"weights": {"default": 1}}, "need order='weighted'"),
        ({"concurrency": 0}, "concurrency must be from 1"),
        ({"runner": "greenlet"}, "runner must be one of"),
        ({"processes": 0}, "processes must be from 1"),
        ({"prefetch": -1}, "prefetch must be from 0"),
        ({"grace": -1}, "at least 0"),
        ({"health": ("127.0.0.1", 65535), "processes": 2}, "health ports"),
        ({"memory": 1 << 30}, "needs runner='fork'"),
        ({"memory": 1, "runner": "fork"}, "memory must be at least 16 MB, such as 512M, not 1 bytes"),
        ({"runner": "fork"}, "memory:// works in one process only"),
        ({"processes": 2}, "memory:// works in one process only"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Worker(App("memory://"), **options)


def test_a_job_whose_data_are_no_text_fails_alone(app: App, url: str, client: Client) -> None:
    """Another program has put it, with bytes that are not UTF-8."""
    client.config["journal"] = 1
    prefix = client.backend.options.prefix  # type: ignore[attr-defined]
    with redis.Redis.from_url(url.partition("?")[0]) as raw:
        raw.execute_command(
            "FCALL", "qmodel_v1_put", 1, prefix, "", "r", "default", "bad", "add", b"\xff", "retries", 0
        )
    with working(app):
        assert jobs.add.put(1).wait(timeout=PATIENCE) == 1
        with pytest.raises(JobFailed) as failed:
            client.jobs["bad"].wait(timeout=PATIENCE)
    assert failed.value.group == "BadArguments"
    assert client.jobs["bad"].text == "\udcff"
    assert any('"data":"\udcff"' in entry.call for entry in client.journal())


def test_a_second_termination_gives_jobs_no_more_time() -> None:
    app = App("memory://")
    begun = threading.Event()

    @app.job
    def rest() -> None:
        begun.set()
        time.sleep(0.01)
        while not current().cancelled:
            time.sleep(0.01)

    job = rest.put()
    with working(app) as worker:
        assert begun.wait(PATIENCE)
        worker.stop(within=0.2)
        worker.stop(within=PATIENCE)
        until(lambda: job.refresh().state == "waiting")
        assert worker._deadline < time.monotonic() + PATIENCE / 2


def test_a_worker_of_a_server_is_told_by_its_name(server: Server) -> None:
    worker = Worker(App(server.url), name="me")
    assert (worker.name, worker.connection.shown_url.partition("?")[0]) == ("me", server.url)

"""`qmodel top`, its keys pressed, on the model and on a real server."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

import qmodel
from qmodel.client.aio import AsyncClient
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.top.app import Top
from tests.cli.conftest import Run, run
from tests.processes import started
from tests.servers import ROOT, Server, chosen_servers, running

__all__ = ["run"]

NAMES = iter(range(10**6))


@pytest.fixture(params=["memory", "server"])
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[Client]:
    """A client of an empty namespace, in memory and on a server."""
    if request.param == "memory":
        url = f"memory://top-{next(NAMES)}"
    else:
        url = server.url
        with server.client() as connection:
            connection.flushall()
    with qmodel.connect(url) as client:
        client.url = url  # type: ignore[attr-defined]
        yield client


@pytest.fixture
def memory() -> Iterator[Client]:
    """A client of an empty namespace in memory, for what is the same everywhere."""
    url = f"memory://top-{next(NAMES)}"
    with qmodel.connect(url) as client:
        client.url = url  # type: ignore[attr-defined]
        yield client


class Screen:
    """The application as somebody sits before it."""

    def __init__(self, app: Top, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys, and wait until all is drawn anew."""
        for key in keys:
            await self._pilot.press(key)
            await self._pilot.pause()
        await self.drawn()

    async def drawn(self) -> None:
        """Wait for two more rounds: one may have begun before."""
        for _ in range(2):
            drawn = self.app.drawn
            self.app._at_once.set()
            await self.until(lambda drawn=drawn: self.app.drawn > drawn)  # type: ignore[misc]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.005)
        await self._pilot.pause()

    @property
    def rows(self) -> list[list[str]]:
        table = self.app.table
        return [[cell.plain for cell in table.get_row_at(number)] for number in range(table.row_count)]

    def text(self, name: str) -> str:
        return str(self.app.screen_stack[0].query_one(f"#{name}", Static).render())

    @property
    def asks(self) -> str:
        return str(self.app.screen.query_one("#question", Static).render())


@asynccontextmanager
async def top(client: Client, **options: object) -> AsyncIterator[Screen]:
    url: str = client.url  # type: ignore[attr-defined]
    app = Top(AsyncClient(url), url, interval=3600, **options)  # type: ignore[arg-type]
    async with app.run_test(size=(140, 40)) as pilot:
        screen = Screen(app, pilot)
        await screen.drawn()
        yield screen


def fail(client: Client, jid: str, group: str, message: str = "m") -> None:
    client.queues["mail"].put("Send", {"n": 1}, jid=jid, throttles=["smtp"], lifo=True)
    job = client.queues["mail"].pop(worker="w1")
    assert job is not None and job.jid == jid
    job.fail(group, message)


async def test_queues_are_shown_with_what_is_in_them(client: Client) -> None:
    client.queues["mail"].put("Send")
    client.queues["mail"].put("Send", delay=600)
    client.queues["slow"].put("Scan")
    client.queues["slow"].pause("deploy")
    async with top(client) as screen:
        mail, slow = screen.rows
        assert (mail[0], mail[1], mail[8]) == ("mail", "1", "1")
        assert (slow[0], slow[1]) == ("slow  paused: deploy", "1")
        client.queues["mail"].put("Send")
        await screen.drawn()
        assert screen.rows[0][1] == "2"


async def test_p_pauses_a_queue_and_lets_it_go_on(client: Client) -> None:
    client.queues["mail"].put("Send")
    async with top(client) as screen:
        await screen.press("p")
        await screen.until(lambda: client.queues["mail"].counts.paused)
        await screen.press("p")
        await screen.until(lambda: not client.queues["mail"].counts.paused)


async def test_a_pause_that_somebody_else_made_is_ended_only_after_a_yes(memory: Client) -> None:
    memory.queues["mail"].pause("deploy")
    memory.queues["mail"].put("Send")
    async with top(memory) as screen:
        await screen.press("p")
        assert "paused for another reason (deploy)" in screen.asks
        await screen.press("n")
        assert memory.queues["mail"].counts.paused
        await screen.press("p", "y")
        await screen.until(lambda: not memory.queues["mail"].counts.paused)


async def test_a_worker_is_told_to_be_quiet_to_go_on_and_to_stop(client: Client) -> None:
    client.queues["mail"].put("Send")
    client.queues["mail"].pop(worker="host-1")

    def told() -> str:
        return client.workers.signals()["host-1"].signal if client.workers.signals() else ""

    async with top(client) as screen:
        await screen.press("4", "p")
        await screen.until(lambda: told() == "quiet")
        await screen.drawn()
        assert screen.rows[0][4] == "told: quiet"
        await screen.press("p")
        await screen.until(lambda: told() == "resume")
        await screen.press("c", "y")
        await screen.until(lambda: told() == "stop")


async def test_from_failures_into_a_group_and_a_job_and_back(client: Client) -> None:
    fail(client, "a", "ValueError", "Traceback (most recent call last):\n  File\nValueError: no such address")
    fail(client, "b", "TypeError")
    async with top(client) as screen:
        await screen.press("3")
        assert [(row[0], row[1], row[5]) for row in screen.rows] == [
            ("1", "TypeError", "m"),
            ("1", "ValueError", "ValueError: no such address"),
        ]
        await screen.press("down", "enter")
        assert [(row[0], row[5]) for row in screen.rows] == [("a", '{"n":1}')]
        await screen.press("enter")
        assert "Traceback" in screen.text("lines") and "Timeline" in screen.text("lines")
        await screen.press("escape", "escape")
        assert len(screen.rows) == 2
        assert screen.app.table.cursor_row == 1


async def test_r_retries_a_job_as_it_was_put(client: Client) -> None:
    fail(client, "a", "E")
    fail(client, "b", "E")
    async with top(client) as screen:
        await screen.press("3", "enter", "down", "r")
        await screen.until(lambda: client.jobs["a"].state == "waiting")
    job = client.jobs["a"]
    assert (job.throttles, job.lifo, job.tags, job.remaining) == (("smtp",), True, (), 5)
    assert client.jobs["b"].state == "failed"


async def test_a_group_is_retried_or_deleted_only_after_a_yes(client: Client) -> None:
    for jid in "abc":
        fail(client, jid, "E")
    async with top(client) as screen:
        await screen.press("3", "r")
        assert screen.asks == "Retry 3 failed jobs of group E? Each begins anew in its own queue, with all its retries."
        await screen.press("enter")
        assert client.failed.groups() == {"E": 3}
        await screen.press("r", "y")
        await screen.until(lambda: client.queues["mail"].counts.waiting == 3)

    fail(client, "d", "F")
    async with top(client) as screen:
        await screen.press("3", "c", "y")
        await screen.until(lambda: not client.failed.groups())
    assert client.jobs.get("d") is None


async def test_jobs_are_deleted_called_off_and_taken_only_after_a_yes(client: Client) -> None:
    client.queues["mail"].put_many([client.queues["mail"].new("Send", jid=jid) for jid in "abc"])
    jobs = client.queues["mail"].pop(2, worker="w1")
    async with top(client) as screen:
        await screen.press("2")
        assert [row[0] for row in screen.rows] == ["a", "b"]
        await screen.press("x", "n")
        assert not client.jobs["a"].revoked
        await screen.press("x", "y")
        await screen.until(lambda: client.jobs["a"].revoked)
        await screen.press("down", "t", "y")
        await screen.until(lambda: client.jobs["b"].state == "stalled")
        assert [row[0] for row in screen.rows] == ["a"]
        await screen.press("c", "y")
        await screen.until(lambda: client.jobs.get("a") is None)
        await screen.press("1", "c", "y")
        await screen.until(lambda: client.jobs.get("c") is None)
    assert len(jobs) == 2


async def test_a_refusal_is_shown_and_the_view_goes_on(memory: Client) -> None:
    first = memory.queues["mail"].put("Send", jid="a")
    memory.queues["mail"].put("Send", jid="b", depends=[first])
    async with top(memory) as screen:
        await screen.press("enter", "c", "y")
        await screen.until(lambda: any("depend" in str(one.message) for one in screen.app._notifications))
        await screen.drawn()
    assert memory.jobs.get("a") is not None


async def test_a_queue_shows_one_state_after_the_other(memory: Client) -> None:
    memory.queues["mail"].put("Send", jid="later", delay=600)
    async with top(memory) as screen:
        await screen.press("enter")
        assert (screen.rows[0][0], screen.rows[0][2]) == ("later", "scheduled")
        assert "mail: scheduled   1 to 1 of 1   (scheduled 1)" in screen.text("where")
        await screen.press("s")
        assert "mail: throttled   nothing" in screen.text("where")


async def test_workers_are_shown_and_what_they_hold(memory: Client) -> None:
    memory.queues["mail"].put("Send", jid="a")
    job = memory.queues["mail"].pop(worker="w1")
    assert job is not None
    job.progress("half")
    async with top(memory) as screen:
        await screen.press("4")
        assert [(row[0], row[2]) for row in screen.rows] == [("w1", "1")]
        await screen.press("enter")
        assert (screen.rows[0][0], screen.rows[0][-1]) == ("a", "half")


async def test_a_job_is_found_by_its_id_and_one_that_is_gone_is_said(memory: Client) -> None:
    memory.queues["mail"].put("Send", {"to": "ada"}, jid="a")
    async with top(memory) as screen:
        await screen.press("slash", "a", "enter")
        assert '"ada"' in screen.text("lines")
        await screen.press("escape", "slash", "z", "enter")
        await screen.until(lambda: any("z is gone" in str(one.message) for one in screen.app._notifications))
        assert screen.app.table.display


@pytest.mark.parametrize("typed", [("a", "space", "b"), ("t", "a", "g", "colon")])
async def test_what_names_nothing_is_said_and_the_view_goes_on(memory: Client, typed: tuple[str, ...]) -> None:
    memory.queues["mail"].put("Send")
    async with top(memory) as screen:
        await screen.press("slash", *typed, "enter")
        await screen.until(lambda: any("must be" in str(one.message) for one in screen.app._notifications))
        await screen.drawn()
        assert screen.rows[0][0] == "mail"


async def test_jobs_are_found_by_a_tag(memory: Client) -> None:
    memory.queues["mail"].put("Send", jid="a", tags=["welcome"])
    memory.queues["slow"].put("Scan", jid="b", tags=["welcome"])
    async with top(memory) as screen:
        await screen.press("slash", *"tag", "colon", *"welcome", "enter")
        assert [row[0] for row in screen.rows] == ["a", "b"]
        assert "Tag welcome   1 to 2 of 2" in screen.text("where")
        await screen.press("escape")
        assert screen.rows[0][0] == "mail"


async def test_the_keys_are_told(memory: Client) -> None:
    async with top(memory) as screen:
        await screen.press("question_mark")
        told = str(screen.app.screen.query_one("#box Static", Static).render())
        assert "pause a queue" in told and "find a job" in told
        await screen.press("escape")
        assert len(screen.app.screen_stack) == 1


async def test_who_only_looks_changes_nothing(memory: Client) -> None:
    fail(memory, "a", "E")
    async with top(memory, read_only=True) as screen:
        await screen.press("p", "c", "3", "r", "c", "enter", "r", "x", "c")
        assert "read only" in screen.text("head")
    assert memory.jobs["a"].state == "failed"
    assert not memory.queues["mail"].counts.paused


async def test_what_others_wrote_is_shown_and_not_obeyed(memory: Client) -> None:
    memory.queues["[red]mail"].put("[b]Send", text="\x1b[2J[/red]")
    async with top(memory) as screen:
        assert screen.rows[0][0] == "[red]mail"
        await screen.press("enter")
        assert (screen.rows[0][1], screen.rows[0][-1]) == ("[b]Send", "�[2J[/red]")
        await screen.press("enter")
        assert "�[2J[/red]" in screen.text("lines") and "\x1b" not in screen.text("lines")


async def test_names_are_shown_and_not_obeyed(memory: Client) -> None:
    odd = "\x9b31m" + "odd"  # a name may have control characters of eight bits
    for jid in ("a", "b", "c"):
        memory.queues[odd].put(odd, jid=jid)
    memory.queues[odd].pop(worker=odd)
    job = memory.queues[odd].pop(worker=odd)
    assert job is not None
    job.fail(odd, "m")
    async with top(memory) as screen:
        for keys in (["1"], ["enter"], ["2"], ["3"], ["enter"], ["4"], ["enter"]):
            await screen.press(*keys)
            shown = [cell for row in screen.rows for cell in row]
            assert any("\ufffd31modd" in cell for cell in shown), keys
            assert not any("\x9b" in cell for cell in shown), keys


async def test_long_lists_are_turned_page_by_page(memory: Client) -> None:
    memory.put_many(memory.queues[f"q{number:03}"].new("K") for number in range(25))
    async with top(memory, page=10) as screen:
        assert [row[0] for row in screen.rows] == [f"q{number:03}" for number in range(10)]
        await screen.press("b", "n")
        assert screen.rows[0][0] == "q010"
        await screen.press("n")
        assert [row[0] for row in screen.rows] == [f"q{number:03}" for number in range(20, 25)]
        await screen.press("n", "b")
        assert screen.rows[0][0] == "q010"


async def test_a_round_costs_what_is_shown_and_not_what_there_is() -> None:
    name = f"memory://top-{next(NAMES)}"
    with qmodel.connect(name) as client:
        for _ in range(3):
            client.put_many(client.queues[f"q{number % 30}"].new("K") for number in range(1000))
        failed = [client.queues[f"q{number}"].pop(50) for number in range(30)]
        for number, jobs in enumerate(failed):
            for job in jobs:
                job.fail(f"group-{number}")
        sent = [await _sent(name, keys, 10) for keys in ((), ("2",), ("3",), ("3", "enter"), ("enter",))]
    assert max(sent) <= 3 + 2 * 10


async def _sent(url: str, keys: tuple[str, ...], page: int) -> int:
    """How many operations a view sends in one round."""
    client = AsyncClient(url)
    sent: list[ops.Operation] = []
    one, many = client.backend.execute, client.backend.execute_many

    async def execute(op: ops.Operation, now: int | None = None) -> object:
        sent.append(op)
        return await one(op, now)

    async def execute_many(operations: list[ops.Operation], now: int | None = None) -> list[object]:
        sent.extend(operations)
        return await many(operations, now)

    client.backend.execute, client.backend.execute_many = execute, execute_many  # type: ignore[method-assign, assignment]
    app = Top(client, url, interval=3600, page=page)
    async with app.run_test(size=(140, 40)) as pilot:
        screen = Screen(app, pilot)
        await screen.until(lambda: app.drawn >= 1)
        for key in keys:
            drawn = app.drawn
            await pilot.press(key)
            await screen.until(lambda drawn=drawn: app.drawn > drawn)  # type: ignore[misc]
        sent.clear()
        app._at_once.set()
        drawn = app.drawn
        await screen.until(lambda: app.drawn > drawn)
    return len(sent)


async def test_while_the_server_is_away_the_last_page_stays_under_a_line_that_says_so() -> None:
    candidates = [one for one in chosen_servers() if not one.url]
    if not candidates:
        pytest.skip("needs a server that may be stopped")
    with running(candidates[0]) as server:
        url = f"{server.url}?deadline=0.2"
        client = qmodel.connect(url)
        client.queues["mail"].put("Send")
        client.close()
        app = Top(AsyncClient(url), "here", interval=0.01)
        async with app.run_test(size=(140, 40)) as pilot:
            screen = Screen(app, pilot)
            await screen.drawn()
            with server.client() as connection:
                connection.shutdown(nosave=True)
            await screen.until(lambda: "retrying" in screen.text("trouble"))
            assert screen.rows[0][0] == "mail"


# ---- the command


def test_it_is_refused_where_there_would_be_nothing_to_see(run: Run) -> None:
    done = run("top", "--url", "memory://")
    assert (done.code, "it would stay empty" in done.err) == (2, True)


def test_it_is_refused_where_nobody_sees_it(run: Run, server: Server) -> None:
    done = run("top", "--url", server.url)
    assert (done.code, "It needs a terminal" in done.err) == (2, True)


async def test_where_more_is_held_than_shown_it_says_so(memory: Client) -> None:
    memory.queues["q"].put_many([("K", number) for number in range(12)])
    memory.queues["q"].pop(12, worker="w")
    async with top(memory, page=5) as screen:
        await screen.press("2")
        assert len(screen.rows) == 10
        assert "12 are leased" in screen.text("where")


def test_without_the_extra_it_says_what_to_install(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmodel.cli.live.find_spec", lambda name: None)
    done = run("top", "--url", server.url)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "needs the package textual" in done.err and "pip install '.[top]'" in done.err


def test_it_runs_in_a_terminal_and_leaves_it_at_q(server: Server) -> None:
    with server.client() as connection, qmodel.connect(server.url) as client:
        connection.flushall()
        client.queues["by-terminal"].put("Send")
    here, there = pty.openpty()
    command = [sys.executable, "-m", "qmodel", "top", "--url", server.url]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "30"}
    with started(command, cwd=ROOT, stdin=there, stdout=there, stderr=there, env=environment) as process:
        os.close(there)
        seen, until = b"", time.monotonic() + 60
        while b"by-terminal" not in seen and time.monotonic() < until:
            seen += _read(here)
        os.write(here, b"q")
        while process.poll() is None and time.monotonic() < until:
            _read(here)
        assert process.poll() == 0
    os.close(here)
    assert b"by-terminal" in seen


def _read(terminal: int) -> bytes:
    """What is written to a terminal within a moment; nothing once the other side is closed."""
    try:
        return os.read(terminal, 65536) if select.select([terminal], [], [], 0.1)[0] else b""
    except OSError:
        return b""

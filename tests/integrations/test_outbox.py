"""The outbox: a job is put once its transaction has committed, and only then; on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from qmodel import App, Client, connect
from qmodel.contract import operations as ops
from qmodel.errors import BadArgument, ConnectError
from qmodel.integrations.outbox import Moved, Relay
from qmodel.integrations.sqlalchemy import Outbox
from qmodel.worker import Worker
from tests.processes import started
from tests.servers import ROOT, Server


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server of our own; as root it has another user, who cannot read pytest's folders."""
    pgserver = pytest.importorskip("pgserver")
    server = pgserver.get_server(tempfile.mkdtemp(prefix="qmodel-postgres-"), cleanup_mode="delete")
    yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shop.db"
    url = str(request.getfixturevalue("postgres"))
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("drop table if exists qmodel_outbox, orders"))
    engine.dispose()
    return url


@pytest.fixture
def engine(database: str) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(database)
    metadata.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def client() -> Iterator[Client]:
    with connect("memory://") as client:
        yield client


@pytest.fixture
def address(server: Server) -> str:
    """The URL of a namespace that other processes reach."""
    return f"{server.url}?prefix={uuid.uuid4().hex}:"


@pytest.fixture
def shared(address: str) -> Iterator[Client]:
    with connect(address) as client:
        yield client


metadata = sqlalchemy.MetaData()
outbox = Outbox(metadata)
orders = sqlalchemy.Table("orders", metadata, sqlalchemy.Column("number", sqlalchemy.Integer, primary_key=True))


def order(session: Any, client: Client, number: int, **options: Any) -> str:
    """Write an order and its job."""
    session.execute(sqlalchemy.insert(orders), [{"number": number}])
    (jid,) = outbox.put(session, client.queues["q"].new("Receipt", number, **options))
    return jid


def rows(engine: sqlalchemy.Engine) -> list[tuple[str, str | None]]:
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.select(outbox.table.c.jid, outbox.table.c.refused)).all()
    return [(jid, refused) for jid, refused in found]


def test_a_job_is_put_with_its_options_when_its_transaction_has_committed(
    engine: sqlalchemy.Engine, client: Client
) -> None:
    relay = outbox.relay(engine, client)
    with Session(engine) as session, session.begin():
        jid = order(session, client, 7, tags=["eu"], delay=3600)
        if engine.name == "postgresql":  # SQLite has one writer
            assert relay.once() == Moved(0, 0)
    assert relay.once() == Moved(1, 0)
    job = client.jobs[jid]
    assert (job.klass, job.data, job.tags, job.state) == ("Receipt", 7, ("eu",), "scheduled")
    assert rows(engine) == [] and relay.once() == Moved(0, 0)


def test_a_rollback_leaves_no_job(engine: sqlalchemy.Engine, client: Client) -> None:
    with pytest.raises(ZeroDivisionError), Session(engine) as session, session.begin():
        order(session, client, 7)
        raise ZeroDivisionError
    assert outbox.relay(engine, client).once() == Moved(0, 0)
    assert client.queues["q"].length() == 0


def test_jobs_are_put_in_the_order_of_their_rows(engine: sqlalchemy.Engine, client: Client) -> None:
    with engine.begin() as connection:
        written = [order(connection, client, number) for number in range(250)]
    assert outbox.relay(engine, client).once() == Moved(250, 0)
    assert [job.jid for job in client.execute(ops.Pop("q", "w", 250))] == written


def test_a_relay_that_dies_before_its_commit_puts_no_job_twice(engine: sqlalchemy.Engine, client: Client) -> None:
    with engine.begin() as connection:
        written = [order(connection, client, number) for number in range(3)]

    class Died(Exception):
        pass

    def die(*_: Any) -> None:
        raise Died

    sqlalchemy.event.listen(engine, "commit", die)
    with pytest.raises(Died):
        outbox.relay(engine, client).once()
    sqlalchemy.event.remove(engine, "commit", die)
    for job in client.execute(ops.Pop("q", "w", 3)):
        client.execute(ops.Complete(job.jid, job.token))
    assert [jid for jid, _ in rows(engine)] == written
    assert outbox.relay(engine, client).once() == Moved(3, 0)
    assert {client.jobs[jid].state for jid in written} == {"complete"} and client.queues["q"].length() == 0


def test_a_row_that_is_refused_stays_and_holds_up_no_other(engine: sqlalchemy.Engine, client: Client) -> None:
    client.queues["q"].put("Other", jid="taken")
    with engine.begin() as connection:
        waits = order(connection, client, 1, depends=["missing"])
        taken = order(connection, client, 2, jid="taken")
        fine = order(connection, client, 3)
    with engine.begin() as connection:
        connection.execute(
            sqlalchemy.insert(outbox.table), [{"jid": "x", "put": '{"op": "get", "jid": "x", "now": 0}'}]
        )
    relay = outbox.relay(engine, client)
    assert relay.once() == Moved(1, 3)
    assert client.jobs[fine].state == "waiting"
    reasons = dict(rows(engine))
    assert "missing" in str(reasons[waits]) and "another type, Other" in str(reasons[taken])
    assert str(reasons["x"]).startswith("not a put")
    client.queues["q"].put("Before", jid="missing")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.update(outbox.table).where(outbox.table.c.jid == waits).values(refused=None))
    assert relay.once() == Moved(1, 0) and client.jobs[waits].state == "depends"


def test_an_argument_that_no_put_may_have_is_refused_at_once(engine: sqlalchemy.Engine) -> None:
    with engine.begin() as connection, pytest.raises(BadArgument):
        outbox.put(connection, ops.Put("q", "a b", "k", ""))
    assert rows(engine) == []


@pytest.mark.parametrize("job", ["a", ops.Pop("q", "w"), None])
def test_what_is_no_job_to_be_put_is_refused_at_once(engine: sqlalchemy.Engine, job: Any) -> None:
    with engine.begin() as connection, pytest.raises(TypeError, match=r"still to be put, not .*send\.make"):
        outbox.put(connection, ops.Put("q", "a", "k", ""), job)
    assert rows(engine) == []


def test_sessions_of_an_event_loop_write_too(tmp_path: Path, client: Client) -> None:
    pytest.importorskip("aiosqlite")
    path = f"{tmp_path}/shop.db"

    async def write() -> list[str]:
        engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
        async with engine.begin() as connection:
            await connection.run_sync(metadata.create_all)
            jids = await outbox.aput(connection, client.queues["q"].new("K"), client.queues["q"].new("K"))
        await engine.dispose()
        return jids

    jids = asyncio.run(write())
    assert outbox.relay(sqlalchemy.create_engine(f"sqlite:///{path}"), client).once() == Moved(2, 0)
    assert {client.jobs[jid].state for jid in jids} == {"waiting"}


def test_relays_beside_each_other_put_each_job_once(postgres: str, client: Client) -> None:
    engine = sqlalchemy.create_engine(postgres, pool_size=10)
    metadata.drop_all(engine)
    metadata.create_all(engine)
    with engine.begin() as connection:
        for number in range(1000):
            order(connection, client, number)
    moved: list[Moved] = []

    def relay() -> None:
        moved.append(outbox.relay(engine, client).once())

    threads = [threading.Thread(target=relay) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    engine.dispose()
    assert sum(one.done for one in moved) == 1000 and client.queues["q"].length() == 1000


def test_a_relay_waits_for_a_server_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    looked = threading.Event()
    replies = iter([ConnectError("away", "")])

    def move() -> Moved:
        for error in replies:
            raise error
        looked.set()
        return Moved(0, 0)

    relay = Relay(move, every=0.001)
    relay.start()
    assert looked.wait(60)
    relay.stop()
    assert "tries again" in caplog.text


def test_a_relay_waits_for_a_connection_of_the_pool(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its worker's jobs use the same pool."""
    engine = sqlalchemy.create_engine(
        f"sqlite:///{tmp_path}/shop.db", poolclass=sqlalchemy.QueuePool, pool_size=1, max_overflow=0, pool_timeout=0.01
    )
    metadata.create_all(engine)
    with connect("memory://") as client:
        with engine.begin() as connection:
            order(connection, client, 1)
        relay = outbox.relay(engine, client, every=0.01)
        with engine.connect():
            relay.start()
            until = time.monotonic() + 60
            while "tries again" not in caplog.text and time.monotonic() < until:
                time.sleep(0.01)
        while client.queues["q"].length() == 0 and time.monotonic() < until:
            time.sleep(0.01)
        assert client.queues["q"].length() == 1
        relay.stop()
    engine.dispose()


def test_a_row_that_is_nested_too_deeply_holds_up_no_other(engine: sqlalchemy.Engine, client: Client) -> None:
    with engine.begin() as connection:
        connection.execute(sqlalchemy.insert(outbox.table), [{"jid": "deep", "put": "[" * 100_000}])
        order(connection, client, 1)
    assert outbox.relay(engine, client).once() == Moved(1, 1)


def test_a_signal_ends_a_relay_that_holds_the_lock_of_its_event() -> None:
    code = """
import os, signal
from qmodel.integrations.outbox import Moved, Relay
relay = Relay(lambda: Moved(0, 0), every=0.01)
wait = relay._stopped.wait
def hit(seconds):
    with relay._stopped._cond:
        os.kill(os.getpid(), signal.SIGTERM)
    return wait(seconds)
relay._stopped.wait = hit
relay.run_until_signal()
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False).returncode == 0


def test_workers_relay(engine: sqlalchemy.Engine) -> None:
    app = App("memory://")
    performed = threading.Event()

    @app.job(name="receipt")
    def receipt(number: int) -> None:
        performed.set()

    outbox.attach(app, engine, every=0.01)
    worker = Worker(app, ["default"])
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        with engine.begin() as connection:
            outbox.put(connection, receipt.make(7))
        assert performed.wait(60)
    finally:
        worker.stop()
        thread.join(60)
        app.close()


def command(address: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "qmodel", "--url", address, "outbox", *arguments]


def run(address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(address, *arguments), cwd=ROOT, text=True, capture_output=True, check=False, timeout=100
    )


def test_the_command_relays(database: str, engine: sqlalchemy.Engine, address: str, shared: Client) -> None:
    with engine.begin() as connection:
        order(connection, shared, 1)
        order(connection, shared, 2, depends=["missing"])
    ran = run(address, "--database", database, "--once")
    assert (ran.returncode, ran.stdout) == (1, "1 row became jobs, 1 were refused.\n")
    assert shared.queues["q"].length() == 1
    ran = run(address, "--database", "nonsense", "--once")
    assert ran.returncode != 0 and "Give a URL of SQLAlchemy" in ran.stderr
    ran = run(address, "--database", "nonsense+x://ann:secret@host/shop", "--once")
    assert ran.returncode != 0 and "ann:***@host" in ran.stderr and "secret" not in ran.stderr
    ran = run(address, "--database", database, "--once", "--table", "none")
    assert ran.returncode != 0 and "The database refuses" in ran.stderr and "Traceback" not in ran.stderr


def test_a_command_that_is_killed_puts_no_job_twice(postgres: str, address: str, shared: Client) -> None:
    engine = sqlalchemy.create_engine(postgres)
    metadata.drop_all(engine)
    metadata.create_all(engine)
    with engine.begin() as connection:
        written = [order(connection, shared, number) for number in range(300)]
    seen = 0
    while rows(engine):
        with started(command(address, "--database", postgres), cwd=ROOT) as relay:
            while rows(engine) and shared.queues["q"].length() == seen:
                assert relay.poll() is None
            relay.kill()
        seen = shared.queues["q"].length()
    engine.dispose()
    assert sorted(str(event.facts[0]) for event in shared.events() if event.event == "put") == sorted(written)


def test_a_record_is_a_line_for_qmodel_run(client: Client) -> None:
    from qmodel.integrations.outbox import record

    found = json.loads(record(client.queues["q"].new("K", {"a": 1}, jid="j")).put)
    assert (found["op"], found["jid"], found["data"]) == ("put", "j", '{"a":1}')

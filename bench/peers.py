"""Take jobs through their life with one library: `python -m bench.peers <library> <mode> <url> <jobs>` prints the
seconds.

It runs in a process of its own, in a Python that has the library, and imports nothing else of `bench`. The job only
counts. Its argument is the same for every library: a dictionary of 100 bytes of JSON. The time is from the first put to
the end of the last job, in one process, with each library's own worker, which is configured not to sleep between jobs.
"""

# mypy: disable-error-code="import-not-found, import-untyped, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

DATA = {"to": "somebody@example.com", "subject": "Welcome aboard", "text": "x" * 29}
Mode = Callable[[str, int], float]
MODES: dict[str, dict[str, Mode]] = {}
RAW = "raw connection, one by one"
DISTRIBUTIONS = {"taskiq": "taskiq-redis"}


def mode(library: str, name: str) -> Callable[[Mode], Mode]:
    """Register a mode of a library."""

    def enter(function: Mode) -> Mode:
        MODES.setdefault(library, {})[name] = function
        return function

    return enter


class Done:
    """Counts performed jobs, and records the start of the first and the end of the last one."""

    count = 0
    wanted = 0
    began = ended = 0.0
    event = threading.Event()


def perform(data: dict[str, str]) -> None:
    """Perform the job."""
    if not Done.began:
        Done.began = time.perf_counter()
    Done.count += 1
    if Done.count == Done.wanted:
        Done.ended = time.perf_counter()
        Done.event.set()


# ---- qmodel


def _worked(url: str, jobs: int, put: Callable[[Any, int], None], work: Callable[[Any], None]) -> float:
    from qmodel import Client

    with Client(url) as client:
        queue = client.queues["emails"]
        queue.length()  # connects, and loads the library
        start = time.perf_counter()
        put(queue, jobs)
        work(queue)
        return time.perf_counter() - start


def _put(queue: Any, jobs: int) -> None:
    for _ in range(jobs):
        queue.put("SendEmail", DATA)


def _put_batches(size: int) -> Callable[[Any, int], None]:
    def put(queue: Any, jobs: int) -> None:
        for _ in range(jobs // size):
            queue.put_many([("SendEmail", DATA)] * size)

    return put


def _work(queue: Any) -> None:
    while job := queue.pop():
        perform(job.data)
        job.complete()


def _work_chained(queue: Any) -> None:
    job = queue.pop()
    while job:
        perform(job.data)
        job = job.complete_and_pop()


def _work_batches(size: int) -> Callable[[Any], None]:
    def work(queue: Any) -> None:
        while jobs := queue.pop(size):
            for job in jobs:
                perform(job.data)
            queue.client.complete_many(jobs)

    return work


def _threads(count: int, work: Callable[[Any], None]) -> Callable[[Any], None]:
    def start(queue: Any) -> None:
        threads = [threading.Thread(target=work, args=(queue,)) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return start


@mode("qmodel", "one by one")
def _(url: str, jobs: int) -> float:
    return _worked(url, jobs, _put, _work)


@mode("qmodel", "complete_and_pop")
def _(url: str, jobs: int) -> float:
    return _worked(url, jobs, _put, _work_chained)


@mode("qmodel", "4 threads")
def _(url: str, jobs: int) -> float:
    return _worked(url, jobs, _put, _threads(4, _work))


@mode("qmodel", "put_many of 100, complete_and_pop")
def _(url: str, jobs: int) -> float:
    return _worked(url, jobs, _put_batches(100), _work_chained)


@mode("qmodel", "batches of 100")
def _(url: str, jobs: int) -> float:
    return _worked(url, jobs, _put_batches(100), _work_batches(100))


@mode("qmodel", "batches of 500")
def _(url: str, jobs: int) -> float:
    return _worked(url, jobs, _put_batches(500), _work_batches(500))


@mode("qmodel", RAW)
def _(url: str, jobs: int) -> float:
    """Our functions on a socket, with hiredis; of the replies, only jobs are read."""
    import json
    import socket
    from urllib.parse import urlsplit
    from uuid import uuid4

    import hiredis

    from qmodel import Client
    from qmodel.contract.operations import Pop
    from qmodel.wire import codec

    pop = Pop("emails", "worker")
    with Client(url) as client:
        client.queues["emails"].length()  # connects, and loads the library
    at, reader = urlsplit(url), hiredis.Reader()
    if at.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(at.path)
    else:
        connection = socket.create_connection((at.hostname, at.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(name: str, *words: str) -> Any:
        connection.sendall(hiredis.pack_command(("FCALL", f"qmodel_v1_{name}", "1", "ql:", "", *words)))
        while (reply := reader.gets()) is False:
            reader.feed(connection.recv(65536))
        return reply

    start = time.perf_counter()
    for _ in range(jobs):
        call("put", uuid4().hex[:22], "emails", uuid4().hex, "SendEmail", json.dumps(DATA))
    while found := codec.decode(pop, call("pop", uuid4().hex[:22], "emails", "worker")):
        (job,) = found
        perform(json.loads(job.data))
        call("complete", "", job.jid, str(job.token))
    return time.perf_counter() - start


# ---- RQ


def _rq(url: str, jobs: int, many: bool) -> float:
    import redis
    from rq import Queue, SimpleWorker

    connection = redis.Redis.from_url(url)
    queue = Queue("emails", connection=connection)
    start = time.perf_counter()
    if many:
        queue.enqueue_many([Queue.prepare_data("bench.peers.perform", (DATA,)) for _ in range(jobs)])
    else:
        for _ in range(jobs):
            queue.enqueue("bench.peers.perform", DATA)
    SimpleWorker([queue], connection=connection).work(burst=True, logging_level="ERROR")
    return time.perf_counter() - start


@mode("rq", "SimpleWorker")
def _(url: str, jobs: int) -> float:
    return _rq(url, jobs, many=False)


@mode("rq", "enqueue_many, SimpleWorker")
def _(url: str, jobs: int) -> float:
    return _rq(url, jobs, many=True)


# ---- Dramatiq


def _dramatiq(url: str, jobs: int, threads: int) -> float:
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    broker = RedisBroker(url=url)
    actor = dramatiq.actor(perform, broker=broker, queue_name="emails")
    worker = dramatiq.Worker(broker, worker_threads=threads, worker_timeout=1)
    start = time.perf_counter()
    for _ in range(jobs):
        actor.send(DATA)
    worker.start()
    broker.join("emails")
    worker.join()
    spent = time.perf_counter() - start
    worker.stop()
    return spent


@mode("dramatiq", "1 thread")
def _(url: str, jobs: int) -> float:
    return _dramatiq(url, jobs, 1)


@mode("dramatiq", "8 threads")
def _(url: str, jobs: int) -> float:
    return _dramatiq(url, jobs, 8)


# ---- arq


async def arq_job(_: dict[str, Any], data: dict[str, str]) -> None:
    """The job."""
    perform(data)


def _arq(url: str, jobs: int, most: int) -> float:
    from arq import Worker, create_pool
    from arq.connections import RedisSettings

    async def run() -> float:
        settings = RedisSettings.from_dsn(url)
        pool = await create_pool(settings)
        worker = Worker(
            [arq_job], redis_settings=settings, burst=True, max_jobs=most, poll_delay=0, handle_signals=False
        )
        start = time.perf_counter()
        for _ in range(jobs):
            await pool.enqueue_job("arq_job", DATA)
        await worker.main()
        spent = time.perf_counter() - start
        await worker.close()
        await pool.aclose()
        return spent

    return asyncio.run(run())


@mode("arq", "1 at a time")
def _(url: str, jobs: int) -> float:
    return _arq(url, jobs, 1)


@mode("arq", "50 at a time")
def _(url: str, jobs: int) -> float:
    return _arq(url, jobs, 50)


# ---- huey


@mode("huey", "dequeue and execute in a loop")
def _(url: str, jobs: int) -> float:
    from huey import RedisHuey

    huey = RedisHuey("emails", url=url)
    task = huey.task()(perform)
    start = time.perf_counter()
    for _ in range(jobs):
        task(DATA)
    while Done.count < jobs:
        huey.execute(huey.dequeue())
    return time.perf_counter() - start


@mode("huey", "consumer, 4 threads")
def _(url: str, jobs: int) -> float:
    from huey import RedisHuey

    huey = RedisHuey("emails", url=url)
    task = huey.task()(perform)
    start = time.perf_counter()
    for _ in range(jobs):
        task(DATA)
    consumer = huey.create_consumer(workers=4, periodic=False, initial_delay=0.001, max_delay=0.001)
    consumer.start()
    Done.event.wait()
    spent = time.perf_counter() - start
    consumer.stop(graceful=False)
    return spent


# ---- taskiq


def _taskiq(url: str, jobs: int, most: int) -> float:
    from taskiq.receiver import Receiver
    from taskiq_redis import RedisStreamBroker

    async def run() -> float:
        broker = RedisStreamBroker(url, queue_name="emails")

        async def taskiq_job(data: dict[str, str]) -> None:
            perform(data)
            if Done.count == jobs:
                finished.set()

        task = broker.register_task(taskiq_job, task_name="taskiq_job")
        broker.is_worker_process = True
        await broker.startup()
        finished = asyncio.Event()
        start = time.perf_counter()
        for _ in range(jobs):
            await task.kiq(DATA)
        receiver = Receiver(broker, max_async_tasks=most, run_startup=False)
        listening = asyncio.create_task(receiver.listen(finished))
        await finished.wait()
        spent = time.perf_counter() - start
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await broker.shutdown()
        return spent

    return asyncio.run(run())


@mode("taskiq", "1 at a time")
def _(url: str, jobs: int) -> float:
    return _taskiq(url, jobs, 1)


@mode("taskiq", "50 at a time")
def _(url: str, jobs: int) -> float:
    return _taskiq(url, jobs, 50)


# ---- Celery


def _celery(url: str, jobs: int, **options: Any) -> float:
    from celery import Celery
    from celery.contrib.testing.worker import start_worker

    app = Celery("bench", broker=url.replace("unix://", "redis+socket://"))
    app.conf.update(
        task_ignore_result=True, task_default_queue="emails", worker_prefetch_multiplier=100, task_acks_late=True
    )
    task = app.task(name="perform")(perform)
    start = time.perf_counter()
    for _ in range(jobs):
        task.delay(DATA)
    with start_worker(app, perform_ping_check=False, shutdown_timeout=30, loglevel="ERROR", **options):
        Done.event.wait()
        return time.perf_counter() - start


@mode("celery", "solo")
def _(url: str, jobs: int) -> float:
    return _celery(url, jobs, pool="solo")


@mode("celery", "8 threads")
def _(url: str, jobs: int) -> float:
    return _celery(url, jobs, pool="threads", concurrency=8)


def main() -> None:
    """Run one mode, or print a library's version."""
    library, name, *rest = sys.argv[1:]
    if name == "version":
        print("here" if library == "qmodel" else importlib.metadata.version(DISTRIBUTIONS.get(library, library)))
        return
    logging.disable(logging.ERROR)
    Done.wanted = int(rest[1])
    spent = MODES[library][name](rest[0], Done.wanted)
    assert Done.count == Done.wanted, f"{Done.count} of {Done.wanted} jobs were performed"
    print(f"\n{spent}", flush=True)


if __name__ == "__main__":
    # A worker that imports the job must get this module, with its counter, and not a second copy.
    sys.modules["bench.peers"] = sys.modules["__main__"]
    main()

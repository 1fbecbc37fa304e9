"""Drain a queue with one library's worker: `python -m bench.drain <library> <concurrency> <url> <jobs>` prints the
seconds.

The time is from the start of the first job to the end of the last one. The worker is one process (in RQ's pool: one for
each concurrent job). The time to put the jobs and to start the worker is not included. This program runs in a Python
that has the library.
"""

# mypy: disable-error-code="import-not-found, import-untyped, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

from bench import peers
from bench.peers import DATA, Done, perform


def _qmodel(url: str, jobs: int, concurrency: int, runner: Any) -> None:
    from qmodel import App
    from qmodel.worker import Worker

    app = App(url)

    def send(to: str, subject: str, text: str) -> None:
        perform(DATA)

    async def asend(to: str, subject: str, text: str) -> None:
        perform(DATA)

    kind: Any = app.job(queue="emails")(asend if runner == "async" else send)
    kind.put_many([DATA] * jobs)
    worker = Worker(app, ["emails"], concurrency=concurrency, runner=runner)
    threading.Thread(target=lambda: (Done.event.wait(), worker.stop()), daemon=True).start()
    worker.run()
    with app:
        assert app.client.queues["emails"].length() == 0, "not all was said"


def _huey(url: str, jobs: int, concurrency: int) -> None:
    from huey import RedisHuey

    huey = RedisHuey("emails", url=url)
    task = huey.task()(perform)
    for _ in range(jobs):
        task(DATA)
    consumer = huey.create_consumer(workers=concurrency, periodic=False, initial_delay=0.001, max_delay=0.001)
    consumer.start()
    Done.event.wait()
    consumer.stop(graceful=False)


def _celery(url: str, jobs: int, concurrency: int) -> None:
    pool = {"pool": "solo"} if concurrency == 1 else {"pool": "threads", "concurrency": concurrency}
    peers._celery(url, jobs, **pool)


def _rq(url: str, jobs: int, concurrency: int) -> None:
    """Perform jobs one by one in this process, or with several processes as `rq worker-pool` does; jobs report their
    times.
    """
    if concurrency == 1:
        peers._rq(url, jobs, many=True)
        return
    import redis
    from rq import Queue, SimpleWorker
    from rq.worker_pool import WorkerPool

    connection = redis.Redis.from_url(url)
    queue = Queue("emails", connection=connection)
    queue.enqueue_many([Queue.prepare_data("bench.peers.perform", (DATA,)) for _ in range(jobs)])
    WorkerPool([queue], connection=connection, num_workers=concurrency, worker_class=SimpleWorker).start(
        burst=True, logging_level="ERROR"
    )
    ids = queue.finished_job_registry.get_job_ids(cleanup=False)
    done = [job for job in queue.job_class.fetch_many(ids, connection=connection) if job is not None]
    Done.count = len(done)
    Done.began = min(job.started_at for job in done).timestamp()
    Done.ended = max(job.ended_at for job in done).timestamp()


WORKERS: dict[str, Callable[[str, int, int], Any]] = {
    "qmodel": lambda url, jobs, most: _qmodel(url, jobs, most, "thread"),
    "qmodel, async": lambda url, jobs, most: _qmodel(url, jobs, most, "async"),
    "rq": _rq,
    "dramatiq": peers._dramatiq,
    "arq": peers._arq,
    "huey": _huey,
    "taskiq": peers._taskiq,
    "celery": _celery,
}
"""The function that runs each library's worker; its arguments are the URL, the number of jobs, and the concurrency."""


def main() -> None:
    """Drain one queue."""
    library, concurrency, url, jobs = sys.argv[1:]
    logging.disable(logging.ERROR)
    Done.wanted = int(jobs)
    WORKERS[library](url, Done.wanted, int(concurrency))
    assert Done.count == Done.wanted, f"{Done.count} of {Done.wanted} jobs were performed"
    print(f"\n{Done.ended - Done.began}", flush=True)


if __name__ == "__main__":
    main()

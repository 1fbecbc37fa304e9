"""The clients: producers and consumers on AsyncClient, producers on App, and workers, each a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from qmodel import runtime
from qmodel.app import App, Context, fixed
from qmodel.client.aio import AsyncClient
from qmodel.client.request_ids import with_request
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.errors import ConnectError, LockLost, QmodelError, RefusedError
from qmodel.simulator.baton import Process
from qmodel.simulator.cluster import LAYOUT
from qmodel.simulator.oracles import PATIENCE
from qmodel.simulator.scene import Scene
from qmodel.simulator.server import DEADLINE, Server
from qmodel.simulator.workload import KLASS, QUEUES, Workload
from qmodel.worker.worker import Worker

if TYPE_CHECKING:
    from qmodel.backends import AsyncBackend

LONGEST_PAUSE = 12.0
"""The most seconds between two puts of a producer."""


class Trouble(Exception):
    """A job fails with it."""


class Observed:
    """A backend that shows its calls to the oracles."""

    def __init__(self, scene: Scene, inner: AsyncBackend) -> None:
        self._scene = scene
        self._inner = inner
        self.layout = getattr(inner, "layout", None)

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute an operation."""
        op, called = with_request(op), self._scene.baton.now
        try:
            outcome = await self._inner.execute(op, now)
        except ConnectError as error:
            self._scene.oracles.gave_up(error, called, DEADLINE)
            raise
        if not (self._scene.settings.nodes and op.spec.reads and LAYOUT.route(op) == "merge"):
            self._scene.oracles.told(op, outcome, called)
        return outcome

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations."""
        return [await self.execute(op, now) for op in ops]

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Wait for a wake-up."""
        return await self._inner.wait(queues, timeout)

    async def wait_events(self, after: int, timeout: float) -> bool:
        """Wait for an event."""
        return await self._inner.wait_events(after, timeout)

    async def close(self) -> None:
        """Close the connections."""
        await self._inner.close()


class Clients:
    """Starts clients, and ends them."""

    def __init__(self, scene: Scene, server: Server) -> None:
        self._scene = scene
        self._server = server
        self.workload = Workload(scene.chance, scene.settings)
        self.workers: dict[str, tuple[Worker, Process]] = {}
        self.producing = self.consuming = True
        self.producers: set[str] = set()
        """The names of those that may still put a job."""
        self._number = 0

    def start(self) -> None:
        """Start everybody."""
        settings = self._scene.settings
        for number in range(settings.producers):
            self.producers.add(f"producer-{number}")
            self._process(f"producer-{number}", self._produce if number % 2 else self._produce_async)
        for number in range(settings.consumers):
            self._process(f"consumer-{number}", self._consume)
        for number in range(settings.workers):
            self.start_worker(f"worker-{number}")

    def _process(self, name: str, run: Any) -> Process:
        process = Process(name, self._scene.draw_skew())
        self._scene.names.append(name)
        self._scene.baton.start(name, process, lambda: run(name))
        return process

    # ---- producers

    def _produce_async(self, name: str) -> None:
        self._scene.run_loop(self._produce_with_client(name))

    async def _produce_with_client(self, name: str) -> None:
        from qmodel.backends.redis.connect import connect_async

        scene = self._scene
        client = AsyncClient(Observed(scene, connect_async(self._server.url)))
        number = 0
        while self.producing:
            await asyncio.sleep(self._pause())
            number += 1
            try:
                if await self.workload.group(client, f"{name}-{number}"):
                    continue
                queue, how, options = self.workload.job()
                await client.queues[queue].put(KLASS, {"how": how}, jid=f"{name}-{number}", **options)
            except (ConnectError, RefusedError):
                continue
            if scene.chance.random() < 0.1:
                await self._ask(client, f"{name}-{number}")
        self.producers.remove(name)
        await client.close()

    def _pause(self) -> float:
        """Draw the seconds until the next put: few enough that a producer ends before connections are counted."""
        return min(self._scene.chance.expovariate(self._scene.settings.rate), LONGEST_PAUSE)

    async def _ask(self, client: AsyncClient, jid: str) -> None:
        """Read a queue; or a job, where no server answers for a whole queue."""
        queue = self._scene.chance.choice(QUEUES)
        with contextlib.suppress(ConnectError):
            await client.execute(ops.Get(jid) if self._scene.settings.nodes else ops.Queue(queue))

    def _produce(self, name: str) -> None:
        scene = self._scene
        app = self.app()
        kind = app.jobs[KLASS]
        while self.producing:
            runtime.sleep(self._pause())
            queue, how, options = self.workload.job()
            called = runtime.monotonic()
            try:
                made = kind.options(queue=queue, **options).put(how)
            except ConnectError as error:
                scene.oracles.gave_up(error, called, DEADLINE)
            else:
                if not made.deduplicated:
                    scene.oracles.put(made.jid, goes=bool(options.keys() & {"keep_newest", "keep_complete"}))
        self.producers.remove(name)
        app.close()

    # ---- consumers

    def _consume(self, name: str) -> None:
        self._scene.run_loop(self._consume_with_client(name))

    async def _consume_with_client(self, name: str) -> None:
        """Take jobs one by one, and let some leases run out."""
        from qmodel.backends.redis.connect import connect_async

        scene = self._scene
        client = AsyncClient(Observed(scene, connect_async(self._server.url)), worker=name)
        while self.consuming:
            try:
                job = await client.queues[scene.chance.choice(QUEUES)].pop(timeout=1.0)
                if job is None:
                    continue
                scene.oracles.begins(job.jid, job.raw.token, name, 1)
                late = scene.chance.random() < 0.05
                await asyncio.sleep(scene.settings.lease * 1.5 if late else scene.chance.random() * 0.2)
                scene.oracles.stops(name)
                await (job.complete() if scene.chance.random() < 0.9 else job.retry())
            except ConnectError:
                await asyncio.sleep(0.2)
            except (LockLost, RefusedError):
                continue
        await client.close()

    # ---- workers

    def app(self) -> App:
        """Make an app, as each process does."""
        app = App(self._server.url)

        @app.job(name=KLASS, retries=30, backoff=fixed(0.2))
        def work(how: str, context: Context) -> str:
            with self._observed(context):
                for _ in range(self._steps(how)):
                    runtime.sleep(0.1)
                    self._look(context)
            return self._end(how)

        return app

    def async_app(self) -> App:
        """Make an app with asynchronous jobs."""
        app = App(self._server.url)

        @app.job(name=KLASS, retries=30, backoff=fixed(0.2))
        async def work(how: str, context: Context) -> str:
            with self._observed(context):
                for _ in range(self._steps(how)):
                    await asyncio.sleep(0.1)
                    self._look(context)
            return self._end(how)

        return app

    @contextlib.contextmanager
    def _observed(self, context: Context) -> Iterator[None]:
        scene = self._scene
        scene.oracles.begins(context.jid, context.raw.token, context.worker, scene.settings.concurrency)
        try:
            yield
        finally:
            scene.oracles.stops(context.worker)

    def _end(self, how: str) -> str:
        if how == "fails" and self._scene.chance.random() < 0.5:
            raise Trouble("as drawn")
        return how

    def _steps(self, how: str) -> int:
        chance = self._scene.chance
        if how == "instant":
            return 0
        return int(chance.uniform(1, 8) * self._scene.settings.lease * 10) if how == "slow" else chance.randrange(2)

    def _look(self, context: Context) -> None:
        store = None if self._scene.settings.lua else self._server.store_of(context.jid)
        if store is not None:
            self._scene.oracles.goes_on(store, context.jid, context.raw.token, context.worker)

    def start_worker(self, name: str) -> None:
        """Start a worker process."""
        self._number += 1
        self._process(f"{name}.{self._number}", self._work)

    def idle(self) -> list[str]:
        """Name the workers that have a free slot, and take jobs."""
        return [
            name
            for name, (worker, process) in self.workers.items()
            if worker._open and not (worker._stopping or worker._held or process.dead)
        ]

    def _work(self, name: str) -> None:
        scene = self._scene
        settings = scene.settings
        app = self.async_app() if settings.runner == "async" else self.app()
        worker = Worker(app, QUEUES, concurrency=settings.concurrency, runner=settings.runner, name=name)  # type: ignore[arg-type]
        process = scene.baton.current.process
        self.workers[name] = worker, process
        scene.oracles.alive[name] = process
        worker.run()
        app.close()
        scene.oracles.alive.pop(name)
        self.workers.pop(name, None)
        renewer = getattr(worker, "_renewer", None)  # it may have ended before it began
        held, renewed = len(worker._held), len(renewer._held) if renewer is not None else 0
        refused = settings.inner_errors and not scene.oracles.calm(
            PATIENCE
        )  # the server may have answered with an error
        if (held and not (worker.abandoned or refused)) or renewed > held:
            scene.oracles.found("nothing is left over", f"{name} has ended with {held} jobs and {renewed} leases")
        if not worker.abandoned and scene.oracles.calm(PATIENCE):
            for job in [job for store in self._server.stores for job in store.jobs.values()]:
                if job.state == "running" and job.worker == name:
                    scene.oracles.found("nothing is left over", f"{name} has ended, and still has a lease of {job.jid}")

    def replace_worker(self, kills: bool) -> None:
        """Stop a worker, or kill it, and start another one."""
        if not self.workers:
            return
        name = self._scene.chance.choice(sorted(self.workers))
        worker, process = self.workers[name]
        if kills:
            self._scene.baton.kill(process)
            self.workers.pop(name)
        else:
            worker.stop(now=self._scene.chance.random() < 0.5)
        self.start_worker(name.partition(".")[0])

    def evict(self) -> None:
        """End the lease of a running job, as a person does."""
        jobs = [job for store in self._server.stores for job in store.jobs.values()]
        running = sorted(job.jid for job in jobs if job.state == "running")
        if not running:
            return
        jid = self._scene.chance.choice(running)

        def end_lease(name: str) -> None:
            with contextlib.suppress(QmodelError), Client(self._server.url) as client:
                client.execute(ops.Timeout((jid,)))

        self._process("person", end_lease)

    def stop_workers(self) -> None:
        """Tell all workers to stop."""
        for worker, _ in list(self.workers.values()):
            worker.stop()

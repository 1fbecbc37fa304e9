"""The worker: it pops jobs, has them performed, and reports their outcomes.

One thread talks to the server: the one that calls `run`. It sleeps until a message arrives in its inbox: a job ended, a
job may be ready, a lease is lost, a signal came. Then it makes one round trip, which reports all jobs that ended since
the last one, and pops as many jobs as there are free slots. More jobs end during the round trip; so the busier a worker
is, the more each round trip carries, and no job waits. A job has ended only when the server has confirmed it.

Other threads belong to the renewer (leases, `renewal.py`), the wake-ups (idle waiting, `wake_ups.py`), the schedules,
remote control, and the runner, which performs jobs in threads, in an event loop, or in a process for each.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from qmodel import runtime
from qmodel.app.context import Context
from qmodel.app.outcome import Failed
from qmodel.client import profiles, remote
from qmodel.contract import replies
from qmodel.contract.operations import Deregister, Fail, Operation
from qmodel.errors import JobNotFound, LockLost, RefusedError
from qmodel.worker import log, relay
from qmodel.worker.attempt import Abort, Attempt, Key
from qmodel.worker.connection import Connection, GivenUp, is_error
from qmodel.worker.errors import ForkServerGone
from qmodel.worker.fetch import PATIENCE, FetchPlan, Order, has_work
from qmodel.worker.health import start_health
from qmodel.worker.inbox import Inbox
from qmodel.worker.profile import Profiler
from qmodel.worker.remote_control import RemoteControl
from qmodel.worker.renewal import Renewer
from qmodel.worker.reports import composed, operation
from qmodel.worker.round_trips import Taker
from qmodel.worker.runners import open_runner
from qmodel.worker.schedules import Schedules
from qmodel.worker.settings import Runners, Settings, check_name, made_name
from qmodel.worker.shards import open_trips
from qmodel.worker.signals import signals

if TYPE_CHECKING:
    from qmodel.app import App

KEEP_ALIVE: Final = 5.0
"""Idle keep-alive interval, in seconds: the maximum time between two updates of the health probe."""

_PAUSE_AFTER_ERROR: Final = 0.5
"""Seconds to wait after the server has answered with an error."""

_NUMBERS = itertools.count(1)


class Worker:
    """Performs the jobs of an app.

    `queues` are polled in the given order (`ordered`), starting one further each time (`round-robin`), or in a random
    order by `weights` (`weighted`). `concurrency` jobs are performed at a time in each of `processes` processes, by a
    runner: `thread`, `async` (one event loop; plain functions in threads), or `fork` (a process for each job, with at
    most `memory` bytes, in an empty folder). `prefetch` limits the jobs that are held before they begin; the worker
    never holds more than will begin at once. `grace`: seconds that running jobs get to finish after SIGTERM.

    `health`: the host and port for `/live` and `/ready`; each of several processes uses the next port. `profile`: write
    host, process id, memory and settings where pages find them, as `qmodel worker` does. `burst`: end when no job is
    ready and none runs.

    Raises ValueError for invalid settings.
    """

    def __init__(
        self,
        app: App,
        queues: Iterable[str] = ("default",),
        *,
        order: Order = "ordered",
        weights: Mapping[str, float] | None = None,
        concurrency: int = 1,
        runner: Runners = "thread",
        processes: int = 1,
        prefetch: int | None = None,
        grace: float = 30.0,
        memory: int | None = None,
        name: str | None = None,
        health: tuple[str, int] | None = None,
        profile: bool = False,
        burst: bool = False,
    ) -> None:
        self.app = app
        self.settings = Settings(
            tuple(queues),
            order,
            dict(weights or {}),
            concurrency,
            runner,
            processes,
            prefetch,
            grace,
            memory,
            health,
            burst,
        )
        check_name(name, processes)
        if app.url.startswith("memory:") and (processes > 1 or runner == "fork"):
            raise ValueError("memory:// works in one process only. Use redis://, or qmodel serve, with several.")
        self._given_name, self._number, self._has_profile = name, next(_NUMBERS), profile
        self.done = 0
        self.abandoned = self.stopped_remotely = False
        self.connection = Connection(app.url, lambda: app.client)
        self.connection.while_away = self._while_away
        self._inbox = Inbox()
        self._ended: list[Attempt] = []
        self._held: dict[Key, Attempt] = {}
        self._queues_empty = self._quiet = self._open = False
        self._stopping: Literal["", "finish", "now"] = ""
        self._deadline = self._pausing_until = self._moved_at = 0.0

    @property
    def name(self) -> str:
        """The name of this worker, unique among all workers."""
        return self._given_name or made_name(os.getpid(), self._number)

    def name_of_process(self, index: int, pid: int) -> str:
        return f"{self._given_name}-{index + 1}" if self._given_name else made_name(pid, self._number)

    def become_process(self, index: int) -> None:
        """Become one of several processes, with its own name and port."""
        self.settings = self.settings.for_process(index)
        if self._given_name:
            self._given_name = self.name_of_process(index, 0)

    @property
    def running(self) -> list[Attempt]:
        """The attempts that the worker holds now."""
        return list(self._held.values())

    def run(self) -> None:
        """Perform jobs until `stop` is called or, in the main thread, SIGINT or SIGTERM arrives.

        Raises ConnectError when the server refuses the connection.
        """
        if self.settings.processes > 1:
            from qmodel.worker.supervisor import supervise

            supervise(self)
            return
        with signals(lambda times: self.stop(now=times > 1), lambda: self.stop(within=self.settings.grace)):
            try:
                self.connection.connect()
                self.connection.execute_many(remote.forgotten([self.name]))  # meant for an earlier worker
                self._begin()
                while self._turn():
                    pass
            except GivenUp:
                self.abandoned = bool(self._held)
                log.given_up(len(self._held))
                self._abort_all("Its worker stops without an answer of the server.")  # others may get these jobs soon
            except ForkServerGone:
                self._give_back()
                raise
            finally:
                self._end()

    def stop(self, now: bool = False, *, within: float | None = None) -> None:
        """Take no more jobs, finish the running ones, and end; give them back `now`, or after `within` seconds.

        May be called from any thread, and from a signal handler.
        """
        if now or not self._open:
            self.connection.giving_up.set()
        self.call_soon(lambda: self._stop(now, within))

    def quiet(self, quiet: bool = True) -> None:
        """Take no more jobs, and give back those that have not begun; or resume. May be called from any thread."""
        self.call_soon(lambda: self._set_quiet(quiet))

    def call_soon(self, call: Callable[[], None]) -> None:
        """Call a function in the worker's thread, between two round trips."""
        self._inbox.put(call)

    def _set_quiet(self, quiet: bool) -> None:
        self._quiet = self._wake_ups.paused = quiet
        if quiet:
            self._ended += self._runner.take_back()
        log.quieted(len(self._held), quiet)

    def _stop(self, now: bool, within: float | None) -> None:
        self._wake_ups.close()
        self._stopping = "now" if now or self._stopping == "now" else "finish"
        if within is not None:  # a second SIGTERM gives no more time
            ends_at = runtime.monotonic() + within
            self._deadline = self.connection.until = min(self._deadline or ends_at, ends_at)
        self._ended += self._runner.take_back()
        log.stopping(len(self._held), self._stopping, within)

    # ---- start and end

    def _begin(self) -> None:
        """Start the runner and the other threads."""
        settings, name, connection = self.settings, self.name, self.connection
        self._runner = open_runner(settings, self.app, self._inbox.put)
        self._health = start_health(self.app, connection, *settings.health) if settings.health is not None else None
        queues = relay.with_queue(self.app, connection.client, settings.queues)
        self._plan = FetchPlan(queues, settings.order, settings.weights, name, settings.prefetch)
        self._renewer = Renewer(connection, lambda attempt, abort: self.call_soon(lambda: self._abort(attempt, abort)))
        taker = Taker(self._apply, self._accept, self._pause, lambda: self._free_slots() <= 0, self.call_soon)
        self._trips = open_trips(connection, self._plan, taker)
        self._wake_ups = self._trips.wake_ups
        self._schedules = Schedules(connection, self.app)
        self._remote_control = RemoteControl(self, Profiler(name, settings) if self._has_profile else None)
        self._runner.start()
        for one in (self._renewer, self._wake_ups, self._schedules, self._remote_control):
            one.start()
        self._open = True
        log.started(name, self.connection.shown_url, settings, self.app.jobs)
        self.app.hooks.fire("worker_start", self)

    def _end(self) -> None:
        """Stop the runner and the threads, and deregister the worker."""
        if self._open:
            self._open = False
            for one in (self._wake_ups, self._renewer, self._schedules, self._remote_control, self._runner):
                one.close()
            if self._health is not None:
                self._health[1].close()
            self._wake_ups.finish()
            if self._trips.unanswered and not (self._held or self.connection.gave_up):
                log.given_up(0)
            self.app.hooks.fire("worker_stop", self)
            profile = profiles.deleted([self.name] if self._has_profile else [])
            self.connection.execute_last([Deregister((self.name,)), *remote.forgotten([self.name]), *profile])
            log.ended(self.name, self.done)
        self.connection.close()

    def _turn(self) -> bool:
        """Handle the inbox, and make one round trip; say whether to continue."""
        self._receive(self._idle_seconds())
        self._tick()
        if self._stopping == "now":
            self._give_back()
            return False
        self._talk()
        return bool(self._held) or not (self._stopping or (self.settings.burst and self._finds_none()))

    def _finds_none(self) -> bool:  # the last job may have made another one ready
        return self._trips.waits(True) and not any(map(has_work, self.connection.execute_many(self._plan.looks())))

    def _tick(self) -> None:
        if self._open and self._health is not None:  # the health probe
            self._health[0].tick()

    def _while_away(self) -> None:
        """Handle the inbox while the server does not answer; above all, a stop and the end of the grace period."""
        self._tick()
        if self._open:
            self._receive(0)
            if self._stopping == "now" or (self._stopping and not self._held):
                self.connection.end_soon(self._stopping == "now")

    # ---- the inbox

    def _receive(self, seconds: float) -> None:
        """Handle all messages of the inbox; wait for the first one at most `seconds`."""
        for attempt in self._inbox.receive(seconds):
            self._ended.append(attempt)
        self._check_timers(runtime.monotonic())

    def _idle_seconds(self) -> float:
        """Compute how long the worker may wait for a message."""
        now = runtime.monotonic()
        if self._ended or self._wanted() > 0:
            return max(self._pausing_until - now, 0.0)
        if self._deadline:
            return min(max(self._deadline - now, 0.0), KEEP_ALIVE)
        return PATIENCE if self._runner.waiting() else KEEP_ALIVE

    def _check_timers(self, now: float) -> None:
        """Handle the timers: prefetched jobs that wait behind a slow one, and the end of the grace period."""
        if self._ended:
            self._moved_at = now
        elif now - self._moved_at > PATIENCE and self._runner.waiting():
            self._plan.slow()
            self._ended += self._runner.take_back()
        if self._deadline and now >= self._deadline and self._stopping != "now":
            self._stopping = "now"
            log.stopping(len(self._held), "now", None)

    def _free_slots(self) -> int:
        """Count the jobs that could begin now."""
        return self.settings.concurrency - len(self._held) + len(self._ended)

    def _wanted(self, reports: bool = False) -> int:
        """Compute how many jobs to pop: none while waiting for a wake-up, and none ahead after an empty pop."""
        free = self._free_slots()
        if self._stopping or self._quiet or (self._queues_empty and free <= 0):
            return 0
        if self._trips.waits(free > 0) and not (reports and self._trips.rests):
            return 0
        return free + self._plan.ahead(self.settings.concurrency)

    # ---- round trips

    def _talk(self) -> None:
        """Report the jobs that have ended, and pop new ones, in one round trip."""
        if runtime.monotonic() < self._pausing_until:
            return
        wanted, free = self._wanted(bool(self._ended)), self._free_slots()
        ended, self._ended = self._ended, []
        for attempt in ended:
            if attempt.aborted is not None and attempt.aborted.why == "lost":
                self._forget(attempt)
        reports = list(composed([one for one in ended if one.key in self._held], self.connection.client.homes))
        try:
            self._trips.talk(reports, wanted, free)
        except BaseException:
            self._ended += [one for one in ended if one.key in self._held]
            raise

    def _pause(self) -> None:
        self._pausing_until = runtime.monotonic() + _PAUSE_AFTER_ERROR

    def _accept(self, jobs: Iterable[replies.Job], sent: float, tried: float) -> None:
        """Give jobs to the runner; release those that come after a stop, with a late reply to a pop."""
        taken = [Attempt(job, sent, tried) for job in jobs]
        self._queues_empty = not taken
        if not taken:
            return
        self._moved_at = runtime.monotonic()
        for attempt in taken:
            self._held[attempt.key] = attempt
            self._renewer.keep(attempt)
        if self._stopping or self._quiet:
            self._trips.talk([(operation(attempt), [attempt]) for attempt in taken], 0, 0)
        else:
            self._runner.run(taken)

    def _apply(self, op: Operation, attempts: list[Attempt], reply: Any) -> None:
        """Apply the server's reply to the report of ended attempts."""
        if is_error(reply):
            self._pause()
            self._ended += [one for one in attempts if one.key in self._held]
        elif not isinstance(reply, RefusedError):
            for attempt, one in zip(attempts, reply if len(attempts) > 1 else [reply], strict=True):
                self._settled(attempt, one)
        elif len(attempts) > 1:  # one of them was refused, so none was executed
            self._trips.talk([report for attempt in attempts for report in composed([attempt])], 0, 0)
        elif isinstance(reply, LockLost | JobNotFound) or isinstance(op, Fail):
            if self._forget(attempts[0]):
                self._lost(attempts[0], reply.sentence)
        else:
            attempts[0].outcome = failure = Failed(type(reply).__name__, str(reply))
            self._trips.talk([(failure.operation(attempts[0].job), attempts)], 0, 0)

    # ---- attempts

    def _settled(self, attempt: Attempt, reply: Any) -> None:
        """Handle the server's confirmation that an attempt has ended."""
        self._forget(attempt)
        if attempt.began:
            self._plan.took(attempt.ran)
            self.done += 1
        log.settled(attempt, reply)

    def _lost(self, attempt: Attempt, sentence: str) -> None:
        """Handle a lost lease: the attempt's outcome can no longer be reported."""
        log.aborted(attempt, sentence)
        self.app.hooks.fire("lost_lock", attempt.context or Context(self.app, attempt.job), None)

    def _forget(self, attempt: Attempt) -> bool:
        self._renewer.drop(attempt)
        return self._held.pop(attempt.key, None) is not None

    def _abort(self, attempt: Attempt, abort: Abort) -> None:
        """Abort an attempt."""
        if attempt.key not in self._held or attempt.ended_at:
            return
        self._runner.abort(attempt, abort)
        if abort.why == "lost":
            self._lost(attempt, abort.sentence)
        else:
            log.aborted(attempt, abort.sentence)

    def _give_back(self) -> None:
        """Give back all jobs that have not ended, after a short time to clean up."""
        self._ended += self._runner.take_back()
        self._abort_all("Its worker stops.")
        self._ended += self._inbox.unwound(len(self._held) - len(self._ended))
        self.abandoned = len(self._ended) < len(self._held)
        self._wake_ups.join(bool(self._held))
        reports = list(composed(self._ended, self.connection.client.homes))
        over = {attempt.key for _, attempts in reports for attempt in attempts}
        self._trips.talk(reports + list(composed([one for one in self.running if one.key not in over])), 0, 0)
        if self._trips.unanswered and self._held:
            self.abandoned = True
            log.given_up(len(self._held))

    def _abort_all(self, sentence: str) -> None:
        for attempt in (one for one in self.running if one not in self._ended):
            self._runner.abort(attempt, Abort("stop", sentence))

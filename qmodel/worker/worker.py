"""The worker: it takes jobs, has them performed, and says what became of them.

One thread talks to the server: the one that calls `run`. It sleeps until it is told something, by whoever has something
to tell: a job has ended, there may be a new one, a lock is lost, a signal came. Then it makes one round trip, in which
it says all that has ended since the last one, and takes as many jobs as there is room for. While that is under way,
others end; so the busier a worker is, the more each round trip carries, and none waits for company. A job has ended
when the server has said so, and not before.

Beside it stand a renewer (leases, `renewing.py`), a bell (idle waiting, `bell.py`), and a runner, which performs jobs
in threads, in an event loop, or in a process for each.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Literal

from qmodel.app.context import Context
from qmodel.app.outcome import Failed
from qmodel.client import remote
from qmodel.contract import replies
from qmodel.contract.operations import Deregister, Fail, Operation
from qmodel.errors import JobNotFound, LockLost, RefusedError
from qmodel.worker import log
from qmodel.worker.attempts import Abort, Attempt, unwound
from qmodel.worker.connection import GivenUp, Line, is_error
from qmodel.worker.errors import ZygoteGone
from qmodel.worker.fetch import PATIENCE, Fetching, Order
from qmodel.worker.health import watched
from qmodel.worker.remote_control import Hearing
from qmodel.worker.renewal import Renewer
from qmodel.worker.reports import composed, joined
from qmodel.worker.schedules import Schedules
from qmodel.worker.settings import Runners, Settings
from qmodel.worker.signals import signals
from qmodel.worker.wake_ups import Bell

if TYPE_CHECKING:
    from qmodel.app import App

TICK: Final = 5.0
"""Seconds after which a worker that nobody tells anything shows that it lives."""

_REST: Final = 0.5
"""Seconds to wait after an answer of the server that helps nobody."""

_NUMBERS = itertools.count(1)


class Worker:
    """Performs the jobs of an app.

    `queues` are looked at in the order given (`ordered`), beginning one further each time (`round-robin`), or in an
    order drawn by `weights` (`weighted`). `concurrency` jobs are performed at a time, in `processes` processes each, by
    a runner: `thread`, `async` (one event loop; plain functions in threads), or `fork` (a process for each job, with
    `memory` bytes at most, in an empty folder). `prefetch` is how many jobs are held at most that have not begun, of
    which there are never more than will begin at once. `grace`: how many seconds jobs get to finish after SIGTERM.

    `health`: the host and port at which it answers `/live` and `/ready`; of several processes each at the next port.

    Raises ValueError for what cannot be.
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
    ) -> None:
        self.app = app
        self.settings = Settings(
            tuple(queues), order, dict(weights or {}), concurrency, runner, processes, prefetch, grace, memory, health
        )
        if app.url.startswith("memory:") and (processes > 1 or runner == "fork"):
            raise ValueError("The jobs of memory:// are in one process. Use redis://, or qmodel serve, with several.")
        self._given_name = name
        self._number = next(_NUMBERS)
        self.done = 0
        self.abandoned = self.dismissed = False
        self.line = Line(app.url, lambda: app.client)
        self.line.meanwhile = self._meanwhile
        self._inbox: SimpleQueue[Attempt | Callable[[], None]] = SimpleQueue()
        self._ended: list[Attempt] = []
        self._inside: dict[int, Attempt] = {}
        self._waiting = self._dry = self._quiet = False
        self._open = False
        self._stopping: Literal["", "finish", "now"] = ""
        self._deadline = self._resting_until = self._moved_at = 0.0

    @property
    def name(self) -> str:
        """Its name among all workers."""
        number = "" if self._number == 1 else f"-{self._number}"
        return self._given_name or f"{os.uname().nodename[:80]}-{os.getpid()}{number}"

    def alone(self, place: int) -> None:
        """Be one of several processes: with a name and a port of its own."""
        self.settings = self.settings.alone(place)
        if self._given_name:
            self._given_name += f"-{place + 1}"

    @property
    def running(self) -> list[Attempt]:
        """What it holds at the moment."""
        return list(self._inside.values())

    # ---- from the outside

    def run(self) -> None:
        """Work until `stop` is called or a signal comes: SIGINT or SIGTERM, where this is the main thread.

        Raises ConnectError when there is a server that does not want us.
        """
        if self.settings.processes > 1:
            from qmodel.worker.supervisor import supervise

            supervise(self)
            return
        with signals(self):
            try:
                self.line.connect()
                self.line.execute_many(remote.forgotten([self.name]))  # one of the same name was told that, and not we
                self._begin()
                while self._turn():
                    pass
            except GivenUp:
                self.abandoned = bool(self._inside)
                log.given_up(self)
            except ZygoteGone:
                self._give_back()
                raise
            finally:
                self._end()

    def stop(self, now: bool = False, *, within: float | None = None) -> None:
        """Take no more jobs, and end when those at hand have ended; or give these back, `now` or after some seconds.

        May be called from any thread, and from a signal handler.
        """
        if now or not self._open:
            self.line.hurry.set()
        self.tell(lambda: self._stop(now, within))

    def quiet(self, quiet: bool = True) -> None:
        """Take no more jobs, and give back those that have not begun; or take jobs again. From any thread."""
        self.tell(lambda: self._be_quiet(quiet))

    def tell(self, call: Callable[[], None]) -> None:
        """Have its thread call something, between two round trips."""
        self._inbox.put(call)

    def _be_quiet(self, quiet: bool) -> None:
        self._quiet = self._bell.hushed = quiet
        if quiet:
            self._ended += self._runner.take_back()
        log.quieted(self, quiet)

    def _stop(self, now: bool, within: float | None) -> None:
        self._bell.close()
        self._stopping = "now" if now or self._stopping == "now" else "finish"
        if within is not None:
            self._deadline = time.monotonic() + within
        self._ended += self._runner.take_back()
        log.stopping(self, self._stopping, within)

    # ---- its life

    def _begin(self) -> None:
        """Have all that works beside this thread begin."""
        settings, name = self.settings, self.name
        self._runner = settings.runner_for(self.app, self._inbox.put)
        self._watched = watched(self.app, self.line, *settings.health) if settings.health is not None else None
        self._fetching = Fetching(settings.queues, settings.order, settings.weights, name, settings.prefetch)
        self._renewer = Renewer(self.line, lambda attempt, abort: self.tell(lambda: self._abort(attempt, abort)))
        self._bell = Bell(self.line, settings.queues, name, lambda: self.tell(self._woken))
        self._schedules = Schedules(self.line, self.app)
        self._hearing = Hearing(self)
        self._runner.start()
        for one in (self._renewer, self._bell, self._schedules, self._hearing):
            one.start()
        self._open = True
        log.started(self)
        self.app.hooks.fire("worker_start", self)

    def _end(self) -> None:
        """Have it end."""
        if self._open:
            self._open = False
            for one in (self._bell, self._renewer, self._schedules, self._hearing, self._runner):
                one.close()
            if self._watched is not None:
                self._watched[1].close()
            self._bell.finish()
            self.app.hooks.fire("worker_stop", self)
            with contextlib.suppress(GivenUp):
                self.line.execute_many([Deregister((self.name,)), *remote.forgotten([self.name])])
            log.ended(self)
        self.line.close()

    def _turn(self) -> bool:
        """Listen, and talk to the server once; say whether to go on."""
        self._listen(self._idle_for())
        self._tick()
        if self._stopping == "now":
            self._give_back()
            return False
        self._exchange()
        return not (self._stopping and not self._inside)

    def _tick(self) -> None:
        """Show that it lives."""
        if self._open and self._watched is not None:
            self._watched[0].tick()

    def _meanwhile(self) -> None:
        """Hear what there is to hear while the server does not answer; above all, that our time is up."""
        self._tick()
        if self._open:
            self._listen(0)
            if self._stopping == "now":
                self.line.hurry.set()

    # ---- listening

    def _listen(self, seconds: float) -> None:
        """Take all that there is to hear; sleep for it, where there is nothing else to do for so long."""
        try:
            message = self._inbox.get(timeout=seconds)
            while True:
                if type(message) is Attempt:
                    self._ended.append(message)
                else:
                    message()  # type: ignore[operator]
                message = self._inbox.get_nowait()
        except Empty:
            self._look_around(time.monotonic())

    def _idle_for(self) -> float:
        """How long there is nothing to do unless somebody tells something."""
        now = time.monotonic()
        if self._ended or self._room() > 0:
            return max(self._resting_until - now, 0.0)
        if self._deadline:
            return min(max(self._deadline - now, 0.0), TICK)
        return PATIENCE if self._runner.waiting() else TICK

    def _look_around(self, now: float) -> None:
        """See to what nobody tells: jobs that wait behind a slow one, and the end of our time."""
        if self._ended:
            self._moved_at = now
        elif now - self._moved_at > PATIENCE and self._runner.waiting():
            self._fetching.slow()
            self._ended += self._runner.take_back()
        if self._deadline and now >= self._deadline and self._stopping != "now":
            self._stopping = "now"
            log.stopping(self, "now", None)

    def _woken(self) -> None:
        self._waiting = False

    def _free(self) -> int:
        """How many jobs could begin now."""
        return self.settings.concurrency - len(self._inside) + len(self._ended)

    def _room(self) -> int:
        """How many jobs to ask for: none while we wait to be woken, or were told that there is none to hold."""
        if self._stopping or self._quiet or self._waiting or (self._dry and self._free() <= 0):
            return 0
        return self._free() + self._fetching.ahead(self.settings.concurrency)

    # ---- talking

    def _exchange(self) -> None:
        """Say what has ended, and take new jobs, in one round trip."""
        if time.monotonic() < self._resting_until:
            return
        room, free = self._room(), self._free()
        ended, self._ended = self._ended, []
        for attempt in ended:
            if attempt.aborted is not None and attempt.aborted.why == "lost":
                self._forget(attempt)
        said = list(composed([one for one in ended if one.token in self._inside]))
        try:
            if room > 0:
                self._say_and_pop(said, room, free > 0)
            elif said:
                self._say(said)
        except BaseException:
            self._ended += [one for one in ended if one.token in self._inside]
            raise

    def _say(self, said: list[tuple[Operation, list[Attempt]]]) -> None:
        for (op, attempts), reply in zip(said, self.line.execute_many([op for op, _ in said]), strict=True):
            self._hear(op, attempts, reply)

    def _say_and_pop(self, said: list[tuple[Operation, list[Attempt]]], room: int, idle: bool) -> None:
        pop = self._fetching.pop(min(room, 1000), idle)
        sent = time.monotonic()
        both = joined(said[0][0], pop) if len(said) == 1 else None
        if both is not None:
            (reply,) = self.line.execute_many([both])
            self._hear(said[0][0], said[0][1], reply.state if isinstance(reply, replies.CompletedAndPopped) else reply)
            if isinstance(reply, replies.CompletedAndPopped):
                self._take(reply.jobs, sent, idle)
            return
        *heard, popped = self.line.execute_many([*(op for op, _ in said), pop])
        for (op, attempts), reply in zip(said, heard, strict=True):
            self._hear(op, attempts, reply)
        if is_error(popped):
            self._resting_until = time.monotonic() + _REST
        else:
            self._take(popped, sent, idle)

    def _take(self, jobs: Iterable[replies.Job], sent: float, idle: bool) -> None:
        """Hand jobs to the runner; where there is none, and one could begin, wait for the bell."""
        taken = [Attempt(job, sent) for job in jobs]
        self._dry = not taken
        if self._dry and idle:
            self._waiting = True
            self._bell.set()
        if not taken:
            return
        self._moved_at = time.monotonic()
        for attempt in taken:
            self._inside[attempt.token] = attempt
            self._renewer.keep(attempt)
        self._runner.run(taken)

    def _hear(self, op: Operation, attempts: list[Attempt], reply: Any) -> None:
        """See what the server says of attempts that ended."""
        if is_error(reply):
            self._resting_until = time.monotonic() + _REST
            self._ended += [one for one in attempts if one.token in self._inside]
        elif not isinstance(reply, RefusedError):
            for attempt, one in zip(attempts, reply if len(attempts) > 1 else [reply], strict=True):
                self._settled(attempt, one)
        elif len(attempts) > 1:  # one of them was refused, so none was executed
            self._say([said for attempt in attempts for said in composed([attempt])])
        elif isinstance(reply, LockLost | JobNotFound) or isinstance(op, Fail):
            if self._forget(attempts[0]):
                self._lost(attempts[0], reply.sentence)
        else:
            attempts[0].outcome = failure = Failed(type(reply).__name__, str(reply))
            self._say([(failure.operation(attempts[0].job), attempts)])

    # ---- what becomes of attempts

    def _settled(self, attempt: Attempt, reply: Any) -> None:
        """The server has said that an attempt has ended."""
        self._forget(attempt)
        if attempt.began:
            self._fetching.took(attempt.ran)
            self.done += 1
        log.settled(attempt, reply)

    def _lost(self, attempt: Attempt, sentence: str) -> None:
        """The lock of an attempt is lost: nothing can be said of it any more."""
        log.lost(attempt, sentence)
        self.app.hooks.fire("lost_lock", attempt.context or Context(self.app, attempt.job), None)

    def _forget(self, attempt: Attempt) -> bool:
        self._renewer.drop(attempt)
        return self._inside.pop(attempt.token, None) is not None

    def _abort(self, attempt: Attempt, abort: Abort) -> None:
        """Let an attempt not go on."""
        if attempt.token not in self._inside or attempt.ended_at:
            return
        self._runner.abort(attempt, abort)
        if abort.why == "lost":
            self._lost(attempt, abort.sentence)
        else:
            log.aborted(attempt, abort)

    def _give_back(self) -> None:
        """Give back all that has not ended, after a moment in which it may unwind."""
        self._ended += self._runner.take_back()
        for attempt in self.running:
            if attempt not in self._ended:
                self._runner.abort(attempt, Abort("stop", "Its worker stops."))
        self._ended += unwound(self._inbox, len(self._inside) - len(self._ended))
        self.abandoned = len(self._ended) < len(self._inside)
        said = list(composed(self._ended))
        over = {attempt.token for _, attempts in said for attempt in attempts}
        self._say(said + list(composed([one for one in self.running if one.token not in over])))

"""One attempt, as the app performs it; and what became of it where the worker ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.app.attempt import delay_after, perform
from qmodel.app.context import Context
from qmodel.app.outcome import Completed, Outcome, Retried
from qmodel.worker import log
from qmodel.worker.attempts import Attempt
from qmodel.worker.errors import TimedOut

if TYPE_CHECKING:
    from qmodel.app import App


def begun(app: App, attempt: Attempt) -> Context:
    """Begin an attempt: its context, which is told if it was aborted meanwhile."""
    log.begun(attempt)
    context = attempt.context = Context(app, attempt.job)
    if attempt.aborted is not None:
        context.cancel(attempt.aborted.sentence)
    return context


def performed(app: App, attempt: Attempt) -> Outcome:
    """Perform an attempt in this thread."""
    return perform(app, attempt.job, begun(app, attempt))


def judged(app: App, attempt: Attempt, outcome: Outcome | None) -> Outcome | None:
    """What became of an attempt: that it ran for too long counts as a failure, whatever it made of that."""
    if attempt.aborted is None or isinstance(outcome, Completed):
        return outcome
    if attempt.aborted.why == "timeout":
        return failed(app, attempt, TimedOut(attempt.aborted.sentence))
    return None


def failed(app: App, attempt: Attempt, error: BaseException) -> Retried:
    """An attempt that ended without its job's doing, to be tried again as its job type says."""
    kind = app.jobs.get(attempt.job.klass)
    number = attempt.job.retries - attempt.job.remaining + 1
    delay_ms = delay_after(kind, number, error) if kind is not None else 0
    message = "\n".join([str(error) or "It raised this exception.", *getattr(error, "__notes__", ())])
    outcome = Retried(delay_ms, type(error).__name__, message, error)
    app.hooks.fire("failure", attempt.context, outcome)
    return outcome

"""Perform one attempt as the app does, and decide its outcome where the worker ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.app.attempt import delay_after
from qmodel.app.attempt import perform as perform_job
from qmodel.app.context import Context
from qmodel.app.outcome import Completed, Outcome, Retried
from qmodel.worker import log
from qmodel.worker.attempt import Attempt
from qmodel.worker.errors import TimedOut

if TYPE_CHECKING:
    from qmodel.app import App


def begin(app: App, attempt: Attempt) -> Context:
    """Begin an attempt: make its context, and cancel that if the attempt was aborted meanwhile."""
    log.begun(attempt)
    context = attempt.context = Context(app, attempt.job)
    if attempt.aborted is not None:
        context.cancel(attempt.aborted.sentence)
    return context


def perform(app: App, attempt: Attempt) -> Outcome:
    """Perform an attempt in this thread."""
    return perform_job(app, attempt.job, begin(app, attempt))


def final_outcome(app: App, attempt: Attempt, outcome: Outcome | None) -> Outcome | None:
    """Decide the outcome of an attempt that may have been aborted.

    An attempt that exceeded its timeout is a failure, unless it completed. Other aborted attempts have no outcome.
    """
    if attempt.aborted is None or isinstance(outcome, Completed):
        return outcome
    if attempt.aborted.why == "timeout":
        return failure(app, attempt, TimedOut(attempt.aborted.sentence))
    return None


def failure(app: App, attempt: Attempt, error: BaseException) -> Retried:
    """Make the outcome of an attempt that the worker or its process ended: a retry as the job type defines it."""
    kind = app.jobs.get(attempt.job.klass)
    number = attempt.job.retries - attempt.job.remaining + 1
    delay_ms = delay_after(kind, number, error) if kind is not None else 0
    message = "\n".join([str(error) or "It raised this exception.", *getattr(error, "__notes__", ())])
    outcome = Retried(delay_ms, type(error).__name__, message, error)
    app.hooks.fire("failure", attempt.context or Context(app, attempt.job), outcome)
    return outcome

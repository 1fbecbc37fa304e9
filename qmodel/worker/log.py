"""Write the log lines of a worker: at its start and its end, and at the start and the end of each attempt."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from qmodel.app.outcome import Completed, Failed, Released, Retried, Unknown
from qmodel.present.durations import format_duration
from qmodel.present.numbers import counted
from qmodel.worker.attempt import Attempt
from qmodel.worker.settings import Settings

log = logging.getLogger("qmodel.worker")

_RUNNERS = {"thread": "in threads", "async": "in an event loop", "fork": "each in its own process"}


# ---- the worker


def started(name: str, url: str, settings: Settings, kinds: Collection[str]) -> None:
    """Log the start of a worker, with its settings and its job types."""
    names = sorted(kinds)
    log.info(
        "Worker %s at %s: queues %s (%s), %d at a time %s; %s: %s",
        name,
        url,
        ", ".join(settings.queues),
        settings.order,
        settings.concurrency,
        _RUNNERS[settings.runner],
        counted(len(names), "job type"),
        ", ".join(names[:20]) + (", ..." if len(names) > 20 else "") or "none: are their modules imported?",
    )


def ended(name: str, attempts: int) -> None:
    """Log the end of a worker."""
    log.info("Worker %s has ended; attempts: %d.", name, attempts)


def stopping(jobs: int, how: str, within: float | None) -> None:
    """Log that a worker stops, and what happens to the jobs that it holds."""
    if not jobs:
        log.info("Stopping; no jobs are running.")
    elif how == "now":
        log.warning("Giving %s back.", counted(jobs, "job"))
    elif within is not None:
        log.info("Finishing %s within %g s; after that they are given back.", counted(jobs, "job"), within)
    else:
        log.info("Finishing %s. Ctrl-C again gives them back.", counted(jobs, "job"))


def quieted(jobs: int, quiet: bool) -> None:
    """Log that a worker stops or resumes taking jobs."""
    if quiet:
        log.info("Quiet: the worker takes no more jobs until it is told to resume; running: %s.", counted(jobs, "job"))
    else:
        log.info("Resumed: the worker takes jobs again.")


def given_up(jobs: int) -> None:
    """Log that a worker ends although the server did not answer; `jobs` is how many it held."""
    left = f"{counted(jobs, 'job')} left" if jobs else "Jobs that it may have given to the last pop are left"
    log.warning("The server did not answer. %s until their leases run out.", left)


# ---- attempts


def begun(attempt: Attempt) -> None:
    """Log the start of an attempt."""
    if log.isEnabledFor(logging.INFO):
        job = attempt.job
        again = f", attempt {number}" if (number := job.retries - job.remaining + 1) > 1 else ""
        log.info("%s %s of %s begins%s", job.klass, job.jid, job.queue, again, extra=attempt.facts)


def settled(attempt: Attempt, reply: Any) -> None:
    """Log the end of an attempt, after the server has confirmed it."""
    if attempt.outcome is None and not attempt.began:
        log.debug("%s %s is given back: it had not begun", attempt.job.klass, attempt.jid, extra=attempt.facts)
        return
    level, text = _ending(attempt, reply)
    if log.isEnabledFor(level):
        log.log(level, "%s %s %s", attempt.job.klass, attempt.jid, text, extra=attempt.facts)


def _ending(attempt: Attempt, reply: Any) -> tuple[int, str]:
    outcome, after = attempt.outcome, f"after {format_duration(attempt.ran * 1000)}"
    if isinstance(outcome, Completed):
        return logging.INFO, f"complete {after}" + (" (and failed: it was revoked)" if reply == "failed" else "")
    if isinstance(outcome, Unknown):
        return logging.ERROR, f"is not performed. {outcome.sentence}"
    if isinstance(outcome, Retried) and reply != -1:
        again = f"is tried again in {format_duration(outcome.delay_ms)} ({reply} left)"
        return logging.WARNING, f"{again}, {after}: {summary(outcome.message)}"
    if isinstance(outcome, Retried | Failed):
        return logging.ERROR, f"failed ({outcome.group}) {after}: {summary(outcome.message)}"
    if isinstance(outcome, Released) and outcome.depends:
        return logging.INFO, f"waits for {counted(len(outcome.depends), 'job')}, {after}"
    why = f": {attempt.aborted.sentence}" if attempt.aborted is not None else ""
    return logging.INFO, f"is given back {after}{why}"


def aborted(attempt: Attempt, sentence: str) -> None:
    """Log that an attempt is aborted, and why."""
    log.warning("%s %s is aborted. %s", attempt.job.klass, attempt.jid, sentence, extra=attempt.facts)


def summary(text: str) -> str:
    """Move the last line of a message, which names the error, to the top.

    >>> summary("by the job")
    'by the job'
    """
    above, newline, last = text.strip().rpartition("\n")
    return f"{last}\n{above}" if newline else last

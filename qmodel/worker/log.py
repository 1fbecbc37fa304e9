"""What a worker says in the log: a line when it begins and ends, and one at the begin and the end of each attempt."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from qmodel.app.outcome import Completed, Failed, Released, Retried, Unknown
from qmodel.worker.attempts import Abort, Attempt

if TYPE_CHECKING:
    from qmodel.worker.worker import Worker

log = logging.getLogger("qmodel.worker")

_PLACES = {"thread": "in threads", "async": "in an event loop", "fork": "each in a process of its own"}


def started(worker: Worker) -> None:
    """Say what it works on."""
    settings = worker.settings
    kinds = sorted(worker.app.jobs)
    log.info(
        "Worker %s at %s: queues %s (%s), %d at a time %s; %d job types: %s",
        worker.name,
        worker.line.where,
        ", ".join(settings.queues),
        settings.order,
        settings.concurrency,
        _PLACES[settings.runner],
        len(kinds),
        ", ".join(kinds[:20]) + (", ..." if len(kinds) > 20 else "") or "none: are their modules imported?",
    )


def ended(worker: Worker) -> None:
    """Say that it has ended."""
    log.info("Worker %s has ended; attempts: %d.", worker.name, worker.done)


def stopping(worker: Worker, how: str, within: float | None) -> None:
    """Say that it stops, and what of."""
    count = len(worker.running)
    if not count:
        log.info("Stopping; nothing is at hand.")
    elif how == "now":
        log.warning("Giving %s back.", _jobs(count))
    elif within is not None:
        log.info("Finishing %s within %g s; what is left then is given back.", _jobs(count), within)
    else:
        log.info("Finishing %s. Ctrl-C again gives them back.", _jobs(count))


def quieted(worker: Worker, quiet: bool) -> None:
    """Say that it takes no more jobs, or takes them again."""
    if quiet:
        log.info("Quiet: no more jobs are taken until it is told to resume; at hand: %s.", _jobs(len(worker.running)))
    else:
        log.info("Jobs are taken again.")


def given_up(worker: Worker) -> None:
    """Say that it ends though the server did not answer."""
    log.warning("The server did not answer. %s left to lapse with their leases.", _jobs(len(worker.running)))


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


def begun(attempt: Attempt) -> None:
    """Say that an attempt begins."""
    if log.isEnabledFor(logging.INFO):
        job = attempt.job
        again = f", attempt {number}" if (number := job.retries - job.remaining + 1) > 1 else ""
        log.info("%s %s of %s begins%s", job.klass, job.jid, job.queue, again, extra=attempt.facts)


def settled(attempt: Attempt, reply: Any) -> None:
    """Say how an attempt ended, once the server has said so."""
    if attempt.outcome is None and not attempt.began:
        log.debug("%s %s is given back: it had not begun", attempt.job.klass, attempt.jid, extra=attempt.facts)
        return
    level, text = _ending(attempt, reply)
    if log.isEnabledFor(level):
        log.log(level, "%s %s %s", attempt.job.klass, attempt.jid, text, extra=attempt.facts)


def _ending(attempt: Attempt, reply: Any) -> tuple[int, str]:
    outcome, after = attempt.outcome, f"after {duration(attempt.ran)}"
    if isinstance(outcome, Completed):
        return logging.INFO, f"complete {after}" + (" (and failed: it was revoked)" if reply == "failed" else "")
    if isinstance(outcome, Unknown):
        return logging.ERROR, f"is given back. {outcome.sentence}"
    if isinstance(outcome, Retried) and reply != -1:
        again = f"is tried again in {outcome.delay_ms / 1000:g} s ({reply} left)"
        return logging.WARNING, f"{again}, {after}: {summary(outcome.message)}"
    if isinstance(outcome, Retried | Failed):
        return logging.ERROR, f"failed ({outcome.group}) {after}: {summary(outcome.message)}"
    if isinstance(outcome, Released) and outcome.depends:
        return logging.INFO, f"waits for {_jobs(len(outcome.depends))}, {after}"
    why = f": {attempt.aborted.sentence}" if attempt.aborted is not None else ""
    return logging.INFO, f"is given back {after}{why}"


def lost(attempt: Attempt, sentence: str) -> None:
    """Say that a lock is lost, and who has it."""
    log.warning("%s %s is aborted. %s", attempt.job.klass, attempt.jid, sentence, extra=attempt.facts)


def aborted(attempt: Attempt, abort: Abort) -> None:
    """Say that an attempt is not to go on."""
    log.warning("%s %s is aborted. %s", attempt.job.klass, attempt.jid, abort.sentence, extra=attempt.facts)


def duration(seconds: float) -> str:
    """A duration for a person.

    >>> duration(0.00042), duration(0.25), duration(12.34), duration(3700)
    ('0.4 ms', '250 ms', '12.3 s', '61 min 40 s')
    """
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def summary(text: str) -> str:
    """What happened in a line, and if there is more to say, that below.

    >>> summary("by the job")
    'by the job'
    """
    above, newline, last = text.strip().rpartition("\n")
    return f"{last}\n{above}" if newline else last

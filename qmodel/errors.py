"""The exceptions of qmodel.

`QmodelError` is the base of all. `ConnectError` means that a backend could not be reached. Every refusal of the
catalogue (`qmodel.contract.refusals`) has a subclass of `RefusedError`, with the facts as attributes:

    try:
        job.complete()
    except LockLost as lost:
        print(f"{lost.worker} has job {lost.jid} now")

The classes are written out so that editors and type checkers know them; a test compares them with the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from qmodel.contract.arguments import Operations
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import BESIDE_OTHERS, EVERY_REASON, Refusal


class QmodelError(Exception):
    """Base class of all exceptions that qmodel raises on purpose."""


class ConnectError(QmodelError):
    """A backend could not be reached: one sentence for the problem, another for the next step."""

    def __init__(self, sentence: str, next_step: str) -> None:
        super().__init__(sentence, next_step)
        self.sentence = sentence
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.sentence} {self.next_step}"


class NotConfirmed(ConnectError):
    """Operations were executed, and were not confirmed in time: a failover, or a power failure, may lose them.

    `operations` are those of the call, each with its request id, and `replies` are their replies; None stands for one
    that was not sent. `client.execute_many(error.operations)` executes nothing twice, and confirms.
    """

    def __init__(
        self, where: str, what: str, seconds: float, operations: Iterable[Operation], replies: Iterable[object]
    ) -> None:
        super().__init__(
            f"{where} executed it, and did not confirm it within {seconds:g} seconds: {what}.",
            "Send the same operation with the same request id: that changes nothing more, and confirms it. "
            "`qmodel doctor` shows the replicas.",
        )
        self.operations = list(operations)
        self.replies = list(replies)


class CorruptError(ConnectError):
    """A key of the namespace is damaged, or an inner command failed in the middle of a step.

    `key` is the key. If `kept` is true, the step is whole as soon as the next call that writes has done its rest;
    otherwise nothing was changed. All calls that do not need the key go on.

    >>> error = CorruptError.read("CORRUPT ql:q:a-work\\tnothing was changed: it is of another type")
    >>> error.key, error.kept
    ('ql:q:a-work', False)
    """

    code = "CORRUPT"

    def __init__(self, key: str, what: str) -> None:
        self.key = key
        self.what = what
        self.kept = what.startswith("the step is kept")
        super().__init__(
            f"The key {key} cannot be used: {what.rstrip('.')}.",
            "Use the version of qmodel that wrote it, or restore a backup."
            if what.startswith("its text is not")
            else "Run `qmodel doctor`; `qmodel doctor --resolve` mends it.",
        )

    def __reduce__(self) -> tuple[type[CorruptError], tuple[str, str]]:
        return type(self), (self.key, self.what)

    @classmethod
    def read(cls, text: str) -> CorruptError:
        """Read the error reply of the library: `CORRUPT`, the key, a tab, and what is wrong."""
        key, _, what = text.removeprefix("CORRUPT ").rpartition("\t")
        return cls(key, what)


class LocalError(ConnectError):
    """A problem of this machine that another URL would not solve: a missing package, a used port, conflicting
    options.
    """


def not_installed(error: ImportError, needs: str, packages: str, extra: str) -> LocalError:
    """Make the error for a failed import: the missing package, and how to install it. `needs`: "HTTP needs".

    If the missing module is part of qmodel, the import error is raised as it is: no package could be installed for it.
    """
    if (error.name or "").startswith("qmodel"):
        raise error
    checkout = f" (or, in a checkout of qmodel: pip install '.[{extra}]')" if extra else ""
    return LocalError(
        f"{needs} the package {error.name}, which is not installed.", f"Run: pip install {packages}{checkout}"
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Find the known word closest to an unknown one; empty if none is close."""
    import difflib  # it is needed only when something is wrong

    close = difflib.get_close_matches(word, list(known), 1)
    return close[0] if close else ""


def hint(word: str, known: Iterable[str], what: str) -> str:
    """Say what to write instead of an unknown word: the closest known word, or else all of them after `what`."""
    names = list(known)
    close = did_you_mean(word, names)
    return f"Did you mean {close!r}?" if close else f"{what} {', '.join(names) or 'none'}."


class DataError(QmodelError, ValueError):
    """Data or a result is not JSON, or cannot become JSON. Use `text` for other text."""


class FlowError(QmodelError, ValueError):
    """A flow that cannot be built: one sentence for the problem, another for the next step."""

    def __init__(self, sentence: str, next_step: str) -> None:
        super().__init__(sentence, next_step)
        self.sentence = sentence
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.sentence} {self.next_step}"


class NotLoadedError(QmodelError, AttributeError):
    """Only the id of a job is known so far; `await job.refresh()` fetches the rest."""


class WorkerNotSeen(QmodelError, LookupError):
    """A signal was meant for a worker that is not on the list of workers."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"There is no worker {self.name!r}: none of that name has taken jobs lately. `qmodel workers` lists them."
        )


class RequestNotEnded(QmodelError, TimeoutError):
    """A wait for a request timed out. The request continues."""

    def __init__(self, id: str, timeout: float) -> None:
        super().__init__(id, timeout)
        self.id = id
        self.timeout = timeout

    def __str__(self) -> str:
        return f"Request {self.id} has not ended within {self.timeout:g} s. Wait on, or see how far it has come."


class NotEnded(QmodelError, TimeoutError):
    """A wait for a job timed out. The job continues."""

    def __init__(self, jid: str, timeout: float) -> None:
        super().__init__(jid, timeout)
        self.jid = jid
        self.timeout = timeout

    def __str__(self) -> str:
        return f"Job {self.jid} has not ended within {self.timeout:g} s. Wait on, or look at its state."


class NobodyPerforms(NotEnded):
    """A wait for a job in the memory of this process, in which no worker runs."""

    def __str__(self) -> str:
        return (
            f"Nobody performs job {self.jid}: no URL is set, so it is in the memory of this process, and no worker "
            "runs here. Set QMODEL_URL (redis://localhost:6379/0) for this program and its workers, or start a Worker "
            "in a thread."
        )


class JobFailed(QmodelError):
    """The awaited job has failed, with a group and a message."""

    def __init__(self, jid: str, group: str, message: str) -> None:
        super().__init__(jid, group, message)
        self.jid = jid
        self.group = group
        self.message = message

    def __str__(self) -> str:
        return f"Job {self.jid} failed ({self.group}): {self.message}"


class JobRevoked(JobFailed):
    """The awaited job was revoked."""


class JobExpired(JobFailed):
    """The awaited job did not begin within its time to live."""


class JobCanceled(QmodelError):
    """The awaited job was canceled."""

    def __init__(self, jid: str) -> None:
        super().__init__(jid)
        self.jid = jid

    def __str__(self) -> str:
        return f"Job {self.jid} was canceled."


class ResultNotKept(QmodelError):
    """The awaited job has ended and was deleted at once, with its result."""

    def __init__(self, jid: str) -> None:
        super().__init__(jid)
        self.jid = jid

    def __str__(self) -> str:
        return (
            f"Job {self.jid} has ended, but it was not kept, and nobody can read its result. "
            "Keep complete jobs for as long as somebody may wait: options jobs-history and jobs-history-count."
        )


class RefusedError(QmodelError):
    """An operation was refused, and changed nothing.

    `code` is the refusal's code in the catalogue, `facts` are its facts by name, `sentence` describes the problem, and
    `next_step` the remedy.
    """

    code: ClassVar[str] = ""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal
        self.facts: dict[str, str] = refusal.named
        for name, value in self.facts.items():
            setattr(self, name, value)

    @property
    def sentence(self) -> str:
        """What went wrong."""
        return EVERY_REASON[self.code].sentence.format(**self.facts)

    @property
    def next_step(self) -> str:
        """What to do."""
        return EVERY_REASON[self.code].next_step.format(**self.facts)

    def __str__(self) -> str:
        return f"{self.sentence} {self.next_step}"


class BadArgument(RefusedError):
    code = "BAD_ARGUMENT"
    operation: str
    argument: str

    @property
    def next_step(self) -> str:
        """What the argument must be, if the catalogue knows it."""
        expected = _expected(self.operation, self.argument)
        if expected is None:
            return super().next_step
        rule = BESIDE_OTHERS.get(self.argument, {}).get(self.operation, "")
        return f"It must be {expected}{rule and '; '}{rule}."


class JobNotFound(RefusedError):
    code = "JOB_NOT_FOUND"
    jid: str


class LockLost(RefusedError):
    code = "LOCK_LOST"
    jid: str
    token: str
    state: str
    worker: str


class Forked(RefusedError):
    code = "FORKED"
    after: str
    epoch: str
    current: str
    common: str


class EpochPassed(RefusedError):
    code = "EPOCH_PASSED"
    epoch: str
    current: str


class WrongState(RefusedError):
    code = "WRONG_STATE"
    jid: str
    state: str


class DependencyNotFound(RefusedError):
    code = "DEPENDENCY_NOT_FOUND"
    jid: str
    dependency: str


class DependencyCycle(RefusedError):
    code = "DEPENDENCY_CYCLE"
    path: str


class DependencyLimit(RefusedError):
    code = "DEPENDENCY_LIMIT"
    jid: str


class DuplicateJid(RefusedError):
    code = "DUPLICATE_JID"
    jid: str


class NotADeadLetter(RefusedError):
    code = "NOT_A_DEAD_LETTER"
    jid: str


class DuplicateKey(RefusedError):
    code = "DUPLICATE_KEY"
    jid: str
    unique: str


class HasDependents(RefusedError):
    code = "HAS_DEPENDENTS"
    jid: str
    dependent: str


class CancelLimit(RefusedError):
    code = "CANCEL_LIMIT"
    jid: str


class ScheduleNotFound(RefusedError):
    code = "SCHEDULE_NOT_FOUND"
    jid: str


class SubscriptionNotFound(RefusedError):
    code = "SUBSCRIPTION_NOT_FOUND"
    subscription: str


class BadSubject(RefusedError):
    code = "BAD_SUBJECT"
    subject: str


class BadPattern(RefusedError):
    code = "BAD_PATTERN"
    pattern: str
    segment: str


class ScheduleOver(RefusedError):
    code = "SCHEDULE_OVER"
    jid: str


class TooWide(RefusedError):
    code = "TOO_WIDE"
    operation: str


class NotWhole(RefusedError):
    code = "NOT_WHOLE"
    klass: str
    key: str


class LimitReached(RefusedError):
    code = "LIMIT_REACHED"
    what: str
    most: str


class OverCapacity(RefusedError):
    code = "OVER_CAPACITY"
    jid: str
    throttle: str
    cost: str
    capacity: str


class OverBudget(RefusedError):
    code = "OVER_BUDGET"
    operation: str
    units: str
    most: str
    parts: str


class RequestNotFound(RefusedError):
    code = "REQUEST_NOT_FOUND"
    request: str


class RequestConflict(RefusedError):
    code = "REQUEST_CONFLICT"
    request: str
    argument: str
    value: str


class RequestState(RefusedError):
    code = "REQUEST_STATE"
    request: str
    state: str


class JobExists(RefusedError):
    code = "JOB_EXISTS"
    jid: str


class QueueNotEmpty(RefusedError):
    code = "QUEUE_NOT_EMPTY"
    queue: str
    length: str


class QueueBusy(RefusedError):
    code = "QUEUE_BUSY"
    queue: str
    jobs: str


class UnknownOption(RefusedError):
    code = "UNKNOWN_OPTION"
    option: str


class BadValue(RefusedError):
    code = "BAD_VALUE"
    option: str
    low: str
    high: str


class CrossShard(RefusedError):
    code = "CROSS_SHARD"
    name: str
    shard: str
    other: str
    other_shard: str


class Untagged(RefusedError):
    code = "UNTAGGED"
    operation: str
    name: str


class ByShard(RefusedError):
    code = "BY_SHARD"
    operation: str


class SplitLimit(RefusedError):
    code = "SPLIT_LIMIT"
    throttle: str
    argument: str
    shards: str


BY_CODE: dict[str, type[RefusedError]] = {cls.code: cls for cls in RefusedError.__subclasses__()}
"""The exception class of each refusal code."""


def error_of(refusal: Refusal) -> RefusedError:
    """Make the exception of a refusal."""
    return BY_CODE[refusal.code](refusal)


def _expected(operation: str, argument: str) -> str | None:
    """Describe the valid values of an argument of an operation, or of the operations inside it."""
    if argument == "now":
        return "a moment in whole milliseconds since the epoch, before the year 5138"
    for known in CATALOGUE[operation].arguments:
        if known.name == argument:
            return known.kind.expected
        if isinstance(known.kind, Operations):
            return _expected(known.kind.of.lower(), argument)
    return None

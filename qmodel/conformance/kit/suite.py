"""The suite that tests drivers, in levels. Each level includes the levels before it.

- `smoke`: the probes, and four checks that vectors cannot express. It takes seconds; the first failure names the fault.
- `core`: the distilled vectors.
- `full`: every scenario of the matrix, the directed histories (they reach limits of a thousand), and generated ones.
- `soak`: generated histories, for a given number of minutes.

After a failure the later levels do not run: most of their failures would have the same cause.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from qmodel.conformance.compare import runner
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.histories.directed.load import directed, reasons
from qmodel.conformance.kit import expected as expecting
from qmodel.conformance.kit import probes, vectors
from qmodel.conformance.kit.driver import Broken
from qmodel.conformance.kit.expected import Expected
from qmodel.conformance.kit.judge import Difference, compare
from qmodel.conformance.kit.requirements import REQUIREMENTS
from qmodel.conformance.kit.session import Finding, Session
from qmodel.conformance.kit.vectors import Vector
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops

LEVELS = ("smoke", "core", "full", "soak")
GENERATED = 300
STEPS = 60
MOST_FAILURES = 5

PASSED, FAILED, LEFT_OUT, EXPECTED, UNEXPECTED = "passed", "failed", "left out", "failed as expected", "passed against"


class Case(NamedTuple):
    """A check of the suite, and the function that performs it."""

    level: str
    id: str
    why: str
    requirements: tuple[str, ...]
    operations: frozenset[str]
    judge: Callable[[Session], Finding | None]

    @property
    def name(self) -> str:
        """The level and the id."""
        return f"{self.level}/{self.id}"


class Result(NamedTuple):
    """The result of a case; `reason` says why the case was left out, or why it was expected to fail."""

    case: Case
    status: str
    seconds: float = 0.0
    finding: Finding | None = None
    reason: str = ""


@dataclass(slots=True)
class Report:
    """The results of a run."""

    drivers: tuple[str, ...]
    level: str
    seed: str
    results: list[Result] = field(default_factory=list)
    operations: int = 0
    seconds: float = 0.0
    stale: list[Expected] = field(default_factory=list)
    """Expected failures that match no case of the run."""

    def of(self, *statuses: str) -> list[Result]:
        """Select the results that have one of these statuses."""
        return [result for result in self.results if result.status in statuses]

    @property
    def failures(self) -> list[Result]:
        """The cases that failed, or that passed although a failure was expected."""
        return self.of(FAILED, UNEXPECTED)

    @property
    def conforms(self) -> bool:
        """Whether there are no failures and no outdated expectations."""
        return not self.failures and not self.stale

    @property
    def exit_code(self) -> int:
        """The exit code: 0 if the driver conforms, 1 if it does not, 3 if it broke the protocol."""
        broke = any(result.finding and result.finding.broken for result in self.failures)
        return 3 if broke else 0 if self.conforms else 1


Progress = Callable[[Report], None]


def run(
    session: Session,
    level: str = "core",
    *,
    seed: str = "1",
    minutes: float = 1,
    expected: Sequence[Expected] = (),
    most_failures: int = MOST_FAILURES,
    progress: Progress = lambda report: None,
) -> Report:
    """Test drivers with the suite, up to a level. `minutes` is how long `soak` generates histories."""
    report = Report(tuple(driver.name for driver in session.drivers), level, seed)
    began = time.monotonic()
    for current in LEVELS[: LEVELS.index(level) + 1]:
        session.batches = current != "smoke"
        until = time.monotonic() + 60 * minutes
        for case in cases(current, session, seed):
            if current == "soak" and time.monotonic() > until:
                break
            report.results.append(_result(case, session, expected))
            report.operations, report.seconds = session.operations, time.monotonic() - began
            progress(report)
            if len(report.failures) >= most_failures or _hopeless(report):
                break
        if report.failures:
            break
    else:
        tried = [result.case.name for result in report.results]
        levels = {*LEVELS[: LEVELS.index(level) + 1], "*"}
        report.stale = [one for one in expected if one.level in levels and not any(map(one.fits, tried))]
    return report


def _hopeless(report: Report) -> bool:
    """Tell whether to stop: the driver does not start, hangs, or has broken the protocol three times."""
    broken = [result.finding.broken for result in report.failures if result.finding and result.finding.broken]
    hangs = any(one.requirement == "DRIVER-3" for one in broken)
    return hangs or len(broken) >= 3 or (len(broken) == 1 and len(report.results) == 1)


def _result(case: Case, session: Session, expected: Iterable[Expected]) -> Result:
    missing = case.operations - session.can
    if missing:
        return Result(case, LEFT_OUT, reason=f"not announced: {', '.join(sorted(missing))}")
    began = time.monotonic()
    finding = case.judge(session)
    seconds = time.monotonic() - began
    listed = expecting.of(case.name, expected)
    if listed is None:
        return Result(case, FAILED if finding else PASSED, seconds, finding)
    return Result(case, EXPECTED if finding else UNEXPECTED, seconds, finding, listed.reason)


# ---- cases


def cases(level: str, session: Session, seed: str) -> Iterator[Case]:
    """Generate the cases of a level."""
    if level == "smoke":
        yield from _smoke(session)
    elif level == "soak":
        yield from _generated(level, session, f"{seed} soak", 10**9)
    else:
        yield from map(_of_vector, vectors.load(level))
        if level == "full":
            yield from of_directed()
            yield from _generated(level, session, seed, GENERATED)


def _of_vector(vector: Vector) -> Case:
    about = vector.id if vector.id in REQUIREMENTS else ""
    return Case(
        vector.level,
        vector.id,
        vector.why,
        vector.requirements,
        frozenset(step.op.spec.name for step in vector.steps),
        lambda session: session.judge(vector.steps, vector.outcomes, about),
    )


def of_directed() -> Iterator[Case]:
    """Generate the cases of the directed histories, which are too long for a file of vectors."""
    why = reasons()
    for named in directed():
        yield _of_vector(vectors.made(named.name.replace("_", "-"), "full", why[named.name], named.steps))


def _generated(level: str, session: Session, seed: str, count: int) -> Iterator[Case]:
    for number in range(count):
        history = runner.draw(RandomChooser(f"{seed} {number}"), STEPS, typed=False, only=session.can)
        why = f"Drawn from the seed `{seed} {number}`."

        def judge(session: Session, history: list[Step] = history) -> Finding | None:
            return session.judge(history)

        yield Case(level, f"generated-{number}", why, (), frozenset(), judge)


_FEW = frozenset(("put", "length", "waiting"))


def _smoke(session: Session) -> Iterator[Case]:
    """Generate the probes, and between them the checks that vectors cannot express: simple checks come first."""
    yield Case("smoke", "DRIVER-5", _hello.__doc__ or "", ("DRIVER-5",), frozenset(), _hello)
    for vector in probes.vectors():
        yield _of_vector(vector)
        if vector.id == "NUMBER-1":
            yield Case("smoke", "SPACE-1", _space.__doc__ or "", ("SPACE-1",), _FEW, _space)
        if vector.id == "TIME-2" and session.namespaces.ours:
            yield Case("smoke", "TIME-3", _clock.__doc__ or "", ("TIME-3",), frozenset(("pop",)), _clock)
    yield Case("smoke", "DRIVER-7", _batch.__doc__ or "", ("DRIVER-7",), _FEW, _batch)


def _hello(session: Session) -> Finding | None:
    """The driver starts, and reports its name and features."""
    try:
        session.start()
    except Broken as broken:
        return Finding(REQUIREMENTS[broken.requirement], (), (), broken=broken)
    return None


def _space(session: Session) -> Finding | None:
    """A job that is put under one prefix does not exist under another prefix, and still exists under the first one."""
    put, empty, there = ops.Put("space", "space", "space", ""), ops.Length("space"), ops.Waiting("space")
    steps = [Step(0, put), Step(0, empty), Step(0, there)]
    expected = vectors.expected(steps)
    expected[1] = {"reply": 0}
    for driver in session.drivers:
        prefixes = [session.namespaces.fresh(), session.namespaces.fresh()]
        try:
            for at, which in enumerate((0, 1, 0)):
                driver.reset(session.namespaces.url, prefixes[which])
                found = driver.step(steps[at])
                difference = compare(at, driver.name, expected[at], found)
                if difference is not None:
                    difference = difference._replace(paths=(*difference.paths, _RESETS[at]))
                    return Finding(REQUIREMENTS["SPACE-1"], steps[: at + 1], expected[: at + 1], difference)
        except Broken as broken:
            return Finding(REQUIREMENTS[broken.requirement], steps, expected, broken=broken)
    return None


_RESETS = ("after a reset", "after a reset to another prefix", "after a reset to the first prefix")


def _clock(session: Session) -> Finding | None:
    """A pop without a time uses the server's clock: it happens between our operations before and after it."""
    prefix = session.namespaces.fresh()
    for driver in session.drivers:
        op = ops.Pop("clock", "driver")
        try:
            driver.reset(session.namespaces.url, prefix)
            before = session.namespaces.seen(prefix, "before")
            found = driver.execute(op)
            after = session.namespaces.seen(prefix, "after")
        except Broken as broken:
            return Finding(REQUIREMENTS[broken.requirement], (), (), broken=broken)
        at = session.namespaces.seen(prefix, "driver", pop=False)
        if found != {"reply": []} or not before <= at <= after:
            paths = (f"the server's clock went from {before} to {after}, and the pop happened at {at}",)
            difference = Difference(0, driver.name, {"reply": []}, found, paths)
            return Finding(REQUIREMENTS["TIME-3"], [Step(before, op)], [{"reply": []}], difference)
    return None


def _batch(session: Session) -> Finding | None:
    """The operations of a batch get the same answers as the same operations one by one."""
    steps = [Step(0, ops.Put("q", jid, "k", "")) for jid in "cab"]
    steps += [Step(0, ops.Waiting("q")), Step(0, ops.Length("r")), Step(0, ops.Length("q"))]
    session.batches = True
    finding = session.judge(steps, about="DRIVER-7")
    session.batches = False
    return finding

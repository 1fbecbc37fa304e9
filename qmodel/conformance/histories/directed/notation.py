"""The notation of directed histories: the calls of a scenario, with time offsets, tokens by job, and repeats.

    ## a_name
    Why the history was written.

    Put('q', 'a', 'k', '', priority=2)
    +1500 Pop('q', 'w')
    Complete('a', token('a'))
    repeat i in span(0, 999)
      PutMany(tuple(Put('q', f'j{i}-{n}', 'k', 'x' * 40) for n in span(0, 9)))
    look(jobs=('a',), queues=('q',), seq=10009)

- A line is one step: an operation of the catalogue with its arguments in order. `+1500` or `-20` stands for the time
  since the step before it, in milliseconds; without it no time passes. The first step happens at `script.START`.
- `token('a')` is the token of the newest lease of job a; `token('a', 1)` of its first lease.
- `span(0, 999)` counts from 0 to 999, both included; `repeat x, y in (('a', 1), ('b', 2))` goes through a table. The
  steps of a repeat are indented by two spaces.
- `look(...)` reads what the named jobs, queues, workers and so on look like; see `looks`.
- A line that is indented by four spaces or more continues the one before it. `#` begins a comment.

The calls are Python expressions: the files are part of the package, so they are evaluated, without the built-in names.
The model is needed for the tokens alone: it executes a history as far as the last step that names one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from qmodel.conformance.histories.script import START
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.replies import Job
from qmodel.model import engine
from qmodel.model.state.store import Store


class Line(NamedTuple):
    """A step as it is written, and the repeat that it belongs to, if any."""

    number: int
    text: str
    inner: bool


class Written(NamedTuple):
    """A history as it is written."""

    theme: str
    name: str
    why: str
    lines: list[Line]


def read(theme: str, text: str) -> list[Written]:
    """Split a file into its histories; the line after a name says why the history was written."""
    found: list[Written] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            found.append(Written(theme, line.removeprefix("## "), "", []))
        elif found and not found[-1].why:
            found[-1] = found[-1]._replace(why=line)
        elif line.strip() and not line.lstrip().startswith("#"):
            _append(found[-1].lines, number, line)
    return found


def _append(lines: list[Line], number: int, line: str) -> None:
    if line.startswith("    "):
        before = lines.pop()
        lines.append(before._replace(text=f"{before.text} {line.strip()}"))
    else:
        lines.append(Line(number, line.strip(), line.startswith("  ")))


class _Call(NamedTuple):
    """A step whose arguments are still to be evaluated, with the values of its repeat."""

    where: str
    offset: CodeType
    call: CodeType
    leases: bool
    values: dict[str, Any]


_STEP = re.compile(r"(?:([+-]\S+) )?(.+)")
_REPEAT = re.compile(r"repeat (\w+(?:, \w+)*) in (.+)")
_GRANTS = ("pop", "pop_any", "complete_and_pop")


def span(first: int, last: int) -> range:
    """Count from one number to another, both included."""
    return range(first, last + 1)


_NAMES = {spec.cls.__name__: spec.cls for spec in CATALOGUE.values()} | {"span": span, "tuple": tuple}


def steps(written: Written) -> list[Step]:
    """Evaluate a history."""
    calls = list(_calls(written))
    last = max((at for at, call in enumerate(calls) if call.leases), default=0)
    model, now, found = _Leases(), START, list[Step]()
    names = {"__builtins__": {}, **_NAMES, "token": model.token, "look": looks}
    for at, call in enumerate(calls):
        names.update(call.values)
        now += eval(call.offset, names)
        made = eval(call.call, names)
        new = [Step(now, op) for op in (made if isinstance(made, list) else [made])]
        found += new
        if at < last:
            model.run(new)
    return found


def _calls(written: Written) -> Iterator[_Call]:
    lines = written.lines
    at = 0
    while at < len(lines):
        repeat = _REPEAT.fullmatch(lines[at].text)
        if repeat is None:
            yield _compiled(written, lines[at])
            at += 1
            continue
        end = next((n for n in range(at + 1, len(lines)) if not lines[n].inner), len(lines))
        body = [_compiled(written, line) for line in lines[at + 1 : end]]
        for values in _table(repeat[1].split(", "), repeat[2]):
            yield from (call._replace(values=values) for call in body)
        at = end


def _table(names: list[str], text: str) -> Iterator[dict[str, Any]]:
    for row in eval(text, {"__builtins__": {}, "span": span}):
        yield dict(zip(names, row if len(names) > 1 else (row,), strict=True))


def _compiled(written: Written, line: Line) -> _Call:
    where = f"{written.theme}.txt:{line.number}"
    found = _STEP.fullmatch(line.text)
    assert found is not None, where
    offset, call = compile(found[1] or "0", where, "eval"), compile(found[2], where, "eval")
    return _Call(where, offset, call, "token(" in found[2], {})


class _Leases:
    """The model, and the tokens that it granted for each job."""

    def __init__(self) -> None:
        self._store = Store()
        self._tokens: dict[str, list[int]] = {}

    def token(self, jid: str, lease: int = 0) -> int:
        """Give the token of a job's newest lease, or of its first, second, ..."""
        return self._tokens[jid][lease - 1]

    def run(self, history: list[Step]) -> None:
        """Execute steps, and note the leases that they grant."""
        for step in history:
            outcome = engine.step(self._store, *step)
            if step.op.spec.name in _GRANTS and isinstance(outcome, tuple):
                self._note(getattr(outcome, "jobs", outcome))

    def _note(self, granted: Any) -> None:
        for job in granted:
            if isinstance(job, Job) and job.token not in self._tokens.setdefault(job.jid, []):
                self._tokens[job.jid].append(job.token)


def looks(
    jobs: tuple[str, ...] = (),
    queues: tuple[str, ...] = (),
    workers: tuple[str, ...] = (),
    schedules: tuple[str, ...] = (),
    uniques: tuple[str, ...] = (),
    requests: tuple[str, ...] = (),
    results: tuple[str, ...] = (),
    completed: int = 0,
    seq: int = 0,
) -> list[Operation]:
    """Read everything that names these; `completed` is how many jobs are kept, `seq` the number of the last event."""
    lists = (ops.Waiting, ops.Scheduled, ops.Depending, ops.Throttled, ops.Running, ops.Stalled)
    found: list[Operation] = [read(jid) for jid in jobs for read in (ops.Get, ops.Why)]
    found += [read(queue) for queue in queues for read in (*lists, ops.Queue, ops.Stats)]
    found += map(ops.Worker, workers)
    found += map(ops.RecurGet, schedules)
    found += [read for queue in queues for read in (ops.Recurring(queue), ops.Peek(queue, 5))]
    found += [*map(ops.UniqueGet, uniques), *map(ops.RequestGet, requests), *map(ops.Results, results)]
    found += [ops.Throttles(), ops.ThrottlesUsed(), ops.Subscriptions(), ops.Workers(), ops.Queues(), ops.Completed()]
    found += [ops.Completed(completed + 1, 5), ops.FailedGroups(), ops.Tracked(), ops.TopTags(), ops.Config()]
    return [*found, ops.Events(max(seq - 30, 0), 50)]

"""The matrix: every situation of a job, every operation, and every outcome that can follow.

Random histories do not reach every cell, so the matrix is enumerated. A breadth-first search over the model finds a
shortest history to every reachable situation, with two jobs (the cells are about `a`; `b` is the other one), two
workers and two queues. In each situation it tries every operation with every class of arguments that may matter (the
token of the lease, an old one, a wrong one; with and without a delay, a dependency, a next queue...), and sends it
again, to get the reply to a resend.

A cell is (operation, situation of `a` before, outcome). The outcome is the code of the refusal, or the situation of
`a` after the operation and the emitted events. Each cell is kept as a scenario: its shortest history and the model's
reply. `python -m qmodel.conformance.histories.matrix FOLDER` writes them to a folder, one file for each operation, and
a digest of the code that they come from: as long as it is the same, the search would find the same. The suite's copy is
`tests/conformance/scenarios`. Every implementation must agree with all of them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from qmodel.conformance.code_digest import Stamp
from qmodel.conformance.compare import report
from qmodel.conformance.histories.generate import succeeds
from qmodel.conformance.histories.matrix_probes import probes, probes_of_no_job, resends
from qmodel.conformance.subjects.base import History, Step
from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.copies import copy
from qmodel.model.state import config
from qmodel.model.state.history import stages
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, events_after

SITUATIONS = {
    "missing": "There is no such job",
    "waiting": "The job is ready in its queue",
    "scheduled": "The job is delayed",
    "scheduled, due": "The job's delay has ended, but no operation has moved the job to its queue yet",
    "depends": "The job depends on a job that has not ended",
    "throttled": "The job waits for its concurrency key or a throttle",
    "running": "The job is leased",
    "running, in grace": "The job's lease has expired, but its grace period has not",
    "running, lapsed": "The job's lease and grace period have expired, but no operation has ended the lease yet",
    "stalled": "A timeout took the job's lease away",
    "complete": "The job is complete",
    "failed": "The job has failed",
    "any": "In any situation of the job",
}

JOBLESS = {
    "metadata_get", "metadata_set", "metadata_increment", "metadata_unset",
    "config", "config_get", "config_set", "config_unset", "begin_epoch", "deregister", "pause", "unpause", "top_tags",
    "events", "metrics", "newest", "journal", "unique_get", "unique_release", "replay",
    "request_open", "request_add", "request_touch", "request_close", "request_put", "request_get", "request_jobs",
    "requests", "request_tune", "request_cancel", "request_forget",
    "recur", "unrecur", "recur_get", "recur_update", "recur_tag", "recur_untag", "recur_pause",
    "recur_unpause", "recur_now", "recur_advance", "recurring_unset", "recurring", "fire",
    "throttle_set", "throttle_unset", "throttle_get", "throttles", "throttles_used",
    "publish", "subscribe", "catch_up", "unsubscribe", "subscription_get", "subscriptions", "messages", "trim",
}  # fmt: skip
"""Operations whose outcome does not depend on the situation of a job."""


def situation(store: Store, now: int, jid: str = "a") -> str:
    """Give the situation of a job: its stored state, and whether its delay, lease or grace period has ended."""
    job = store.jobs.get(jid)
    if job is None:
        return "missing"
    if job.state == "scheduled" and job.ready_at <= now:
        return "scheduled, due"
    if job.state == "running" and job.expires_at <= now:
        over = job.expires_at + config.value(store, "grace-period") <= now
        return "running, lapsed" if over else "running, in grace"
    return job.state


class Cell(NamedTuple):
    """A cell of the matrix."""

    operation: str
    situation: str
    outcome: str


class Scenario(NamedTuple):
    """A cell, and a history that ends with the step of this cell."""

    cell: Cell
    history: History

    @property
    def name(self) -> str:
        """A short name, unique within the operation."""
        return f"{self.cell.situation}: {self.cell.outcome}"

    @property
    def sentence(self) -> str:
        """A sentence that describes the scenario."""
        return f"{SITUATIONS[self.cell.situation]}; {_effect(self.cell)}."


def _effect(cell: Cell) -> str:
    name, outcome, missing = cell.operation, cell.outcome, cell.situation == "missing"
    if outcome.startswith("refused "):
        code, _, argument = outcome.removeprefix("refused ").partition(" ")
        return f"{name} is refused with {code}{' for ' + argument if argument else ''}, and nothing changes"
    plain = {
        "again": f"a resend of {name} gives the same reply and changes nothing more",
        "nothing": f"{name} changes nothing",
        "shown": f"{name} returns data",
        "not shown": f"{name} returns no data",
    }
    if outcome in plain:
        return plain[outcome]
    after, _, events = outcome.partition(" (")
    special = {
        "stays": "does not create it" if missing else "does not change the job's state",
        "-> missing": "removes the job",
    }
    moved = f"{'creates it in' if missing else 'moves the job to'} state {after.removeprefix('-> ')}"
    return f"{name} {special.get(after, moved)}; events: {events.rstrip(')').replace(' ', ', ') or 'none'}"


# ---- the search


class _Node(NamedTuple):
    history: tuple[Step, ...]
    now: int
    store: Store
    """After the history; whoever goes on from here makes a copy."""


def _replayed(history: History) -> Store:
    store = Store()
    for step in history:
        engine.step(store, *step)
    return store


def _keys(store: Store, moments: Iterable[int]) -> list[tuple[Any, ...]]:
    """Give the key of a state at each of some moments. The search drops a history if its key was reached before."""
    job = store.jobs.get("a")
    lasting = (_lasting(store), tuple(_ended(job)[-2:]) if job is not None else ())
    return [(lasting, _situations(store, now)) for now in moments]


def _ended(job: Job) -> list[str]:
    return [what for what, _, _ in stages(job) if what in _ENDS]


def _situations(store: Store, now: int) -> tuple[str, str]:
    return situation(store, now), situation(store, now, "b")


def _lasting(store: Store) -> tuple[Any, ...]:
    """Give the part of the key that matters to all operations, apart from the situations and earlier leases' ends."""
    found: list[Any] = [bool(store.queues)]
    for jid in ("a", "b"):
        job = store.jobs.get(jid)
        if job is None:
            found.append(None)
            continue
        failure = job.failure.group if job.state == "failed" and job.failure is not None else ""
        found.append((bool(job.dependencies), bool(job.dependents), "line" in job.options))
        found.append((failure, bool(_ended(job))))
        if jid == "a":
            found.append((job.queue, job.worker, job.remaining == 0))
    return tuple(found)


_ENDS = ("completed", "failed", "retried", "released")
"""The stages that answer a resend; the last two leases are tried."""

_WAITS = (0, 1000, 60_000, 70_000)


def _moves(store: Store) -> Iterator[Operation]:
    """Give the steps that the search may take next."""
    yield ops.Put("q", "a", "k", "")
    yield ops.Put("q", "a", "k", "", delay_ms=1000)
    yield ops.Put("q", "a", "k", "", retries=0)
    yield ops.Put("q", "b", "k", "")
    yield ops.Put("q", "a", "k", "", depends=("b",))
    yield ops.Put("q", "b", "k", "", depends=("a",))
    yield ops.Put("q", "a", "k", "", ordered="o")
    yield ops.Put("q", "b", "k", "", ordered="o")
    yield ops.Pop("q", "u")
    for jid in ("a", "b"):
        job = store.jobs.get(jid)
        if job is not None and job.state == "running":
            yield ops.Complete(jid, job.token)
            if jid == "a":
                yield ops.Complete(jid, job.token, next="r")
                yield ops.Fail(jid, job.token, "g", "m")
                yield ops.Retry(jid, job.token)
                yield ops.Retry(jid, job.token, delay_ms=1000)
                yield ops.Release(jid, job.token)
                yield ops.Timeout((jid,))
    yield ops.Cancel(("a",))


def _nodes() -> Iterator[_Node]:
    """Find every reachable situation with a shortest history; there are about 6000."""
    seen = set()
    level = [_Node((), 0, Store())]
    while level:
        found = []
        for node in level:
            store = node.store
            moments = [node.now + wait for wait in _WAITS]
            for op in list(_moves(store)):
                after = copy(store)
                engine.step(after, node.now, op)
                if after.seq == store.seq:
                    continue
                for moment, key in zip(moments, _keys(after, moments), strict=True):
                    if key not in seen:
                        seen.add(key)
                        found.append(_Node((*node.history, Step(node.now, op)), moment, after))
        yield from level
        level = found


# ---- the cells


def scenarios() -> dict[Cell, Scenario]:
    """Build the matrix: every reachable cell, with the first history that reached it."""
    found: dict[Cell, Scenario] = {}
    seen: set[tuple[Any, ...]] = set()
    for node in _nodes():
        before = node.store
        tried = list(resends(before))
        both = _situations(before, node.now)
        circumstances = _lasting(before), both
        if circumstances not in seen:
            seen.add(circumstances)
            tried = list(probes(before))
        if both not in seen:
            seen.add(both)
            tried += probes_of_no_job()
        store = copy(before)
        for probe in tried:
            steps = tuple(Step(node.now, op) for op in probe)
            for step in steps[:-1]:
                engine.step(store, *step)
            unchanged = _try(found, (*node.history, *steps), store)
            if len(steps) > 1 or not unchanged:
                store = copy(before)
    return dict(sorted(found.items(), key=_in_order))


def _try(found: dict[Cell, Scenario], history: tuple[Step, ...], store: Store) -> bool:
    """Execute the last step of a history twice and record the cells; tell whether it changed nothing."""
    now, op = history[-1]
    before = situation(store, now)
    seq = store.seq
    outcome = engine.step(store, now, op)
    label = _label(store, now, op, before, outcome, seq)
    _enter(found, Cell(op.spec.name, _where(op, outcome, before), label), history)
    if isinstance(outcome, Refusal) or op.spec.reads:
        return True
    if store.seq == seq:
        return False
    seq = store.seq
    if engine.step(store, now, op) == outcome and store.seq == seq:
        _enter(found, Cell(op.spec.name, _where(op, outcome, before), "again"), (*history, history[-1]))
    return False


def _where(op: Operation, outcome: Any, before: str) -> str:
    bad = isinstance(outcome, Refusal) and outcome.code == "BAD_ARGUMENT" and op.spec.name != "complete_many"
    return "any" if op.spec.name in JOBLESS or (bad and outcome.facts[1] not in ("delay_ms", "depends")) else before


def _enter(found: dict[Cell, Scenario], cell: Cell, history: tuple[Step, ...]) -> None:
    known = found.get(cell)
    if known is None or len(history) < len(known.history):
        found[cell] = Scenario(cell, history)


def _label(store: Store, now: int, op: Operation, before: str, outcome: Any, seq: int) -> str:
    if isinstance(outcome, Refusal):
        bad = f" {outcome.facts[1]}" if outcome.code == "BAD_ARGUMENT" else ""
        return f"refused {outcome.code}{bad}"
    if op.spec.reads:
        return "shown" if succeeds(op, outcome, False) else "not shown"
    events = dict.fromkeys(event.event for event in events_after(store, seq, store.seq - seq))
    after = situation(store, now)
    if not events and op.spec.name != "heartbeat":
        return "again" if op.spec.resend == "lease" else "nothing"
    moved = "stays" if after == before else f"-> {after}"
    return f"{moved} ({' '.join(events)})" if events else moved


def _in_order(item: tuple[Cell, Scenario]) -> tuple[int, int, str]:
    cell, _ = item
    return list(CATALOGUE).index(cell.operation), list(SITUATIONS).index(cell.situation), cell.outcome


# ---- files

PACKAGE = Path(__file__).parents[2]
CODE = ("model/**/*.py", "contract/**/*.py", "conformance/histories/*.py", "conformance/compare/report.py")


def stamp(folder: Path) -> Stamp:
    """Give the stamp of the scenarios in a folder: the code that decides what they are."""
    return Stamp(folder / "code.sha256", PACKAGE, CODE)


def files(found: dict[Cell, Scenario]) -> dict[str, str]:
    """Write the scenarios as text, by the name of their file."""
    texts: dict[str, list[str]] = {}
    for scenario in found.values():
        name = scenario.cell.operation
        if name not in texts:
            texts[name] = [f"{name}: {CATALOGUE[name].summary}\n"]
        texts[name].append(render(scenario))
    return {f"{name}.txt": "\n".join(parts) for name, parts in texts.items()}


def render(scenario: Scenario) -> str:
    """Write a scenario as text: name, sentence, steps, and the events and reply of the last step."""
    history = scenario.history
    lines = [f"{now:>6} {report.call(op)}" for now, op in history[:-1]]
    lines += report.lines_of(history)[-1 - _events_of_last(history) - 1 :]
    return f"## {scenario.name}\n{scenario.sentence}\n\n" + "\n".join(lines) + "\n"


def _events_of_last(history: History) -> int:
    before = _replayed(history[:-1])
    seq = before.seq
    engine.step(before, *history[-1])
    return before.seq - seq


def read(folder: Path) -> dict[Cell, Scenario]:
    """Read the scenarios of a folder."""
    found = {}
    for path in folder.glob("*.txt"):
        for heading, history in parse(path.read_text(encoding="utf-8")).items():
            situation_before, _, outcome = heading.partition(": ")
            cell = Cell(path.stem, situation_before, outcome)
            found[cell] = Scenario(cell, tuple(history))
    return found


def parse(text: str) -> dict[str, list[Step]]:
    """Read the histories of a file of scenarios, by the scenario's name."""
    found: dict[str, list[Step]] = {}
    for line in text.splitlines():
        if line.startswith("## "):
            history = found[line.removeprefix("## ")] = []
        elif line[:6].strip().isdigit() and line[6:7] == " " and line[7:8].isupper():
            history.append(Step(int(line[:6]), parse_call(line[7:])))
    return found


def parse_call(text: str) -> Operation:
    """Read an operation that `report.call` wrote."""
    built: Operation = _built(ast.parse(text, mode="eval").body)
    return built


def _built(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        cls = getattr(ops, node.func.id)
        named = {str(keyword.arg): _built(keyword.value) for keyword in node.keywords}
        built: Operation = cls(*map(_built, node.args), **named)
        return built
    if isinstance(node, ast.Tuple):
        return tuple(map(_built, node.elts))
    return ast.literal_eval(node)


def write(folder: Path) -> None:
    """Write the files of all scenarios and the stamp into a folder, and delete all other text files there."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = files(scenarios())
    for old in folder.glob("*.txt"):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    stamp(folder).renew()


if __name__ == "__main__":
    write(Path(sys.argv[1]))

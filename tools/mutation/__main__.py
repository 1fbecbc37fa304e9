"""`./dev mutate`: break the Lua library and the model on purpose, and check that the suite notices.

    python -m tools.mutation [--side lua|model] [--only FILE] [--sample N] [--seed TEXT] [--seconds N] [--limit N]
                             [--all] [--record FILE] [--distil]

Prints the share of killed mutants (without the known equivalent ones), how many operations the suite needed to notice
them, and the survivors by line. Exits with 1 when the share is below the aim, or an entry of `mutants.toml` is stale.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

from qmodel.backends import bundle
from qmodel.conformance.graph import tight
from qmodel.conformance.histories.script import Named
from qmodel.conformance.histories.wire_calls import wire
from qmodel.conformance.kit import vectors
from tools import commands
from tools.mutation import distil, lua, model, probes, python, replay, suite
from tools.mutation.mutants import Mutant, digest
from tools.mutation.record import Record
from tools.mutation.replay import Verdict
from tools.mutation.report import Result, Summary, show
from tools.mutation.triage import Triage, path

AIMS = {"lua": 98.0, "model": 95.0}

FIRST = 1_000
"""The work on a mutant of the library before its steps are chosen by its values."""

SEED = "fixed sample"
"""What a sample is drawn by, unless another seed is given."""

_forked: dict[str, Callable[[Mutant], Verdict]] = {}
"""The function that judges a mutant. Forked processes inherit it."""


def all_mutants(side: str, only: str = "") -> list[Mutant]:
    """List the mutants of one side, in files with `only` in their names."""
    made = lua.mutants if side == "lua" else python.mutants
    return [mutant for file in (lua if side == "lua" else python).MUTATED if only in file for mutant in made(file)]


def recording(side: str, named: Sequence[Named]) -> replay.Recording | model.Recording:
    """Record the suite on the right code."""
    if side == "lua":
        return replay.Recording([*named, *suite.plain_rows()], wire(), commands.read(), more=True)
    return model.Recording(named, list(tight.of(named)), suite.small())


def _judged(
    recorded: replay.Recording | model.Recording,
    record: Record,
    mutants: Sequence[Mutant],
    limit: int,
    jobs: int,
    seconds: float,
) -> Iterator[Result]:
    """Judge mutants: of the model, on what they have not survived before, by the record."""
    if isinstance(recorded, replay.Recording):
        return judged_twice(recorded, mutants, limit, jobs, seconds)
    judge = recorded.judge
    return hunt(mutants, lambda one: judge(one, steps=recorded.steps_of(one, record.passed(one))), jobs, seconds)


def judged_twice(
    recorded: replay.Recording, mutants: Sequence[Mutant], limit: int, jobs: int, seconds: float = 1e9
) -> Iterator[Result]:
    """Judge mutants of the library with little work; then those left, in the steps in which their values differ."""
    end, left = time.monotonic() + seconds, list[Result]()
    for result in hunt(mutants, partial(recorded.judge, limit=min(limit, FIRST)), jobs, seconds):
        if result.verdict.kills or not result.verdict.steps:
            yield result
        else:
            left.append(result)
    found = probes.differing(recorded, [result.mutant for result in left])
    for result in left:
        result.verdict.alike = found.get(result.mutant) == []
        if result.verdict.alike or not result.verdict.given_up:
            yield result
    again = [one.mutant for one in left if one.verdict.given_up and not one.verdict.alike]
    yield from hunt(again, partial(_judged_again, recorded, found, limit), jobs, end - time.monotonic())


def _judged_again(recorded: replay.Recording, found: dict[Mutant, list[int]], limit: int, mutant: Mutant) -> Verdict:
    steps = found.get(mutant)
    return recorded.judge(mutant, steps=None if steps is None else recorded.with_next(steps), limit=limit)


def _record(file: str | None, recorded: replay.Recording | model.Recording, limit: int) -> Record:
    """Open a record of verdicts. What a mutant of the library does depends on the suite as a whole."""
    if isinstance(recorded, model.Recording):
        return Record(file, recorded.digests, lambda kill: recorded.digests[recorded.number(kill)], python.read)
    suite_of = digest(limit, *((one.call, one.cost) for one in recorded.steps))
    return Record(file, [suite_of], lambda _: suite_of, bundle.read)


def hunt(
    mutants: Sequence[Mutant], judge: Callable[[Mutant], Verdict], jobs: int, seconds: float = 1e9
) -> Iterator[Result]:
    """Judge mutants in `jobs` forked processes, for at most `seconds`."""
    _forked["judge"] = judge
    end = time.monotonic() + seconds
    context = multiprocessing.get_context("fork")
    with context.Pool(jobs) as pool:
        for result in pool.imap_unordered(_result, mutants, 8):
            yield result
            if time.monotonic() > end:
                pool.terminate()
                return


def _result(mutant: Mutant) -> Result:
    began = time.process_time()
    verdict = _forked["judge"](mutant)
    return Result(mutant, verdict, time.process_time() - began)


def sampled(side: str, mutants: Sequence[Mutant], count: int, seed: str = SEED) -> list[Mutant]:
    """Choose `count` mutants by chance, for a seed the same ones each time as long as the files do not change."""
    found = list(mutants)
    random.Random(f"{seed} {side}").shuffle(found)
    return found[:count]


def run(
    side: str,
    only: str,
    jobs: int,
    seconds: float,
    everything: bool,
    sample: int | None = None,
    limit: int = replay.WORK,
    seed: str = SEED,
    file: str | None = None,
) -> Summary:
    """Measure one side: all its mutants, or a sample of them, but for the verdicts that a file has already.

    `limit` is how much work a mutant of the library gets.
    """
    began = time.process_time()
    triage = Triage()
    summary = Summary(side)
    recorded = recording(side, suite.quick())
    mutants = all_mutants(side, only)
    summary.seconds += time.process_time() - began
    known = {mutant.name: entry for mutant in mutants if (entry := triage.entry(mutant)) is not None}
    summary.stale = triage.stale({path(mutant) for mutant in mutants})
    chosen = [mutant for mutant in mutants if everything or mutant.name not in known]
    if sample is not None:
        chosen = sampled(side, chosen, sample, seed)
    summary.equivalent = len(known)
    record = _record(file, recorded, limit)
    there = [result for mutant in chosen if (result := record.result(mutant)) is not None]
    left = set(chosen) - {result.mutant for result in there}
    judged = _judged(recorded, record, [one for one in chosen if one in left], limit, jobs, seconds)
    for result in chain(there, map(record.add, judged)):
        summary.add(result, result.mutant.name in known)
    return summary


def distilled(jobs: int, budget: int, seconds: float = 1e9) -> str:
    """Add vectors by one half of the Lua mutants, measure all on the other half, and return the report."""
    triage = Triage()
    mutants = [mutant for mutant in all_mutants("lua") if triage.entry(mutant) is None]
    random.Random("distil").shuffle(mutants)
    learnt = [mutant for mutant in mutants if mutant.half == 0][: distil.LEARNT]
    held_out = [mutant for mutant in mutants if mutant.half == 1][: distil.HELD_OUT]
    found = vectors.load("core")
    ids = {vector.id for vector in found}
    there = _recorded(found)
    named = distil.candidates([one for one in [*suite.quick(), *suite.shapes()] if distil.id_of(one.name) not in ids])
    recorded = replay.Recording(named)
    kills = _learn(there, recorded, learnt, jobs, seconds)
    chosen = distil.choose(named, kills | distil.lines(recorded), budget - len(there.steps), distil.lines(there))
    found += [one for one in distil.vectors(named, chosen) if one.id not in ids]
    about = {"learnt_from": len(kills), **_power(_recorded(found), recorded, held_out, jobs)}
    distil.FILE.write_text(vectors.dumps(found, "core", power=about), encoding="utf-8")
    return f"{distil.FILE}: {about}"


def _power(
    short: replay.Recording, recorded: replay.Recording, held_out: Sequence[Mutant], jobs: int
) -> dict[str, float]:
    """Measure vectors: the share that they notice of the mutants that they or any of the histories notice."""
    tested = [result for result in hunt(held_out, partial(distil.judge, short, recorded), jobs) if result.valid]
    noticed = [result for result in tested if result.verdict.kills]
    by_state = [result.mutant for result in noticed if result.verdict.kills[0].step == distil.THERE]
    by_replies = sum(bool(result.verdict.kills) for result in hunt(by_state, short.judge_replies, jobs))
    return {
        "held_out": len(tested),
        "held_out_noticed": len(noticed),
        "held_out_killed_by_state_percent": round(100 * len(by_state) / len(noticed), 1),
        "held_out_killed_by_replies_percent": round(100 * by_replies / len(noticed), 1),
    }


def _recorded(found: Sequence[vectors.Vector]) -> replay.Recording:
    return replay.Recording([Named(vector.id, list(vector.steps)) for vector in found])


def _learn(
    there: replay.Recording, recorded: replay.Recording, learnt: Sequence[Mutant], jobs: int, seconds: float
) -> distil.Kills:
    """Find where each mutant is noticed: in up to six histories, with the step in each; or that vectors notice it."""
    kills: distil.Kills = {}
    for result in hunt(learnt, partial(distil.judge, there, recorded), jobs, seconds):
        if result.valid:
            at = [recorded.steps[kill.step] for kill in result.verdict.kills if kill.step != distil.THERE]
            kills[result.mutant.name] = [(step.history, step.at) for step in at]
    return kills


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="mutate", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--side", choices=("lua", "model"), help="one side only")
    parser.add_argument("--only", default="", metavar="FILE", help="files with this in their name, as ops/put")
    parser.add_argument("--sample", type=int, metavar="N", help="only N mutants, chosen by chance, always the same")
    parser.add_argument("--seed", default=SEED, metavar="TEXT", help="another text draws another sample")
    parser.add_argument("--seconds", type=float, default=1e9, help="time limit; with --distil, the limit for learning")
    parser.add_argument(
        "--limit", type=int, default=replay.WORK, metavar="COMMANDS", help="work on a mutant of the Lua"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--all", action="store_true", help="run the equivalent mutants too; none may be noticed")
    parser.add_argument("--record", metavar="FILE", help="go on where a hunt with this file of verdicts stopped")
    parser.add_argument("--distil", action="store_true", help="only add vectors of level core, for what they miss")
    given = parser.parse_args(arguments)
    if given.distil:
        print(distilled(given.jobs, distil.OPERATIONS, given.seconds))
        return 0
    good = True
    for side in [given.side] if given.side else ["lua", "model"]:
        summary = run(
            side, given.only, given.jobs, given.seconds, given.all, given.sample, given.limit, given.seed, given.record
        )
        print(show(summary), flush=True)
        good = good and summary.share >= AIMS[side] and not summary.stale and not summary.wrong
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

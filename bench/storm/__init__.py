"""Let all kinds of faults strike servers, workers and their network under load, and count what was promised and broken.

Each job is put under an id of its own and put again until it is acknowledged. At the end of each round the oracles
(`oracles.py`) compare what clients and workers saw with the server's state, its event stream and the audit of its
journal. All counts must be zero, but for losses that a fault declares: those of a failover without confirmation, and of
a server that is killed with `appendfsync everysec`. The last line is the result.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import Options
from bench.machine import candidates
from bench.report import Report, Table
from bench.report import Verdict as Target
from bench.storm.evidence import Evidence
from bench.storm.faults import Fault
from bench.storm.kinds import KINDS, chosen
from bench.storm.oracles import COUNTED, Verdict, judge, stalls
from bench.storm.rounds import SHOWN, Round, played
from bench.storm.shard_faults import DEPLOYMENTS
from bench.storm.sharded import Sharded, Unconfirmed
from tests.servers import Candidate

JOBS, FAULTS = 100_000, 1_000
QUICK_JOBS, QUICK_FAULTS = 1_000, 30
MOST_JOBS, MOST_FAULTS = 5_000, 60
"""The most of a round."""

CLUSTERS = ("cluster", Sharded.kind, Unconfirmed.kind)
CLUSTERED = 4
"""Of so many rounds one has a certain cluster, if a kind needs it."""

MOST_BEYOND = 1.0
"""The most seconds for which a put may wait beyond the time for which the servers of a deployment are away."""


def run(options: Options, name: str = "storm") -> Report:
    """Play all rounds, and report under a name."""
    jobs = options.jobs or (QUICK_JOBS if options.quick else JOBS)
    faults = options.faults or (QUICK_FAULTS if options.quick else FAULTS)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    try:
        kinds = chosen(options.kinds)
    except KeyError as unknown:
        raise SystemExit(f"bench: there is no kind of fault {unknown}; there are: {', '.join(KINDS)}, or all") from None
    folder = Path(tempfile.mkdtemp(prefix="storm-"))
    verdict, struck, events = Verdict(), Counter[str](), Counter[str]()
    longest: dict[str, tuple[float, float]] = {}
    raised: Counter[str] = Counter()
    with (folder / "faults.jsonl").open("w") as log:
        for one in rounds(jobs, faults, seed, kinds, candidates(options.server)):
            began, where = time.monotonic(), folder / f"round-{one.number}"
            evidence = played(one, kinds, where, log)
            found = judge(evidence)
            struck += Counter(window.kind for window in evidence.windows)
            events += Counter(event.event for event in evidence.events)
            raised += Counter(error.code for error in evidence.errors)
            for kind, times in stalls(evidence).items():
                before = longest.get(kind, times)
                longest[kind] = max(before[0], times[0]), max(before[1], times[1])
            verdict.add(found, f"round {one.number}")
            _tell(one, found, evidence, time.monotonic() - began)
            if found.holds:
                shutil.rmtree(where)
    return _report(name, options, Storm(jobs, seed, folder, verdict, struck, events, longest, raised))


@dataclass
class Storm:
    """A storm that is over: what the oracles found, the faults by kind, the events by kind, for each kind of fault the
    longest put and the most beyond the servers' own time in seconds, and how often clients raised which error.
    """

    jobs: int
    seed: int
    folder: Path
    verdict: Verdict
    struck: Counter[str]
    events: Counter[str]
    longest: dict[str, tuple[float, float]] = field(default_factory=dict)
    raised: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        """Say it all in one line."""
        counts = ", ".join(f"{name} {len(self.verdict.found[name]):,}" for name in COUNTED)
        declared = self.verdict.declared
        reasons = ", ".join(f"{count:,} ({why})" for why, count in sorted(declared.items())) or "0"
        return (
            f"storm: {self.jobs:,} jobs, {self.struck.total():,} faults (seed {self.seed}): "
            f"acknowledged {self.verdict.acknowledged:,}, {counts}; declared lost {reasons}"
        )

    def data(self) -> dict[str, Any]:
        """Give all counts, and the first findings of each sort."""
        return {
            "jobs": self.jobs,
            "seed": self.seed,
            "faults": dict(sorted(self.struck.items())),
            "events": dict(sorted(self.events.items())),
            "acknowledged": self.verdict.acknowledged,
            "longest_puts": {kind: [round(one, 2) for one in times] for kind, times in sorted(self.longest.items())},
            "raised": dict(sorted(self.raised.items())),
            **{name.replace(" ", "_"): len(found) for name, found in self.verdict.found.items()},
            "declared_lost": dict(sorted(self.verdict.declared.items())),
            "found": {name: found[:SHOWN] for name, found in self.verdict.found.items() if found},
        }


def rounds(
    jobs: int, faults: int, seed: int, kinds: Sequence[type[Fault]], servers: Sequence[Candidate]
) -> Iterator[Round]:
    """Share the jobs and faults among rounds; the servers take turns in each world."""
    worlds = _worlds(kinds)
    count = max(-(-jobs // MOST_JOBS), -(-faults // MOST_FAULTS), len(set(worlds)))
    programs = [one.program for one in servers if one.program]
    for number in range(count):
        yield Round(
            number + 1,
            worlds[number % len(worlds)],
            programs[(number + number // len(worlds)) % len(programs)],
            jobs // count + (number < jobs % count),
            faults // count + (number < faults % count),
            f"{seed}-{number + 1}",
        )


def _worlds(kinds: Sequence[type[Fault]]) -> list[str]:
    """Give the worlds of successive rounds: clusters and deployments only for kinds that need them."""
    needed = [name for name in CLUSTERS if any(name in kind.worlds and "pair" not in kind.worlds for kind in kinds)]
    if needed and all(name in kind.worlds for kind in kinds for name in needed):
        return needed
    return [*needed, *["pair"] * max((CLUSTERED - 1) * len(needed), 1)]


def _tell(round: Round, found: Verdict, evidence: Evidence, seconds: float) -> None:
    """Print what a round found."""
    counts = ", ".join(f"{name} {len(sentences)}" for name, sentences in found.found.items() if sentences)
    print(
        f"round {round.number} ({round.world}, {Path(round.program).name}): {found.acknowledged:,} acknowledged, "
        f"{len(evidence.windows)} faults, {len(evidence.events):,} events, {seconds:.0f} s: {counts or 'all zero'}",
        file=sys.stderr,
        flush=True,
    )


def _shown(sentence: str) -> str:
    """Make a cell of a finding: without the moment, so that findings that are the same are one."""
    return " ".join(sentence.partition(" [")[0].replace("|", "/").split())[:300]


def _report(called: str, options: Options, storm: Storm) -> Report:
    """Write the report: the counts, the faults by kind, and the first findings."""
    tables = [Table("The longest puts", ["", "seconds", "beyond the servers' own time"])]
    for kind, (longest, beyond) in sorted(storm.longest.items()):
        tables[0].add(kind, f"{longest:.2f}", f"{beyond:.2f}")
    for title, counted in (("Faults", storm.struck), ("Errors", storm.raised), ("Events", storm.events)):
        if not counted:
            continue
        tables.append(Table(title, ["", title.lower()]))
        for kind, count in sorted(counted.items()):
            tables[-1].add(kind, f"{count:,}")
    for name, found in storm.verdict.found.items():
        if found:
            table = Table(f"Found: {name}", ["", "times"])
            for sentence, times in Counter(map(_shown, found)).most_common(SHOWN):
                table.add(sentence, f"{times:,}")
            tables.append(table)
    targets = [Target(name, len(storm.verdict.found[name]), 0) for name in COUNTED]
    targets.append(Target("acknowledged", storm.verdict.acknowledged, storm.jobs, "jobs", at_least=True))
    for kind, (_, beyond) in sorted(storm.longest.items()):
        if KINDS[kind].worlds == DEPLOYMENTS:
            targets.append(Target(f"{kind}: the longest put beyond the servers' time", beyond, MOST_BEYOND, "s"))
    if storm.verdict.holds:
        shutil.rmtree(storm.folder)
    else:
        print(f"the log of the faults, and the files of these rounds: {storm.folder}", file=sys.stderr)
    method = " ".join(str(__doc__).split())
    versions = [one.name for one in candidates(options.server)]
    return Report(
        called, f"python -m bench {called} --seed {storm.seed}", method, tables, targets, versions,
        last=storm.line(), data=storm.data(),
    )  # fmt: skip

"""`python -m tools.oracle.moved --original PATH --histories 100`: compare namespaces with what they were converted to.

The original makes a namespace by a random history. The converter puts it into the model. Both are asked the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qmodel.contract.operations import Operation
from qmodel.dialects.qless import original
from qmodel.dialects.qless.conversion import Report, convert
from qmodel.model import engine
from tools.oracle.compare import Heard, decoded, parts, same, without
from tools.oracle.histories import GROUPS, QUEUES, RECURRING, TAGS, Drawer, number
from tools.oracle.original import script_of
from tools.oracle.rows import Mended, original_side
from tools.oracle.run import record
from tools.oracle.sides import PREFIX, MemorySide, Side, Words, client_of, redis_server

LEFT_OUT = ("history", "expires", "spawned_from_jid", "expired")
"""What is not compared: the history is that of the conversion, and jobs that are gone are not tracked."""


def questions(now: float, jids: list[str]) -> Iterator[Words]:
    """Ask for all that one can see; last what moves jobs that are due."""
    moment = number(now)
    yield from (("get", moment, jid) for jid in jids)
    yield from (("recur.get", moment, jid) for jid in RECURRING)
    yield from (("tag", moment, "get", tag) for tag in TAGS)
    yield from (("failed", moment), *(("failed", moment, group) for group in GROUPS))
    yield from (("config.get", moment), ("track", moment), ("jobs", moment, "complete"), ("queues", moment))
    for queue in QUEUES:
        yield from (("jobs", moment, state, queue) for state in ("running", "scheduled", "depends", "recurring"))
        yield ("length", moment, queue)
    yield from (("peek", moment, queue, "100") for queue in QUEUES)


def asked(side: Side, words: Words) -> Any:
    """Ask one side; give what is comparable."""
    heard: Heard = side.call(words)
    return heard.error if heard.error is not None else without(decoded(heard.reply), LEFT_OUT)


def main() -> int:
    """Run the command line; give 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.oracle.moved", description=__doc__)
    parser.add_argument("--original", required=True, type=Path, help="the original's sources, or its one script")
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", default="0")
    given = parser.parse_args()
    differing = jobs = 0
    with redis_server() as server:
        side = original_side(server, 0, script_of(given.original))
        made = Mended(side, side.client)
        client = client_of(server, 0)
        for at in range(given.histories):
            drawer = Drawer(f"{given.seed}.{at}")
            record(made, drawer, given.steps)
            found = original.read(client, PREFIX)
            ours = MemorySide()
            report = _converted(found, ours, drawer.now)
            jobs += len(found.jobs)
            said = [f"refused: {name}: {why}" for name, why in report.refused]
            for words in questions(drawer.now, sorted(found.jobs)):
                theirs, mine = asked(made, words), asked(ours, words)
                if not same(theirs, mine):
                    said += [f"{' '.join(words)}: {part}" for part in parts("reply", theirs, mine)]
            differing += bool(said)
            if said:
                print(f"history {given.seed}.{at}", *said[:6], sep="\n")
    print(f"{given.histories} namespaces with {jobs} jobs; {differing} differ")
    return int(differing > 0)


def _converted(found: original.Original, side: MemorySide, now: float) -> Report:
    def execute(op: Operation, at: int) -> Any:
        return engine.step(side.store, at, op)

    return convert(found, execute, round(now * 1000))


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tools.oracle --original PATH --ours memory --histories 100`: compare our dialect with the original."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from qmodel.backends import bundle
from qmodel.testing.servers import Server, serving
from tools.oracle import reqless
from tools.oracle.histories import Drawer
from tools.oracle.original import of_reqless, script_of
from tools.oracle.reqless import MendedReqless, Translated
from tools.oracle.rows import Mended, original_side
from tools.oracle.run import Result, run
from tools.oracle.sides import MemorySide, Side, function_side, redis_server, script_side


def main() -> int:
    """Run the command line; give 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.oracle", description=__doc__)
    parser.add_argument("--original", required=True, type=Path, help="the original's sources, or its one script")
    parser.add_argument("--ours", default="memory", choices=("memory", "script", "function", "serve"))
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--show", type=int, default=1, help="how many differences to shrink and print")
    given = parser.parse_args()
    original: Mended
    with ExitStack() as stack:
        server = stack.enter_context(redis_server())
        script, is_reqless = script_of(given.original), of_reqless(given.original)
        side = original_side(server, 0, script)
        ours = _ours(stack, server, given.ours, script, is_reqless)
        if is_reqless:
            ours = Translated(ours, given.ours in ("memory", "function"))
            original, draw = MendedReqless(Translated(side), side.client), reqless.drawer
        else:
            original, draw = Mended(side, side.client), Drawer
        result = run(original, ours, draw, given.histories, given.steps, given.seed, given.show)
    _print(result, f"{given.ours}, seed {given.seed}")
    return int(result.equal < result.histories)


def _ours(stack: ExitStack, server: Server, kind: str, script: str, is_reqless: bool) -> Side:
    if kind == "memory":
        return MemorySide()
    if kind == "script":
        return script_side(server, 1, bundle.qless_script(simulated=True, reqless=is_reqless))
    if kind == "function":
        return function_side(server, 1)
    return script_side(stack.enter_context(serving()), 0, script)


def _print(result: Result, name: str) -> None:
    for found in result.found:
        print(found, end="\n\n")
    print(f"{name}: {result.histories} histories, {result.steps} calls, {sum(result.refused.values())} refused by the ")
    print(f"original; {result.equal} histories equal, {result.histories - result.equal} differ")
    if result.differing:
        print("first different call:", ", ".join(f"{name} {n}" for name, n in result.differing.most_common()))


if __name__ == "__main__":
    sys.exit(main())

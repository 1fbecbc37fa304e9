"""Measure line coverage of the Lua library: in this process by Lua's line hook, and on a real server by counters.

    python -m tools.coverage [--url redis://...]

A server has no line hook. So the library is instrumented: before each statement stands `_C[n]=1`. The table `_C` is an
upvalue of the library, so it persists between calls, and one more function returns its content. This makes the library
a tenth slower, and shows that the lines that run in this process also run on a server.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from qmodel.backends.bundle import FILES, LIBRARY, function_name, library, read
from qmodel.backends.embedded.bytecode import active_lines
from qmodel.backends.embedded.host import LuaHost
from qmodel.conformance.histories.script import Named
from qmodel.conformance.histories.wire_calls import wire as calls
from qmodel.conformance.subjects.base import Step
from qmodel.wire import codec
from tools.mutation.lua import tree
from tools.mutation.parts import first_lines

Place = tuple[str, int]
"""A file of the library, and a line of it, from 1."""

STATEMENTS = frozenset({
    "variable_declaration", "assignment_statement", "function_call", "return_statement", "break_statement",
    "if_statement", "for_statement", "while_statement", "repeat_statement", "do_statement",
})  # fmt: skip
DUMP = f"{LIBRARY}_coverage"
TOGETHER = 100
"""How many calls are sent to a server at a time: it reads no more while it executes them."""


def all_places(texts: dict[str, str]) -> dict[int, Place]:
    """Give the file and line that each line of the loaded library comes from, but for lines that the bundle adds."""
    return {
        before + line: (name, line)
        for name, before in first_lines(texts).items()
        if name in texts
        for line in range(1, texts[name].count("\n") + 1)
    }


def in_process(suite: Iterable[Named]) -> tuple[set[Place], set[Place]]:
    """Give the lines that can run, and the lines among them that did not; loading counts."""
    texts = {name: read(name) for name in FILES}
    source = library(texts)
    host = LuaHost()
    host.coverage(True)
    host.load(source)
    for named in suite:
        host.fresh()
        for step in named.steps:
            try:
                args = codec.encode(step.op, step.now)
            except codec.Unencodable:
                continue
            host.fcall(function_name(step.op.spec.name), ["ql:"], args)
    host.fresh()
    for operation, args, _ in calls():
        host.fcall(function_name(operation), ["ql:"], args)
    ran, places = host.lines()[LIBRARY], all_places(texts)
    active = {places[line] for line in active_lines(source) if line in places}
    # Lua's optimised jumps skip an `end`; the creation of a local function is reported at its last line
    active = {at for at in active if text_of(at) != "end" and not text_of(at).startswith("function ")}
    return active, active - {places[line] for line in ran if line in places}


# ---- on a server


def instrumented() -> tuple[str, list[Place]]:
    """Give the library with a counter before each statement, and the place of each counter."""
    places: list[Place] = []
    texts = {name: _counting(name, read(name), places) for name in FILES}
    head, _, rest = library(texts).partition("\n")
    tell = (
        f"register_function{{function_name = '{DUMP}', flags = {{'no-writes'}}, callback = function()\n"
        "local out = {}\nfor n in pairs(_C) do out[#out + 1] = n end\nreturn out\nend}\n"
    )
    return f"{head}\nlocal _C = {{}} {rest}{tell}", places


def _counting(name: str, text: str, places: list[Place]) -> str:
    """Put a counter before each statement inside the functions of a file."""
    if name == "contract/catalogue":
        return text
    raw, at = text.encode(), []
    for node in _within_functions(tree(text), False):
        places.append((name, node.start_point[0] + 1))
        at.append((node.start_byte, f"_C[{len(places)}]=1 "))
    for start, counter in sorted(at, reverse=True):
        raw = raw[:start] + counter.encode() + raw[start:]
    return raw.decode()


def _within_functions(node: Any, inside: bool) -> Iterable[Any]:
    inside = inside or node.type in ("function_declaration", "function_definition")
    for child in node.children:
        if inside and node.type == "block" and child.type in STATEMENTS:
            yield child
        yield from _within_functions(child, inside)


def on_server(client: Any, suite: Iterable[Named]) -> tuple[set[Place], set[Place]]:
    """Give the statements of the library, and those that the suite did not run; the server's data are deleted."""
    source, places = instrumented()
    client.execute_command("FUNCTION", "LOAD", "REPLACE", source)
    try:
        for named in suite:
            client.flushall()
            for first in range(0, len(named.steps), TOGETHER):
                _send(client, named.steps[first : first + TOGETHER])
        client.flushall()
        for operation, args, _ in calls():
            client.execute_command(
                "FCALL", function_name(operation), 1, "ql:", *(word.encode("utf-8", "surrogateescape") for word in args)
            )
        ran = {places[number - 1] for number in client.execute_command("FCALL", DUMP, 0)}
    finally:
        client.execute_command("FUNCTION", "DELETE", LIBRARY)
    return set(places), set(places) - ran


def _send(client: Any, steps: Iterable[Step]) -> None:
    pipeline = client.pipeline(transaction=False)
    for step in steps:
        try:
            args = codec.encode(step.op, step.now)
        except codec.Unencodable:
            continue
        pipeline.execute_command("FCALL", function_name(step.op.spec.name), 1, "ql:", *args)
    pipeline.execute(raise_on_error=True)


def text_of(at: Place) -> str:
    """Give the text of a line."""
    return read(at[0]).split("\n")[at[1] - 1].strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    import argparse

    from tools.mutation.suite import quick

    parser = argparse.ArgumentParser(prog="coverage", description="Line coverage of the Lua library.")
    parser.add_argument("--url", help="run on this server, and delete its data; default: in this process")
    given = parser.parse_args(arguments)
    if given.url:
        import redis

        active, missed = on_server(redis.Redis.from_url(given.url), quick())
    else:
        active, missed = in_process(quick())
    print(f"{len(active) - len(missed)} of {len(active)} lines run ({100 - 100 * len(missed) / len(active):.2f} %)")
    for at in sorted(missed):
        print(f"  lua/{at[0]}.lua:{at[1]} {text_of(at)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

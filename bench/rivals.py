"""Measure the CPU time of the server for a job beside the two libraries that do most like us: glide-mq and BullMQ.

`--peers FOLDER,FOLDER` gives their public copies: a checkout of glide-mq, and the unpacked package of BullMQ. Their Lua
is loaded as their clients load it, and called with the keys and arguments that their clients send. All libraries use
one server, one queue and the same payload of 100 bytes. Server and client share one CPU, and the clock is the CPU clock
of the server's process. The libraries take turns within every run; a ratio is the median of the ratios within the runs.

What is compared is what an application gets by default. glide-mq has no lease token: it never checks who completes a
job. BullMQ keeps no statistics and has no order that one can follow; both have no dependencies' results in this path.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from bench import Options
from bench.lifecycle import (
    DATA,
    KLASS,
    QUEUE,
    SPAN,
    WORKER,
    Batches,
    Caller,
    Chained,
    FromTheLast,
    Single,
    Together,
    Way,
    now_ms,
)
from bench.machine import Pinned, on_this_cpu
from bench.raw import Connection, pack
from bench.report import Report, Table, Verdict, median, ratio
from bench.server import Runs, in_turns

GLIDE, BULL = Path("src/functions/index.ts"), Path("dist/cjs/scripts")
LOCK_MS = 30_000

Held = tuple[str, str]
"""A claimed job: its id, and what the library needs to complete it."""


class Glide:
    """glide-mq: a job in each call, SPAN calls in a round trip. It claims with XREADGROUP, then activates the job."""

    name = "glide-mq"
    group = "workers"

    def __init__(self, url: str, queue: str = QUEUE) -> None:
        self.connection = Connection(url)
        self.prefix = f"glide:{{{queue}}}:"
        self.stream = self.prefix + "stream"

    def load(self, folder: Path) -> str:
        """Load the library; give its version."""
        text = (folder / GLIDE).read_text(encoding="utf-8")
        version = re.search(r"LIBRARY_VERSION = '(\d+)'", text)
        source = re.search(r"LIBRARY_SOURCE = `(.*?)(?<!\\)`;", text, re.DOTALL)
        assert version and source
        lua = re.sub(r"\\(.)", r"\1", source[1].replace("${LIBRARY_VERSION}", version[1]))
        self.connection.call("FUNCTION", "LOAD", "REPLACE", lua)
        package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        return f"{self.name} {package['version']}"

    def prepare(self) -> None:
        """Make the consumer group, as a worker does when it starts."""
        self.connection.call("XGROUP", "CREATE", self.stream, self.group, "0", "MKSTREAM")

    def _keys(self, *names: str) -> list[str]:
        return [self.prefix + name for name in names]

    def put(self) -> None:
        keys = self._keys("id", "stream", "scheduled", "events")
        options = '{"attempts":5}'
        given = ("0", "0", "", "5", "", "0", "0", "0", "0", "0", "0", "0", "", "0", "", "", "0")
        self.connection.exchange(
            pack("FCALL", "glidemq_addJob", "4", *keys, KLASS, DATA, options, now_ms(), *given) for _ in range(SPAN)
        )

    def _read(self, calls: int, count: int) -> list[Held]:
        read = pack(
            "XREADGROUP", "GROUP", self.group, WORKER, "COUNT", str(count), "STREAMS", self.stream, ">"
        )  # fmt: skip
        found = []
        for ((_, entries),) in self.connection.exchange([read] * calls):
            for entry, fields in entries:
                pairs = dict(zip(fields[::2], fields[1::2], strict=True))
                found.append((pairs[b"jobId"].decode(), entry.decode()))
        return found

    def _activate(self, held: list[Held]) -> None:
        replies = self.connection.exchange(
            pack("FCALL", "glidemq_moveToActive", "2", *self._keys(f"job:{jid}", "stream"),
                 now_ms(), entry, self.group, jid, "0") for jid, entry in held
        )  # fmt: skip
        assert all(replies) and len(replies) == SPAN

    def pop(self) -> list[Held]:
        held = self._read(SPAN, 1)
        self._activate(held)
        return held

    def complete(self, popped: list[Held]) -> None:
        self.connection.exchange(
            pack("FCALL", "glidemq_complete", "5",
                 *self._keys("stream", "completed", "events", f"job:{jid}", "metrics:completed"),
                 jid, entry, "null", now_ms(), self.group, "0", "0", "0", "", "", "0") for jid, entry in popped
        )  # fmt: skip


class GlideBatches(Glide):
    """glide-mq: it claims a hundred jobs in one call; all else is a call for each job."""

    def pop(self) -> list[Held]:
        held = self._read(1, SPAN)
        self._activate(held)
        return held


class GlideChained(FromTheLast, Glide):
    """glide-mq: each completion fetches the next job in the same call."""

    def complete(self, popped: list[Held]) -> None:
        now = now_ms()
        replies = self.connection.exchange(
            pack("FCALL", "glidemq_completeAndFetchNext", "5",
                 *self._keys("stream", "completed", "events", f"job:{jid}", "metrics:completed"),
                 jid, entry, "null", now_ms(), self.group, WORKER, "0", "0", "0", "", "", "__", "", "__", "0", now,
                 "0", "0", "0") for jid, entry in popped
        )  # fmt: skip
        assert {reply[0] for reply in replies} == {b"NEXT_HASH"}
        self.running = [(reply[2].decode(), reply[3].decode()) for reply in replies]


class Bull:
    """BullMQ: a job in each call, SPAN calls in a round trip. It has no way to claim several jobs in one call."""

    name = "BullMQ"
    scripts: ClassVar[dict[str, str]] = {}

    def __init__(self, url: str, queue: str = QUEUE) -> None:
        self.connection = Connection(url)
        self.prefix = f"bull:{queue}:"

    def load(self, folder: Path) -> str:
        """Load the scripts; give the version."""
        for name in ("addStandardJob-9", "moveToActive-11", "moveToFinished-14"):
            text = (folder / BULL / f"{name}.js").read_text(encoding="utf-8")
            source = re.search(r"const content = `(.*?)(?<!\\)`;", text, re.DOTALL)
            assert source
            lua = re.sub(r"\\(.)", r"\1", source[1])
            self.connection.call("SCRIPT", "LOAD", lua)
            self.scripts[name.partition("-")[0]] = hashlib.sha1(lua.encode()).hexdigest()
        package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        return f"{self.name} {package['version']}"

    def prepare(self) -> None:
        """Enter the queue's options, as a queue does when it is opened."""
        self.connection.call("HSET", self.prefix + "meta", "opts.maxLenEvents", "10000", "version", "bullmq")

    def _call(self, script: str, keys: str, *arguments: str | bytes, more: tuple[str, ...] = ()) -> bytes:
        found = [self.prefix + key for key in [*keys.split(), *more]]
        return pack("EVALSHA", self.scripts[script], str(len(found)), *found, *arguments)

    def put(self) -> None:
        pieces = msgspec.msgpack.encode({"attempts": 5})
        calls = []
        for _ in range(SPAN):
            now = int(now_ms())
            given = msgspec.msgpack.encode([self.prefix, "", KLASS, now, None, None, None, None, None, None])
            keys = "wait paused meta id completed delayed active events marker"
            calls.append(self._call("addStandardJob", keys, given, DATA, pieces))
        self.connection.exchange(calls)

    def pop(self) -> list[Held]:
        calls, tokens = [], [str(uuid.uuid4()) for _ in range(SPAN)]
        for token in tokens:
            given = msgspec.msgpack.encode({"token": token, "lockDuration": LOCK_MS, "name": WORKER})
            keys = "wait active prioritized events stalled limiter delayed paused meta pc marker"
            calls.append(self._call("moveToActive", keys, self.prefix, now_ms(), given))
        return [
            (reply[1].decode(), token) for reply, token in zip(self.connection.exchange(calls), tokens, strict=True)
        ]

    def _finish(self, popped: list[Held], fetch: str) -> list[Any]:
        calls = []
        for jid, token in popped:
            given = msgspec.msgpack.encode({
                "token": token, "name": WORKER, "keepJobs": {"count": -1}, "lockDuration": LOCK_MS, "attempts": 5,
                "maxMetricsSize": "", "fpof": False, "cpof": False, "idof": False, "rdof": False,
            })  # fmt: skip
            keys = "wait active prioritized events stalled limiter delayed paused meta pc completed"
            more = (jid, "metrics:completed", "marker")
            calls.append(self._call("moveToFinished", keys, jid, now_ms(), "returnvalue", "null", "completed", fetch,
                                    self.prefix, given, more=more))  # fmt: skip
        return self.connection.exchange(calls)

    def complete(self, popped: list[Held]) -> None:
        assert set(self._finish(popped, "0")) == {0}


class BullChained(FromTheLast, Bull):
    """BullMQ: each completion fetches the next job in the same call."""

    def complete(self, popped: list[Held]) -> None:
        replies = self._finish(popped, "1")
        self.running = [(reply[1].decode(), token) for reply, (_, token) in zip(replies, popped, strict=True)]


def run(options: Options) -> Report:
    """Measure on each requested server."""
    given = [Path(one) for one in options.peers.split(",") if one]
    glide = next((one for one in given if (one / GLIDE).exists()), None)
    bull = next((one for one in given if (one / BULL).exists()), None)
    if glide is None or bull is None:
        raise SystemExit("say where glide-mq and BullMQ are: --peers CHECKOUT_OF_GLIDE_MQ,UNPACKED_PACKAGE_OF_BULLMQ")
    tables, verdicts, versions = [], [], []
    for server in on_this_cpu(options.server):
        table, ratios, names = _beside(server, glide, bull, options)
        tables.append(table)
        versions += [server.version, *(name for name in names if name not in versions)]
        verdicts += [
            Verdict(f"{server.version}: qmodel / {other}, {how}", found, 1.0) for (how, other), found in ratios.items()
        ]
    return Report("rivals", "python -m bench rivals --peers GLIDE_MQ,BULLMQ", " ".join(str(__doc__).split()), tables,
                  verdicts, versions)  # fmt: skip


def _beside(
    server: Pinned, glide: Path, bull: Path, options: Options
) -> tuple[Table, dict[tuple[str, str], float], list[str]]:
    url = server.url
    caller = Caller(url).load()
    names = [Glide(url).load(glide), Bull(url).load(bull)]
    groups: dict[str, dict[str, Way]] = {
        "one a call": {"qmodel": Single(caller), Glide.name: Glide(url), Bull.name: Bull(url)},
        "complete and fetch the next": {
            "qmodel": Chained(Caller(url, "chained:")),
            Glide.name: GlideChained(url, "chained"),
            Bull.name: BullChained(url, "chained"),
        },
        "as many as possible a call": {"qmodel": Batches(caller), Glide.name: GlideBatches(url), Bull.name: Bull(url)},
        "100 operations a call": {"qmodel": Together(caller), Glide.name: GlideBatches(url), Bull.name: Bull(url)},
    }
    table = Table(f"Microseconds of {server.version} a job", ["", "put", "claim", "complete", "all", "qmodel / it"])
    ratios = {}
    for how, ways in groups.items():
        caller.connection.call("FLUSHALL", "SYNC")
        for way in ways.values():
            if isinstance(way, Glide | Bull):
                way.prepare()
        found: dict[str, Runs] = dict(zip(ways, in_turns(server.cpu_us, options, *ways.values()), strict=True))
        ours = [one.total for one in found["qmodel"]]
        for name, runs in found.items():
            totals = [one.total for one in runs]
            if name != "qmodel":
                ratios[how, name] = ratio(ours, totals)
            beside = f"{ratios[how, name]:.2f}" if name != "qmodel" else ""
            table.add(f"{name}: {how}", *(median(stage) for stage in zip(*runs, strict=True)), median(totals), beside)
    return table, ratios, names

"""Reads the raw keys of a namespace as a snapshot.

`lua/state/keys.lua` describes the keys. This reader is written independently of the Lua library: otherwise a bug in how
the library packs and unpacks would hide itself. Every key under the prefix must be accounted for, so that leftovers of
operations are found. It only reads.

The raw form of a key is `(type, content)`, as `Keyspace.dump` and `dump.py` give it.

A comparison reads the same namespace after each step, and a step changes few keys. So what is parsed from short texts
alone is remembered: jobs, samples and ids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from qmodel.contract.arguments import after_request, names_family
from qmodel.contract.events import Event
from qmodel.contract.settings import OPTIONS
from qmodel.model.snapshot import DEFAULT_QUEUE, REQUEST, SCHEDULE, UNIQUE, Record, Snapshot
from qmodel.model.state import budget
from qmodel.model.state.requests import OUTCOMES
from qmodel.model.state.stats import RUN_MOST, bin_of
from qmodel.model.state.throttles import LIMITS, OWN
from qmodel.wire import codec

Places = tuple[tuple[float, int, str], ...]

Raw = Mapping[bytes, tuple[str, Any]]


_RESULT = re.compile(r"(\d+)\t(\w*)\t([^\n\f]*)([\n\f])(.*)", re.DOTALL)
"""A number, a state, a name, and a text or its size (lua/state/results.lua)."""

UNTRIMMED = 99 + 15
"""How many entries a stream may hold beyond the kept ones: the rest of a node, and those since the last trim."""
HEAVY = 40
"""The units of an entry of the journal that is not read together with others."""
PACK = 100
"""The most events of an entry."""
FOLD = 128
FOLD_TAGS = 512
"""The number of pending durations that are folded in together (lua/state/stats.lua)."""


UTF8 = "utf-8", "surrogateescape"
"""How texts are read: bytes that are not UTF-8 become lone surrogates, as on the wire."""


class Corrupt(ValueError):
    """A key is not part of the schema, or its content contradicts itself."""


def decode(raw: Raw, prefix: str = "ql:") -> Snapshot:
    """Read a namespace."""
    return _Reader(raw, prefix).snapshot()


def events(raw: Raw, prefix: str, newest: int) -> tuple[Event, ...]:
    """Read so many of the newest events."""
    _, (entries, _) = raw.get(f"{prefix}events".encode(), ("", ((), b"")))
    found = [one for id, fields in entries[max(len(entries) - newest, 0) :] for one in _told(id, fields[1])]
    return tuple(map(codec.event, found[max(len(found) - newest, 0) :]))


def _told(id: bytes, said: bytes) -> list[tuple[int, bytes, int]]:
    """Give the events of an entry, each with its sequence and its epoch; the entry has the sequence of the last one."""
    lines = said.split(b"\n")
    first = _id(id) - len(lines) + 1
    return [(first + i, line, _epoch(id)) for i, line in enumerate(lines)]


_KIND = re.compile(r"rq-|\w+:")
"""How the names of keys of a kind begin."""


@lru_cache(4096)
def _named(key: bytes, begin: int) -> tuple[str, str]:
    """Give a key without its prefix of so many bytes, and how the names of its kind begin, if it has any."""
    name = key[begin:].decode(*UTF8)
    kind = _KIND.match(name)
    return name, kind[0] if kind is not None else ""


QUEUE_PARTS = frozenset((
    "work", "scheduled", "depends", "locks", "throttled", "expires", "recur", "gates", "state", "pauses", "wake",
    "ends",
))  # fmt: skip
"""The keys of a queue: `q:<name>-<part>`."""


def _score(score: float) -> float:
    return int(score) if score == score and abs(score) != float("inf") else score


class _Reader:
    def __init__(self, raw: Raw, prefix: str) -> None:
        begin = prefix.encode()
        self.marks: dict[tuple[str, str], int] = {}
        self.runs: dict[str, list[tuple[int, int]]] = {}
        self.marked: dict[tuple[str, str], int] = {}
        self.left: dict[str, tuple[str, Any]] = {}
        self.kinds: dict[str, list[str]] = {}
        for key, value in raw.items():
            if key.startswith(begin):
                name, kind = _named(key, len(begin))
                self.left[name] = value
                if kind:
                    self.kinds.setdefault(kind, []).append(name)

    def take(self, name: str, kind: str, default: Any) -> Any:
        found = self.left.pop(name, None)
        if found is None:
            return default
        if found[0] != kind:
            raise Corrupt(f"{name} is a {found[0]}, not a {kind}")
        return found[1]

    def text(self, name: str, default: str = "") -> str:
        return str(self.take(name, "string", default.encode()).decode(*UTF8))

    def members(self, name: str) -> list[tuple[float, str]]:
        if name not in self.left:
            return []
        return [(_score(score), member.decode(*UTF8)) for member, score in self.take(name, "zset", [])]

    def fields(self, name: str) -> dict[str, str]:
        if name not in self.left:
            return {}
        return {field.decode(*UTF8): value.decode(*UTF8) for field, value in self.take(name, "hash", {}).items()}

    def names(self, begin: str, end: str = "") -> list[str]:
        if begin not in self.kinds:
            return []
        found = (name for name in self.kinds[begin] if name in self.left and name.endswith(end))
        return [name[len(begin) : len(name) - len(end)] for name in found]

    def places(self, name: str, blanks: int = 0) -> tuple[tuple[float, int, str], ...]:
        if name not in self.left:
            return ()
        return tuple((score, int(member[:14]), _jid(member[14:], blanks)) for score, member in self.members(name))

    # ---- the whole

    def snapshot(self) -> Snapshot:
        if b"!" in self.left.get("counters", ("", b""))[1][:1]:
            raise Corrupt("commands of an earlier step failed, and wait for the next call: see the key intent")
        for name in [name for name in self.left if name in ("intent", "dropped") or name.startswith("aside:")]:
            del self.left[name]  # what a repair keeps
        seq, epoch, tracked_count, first_event, _, sweep_at, left, keeping_at = map(
            int, self.text("counters", "0\t0\t0\t1\t0\t0\t0\t0").split("\t")
        )
        lines = [line.split("\t") for line in self.text("config").split("\n")[:-1]]
        config = {name: int(value) for name, value in lines if name[0] != "\1"}
        journaled, heavy = int(self.text("journaled", "0")), int(self.text("journal-heavy", "0"))
        tags = {tag: self.tag(tag) for tag in self.names("t:")}
        completed = self.places("completed")
        age = config.get("jobs-history", OPTIONS["jobs-history"].default)
        if completed and sweep_at and sweep_at > completed[0][0] + age:
            raise Corrupt("the sweep bound is after the oldest complete job is due")
        keeping = self.places("keeping")
        if keeping and not 0 < keeping_at <= keeping[0][0] + 1:
            raise Corrupt(f"no job is to be past its own keeping before {keeping_at}, and the first is {keeping[0]}")
        tracked = {jid: int(score) for score, jid in self.members("tracked")}
        if len(tracked) != tracked_count:
            raise Corrupt(f"{tracked_count} jobs are counted as tracked, {len(tracked)} are")
        counted = {tag: -int(score) for score, tag in self.members("tags")}
        if counted != {tag: len(jobs) for tag, jobs in tags.items()}:
            raise Corrupt(f"tags are counted as {counted}")
        groups = {name: self.places(f"f:{name}") for name in self.names("f:")}
        if sorted(groups) != [name for _, name in self.members("failures")]:
            raise Corrupt("the list of failure groups is not that of the groups")
        stack = self.members("cascade")[::-1]
        cascade = tuple((int(entry[1:15]), entry[15:], entry[0] == "c") for _, entry in stack)
        if [-place for place, _ in stack] != list(range(1, left + 1)):
            raise Corrupt(f"{left} jobs are counted as left of the cascade, they are {stack[:3]}...")
        events, epochs = self.events(seq, epoch, first_event, config)
        snapshot = Snapshot(
            seq=seq,
            epoch=epoch,
            epochs=epochs,
            events=events,
            queues=self.queues(),
            requested={id: self.request(id) for id in self.names("rq:")},
            request_states={state: self.places(f"rq-{state}") for state in self.names("rq-")},
            lines={name: self.line(name) for name in self.names("l:")},
            schedules=self.schedules(),
            crons=self.places("recur-crons"),
            subscriptions=self.subscriptions(),
            messages=self.messages(),
            workers=self.workers(),
            workers_passed=int(self.text("workers-passed", "0")),
            completed=completed,
            failed=self.places("failed"),
            keeping=keeping,
            newest={klass: self.places(f"n:{klass}") for klass in self.names("n:")},
            groups=groups,
            tags=tags,
            tracked=tracked,
            throttles=self.throttles({name[1:] for name, _ in lines if name[0] == "\1"}),
            days=self.days(),
            uniques=self.uniques(),
            config=config,
            journal=self.journal(journaled, heavy, config),
            journaled=journaled,
            metadata={klass: self.fields(f"k:{klass}") for klass in self.names("k:")},
            cascade=cascade,
            results={jid: self.results(jid) for jid in self.names("j:", "-results")},
            requests=self.requests(),
            jobs=self.jobs(tags),
        )
        if self.left:
            raise Corrupt(f"nothing accounts for {sorted(self.left)}")
        return snapshot

    def events(
        self, seq: int, epoch: int, first_event: int, config: dict[str, int]
    ) -> tuple[int, tuple[tuple[int, int], ...]]:
        """Count the kept events, and read their epochs; the stream may hold a few more events."""
        entries, last = self.take("events", "stream", ([], b"0-0"))
        if any(fields[:1] != (b"e",) or len(fields) != 2 for _, fields in entries):
            raise Corrupt("an entry of the events has other fields than `e`")
        told = [(_id(id) - more, _epoch(id)) for id, said in entries for more in range(said[1].count(b"\n"), -1, -1)]
        ids = [seq for seq, _ in told]
        if entries and _epoch(last) != epoch:
            raise Corrupt(f"the last event is {last!r}, the epoch is {epoch}")
        if seq and (_id(last) != seq or ids != list(range(seq - len(ids) + 1, seq + 1))):
            raise Corrupt(f"the events are {ids[:3]}... up to {last!r}, the sequence is {seq}")
        kept = config.get("max-events", OPTIONS["max-events"].default)
        if len(ids) > kept + UNTRIMMED + PACK:
            raise Corrupt(f"{len(ids)} events are in the stream, where {kept} are kept")
        count = min(seq - first_event + 1, kept, seq)
        epochs = [one for one in told if one[0] > seq - count]
        return count, tuple(one for i, one in enumerate(epochs) if i == 0 or one[1] != epochs[i - 1][1])

    def journal(self, last: int, heavy: int, config: dict[str, int]) -> tuple[tuple[int, int, str, str, int], ...]:
        """Read the kept entries; the stream may hold a few more."""
        entries, _ = self.take("journal", "stream", ([], b"0-0"))
        ids = [_id(entry[0]) for entry in entries]
        kept = config.get("max-journal", OPTIONS["max-journal"].default)
        if ids and ids != list(range(last - len(ids) + 1, last + 1)):
            raise Corrupt(f"the entries of the journal are {ids[:3]}..., and the last is {last}")
        if len(ids) > kept + UNTRIMMED:
            raise Corrupt(f"{len(ids)} entries are in the journal, where {kept} are kept")
        if any(fields[:8:2] != (b"o", b"e", b"c", b"r") or fields[8::2] not in ((), (b"u",)) for _, fields in entries):
            raise Corrupt("an entry of the journal has other fields than o, e, c, r and u")
        if any(said[8:] and int(said[9]) >= HEAVY and _id(id) > heavy for id, said in entries):
            raise Corrupt(f"an entry of the journal is heavy after {heavy}")
        shown = [entry for entry in entries if _id(entry[0]) > last - kept]
        return tuple(
            (*codec.recorded([str(_id(id)), said[3], said[1], said[5], said[7], _epoch(id)]),) for id, said in shown
        )

    def tag(self, tag: str) -> tuple[tuple[int, str], ...]:
        return tuple((int(score), jid) for score, jid in self.members(f"t:{tag}"))

    # ---- queues

    def queues(self) -> dict[str, Record]:
        listed = {name: int(score) for score, name in self.members("queues")}
        parts = (name.rpartition("-") for name in self.names("q:"))
        found = {*listed, *(name for name, dash, part in parts if dash and part in QUEUE_PARTS)}
        records = {name: self.queue(name, listed.get(name)) for name in found}
        return {name: record for name, record in records.items() if record != DEFAULT_QUEUE}

    def queue(self, name: str, first_seen: int | None) -> Record:
        state = self.text(f"q:{name}-state", "\t0\t0\t99999999999999").split("\t")
        ready = self.members(f"q:{name}-work")
        scheduled, locks = self.places(f"q:{name}-scheduled"), self.places(f"q:{name}-locks", 19)
        recur, expires = self.places(f"q:{name}-recur"), self.places(f"q:{name}-expires")
        gates = [(int(moment), throttle) for moment, throttle in self.members(f"q:{name}-gates")]
        pauses = {reason: int(until) for reason, until in self.fields(f"q:{name}-pauses").items()}
        if state[1] != ("1" if pauses else "0"):
            raise Corrupt(f"queue {name} says {state[1]} of its pauses, which are {pauses}")
        if (int(state[0]) if state[0] else None) != first_seen:
            raise Corrupt(f"queue {name} was first seen at {state[0]}, or at {first_seen}")
        firsts = [place[0] for place in (*scheduled[:1], *locks[:1], *recur[:1])] + [at for at, _ in gates[:1]]
        if any(max(first, 0) < int(state[3]) for first in firsts):
            raise Corrupt(f"the due bound {state[3]} of queue {name} is after what is due first")
        ends = {id: int(moment) for moment, id in self.members(f"q:{name}-ends")}
        _check_expected(name, state, recur, expires, gates, ends)
        return {
            "first_seen": first_seen,
            "pauses": pauses,
            "idle": int(state[2]),
            "wakes": len(self.take(f"q:{name}-wake", "list", [])),
            "ready": tuple((int(priority), *_ready(member)) for priority, member in ready),
            "scheduled": scheduled,
            "depends": self.places(f"q:{name}-depends"),
            "locks": locks,
            "throttled": self.places(f"q:{name}-throttled"),
            "expires": expires,
            "recur": recur,
            "gates": {throttle: self.gate(name, throttle, moment) for moment, throttle in gates},
            "turns": self.turns(name),
            "ends": ends,
        }

    def turns(self, queue: str) -> dict[int, Record]:
        found = (name.partition(":") for name in self.names("turns:"))
        return {int(priority): self.turns_at(priority, queue) for priority, _, of in found if of == queue}

    def turns_at(self, priority: str, queue: str) -> Record:
        (count, mark), *following = self.members(f"turns:{priority}:{queue}")
        if mark != "#" or any(not member.startswith("k") for _, member in following):
            raise Corrupt(f"queue {queue} has the turns {mark}, {following[:3]}...")
        return {"jobs": -int(count), "next": {member[1:]: int(turn) for turn, member in following}}

    def gate(self, queue: str, throttle: str, moment: int) -> Record:
        parked, let = (self.members(f"g:{queue}\t{throttle}-{part}") for part in ("parked", "let"))
        return {
            "moment": moment,
            "parked": tuple((int(priority), int(member[:14]), member[14:]) for priority, member in parked),
            "let": tuple(
                (int(priority), int(member[:14]), int(member[14:21]), member[21:]) for priority, member in let
            ),
        }

    def throttles(self, owners: set[str]) -> dict[str, Record]:
        limited = {name for _, name in self.members("throttles")}
        if limited != set(self.names("th:", "-state")):
            raise Corrupt(f"the list of throttles with limits is {sorted(limited)}")
        if owners != {name.removeprefix(OWN) for name in limited if name.startswith(OWN) and name != OWN}:
            raise Corrupt(f"the queues {sorted(owners)} are said to have throttles of their own")
        lines = [line.split("\t") for line in self.text("families").split("\n")[:-1]]
        families = {name: int(generation) for name, generation in lines}
        in_order = sorted(filter(names_family, limited), key=lambda name: (-len(name.encode(*UTF8)), name))
        if list(families) != in_order:
            raise Corrupt(f"the families are said to be {list(families)}")
        cooling = {name: int(moment) for moment, name in self.members("cooling")}
        used = cooling.keys() | set(self.names("th:", "-held")) | set(self.names("th:", "-queues"))
        listed = {name for _, name in self.members("throttles-used")}
        if listed - used:  # those of jobs that were leased by an older library are not listed
            raise Corrupt(f"the throttles {sorted(listed - used)} are said to be in use")
        found = limited | used
        return {name: self.throttle(name, families.get(name, 0), cooling.get(name, 0)) for name in found}

    def throttle(self, name: str, generation: int, cools_at: int) -> Record:
        numbers = [int(number) for number in self.text(f"th:{name}-state", "0\t0\t0\t0\t0\t0\t0\t0").split("\t")]
        if cools_at:
            generation, *numbers[-2:], said = (int(number) for number in self.text(f"th:{name}-family").split("\t"))
            if said != cools_at:
                raise Corrupt(f"throttle {name} cools at {said}, and is listed at {cools_at}")
        return {
            **dict(zip((*LIMITS, "level", "level_at"), numbers, strict=True)),
            "generation": generation,
            "cools_at": cools_at,
            "held": tuple((int(token), jid) for token, jid in self.members(f"th:{name}-held")),
            "claims": tuple((int(at), int(token)) for at, token in self.members(f"th:{name}-claims")),
            "queues": tuple(queue for _, queue in self.members(f"th:{name}-queues")),
        }

    def request(self, id: str) -> Record:
        values = self.text(f"rq:{id}").split("\t")
        if len(values) == len(REQUEST) - 9:  # written by an older library
            values.append("-")
        if len(values) == len(REQUEST) - 8:  # it does not end by itself
            values += ["0", "0", "0", "0", "-", "0"]
        if len(values) == len(REQUEST) - 2:  # so are those without the last one
            values.append("0")
        record: Record = dict(zip(REQUEST[:-1], values, strict=True))
        for field in REQUEST[:-1]:
            if field not in ("state", "queue", "reached", "reason"):
                record[field] = int(record[field])
        record["reached"] = record["reached"][1:] if record["reached"] != "-" else None
        record["reason"] = record["reason"] if record["reason"] != "-" else ""
        for field in ("fail_fast", "ending", "keep_places"):
            record[field] = bool(record[field])
        scores = sorted((jid, int(score)) for score, jid in self.members(f"rj:{id}"))
        marked = {jid: int(mark) for mark, jid in self.members(f"rd:{id}")}
        self.marked |= {(jid, after_request(id)): mark for jid, mark in marked.items()}
        return {
            **record,
            "data": self.text(f"rt:{id}", ""),
            "unfinished": tuple(jid for jid, score in scores if score > 0),
            "given": tuple(jid for jid, score in scores if score in (2, 4)),
            "yielded": tuple(jid for jid, score in scores if score in (3, 4)),
            "ended": tuple((jid, OUTCOMES[-score % 10], -score // 10) for jid, score in scores if score <= 0),
            "order": tuple(jid.decode(*UTF8) for jid in self.take(f"ro:{id}", "list", [])),
            "dependents": tuple(sorted(marked)),
        }

    def line(self, name: str) -> Record:
        places = self.places(f"l:{name}")
        active = [place for place in places if place[0] == float("-inf")]
        if any(seq for _, seq, _ in active):
            raise Corrupt(f"the line {name} has {active} places")
        return {"active": tuple(jid for _, _, jid in active), "parked": places[len(active) :]}

    def schedules(self) -> dict[str, Record]:
        return {jid: self.schedule(jid) for jid in self.names("r:")}

    def schedule(self, jid: str) -> Record:
        raw = {field.decode(*UTF8): value for field, value in self.take(f"r:{jid}", "hash", {}).items()}
        for name, none in (("throttles", b""), ("fair_key", b""), ("fair_weight", b"0")):
            raw.setdefault(name, none)  # recurring jobs of earlier versions have none
        if raw.keys() != set(SCHEDULE):
            raise Corrupt(f"the recurring job {jid} has the fields {sorted(raw)}")
        tags, later, paused, named = raw.pop("tags"), raw.pop("later"), raw.pop("paused"), raw.pop("throttles")
        words = ("queue", "klass", "data", "kind", "cron", "missed", "overlap", "fair_key")
        texts = {name: raw.pop(name).decode(*UTF8) for name in words}
        return {
            **texts,
            "tags": tuple(tag.decode(*UTF8) for tag in tags.split(b"\xff")) if tags else (),
            "later": tuple(map(int, later.split())),
            "throttles": tuple(named.decode(*UTF8).split()),
            "paused": {b"0": False, b"1": True}[paused],
            **{name: int(value) for name, value in raw.items()},
        }

    def uniques(self) -> dict[str, Record]:
        found = {key: self.unique(key, text) for key, text in self.fields("uniques").items()}
        ends = {key: int(score) for score, key in self.members("unique-ends")}
        if ends != {key: one["ends"] for key, one in found.items() if one["ends"]}:
            raise Corrupt(f"the keys with an end of their own are listed as {ends}")
        return found

    def unique(self, key: str, text: str) -> Record:
        record: Record = dict(zip(UNIQUE, text.split("\t"), strict=True))
        return {**record, **{name: int(record[name]) for name in ("since", "ends")}}

    # ---- messages, and who subscribes to them

    def subscriptions(self) -> dict[str, Record]:
        found = self.take("subscriptions", "hash", {})
        return {name.decode(*UTF8): _subscription(value.split(b"\t")) for name, value in found.items()}

    def messages(self) -> tuple[tuple[int, int, int, str, str], ...]:
        return tuple(self.message(int(score), member) for score, member in self.members("messages"))

    def message(self, seq: int, member: str) -> tuple[int, int, int, str, str]:
        if member[14:] != str(seq):
            raise Corrupt(f"the message {member} has the score {seq}")
        due_at, subject, data = self.text(f"m:{seq}").split("\n", 2)
        return seq, int(member[:14]), int(due_at), subject, data

    # ---- workers

    def workers(self) -> dict[str, Record]:
        listed = {name: int(score) for score, name in self.members("workers")}
        found = {name: self.worker(name) for name in self.names("w:", ":jobs")}
        seen = {name: record["seen_at"] for name, record in found.items() if record["seen_at"] is not None}
        if seen != listed:
            raise Corrupt(f"the list of workers is {listed}, they say {seen}")
        return found

    def worker(self, name: str) -> Record:
        record: Record = {"seen_at": None, "held": {}, "grants": {}}
        for field, value in self.fields(f"w:{name}:jobs").items():
            if field == "":
                record["seen_at"] = int(value)
            elif field[0] == "j":
                record["held"][field[1:]] = int(value)
            else:
                record["grants"][field[1:]] = tuple(value.split(" "))
        return record

    # ---- statistics

    def days(self) -> dict[tuple[int, str], Record]:
        found = {}
        unswept = {member for _, member in self.members("s-minutes")}
        for score, member in self.members("s"):
            day, _, queue = member.partition(":")
            if int(score) != int(day):
                raise Corrupt(f"the day {member} has the score {score}")
            counts = self.fields(f"s:stats:{member}")
            found[int(day), queue] = {
                "wait": self.sample("wait", member),
                "run": self.sample("run", member),
                **{name: int(counts.get(name, 0)) for name in ("failures", "failed", "retries")},
                "minutes": self.minutes(member),
                "swept": member not in unswept,
                "tags": self.parts("tags", member),
                "workers": self.parts("workers", member),
            }
        if not unswept <= {f"{day}:{queue}" for day, queue in found}:
            raise Corrupt(f"there are minutes of {sorted(unswept)}, which have no statistics")
        return found

    def parts(self, by: str, member: str) -> dict[str, Record]:
        """Read what is counted by tags or by workers, including pending durations of tags."""
        folded = dict(self.fields(f"s:{by}:{member}"))
        pending = self.take(f"s:{by}-new:{member}", "list", [])
        if len(pending) >= FOLD_TAGS:
            raise Corrupt(f"{len(pending)} durations by {by} of {member} are pending")
        durations: dict[tuple[str, str], list[int]] = {}
        for item in pending:
            head, *names = item.decode(*UTF8).split("\t")
            most, duration = map(int, head[1:].split())
            for name in names:
                if name not in folded and len(folded) < most:
                    folded[name] = "0\t0\t0\t\n0\t0\t0\t"
                if name in folded:
                    durations.setdefault((head[0], name), []).append(duration)
        found = {}
        for name, text in folded.items():
            wait, _, run = text.partition("\n")
            found[name] = {
                "wait": _copied(_sample(wait, tuple(durations.get(("w", name), ())))),
                "run": _copied(_sample(run, tuple(durations.get(("r", name), ())))),
            }
        return found

    def minutes(self, member: str) -> dict[int, tuple[int, ...]]:
        """Read the counts of each minute, including pending runs."""
        counts: dict[int, list[int]] = {}
        for field, value in self.fields(f"s:minutes:{member}").items():
            counts.setdefault(int(field[:-1]), [0, 0, 0, 0])["cfrm".index(field[-1])] = int(value)
        for run_ms, minute in self.runs.pop(member, ()):
            count = counts.setdefault(minute, [0, 0, 0, 0])
            count[0] += 1
            count[3] += min(run_ms, RUN_MOST)
        return {minute: tuple(count) for minute, count in counts.items()}

    def durations(self, kind: str, member: str) -> list[int]:
        """Read the pending durations; for runs, keep their minutes."""
        pending = [tuple(map(int, item.split())) for item in self.take(f"s:{kind}-new:{member}", "list", [])]
        if len(pending) >= FOLD:
            raise Corrupt(f"{len(pending)} durations of {member} are pending")
        if kind == "run":
            self.runs[member] = [(run_ms, minute) for run_ms, minute in pending]
        return [duration for duration, *_ in pending]

    def sample(self, kind: str, member: str) -> Record:
        folded = self.text(f"s:{kind}:{member}", "0\t0\t0\t")
        return _copied(_sample(folded, tuple(self.durations(kind, member))))

    # ---- requests

    def requests(self) -> tuple[tuple[str, Any], ...]:
        replies = self.fields("requests")
        order = [request for _, request in self.members("requests-order")]
        if sorted(replies) != sorted(order):
            raise Corrupt("the requests are not those in order")
        return tuple((request, _reply(replies[request].rstrip(" "))) for request in order)

    # ---- jobs

    def jobs(self, tags: dict[str, tuple[tuple[int, str], ...]]) -> dict[str, Record]:
        tagged: dict[str, dict[str, int]] = {}
        for tag, jobs in tags.items():
            for seq, jid in jobs:
                tagged.setdefault(jid, {})[tag] = seq
        jids = [
            jid for jid in self.names("j:") if not jid.endswith(("-data", "-dependencies", "-dependents", "-results"))
        ]
        found = {jid: self.job(jid, tagged.get(jid, {})) for jid in jids}
        for edge in self.marks.keys() & self.marked.keys():
            if self.marks[edge] != self.marked[edge]:
                raise Corrupt(f"the edge {edge} has the mark {self.marks[edge]}, or {self.marked[edge]}")
        return found

    def results(self, jid: str) -> tuple[tuple[str, str, str, str], ...]:
        found = []
        fields = self.fields(f"j:{jid}-results")
        texts = {field[1:]: fields.pop(field) for field in list(fields) if field.startswith("\t")}
        for other, value in fields.items():
            number, state, name, mark, text = _RESULT.fullmatch(value).groups()  # type: ignore[union-attr]
            if mark == "\f":
                told, text = int(text), texts.pop(other, "")
                if told != budget.size(text) or told <= budget.INLINE:
                    raise Corrupt(f"the result of {other} for {jid} has {budget.size(text)} bytes, not {told}")
            found.append((int(number), (other, name, state, text)))
        if texts:
            raise Corrupt(f"{jid} has results of jobs that are no dependencies: {sorted(texts)[:3]}")
        return tuple(one for _, one in sorted(found))

    def job(self, jid: str, tagged: dict[str, int]) -> Record:
        raw = self.take(f"j:{jid}", "string", b"")
        record, more, counted, names = (_job if len(raw) <= SHORT else _job.__wrapped__)(jid, raw)
        edges = {member: int(mark) for mark, member in self.members(f"j:{jid}-dependencies")}
        marked = {member: int(mark) for mark, member in self.members(f"j:{jid}-dependents")}
        self.marks |= {(jid, other): mark for other, mark in edges.items()}
        self.marked |= {(other, jid): mark for other, mark in marked.items()}
        dependencies, dependents = tuple(sorted(edges)), tuple(sorted(marked))
        counts = (len(dependencies), len(dependents), len(record["history"]))
        if counts != counted:
            raise Corrupt(f"job {jid}: dependencies, dependents, stages are counted as {counted}, {counts} are found")
        if set(names) != tagged.keys():
            raise Corrupt(f"job {jid} has the tags {[*names]}, but is listed under {sorted(tagged)}")
        return {
            **record,
            "data": self.text(f"j:{jid}-data") if more["apart"] == b"1" else record["data"],
            "tags": tuple((tag, tagged[tag]) for tag in names),
            "dependencies": dependencies,
            "dependents": dependents,
            "marks": tuple(sorted((other, mark) for other, mark in edges.items() if mark)),
        }


SHORT = 2000
"""The bytes of a job's record up to which what is parsed from it is remembered."""


@lru_cache(4096)
def _job(jid: str, raw: bytes) -> tuple[Record, dict[str, bytes], tuple[int, int, int], tuple[str, ...]]:
    """Read the record of a job, without its other keys: fields, rare fields, counts, tags."""
    head, _, rest = raw.partition(b"\n")
    f = dict(zip(FIELDS, head.decode(*UTF8).split("\t"), strict=True))
    size, stop = int(f["data_size"]), len(rest) - int(f["more"])
    more, texts = _more(jid, rest[stop:])
    record: Record = {
        **{name: f[name] for name in ("klass", "queue", "state", "worker", "grant", "put_request")},
        **{name: int(f[name]) for name in NUMBERS},
        "data": rest[:size].decode(*UTF8),
        "result": texts[0],
        "progress": texts[1],
        "failure": _failure(more, texts[2]),
        "history": tuple((stage.what, stage.at, stage.facts) for stage in codec.history(rest[size:stop])),
        "options": codec.options(more["options"]),
    }
    names = tuple(tag.decode(*UTF8) for tag in more["tags"].split(b"\xff")) if more["tags"] else ()
    return record, more, (int(more["waits"]), int(more["waited_for"]), int(f["stages"])), names


@lru_cache(4096)
def _sample(folded: str, pending: tuple[int, ...]) -> Record:
    """Read a sample, and fold in the pending durations."""
    count, mean, squares, bins = folded.split("\t")
    sample: Record = {"count": int(count), "mean": float(mean), "squares": float(squares), "bins": {}}
    for part in bins.split():
        index, size = part.split(":")
        sample["bins"][int(index)] = int(size)
    for duration in pending:
        sample["count"] += 1
        delta = duration - sample["mean"]
        sample["mean"] += delta / sample["count"]
        sample["squares"] += delta * (duration - sample["mean"])
        sample["bins"][bin_of(duration)] = sample["bins"].get(bin_of(duration), 0) + 1
    return sample


def _copied(sample: Record) -> Record:
    return {**sample, "bins": dict(sample["bins"])}


def _check_expected(
    name: str, state: list[str], recur: Places, expires: Places, gates: list[tuple[int, str]], ending: Mapping[str, int]
) -> None:
    """Check the bounds in a queue's state against the first entry of each sorted set."""
    expected, ends, looked_at = (*state[4:], "", "", "")[:3]
    first_run, first_gate = "".join(str(at) for at, *_ in recur[:1]), "".join(str(at) for at, _ in gates[:1])
    if (expected, looked_at) != (first_run, first_gate):
        raise Corrupt(f"queue {name} expects {state[4:]}, where {recur[:1]} and {gates[:1]} come first")
    if any(place[0] + 1 < max(int(ends or 10**14), int(state[3])) for place in expires[:1]):
        raise Corrupt(f"queue {name} expects no job to expire before {ends}, and the first does at {expires[:1]}")
    if min(ending.values(), default=10**14) < max(int(ends or 10**14), int(state[3])):
        raise Corrupt(f"queue {name} expects no request to be due before {ends}, and they are at {ending}")


FIELDS = (
    "state", "seq", "stages", "more", "queue", "ready_at", "retries", "remaining", "worker", "token", "grant",
    "popped_at", "expires_at", "ended_at", "klass", "priority", "put_at", "put_request", "data_size",
)  # fmt: skip
NUMBERS = (
    "seq", "ready_at", "retries", "remaining", "token", "popped_at", "expires_at", "ended_at", "priority", "put_at",
)  # fmt: skip
MORE = {
    "waits": b"0", "waited_for": b"0", "tags": b"", "group": b"", "failed_at": b"0", "failed_worker": b"",
    "apart": b"0", "result_size": b"0", "progress_size": b"0", "message_size": b"0",
    "options": b"",
}  # fmt: skip
"""Fields that few jobs have, with their values for other jobs."""


def _more(jid: str, raw: bytes) -> tuple[dict[str, bytes], list[str]]:
    """Read the rare fields of a job, and its result, progress and message."""
    head, _, rest = raw.partition(b"\n")
    more = dict(zip(MORE, head.split(b"\t"), strict=True)) if raw else MORE
    if raw and more == MORE:
        raise Corrupt(f"job {jid} says that it has more, and has not")
    texts, at = [], 0
    for size in (int(more["result_size"]), int(more["progress_size"]), int(more["message_size"])):
        texts.append(rest[at : at + size].decode(*UTF8))
        at += size
    if at != len(rest):
        raise Corrupt(f"job {jid} has {len(rest)} bytes of texts, {at} are counted")
    return more, texts


def _subscription(fields: list[bytes]) -> Record:
    seq, position, queue, klass, priority, delay_ms, retries, tags, options, patterns = fields
    return {
        "seq": int(seq),
        "position": int(position) if position else None,
        "patterns": _list(patterns),
        "queue": queue.decode(*UTF8),
        "klass": klass.decode(*UTF8),
        "priority": int(priority),
        "retries": int(retries),
        "delay_ms": int(delay_ms),
        "tags": _list(tags),
        "options": codec.options(options),
    }


def _list(raw: bytes) -> tuple[str, ...]:
    return tuple(one.decode(*UTF8) for one in raw.split(b"\xff")) if raw else ()


def _ready(member: str) -> tuple[int, int, str]:
    """Read the position of a ready job among those of its priority. For lifo jobs both numbers are negative."""
    jid = _jid(member[28:], 5 if member[27] == "0" else 0)
    if member[0] >= "0":
        return int(member[:14]), int(member[14:28]), jid
    ready_at = int(chr(ord(member[0]) + 15) + member[1:14])
    return ready_at - 10**14, int(member[14:28]) - 10**14 + 1, jid


def _jid(filled: str, blanks: int) -> str:
    """Read the id at the end of a member, after so many blanks."""
    jid = filled.lstrip(" ")
    if len(filled) - len(jid) != blanks:
        raise Corrupt(f"there are not {blanks} blanks before {jid}")
    return jid


def _failure(more: dict[str, bytes], message: str) -> tuple[str, str, int, str] | None:
    if not more["group"]:
        return None
    return more["group"].decode(*UTF8), message, int(more["failed_at"]), more["failed_worker"].decode(*UTF8)


@lru_cache(1 << 16)
def _id(text: bytes) -> int:
    return int(text.partition(b"-")[0])


@lru_cache(1 << 16)
def _epoch(text: bytes) -> int:
    """Read the epoch of an event or of an entry of the journal: the second part of its id."""
    return int(text.partition(b"-")[2])


def _reply(text: str, ends: str = "\n") -> Any:
    kind, rest = text[:1], text[1:]
    if kind == "#":
        return int(rest)
    return rest if kind == "$" else tuple(_reply(part, "\t") for part in rest.split(ends)[:-1])

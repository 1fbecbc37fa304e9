"""Wrong drivers: the reference driver with one fault each. The kit must catch all and name the violated requirement.

    python tests/kit/wrong_driver.py drops-the-token

A fault is a function that changes one thing on its way: the arguments of an operation before they are written, the
words of a call, the outcome, or the line of an answer.
"""

# ruff: noqa: E501  a fault is a line

from __future__ import annotations

import base64
import json
import os
import secrets
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "drivers"))

import python_driver

from qmodel.contract.operations import CATALOGUE
from qmodel.wire import codec

Arguments = dict[str, Any]
Outcome = dict[str, Any]


class Fault(NamedTuple):
    """A fault: the requirement that it violates, and the place where it acts."""

    requirement: str
    before: Callable[[str, Arguments], Arguments] | None = None
    words: Callable[[str, list[str]], list[str]] | None = None
    after: Callable[[str, Arguments, Outcome], Outcome] | None = None
    line: Callable[[dict[str, Any], str], str] | None = None
    driver: type[python_driver.Driver] | None = None


class Wrong(python_driver.Driver):
    """The reference driver, with a fault."""

    fault: Fault

    def outcome(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = asked["op"]
        if self.fault.before:
            head = {key: asked[key] for key in ("op", "now")}
            given = {key: value for key, value in asked.items() if key not in ("seq", "cmd", "op", "now")}
            asked = self.fault.before(name, given) | head
        found = json.loads(json.dumps(super().outcome(asked)))
        return self.fault.after(name, asked, found) if self.fault.after else found

    def call(self, name: str, words: list[str]) -> Any:
        return super().call(name, self.fault.words(name, words) if self.fault.words else words)


# ---- helpers


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Change every scalar in a JSON value."""
    if isinstance(value, dict):
        return {key: changed(one, change) for key, one in value.items()}
    return [changed(one, change) for one in value] if isinstance(value, list) else change(value)


def argument(name: str, change: Callable[[Any], Any]) -> Callable[[str, Arguments], Arguments]:
    """Change one argument, also of nested operations."""

    def before(op: str, given: Arguments) -> Arguments:
        given = {key: change(value) if key == name else value for key, value in given.items()}
        if isinstance(given.get("jobs"), list):
            given["jobs"] = [before(op, one) for one in given["jobs"]]
        return given

    return before


def without(name: str) -> Callable[[str, Arguments], Arguments]:
    """Leave one argument out."""
    return lambda op, given: {key: value for key, value in given.items() if key != name}


def texts(change: Callable[[str], str]) -> Callable[[str, Arguments], Arguments]:
    """Change data on their way to the server."""
    return argument("data", change)


def reply(change: Callable[[Any], Any]) -> Callable[[str, Arguments, Outcome], Outcome]:
    """Change every scalar of a reply."""
    return lambda op, given, found: {"reply": changed(found["reply"], change)} if "reply" in found else found


def jobs_of(found: Any) -> list[dict[str, Any]]:
    """The jobs in a reply."""
    if isinstance(found, dict):
        return [found] if "klass" in found else [job for one in found.values() for job in jobs_of(one)]
    return [job for one in found for job in jobs_of(one)] if isinstance(found, list) else []


def job(change: Callable[[dict[str, Any]], Any]) -> Callable[[str, Arguments, Outcome], Outcome]:
    """Change every job of a reply."""

    def after(op: str, given: Arguments, found: Outcome) -> Outcome:
        for one in jobs_of(found.get("reply")):
            change(one)
        return found

    return after


def unpacked(op: str, given: Arguments, found: Outcome) -> Outcome:
    """Read jobs and messages whose data were packed."""
    there = found.get("reply")
    for one in there if op == "messages" and there else jobs_of(there):
        if "data" in one:
            one.update(data=base64.b64decode(one["data"]).decode())
    return found


def on(name: str, change: Callable[[str, Arguments], Arguments]) -> Callable[[str, Arguments], Arguments]:
    """Change the arguments of one operation."""
    return lambda op, given: change(op, given) if op == name else given


def lists(change: Callable[[list[Any]], list[Any]]) -> Callable[[str, Arguments], Arguments]:
    """Change every list of names or ids."""
    return lambda op, given: {
        key: change(value) if isinstance(value, list) and key != "jobs" else value for key, value in given.items()
    }


def asks(op: str) -> bool:
    """Whether an operation takes a request id."""
    return any(one.name == "request" for one in CATALOGUE[op].arguments)


def as_float32(value: Any) -> Any:
    return int(struct.unpack("f", struct.pack("f", value))[0]) if type(value) is int else value


# ---- faults that remember something


class Blind(Wrong):
    """Sends everything twice, each time as a new operation."""

    def call(self, name: str, words: list[str]) -> Any:
        super().call(name, words)
        return super().call(name, words)


class Caching(Wrong):
    """Caches reads until the next reset."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Outcome] = {}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["cmd"] == "reset":
            self.kept.clear()
        return super().answer(asked)

    def outcome(self, asked: dict[str, Any]) -> dict[str, Any]:
        if not CATALOGUE[asked["op"]].reads:
            return super().outcome(asked)
        key = json.dumps({name: value for name, value in asked.items() if name != "seq"})
        if key not in self.kept:
            self.kept[key] = super().outcome(asked)
        return self.kept[key]


class FirstToken(Wrong):
    """Keeps the first token that it sees of a job."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: dict[str, int] = {}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["cmd"] == "reset":
            self.tokens.clear()
        return super().answer(asked)

    def outcome(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "token" in asked and asked["jid"] in self.tokens:
            asked = asked | {"token": self.tokens[asked["jid"]]}
        found = super().outcome(asked)
        if asked["op"] == "pop":
            for one in jobs_of(found.get("reply")):
                self.tokens.setdefault(one["jid"], one["token"])
        return found


class OnePrefix(Wrong):
    """Stays in the namespace of the first reset."""

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        before = self.prefix
        found = super().answer(asked)
        self.prefix = before or self.prefix
        return found


class StoredState(Wrong):
    """Shows the state inside the record."""

    def call(self, name: str, words: list[str]) -> Any:
        raw = super().call(name, words)
        return _stored(raw if raw is None else codec.listed(CATALOGUE[name].cls, raw))


def _stored(raw: Any) -> Any:
    if not isinstance(raw, list):
        return raw
    if len(raw) in (3, 7) and isinstance(raw[2], bytes) and b"\t" in raw[2]:
        return [raw[0], raw[2].split(b"\t")[0], *raw[2:]]
    return [_stored(one) for one in raw]


class Characters(Wrong):
    """Takes sizes in bytes for sizes in characters: the data after a text begin too late."""

    def outcome(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = super().outcome(asked)
        for one in jobs_of(found.get("reply")):
            over = len(one["data"].encode()) - len(one["data"])
            if over:
                one["data"] += "put\t0\tqueue"[:over]
        return found


class Shuffled(Wrong):
    """Answers a batch in another order."""

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = super().answer(asked)
        return {"results": found["results"][::-1]} if "results" in found else found


class Short(Wrong):
    """Loses the last result of a batch."""

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = super().answer(asked)
        return {"results": found["results"][:-1]} if "results" in found else found


class Fragile(Wrong):
    """Crashes at the hundredth operation."""

    count = 0

    def outcome(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        if self.count == 100:
            sys.stderr.write("Segmentation fault\n")
            sys.stderr.flush()
            os._exit(139)
        return super().outcome(asked)


class Sleepy(Wrong):
    """Waits for ever when no job can be popped."""

    def outcome(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = super().outcome(asked)
        if found == {"reply": []}:
            time.sleep(3600)
        return found


class Renaming(Wrong):
    """Uses its own names for job types."""

    def outcome(self, asked: dict[str, Any]) -> dict[str, Any]:
        given = argument("klass", lambda text: f"mine.{text}")(asked["op"], asked)
        return changed(super().outcome(given), lambda one: one[5:] if str(one)[:5] == "mine." else one)


# ---- the table

QUOTED = {"\n": "\\n", "\\": "\\\\"}

FAULTS: dict[str, Fault] = {
    # the protocol
    "writes-a-greeting": Fault("DRIVER-1", line=lambda asked, text: f"Ready.\n{text}"),
    "writes-python-for-json": Fault("DRIVER-1", line=lambda asked, text: str(json.loads(text))),
    "numbers-its-answers-itself": Fault("DRIVER-2", line=lambda a, t: json.dumps(json.loads(t) | {"seq": a["seq"] - 1})),
    "answers-twice": Fault("DRIVER-2", line=lambda asked, text: f"{text}\n{text}"),
    "hangs": Fault("DRIVER-3", driver=Sleepy),
    "forgets-to-answer-resets": Fault("DRIVER-3", line=lambda asked, text: "" if asked["cmd"] == "reset" else text),
    "crashes-on-the-100th": Fault("DRIVER-4", driver=Fragile),
    "speaks-another-protocol": Fault("DRIVER-5", line=lambda a, t: t.replace('"protocol": 1', '"protocol": 2')),
    "announces-what-nobody-knows": Fault("DRIVER-5", line=lambda a, t: t.replace('"put.*"', '"everything"')),
    "says-ok-to-everything": Fault("DRIVER-6", line=lambda a, t: t if a["cmd"] != "op" else f'{{"seq": {a["seq"]}, "ok": true}}'),
    "answers-errors-of-its-own": Fault("DRIVER-6", after=lambda o, a, f: {"error": f["refusal"]} if "refusal" in f else f),
    "loses-the-last-of-a-batch": Fault("DRIVER-7", driver=Short),
    "reorders-a-batch": Fault("DRIVER-7", driver=Shuffled),
    "lies-about-its-features": Fault("DRIVER-8", after=lambda o, a, f: {"skip": "later"} if o == "tagged" else f),
    "raises-refusals": Fault("DRIVER-9", after=lambda o, a, f: {"crash": str(f["refusal"])} if "refusal" in f else f),
    # calls
    "forgets-the-prefix": Fault("SPACE-1", driver=OnePrefix),
    "swaps-queue-and-id": Fault("CALL-1", words=lambda o, w: [*w[:2], w[3], w[2], *w[4:]] if o == "put" else w),
    "writes-defaults": Fault("CALL-2", before=on("put", lambda o, a: {"priority": 0, **a})),
    "leaves-out-empty-lists": Fault("CALL-3", before=lambda o, a: {k: v for k, v in a.items() if v != []}),
    "moments-in-seconds": Fault("TIME-1", words=lambda o, w: [str(int(w[0]) // 1000), *w[1:]]),
    "uses-the-clock-of-the-server": Fault("TIME-1", words=lambda o, w: ["", *w[1:]]),
    "clock-of-its-own": Fault("TIME-3", words=lambda o, w: [w[0] or str(int(time.time() * 1000) - 3_600_000), *w[1:]]),
    "delays-in-seconds": Fault("TIME-2", before=argument("delay_ms", lambda value: value // 1000)),
    "ignores-the-sign-of-priorities": Fault("NUMBER-2", before=argument("priority", abs)),
    "numbers-of-32-bits": Fault("NUMBER-3", before=argument("value", lambda value: min(value, 2**31 - 1))),
    "priorities-as-floats": Fault("NUMBER-3", before=argument("priority", as_float32)),
    "numbers-with-exponents": Fault("NUMBER-3", words=lambda o, w: [*w[:2], *(f"{int(x):.17g}".replace("0" * 6, "e6") if x.isdigit() and len(x) > 9 else x for x in w[2:])]),
    "loses-the-last-of-a-list": Fault("LIST-1", before=lists(lambda all: all[:-1] if len(all) > 1 else all)),
    "sorts-lists": Fault("LIST-2", before=lists(sorted)),
    "forgets-lists-inside": Fault("NEST-1", before=lambda o, a: a | {"jobs": [without("tags")(o, one) for one in a["jobs"]]} if "jobs" in a else a),
    "flags-as-words": Fault("FLAG-1", words=lambda o, w: [("true" if x == "1" and w[i - 1] in ("cascade", "wait", "all") else x) for i, x in enumerate(w)]),
    # sending
    "retries-blindly": Fault("SEND-1", driver=Blind),
    "a-new-request-id-each-time": Fault("SEND-2", words=lambda o, w: [w[0], secrets.token_hex(8), *w[2:]]),
    "drops-the-request-id": Fault("SEND-2", words=lambda o, w: [w[0], "", *w[2:]]),
    "one-request-id-for-all": Fault("SEND-3", words=lambda o, w: [w[0], w[1] or "request", *w[2:]]),
    # texts
    "mangles-utf-8": Fault("TEXT-1", before=texts(lambda t: t.encode("ascii", "replace").decode())),
    "latin-1": Fault("TEXT-1", after=job(lambda j: j.update(data=j["data"].encode().decode("latin-1")))),
    "counts-characters": Fault("TEXT-1", driver=Characters),
    "cuts-at-nul": Fault("TEXT-2", before=texts(lambda t: t.split("\0")[0])),
    "line-ends-of-its-own": Fault("TEXT-2", after=job(lambda j: j.update(data=j["data"].replace("\r\n", "\n")))),
    "trims-blanks": Fault("TEXT-3", before=texts(str.strip)),
    "truncates-long-data": Fault("TEXT-4", before=texts(lambda t: t[:65_535])),
    "parses-data": Fault("TEXT-5", after=job(lambda j: j.update(data=_parsed(j["data"])))),
    # replies
    "numbers-through-floats": Fault("NUMBER-1", after=reply(lambda v: float(v) if type(v) is int else v)),
    "numbers-as-texts": Fault("NUMBER-1", after=reply(lambda v: str(v) if type(v) is int else v)),
    "rounds-fractions": Fault("NUMBER-4", after=reply(lambda v: float(f"{v:.6g}") if type(v) is float else v)),
    "swallows-null": Fault("NULL-1", after=lambda o, a, f: {"reply": {}} if f == {"reply": None} else f),
    "answers-refusals-as-success": Fault("REFUSAL-1", after=lambda o, a, f: {"reply": None} if "refusal" in f else f),
    "one-code-for-all": Fault("REFUSAL-2", after=lambda o, a, f: {"refusal": ["JOB_NOT_FOUND", *f["refusal"][1:]]} if "refusal" in f else f),
    "drops-facts": Fault("REFUSAL-3", after=lambda o, a, f: {"refusal": f["refusal"][:2]} if "refusal" in f else f),
    "caches-reads": Fault("READ-1", driver=Caching),
    "sorts-replies": Fault("LIST-2", after=lambda o, a, f: {"reply": _sorted(f["reply"])} if "reply" in f else f),
    "flags-as-numbers": Fault("FLAG-2", after=reply(lambda v: int(v) if type(v) is bool else v)),
    "mixes-up-queue-and-type": Fault("JOB-1", after=job(lambda j: j.update(klass=j["queue"], queue=j["klass"]))),
    "overlooks-the-edges-of-jobs": Fault("JOB-6", after=job(lambda j: j.update(dependencies=[], dependents=[]))),
    "shows-the-stored-state": Fault("JOB-2", driver=StoredState),
    "overlooks-data-that-stand-apart": Fault("JOB-3", after=job(lambda j: j.update(data="" if len(j["data"].encode()) > 1024 else j["data"]))),
    "leaves-logs-quoted": Fault("JOB-4", after=job(lambda j: [s.update(facts=[s["facts"][0].translate(str.maketrans(QUOTED))]) for s in j["history"] if s["what"] == "log"])),
    "forgets-failures": Fault("JOB-5", after=job(lambda j: j.update(failure=None))),
    "counts-offsets-from-one": Fault("REPLY-page", before=lambda o, a: a | {"offset": a["offset"] - 1} if a.get("offset") else a),
    # leases
    "pops-without-tokens": Fault("LEASE-1", after=lambda o, a, f: job(lambda j: j.pop("token"))(o, a, f) if o == "pop" else f),
    "drops-the-token": Fault("LEASE-2", before=argument("token", lambda token: 0)),
    "keeps-the-first-token": Fault("LEASE-3", driver=FirstToken),
    "hides-lost-locks": Fault("LEASE-4", after=lambda o, a, f: {"reply": "complete"} if f.get("refusal", [""])[0] == "LOCK_LOST" else f),
    # what operations mean: found by vectors, and named by the last step of the shrunk history
    "retry-forgets-its-group": Fault("OP-retry", before=on("retry", without("group"))),
    "completes-without-next": Fault("OP-complete", before=on("complete", without("next"))),
    "releases-at-once": Fault("OP-release", before=on("release", without("delay_ms"))),
    "renews-without-data": Fault("OP-heartbeat", before=on("heartbeat", without("data"))),
}  # fmt: skip
"""The faults by name, each with the requirement that it violates."""

MIXED: dict[str, Fault] = {
    "packs-data": Fault(
        "MIXED-1",
        before=texts(lambda t: base64.b64encode(t.encode()).decode()),
        after=unpacked,
    ),
    "renames-types": Fault("MIXED-1", driver=Renaming),
}
"""Faults that a binding alone cannot show, because it reads only its own writes."""


def _parsed(text: str) -> str:
    try:
        return json.dumps(json.loads(text))
    except ValueError:
        return text


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(one) for one in value), key=json.dumps)
    return value


if __name__ == "__main__":
    fault = {**FAULTS, **MIXED}[sys.argv[1]]
    driver = (fault.driver or Wrong)()
    driver.fault = fault
    for line in sys.stdin:
        asked = json.loads(line)
        text = json.dumps({"seq": asked["seq"], **driver.answer(asked)})
        text = fault.line(asked, text) if fault.line else text
        print(text, end="\n" if text else "", flush=True)

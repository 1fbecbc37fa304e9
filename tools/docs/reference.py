"""`docs/catalogue.md` and `docs/catalogue.json`: everything that the catalogue says."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from qmodel import __version__
from qmodel.backends import bundle
from qmodel.contract import lifecycle, operations, replies
from qmodel.contract.arguments import (
    MOST,
    POLICIES,
    Choice,
    Dependency,
    Flag,
    Id,
    Kind,
    Label,
    ListOf,
    Name,
    Operations,
    Text,
    Whole,
)
from qmodel.contract.events import EVENTS, WHOLE, Event
from qmodel.contract.operations import CATALOGUE, SECTIONS, Argument, Spec
from qmodel.contract.reasons import Reason
from qmodel.contract.refusals import REASONS, Refusal
from qmodel.model.engine import step
from qmodel.model.state.config import OPTIONS
from qmodel.model.state.store import Store

FORMAT = 1
"""The version of the layout of catalogue.json."""

MADE = "<!-- Made by `./dev docs`. Change what it is made from: {0}. -->\n"

REPLIES: dict[str, tuple[str, type[Any] | None]] = {
    "jid": ("the job's id", None),
    "jids": ("a list of job ids", None),
    "names": ("a list of texts", None),
    "state": ("the state in which the job is then", None),
    "number": ("a whole number", None),
    "lease": ("a Lease", replies.Lease),
    "job": ("a Job, or nothing", replies.Job),
    "jobs": ("a list of Jobs", replies.Job),
    "completed_and_popped": ("a CompletedAndPopped", replies.CompletedAndPopped),
    "page": ("a Page", replies.Page),
    "results": ("a list of Results", replies.Result),
    "tallies": ("a list of Tallies", replies.Tally),
    "tracked": ("a TrackedJobs", replies.TrackedJobs),
    "schedule": ("a Schedule, or nothing", replies.Schedule),
    "schedules": ("a list of Schedules", replies.Schedule),
    "reasons": ("a list of Reasons", Reason),
    "throttle": ("a Throttle", replies.Throttle),
    "throttles": ("a list of Throttles", replies.Throttle),
    "unique": ("a Unique, or nothing", replies.Unique),
    "subscription": ("a Subscription, or nothing", replies.Subscription),
    "subscriptions": ("a list of Subscriptions", replies.Subscription),
    "messages": ("a list of Messages", replies.Message),
    "request": ("a Request, or nothing", replies.Request),
    "drained": ("a Drained", replies.Drained),
    "found": ("a Found", replies.Found),
    "bulk": ("a Bulk", replies.Bulk),
    "entries": ("a list of Entries", replies.Entry),
    "queues": ("a list of QueueCounts", replies.QueueCounts),
    "queue": ("a QueueCounts", replies.QueueCounts),
    "workers": ("a list of WorkerCounts", replies.WorkerCounts),
    "worker": ("a WorkerJobs", replies.WorkerJobs),
    "stats": ("a Stats", replies.Stats),
    "metrics": ("a list of Minutes", replies.Minute),
    "events": ("a list of Events", Event),
    "recorded": ("a list of Recorded", replies.Recorded),
    "settings": ("a list of Settings", replies.Setting),
}
"""Each shape of reply: what it is, and the record that it is made of."""

RECORDS: tuple[type[Any], ...] = (
    *dict.fromkeys(record for _, record in REPLIES.values() if record is not None),
    replies.Failure,
    replies.Stage,
    replies.Sample,
)


# ---- what both say


def resends() -> dict[str, str]:
    """How a resend is recognised, by kind, as the head of the catalogue tells it."""
    found = re.findall(r"^- `(\w+)`: (.+)$", operations.__doc__ or "", re.M)
    assert {spec.resend for spec in CATALOGUE.values()} <= dict(found).keys()
    return dict(found)


def heading(section: str) -> str:
    """Format the heading of a section: its title, and its name in code font."""
    return f"{SECTIONS[section]} (`{section}`)"


def sections() -> Iterator[tuple[str, list[Spec]]]:
    """Yield the heading of each section, and its operations."""
    for section in SECTIONS:
        yield heading(section), [spec for spec in CATALOGUE.values() if spec.section == section]


def unit(argument: Argument) -> str:
    """The unit of a whole number, if it has one."""
    if argument.name.endswith("_ms"):
        return "milliseconds"
    return "milliseconds since the epoch" if argument.name in ("at", "since") else ""


def described(cls: type[Any]) -> str:
    """The whole docstring of a class."""
    return inspect.cleandoc(cls.__doc__ or "")


def typed(record: type[Any]) -> dict[str, str]:
    """The fields of a record, with their types in words."""
    return {name: _in_words(record.__annotations__[name]) for name in record._fields}


def _in_words(annotation: Any) -> str:
    text = str(getattr(annotation, "__forward_arg__", annotation))
    words = {"str": "text", "int": "whole number", "float": "number", "bool": "flag", "Fact": "text or whole number"}
    if found := re.fullmatch(r"tuple\[(\w+), \.\.\.\]", text):
        return f"list of {words.get(found[1], found[1])}s"
    return words.get(text, text.replace(" | None", " or nothing"))


def record_fields(part: str) -> list[str]:
    """The fields of a part of a record in their order, as lua/state/records.lua lists them: `fields`, or `more`."""
    found = re.search(rf"records\.{part} = \{{(.*?)\}}", bundle.read("state/records"), re.S)
    assert found, f"lua/state/records.lua has no records.{part}"
    return re.findall(r"'(\w+)'", found[1])


# ---- the page


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _default(argument: Argument) -> str:
    if argument.required:
        return "required"
    match argument.default:
        case None | "" | ():
            return {"None": "not given", "": "empty", "()": "none"}[str(argument.default)]
        case bool():
            return "yes" if argument.default else "no"
        case _:
            return f"`{argument.default}`"


def _argument(argument: Argument) -> tuple[str, str, str]:
    said = argument.kind.expected
    of = unit(argument)
    return f"`{argument.name}`", said + (f", in {of}" if of else ""), _default(argument)


def _reply(spec: Spec) -> str:
    said, record = REPLIES[spec.reply]
    if record is None:
        return f"**Replies** {said}."
    return f"**Replies** {said} ([fields](#{record.__name__.lower()}-record))."


def _allowed(spec: Spec) -> str:
    """The states in which an operation is not refused with WRONG_STATE, found by trying it in each."""
    found = [state for state, store in worlds() if not _is_wrong(step(store, NOW, _on_a(spec)))]
    return f"**Allowed** when the job is {' or '.join(found)}.\n"


def _on_a(spec: Spec) -> Any:
    needed = {"jid": "a", "jids": ("a",), "dependencies": ("b",), "delay_ms": 0}
    return spec.cls(**{a.name: needed[a.name] for a in spec.arguments if a.required})


def _is_wrong(outcome: Any) -> bool:
    return isinstance(outcome, Refusal) and outcome.code == "WRONG_STATE"


def worlds() -> Iterator[tuple[str, Store]]:
    """Each state that a job can be in, with a store in which the job `a` is in it."""
    put, pop = operations.Put("q", "a", "k", ""), operations.Pop("q", "w")
    token = 2
    ways: dict[str, tuple[Any, ...]] = {
        "scheduled": (operations.Put("q", "a", "k", "", delay_ms=1000),),
        "depends": (operations.Put("r", "b", "k", ""), operations.Put("q", "a", "k", "", depends=("b",))),
        "waiting": (put,),
        "running": (put, pop),
        "stalled": (put, pop, operations.Timeout(("a",))),
        "complete": (put, pop, operations.Complete("a", token)),
        "failed": (put, pop, operations.Fail("a", token, "g", "")),
    }
    for state, history in ways.items():
        store = Store()
        for op in history:
            step(store, NOW, op)
        assert store.jobs["a"].state == state
        yield state, store


NOW = 1000


def _codes(codes: Iterable[str]) -> str:
    return ", ".join(f"[`{code}`](#refusals)" for code in codes)


def _operation(spec: Spec) -> str:
    parts = [f"### {spec.name}\n", described(spec.cls) + "\n"]
    if spec.arguments:
        parts.append(table(("argument", "what it may be", "default"), map(_argument, spec.arguments)))
    parts.append(_reply(spec) + "\n")
    parts.append(f"**Refused** with {_codes(('BAD_ARGUMENT', *spec.refusals))}.\n")
    if "WRONG_STATE" in spec.refusals:
        parts.append(_allowed(spec))
    if spec.events:
        parts.append("**Events:** " + ", ".join(f"[`{event}`](#kinds-of-event)" for event in spec.events) + ".\n")
    parts.append(f"**Sent again** (`{spec.resend}`): {resends()[spec.resend]}\n")
    if spec.finishes:
        parts.append("A server whose memory is full still accepts it.\n")
    return "\n".join(parts)


def _contents() -> str:
    rows = []
    for title, specs in sections():
        rows += [(title if spec is specs[0] else "", f"[`{spec.name}`](#{spec.name})", spec.summary) for spec in specs]
    return table(("section", "operation", "what it does"), rows)


def _record(record: type[Any]) -> str:
    facts = table(("field", "type"), ((f"`{name}`", kind) for name, kind in typed(record).items()))
    return f"### {record.__name__} record\n\n{described(record)}\n\n{facts}"


def _sentences() -> str:
    rows = (
        (f"`{code}`", ", ".join(f"`{fact}`" for fact in reason.facts), reason.sentence, reason.next_step)
        for code, reason in REASONS.items()
    )
    return table(("code", "facts", "sentence", "what to do"), rows)


def _facts(of: dict[str, tuple[str, ...]], head: str) -> str:
    return table(
        (head, "facts"), ((f"`{name}`", ", ".join(f"`{fact}`" for fact in facts)) for name, facts in of.items())
    )


def _options() -> str:
    rows = (
        (f"`{name}`", o.purpose, f"{o.default:,}", f"{o.low:,} to {o.high:,}", o.unit) for name, o in OPTIONS.items()
    )
    return table(("option", "what it is for", "default", "range", "unit"), rows)


PAGE = """\
# The catalogue

Every operation of qmodel {version}: what it does, what it takes, what it replies, why it may be refused, and what
happens when it is sent twice. The same as data: [catalogue.json](catalogue.json). How it is written on the wire:
[wire.md](wire.md). The states of a job: [states.md](states.md).

Besides its arguments every operation takes the moment at which it happens, in milliseconds since the epoch; where
none is given, the backend's clock says it. No operation takes or gives more than {most} of anything.

{contents}
## How a resend is recognised

{resends}
{operations}
## Records

What replies are made of. Times are milliseconds since the epoch; 0 means never.

{records}
## Refusals

An operation that is refused changes nothing. A refusal is a code and its facts.

{refusals}
## Kinds of event

Every change is one event, in a stream whose sequence has no gaps. Its facts:

{events}
## History

What happened to a job is kept with it, as stages. The facts of each kind of stage:

{history}
## Options

{options}
`heartbeat-<queue>` sets `heartbeat` for one queue.
"""


def markdown() -> str:
    """The text of docs/catalogue.md."""
    parts = []
    for title, specs in sections():
        parts += [f"## {title}\n", *map(_operation, specs)]
    page = PAGE.format(
        version=__version__,
        most=MOST,
        contents=_contents(),
        resends=table(("kind", "how"), ((f"`{kind}`", how) for kind, how in resends().items())),
        operations="\n".join(parts),
        records="\n".join(map(_record, RECORDS)),
        refusals=_sentences(),
        events=_facts(EVENTS, "event"),
        history=_facts(replies.HISTORY, "stage"),
        options=_options(),
    )
    return MADE.format("qmodel/contract") + page


# ---- the data


def _kind(kind: Kind) -> dict[str, Any]:
    said: dict[str, Any] = {"kind": kind.wire}
    match kind:
        case Text(most) | Name(most) | Id(most) | Label(most):
            said["most_bytes"] = most
        case Whole(low, high):
            said |= {"low": low, "high": high}
        case ListOf(item, least, most):
            said |= {"item": _kind(item), "least": least, "most": most}
        case Operations(of):
            said |= {"of": of.lower(), "least": 1, "most": MOST}
        case Choice(words):
            said["words"] = list(words)
        case Dependency():
            said["policies"] = list(POLICIES)
        case Flag():
            pass
        case _:
            raise AssertionError(kind)
    return said


def _data_of(argument: Argument) -> dict[str, Any]:
    said: dict[str, Any] = {"name": argument.name, **_kind(argument.kind), "required": argument.required}
    if not argument.required:
        said["default"] = argument.default
    return {**said, "unit": unit(argument)} if unit(argument) else said


def _data(spec: Spec) -> dict[str, Any]:
    return {
        "summary": spec.summary,
        "description": described(spec.cls),
        "arguments": [_data_of(argument) for argument in spec.arguments],
        "reply": spec.reply,
        "reads": spec.reads,
        "resend": spec.resend,
        "refusals": ["BAD_ARGUMENT", *spec.refusals],
        "events": list(spec.events),
        "allowed_when_memory_is_full": spec.finishes,
    }


def as_json() -> str:
    """The text of docs/catalogue.json."""
    shapes = {shape: {"is": said, "record": record and record.__name__} for shape, (said, record) in REPLIES.items()}
    said = {
        "format": FORMAT,
        "qmodel": __version__,
        "library": bundle.LIBRARY,
        "most": MOST,
        "operations": {name: _data(spec) for name, spec in CATALOGUE.items()},
        "resends": resends(),
        "replies": shapes,
        "records": {record.__name__: typed(record) for record in RECORDS},
        "refusals": {
            code: {"facts": r.facts, "sentence": r.sentence, "next_step": r.next_step} for code, r in REASONS.items()
        },
        "events": EVENTS,
        "history": replies.HISTORY,
        "whole_facts": sorted(WHOLE),
        "record": {part: record_fields(part) for part in ("fields", "more")},
        "options": {name: option._asdict() for name, option in OPTIONS.items()},
        "states": lifecycle.STATES,
        "transitions": [{"from": was, "to": now, "by": by} for (was, now), by in lifecycle.TRANSITIONS.items()],
    }
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"

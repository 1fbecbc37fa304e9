"""`docs/wire.md`: how an operation is written by hand, and how its reply is read."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from qmodel.backends import bundle
from qmodel.contract.arguments import ListOf, Operations
from qmodel.contract.events import EVENTS, WHOLE
from qmodel.contract.operations import CATALOGUE, Argument, Spec
from qmodel.contract.replies import HISTORY
from qmodel.wire.layout import named, positional
from tools.docs.reference import MADE, REPLIES, record_fields, sections, table
from tools.docs.story import PREFIX, REFUSED, Told, World, told

MOST_SHOWN = 4
"""How many numbers of a longer list an example shows."""

FIELDS: dict[str, str] = {
    "state": "the state as stored; the one that is true at the moment of the call stands before the record",
    "queue": "its queue",
    "klass": "its type",
    "priority": "lower runs sooner",
    "retries": "how often it may be tried again",
    "remaining": "how often it may still be tried again",
    "seq": "the event by which it came to its place",
    "put_at": "when it was put into its queue",
    "ready_at": "when it became, or becomes, ready",
    "popped_at": "when it was last handed out",
    "expires_at": "when its lease ends; 0 without one",
    "ended_at": "when it was completed, or failed; 0 for not yet",
    "worker": "who holds it, or empty",
    "token": "the token of its last lease",
    "put_request": "the request that put it, or empty",
    "data_size": "how many bytes of data follow",
    "grant": "the request under which it is leased, or empty",
    "more": "how many bytes the last part has; 0 when there is none",
    "tags": "its tags, the byte FF between",
    "waits": "how many jobs it waits for",
    "waited_for": "how many jobs wait for it",
    "group": "the group of its last failure, or empty",
    "failed_at": "when that was",
    "failed_worker": "whose it was then",
    "stages": "how many stages its history has",
    "apart": "1 when its data stand apart, or else 0",
    "result_size": "how many bytes of result follow",
    "progress_size": "how many bytes of progress follow",
    "message_size": "how many bytes of the last failure's message follow",
    "options": "its options by name, `<name>=<value>` with the byte 255 between",
}
"""What each field of a job's record is."""


def _fields(part: str) -> str:
    return table(
        ("", "field", "what it is"),
        ((str(i), f"`{name}`", FIELDS[name]) for i, name in enumerate(record_fields(part), 1)),
    )


# ---- what is shown


def command(one: Told) -> str:
    """A call as it is typed into a shell."""
    words = ["FCALL", one.function, "1", PREFIX, *one.arguments]
    return "redis-cli " + " ".join(map(word, words))


def word(text: str) -> str:
    """A word as it is typed into a shell."""
    if "\n" in text or "\t" in text:
        return "$'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t") + "'"
    return shlex.quote(text)


def shown(raw: Any, indent: str = "") -> str:
    """A reply as redis-cli shows it; long lists of numbers are cut."""
    if isinstance(raw, list):
        return _list(raw, indent)
    if isinstance(raw, bytes):
        return '"' + "".join(map(_character, raw.decode())) + '"'
    return "(nil)" if raw is None else f"(integer) {raw}"


def _character(character: str) -> str:
    escaped = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}.get(character, character)
    return escaped if escaped.isprintable() else f"\\x{ord(character):02x}"


def _list(raw: list[Any], indent: str) -> str:
    if not raw:
        return "(empty array)"
    items, rest = raw, ""
    if len(raw) > MOST_SHOWN * 10 and all(type(one) is int for one in raw):
        items, rest = raw[:MOST_SHOWN], f"\n{indent}... {len(raw)} numbers in all"
    width = len(str(len(items)))
    lines = [f"{i:>{width}}) " + shown(one, indent + " " * (width + 2)) for i, one in enumerate(items, 1)]
    return ("\n" + indent).join(lines) + rest


def example(one: Told) -> str:
    """A call and its reply."""
    return f"```console\n$ {command(one)}\n{shown(one.reply)}\n```\n"


# ---- each operation


def syntax(spec: Spec) -> str:
    """How the arguments of an operation are written."""
    places = [f"<{argument.name}>" for argument in positional(spec)]
    return " ".join([*places, *(_pair(argument) for argument in named(spec))])


def _pair(argument: Argument) -> str:
    match argument.kind:
        case Operations(of):
            return f"{argument.name} <size> <{of.lower()}> ..."
        case ListOf(item, _):
            value = f"{argument.name} <{item.wire}> ..."
        case _:
            value = f"{argument.name} <{argument.kind.wire}>"
    return value if argument.required else f"[{value}]"


def _operations(examples: dict[str, Told]) -> Iterator[str]:
    for title, specs in sections():
        yield f"### {title}\n"
        for spec in specs:
            yield f"#### {spec.name}\n"
            yield f"{spec.summary} [More](catalogue.md#{spec.name}).\n"
            written = f"{bundle.function_name(spec.name)} 1 <prefix> <now> <request> {syntax(spec)}".rstrip()
            yield f"```text\nFCALL {written}\n```\n"
            yield example(examples[spec.name])


def _shapes() -> str:
    return table(("reply", "elements"), ((f"`{shape}`", said) for shape, said in SHAPES.items()))


SHAPES = {
    "jid, state": "a text",
    "jids, names": "a list of texts",
    "number": "a whole number",
    "lease": "expires_at, and 1 if the job was revoked or else 0",
    "job": "a job, as below, or nil",
    "jobs": "a list of jobs",
    "completed_and_popped": "the state, and a list of jobs",
    "page": "how many there are in all, and a list of ids",
    "results": "a list of: name, jid, state, result",
    "tallies": "a list of pairs: a name, a whole number",
    "tracked": "a list of jobs, and a list of ids",
    "schedule, schedules": "nil, or: jid, queue, klass, data, priority, retries, a list of tags, interval_ms, backlog, "
    "runs, next_at, kind, cron, due_at (a list), last_at, offset_ms, start_at, end_at, limit, made, missed, "
    "catchup_ms, overlap, open, paused (1 or 0); a list of those",
    "reasons": "a list of: a code, and a list of its facts as text",
    "throttle, throttles": "name, concurrency, rate, rate_ms, capacity, refill, refill_ms, running, claims, tokens, "
    "parked, opens_at, a list of ids; a list of those",
    "found": "the cursor; a list of jobs as below",
    "entries": "a list of pairs: a key, a text",
    "bulk": "how many were done, how many were passed over, the cursor",
    "unique": "nil, or: unique, mode, jid, since, until, next",
    "subscription, subscriptions": "nil, or: name, a list of patterns, queue, klass, priority, retries, delay_ms, "
    "a list of tags, a list of its options as pairs of name and value, how many messages it is behind; a list of those",
    "messages": "a list of: number, at, due_at, subject, data",
    "request": "nil, or: id, queue, priority, limit, state, total, pending, running, done, failed, canceled, "
    "opened_at, ended_at",
    "drained": "two whole numbers: how many were canceled, how many are left",
    "queue, queues": "name, waiting, scheduled, depends, running, stalled, paused (1 or 0), next_at, recurring, due; a "
    "list of those",
    "workers": "a list of: name, seen_at, valid leases, lapsed leases",
    "worker": "two lists of ids: under a valid lease, under a lapsed one",
    "stats": "queue, day, wait, run, failures, failed, retries; wait and run are: count, mean and squares as text in "
    "`%.17g`, and the 287 counts of the histogram, or none when it is too old",
    "metrics": "a list of: at, completed, failed, retried, run_ms",
    "events": "a list of pairs: the sequence as text, and the event as below",
    "recorded": "a list of: the number as text, the sequence as text, the operation, the call, the outcome, as below",
    "settings": "a list of: option, value, 1 if somebody set it or else 0",
}
"""What each shape of reply is on the wire."""


def markdown() -> str:
    """The text of docs/wire.md."""
    world = World()
    examples: dict[str, Told] = {}
    for one in told(world):
        examples.setdefault(one.op.spec.name, one)
    assert examples.keys() == CATALOGUE.keys(), CATALOGUE.keys() - examples.keys()
    fields = {*record_fields("fields"), *record_fields("more")}
    assert fields == FIELDS.keys(), fields ^ FIELDS.keys()
    shapes = {name for names in SHAPES for name in names.split(", ")}
    assert shapes == REPLIES.keys(), shapes ^ REPLIES.keys()
    return MADE.format("tools/docs/wire.py and the catalogue") + PAGE.format(
        put=example(examples["put"]),
        put_many=example(examples["put_many"]),
        get=example(examples["get"]),
        first_event=shown(world.keyspace.execute("XRANGE", PREFIX.encode() + b"events", b"1-0", b"1-0")),
        refused="\n".join(example(world.tell(op)) for op in REFUSED),
        shapes=_shapes(),
        fields=_fields("fields"),
        count=len(record_fields("fields")),
        more=_fields("more"),
        more_count=len(record_fields("more")),
        history=table(
            ("stage", "facts"), ((f"`{n}`", ", ".join(f"`{f}`" for f in facts)) for n, facts in HISTORY.items())
        ),
        whole=", ".join(f"`{name}`" for name in sorted(WHOLE)),
        events=table(
            ("event", "facts"), ((f"`{n}`", ", ".join(f"`{f}`" for f in facts)) for n, facts in EVENTS.items())
        ),
        operations="\n".join(_operations(examples)),
    )


PAGE = """\
# The wire

How to call qmodel from `redis-cli`, or from a language that has no client for it. The library is loaded by the first
`qmodel.connect("redis://...")`, and stays on the server. What each operation means, and what each argument may be, is
in [catalogue.md](catalogue.md), and as data in [catalogue.json](catalogue.json).

Every example on this page was executed when the page was made, one second after the other, beginning at midnight on
1 January 2026 with an empty server.

## A call

```text
FCALL qmodel_v1_<operation> 1 <prefix> <now> <request> <argument> ...
```

- `prefix` is what all keys of a namespace begin with: `ql:` unless you choose another. It is the one key of the call.
  On a cluster give it a hash tag: `{{shop}}:ql:`.
- `now` is the moment of the operation in milliseconds since the epoch, or empty for the server's clock. Leave it
  empty.
- `request` is an id that you make up, and use again when you send the same call again: a lost reply then does no
  harm. Empty means that you do not mind. Operations that have no `request` among their arguments ignore it. (As a
  pair, `request <id>` counts only in an operation within another.) See "how a resend is recognised" in
  [catalogue.md](catalogue.md).
- Required arguments stand in order. All others follow as `name value` pairs, in any order.

{put}
How values are written:

| kind | on the wire |
| --- | --- |
| text, names, ids, words | as they are, in UTF-8 |
| whole number | digits, without leading zeros or a plus sign: `0`, `-5`, `1767225600000` |
| flag | `1` or `0` |
| list | the name before each value: `tags a tags b`. A list that is empty on purpose: `no tags` |
| operations | for each: the name, the number of its strings, and those strings, without `now` and `request` |

A list that is left out and a list that is empty differ: `put` without `tags` leaves the tags of an existing job
alone, and `no tags` takes them away. An operation inside another one:

{put_many}
## A reply

A list. Its first element is `OK`, and the second is what the operation replies:

{shapes}
If the operation is refused, the first element is the code of the refusal, and the facts follow as texts, in the order
in which [catalogue.md](catalogue.md#refusals) names them. Nothing has changed then.

{refused}
An error of Redis (`-LOADING ...`, `-READONLY ...`, `-OOM ...`) is no refusal, nor is a lost connection: you do not
know then whether the call was executed. Send it again, with the same request id, when the cause is gone.

## A job

Three elements or seven:

1. its id
2. its state, true at the moment of the call
3. its record
4. its data, if they stand apart; otherwise empty
5. 1 if it is tracked, or else 0
6. the ids of the jobs that it waits for
7. the ids of the jobs that wait for it

The last four are left out when there is nothing to say in them.

{get}
The record is what the server stores, given as it is. It is {count} fields with a tab between, and a line end; then,
without anything between, the data, the history, and the last part, which few jobs have. Sizes are in bytes. Data of
more than 1024 bytes stand apart.

{fields}
The last part is {more_count} fields with a tab between, and a line end; then, without anything between, the result, the
progress, and the message of the last failure. For a job without it all of these are empty, or 0.

{more}
Times are milliseconds since the epoch.

The history is one line for each stage: what, when, and its facts, with tabs between. In the message of a `log`, which
may be any text, a line end is written `\\n` and a backslash `\\\\`.

{history}
## The event stream

The stream `<prefix>events`. Its ids are `<sequence>-0`, and sequences have no gaps, so a reader that has seen 41 and
then 43 knows that it missed 42. Each entry has one field, `e`: the moment, the event and its facts, with tabs
between. Read it with `XREAD` or `XRANGE`, or by the operation [events](#events), and never write to it.

```console
$ redis-cli XRANGE ql:events 1-0 1-0
{first_event}
```

Facts are texts, here and in a job's history; these are whole numbers: {whole}.

{events}
## The journal

While the option `journal` is 1, the stream `<prefix>journal` has an entry for every operation that may change
something, under the id `<number>-0`; numbers have no gaps. Its fields: `o`, the operation; `e`, the sequence of the
last event after it; `c`, the call; `r`, the reply. The last two are written as they go over the line (RESP2), a list of
texts and a reply as above. The call begins with the moment, also where the caller left it empty.

## Waiting for work

A worker that pops with `wait 1` and gets nothing is counted as idle. The next job that becomes ready leaves an
element in the list `<prefix>q:<queue>-wake`, which wakes one worker. So: pop; if nothing came, `BLPOP` that list, for
at most as long as until the queue's `next_at` (see [queue](#queue)), since a job whose time comes wakes nobody; then
pop again.

## Servers without functions

Redis 6 has no functions. There the same library is one script, whose first argument names the operation:

```text
EVALSHA <sha1> 1 <prefix> <operation> <now> <request> <argument> ...
```

`python -c 'from qmodel.backends import bundle; print(bundle.script())'` prints the script for `SCRIPT LOAD`, and
`bundle.library()` gives the library for `FUNCTION LOAD`.

## Two versions on one server

The name of the library, `qmodel_v1`, holds the version of all that is on this page and of the keys. `FCALL
qmodel_v1_digest 0` replies `<revision>:<digest>` of the library that is loaded; a client replaces an older one.

## Every operation

{operations}"""

"""`docs/wire.md`: how to write an operation by hand, and how to read its reply."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from qmodel.backends import bundle
from qmodel.contract.arguments import ListOf, Operations
from qmodel.contract.events import EVENTS, WHOLE
from qmodel.contract.operations import CATALOGUE, Argument, Spec
from qmodel.contract.replies import HISTORY
from qmodel.contract.routing import LONGEST, SLOTS, Layout, slot, tag
from qmodel.wire.layout import named, positional
from tools.docs.reference import MADE, REPLIES, record_fields, sections, table
from tools.docs.routing import NAMES, SHARDS
from tools.docs.story import PREFIX, REFUSED, SEVERAL, Step, World, steps

MOST_SHOWN = 4
"""The number of items that an example shows of a long list of numbers."""

FIELDS: dict[str, str] = {
    "state": "the stored state; the state at the moment of the call comes before the record",
    "queue": "its queue",
    "klass": "its type",
    "priority": "lower runs sooner",
    "retries": "the number of retries",
    "remaining": "the number of retries left",
    "seq": "the sequence of the event that brought it to its current place",
    "put_at": "when it was put into its queue",
    "ready_at": "when it became ready, or will",
    "popped_at": "when it was last handed out",
    "expires_at": "the end of its lease; 0 without one",
    "ended_at": "when it completed or failed; 0 before",
    "worker": "the worker that holds it, or empty",
    "token": "the token of its last lease",
    "put_request": "the id of the request that put it, or empty",
    "data_size": "the number of bytes of data that follow",
    "grant": "the id of the request that leased it, or empty",
    "more": "the number of bytes of the last part; 0 without one",
    "tags": "its tags, separated by the byte FF",
    "waits": "the number of jobs that it depends on",
    "waited_for": "the number of its dependents",
    "group": "the group of its last failure, or empty",
    "failed_at": "the moment of this failure",
    "failed_worker": "the worker that held it then",
    "stages": "the number of stages of its history",
    "apart": "1 if its data are stored separately, or else 0",
    "result_size": "the number of bytes of the result that follow",
    "progress_size": "the number of bytes of the progress that follow",
    "message_size": "the number of bytes of the last failure's message that follow",
    "options": "its options, `<name>=<value>`, separated by the byte FF",
}
"""The meaning of each field of a job's record."""


def _fields(part: str) -> str:
    return table(
        ("", "field", "meaning"),
        ((str(i), f"`{name}`", FIELDS[name]) for i, name in enumerate(record_fields(part), 1)),
    )


# ---- examples


def command(one: Step) -> str:
    """Write a call as a shell command."""
    words = ["FCALL", one.function, "1", PREFIX, *one.arguments]
    return "redis-cli " + " ".join(map(word, words))


def word(text: str) -> str:
    """Quote a word for a shell."""
    if "\n" in text or "\t" in text:
        return "$'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t") + "'"
    return shlex.quote(text)


def shown(raw: Any, indent: str = "") -> str:
    """Format a reply as redis-cli does; long lists of numbers are cut."""
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


def example(one: Step) -> str:
    """Write an example: a call and its reply."""
    return f"```console\n$ {command(one)}\n{shown(one.reply)}\n```\n"


def _several(world: World) -> str:
    """Write the example of several operations in one call."""
    words, raw = world.calls(SEVERAL)
    said = " ".join(map(word, ["FCALL", bundle.CALLS, "1", PREFIX, *words]))
    return f"```console\n$ redis-cli {said}\n{shown(raw)}\n```\n"


# ---- each operation


def syntax(spec: Spec) -> str:
    """Write the syntax of the arguments of an operation."""
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


def _operations(examples: dict[str, Step]) -> Iterator[str]:
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
    "page": "the total number, and a list of ids",
    "results": "a list of: name, jid, state, result",
    "tallies": "a list of pairs: a name, a whole number",
    "tracked": "a list of jobs, and a list of ids",
    "schedule, schedules": "nil, or: jid, queue, klass, data, priority, retries, a list of tags, interval_ms, backlog, "
    "runs, next_at, kind, cron, due_at (a list), last_at, offset_ms, start_at, end_at, limit, made, missed, "
    "catchup_ms, overlap, open, paused (1 or 0), a list of throttles, fair_key, "
    "fair_weight; or a list of these",
    "reasons": "a list of: a code, and a list of its facts as text",
    "throttle, throttles": "name, concurrency, rate, rate_ms, capacity, refill, refill_ms, running, claims, tokens, "
    "parked, opens_at, a list of ids; or a list of these",
    "used_throttles": "the cursor; a list of throttles, each as above",
    "found": "the cursor; a list of jobs as below",
    "entries": "a list of pairs: a key, a text",
    "bulk": "the number of processed jobs, the number of skipped jobs, the cursor",
    "cleaned": "the number of deleted jobs, the number of skipped jobs, the cursor, a list of ids of deleted jobs",
    "unique": "nil, or: unique, mode, jid, since, until, next",
    "subscription, subscriptions": "nil, or: name, a list of patterns, queue, klass, priority, retries, delay_ms, "
    "a list of tags, a list of its options as pairs of name and value, how many messages it is behind; or a list "
    "of these",
    "messages": "a list of: number, at, due_at, subject, data",
    "request": "nil, or: id, queue, priority, limit, state, total, pending, running, done, failed, canceled, "
    "opened_at, ended_at, deadline_at, open_until, fail_fast (1 or 0), reason, dependents, data, "
    "keep_places (1 or 0)",
    "sub_requests": "the offset to continue from, 0 at the end, and a list of: jid, outcome, state, group, result",
    "forgotten": "three whole numbers: sub-requests left, deleted jobs, and jobs that stay",
    "drained": "two whole numbers: canceled jobs, and jobs left",
    "queue, queues": "name, waiting, scheduled, depends, running, stalled, paused (1 or 0), next_at, recurring, due; "
    "or a list of these",
    "workers": "a list of: name, seen_at, valid leases, expired leases",
    "worker": "two lists of ids: jobs with a valid lease, jobs with an expired one",
    "stats": "queue, day, wait, run, failures, failed, retries; wait and run are: count, mean and squares as text in "
    "`%.17g`, and the 287 counts of the histogram, or none if it is too old",
    "metrics": "a list of: at, completed, failed, retried, run_ms",
    "events": "a list of: the sequence as text, the event as below, and the epoch as text",
    "newest": "the sequence and the epoch, as texts",
    "recorded": "a list of: the number as text, the sequence as text, the operation, the call and the outcome as "
    "below, and the epoch as text",
    "settings": "a list of: option, value, 1 if it was set or else 0",
}
"""The form of each kind of reply on the wire."""


def markdown() -> str:
    """Write the text of docs/wire.md."""
    world = World()
    examples: dict[str, Step] = {}
    for one in steps(world):
        examples.setdefault(one.op.spec.name, one)
    assert examples.keys() == CATALOGUE.keys(), CATALOGUE.keys() - examples.keys()
    fields = {*record_fields("text_fields"), *record_fields("more")}
    assert fields == FIELDS.keys(), fields ^ FIELDS.keys()
    shapes = {name for names in SHAPES for name in names.split(", ")}
    assert shapes == REPLIES.keys(), shapes ^ REPLIES.keys()
    return MADE.format("tools/docs/wire.py and the catalogue") + PAGE.format(
        put=example(examples["put"]),
        put_many=example(examples["put_many"]),
        get=example(examples["get"]),
        first_event=shown(world.keyspace.execute("XRANGE", PREFIX.encode() + b"events", b"2", b"2")),
        refused="\n".join(example(world.execute(op)) for op in REFUSED),
        several=_several(world),
        shapes=_shapes(),
        fields=_fields("text_fields"),
        count=len(record_fields("text_fields")),
        more=_fields("more"),
        more_count=len(record_fields("more")),
        history=table(
            ("stage", "facts"), ((f"`{n}`", ", ".join(f"`{f}`" for f in facts)) for n, facts in HISTORY.items())
        ),
        whole=", ".join(f"`{name}`" for name in sorted(WHOLE)),
        events=table(
            ("event", "facts"), ((f"`{n}`", ", ".join(f"`{f}`" for f in facts)) for n, facts in EVENTS.items())
        ),
        slots=SLOTS,
        longest=LONGEST,
        homes=_homes(),
        operations="\n".join(_operations(examples)),
    )


def _homes() -> str:
    rows = (
        (f"`{name}`", f"`{tag(name)}`", str(slot(name)), *(str(Layout(n).home(name)) for n in SHARDS))
        for name in NAMES
        if len(name) < LONGEST
    )
    return table(("name", "tag", "slot", *(f"home of {n}" for n in SHARDS)), rows)


PAGE = """\
# The wire protocol

How to call qmodel from `redis-cli`, or from a language without a client. The first `qmodel.connect("redis://...")`
loads the library, and it stays on the server. The meaning of each operation, and the allowed values of each argument,
are in [catalogue.md](catalogue.md), and as data in [catalogue.json](catalogue.json).

The examples on this page were executed when the page was generated, one second apart, starting at midnight on 1 January
2026 with an empty server.

## A call

```text
FCALL qmodel_v1_<operation> 1 <prefix> <now> <request> <argument> ...
```

- `prefix` is the prefix of all keys of a namespace, by default `ql:`. It is the only key of the call. On a cluster give
  it a hash tag: `{{shop}}:ql:`.
- `now` is the moment of the operation in milliseconds since the epoch, or empty for the server's clock. Leave it
  empty: only then does the server begin an epoch where one is needed ([the event stream](#the-event-stream)).
- `request` is an id that you choose, and use again when you send the same call again: then a lost reply does no harm.
  It may be empty. Operations without an argument `request` ignore it. (The pair `request <id>` counts only in an
  operation within another one.) See "how a resend is recognised" in [catalogue.md](catalogue.md).
- Required arguments come first, in order. The others follow as `name value` pairs, in any order.

{put}
Values:

| kind | on the wire |
| --- | --- |
| text, names, ids, words | unchanged, in UTF-8 |
| whole number | digits, without leading zeros or a plus sign: `0`, `-5`, `1767225600000` |
| token | likewise, up to 30 digits: keep it as text where numbers have fewer |
| flag | `1` or `0` |
| list | the name before each value: `tags a tags b`. An empty list: `no tags` |
| operations | for each: the name, the number of its strings, and these strings, without `now` and `request` |

A name that is not UTF-8 is refused. In text, such bytes are kept as they are; Python reads them as lone surrogates.

An omitted list and an empty list differ: `put` without `tags` keeps the tags of an existing job, and `no tags` removes
them. An operation inside another one:

{put_many}
## A reply

The reply of an operation that was executed is one of these:

- a text or a whole number, if that is all;
- a text of jobs, where the table says "a list of jobs" alone or after the state: for each job its id, a tab, its
  state, a tab, the number of bytes of its record, a newline, and the record ([a job](#a-job)). Without jobs it is
  empty. With the state, that comes first, and a newline;
- otherwise a list: `OK`, and the elements below. Jobs are a list there if one of them has seven elements.

{shapes}
If the operation is refused, the reply is a list whose first element is the code of the refusal. Its facts follow as
texts, in the order of [catalogue.md](catalogue.md#refusals). A refused operation has changed nothing.

{refused}
An error of Redis (`-LOADING ...`, `-READONLY ...`, `-OOM ...`) or a lost connection is not a refusal: you do not know
whether the call was executed. Send it again, with the same request id, when the cause is gone.

`-CORRUPT <key><TAB><what>` names a key that is damaged, or a command that failed inside the call: see
[when a command fails](semantics.md#when-a-command-fails). If `<what>` begins with `the step is kept`, the next call
that writes completes the step; otherwise nothing was changed.

## Several operations in one call

```text
FCALL qmodel_v1_calls 1 <prefix> <operation> <count> <now> <request> <argument> ... <operation> <count> ...
```

A call costs the server more than a plain operation does. So a program that has several operations may send them in
one call: for each its name, the number of its strings, and these strings, beginning with `now` and `request`. They are
executed in order, each as a step of its own, and the reply is the list of their replies:

{several}
- Only operations that write may be part of it. If one only reads or is not known, or if the counts do not fit, the
  whole call is refused with `BAD_ARGUMENT`, `calls`, `operations`.
- A refused operation does not stop the ones after it, and neither does an error, which then stands in the list.
- The list may be shorter than the operations: once these have cost a tenth of
  [what one may cost](semantics.md#the-budget-of-one-call), the others are left. Send them in the next call.
- Operations with an empty `now` share one moment.
- Plain puts into one queue in a row, pops of one job by one worker, and completions by one worker, are written
  together: an error behind their first lasting write is the reply of each of them.
- A full server refuses the call with `-OOM`, although it may execute operations that finish jobs: send these one by
  one.

## A job

Three elements or seven:

1. its id
2. its state at the moment of the call
3. its record
4. its data, if they are stored separately; otherwise empty
5. 1 if it is tracked, or else 0
6. the ids of its dependencies
7. the ids of its dependents

The last four are omitted if all of them are empty.

{get}
The record is returned as the server stores it: {count} fields separated by tabs, and a line end; then, without
separators, the data, the history, and the last part, which few jobs have. Sizes are in bytes. Data of more than 1024
bytes are stored separately.

{fields}
The last part is {more_count} fields separated by tabs, and a line end; then, without separators, the result, the
progress, and the message of the last failure. For a job without this part, all of these are empty, or 0.

{more}
Times are milliseconds since the epoch.

The history has one line for each stage: its kind, its moment, and its facts, separated by tabs. The message of a `log`
or of `raised`, the last fact, may be any text: in it, a line end is written `\\n` and a backslash `\\\\`.

{history}
## The event stream

Every event has a sequence. Sequences have no gaps, so a reader that has seen 41 and then 43 knows that it missed 42. A
server that may have lost the end of its log (a failover, a restored backup) begins a new epoch, a greater number, with
its next change: it may give a sequence again, but never with the same epoch. The first event of an epoch is
`epoch_begun`. So a reader keeps both numbers, and passes them to [events](#events), which refuses it with `FORKED` if
what it has read was lost. The token of a lease is made of both: the epoch, followed by the sequence of the event
`popped` in fourteen digits; in epoch 0 it is the sequence alone.

The stream `<prefix>events` has one entry for the events of a step, up to a hundred of them. Its id is
`<sequence of the last event>-<epoch>`. It has one field, `e`: one event a line, each the moment, the event and its
facts, separated by tabs. So the first line of an entry `43-0` with three lines is event 41, and the first entry whose
sequence is not lower than 42 has event 42. Read the stream with `XREAD` or `XRANGE`, or by the operation
[events](#events), and never write to it.

```console
$ redis-cli XRANGE ql:events 2 2
{first_event}
```

Facts are texts, here and in the history of a job. These are whole numbers: {whole}. The last fact of a `put`, `tags`,
has all tags of the job, separated by the character 31 (unit separator). It is left out if there are none.

{events}
## The journal

While the option `journal` is 1, the stream `<prefix>journal` has an entry for every operation that may change
something, with the id `<number>-<epoch>`; numbers have no gaps. Its fields are `o`, the operation; `e`, the sequence
of the last event after it; `c`, the call; and `r`, the reply. The last two are in RESP2: a list of texts, and a reply
as above. The call begins with the moment, even if the caller left it empty.

## Waiting for work

A worker that pops with `wait 1` and gets nothing is counted as idle. The next job that becomes ready pushes an element
to the list `<prefix>q:<queue>-wake`, which wakes one worker. So: pop; if there is no job, `BLPOP` this list, at most
until the queue's `next_at` (see [queue](#queue)), because a job that becomes due wakes nobody; then pop again.

## Deployments

A deployment is N namespaces, its shards. Which of them executes an operation is decided by the client, by the names
that the operation gives:

- The *tag* of a name is what stands in its first braces that are not empty, if they close within the first {longest}
  characters. Otherwise it is the name without `-dead-<digits>` at its end, and of that the first {longest} characters.
- The *slot* of a name is the CRC16 (XMODEM) of its tag in UTF-8, modulo {slots}: that of `123456789` is 12739.
- The *home* of a name is `slot * N // {slots}`.

All names that an operation gives must have the same home; otherwise the client refuses it with `CROSS_SHARD`, and sends
nothing. Which arguments are such names, and what happens with an operation that gives none, is said with each operation
in [catalogue.md](catalogue.md), and in [catalogue.json](catalogue.json) under `routing`. There are also vectors, under
`routing` at the top: names with their tag, slot and home; operations with their shard, or the refusal; and the shortest
tags of each shard, by which a client makes ids that belong there.

A deployment whose definition has `relay=1` passes on the ends of jobs to other shards, by jobs of the queue `~relay`
that qmodel's workers perform. A client that does not put these jobs refuses such a dependency with `CROSS_SHARD`.

{homes}
## Servers without functions

Redis 6 has no functions. There the library is one script, and its first argument is the operation:

```text
EVALSHA <sha1> 1 <prefix> <operation> <now> <request> <argument> ...
```

`python -c 'from qmodel.backends import bundle; print(bundle.script())'` prints the script for `SCRIPT LOAD`, and
`bundle.library()` gives the library for `FUNCTION LOAD`.

## Two versions on one server

The name of the library, `qmodel_v1`, contains the version of this protocol and of the keys. `FCALL qmodel_v1_digest 0`
replies `<revision>:<digest>` of the loaded library; a client replaces an older one.

## Every operation

{operations}"""

"""The Lua library as one text: the files of `lua/`, one after the other (see lua/README.md).

In Redis a library is one chunk without `require`. So every file makes one local table, and all tables are declared
before the first file: a function finds the others when it runs.

The same bundle ends either in the registration of one function for each operation, or, for servers without functions,
in a call of the operation that the first argument names.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache, lru_cache
from importlib.resources import files

from qmodel.backends.embedded.keyspace import COMMANDS
from qmodel.contract.operations import CATALOGUE
from qmodel.version import __version__

LIBRARY = "qmodel_v1"
"""The library's name holds the version of the wire protocol and of the keys: two versions can stand side by side."""

FILES = (
    "contract/catalogue", "contract/refusals", "state/keys", "wire/arguments", "state/writes", "state/intent",
    "state/repair", "state/store", "state/epochs", "state/records", "state/plain_records",
    "state/plain_options", "state/budget", "state/config", "state/history",
    "state/journal", "state/plain_journal",
    "state/families",
    "state/throttles", "state/throttles_in_use", "state/parked", "state/dependencies", "state/failures",
    "state/completed", "state/workers",
    "state/queues", "state/pauses", "state/schedules", "state/requests", "state/concurrency_keys",
    "state/state_index", "state/tags", "state/tracking", "state/stats", "state/idempotency", "state/uniques",
    "state/options", "state/aging", "state/turns", "state/results", "state/cascade", "state/ttl", "state/retention",
    "state/jobs", "state/cursors",
    "state/metadata", "state/subjects", "state/messages", "state/subscriptions", "rules/selection",
    "rules/recurrence", "rules/concurrency", "rules/request_end", "rules/deduplication", "rules/cleanup",
    "rules/failure", "rules/request_cancellation", "rules/backoff", "rules/admission", "rules/explanation",
    "rules/runs", "rules/propagation",
    "rules/stages", "rules/deletion", "rules/suspension", "ops/throttle", "ops/put", "ops/recur", "ops/publish",
    "ops/pop", "ops/depend", "ops/finish", "ops/lease", "ops/change", "ops/remove", "ops/request", "ops/tag",
    "ops/recover", "ops/read", "ops/administer", "ops/annotate", "ops/deduplicate", "ops/plain_put", "ops/plain_pop",
    "ops/plain_complete", "ops/plain", "ops/bare", "wire/replies", "wire/verbs", "wire/register", "wire/calls",
)  # fmt: skip
"""The engine."""

DIALECTS = (
    "dialects/qless_texts", "dialects/qless_session", "dialects/qless_shapes", "dialects/qless_arguments",
    "dialects/qless_jobs", "dialects/qless_queues", "dialects/qless_settings", "dialects/qless_recurring",
    "dialects/qless_throttles", "dialects/qless", "dialects/qless_documents",
)  # fmt: skip
"""The dialects, which use the engine. The script for servers without functions leaves them out, because every call runs
the whole script."""

SELDOM = frozenset(DIALECTS) | {
    "rules/admission", "rules/backoff", "rules/cleanup", "rules/deduplication", "rules/deletion", "rules/explanation",
    "rules/failure", "rules/request_cancellation", "rules/propagation", "rules/recurrence", "rules/request_end",
    "rules/selection", "rules/runs", "rules/stages", "rules/suspension", "ops/administer", "ops/annotate",
    "ops/change", "ops/deduplicate", "ops/depend", "ops/lease", "ops/publish", "ops/read", "ops/recover", "ops/recur",
    "ops/remove", "rules/concurrency", "state/aging", "state/cascade", "state/concurrency_keys", "state/cursors",
    "state/failures", "state/dependencies", "state/intent", "state/journal", "state/messages", "state/metadata",
    "state/pauses", "state/retention", "state/schedules", "state/families", "state/parked", "state/results",
    "state/subjects", "state/subscriptions", "state/throttles_in_use", "state/tracking", "state/ttl", "state/turns",
}  # fmt: skip
"""Files that no hot call needs: their tables share one local, because Lua has at most 200 locals in a chunk."""

LIBRARIES = (
    "redis", "string", "table", "math", "tonumber", "tostring", "type", "ipairs", "pairs", "unpack", "pcall", "error",
    "setmetatable",
)  # fmt: skip

HOT = (
    "redis.call", "redis.pcall", "string.find", "string.match", "string.sub", "string.format", "store.numbers",
    "store.seq", "store.config", "store.bounds_text", "store.many", "store.texts", "store.durations",
    "store.left", "store.tracks", "store.begin", "store.open", "store.emit", "store.text", "store.add",
    "store.remove", "store.save", "writes.put_off", "writes.fetch", "writes.put_off_event", "store.set_field",
    "store.last", "store.bounds", "store.flush", "keys.prefix", "keys.counters", "keys.config", "keys.events",
    "keys.begin", "keys.job", "keys.member", "keys.worker", "records.get", "records.encode", "queues.begin",
    "queues.of", "queues.state_key", "jobs.lift", "config.value", "catalogue.operations", "arguments.names",
    "arguments.is_id", "refusals.raised", "plain.answer", "string.byte", "store.begin_plain", "store.open_plain",
    "store.tell", "store.next_ids", "store.write_plain", "store.end_plain", "store.epoch", "store.row",
    "writes.begin", "writes.append", "writes.pop_first", "writes.last", "epochs.token_of", "config.owns",
    "keys.lease_member_of", "keys.member_of", "keys.ready_member_of", "keys.pending", "arguments.has_own_key",
    "plain_records.since", "store.calm", "store.own", "store.known_counters", "store.known_seq", "store.tail",
    "store.suffix", "store.id_of", "queues.known", "workers.known", "register.moment",
)  # fmt: skip
"""The functions and values that are used most: each is a local of its own instead of a field of a table."""


def _local(name: str) -> str:
    return name.replace(".", "_")


_HOT_LIBRARIES = [name for name in HOT if name.partition(".")[0] in LIBRARIES]

BINDINGS = (
    f"local {', '.join(LIBRARIES)}; local {', '.join(map(_local, HOT))}; local bound = function() "
    f"{', '.join(LIBRARIES)} = {', '.join(f'_G.{name}' for name in LIBRARIES)} "
    f"{', '.join(map(_local, _HOT_LIBRARIES))} = {', '.join(_HOT_LIBRARIES)} end\n"
)
"""Lua's libraries as locals, bound by the first call: they are not there when Redis loads a library, and looking each
up among the globals, through their guard, with every use costs a tenth of the whole step."""


def read(name: str) -> str:
    """The text of a file of the library."""
    return files("qmodel.lua").joinpath(*f"{name}.lua".split("/")).read_text(encoding="utf-8")


RECORDS = {"job": "state/records", "queue": "state/queues", "namespace": "state/keys"}
"""Variables that hold a record, and the file whose list `fields` gives the order of its fields."""


@cache
def fields(variable: str) -> dict[str, int]:
    """The list index of each field of a record."""
    found = re.search(r"\.fields = \{(.*?)\}", read(RECORDS[variable]), re.S)
    assert found, f"lua/{RECORDS[variable]}.lua has no list of fields"
    return {name: at for at, name in enumerate(re.findall(r"'(\w+)'", found[1]), 1)}


@lru_cache(maxsize=256)
def compiled(text: str) -> str:
    """Replace hot names by locals, and the fields of records by list indexes.

    A list costs a tenth of a table with names, and a local less than half of a look-up. A name in quotes is left alone,
    because it is a word of a dialect.
    """
    text = re.sub(rf"\b({'|'.join(map(re.escape, HOT))})\b", lambda found: _local(found[1]), text)
    return re.sub(
        rf"(?<!')\b((?:\w+_)?({'|'.join(RECORDS)}))\.(\w+)",
        lambda found: f"{found[1]}[{fields(found[2])[found[3]]}]",
        text,
    )


def module(name: str) -> str:
    """The name of the table that a file makes."""
    return name.rpartition("/")[2]


_OF_SELDOM = re.compile(rf"(?<![\w.'])({'|'.join(map(module, sorted(SELDOM)))})\.(?=\w)")


def qualified(text: str) -> str:
    """Read the tables of files that are seldom used from their one local."""
    return _OF_SELDOM.sub(r"seldom.\1.", text)


def body(texts: dict[str, str] | None = None, names: tuple[str, ...] = FILES) -> str:
    """The named files, one after the other; `texts` replaces some of them (mutants)."""
    texts = texts or {}
    declared = f"local {', '.join(module(name) for name in names if name not in SELDOM)}; local seldom = {{}}; "
    return declared + BINDINGS + "".join(_assigning(name, compiled(texts.get(name) or read(name))) for name in names)


def _assigning(name: str, text: str) -> str:
    """Drop the declaration of the file's table, which the bundle declares; the number of lines stays."""
    own = f"local {module(name)} = {{}}"
    assert own in text, f"lua/{name}.lua must make its table with `{own}`"
    assigned = f"{'seldom.' if name in SELDOM else ''}{module(name)} = {{}}"
    return "do " + qualified(text.replace(own, assigned, 1)) + "end\n"


def function_name(operation: str) -> str:
    """The name under which an operation is registered."""
    return f"{LIBRARY}_{operation}"


def wake_key(prefix: str, queue: str) -> str:
    """The list on which idle workers of a queue block.

    Named outside lua/state/keys.lua, as the stream of events is: a function cannot block, so a client does.
    """
    return f"{prefix}q:{queue}-wake"


def ready_keys(prefix: str, queue: str) -> list[str]:
    """The keys of a queue. None exists unless the queue has a job that is ready, or becomes ready by itself."""
    return [f"{prefix}q:{queue}-{name}" for name in ("work", "scheduled", "locks", "recur", "gates")]


def events_key(prefix: str) -> str:
    """Name the stream of events. Clients need its key only to block on it while they follow events."""
    return f"{prefix}events"


def journal_key(prefix: str) -> str:
    """The stream of the journal's entries. A client uses it only to ask how much memory it needs."""
    return f"{prefix}journal"


def _register(operation: str, flags: str) -> str:
    return (
        f"register_function{{function_name = '{function_name(operation)}', flags = {{{flags}}}, "
        f"callback = function(keys, args) if not redis then bound() end "
        f"return register.call('{operation}', keys[1], args) end}}\n"
    )


CALLS = f"{LIBRARY}_calls"
"""The function that executes several operations, each a step of its own."""

_SEVERAL = (
    f"register_function('{CALLS}', function(keys, args) if not redis then bound() end "
    "return calls.execute(keys[1], args) end)\n"
)


@cache
def digest() -> str:
    """Compute the digest that identifies the library's text."""
    return hashlib.sha256((body(names=FILES + DIALECTS) + _marks()).encode()).hexdigest()[:16]


def revision(version: str = __version__) -> int:
    """Convert the package's version to a number: of two libraries with the same name, the newer one has the higher."""
    major, minor, patch = re.findall(r"\d+", version + ".0.0")[:3]
    return (int(major) * 1000 + int(minor)) * 1000 + int(patch)


@cache
def commands() -> tuple[str, ...]:
    """The commands that the library calls, and those that a client waits by: what a user must be allowed.

    PUBLISH is called for the clients of a dialect alone, what `state/repair.lua` calls for `qmodel doctor` alone, and
    INFO may be missing (lua/state/epochs.lua).
    """
    quoted = set(re.findall(r"'([A-Z]+)'", body(names=tuple(name for name in FILES if name != "state/repair"))))
    return tuple(sorted((quoted & COMMANDS.keys() | {"BLPOP", "XREAD"}) - {"PUBLISH", "INFO"}))


def _mark() -> str:
    """Write a write that changes nothing: a key that exists in no other moment (see backends/redis/confirm.py)."""
    return "redis.call('MSET', KEYS[1] .. '!', '') redis.call('DEL', KEYS[1] .. '!') return 1 "


def _marks() -> str:
    """Write the function that does nothing but that write. It may run on a full server, as finishing may."""
    return (
        f"register_function{{function_name = '{LIBRARY}_mark', flags = {{'allow-oom'}}, "
        f"callback = function(keys) {_mark().replace('KEYS', 'keys')}end}}\n"
    )


def _denied() -> str:
    """Write the function that replies the commands which the caller may not run on keys under the prefix."""
    names = ", ".join(f"'{name}'" for name in commands())
    return (
        f"register_function{{function_name = '{LIBRARY}_denied', flags = {{'no-writes'}}, "
        "callback = function(keys) if not redis then bound() end local key, denied = keys[1] .. 'j:x', {} "
        f"for _, name in ipairs({{{names}}}) do "
        "if not redis.acl_check_cmd(name, key, key, key) then denied[#denied + 1] = name end end "
        "return denied end}\n"
    )


_REPAIRS = "".join(
    f"register_function{{function_name = '{LIBRARY}_{name}', flags = {{{flags}}}, "
    f"callback = function(keys) if not redis then bound() end return repair.{name}(keys[1]) end}}\n"
    for name, flags in (("examine", "'no-writes'"), ("mend", "'allow-oom'"))
)
"""The functions of `qmodel doctor` that find and mend what a step cannot mend by itself."""

_QLESS_FUNCTIONS = qualified(
    f"register_function('{LIBRARY}_qless', function(keys, args) if not redis then bound() end "
    "local reply, sentence = qless.call(keys[1], args, keys[2] == 'simulated') "
    "return sentence and {err = 'ERR ' .. sentence} or reply end)\n"
    f"register_function('{LIBRARY}_qless_document', function(keys, args) if not redis then bound() end "
    "local document, operation = table.remove(args, 1), table.remove(args, 1) "
    "local reply, sentence = qless_documents.call(keys[1], document, operation, args, keys[2] == 'simulated') "
    "return sentence and {err = 'ERR ' .. sentence} or reply end)\n"
)

SIMULATED = "simulated"
"""The second key of a call of the dialect that brings moments which are not real: no epoch begins by itself."""

QLESS_HEAD = "-- qless.lua, made by qmodel"
"""How the script begins that a binding of qless loads; a server that emulates Redis knows it by this."""


DOCUMENT_HEAD = "-- qless as document"
"""How a script begins that does one operation as a document spells it."""


def document_script(document: str, operation: str, prefix: str = "ql:") -> str:
    """The script of one operation as a document spells it: EVALSHA <sha> <number of keys> <key> ... <argument> ..."""
    return (
        f"{DOCUMENT_HEAD} {document} {operation}, made by qmodel {__version__}.\n"
        + body(names=FILES + DIALECTS)
        + "bound() epochs.forget()\n"
        + "local args = {}\nfor _, given in ipairs({KEYS, ARGV}) do\n  for _, one in ipairs(given) do\n"
        + "    args[#args + 1] = one\n  end\nend\n"
        + "local reply, sentence = seldom.qless_documents.call("
        + f"{_quoted(prefix)}, '{document}', '{operation}', args)\n"
        + "return sentence and {err = 'ERR user_script:1: ' .. sentence} or reply\n"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


OF_REQLESS = "if ARGV[1] then ARGV[1] = 'reqless.' .. ARGV[1] end\n"
"""What makes our script one for the bindings of reqless: some of its commands have a name that qless has, too."""


def qless_script(
    prefix: str = "ql:", texts: dict[str, str] | None = None, simulated: bool = False, reqless: bool = False
) -> str:
    """The script that a binding of qless loads in place of its own qless.lua: EVALSHA <sha> 0 <command> <now> ...

    The place before a sentence is the one that bindings look for, to tell it from an error of Redis. With `simulated`,
    the moments are not real, and no epoch begins by itself.
    """
    return (
        f"{QLESS_HEAD} {__version__}. It needs nothing but a server with scripts.\n"
        + body(texts, (*FILES, *(name for name in DIALECTS if name != "dialects/qless_documents")))
        + "bound() epochs.forget()\n"
        + "if #KEYS > 0 then\n  return {err = 'ERR user_script:1: No Keys should be provided'}\nend\n"
        + (OF_REQLESS if reqless else "")
        + f"local reply, sentence = seldom.qless.call({_quoted(prefix)}, ARGV, {str(simulated).lower()})\n"
        + "return sentence and {err = 'ERR user_script:1: ' .. sentence} or reply\n"
    )


def library(texts: dict[str, str] | None = None) -> str:
    """The function library."""
    registered = [
        _register(name, "'no-writes'" if spec.reads else "'allow-oom'" if spec.finishes else "")
        for name, spec in CATALOGUE.items()
    ]
    version = (
        f"register_function{{function_name = '{LIBRARY}_digest', flags = {{'no-writes'}}, "
        f"callback = function() return '{revision()}:{digest()}' end}}\n"
    )
    head = f"#!lua name={LIBRARY}\nlocal register_function = redis.register_function; "
    return (
        head
        + body(texts, FILES + DIALECTS)
        + "".join(registered)
        + _SEVERAL
        + _QLESS_FUNCTIONS
        + version
        + _denied()
        + _marks()
        + _REPAIRS
    )


def script(texts: dict[str, str] | None = None) -> str:
    """The same as one script, for servers without functions: its first argument names the operation."""
    return (
        body(texts)
        + f"bound() epochs.forget()\nif ARGV[1] == 'mark' then {_mark()}end\n"
        + "if ARGV[1] == 'examine' or ARGV[1] == 'mend' then return repair[ARGV[1]](KEYS[1]) end\n"
        + "local args = {}\nfor i = 2, #ARGV do\n  args[i - 1] = ARGV[i]\nend\n"
        + "if ARGV[1] == 'calls' then return calls.execute(KEYS[1], args) end\n"
        + "return register.call(ARGV[1], KEYS[1], args)\n"
    )

"""Every line of the Lua library is run by the suite, in this process and on a real server."""

from __future__ import annotations

import pytest

from qmodel.backends.bundle import FILES, read
from qmodel.conformance.histories.directed.load import directed
from tests.servers import Server
from tools import coverage
from tools.mutation.suite import generated

pytestmark = [pytest.mark.tester, pytest.mark.timeout(1800)]  # a hook for each line

DIALECT = "only a dialect asks for it, whose own tests run it"

INNER = "a command that failed or a damaged key: tests/property/test_inner_errors.py has them"
REAL_CLOCK = "a server does it by itself at the moment of its clock: tests/backends/test_failover.py has it"
LARGE_RESULT = "results of more than a kilobyte: tests/conformance/test_budget.py has them"

LEASES = "thousands of leases under one name: tests/conformance/test_budget.py has them"

CALLS = "several operations in one call: tests/property/test_calls.py runs them"
ELSEWHERE = "another server has written in between: tests/property/test_plain.py has it"

NAMESPACES = "several namespaces in turn: tests/property/test_namespaces.py has them"
REQLESS = "only the rules of reqless ask for it, whose own histories run it: tests/dialects/test_reqless.py"

UNREACHED = {
    **dict.fromkeys(
        (
            (
                "state/config",
                "namespace.config_text, namespace.options, namespace.beats, namespace.owners = "
                "known_text, known, beats, owners",
            ),
            ("state/keys", "kept, number = {}, 0"),
            (
                "state/keys",
                "namespace.worker, namespace.worker_key, namespace.pending, namespace.pending_count, "
                "namespace.pending_day =",
            ),
            ("state/keys", "worker, worker_key, pending, count, pending_day"),
            ("state/keys", "if not store.changed then"),
            ("state/keys", "return store.keep_counters(namespace)"),
            ("state/store", "namespace.counters, namespace.seq = store.known_counters, store.known_seq"),
            ("state/keys", "queues.keep(namespace)"),
            ("state/keys", "config.keep(namespace)"),
            ("state/keys", "epochs.keep(namespace)"),
            ("state/keys", "store.keep(namespace)"),
            ("state/keys", "leave()"),
            ("state/keys", "workers.keep(namespace)"),
            ("state/queues", "queues.known = {}"),
            ("state/queues", "namespace.queues = queues.known"),
            (
                "state/store",
                "namespace.counters, namespace.seq, namespace.epoch, namespace.bounds_text, namespace.is_pending =",
            ),
            ("state/store", "namespace.bounds_of, namespace.bounds, namespace.tracks, namespace.left ="),
            ("state/workers", "namespace.workers, namespace.many_workers = workers.known, many"),
            (
                "state/store",
                "store.known_counters, store.known_seq, known_epoch, known_bounds_text, store.pending",
            ),
            ("state/store", "known_text, known_bounds, store.tracks, store.left"),
            (
                "state/store",
                "namespace.calm, namespace.calm_config, namespace.own = store.calm, calm_config, store.own",
            ),
            ("state/store", "follow_bounds()"),
            ("state/store", "namespace.suffix_for, namespace.suffix = suffix_for, suffix"),
        ),
        NAMESPACES,
    ),
    **dict.fromkeys(
        (
            ("state/parked", "local found = {}"),
            (
                "state/parked",
                "for _, queue in ipairs(writes.fetch('ZRANGE', keys.throttle(name, '-queues'), 0, QUEUES - 1)) do",
            ),
            (
                "state/parked",
                "for _, member in ipairs(writes.fetch('ZRANGE', keys.parked(queue, name, '-parked'), 0, most - 1)) do",
            ),
            ("state/parked", "found[#found + 1] = {tonumber(string.sub(member, 1, 14)), keys.jid_of(member)}"),
            ("state/parked", "return found"),
        ),
        REQLESS,
    ),
    **dict.fromkeys(
        (("wire/register", "return last, last_text"),),
        CALLS,
    ),
    **dict.fromkeys(
        (("state/store", "store.known_counters, store.calm, store.own = nil, false, false"),),
        INNER,
    ),
    ("ops/read", "return math.floor(entries / 2), 0"): LEASES,
    ("state/keys", "return keys.prefix .. name"): DIALECT,
    ("state/store", "store.many = false"): DIALECT,
    ("state/store", "writes.begin()"): DIALECT,
    ("state/store", "local time = redis.call('TIME')"): DIALECT,
    ("state/store", "return time[1] * 1000 + math.floor(time[2] / 1000)"): DIALECT,
    ("state/store", "redis.call('PUBLISH', keys.channel(channel), message) -- nobody is promised to hear it"): DIALECT,
    **dict.fromkeys(
        (
            ("state/keys", "return keys.prefix .. 'aside:' .. string.sub(key, #keys.prefix + 1)"),
            ("state/queues", "elseif store.reads then"),
            ("state/queues", "records.missing(jids[i])"),
            ("state/queues", "writes.drop(key, members[(i - 1) * step + 1], jids[i])"),
            ("state/queues", "jids[i] = nil"),
            ("state/queues", "for _, job in ipairs(queues.take(name, #popped / 2 - #taken)) do"),
            ("state/queues", "taken[#taken + 1] = job"),
            ("state/records", "writes.fail(key, 'its text is not that of a job')"),
            ("state/records", "writes.fail(keys.job(jid), 'is missing, but its id is in a list')"),
            ("state/store", "refuse_counters()"),
            ("state/store", "writes.fail(keys.counters, 'its text is not that of counters of this version')"),
            ("wire/register", "local left = intent.mend(reads)"),
            ("wire/register", "return left"),
            ("wire/register", "open(op, now, text)"),
            ("wire/register", "writes.block(left)"),
            ("wire/register", "fault = type(fault) == 'table' and fault.err or fault -- some servers give a table"),
            ("wire/register", "fault = store.entered and writes.recover(fault) or not store.entered and fault"),
            ("wire/register", "if fault then"),
            ("wire/register", "return as_reply(fault)"),
            ("wire/register", "return {err = (string.gsub(tostring(fault), '[\\r\\n]+', ' '))}"),
        ),
        INNER,
    ),
    **dict.fromkeys(
        (
            ("wire/register", "return 0"),
            ("wire/register", "local begun, replies = writes.has_begun(), plain.answer"),
            (
                "wire/register",
                "local fault = writes.recover(type(count) == 'table' and count.err or count)",
            ),
            ("wire/register", "if not begun then"),
            ("wire/register", "for i = 1, fault and #replies or 0 do"),
            ("wire/register", "replies[i] = as_reply(fault)"),
            ("wire/register", "return #replies, replies"),
        ),
        CALLS,
    ),
    ("wire/register", "journal.record('begin_epoch', {text, '', store.epoch}, {'OK', epoch})"): REAL_CLOCK,
    ("state/results", "writes.put_off('HDEL', key_of(job), field_of_text(other))"): LARGE_RESULT,
    **dict.fromkeys(
        (
            ("ops/bare", "writes.stop_early(keys.counters, done, queue.work_key, popped)"),
            (
                "ops/bare",
                "writes.check_late(replies.job(jid, 'running', record), seq, {said}, {one, two, three, four}, {",
            ),
            ("ops/bare", "{'RPUSH', queue.waits_key, waited}, {'ZADD', queue.locks_key, ends, lease},"),
            ("ops/bare", "{'HSET', taker.key, field, id, grant, jid},"),
            ("ops/bare", "})"),
            ("ops/bare", "writes.check_late("),
            ("ops/bare", "'complete\\n' .. replies.job(next_jid, 'running', record), seq, {ended_said, next_said},"),
            ("ops/bare", "{one, two, three, four, five, six, seven, eight}, {"),
            ("ops/bare", "{'RPUSH', ended_queue.runs_key, duration}, {'RPUSH', queue.waits_key, waited},"),
            ("ops/bare", "{'ZREM', ended_queue.locks_key, ended_lease}, {'HDEL', taker.key, ended_field, of[7]},"),
            ("ops/bare", "{'ZADD', keys.completed, moment, ended}, {'ZADD', queue.locks_key, ends, lease},"),
            ("ops/bare", "{'HSET', taker.key, field, id, grant, next_jid},"),
            ("ops/bare", "writes.check_late(jid, seq, {said}, {one, two}, {{'ZADD', queue.work_key, '0', member}})"),
            ("ops/bare", "return text and writes.stop_early(key, text, work_key, popped) or popped"),
        ),
        INNER,
    ),
    ("ops/bare", "store.own[store.epoch] = seq"): REAL_CLOCK,
    ("ops/bare", "return nil"): ELSEWHERE,
    ("state/stats", "return seconds"): "durations below a minute have their bin where they are counted",
    (
        "wire/register",
        "return plain.answer or register.call(operation, keys.prefix, args, real, shares) -- only the epoch was "
        "begun, and that was completed",
    ): "the first plain operation of an epoch: tests/property/test_epochs.py has one",
    ("wire/register", "register.share(false)"): "a call of several was killed: tests/property/test_calls.py has one",
    ("wire/arguments", "return false"): "a plain call that names no job: tests/property/test_plain.py sends it",
    ("rules/admission", "break"): "a budget that throttles use up: tests/conformance/test_budget.py has one",
    ("ops/pop", "break"): "a budget that lapsed leases use up, by the rules of qless",
    ("state/config", "decode()"): NAMESPACES,
    ("state/config", "namespace.rates = rates"): NAMESPACES,
}


UNREACHED_FILES = {
    "state/writes": "what follows an inner error, and large steps: tests/property/test_inner_errors.py runs it",
    "state/intent": "what follows an inner error: tests/property/test_inner_errors.py runs it",
    "state/repair": "the doctor's: tests/property/test_inner_errors.py and tests/backends/test_inner_errors.py run it",
    "state/epochs": "what a server does by itself at the moment of its clock: tests/backends/test_failover.py runs it",
    "ops/plain_complete": "calls that are nearly plain: tests/property/test_plain.py runs them",
    "ops/plain_pop": "calls that are nearly plain: tests/property/test_plain.py runs them",
    "ops/plain_put": "calls that are nearly plain: tests/property/test_plain.py runs them",
    "state/plain_options": "options that are nearly plain: tests/property/test_plain.py runs them",
    "state/plain_records": "records that are nearly plain: tests/property/test_plain.py runs them",
}
"""Files of which some lines are run by other tests alone."""


@pytest.fixture(scope="module")
def suite() -> list[coverage.Named]:
    return [*generated(400), *directed()]


def unexplained(missed: set[coverage.Place]) -> list[str]:
    return sorted(
        f"lua/{at[0]}.lua:{at[1]} {coverage.text_of(at)}"
        for at in missed
        if at[0] not in UNREACHED_FILES and (at[0], coverage.text_of(at)) not in UNREACHED
    )


def test_every_line_runs_or_has_a_reason_not_to(suite: list[coverage.Named]) -> None:
    active, missed = coverage.in_process(suite)
    assert len(active) > 1000
    assert unexplained(missed) == []
    run = {(at[0], coverage.text_of(at)) for at in active} - {(at[0], coverage.text_of(at)) for at in missed}
    assert sorted(UNREACHED.keys() & run) == []  # a reason that is no longer needed
    assert sorted(UNREACHED_FILES.keys() - {at[0] for at in missed}) == []


def test_every_reason_is_of_a_line_that_is_there() -> None:
    there = {(file, line.strip()) for file, _ in UNREACHED for line in read(file).splitlines()}
    assert UNREACHED.keys() - there == set()
    assert UNREACHED_FILES.keys() <= set(FILES)


def test_a_suite_without_an_operation_leaves_its_lines_unrun(suite: list[coverage.Named]) -> None:
    few = [coverage.Named(n.name, [step for step in n.steps if step.op.spec.name != "retry_many"]) for n in suite[:20]]
    _, missed = coverage.in_process(few)
    assert any(at[0] == "ops/recover" for at in missed)


@pytest.mark.server
def test_every_statement_is_run_on_a_server(server: Server, suite: list[coverage.Named]) -> None:
    client = server.client(socket_timeout=None)  # a history may have steps that take seconds
    statements, missed = coverage.on_server(client, suite)
    assert len(statements) > 900
    assert unexplained(missed) == []

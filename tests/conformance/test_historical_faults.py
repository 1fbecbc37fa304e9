"""Faults of the systems that qmodel derives from, planted one at a time; generated histories notice each of them.

Q numbers the faults of qless, M of Mosquito, F of the sub-request queue. A fault is a patch to one
file of the model, or of the Lua library; only faults that have an equivalent among our operations are here.
"""

# ruff: noqa: E501  patches stand as the files have them

from __future__ import annotations

import math
from typing import NamedTuple

import pytest

from qmodel.conformance.histories.directed.load import directed
from qmodel.conformance.histories.script import Named
from qmodel.conformance.histories.wire_calls import wire
from tools.mutation import model, python, replay, suite

pytestmark = [pytest.mark.tester, pytest.mark.timeout(1800)]  # the whole suite is recorded


class Fault(NamedTuple):
    """A fault: its origin, its effect, and the patch that plants it."""

    source: str
    says: str
    file: str
    right: str
    wrong: str


MODEL = [
    Fault("Q2", "retry leaves the worker on the job", "model/ops/finish",
          '    job.worker = job.grant = ""\n    jobs.place(store, job, state)\n    return job.remaining',
          "    jobs.place(store, job, state)\n    return job.remaining"),
    Fault("Q3", "timeout leaves the job among its worker's", "model/ops/lease",
          "    jobs.lift(store, job)\n    history.add", "    queues.unlock(store, job)\n    history.add"),
    Fault("Q3b", "timeout leaves the worker on the job", "model/ops/lease", '    job.worker = job.grant = ""\n', ""),
    Fault("Q4", "what goes to another queue frees the lock there", "model/ops/finish",
          "    jobs.lift(store, job)\n    stats.ran", "    job.queue = op.next or job.queue\n    jobs.lift(store, job)\n    stats.ran"),
    Fault("Q5", "a failed job put elsewhere is taken off the new queue's count", "model/ops/put",
          "        _leave(store, now, job)\n    if op.named",
          '        was = job.queue\n        job.queue = op.queue if job.state == "failed" else was\n        _leave(store, now, job)\n        job.queue = was\n    if op.named'),
    Fault("Q5b", "a failed job is taken off the count of today", "model/rules/deletion",
          "stats.recovered(store, job.ended_at, job.queue)", "stats.recovered(store, now, job.queue)"),
    Fault("Q6", "complete says waiting though the job is delayed", "model/ops/finish",
          "    place(store, now, job, state)\n    return state\n\n\ndef fail(",
          '    place(store, now, job, state)\n    return "waiting"\n\n\ndef fail('),
    Fault("Q7", "the delay is lost when all dependencies are complete", "model/ops/finish",
          "op.next, now + op.delay_ms)", "op.next, now if op.depends else now + op.delay_ms)"),
    Fault("Q8", "no dependencies do not clear those that were", "model/ops/put", "    if edges is not None:\n", "    if edges and edges.given:\n"),
    Fault("Q9", "depends_off ignores the delay", "model/rules/stages",
          "    state = begins(store, now, job)\n", '    state = "waiting"\n'),
    Fault("Q9b", "the old due time outlives a put", "model/rules/stages",
          "    job.ready_at = ready_at\n", "    job.ready_at = max(job.ready_at, ready_at)\n"),
    Fault("Q10", "unfail leaves the count of the failed", "model/ops/recover",
          "    stats.recovered(store, job.ended_at, job.queue)\n", ""),
    Fault("Q10b", "unfail does not register the queue", "model/ops/recover", "    queues.register(store, now, queue)\n", ""),
    Fault("Q10c", "a bulk retry begins with the latest", "model/rules/selection", "for job in found if preview", "for job in reversed(found) if preview"),
    Fault("Q11", "a tag that is there already moves", "model/state/tags", "        if tag not in job.tags:\n", "        if True:\n"),
    Fault("Q13", "a lease that ends now is both running and stalled", "model/ops/read",
          "jobs.load(store, jid).expires_at > now", "jobs.load(store, jid).expires_at >= now"),
    Fault("Q13b", "a lease that ends now is seen as running", "contract/lifecycle", "expires_at <= now", "expires_at < now"),
    Fault("Q14", "a new priority makes a job the first among equals", "model/ops/change",
          "if op.first and job.state == \"waiting\"", "if job.state == \"waiting\""),
    Fault("Q15", "equals are ordered by id", "model/state/queues",
          "    return job.priority, job.ready_at, job.seq, job.jid\n",
          "    return job.priority, job.ready_at, sum(map(ord, job.jid)), job.jid\n"),
    Fault("Q20", "a history keeps one stage more than it says", "model/state/history", "WIDTH + len(history) - most]", "len(history) - most]"),
    Fault("Q22", "cancel speaks of jobs that there are not", "model/ops/remove",
          "[jid for jid in dict.fromkeys(op.jids) if _is_meant(jobs.get(store, jid), op.complete)]", "list(op.jids)"),
    Fault("Q23", "a job that is gone cannot be untracked", "model/ops/tag",
          "    if not tracking.is_tracked(store, op.jid):", "    jobs.find(store, op.jid)\n    if not tracking.is_tracked(store, op.jid):"),
    Fault("Q25", "jobs may wait for each other for ever", "model/state/dependencies",
          "    _check_cycles(store, Plan(wanted, unfinished, request))\n", ""),
    Fault("Q26", "unknown dependencies are forgotten silently", "model/state/dependencies",
          '            raise refuse("DEPENDENCY_NOT_FOUND", jid, edge.jid)\n', "            continue\n"),
    Fault("Q28", "fail writes the data in its own way", "model/ops/finish",
          '"failed")\n    if outcome is not None:\n        return op.jid\n\n    jobs.lift(store, job)\n    if op.data is not None:\n        job.data = op.data\n',
          '"failed")\n    if outcome is not None:\n        return op.jid\n\n    jobs.lift(store, job)\n    if op.data is not None:\n        job.data = op.data.replace("[]", "{}")\n'),
    Fault("Q32", "a failure does not say on which worker", "model/rules/failure", "now, job.worker)\n", 'now, "")\n'),
    Fault("Q33", "statistics are kept for ever", "model/state/stats", "            del store.days[key]\n", "            pass\n"),
    Fault("Q34", "a silent worker is struck though it holds leases", "model/state/workers",
          "        if store.workers[name].held:\n", "        if False:\n"),
    Fault("Q35", "a job that is gone still stands in its queue", "model/state/jobs",
          "        state_index.PLAIN[job.state][1](store, job)\n    if job.tags:", "        pass\n    if job.tags:"),
    Fault("Q37", "dependents are freed in the wrong order", "model/state/dependencies",
          "    for jid in _in_order(job.dependents):\n        waiting", "    for jid in reversed(_in_order(job.dependents)):\n        waiting"),
    Fault("late worker", "an old token is as good as the newest", "model/state/jobs",
          'if job.state == "running" and job.token == token:', 'if job.state == "running":'),
    Fault("resend", "a pop that is sent again grants again", "model/state/workers",
          "worker.grants.get(request, ()) if worker is not None and request else ()", "()"),
    Fault("retention", "a job that is deleted leaves its tags", "model/state/jobs", "    tags.drop(store, job)\n", ""),
    Fault("F1", "what is completed twice is counted twice", "model/ops/finish",
          'def complete(store: Store, now: int, op: Complete) -> str:\n    """Complete a leased job, or send it on to its next queue."""\n    job, outcome = jobs.held(store, op.jid, op.token, "completed")\n    if outcome is not None:\n',
          'def complete(store: Store, now: int, op: Complete) -> str:\n    """Complete a leased job, or send it on to its next queue."""\n    job, outcome = jobs.held(store, op.jid, op.token, "completed")\n    if outcome is not None:\n        stats.ran(store, now, job.queue, 0)\n'),
    Fault("F2", "what was never handed out can be completed", "model/state/jobs",
          'if job.state == "running" and job.token == token:', 'if job.state in ("running", "waiting") and job.token == token:'),
    Fault("F3", "a put that is sent again begins anew", "model/ops/put",
          'return job is not None and job.put_request == request', "return False"),
    Fault("F8", "a wake-up that was not used is lost", "model/state/queues", "queue.idle + queue.wakes + 1", "queue.idle + 1"),
    Fault("F10", "an idle worker is woken again and again", "model/state/queues", "    queue.idle -= woken\n", ""),
    Fault("M1", "a job is handed out though it stands nowhere", "model/ops/pop",
          "        queues.promote(store, job)\n", "        queues.promote(store, job)\n        queues.schedule(store, job)\n"),
    Fault("M6", "a pause lasts until the next job comes", "model/state/queues",
          "    if queue.first_seen is None:\n", "    queue.pauses = {}\n    if queue.first_seen is None:\n"),
    Fault("M7", "a paused queue hands out jobs", "model/ops/pop",
          "queue_state.pauses and holds(store, now, queue)", "False"),
    Fault("M8", "a failed job that is gone stays in its group", "model/state/state_index",
          "(failures.add, failures.discard)", "(failures.add, lambda store, job: None)"),
    Fault("M9", "a job that is put again keeps when it ended", "model/ops/put",
          "job.expires_at = job.ended_at = job.token = 0", "job.expires_at = job.token = 0"),
    Fault("M12", "a job whose worker is gone fails at no time", "model/rules/failure", "    job.ended_at = now\n", ""),
    Fault("M14", "a retry comes at once whatever its delay", "model/ops/finish",
          "    job.ready_at = now + delay_ms\n    return begins", "    job.ready_at = now\n    return begins"),
    Fault("M15", "nobody sees to the jobs that are due", "model/ops/pop",
          "        queues.promote(store, job)\n", "        pass\n"),
    Fault("M18", "a worker keeps what it finished", "model/state/workers", "    del worker.held[job.jid]\n", ""),
]  # fmt: skip

LUA = [
    Fault("Q2", "retry leaves the worker on the job", "ops/finish",
          "  job.worker, job.grant = '', ''\n  jobs.place(job, state)\n  return job.remaining", "  jobs.place(job, state)\n  return job.remaining"),
    Fault("Q5", "a failed job put elsewhere is taken off the new queue's count", "ops/put",
          "    leave(now, job)\n  end\n  if op.named",
          "    local was = job.queue\n    job.queue = job.state == 'failed' and op.queue or was\n    leave(now, job)\n    job.queue = was\n  end\n  if op.named"),
    Fault("Q7", "the delay is lost when all dependencies are complete", "ops/finish",
          "op.next, now + op.delay_ms)", "op.next, #op.depends > 0 and now or now + op.delay_ms)"),
    Fault("Q8", "no dependencies do not clear those that were", "ops/put", "  if edges then\n", "  if edges and #edges.given > 0 then\n"),
    Fault("Q10", "unfail leaves the count of the failed", "ops/recover", "  stats.recovered(job.ended_at, job.queue)\n", ""),
    Fault("Q11", "a tag that is there already is counted again", "state/tags",
          "function tags.add(job, tag)\n", "function tags.add(job, tag)\n  count(tag, 1)\n"),
    Fault("Q14", "a new priority makes a job the first among equals", "ops/change",
          "if op.first and job.state == 'waiting'", "if job.state == 'waiting'"),
    Fault("Q23", "a job that is gone cannot be untracked", "ops/tag",
          "function tag.untrack(now, op)\n", "function tag.untrack(now, op)\n  jobs.find(op.jid)\n"),
    Fault("Q36", "the data of one job are the record of another", "wire/arguments",
          "local RESERVED = {'-data', '-dependencies', '-dependents', '-results'}", "local RESERVED = {}"),
    Fault("Q28", "update writes the data in its own way", "ops/change",
          "records.set_data(job, op.data)", "records.set_data(job, (string.gsub(op.data, '/', '\\\\/')))"),
    Fault("F13", "numbers are read as Lua reads them", "wire/arguments", "or string.find(value, '^%-?[1-9]%d*$'))", "or tonumber(value))"),
    Fault("F14", "text is cut at its first NUL", "ops/change",
          "records.set_data(job, op.data)", "records.set_data(job, string.format('%s', op.data))"),
    Fault("late worker", "an old token is as good as the newest", "state/jobs",
          "if job.state == 'running' and job.token == token then", "if job.state == 'running' then"),
    Fault("retention", "a job that is deleted leaves its tags", "state/jobs", "  tags.drop(job)\n", ""),
    Fault("M7", "a paused queue hands out jobs", "ops/pop",
          "queues.has_pauses(queue) and suspension.holds(now, queue)", "false"),
    Fault("M8", "a failed job that is gone stays in its group", "state/state_index",
          "{failures.add, failures.discard}", "{failures.add, function() end}"),
    Fault("M14", "a retry comes at once whatever its delay", "ops/finish",
          "  job.ready_at = now + delay_ms\n  return stages", "  job.ready_at = now\n  return stages"),
    Fault("M15", "nobody sees to the jobs that are due", "ops/pop", "    queues.promote(job)\n", ""),
]  # fmt: skip

MOST_OPERATIONS = 40_000
operations: list[int] = []


@pytest.fixture(scope="module")
def generated() -> list[Named]:
    return [*suite.generated(200), *(named for named in directed() if len(named.steps) < 200)]


@pytest.fixture(scope="module")
def on_model(generated: list[Named]) -> model.Recording:
    return model.Recording(generated)


@pytest.fixture(scope="module")
def on_lua(generated: list[Named]) -> replay.Recording:
    return replay.Recording(generated, wire())


def patched(text: str, fault: Fault) -> dict[str, str]:
    assert text.count(fault.right) == 1, f"{fault.source} does not fit {fault.file} any more"
    return {fault.file: text.replace(fault.right, fault.wrong)}


@pytest.mark.parametrize("fault", MODEL, ids=lambda fault: f"{fault.source} {fault.says}")
def test_a_historical_fault_of_the_model_is_noticed(fault: Fault, on_model: model.Recording) -> None:
    verdict = on_model.judge_texts(patched(python.read(fault.file), fault))
    assert verdict.kills, "nothing noticed it"
    operations.append(verdict.kills[0].step + 1)


@pytest.mark.parametrize("fault", LUA, ids=lambda fault: f"{fault.source} {fault.says}")
def test_a_historical_fault_of_the_lua_is_noticed(fault: Fault, on_lua: replay.Recording) -> None:
    verdict = on_lua.judge_texts(patched(on_lua.texts[fault.file], fault))
    assert verdict.kills, "nothing noticed it"
    operations.append(verdict.kills[0].step + 1)


def test_historical_faults_are_noticed_early(record_property: pytest.FixtureRequest) -> None:
    if len(operations) < len(MODEL) + len(LUA):
        pytest.skip("not all of them were run here")
    mean = math.exp(sum(map(math.log, operations)) / len(operations))
    print(f"{len(operations)} faults: geometric mean {mean:.0f} operations, at most {max(operations)}")
    assert mean < 300 and max(operations) < MOST_OPERATIONS

"""Clients with a fault that shows only with concurrent clients, or when a reply is lost."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from qmodel.backends import bundle
from qmodel.conformance.concurrency.contention import ByBackend
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.wire import codec
from tests.property.support import VERBS_ALONE

FUNCTION = "qmodel_in_two_steps"

BETWEEN = 0.0005
"""Seconds between two steps that should be one."""

CLAIM = (
    "    granted = qless and next_of_qless(now, queue, count) or next_(now, queue, count)\n",
    """    local named = jobs.get(string.match(request, '^claim%-(.*)$') or '')
    granted = named and {named} or next_(now, queue, count)
    if named then
      jobs.lift(named)
    end
""",
)
"""A pop that leases the job that its request names, in any state."""

ASSIGN = (
    "local job = jobs.find(op.jid)\n\n",
    """local job = jobs.find(op.jid)

  if string.match(op.request, '^assign') then
    tags.assign(job, op.tags)
    store.emit(now, 'tagged', job.jid, op.tags[#op.tags])
    return tags.of(job)
  end
""",
)
"""A tag_add that sets all tags to those given."""


def library() -> str:
    """Give the library with both faults, under its own names, and without the functions for plain jobs."""
    texts = dict(VERBS_ALONE)
    for name, (right, wrong) in {"ops/pop": CLAIM, "ops/tag": ASSIGN}.items():
        assert right in bundle.read(name)
        texts[name] = bundle.read(name).replace(right, wrong, 1)
    return f"""#!lua name={FUNCTION}
local register_function = redis.register_function
{bundle.body(texts)}
register_function{{function_name = '{FUNCTION}', callback = function(keys, args)
  if not redis then bound() end
  return register.call(table.remove(args, 1), keys[1], args)
end}}
"""


class ByFunction:
    """Executes operations by the wrong library."""

    def __init__(self, url: str, prefix: str) -> None:
        self._redis: Any = Redis.from_url(url, retry=Retry(NoBackoff(), 0), protocol=2)
        self._prefix = prefix

    def execute(self, op: Operation, now: int) -> Any:
        words = codec.encode(op, now)
        return codec.decode(op, self._redis.execute_command("FCALL", FUNCTION, 1, self._prefix, op.spec.name, *words))

    def close(self) -> None:
        self._redis.close()


class ChecksThenClaims(ByFunction):
    """Pops in two steps: reads which job is next, then leases that job."""

    def execute(self, op: Operation, now: int) -> Any:
        if type(op) is not ops.Pop or op.count != 1:
            return super().execute(op, now)
        first = super().execute(ops.Peek(op.queue), now)
        time.sleep(BETWEEN)
        return super().execute(replace(op, request=f"claim-{first[0].jid}"), now) if first else ()


class LosesUpdates(ByFunction):
    """Adds a tag in two steps: reads the tags, then writes them all."""

    def execute(self, op: Operation, now: int) -> Any:
        if type(op) is not ops.TagAdd:
            return super().execute(op, now)
        job = super().execute(ops.Get(op.jid), now)
        if job is None or set(op.tags) <= set(job.tags):
            return super().execute(op, now)
        time.sleep(BETWEEN)
        return super().execute(replace(op, tags=(*job.tags, *op.tags), request="assign"), now)


class CompletesOneByOne(ByBackend):
    """Completes several jobs one after the other, not in one step."""

    def execute(self, op: Operation, now: int) -> Any:
        if type(op) is not ops.CompleteMany:
            return super().execute(op, now)
        replies = []
        for one in op.jobs:
            replies.append(super().execute(one, now))
            time.sleep(BETWEEN)
        return next((one for one in replies if isinstance(one, Refusal)), tuple(replies))


class SendsAgainBlindly(ByBackend):
    """Sends operations without a reply again, without a request id that marks the resend."""

    def __init__(self, url: str) -> None:
        super().__init__(url + "&deadline=20&requests=given", 20)

    def execute(self, op: Operation, now: int) -> Any:
        return self._backend.execute(replace(op, request="") if hasattr(op, "request") else op, now)


class ReadsOldCopies(ByBackend):
    """Reads a job only every third time; in between it returns the earlier reply."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._seen: dict[Operation, list[Any]] = {}

    def execute(self, op: Operation, now: int) -> Any:
        if type(op) is not ops.Get:
            return super().execute(op, now)
        seen = self._seen.pop(op, None) or [super().execute(op, now)] * 3
        if len(seen) > 1:
            self._seen[op] = seen[1:]
        return seen[0]

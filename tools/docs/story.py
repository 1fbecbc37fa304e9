"""The examples of `docs/wire.md`: a story of a few jobs that contains every operation.

The Lua library executes it in this process when the page is generated, from an empty namespace and with a clock that
advances by one second per step, so the replies are real and reproducible. The model executes it too, and must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from qmodel.backends import bundle
from qmodel.backends.embedded.host import LuaHost
from qmodel.backends.embedded.keyspace import Keyspace
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.model import engine
from qmodel.model.state import epochs
from qmodel.model.state.store import Store
from qmodel.wire.codec import decode, encode
from tools import lua_catalogue

PREFIX = "ql:"
BEGIN = 1_767_225_600
"""Midnight on 1 January 2026 in UTC, in seconds."""

MONDAY = (BEGIN + 4 * 86_400 + 9 * 3600) * 1000
"""Nine o'clock on the Monday after, in milliseconds."""

LETTER = "letter"
"""Placeholder for the id of the dead letter."""

LEASED = -1
"""Placeholder for the token of the job's current lease."""

STORY: tuple[Operation, ...] = (
    ops.Put("emails", "j1", "SendEmail", "{}", priority=5, tags=("a", "b")),
    ops.Put("emails", "j2", "SendEmail", '{"to": 1}', delay_ms=60_000, tags=("a",), request="r1"),
    ops.PutMany(
        (ops.Put("emails", "j3", "Render", "", retries=0), ops.Put("emails", "j4", "SendEmail", "", depends=("j3",))),
        "r2",
    ),
    ops.Peek("emails"),
    ops.Length("emails"),
    ops.Queue("emails"),
    ops.Waiting("emails"),
    ops.Scheduled("emails"),
    ops.Depending("emails"),
    ops.Throttled("emails"),
    ops.Tagged("a"),
    ops.TopTags(),
    ops.TagAdd("j1", ("c",)),
    ops.TagRemove("j1", ("c", "b")),
    ops.Track("j1"),
    ops.Priority("j1", -1),
    ops.Update("j1", '{"to": 7}'),
    ops.Delay("j2", 30_000),
    ops.Promote("j2"),
    ops.DependsOn("j4", ("j2",)),
    ops.DependsOff("j4", ("j2",)),
    ops.Pop("emails", "w1", request="r3"),
    ops.Running("emails"),
    ops.Worker("w1"),
    ops.Workers(),
    ops.Heartbeat("j1", LEASED),
    ops.Progress("j1", LEASED, "half"),
    ops.Log("j1", "two lines,\none of them short"),
    ops.Get("j1"),
    ops.Tracked(),
    ops.Untrack("j1"),
    ops.Complete("j1", LEASED, "sent"),
    ops.Completed(),
    ops.Pop("emails", "w1"),
    ops.PopAny(("urgent", "emails"), "w1"),
    ops.Timeout(("j3",)),
    ops.Stalled("emails"),
    ops.Pop("emails", "w1", 2),
    ops.CompleteAndPop("j3", LEASED, "emails", "w1", result="ok"),
    ops.CompleteMany((ops.Complete("j4", LEASED),)),
    ops.Retry("j2", LEASED, 5000),
    ops.Multiget(("j2", "j0", "j3")),
    ops.Promote("j2"),
    ops.Pop("emails", "w2"),
    ops.Release("j2", LEASED),
    ops.Pop("emails", "w2"),
    ops.Fail("j2", LEASED, "SMTP", "The server\tsaid no."),
    ops.FailedGroups(),
    ops.Failed("SMTP"),
    ops.Search(state="failed"),
    ops.RetryMany(group="SMTP", preview=True),
    ops.RetryMany(group="SMTP", to="emails"),
    ops.Cancel(("j2",)),
    ops.Put("emails", "j5", "SendEmail", ""),
    ops.Put("emails", "j7", "Announce", "", depends=("j3 ignore picture",)),
    ops.Results("j7"),
    ops.Put("emails", "j6", "SendEmail", "", dead_queue="dead"),
    ops.Revoke(("j6",)),
    ops.Peek("dead"),
    ops.Replay(LETTER),
    ops.Revoke(("j5",)),
    ops.Put("emails", "j5", "SendEmail", ""),
    ops.Search(queue="emails", klass="SendEmail"),
    ops.CancelMany(queue="emails", klass="SendMail"),
    ops.Clean("complete", 60_000),
    ops.Drain("emails"),
    ops.Recur("emails", "daily", "SendDigest", "{}", 86_400_000, tags=("digest",)),
    ops.Peek("emails"),
    ops.Fire("emails"),
    ops.RecurUpdate("daily", backlog=1),
    ops.RecurTag("daily", ("often",)),
    ops.RecurUntag("daily", ("digest",)),
    ops.RecurGet("daily"),
    ops.Recurring("emails"),
    ops.Queue("emails"),
    ops.RecurNow("daily"),
    ops.RecurPause("daily"),
    ops.RecurUnpause("daily"),
    ops.Unrecur("daily"),
    ops.Recur("emails", "weekly", "SendDigest", "{}", 0, kind="cron", cron="0 9 * * 1 UTC", due_at=(MONDAY,)),
    ops.RecurringUnset(7 * 86_400_000),
    ops.RecurAdvance("weekly", MONDAY, (MONDAY + 7 * 86_400_000,)),
    ops.Unrecur("weekly"),
    ops.ThrottleSet("smtp", concurrency=2, rate=10, rate_ms=1000),
    ops.ThrottleGet("smtp"),
    ops.Throttles(),
    ops.ThrottlesUsed("smtp*"),
    ops.ThrottleUnset("smtp"),
    ops.Put("emails", "j6", "SendEmail", "", delay_ms=60_000),
    ops.Why("j6"),
    ops.RequestOpen("album-7", "images", 2, 5, deadline_ms=3_600_000, lease_ms=60_000, data='{"owner":3}'),
    ops.RequestAdd("album-7", (ops.Put("images", "album-7:a", "Thumbnail", "{}"),)),
    ops.RequestTouch("album-7"),
    ops.RequestTune("album-7", limit=4),
    ops.RequestGet("album-7"),
    ops.RequestJobs("album-7"),
    ops.RequestClose("album-7"),
    ops.Requests("closed"),
    ops.RequestPut("album-8", "images", 1, (ops.Put("images", "album-8:a", "Thumbnail", "{}"),)),
    ops.RequestCancel("album-7"),
    ops.RequestForget("album-7"),
    ops.Drain("emails"),
    ops.MetadataSet("SendEmail", "template", "v2"),
    ops.MetadataIncrement("SendEmail", "sent", 3),
    ops.MetadataGet("SendEmail"),
    ops.MetadataUnset("SendEmail", "template"),
    ops.Publish("orders.created", '{"id": 7}'),
    ops.Subscribe("billing", ("orders.*",), "invoices", "Invoice", after=0),
    ops.Publish("orders.eu.created", '{"id": 8}'),
    ops.Subscribe("archive", ("orders.>",), "archive", "Archive", after=0, count=1),
    ops.SubscriptionGet("archive"),
    ops.CatchUp("archive"),
    ops.Subscriptions(),
    ops.Messages(),
    ops.Trim(),
    ops.Unsubscribe("billing"),
    ops.Obliterate("invoices"),
    ops.Unsubscribe("archive"),
    ops.Pause(("emails",)),
    ops.Queues(),
    ops.Unpause(("emails",)),
    ops.Forget(("emails",)),
    ops.Deregister(("w1", "w2")),
    ops.ConfigSet("heartbeat", 30_000),
    ops.ConfigGet("heartbeat"),
    ops.ConfigUnset("heartbeat"),
    ops.Config(),
    ops.Put("emails", "j7", "Sync", "{}", unique="sync"),
    ops.UniqueGet("sync"),
    ops.UniqueRelease("sync"),
    ops.Stats("emails"),
    ops.Metrics("emails", count=2),
    ops.Events(14, 3),
    ops.Newest(),
    ops.PutNew((ops.Put("rows", "row-1", "Load", "1"), ops.Put("rows", "row-2", "Load", "2")), "r99"),
    ops.ConfigSet("journal", 1),
    ops.Get("j1"),
    ops.Journal(),
    ops.BeginEpoch(1_800_000_000_000_000),
)

REFUSED: tuple[Operation, ...] = (
    ops.Complete("j1", 176722560100000000000000000021),
    ops.Put("emails", "no blanks", "SendEmail", ""),
    ops.Put("emails", "j5", "SendEmail", "", depends=("j6",)),
)
"""Operations that are refused after the story."""


class Step(NamedTuple):
    """A step of the story: its moment, the operation, its strings as a client sends them, and the raw reply."""

    moment: int
    op: Operation
    arguments: list[str]
    reply: Any

    @property
    def function(self) -> str:
        """The name of the called function."""
        return bundle.function_name(self.op.spec.name)


class World:
    """The Lua library in this process, generated from the current catalogue, and the model."""

    def __init__(self) -> None:
        self._now = BEGIN
        self.keyspace = Keyspace(lambda: float(self._now))
        self.keyspace.run_id = b"0" * 40  # a part of the epoch
        self._host = LuaHost(lambda: float(self._now), limit=0, keyspace=self.keyspace)
        generated = {"contract/catalogue": lua_catalogue.catalogue(), "wire/verbs": lua_catalogue.verbs()}
        self._host.load(bundle.library(generated))
        self._model = Store()

    def execute(self, op: Operation) -> Step:
        """Execute an operation, one second after the previous one."""
        op = self._with_tokens(op)
        self._now += 1
        arguments = encode(op)
        raw = self._host.fcall(bundle.function_name(op.spec.name), [PREFIX], arguments)
        if not self._model.epoch:
            engine.step(self._model, self._now * 1000, ops.BeginEpoch(epochs.next_(self._model, self._now * 1000, 0)))
        expected = engine.step(self._model, self._now * 1000, op)
        assert decode(op, raw) == expected, (op, decode(op, raw), expected)
        return Step(self._now * 1000, op, arguments, raw)

    def calls(self, several: Sequence[Operation]) -> tuple[list[str], Any]:
        """Execute several operations in one call; give its arguments and the reply. The model does not execute them."""
        self._now += 1
        words = [word for op in several for word in (op.spec.name, str(len(encode(op))), *encode(op))]
        return words, self._host.fcall(bundle.CALLS, [PREFIX], words)

    @property
    def epoch(self) -> int:
        """The epoch that began with the first step."""
        return self._model.epoch

    def _with_tokens(self, op: Any) -> Any:
        if isinstance(op, ops.CompleteMany):
            return replace(op, jobs=tuple(map(self._with_tokens, op.jobs)))
        if getattr(op, "jid", "") == LETTER:
            return replace(op, jid=next(jid for jid, job in self._model.jobs.items() if "origin" in job.options))
        if getattr(op, "token", 0) == LEASED:
            return replace(op, token=self._model.jobs[op.jid].token)
        return op


SEVERAL = (ops.Put("emails", "j7", "SendEmail", "{}"), ops.Put("emails", "no blanks", "SendEmail", ""))
"""What the example of several operations in one call executes."""


def steps(world: World) -> Iterator[Step]:
    """Execute the story."""
    yield from map(world.execute, STORY)

"""`embedded://`: the Lua library in this process."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from qmodel.backends import bundle, open_backend
from qmodel.backends.embedded import backend
from qmodel.backends.embedded.backend import AsyncEmbeddedBackend, EmbeddedBackend, Namespace, connect
from qmodel.backends.embedded.host import LuaHost
from qmodel.backends.memory import MemoryBackend
from qmodel.backends.redis import raw_keys
from qmodel.conformance.compare.runner import first_difference
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.by_url import open_subject
from qmodel.contract import operations as ops
from qmodel.contract.operations import Complete, Get, Length, Pop, Put, Queues, Stats
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError, CorruptError
from qmodel.wire import codec


def test_an_operation_gives_its_reply_or_its_refusal() -> None:
    backend = open_backend("embedded://")
    assert backend.execute(Put("q", "a", "K", "é")) == "a"
    (job,) = backend.execute(Pop("q", "w"))
    assert job.data == "é"
    assert backend.execute(Complete("a", job.token + 1)).code == "LOCK_LOST"
    assert backend.execute_many([Complete("a", job.token), Length("q")]) == ["complete", 0]


def test_what_has_no_form_on_the_wire_is_refused_as_by_the_model() -> None:
    backend = connect("embedded://")
    assert backend.execute(Get(7)) == Refusal("BAD_ARGUMENT", ("get", "jid"))  # type: ignore[arg-type]
    moment: object = "noon"
    refused = backend.execute(Get(7), moment)  # type: ignore[arg-type]
    assert refused == Refusal("BAD_ARGUMENT", ("get", "now"))


def test_what_the_library_keeps_in_mind_of_one_prefix_is_not_taken_for_another() -> None:
    host = LuaHost()
    host.load(bundle.library())
    steps = [
        (1, Put("q", "a", "K", "")),
        (2, Pop("q", "w")),
        (3, Complete("a", 2)),
        (4, Stats("q", 0)),
        (5, Length("q")),
    ]
    for at, op in steps:
        one, other = (
            host.fcall(bundle.function_name(op.spec.name), [prefix], codec.encode(op, at))
            for prefix in ("one:", "two:")
        )
        assert one == other
    keys = dict(host.keyspace.dump())
    assert raw_keys.decode(keys, "one:") == raw_keys.decode(keys, "two:")
    assert len([key for key in keys if key.startswith(b"one:")]) * 2 == len(keys)


def test_more_queues_than_the_library_keeps_in_mind_stay_apart() -> None:
    day = 86_400_000
    steps = [Step(day + at, Put(f"q{at % 450}", f"j{at}", "K", "")) for at in range(900)]
    steps += [Step(day + 900 + at, Pop(f"q{at % 450}", f"w{at % 3}")) for at in range(900)]
    steps += [Step(2 * day, Pop("q0", "w")), Step(2 * day, Stats("q7", day)), Step(2 * day, Queues(count=1000))]
    assert first_difference(steps, open_subject("embedded://"), every=300) is None


def test_a_name_is_one_namespace_and_no_name_a_new_one() -> None:
    connect("embedded://shared").execute(Put("q", "a", "K", ""))
    assert connect("embedded://shared").execute(Length("q")) == 1
    for url in ("embedded://other", "embedded://", "embedded://"):
        assert connect(url).execute(Length("q")) == 0


def test_a_bad_url_is_refused() -> None:
    with pytest.raises(ConnectError, match="not an embedded URL"):
        connect("embedded://a/b?c")


def test_the_library_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []
    load = backend.LuaHost.load
    monkeypatch.setattr(backend.LuaHost, "load", lambda *args: (loaded.append(1), load(*args)))
    backend._host.cache_clear()
    for _ in range(5):
        connect("embedded://").execute(Length("q"))
    assert loaded == [1]


def test_time_is_the_clocks_unless_given() -> None:
    backend = EmbeddedBackend(Namespace(clock=lambda: 1_700_000_000.5))
    backend.execute(Put("q", "a", "K", ""))
    backend.execute(Put("q", "b", "K", ""), 1_700_000_000_007)
    assert backend.execute(Get("a")).put_at == 1_700_000_000_500
    assert backend.execute(Get("b")).put_at == 1_700_000_000_007


def test_any_number_of_threads_may_use_any_number_of_namespaces() -> None:
    backends = [connect("embedded://") for _ in range(3)]
    popped: list[str] = []

    def work(name: str) -> None:
        for number in range(50):
            for one in backends:
                one.execute(Put("q", f"{name}-{number}", "K", ""))
                (job,) = one.execute(Pop("q", name))
                popped.append(job.jid)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(popped) == sorted(f"t{t}-{n}" for t in range(4) for n in range(50) for _ in backends)


def test_one_put_wakes_one_of_those_who_wait() -> None:
    backend = connect("embedded://")
    woken: list[bool] = []

    def idle(name: str) -> None:
        backend.execute(Pop("q", name, wait=True))
        woken.append(backend.wait(["other", "q"], 3600))

    threads = [threading.Thread(target=idle, args=(f"w{number}",)) for number in range(5)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    backend.execute(Put("q", "a", "K", ""))
    while not woken:
        time.sleep(0.001)
    time.sleep(0.1)
    assert woken == [True]
    for jid in "bcde":
        backend.execute(Put("q", jid, "K", ""))
    for thread in threads:
        thread.join()
    assert woken == [True] * 5


def test_a_wake_up_left_before_the_wait_is_not_missed() -> None:
    backend = connect("embedded://")
    backend.execute(Pop("q", "w", wait=True))
    backend.execute(Put("q", "a", "K", ""))
    assert backend.wait(["q"], 10) is True
    assert backend.wait(["q"], 0) is False
    assert backend.wait([], 0.05) is False


def test_a_waiter_whose_loop_is_closed_is_passed_over() -> None:
    backend = connect("embedded://")
    backend.execute(Pop("q", "w", wait=True))
    loop = asyncio.new_event_loop()
    task = loop.create_task(AsyncEmbeddedBackend(backend.namespace).wait(["q"], 60))
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    threading.Timer(0.05, backend.execute, [Put("q", "a", "K", "")]).start()
    assert backend.wait(["q"], 5) is True
    del task


def test_nothing_but_the_library_names_a_key() -> None:
    backend = connect("embedded://")
    backend.execute(Pop("q", "w", wait=True))
    backend.execute(Put("q", "a", "K", ""))
    assert bundle.wake_key("ql:", "q").encode() in backend.namespace.keyspace.dump()


def test_operations_that_write_share_calls() -> None:
    class Watched(Namespace):
        def call(self, function: str, args: list[str]) -> Any:
            made.append(function)
            return super().call(function, args)

    made: list[str] = []
    backend = EmbeddedBackend(Watched())
    asked = [
        *(ops.Put("q", f"j{i}", "K", "{}", tags=(f"t{i % 9}",)) for i in range(250)),
        ops.Length("q"),
        ops.Priority("j1", "high"),  # type: ignore[arg-type]
        ops.Cancel(("none",)),
        ops.Cancel(("j2",)),
    ]
    assert backend.execute_many(asked, 5) == MemoryBackend().execute_many(asked, 5)
    assert made[-2:] == [bundle.function_name("length"), bundle.CALLS]
    assert 3 <= made.count(bundle.CALLS) < 10
    assert len(made) == made.count(bundle.CALLS) + 1


def test_an_error_in_one_of_several_operations_is_raised_after_the_others() -> None:
    backend = EmbeddedBackend()
    backend.namespace.keyspace.execute("SET", b"ql:q:r-work", b"no sorted set")
    with pytest.raises(CorruptError, match="r-work"):
        backend.execute_many([ops.Put(queue, f"j{queue}", "K", "{}") for queue in "qrs"])
    assert [backend.execute(ops.Length(queue)) for queue in "qs"] == [1, 1]
    assert asyncio.run(AsyncEmbeddedBackend(backend.namespace).execute_many([ops.Length("q"), ops.Length("s")])) == [
        1,
        1,
    ]


def test_the_library_has_room_for_a_few_files() -> None:
    """Lua has at most 200 local variables in a chunk: each file of the library is one, and so is each hot name."""
    first, _, rest = bundle.library().partition("\n")
    names = ", ".join(f"name_{number}" for number in range(8))
    assert LuaHost().load(f"{first}\nlocal {names} {rest}") == LuaHost().load(bundle.library())

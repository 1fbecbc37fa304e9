"""The weaknesses of qless that its interface shows, by number: which the dialect copies, and which it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from qmodel.backends import bundle
from qmodel.dialects import qless
from qmodel.model.state.store import Store

Ask = Callable[..., Any]


class Refused(Exception):
    """A call was refused."""


def on_the_model() -> Ask:
    """Executes calls on the model; replies that are JSON are decoded."""
    store = Store()

    def ask(*words: object) -> Any:
        try:
            return read(qless.call(store, [str(word) for word in words]).reply)
        except qless.QlessError as refused:
            raise Refused(refused.sentence) from None

    return ask


def on_the_lua() -> Ask:
    """Executes calls on the Lua library in this process."""
    lua_host = pytest.importorskip("qmodel.backends.embedded.host")
    host = lua_host.LuaHost(lambda: 0.0)
    host.load(bundle.library())

    def ask(*words: object) -> Any:
        try:
            reply = host.fcall(f"{bundle.LIBRARY}_qless", ("ql:",), [str(word) for word in words])
        except lua_host.ReplyError as refused:
            raise Refused(str(refused).removeprefix("ERR ")) from None
        return read([one.decode() for one in reply] if isinstance(reply, list) else reply)

    return ask


def read(reply: Any) -> Any:
    """Decode a reply if it is JSON."""
    text = reply.decode() if isinstance(reply, bytes) else reply
    try:
        return lists(json.loads(text)) if isinstance(text, str) else text
    except ValueError:
        return text


def lists(value: Any) -> Any:
    """Read empty objects as empty lists, as every binding of qless must."""
    if isinstance(value, dict):
        return {name: lists(one) for name, one in value.items()} or []
    return [lists(one) for one in value] if isinstance(value, list) else value


@pytest.fixture(params=[on_the_model, on_the_lua], ids=["model", "lua"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Executes calls on one side."""
    made: Ask = request.param()
    return made


def put(ask: Ask, jid: str, *options: object, queue: str = "q", now: object = 0, delay: object = 0) -> None:
    """Put a job."""
    assert ask("put", now, "me", queue, jid, "k", "{}", delay, *options) == jid


def test_q1_a_refused_put_leaves_the_tags(ask: Ask) -> None:
    put(ask, "a", "tags", '["red"]')
    with pytest.raises(Refused, match="retries"):
        put(ask, "a", "retries", "many")
    assert ask("get", 0, "a")["tags"] == ["red"]
    assert ask("tag", 0, "get", "red")["jobs"] == ["a"]


def test_q1_a_timeout_of_several_happens_whole_or_not_at_all(ask: Ask) -> None:
    put(ask, "a")
    ask("pop", 0, "q", "w", 1)
    with pytest.raises(Refused, match="does not exist"):
        ask("timeout", 0, "a", "ghost")
    assert ask("get", 0, "a")["state"] == "running"


@pytest.mark.parametrize("how", ["retry", "timeout"])
def test_q2_q3_who_gave_a_job_back_no_longer_has_it(ask: Ask, how: str) -> None:
    put(ask, "a")
    ask("pop", 0, "q", "w", 1)
    ask(*(("retry", 0, "a", "q", "w") if how == "retry" else ("timeout", 0, "a")))
    job = ask("get", 0, "a")
    assert (job["worker"], job["expires"]) == ("", 0)
    assert ask("workers", 0, "w") == {"jobs": [], "stalled": []}


def test_q4_a_job_is_not_retried_in_a_queue_in_which_it_does_not_run(ask: Ask) -> None:
    put(ask, "a")
    ask("pop", 0, "q", "w", 1)
    with pytest.raises(Refused, match="running in another queue: q"):
        ask("retry", 0, "a", "other", "w")


def test_q5_moving_a_failed_job_mends_the_statistics_of_the_queue_where_it_failed(ask: Ask) -> None:
    put(ask, "a")
    ask("pop", 0, "q", "w", 1)
    ask("fail", 0, "a", "w", "g", "m")
    put(ask, "a", queue="other")
    assert ask("stats", 0, "q", 0)["failed"] == 0 == ask("stats", 0, "other", 0)["failed"]


def test_statistics_are_answered_by_tag_and_by_worker(ask: Ask) -> None:
    ask("config.set", 0, "stats-workers", 10)
    put(ask, "a", "tags", '["eu"]')
    put(ask, "b")
    ask("pop", 5, "q", "w", 2)
    ask("complete", 9, "a", "w", "q", "{}")
    found = ask("stats", 9, "q", 0, "tag", "eu")
    assert (found["wait"]["count"], found["wait"]["mean"], found["run"]["mean"]) == (1, 5, 4)
    assert sorted(found) == ["run", "wait"]
    assert ask("stats", 9, "q", 0, "worker", "w")["wait"]["count"] == 2
    assert ask("stats", 9, "q", 0, "worker", "v")["wait"]["count"] == 0
    assert ask("stats", 9, "q", 0, "NOPE") == ask("stats", 9, "q", 0)  # qless ignores surplus arguments


def test_a_klass_may_be_empty(ask: Ask) -> None:
    assert ask("put", 0, "me", "q", "a", "", "{}", 0) == "a"
    assert ask("get", 0, "a")["klass"] == "" == ask("pop", 0, "q", "w", 1)[0]["klass"]
    ask("recur", 0, "q", "r", "", "{}", "interval", 60, 0)
    assert ask("recur.get", 0, "r")["klass"] == ""
    ask("recur.update", 0, "r", "klass", "K")
    assert ask("recur.get", 0, "r")["klass"] == "K"
    ask("recur.update", 0, "r", "klass", "")
    assert ask("pop", 0, "q", "w", 1)[0]["klass"] == ""


def test_q6_a_step_with_a_delay_is_scheduled_and_says_so(ask: Ask) -> None:
    put(ask, "a")
    ask("pop", 0, "q", "w", 1)
    assert ask("complete", 0, "a", "w", "q", "{}", "next", "r", "delay", 5) == "scheduled"
    assert ask("get", 0, "a")["state"] == "scheduled"


def test_q7_a_delay_counts_where_all_dependencies_are_met(ask: Ask) -> None:
    put(ask, "a")
    ask("pop", 0, "q", "w", 1)
    assert ask("complete", 0, "a", "w", "q", "{}", "next", "r", "delay", 5, "depends", '["gone"]') == "scheduled"


def test_q8_an_empty_list_of_dependencies_keeps_them(ask: Ask) -> None:
    put(ask, "a")
    put(ask, "b", "depends", '["a"]')
    put(ask, "b", "depends", "[]")
    assert ask("get", 0, "b")["state"] == "depends"


def test_q9_the_delay_outlives_the_dependencies(ask: Ask) -> None:
    put(ask, "a")
    put(ask, "b", "depends", '["a"]', delay=60)
    ask("depends", 0, "b", "off", "all")
    assert ask("get", 0, "b")["state"] == "scheduled"


def test_q10_unfail_mends_the_statistics_and_enters_the_queue(ask: Ask) -> None:
    for jid in ("b", "a"):
        put(ask, jid)
        ask("pop", 0, "q", "w", 1)
        ask("fail", 0, jid, "w", "g", "m")
    assert ask("unfail", 0, "new", "g", 0) == 0
    assert ask("unfail", 0, "new", "g") == 2
    assert ask("stats", 0, "q", 0)["failed"] == 0
    assert {queue["name"] for queue in ask("queues", 0)} == {"q", "new"}
    assert [job["jid"] for job in ask("pop", 0, "new", "w", 2)] == ["b", "a"]


def test_q11_tags_are_counted_once(ask: Ask) -> None:
    put(ask, "a", "tags", '["red","red"]')
    ask("tag", 0, "add", "a", "red")
    ask("tag", 0, "remove", "a", "blue")
    assert ask("tag", 0, "top") == []
    put(ask, "b", "tags", '["red"]')
    assert ask("tag", 0, "top") == ["red"]


def test_q12_every_lapse_has_its_grace(ask: Ask) -> None:
    put(ask, "a")
    ask("pop", 0, "q", "w", 1)
    for now in (65, 130):
        assert ask("pop", now, "q", "v", 1) == []
        assert ask("heartbeat", now, "a", "w") == now + 60


def test_q13_a_lease_both_runs_and_has_run_out_at_its_end(ask: Ask) -> None:
    put(ask, "a")
    ask("pop", 0, "q", "w", 1)
    assert (ask("jobs", 60, "running", "q"), ask("jobs", 60, "stalled", "q")) == (["a"], ["a"])


def test_q14_a_new_priority_makes_a_job_the_first_of_its_equals(ask: Ask) -> None:
    for jid in ("a", "b"):
        put(ask, jid, now=1)
    ask("priority", 1, "b", 0)
    assert [job["jid"] for job in ask("peek", 1, "q", 2)] == ["b", "a"]


def test_q14_a_new_priority_is_also_that_of_a_job_whose_lease_was_ended(ask: Ask) -> None:
    for jid in ("a", "b", "c"):
        put(ask, jid, now=1)
    ask("pop", 2, "q", "w", 2)
    ask("timeout", 3, "a", "b")
    ask("priority", 4, "a", -3)
    assert (ask("get", 4, "a")["state"], ask("length", 4, "q"), ask("queues", 4, "q")["waiting"]) == ("stalled", 3, 3)
    assert [job["jid"] for job in ask("peek", 5, "q", 3)] == ["b", "c", "a"]
    assert [job["jid"] for job in ask("pop", 5, "q", "v", 3)] == ["b", "c", "a"]
    assert ask("retry", 6, "a", "q", "v") == 4
    assert ask("get", 6, "a")["state"] == "waiting"


def test_q20_an_entry_of_a_history_cuts_those_before_it(ask: Ask) -> None:
    put(ask, "a")
    for now in range(1, 7):
        ask("log", now, "a", f"line {now}")
    ask("config.set", 10, "max-job-history", 3)
    assert len(ask("get", 11, "a")["history"]) == 7
    ask("log", 12, "a", "last")
    assert [entry["what"] for entry in ask("get", 13, "a")["history"]] == ["put", "line 6", "last"]
    ask("config.unset", 14, "max-job-history")
    assert len(ask("get", 15, "a")["history"]) == 3
    ask("config.set", 16, "max-job-history", 1)
    ask("log", 17, "a", "one more")
    assert [entry["what"] for entry in ask("get", 18, "a")["history"]] == ["put", "last", "one more"]
    ask("config.set", 19, "max-job-history", 0)
    ask("log", 20, "a", "all")
    assert len(ask("get", 21, "a")["history"]) == 4


def test_the_changes_of_a_history_that_are_remembered_are_few(ask: Ask) -> None:
    put(ask, "a")
    for now in range(1, 40):
        ask("config.set", now, "max-job-history", now)
    for now in range(50, 60):
        ask("log", now, "a", "line")
    assert len(ask("get", 60, "a")["history"]) == 11


def test_jobs_that_one_unfail_moves_come_by_name_in_reverse(ask: Ask) -> None:
    for now, jid in enumerate(("a", "c", "b", "d")):
        put(ask, jid, now=now)
        ask("pop", now, "q", "w", 1)
        ask("fail", now, jid, "w", "g", "why")
    assert ask("unfail", 9, "q", "g", 3) == 3
    assert [job["jid"] for job in ask("pop", 10, "q", "w", 9)] == ["c", "b", "a"]
    assert (ask("unfail", 11, "q", "g"), ask("unfail", 12, "q", "g"), ask("unfail", 12, "q", "none")) == (1, 0, 0)


def test_q15_jobs_of_one_moment_are_popped_in_the_order_of_their_puts(ask: Ask) -> None:
    for jid in ("b", "c", "a"):
        put(ask, jid)
    assert [job["jid"] for job in ask("pop", 0, "q", "w", 3)] == ["b", "c", "a"]


@pytest.mark.parametrize("data", ["1", '"x"', "[1]"])
def test_q21_a_log_of_what_is_no_object_is_refused(ask: Ask, data: str) -> None:
    put(ask, "a")
    with pytest.raises(Refused, match="not a JSON object"):
        ask("log", 0, "a", "so far", data)
    ask("log", 0, "a", "so far", '{"x": 1, "what": "no"}')
    assert ask("get", 0, "a")["history"][-1] == {"when": 0, "what": "so far", "x": 1}


def test_q22_canceling_what_is_not_there_is_told_as_in_the_original() -> None:
    told = '{"jid":"ghost","queue":false,"event":"canceled","worker":false}'
    assert qless.call(Store(), ["cancel", "0", "ghost"]) == (["ghost"], [("log", told)])


def test_q23_a_job_that_is_gone_can_be_untracked(ask: Ask) -> None:
    put(ask, "a")
    assert ask("track", 0, "track", "a") == 1
    ask("cancel", 0, "a")
    assert ask("track", 0)["expired"] == ["a"]
    assert ask("track", 0, "untrack", "a") == 1
    assert ask("track", 0)["expired"] == []


def test_q24_counts_are_whole_and_less_than_one_gives_nothing(ask: Ask) -> None:
    put(ask, "a")
    assert ask("pop", 0, "q", "w", 0) == ask("pop", 0, "q", "w", -1) == ask("peek", 0, "q", -1) == []
    with pytest.raises(Refused, match="count"):
        ask("pop", 0, "q", "w", 1.5)


def test_q24_pages_are_read_as_redis_reads_ranges_and_limits(ask: Ask) -> None:
    for jid in ("a", "b", "c"):
        put(ask, jid, "tags", '["t"]', now=ord(jid) - 97)
        ask("pop", 5, "q", "w", 1)
        ask("complete", ord(jid), jid, "w", "q", "{}")
    assert ask("jobs", 200, "complete", 0, -1) == ["c", "b"]
    assert ask("jobs", 200, "complete", -1, 1) == ["a"]
    assert ask("jobs", 200, "complete", 0, 0) == ["c", "b", "a"]
    assert ask("tag", 200, "get", "t", -2, 1) == {"total": 3, "jobs": ["b"]}
    assert ask("tag", 200, "get", "t", 2, -3) == {"total": 3, "jobs": []}
    for jid in ("d", "e"):
        put(ask, jid, now=201)
    ask("pop", 201, "q", "w", 2)
    assert ask("jobs", 202, "running", "q", 0, -1) == ["d", "e"]
    assert ask("jobs", 202, "running", "q", 0, 0) == ask("jobs", 202, "running", "q", -1, 2) == []
    assert ask("tag", 202, "top", 0, 0) == []
    ask("fail", 203, "d", "w", "g", "why")
    ask("fail", 204, "e", "w", "g", "why")
    assert ask("failed", 205, "g", -1, 1) == {"total": 2, "jobs": ["d"]}
    assert ask("unfail", 206, "q", "g", -1) == 0


def test_recurring_jobs_of_one_due_time_run_by_id(ask: Ask) -> None:
    for jid in ("y", "x"):
        ask("recur", 0, "q", jid, "k", "{}", "interval", 60, 10)
    assert ask("jobs", 1, "recurring", "q") == ["x", "y"]
    assert ask("jobs", 1, "recurring", "q", 1) == ["y"]
    assert [job["jid"] for job in ask("pop", 20, "q", "w", 1)] == ["x-1"]
    assert [job["jid"] for job in ask("pop", 20, "q", "w", 1)] == ["y-1"]


def test_q25_nothing_waits_for_itself(ask: Ask) -> None:
    put(ask, "a")
    put(ask, "b", "depends", '["a"]')
    put(ask, "c", "depends", '["b"]')
    with pytest.raises(Refused, match="b > c > b"):
        ask("depends", 0, "b", "on", "c")
    with pytest.raises(Refused, match="new > new"):
        put(ask, "new", "depends", '["new"]')


@pytest.mark.parametrize("data", ["[]", "12345678901234567", "1.0", '{"b":1,"a":"\\/"}'])
def test_q28_data_are_kept_as_they_are(ask: Ask, data: str) -> None:
    put(ask, "a")
    ask("pop", 0, "q", "w", 1)
    ask("heartbeat", 0, "a", "w", data)
    assert ask("get", 0, "a")["data"] == data
    ask("fail", 0, "a", "w", "g", "m", data)
    assert ask("get", 0, "a")["data"] == data


def test_q29_false_is_no_data_and_a_list_must_be_one(ask: Ask) -> None:
    with pytest.raises(Refused, match="missing or not JSON: false"):
        ask("put", 0, "me", "q", "a", "k", "false", 0)
    put(ask, "a", "tags", "[1, 2]")
    assert ask("get", 0, "a")["tags"] == ["1", "2"]
    for option in ("tags", "depends"):
        for value in ("1", "true", "[true]", "[1.5]"):
            with pytest.raises(Refused, match=f'Arg "{option}" not a JSON list of texts'):
                put(ask, "a", option, value)
    assert ask("length", 0, "q") == 1


@pytest.mark.parametrize("level", ["inf", "nan", "0x10", " 7 ", "1e999"])
def test_q30_a_priority_is_a_number(ask: Ask, level: str) -> None:
    with pytest.raises(Refused, match='"priority"'):
        put(ask, "a", "priority", level)


@pytest.mark.parametrize("retries", ["1.5", "-1"])
def test_q31_retries_are_whole(ask: Ask, retries: str) -> None:
    with pytest.raises(Refused, match='"retries"'):
        put(ask, "a", "retries", retries)
    with pytest.raises(Refused, match='"value"'):
        ask("config.set", 0, "heartbeat", "soon")


def test_q32_a_failure_without_retries_left_has_its_exact_time_and_no_worker(ask: Ask) -> None:
    put(ask, "a", "retries", 0)
    ask("pop", 0.5, "q", "w", 1)
    ask("pop", 100.5, "q", "v", 1)
    ask("pop", 110.5, "q", "v", 1)
    job = ask("get", 110.5, "a")
    assert (job["failure"]["when"], job["failure"]["worker"]) == (110.5, "")
    assert (job["failure"]["group"], job["remaining"]) == ("failed-retries-q", -1)
    assert job["failure"]["message"] == 'Job exhausted retries in queue "q"'


def test_q34_a_silent_worker_keeps_its_jobs_in_sight(ask: Ask) -> None:
    put(ask, "a")
    ask("config.set", 0, "heartbeat", 10**6)
    ask("pop", 0, "q", "w", 1)
    assert ask("workers", 200_000) == [{"name": "w", "jobs": 1, "stalled": 0}]


@pytest.mark.parametrize("jid", ["x-dependents", "x-dependencies", "x-data", "x y", ""])
def test_q36_an_id_that_would_be_another_key_is_refused(ask: Ask, jid: str) -> None:
    with pytest.raises(Refused, match='Put\\(\\): Arg "jid" must be'):
        put(ask, jid)


def test_q37_dependencies_are_in_order(ask: Ask) -> None:
    for jid in ("c", "a", "b"):
        put(ask, jid)
    put(ask, "d", "depends", '["c","a","b"]')
    assert ask("get", 0, "d")["dependencies"] == ["a", "b", "c"]


def test_a_recurring_job_in_the_first_second_of_1970(ask: Ask) -> None:
    assert ask("recur", "0.5", "q", "r", "K", "{}", "interval", "60", "0.2") == "r"
    assert [job["jid"] for job in ask("pop", "1", "q", "w", "5")] == ["r-1"]


def test_workers_are_listed_by_their_last_sign_of_life(ask: Ask) -> None:
    put(ask, "a")
    ask("pop", 1, "q", "w", 1)
    ask("pop", 1.2, "q", "v", 1)
    ask("pop", 1.4, "r", "w", 1)
    assert [one["name"] for one in ask("workers", 2)] == ["w", "v"]
    ask("pop", 3, "q", "v", 1)
    ask("pop", 3.1, "q", "w", 1)
    ask("pop", 3.2, "q", "v", 1)
    ask("heartbeat", 3.3, "a", "w")
    assert [one["name"] for one in ask("workers", 4)] == ["w", "v"]


def test_a_pop_without_room_is_a_sign_of_life(ask: Ask) -> None:
    ask("config.set", 0, "q-max-concurrency", 1)
    put(ask, "a")
    put(ask, "b")
    ask("pop", 1, "q", "w", 1)
    assert ask("pop", 2, "q", "v", 1) == []
    assert ask("pop", 3, "q", "u", 0) == []
    assert ask("queue.pop", 4, "q", "t", 0) == []
    ask("pause", 4, "q")
    assert ask("pop", 5, "q", "s", 1) == [] and ask("pop", 5, "q", "s", 0) == []
    assert [one["name"] for one in ask("workers", 6)] == ["t", "u", "v", "w"]
    assert [one["name"] for one in ask("queues", 6)] == ["q"]


def test_workers_past_their_age_are_forgotten_by_workers_alone(ask: Ask) -> None:
    ask("config.set", 0, "max-worker-age", 60)
    ask("pop", 1, "q", "w", 1)
    ask("pop", 62, "q", "v", 1)
    assert ask("config.get", 63, "max-worker-age") == 60
    ask("config.set", 63, "max-worker-age", 86400)
    assert [one["name"] for one in ask("workers", 64)] == ["v", "w"]
    ask("config.set", 65, "max-worker-age", 60)
    ask("workers", 66, "v")
    ask("config.unset", 67, "max-worker-age")
    assert [one["name"] for one in ask("workers", 68)] == ["v"]
    ask("config.set", 69, "max-worker-age", -5)
    assert ask("workers", 70) == []

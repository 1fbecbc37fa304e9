"""Options are declared once, converted in one table, and refused by name where they are unknown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import qmodel
from qmodel import App
from qmodel.app import options as of_types
from qmodel.app.errors import DeclarationError
from qmodel.client import build
from qmodel.client.options import PutOptions, RecurOptions, SubRequestOptions, SubscribeOptions
from qmodel.contract.operations import Put, Recur, Subscribe

PUT = set(PutOptions.__annotations__)
RECUR = set(RecurOptions.__annotations__)
BESIDE = {"queue", "jid", "klass", "data", "request"}
"""Arguments of the catalogue that come from others of the client's than options, or from the client itself."""


def arguments(operation: type[Put | Recur | Subscribe]) -> set[str]:
    return {argument.name for argument in operation.spec.arguments}


def test_every_option_has_a_conversion_to_an_argument() -> None:
    assert PUT - {"jid", "text"} == build.PUT.keys()
    assert RECUR - {"jid", "text", "interval", "cron", "tz", "after"} == build.RECUR.keys()
    assert set(SubscribeOptions.__annotations__) == build.SUBSCRIBE.keys()
    assert set(SubRequestOptions.__annotations__) - {"name", "text"} == build.SUB_REQUEST.keys()


def test_every_argument_of_the_catalogue_has_an_option() -> None:
    assert {name for name, _ in build.PUT.values()} == arguments(Put) - BESIDE
    assert {name for name, _ in build.RECUR.values()} | {"interval_ms", "kind", "cron", "due_at"} == (
        arguments(Recur) - BESIDE
    )
    assert {name for name, _ in build.SUBSCRIBE.values()} == (
        arguments(Subscribe) - BESIDE - {"subscription", "patterns", "count"}
    )


def test_a_sub_request_takes_the_options_of_a_put_but_for_priority_and_keys() -> None:
    assert PUT - set(SubRequestOptions.__annotations__) == {
        "jid", "priority", "ordered", "unique", "unique_mode", "unique_for", "unique_max",
    }  # fmt: skip


def test_the_options_of_a_job_are_those_of_put() -> None:
    assert PUT - {"text"} | {"queue"} == of_types.CALL


def test_the_times_of_a_schedule_are_those_of_recur() -> None:
    assert RECUR - {"jid", "text", "interval"} - of_types.RECURS | {"every"} == of_types.SCHEDULE


def test_an_option_that_put_does_not_have_would_be_noticed() -> None:
    assert "colour" not in of_types.DECLARED


def test_an_unknown_option_is_refused_with_the_one_that_may_be_meant() -> None:
    queue = qmodel.connect().queues["q"]
    meant = r"got an unexpected keyword argument 'retires'\. Did you mean 'retries'\?"

    with pytest.raises(TypeError, match=r"put\(\) " + meant):
        queue.put("k", retires=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"recur\(\) " + meant):
        queue.recur("k", interval=1, retires=3)  # type: ignore[call-arg]


def test_an_unknown_option_of_a_subscription_is_refused() -> None:
    with pytest.raises(TypeError, match=r"add\(\) got an unexpected keyword argument 'colour'. It takes after, .*ttl"):
        qmodel.connect().subscriptions.add("s", "a.*", "q", "k", colour=1)  # type: ignore[call-arg]


def test_none_stands_for_an_option_that_is_not_given() -> None:
    given = dict.fromkeys(build.PUT)
    assert build.new_job("q", "k", **given, jid="j") == build.new_job("q", "k", jid="j")  # type: ignore[misc]


def test_a_moment_replaces_the_delay_of_the_job_type_and_is_refused_beside_another_one() -> None:
    app, at = App("memory://"), datetime(2126, 1, 31, tzinfo=UTC)

    @app.job(delay=60)
    def remind(to: str) -> None:
        """Remind somebody."""

    assert remind.options(at=at).put("ada").refresh().ready_at == at
    assert remind.options(at=at).options(delay=0).make("ada").at is None
    with pytest.raises(DeclarationError, match=r"cannot have at with these options\. Give either at or delay\."):
        remind.options(at=at, delay=1)
    with pytest.raises(DeclarationError, match="has no time zone"):
        remind.options(at=datetime(2126, 1, 31))


@pytest.mark.parametrize("delay", ["1h", float("inf"), float("nan")])
def test_what_is_no_duration_is_refused_with_what_is_one(delay: Any) -> None:
    app = App("memory://")

    @app.job
    def remind(to: str) -> None:
        """Remind somebody."""

    with pytest.raises(DeclarationError, match=rf"used: {delay!r} is no duration: give seconds, or a timedelta\. See"):
        remind.options(delay=delay)
    with pytest.raises((TypeError, ValueError), match="is no duration"):
        app.client.queues["q"].put("k", delay=delay)

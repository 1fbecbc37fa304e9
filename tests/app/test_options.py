"""The options of job types are those of the client: none is forgotten when one is added there."""

from __future__ import annotations

import inspect

from qmodel.app import options
from qmodel.client.fields import new_job
from qmodel.client.sync import Queue

NOT_OPTIONS = {"self", "klass", "data", "text"}


def test_the_options_of_a_job_are_those_of_put() -> None:
    known = set(inspect.signature(new_job).parameters)
    assert set(inspect.signature(Queue.put).parameters) - {"self"} | {"queue"} == known
    assert known - NOT_OPTIONS == options.PUT


def test_the_times_of_a_schedule_are_those_of_recur() -> None:
    known = set(inspect.signature(Queue.recur).parameters)
    assert known - NOT_OPTIONS - {"jid", "interval"} - options.RECURS | {"every"} == options.SCHEDULE


def test_an_option_that_put_does_not_have_would_be_noticed() -> None:
    assert "colour" not in options.DECLARED

"""Copying options, limits and subscriptions from one namespace or deployment to another.

The source keeps its own for the jobs that end there. What the target has set itself stays as it is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qmodel.cli.moved_jobs import PAGE, Report
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Subscription, Throttle
from qmodel.present.actions.jobs import argument

LIMITS = ("concurrency", "rate", "rate_ms", "capacity", "refill", "refill_ms")


def copy_settings(source: Client, target: Client, report: Report) -> None:
    """Copy the options, limits and subscriptions that the target has not set itself; add to the report."""
    _options(source, target, report)
    _limits(source, target, report)
    _subscriptions(source, target, report)


def _options(source: Client, target: Client, report: Report) -> None:
    """Copy the options that are set."""
    there = {one.option: one.value for one in target.execute(ops.Config()) if one.is_set}
    for one in source.execute(ops.Config()):
        if one.is_set:
            differs = there.get(one.option, one.value) != one.value
            _copy(target, report, "options", one.option, ops.ConfigSet(one.option, one.value), differs)


def _limits(source: Client, target: Client, report: Report) -> None:
    """Copy the limits of throttles, and of families of throttles."""
    there = {one.name: _limits_of(one) for one in _all(target, ops.Throttles)}
    for one in _all(source, ops.Throttles):
        limits = _limits_of(one)
        differs = there.get(one.name, limits) != limits
        _copy(target, report, "limits", one.name, ops.ThrottleSet(one.name, **limits), differs)


def _limits_of(throttle: Throttle) -> dict[str, Any]:
    return {name: getattr(throttle, name) for name in LIMITS if getattr(throttle, name)}


def _subscriptions(source: Client, target: Client, report: Report) -> None:
    """Copy the subscriptions; they begin with the messages that are published from now on."""
    there = {one.name: one for one in _all(target, ops.Subscriptions)}
    for one in _all(source, ops.Subscriptions):
        differs = there.get(one.name, one)._replace(behind=0) != one._replace(behind=0)
        _copy(target, report, "subscriptions", one.name, _subscribe(one), differs)


def _subscribe(one: Subscription) -> ops.Subscribe:
    options: dict[str, Any] = {name: argument(name, text) for name, text in one.options}
    return ops.Subscribe(
        one.name,
        one.patterns,
        one.queue,
        one.klass,
        one.priority,
        one.delay_ms,
        one.retries,
        one.tags,
        **options,
    )


def _all(client: Client, of: Any) -> Iterator[Any]:
    """List everything that an operation with an offset lists."""
    offset = 0
    while True:
        page = client.execute(of(offset, PAGE))
        yield from page
        offset += PAGE
        if len(page) < PAGE:
            return


def _copy(target: Client, report: Report, kind: str, name: str, op: Operation, differs: bool) -> None:
    """Set one in the target, unless that has set another value itself."""
    reply = None if differs else target.backend.execute(op)
    if differs:
        report.kept[f"{kind}, {name}"] = "the target has set it differently"
    elif isinstance(reply, Refusal):
        report.kept[f"{kind}, {name}"] = reply.sentence
    else:
        report.copied[kind] += 1

"""Builders: operations of the catalogue from the arguments and options of the client's methods.

Two tables name the argument and the conversion of each option. They are the only place where seconds become
milliseconds, jobs become edges, and days become moments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Unpack

from qmodel import runtime
from qmodel.client.convert import (
    Duration,
    edges_of,
    encode_data,
    encode_result,
    exact_instant,
    instant,
    milliseconds,
    names_of,
)
from qmodel.client.options import PutOptions, RecurOptions, RequestOptions, SubRequestOptions, SubscribeOptions
from qmodel.contract.operations import Publish, Put, Recur, RequestOpen, RequestPut, Subscribe
from qmodel.errors import hint

Conversion = tuple[str, Callable[[Any], Any]]
"""The catalogue's argument for an option, and what converts the option's value."""


def _as_given(value: Any) -> Any:
    return value


def _true_or_default(value: bool) -> bool | None:
    return True if value else None


def _names_or_default(names: Iterable[str] | str) -> tuple[str, ...] | None:
    return names_of(names) or None


def _durations(*options: str) -> dict[str, Conversion]:
    return {option: (f"{option}_ms", milliseconds) for option in options}


def _unchanged(*options: str) -> dict[str, Conversion]:
    return {option: (option, _as_given) for option in options}


PUT: Final[Mapping[str, Conversion]] = {
    **_unchanged(
        "priority",
        "retries",
        "ordered",
        "cost",
        "max_lapses",
        "fair_key",
        "fair_weight",
        "keep_newest",
        "dead_queue",
        "unique",
        "unique_mode",
    ),
    **_durations("delay", "retry_delay", "retry_delay_max", "lease", "timeout", "ttl", "keep_complete", "keep_failed"),
    "unique_for": ("unique_ms", milliseconds),
    "unique_max": ("unique_max_ms", milliseconds),
    "at": ("at", exact_instant),
    "tags": ("tags", names_of),
    "depends": ("depends", edges_of),
    "lifo": ("lifo", _true_or_default),
    "throttles": ("throttles", _names_or_default),
}
"""The options of a put, without its id and data."""

SUB_REQUEST: Final[Mapping[str, Conversion]] = {
    option: PUT[option] for option in SubRequestOptions.__annotations__ if option in PUT
}
"""The options of a sub-request, without its name and data."""

SUBSCRIBE: Final[Mapping[str, Conversion]] = {
    **{option: PUT[option] for option in SubscribeOptions.__annotations__ if option in PUT},
    **_unchanged("after"),
    "since": ("since", instant),
}
"""The options of a subscription."""

RECUR: Final[Mapping[str, Conversion]] = {
    **_unchanged(
        "priority", "retries", "limit", "backlog", "missed", "overlap", "restart", "runs", "fair_key", "fair_weight"
    ),
    **_durations("offset", "catchup"),
    "tags": ("tags", names_of),
    "throttles": ("throttles", names_of),
    "start": ("start_at", instant),
    "end": ("end_at", instant),
}
"""The options of a recurring job, without its id, data, interval and expression."""

REQUEST: Final[Mapping[str, Conversion]] = {
    **_unchanged("fail_fast", "keep_places"),
    **_durations("deadline", "lease"),
    "data": ("data", encode_result),
}
"""The options of a request."""

OPTION_OF: Final[Mapping[str, str]] = {argument: option for option, (argument, _) in PUT.items()}
"""The option of a put for each argument of the catalogue."""


_TAKES: Final[Mapping[str, Iterable[str]]] = {
    "put": PutOptions.__annotations__,
    "recur": RecurOptions.__annotations__,
    "Request.add": SubRequestOptions.__annotations__,
    "add": SubscribeOptions.__annotations__,
    "request": RequestOptions.__annotations__,
}
"""The option names of each method."""


def _arguments(method: str, conversions: Mapping[str, Conversion], options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert options to arguments of the catalogue; None is left out. Raises TypeError for an unknown option."""
    arguments = {}
    for option, value in options.items():
        if option not in conversions:
            advice = hint(option, sorted(_TAKES[method]), "It takes")
            raise TypeError(f"{method}() got an unexpected keyword argument {option!r}. {advice}")
        if value is not None:
            argument, convert = conversions[option]
            arguments[argument] = convert(value)
    return arguments


def _random_jid() -> str:
    return runtime.urandom(16).hex()


def new_job(queue: str, klass: str, data: object = None, **options: Unpack[PutOptions]) -> Put:
    """Build the operation that puts a job. See `Queue.put`."""
    jid, text = options.pop("jid", None), options.pop("text", None)
    arguments = _arguments("put", PUT, options)
    return Put(queue, _random_jid() if jid is None else jid, klass, encode_data(data, text), **arguments)


def new_sub_request(id: str, queue: str, klass: str, data: object = None, **options: Unpack[SubRequestOptions]) -> Put:
    """Build the put of a sub-request. See `Request.add`."""
    name, text = options.pop("name", None), options.pop("text", None)
    arguments = _arguments("Request.add", SUB_REQUEST, options)
    jid = f"{id}:{_random_jid() if name is None else name}"
    return Put(queue, jid, klass, encode_data(data, text), **arguments)


def request_open(id: str, queue: str, limit: int, priority: int, options: RequestOptions) -> RequestOpen:
    """Build the operation that opens a request. See `Requests.open`."""
    return RequestOpen(id, queue, limit, priority, **_arguments("request", REQUEST, options))


def request_put(
    id: str, queue: str, limit: int, jobs: tuple[Put, ...], priority: int, options: RequestOptions
) -> RequestPut:
    """Build the operation that puts a whole request. See `Requests.put`."""
    return RequestPut(id, queue, limit, jobs, priority, **_arguments("request", REQUEST, options))


def new_recurring(queue: str, klass: str, data: object = None, **options: Unpack[RecurOptions]) -> Recur:
    """Build the operation that lets a job recur. See `Queue.recur`."""
    jid, text = options.pop("jid", None), options.pop("text", None)
    times = _times(options.pop("interval", None), options.pop("cron", None), options.pop("after", None))
    zone = options.pop("tz", None)
    if "cron" in times:
        from qmodel.client.cron import spec  # it needs a package of its own

        times["cron"] = spec(times["cron"], "UTC" if zone is None else zone)
    arguments = times | _arguments("recur", RECUR, options)
    return Recur(queue, _random_jid() if jid is None else jid, klass, encode_data(data, text), **arguments)


def _times(interval: Duration | None, cron: str | None, after: Duration | None) -> dict[str, Any]:
    """The kind of a schedule, and its interval or expression. Raises TypeError unless exactly one is given."""
    if [interval, cron, after].count(None) != 2:
        raise TypeError("give one of interval, cron and after")
    if cron is not None:
        return {"kind": "cron", "cron": cron, "interval_ms": 0}
    kind = "interval" if after is None else "after"
    return {"kind": kind, "interval_ms": milliseconds(interval or after or 0)}


def new_message(subject: str, data: object = None, *, text: str | None = None, delay: Duration = 0) -> Publish:
    """Build the operation that publishes a message. See `Client.publish`."""
    return Publish(subject, encode_data(data, text), milliseconds(delay))


def new_subscription(
    name: str, patterns: Iterable[str] | str, queue: str, klass: str, **options: Unpack[SubscribeOptions]
) -> Subscribe:
    """Build the operation that makes or changes a subscription. See `Subscriptions.add`."""
    return Subscribe(name, names_of(patterns), queue, klass, **_arguments("add", SUBSCRIBE, options))


def fingerprint(klass: str, data: object = None) -> str:
    """Make a key for `put(unique=...)` from klass and data: equal ones get equal keys, others (practically) never.

    The order of a dictionary's keys does not matter. The hashed text contains the length of each part, so that
    different parts cannot be joined to the same text.

    >>> fingerprint("Send", {"to": 1, "cc": 2}) == fingerprint("Send", {"cc": 2, "to": 1})
    True
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(f"{len(klass)}:{klass}{len(text)}:{text}".encode()).hexdigest()

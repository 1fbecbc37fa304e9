"""The lists of queues and workers, and the options."""

from __future__ import annotations

from collections.abc import Callable

from qmodel.operations import Config, ConfigGet, ConfigSet, ConfigUnset, Deregister, Forget
from qmodel.refusals import refuse
from qmodel.replies import Setting
from qmodel.state import config, journal, queues, schedules, workers
from qmodel.state.store import Store, emit, keep_events


def forget(store: Store, now: int, op: Forget) -> int:
    """Take empty queues off the list."""
    for name in op.queues:
        length = queues.length(queues.of(store, name)) + schedules.size(store, name)
        if length:
            raise refuse("QUEUE_NOT_EMPTY", name, length)

    forgotten = 0
    for name in op.queues:
        if queues.forget(store, name):
            emit(store, now, "forgotten", name)
            forgotten += 1
    return forgotten


def deregister(store: Store, now: int, op: Deregister) -> int:
    """Take workers off the list."""
    gone = 0
    for name in op.workers:
        if workers.deregister(store, name):
            emit(store, now, "deregistered", name)
            gone += 1
    return gone


def list_config(store: Store, now: int, op: Config) -> tuple[Setting, ...]:
    """List the options, then those set for single queues, by name."""
    special = sorted(name for name in store.config if name not in config.OPTIONS)
    return tuple(
        Setting(name, store.config.get(name, config.option(name).default), name in store.config)
        for name in (*config.OPTIONS, *special)
    )


def config_get(store: Store, now: int, op: ConfigGet) -> int:
    """Show the value of an option."""
    return store.config.get(op.option, config.option(op.option).default)


def config_set(store: Store, now: int, op: ConfigSet) -> int:
    """Set an option."""
    option = config.option(op.option)
    if not option.low <= op.value <= option.high:
        raise refuse("BAD_VALUE", op.option, option.low, option.high)

    return _configure(store, now, op.option, op.value, config.assign)


def config_unset(store: Store, now: int, op: ConfigUnset) -> int:
    """Set an option back to its default."""
    default = config.option(op.option).default

    return _configure(store, now, op.option, default, config.clear)


def _configure(store: Store, now: int, option: str, value: int, change: Callable[[Store, str, int], None]) -> int:
    if option == "max-events":
        keep_events(store, value)
    elif option == "max-journal":
        journal.keep(store, value)
    change(store, option, value)
    emit(store, now, "configured", option, value)
    return value

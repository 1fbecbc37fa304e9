"""Queues, workers and options: pausing, forgetting, configuring."""

from __future__ import annotations

from collections.abc import Callable

from qmodel.contract.operations import (
    BeginEpoch,
    Config,
    ConfigGet,
    ConfigSet,
    ConfigUnset,
    Deregister,
    Forget,
    Pause,
    Unpause,
)
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import Setting
from qmodel.contract.settings import OPTIONS
from qmodel.model.rules.suspension import end, holds
from qmodel.model.state import config, epochs, journal, pauses, queues, requests, schedules, workers
from qmodel.model.state.store import Store, emit, keep_events


def forget(store: Store, now: int, op: Forget) -> int:
    """Take empty queues off the list."""
    for name in op.queues:
        length = queues.length(queues.of(store, name)) + schedules.size(store, name) + requests.timed(store, name)
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


def config_(store: Store, now: int, op: Config) -> tuple[Setting, ...]:
    """List the options, then those set for single queues, by name."""
    special = sorted(name for name in store.config if name not in OPTIONS)
    return tuple(
        Setting(name, store.config.get(name, config.option(name).default), name in store.config)
        for name in (*OPTIONS, *special)
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
    """Reset an option to its default."""
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


def pause(store: Store, now: int, op: Pause) -> int:
    """Stop handing out jobs of queues, for a reason."""
    for name in op.queues:
        others = [reason for reason, _ in pauses.lasting(store, now, name) if reason != op.reason]
        if len(others) >= pauses.MOST:
            raise refuse("LIMIT_REACHED", "pauses of queue " + name, pauses.MOST)

    until = now + op.for_ms if op.for_ms else 0
    changed = 0
    for name in op.queues:
        changed += not holds(store, now, name)
        if pauses.of(store, name).get(op.reason) != until:
            pauses.assign(store, name, op.reason, until)
            emit(store, now, "paused", name, op.reason, until)
    return changed


def unpause(store: Store, now: int, op: Unpause) -> int:
    """End pauses of queues; a queue with other pauses stays paused."""
    changed = 0
    for name in op.queues:
        if holds(store, now, name) and (op.reason is None or op.reason in pauses.of(store, name)):
            changed += end(store, now, name, op.reason)
    return changed


def begin_epoch(store: Store, now: int, op: BeginEpoch) -> int:
    """Begin an epoch; the current one is begun already."""
    if op.epoch < store.epoch:
        raise refuse("EPOCH_PASSED", op.epoch, store.epoch)

    if op.epoch > store.epoch:
        epochs.begin(store, now, op.epoch)
    return op.epoch

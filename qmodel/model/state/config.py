"""Configuration: the values of the options in qmodel/contract/settings.py."""

from __future__ import annotations

from qmodel.contract.refusals import refuse
from qmodel.contract.settings import DEFAULTS, OPTIONS, PER_QUEUE, Option
from qmodel.model.state.store import Store


def option(name: str) -> Option:
    """Find an option by name, or refuse."""
    if name.startswith(PER_QUEUE) and len(name) > len(PER_QUEUE):
        return OPTIONS["heartbeat"]
    if name not in OPTIONS:
        raise refuse("UNKNOWN_OPTION", name)
    return OPTIONS[name]


def value(store: Store, name: str) -> int:
    """The value of an option that is known to exist."""
    return store.settings[name]


def heartbeat(store: Store, queue: str) -> int:
    """How long a lease in a queue lasts, in milliseconds."""
    settings = store.settings
    return settings.get(PER_QUEUE + queue, settings["heartbeat"]) if store.config else settings["heartbeat"]


def assign(store: Store, name: str, to: int) -> None:
    """Set an option."""
    store.config[name] = to
    store.settings = DEFAULTS | store.config


def clear(store: Store, name: str, _: int) -> None:
    """Reset an option to its default."""
    store.config.pop(name, None)
    store.settings = DEFAULTS | store.config

"""Configuration: the values of the options in qmodel/contract/settings.py."""

from __future__ import annotations

from qmodel.contract.refusals import refuse
from qmodel.contract.settings import OPTIONS, Option, meant_by
from qmodel.model.state.store import Store, configure


def option(name: str) -> Option:
    """Find an option by name, or refuse."""
    meant = meant_by(name)
    if meant is None:
        raise refuse("UNKNOWN_OPTION", name)
    return OPTIONS[meant]


def value(store: Store, name: str) -> int:
    """The value of an option that is known to exist."""
    return store.settings[name]


def heartbeat(store: Store, queue: str) -> int:
    """How long a lease in a queue lasts, in milliseconds."""
    settings = store.settings
    return settings.get("heartbeat-" + queue, settings["heartbeat"]) if store.config else settings["heartbeat"]


def is_fair(store: Store, queue: str) -> bool:
    """Whether the fair keys of a queue take turns (state/turns.py)."""
    settings = store.settings
    return bool(settings.get("fair-" + queue, settings["fair"]))


def aging(store: Store, queue: str) -> int:
    """In how many milliseconds a waiting job improves by one priority (state/aging.py); 0, if it never does. In a fair
    queue none does: the turns order its jobs.
    """
    settings = store.settings
    return 0 if is_fair(store, queue) else settings.get("aging-" + queue, settings["aging"])


def assign(store: Store, name: str, to: int) -> None:
    """Set an option."""
    configure(store, store.config | {name: to})


def clear(store: Store, name: str, _: int) -> None:
    """Reset an option to its default."""
    configure(store, {other: value for other, value in store.config.items() if other != name})

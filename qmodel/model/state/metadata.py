"""Metadata: texts by key, shared by all jobs of a klass. Empty dictionaries are not kept."""

from __future__ import annotations

import re

from qmodel.model.state.store import Store

MOST = 1000

_WHOLE = re.compile("0|-?[1-9][0-9]{0,13}")


def all(store: Store, klass: str) -> list[tuple[str, str]]:
    """The keys and texts of a klass, by key."""
    return sorted(store.metadata.get(klass, {}).items())


def get(store: Store, klass: str, key: str) -> str | None:
    """The text under a key, or None."""
    return store.metadata.get(klass, {}).get(key)


def whole(text: str) -> int | None:
    """Read a text as a whole number of at most 14 digits, or None."""
    return int(text) if _WHOLE.fullmatch(text) else None


def is_full(store: Store, klass: str) -> bool:
    """Whether a klass has as many keys as it may."""
    return len(store.metadata.get(klass, {})) >= MOST


def assign(store: Store, klass: str, key: str, value: str) -> None:
    """Set a text."""
    store.metadata.setdefault(klass, {})[key] = value


def drop(store: Store, klass: str, key: str) -> None:
    """Delete an existing text."""
    del store.metadata[klass][key]
    if not store.metadata[klass]:
        del store.metadata[klass]

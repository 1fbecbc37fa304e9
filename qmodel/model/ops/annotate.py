"""Metadata of a klass: texts by key, shared by all its jobs."""

from __future__ import annotations

from qmodel.contract.operations import MetadataGet, MetadataIncrement, MetadataSet, MetadataUnset
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import Entry
from qmodel.model.state import metadata
from qmodel.model.state.store import Store, emit


def metadata_get(store: Store, now: int, op: MetadataGet) -> tuple[Entry, ...]:
    """Show the metadata of a klass."""
    return tuple(Entry(key, value) for key, value in metadata.all(store, op.klass))


def _check_room(store: Store, klass: str, known: str | None) -> None:
    """Refuse a new key if the klass has as many as it may."""
    if known is None and metadata.is_full(store, klass):
        raise refuse("LIMIT_REACHED", "keys of klass " + klass, metadata.MOST)


def metadata_set(store: Store, now: int, op: MetadataSet) -> int:
    """Set a text of a klass."""
    known = metadata.get(store, op.klass, op.key)
    _check_room(store, op.klass, known)

    if known != op.value:
        metadata.assign(store, op.klass, op.key, op.value)
        emit(store, now, "noted", op.klass, op.key)
    return 1 if known is None else 0


def metadata_increment(store: Store, now: int, op: MetadataIncrement) -> int:
    """Add to a text that is a whole number."""
    known = metadata.get(store, op.klass, op.key)
    before = metadata.whole("0" if known is None else known)
    if before is None or metadata.whole(str(before + op.by)) is None:
        raise refuse("NOT_WHOLE", op.klass, op.key)
    _check_room(store, op.klass, known)

    metadata.assign(store, op.klass, op.key, str(before + op.by))
    emit(store, now, "noted", op.klass, op.key)
    return before + op.by


def metadata_unset(store: Store, now: int, op: MetadataUnset) -> int:
    """Delete a key of a klass."""
    if metadata.get(store, op.klass, op.key) is None:
        return 0

    metadata.drop(store, op.klass, op.key)
    emit(store, now, "unnoted", op.klass, op.key)
    return 1

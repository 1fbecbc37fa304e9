"""Convert events as a server sends them to columns: a whole page at once, without an object for each event.

A text is `<at> TAB <kind> TAB <fact> TAB ...`. Arrow splits all texts of a batch into one long list of words. The
offset of an event's first word and its kind say for each column which word of the event it is, if any.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from qmodel.contract.events import BETWEEN_TAGS, EVENTS, OPTIONAL
from qmodel.errors import QmodelError
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.schema import FACT_OF, MOMENTS, moment

LEFT_OUT = frozenset(name for kind, count in OPTIONAL.items() for name in EVENTS[kind][-count:])
"""The facts that an event may lack."""


class UnknownEvent(QmodelError):
    """Raised for an event that this catalogue does not have: it was written by another version of qmodel."""

    def __init__(self, seq: int, text: str) -> None:
        super().__init__(seq, text)
        self.seq = seq
        self.text = text

    def __str__(self) -> str:
        return f"Event {self.seq} is not in this catalogue: {self.text[:100]!r}. Read it with the qmodel that wrote it."


def batch_of(seqs: Sequence[int], epochs: Sequence[int], texts: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Make a batch of events from their epochs and texts, with the columns of a schema. Raises UnknownEvent."""
    text = pa.array(texts, pa.binary()).cast(pa.string())
    words = pc.split_pattern(text, "\t")
    starts, values = words.offsets[:-1], words.values
    kinds = _kinds(seqs, text, words)
    names = kinds.dictionary.to_pylist()
    found = {
        "seq": pa.array(seqs, pa.int64()),
        "happened_at": values.take(starts),
        "event": kinds.cast(pa.string()),
        "epoch": pa.array(epochs, pa.int64()),
    }
    for name in schema.names:
        fact = FACT_OF.get(name, name)
        places = [EVENTS[kind].index(fact) + 2 if fact in EVENTS[kind] else None for kind in names]
        if name not in found and any(places):
            place = pa.array(places, pa.int32()).take(kinds.indices)
            if fact in LEFT_OUT:
                place = pc.if_else(pc.greater(pc.list_value_length(words), place), place, None)
            found[name] = values.take(pc.add(starts, place))
    if "tags" in found:
        found["tags"] = pc.split_pattern(found["tags"], BETWEEN_TAGS)
    arrays = [
        _cast(found[field.name], field) if field.name in found else pa.nulls(len(seqs), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(values: pa.Array, field: pa.Field) -> pa.Array:
    return moment(values, field.type) if field.name in MOMENTS else values.cast(field.type)


def _kinds(seqs: Sequence[int], text: pa.Array, words: pa.Array) -> pa.Array:
    """Find the kind of each event, and check that it has as many facts as the catalogue says."""
    counts = pc.list_value_length(words)
    has = pc.greater_equal(counts, 2)
    second = words.values.take(pc.add(words.offsets[:-1], pc.cast(has, pa.int32())))
    kinds = second.dictionary_encode()
    names = kinds.dictionary.to_pylist()
    most = [len(EVENTS[kind]) + 2 if kind in EVENTS else None for kind in names]
    least = [None if one is None else one - OPTIONAL.get(kind, 0) for one, kind in zip(most, names, strict=True)]
    at_least = pc.greater_equal(counts, pa.array(least, pa.int32()).take(kinds.indices))
    at_most = pc.less_equal(counts, pa.array(most, pa.int32()).take(kinds.indices))
    right = pc.and_(at_least, at_most).fill_null(False)
    if not pc.all(right, min_count=0).as_py():
        bad = right.index(False).as_py()
        raise UnknownEvent(seqs[bad], text[bad].as_py())
    return kinds

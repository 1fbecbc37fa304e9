"""Turn rows into jobs: each row is a put that may be sent again.

A distributed write sends some rows more than once: a task is retried, runs twice at the same time, or the whole write
starts again. So the id of a job depends on its row only, never on a clock or on chance.

- A column `jid` has the id; or
- `keys` name the columns that identify a row: the id is a digest of the run, the queue, the job type, and the names and
  values of these columns; or
- the id is a digest of the run, the queue, the job type, the whole row, its part (partition), and the number of equal
  rows before it in that part. The order of the rows does not matter, but a part must have the same rows when it is read
  again.

So an invoice 17 in one queue and a customer 17 in another are two jobs. A job that exists is not put again (`put_new`),
whatever its state. That holds as long as the job is kept. Sub-requests of a request (`qmodel.model.state.requests`) are
remembered longer, by their request, so only the request and the columns make their ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from math import isfinite
from typing import Any, NamedTuple

from qmodel.client.convert import encode
from qmodel.contract.operations import CATALOGUE, Argument, Put
from qmodel.pipeline.arrow import pa

COLUMNS: dict[str, Argument] = {one.name: one for one in CATALOGUE["put"].arguments if one.name != "request"}
"""The columns that rows may have: the arguments of a put."""

NOT_IN_REQUESTS = ("queue", "priority", "ordered", "unique", "unique_mode", "unique_ms", "unique_max_ms")
"""Columns that a sub-request takes from its request, or cannot have."""


TOGETHER = 500
"""The number of rows that are turned into jobs at once."""


class Writing(NamedTuple):
    """Say how rows become jobs.

    `run` names the write and is part of generated ids. `queue` and `klass` apply to rows that have no such column.
    `keys` are the columns that ids are made from. `request` is the request that the jobs belong to.
    """

    run: str = ""
    queue: str = ""
    klass: str = ""
    keys: tuple[str, ...] = ()
    request: str = ""
    are_digests: bool = False  # no row has a column `jid`


# ---- before the first row: the checks that may refuse


def check(schema: pa.Schema, what: Writing) -> None:
    """Refuse columns that a put does not have, that are missing, or that have a wrong type. Raises ValueError."""
    _check_ids(schema, what)
    for name in schema.names:
        if name not in COLUMNS and name not in what.keys:
            raise ValueError(
                f"A job has no column {name!r}. Drop it, put it into `data`, or name it in idColumns. "
                f"The columns are {', '.join(COLUMNS)}."
            )
    for name in ("queue", "klass"):
        if name not in schema.names and not getattr(what, name):
            raise ValueError(f'Rows need a column {name!r}, or say option("{name}", ...) for all of them.')
    for name in NOT_IN_REQUESTS:
        if what.request and name in schema.names:
            raise ValueError(f"A sub-request has no {name!r} of its own: drop the column, or write without a request.")
    for name, argument in COLUMNS.items():
        if name in schema.names:
            _check_type(name, argument, schema.field(name).type)


def _check_ids(schema: pa.Schema, what: Writing) -> None:
    for name in what.keys:
        if name not in schema.names:
            raise ValueError(f"idColumns has {name!r}, and the rows have {', '.join(schema.names) or 'no columns'}.")
        if pa.types.is_nested(schema.field(name).type):
            _plain(schema.field(name).type, name)
    if what.keys and "jid" in schema.names and "jid" not in what.keys:
        raise ValueError("The rows have a column 'jid' and idColumns is given as well: use one of them.")


WANTED: dict[str, tuple[str, Callable[[pa.DataType], bool]]] = {
    "whole": ("whole numbers", pa.types.is_integer),
    "flag": ("true or false", pa.types.is_boolean),
    "list": ("a list of texts", lambda type: pa.types.is_list(type) and _is_text(type.value_type)),
}


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _check_type(name: str, argument: Argument, type: pa.DataType) -> None:
    if name == "data":
        _plain(type)
        return
    expected, fits = WANTED.get(argument.kind.wire, ("text", _is_text))
    if name == "at":
        expected += " (milliseconds since 1970) or timestamps"
    if not fits(type) and not (name == "at" and pa.types.is_timestamp(type)):
        raise ValueError(f"The column {name!r} must contain {expected}, not {type}.")


# ---- data


def _plain(type: pa.DataType, path: str = "data") -> Callable[[Any], Any]:
    """Find the function that turns values of this type into JSON values. Raises ValueError for other types.

    `path` names the value in messages. A moment with a time zone is written in UTC, so that its text does not depend on
    the session.
    """
    types = pa.types
    if types.is_map(type):
        name, inner = _plain(type.key_type, f"a key of {path}"), _plain(type.item_type, f"{path}.*")
        return lambda value: {str(name(key)): _unless_none(inner, one) for key, one in value}
    if types.is_struct(type):
        fields = {field.name: _plain(field.type, f"{path}.{field.name}") for field in type}
        return lambda value: {name: _unless_none(fields[name], one) for name, one in value.items()}
    if types.is_list(type) or types.is_large_list(type):
        item = _plain(type.value_type, f"{path}[]")
        return lambda value: [_unless_none(item, one) for one in value]
    if types.is_timestamp(type) and type.tz:
        return lambda value: value.astimezone(UTC).isoformat()
    if types.is_date(type) or types.is_timestamp(type) or types.is_time(type):
        return lambda value: value.isoformat()
    if types.is_decimal(type):
        return str
    if types.is_floating(type):
        return lambda value: _finite(value, path)
    if _is_text(type) or any(one(type) for one in (types.is_integer, types.is_boolean, types.is_null)):
        return lambda value: value
    raise ValueError(f"{path} has the type {type}, which JSON does not have: cast it to text first.")


def _finite(value: float, path: str) -> float:
    """Give a number that JSON has. Raises ValueError for others."""
    if not isfinite(value):
        raise ValueError(f"{path} is {value}, which JSON does not have: replace it, for example with null.")
    return value


def _unless_none(make: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else make(value)


def _milliseconds(column: pa.Array) -> list[int | None]:
    """Give moments as a put has them."""
    values = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
    return [None if one is None else one // 1000 for one in values]


def _texts(column: pa.Array) -> list[str]:
    """Encode data for storage: texts are JSON already and stay as they are, everything else is encoded as JSON."""
    values = column.to_pylist()
    if _is_text(column.type):
        return ["null" if value is None else value for value in values]
    make = _plain(column.type)
    return [encode(_unless_none(make, value)) for value in values]


# ---- rows


def digest(*parts: object) -> str:
    """Make a text of 32 characters from values: equal values give equal texts, others practically never do."""
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Rows:
    """Turns the rows of one part (a partition) into jobs, from its first row on."""

    def __init__(self, schema: pa.Schema, what: Writing, part: int = 0) -> None:
        self.what = what
        self._part = part
        self._alike: dict[str, int] = {}
        self._named = [name for name in schema.names if name in COLUMNS and name not in ("jid", "queue", "klass")]

    def puts(self, batch: pa.RecordBatch) -> Iterator[Put]:
        """Yield the jobs of a batch in its order, made on demand so that they can be sent meanwhile.

        Raises ValueError for a row that lacks a required value.
        """
        for start in range(0, batch.num_rows, TOGETHER):
            yield from self._puts(batch.slice(start, TOGETHER))

    def _puts(self, batch: pa.RecordBatch) -> list[Put]:
        jids = self._jids(batch)
        queues, klasses = texts_of(batch, "queue", self.what), texts_of(batch, "klass", self.what)
        found = []
        for jid, queue, klass, given in zip(jids, queues, klasses, self._given(batch), strict=True):
            if not jid or not queue or not klass:
                raise ValueError(f"A row has no {'jid' if not jid else 'queue' if not queue else 'klass'} ({jid}).")
            found.append(Put(queue, jid, klass, given.pop("data", "null"), **given))
        return found

    def _given(self, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        """Give the arguments of a put for each row, by name."""
        columns: list[Sequence[Any]] = []
        for name in self._named:
            column = batch.column(name)
            if name == "data":
                columns.append(_texts(column))
            elif COLUMNS[name].kind.wire == "list":
                columns.append([None if one is None else tuple(one) for one in column.to_pylist()])
            elif pa.types.is_timestamp(column.type):
                columns.append(_milliseconds(column))
            else:
                columns.append(column.to_pylist())
        for row in zip(*columns, strict=True) if columns else ((),) * batch.num_rows:
            yield {name: one for name, one in zip(self._named, row, strict=True) if one is not None}

    def _jids(self, batch: pa.RecordBatch) -> list[str]:
        what = self.what
        if "jid" in batch.schema.names and not what.keys:
            names: list[str] = batch.column("jid").to_pylist()
        elif what.keys:
            names = keyed(batch, what)
        else:
            found = digests(batch, batch.schema.names, what, str(self._part))
            names = [self._nth(name) for name in found]
        return [f"{what.request}:{name}" if name else name for name in names] if what.request else names

    def _nth(self, row: str) -> str:
        """Make the id of a row that may have equal rows before it."""
        before = self._alike[row] = self._alike.get(row, -1) + 1
        return f"{row}-{before}" if before else row


def keyed(batch: pa.RecordBatch, what: Writing) -> list[str]:
    """Make the digest of the keys for each row. Equal keys in one run, queue and job type are the same job."""
    return digests(batch, what.keys, what)


def digests(batch: pa.RecordBatch, names: Sequence[str], what: Writing, part: str = "") -> list[str]:
    """Make the digest of some columns for each row, with all else that makes two jobs different."""
    columns = [_comparable(batch.column(name)) for name in names]
    rows = zip(*columns, strict=True) if columns else ((),) * batch.num_rows
    named = tuple(names)
    if what.request:
        return [digest(what.run, part, named, row) for row in rows]
    queues, klasses = texts_of(batch, "queue", what), texts_of(batch, "klass", what)
    return [
        digest(what.run, queue, klass, part, named, row)
        for queue, klass, row in zip(queues, klasses, rows, strict=True)
    ]


def texts_of(batch: pa.RecordBatch, name: str, what: Writing) -> Sequence[str]:
    """Give the queue or the job type of each row: its column, or the option for all rows."""
    if name in batch.schema.names:
        values: list[str] = batch.column(name).to_pylist()
        return values
    return [getattr(what, name)] * batch.num_rows


def _comparable(column: pa.Array) -> list[Any]:
    """Give comparable values: a moment becomes a number, or a text within other values, in every time zone the same."""
    values: list[Any] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    if pa.types.is_nested(column.type):
        make = _plain(column.type)
        return [_unless_none(make, value) for value in values]
    return values

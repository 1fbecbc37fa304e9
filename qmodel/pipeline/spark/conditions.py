"""Conditions of a query that a reader evaluates itself, before rows are converted for Spark: Spark checks all again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import reduce
from operator import and_, ge, gt, le, lt
from typing import Any

import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.schema import MOMENT

COMPARED: dict[type[Filter], Callable[[Any, Any], Any]] = {
    GreaterThan: gt,
    GreaterThanOrEqual: ge,
    LessThan: lt,
    LessThanOrEqual: le,
}

WITHOUT_REST: dict[Any, Callable[[Any, Any], Any]] = {lt: le, ge: gt}
"""What a comparison with a moment becomes if the rest of a millisecond is cut off, because the column has none."""


def condition(filters: Iterable[Filter], schema: pa.Schema) -> Any:
    """Give the conditions on the columns of a schema as one expression of Arrow; None if there are none.

    Conditions of other kinds are left to Spark: the expression keeps every row that fits all conditions.
    """
    found = [one for one in (_one(given, schema) for given in filters) if one is not None]
    return reduce(and_, found) if found else None


def bounds(filters: Iterable[Filter], column: str) -> tuple[Any, Any]:
    """Give the least and the greatest value that conditions allow for a column, where they say one."""
    low, high = list[Any](), list[Any]()
    for one in filters:
        value: Any = getattr(one, "value", None)
        if value is None or getattr(one, "attribute", None) != (column,):
            continue
        low += [value] if isinstance(one, EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual) else []
        high += [value] if isinstance(one, EqualTo | EqualNullSafe | LessThanOrEqual) else []
        if isinstance(one, LessThan):  # midnight is of the day before
            high.append(value - timedelta(microseconds=1) if isinstance(value, datetime) else value)
        given = [one for one in value if one is not None] if isinstance(one, In) else []
        low += [min(given)] if given else []
        high += [max(given)] if given else []
    return max(low, default=None), min(high, default=None)


def _one(given: Filter, schema: pa.Schema) -> Any:
    attribute: tuple[str, ...] = getattr(given, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in schema.names:
        return None
    (name,) = attribute
    field, of = pc.field(name), schema.field(name).type
    if isinstance(given, IsNotNull):
        return field.is_valid()
    value = getattr(given, "value", None)
    if value is None:
        return None
    if isinstance(given, In):
        return field.isin(pa.array([_typed(one, of).as_py() for one in value if one is not None], of))
    if isinstance(given, StringStartsWith):
        return pc.starts_with(field, value)
    if isinstance(given, EqualTo | EqualNullSafe):
        return field == _typed(value, of)
    compared = COMPARED.get(type(given))
    if compared in WITHOUT_REST and of == MOMENT and value.microsecond % 1000:
        compared = WITHOUT_REST[compared]
    return None if compared is None else compared(field, _typed(value, of))


def _typed(value: Any, of: pa.DataType) -> pa.Scalar:
    """Give a value of a condition in the type of its column: a moment without a zone is in UTC."""
    if isinstance(value, datetime) and pa.types.is_timestamp(of):
        return pa.scalar(value, pa.timestamp("us", "UTC")).cast(of, safe=False)
    return pa.scalar(value, of)

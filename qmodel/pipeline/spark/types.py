"""The Spark types that rows may have: each is written as JSON, or refused by its name before a row is written."""

from __future__ import annotations

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from qmodel.pipeline.arrow import pa

WRITTEN = (
    "string", "char", "varchar", "boolean", "byte", "tinyint", "short", "smallint", "integer", "int", "long", "bigint",
    "float", "double", "decimal", "date", "time", "timestamp", "timestamp_ntz", "void", "array", "map", "struct",
)  # fmt: skip
"""The names of the types that are written."""

INSTEAD = {
    "binary": "base64({0}), or cast({0} as string)",
    "variant": "to_json({0})",
    "geometry": "hex(st_asbinary({0}))",
    "geography": "hex(st_asbinary({0}))",
}
"""What to write instead of a type that JSON does not have; of others, their text."""


def arrow_of(schema: StructType, keys: tuple[str, ...] = ()) -> pa.Schema:
    """Give the Arrow types of rows. Raises ValueError for a type that cannot be written, by its path and name.

    Keys may be binary, because they are only compared.
    """
    fields = [
        field
        if field.name in keys and field.dataType.typeName() == "binary"
        else StructField(field.name, _arrow(field.dataType, field.name), field.nullable)
        for field in schema.fields
    ]
    found: pa.Schema = to_arrow_schema(StructType(fields))
    return found


MICRO: pa.DataType = pa.timestamp("us", "UTC")
"""The only type of Arrow that Spark reads as a TIMESTAMP."""


def read_of(schema: StructType) -> pa.Schema:
    """Give the Arrow types of columns that Spark reads."""
    asked = arrow_of(schema)
    fields = [
        field.with_type(MICRO) if of.dataType.typeName() == "timestamp" else field
        for field, of in zip(asked, schema.fields, strict=True)
    ]
    return pa.schema(fields)


def micro(known: pa.Schema) -> pa.Schema:
    """Give the columns of a table as Spark reads them: its timestamps count microseconds."""
    return pa.schema([one.with_type(MICRO) if pa.types.is_timestamp(one.type) else one for one in known])


def _arrow(of: DataType, path: str) -> DataType:
    """Give a type that Arrow has for every session: moments without their zone, which only changes their display."""
    name = of.typeName().partition("(")[0].split(" ")[0]
    if isinstance(of, StructType):
        return StructType([StructField(one.name, _arrow(one.dataType, f"{path}.{one.name}")) for one in of.fields])
    if isinstance(of, ArrayType):
        return ArrayType(_arrow(of.elementType, f"{path}[]"))
    if isinstance(of, MapType):
        return MapType(_arrow(of.keyType, f"a key of {path}"), _arrow(of.valueType, f"{path}.*"))
    if name not in WRITTEN:
        instead = INSTEAD.get(name, "cast({0} as string)").format(path)
        raise ValueError(f"{path} has the Spark type {of.simpleString()}, which JSON does not have. Write {instead}.")
    if name in ("char", "varchar"):
        return StringType()
    return TimestampNTZType() if name == "timestamp" else of

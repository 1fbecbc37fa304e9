"""Metadata of a klass."""

from __future__ import annotations

from qmodel.contract.arguments import Amount, Klass, MetadataKey, MetadataValue, RequestId
from qmodel.contract.operations.spec import Operation, operation


@operation("entries", "read")
class MetadataGet(Operation):
    """Show the metadata of a klass, by key."""

    klass: Klass


@operation("number", "memo", "LIMIT_REACHED", "noted")
class MetadataSet(Operation):
    """Set a metadata text of a klass, shared by all its jobs; replies 1 if the key is new, or 0. At most 1000 keys."""

    klass: Klass
    key: MetadataKey
    value: MetadataValue
    request: RequestId = ""


@operation("number", "memo", "LIMIT_REACHED NOT_WHOLE", "noted")
class MetadataIncrement(Operation):
    """Add to a metadata text that is a whole number, 0 if there is none; replies the sum."""

    klass: Klass
    key: MetadataKey
    by: Amount = 1
    request: RequestId = ""


@operation("number", "memo", "", "unnoted")
class MetadataUnset(Operation):
    """Delete a metadata key of a klass; replies 1, or 0 if there was none."""

    klass: Klass
    key: MetadataKey
    request: RequestId = ""

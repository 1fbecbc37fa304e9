"""Metadata of a klass."""

from __future__ import annotations

from qmodel.contract.arguments import Amount, Klass, MetadataKey, MetadataValue, RequestId
from qmodel.contract.operations.spec import Operation, operation


@operation("entries", "read")
class MetadataGet(Operation):
    """Show what was noted for a klass, by key."""

    klass: Klass


@operation("number", "memo", "LIMIT_REACHED", "noted")
class MetadataSet(Operation):
    """Note a text for a klass, which all its jobs share; replies 1 if the key is new, or 0. At most 1000 keys."""

    klass: Klass
    key: MetadataKey
    value: MetadataValue
    request: RequestId = ""


@operation("number", "memo", "LIMIT_REACHED NOT_WHOLE", "noted")
class MetadataIncrement(Operation):
    """Add to a whole number that is noted for a klass, 0 where nothing is; replies the sum."""

    klass: Klass
    key: MetadataKey
    by: Amount = 1
    request: RequestId = ""


@operation("number", "memo", "", "unnoted")
class MetadataUnset(Operation):
    """Forget what is noted for a klass under a key; replies 1, or 0 if nothing was."""

    klass: Klass
    key: MetadataKey
    request: RequestId = ""

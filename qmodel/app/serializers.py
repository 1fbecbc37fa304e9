"""How data and results become text, and text becomes data: JSON, unless an app brings something else.

A serializer has `dumps(value) -> str` and `loads(text) -> value`, where a value is what JSON has: values of other types
have been converted before, and are converted after it (`values.py`). So one that encrypts, or writes something shorter
than JSON, is a dozen lines. Nothing here, and nothing that may be chosen here, runs code that stands in the data.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any, Final, Protocol

from qmodel.client.convert import encode
from qmodel.errors import DataError

MARK: Final = "$zlib"
"""The name under which compressed data stand: still a JSON object, which any program can pass on."""

LARGEST: Final = 64 << 20
"""How long compressed data may be when they are decompressed: a few bytes could be gigabytes."""


class Serializer(Protocol):
    """What makes text of JSON's values, and the reverse."""

    def dumps(self, value: object) -> str: ...

    def loads(self, text: str) -> Any: ...


class Json:
    """JSON, the default; what is longer than `compress` characters is compressed. Compressed data are always read."""

    def __init__(self, compress: int | None = None) -> None:
        self.compress = compress

    def dumps(self, value: object) -> str:
        """The text that is stored."""
        text = encode(value)
        if self.compress is None or len(text) <= self.compress:
            return text
        packed = base64.b64encode(zlib.compress(text.encode())).decode()
        return f'{{"{MARK}":"{packed}"}}'

    def loads(self, text: str) -> Any:
        """The value of a text; of none, None."""
        if not text:
            return None
        try:
            return unpacked(json.loads(text))
        except ValueError as error:
            raise DataError(f"These data are not JSON: {error}.") from error


def unpacked(value: Any) -> Any:
    """A value as it was before it was compressed, if it was."""
    if type(value) is not dict or len(value) != 1 or MARK not in value:
        return value
    try:
        reader = zlib.decompressobj()
        text = reader.decompress(base64.b64decode(value[MARK], validate=True), LARGEST)
    except (TypeError, binascii.Error, zlib.error) as error:
        raise ValueError(f"they say that they are compressed, and are not ({error})") from error
    if not reader.eof:
        raise ValueError(f"decompressed they are longer than {LARGEST} bytes, or cut off")
    return json.loads(text)

"""Serializers: data and results to text and back. The default is JSON; an app may have its own.

A serializer has `dumps(value) -> str` and `loads(text) -> value`. A value consists of JSON's types: values of other
types are converted before and after (`values.py`). So a serializer that encrypts, or writes a more compact form, takes
a dozen lines. No serializer here runs code from the data.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any, Final, Protocol

from qmodel.client.convert import decode, encode
from qmodel.errors import DataError

MARK: Final = "$zlib"
"""The key of compressed data. They are still a JSON object, which any program can pass on."""

LARGEST: Final = 64 << 20
"""The longest decompressed data, in bytes: a few compressed bytes could be gigabytes."""


class Serializer(Protocol):
    """Converts values of JSON's types to text, and back."""

    def dumps(self, value: object) -> str: ...

    def loads(self, text: str) -> Any: ...


class Json:
    """JSON, the default. Texts longer than `compress` characters are compressed. Compressed data can always be read."""

    def __init__(self, compress: int | None = None) -> None:
        self.compress = compress

    def dumps(self, value: object) -> str:
        """Encode a value as the stored text. Raises DataError for one that a reader would take for compressed data."""
        if type(value) is dict and len(value) == 1 and MARK in value:
            raise DataError(f"A value with nothing but {MARK} could not be read again. Give it another field as well.")
        text = encode(value)
        if self.compress is None or len(text) <= self.compress:
            return text
        packed = base64.b64encode(zlib.compress(text.encode())).decode()
        return f'{{"{MARK}":"{packed}"}}'

    def loads(self, text: str) -> Any:
        """Decode a value from text; the empty text gives None."""
        if not text:
            return None
        try:
            return unpacked(decode(text))
        except ValueError as error:
            raise DataError(f"These data are not JSON: {error}.") from error


def unpacked(value: Any) -> Any:
    """Decompress a value if it is compressed."""
    if type(value) is not dict or len(value) != 1 or MARK not in value:
        return value
    try:
        reader = zlib.decompressobj()
        text = reader.decompress(base64.b64decode(value[MARK], validate=True), LARGEST)
    except (TypeError, binascii.Error, zlib.error) as error:
        raise ValueError(f"they are marked as compressed, but are not ({error})") from error
    if not reader.eof:
        raise ValueError(f"they are longer than {LARGEST} bytes when decompressed, or truncated")
    return decode(text)

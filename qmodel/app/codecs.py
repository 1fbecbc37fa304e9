"""Codecs: what happens to the text of data and results between the serializer and the server.

    app = App(serializer=Coded(Json(compress=1000), Encrypted(keys), ClaimCheck("s3://shop/claims", above=60_000)))

A codec replaces a text by a JSON object with one field, its mark: {"$aesgcm": "..."}. So any program can pass it on,
and a reader knows what to undo, whatever the order of the codecs is now. Texts without a mark are read as they are:
jobs that were put before a codec was added, or by another program.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from qmodel import runtime
from qmodel.app.serializers import Serializer
from qmodel.contract.redaction import opened, redacted
from qmodel.errors import DataError, not_installed

if TYPE_CHECKING:
    from qmodel.app.base import BaseApp

MOST: Final = 8
"""The most codecs that one text went through: a text that unpacks to itself must end."""

NONCE: Final = 12
"""The bytes of a nonce of AES-GCM. It is drawn at random, so one key is good for some 2**32 texts."""

KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
CLAIM: Final = re.compile(r"\d{4}-\d{2}-\d{2}/[0-9a-f]{64}")


class Codec(Protocol):
    """Replaces a text by another one, and back."""

    mark: str
    """The name of the field that holds the replacement; it begins with `$`."""

    def encode(self, text: str) -> str | None:
        """Give the replacement, or None if the text stays as it is."""

    def decode(self, body: str) -> str:
        """Give the text back. Raises DataError."""


class Coded:
    """A serializer with codecs behind it: the first one gets the text of the serializer, each next one what that made.

    `required` names the marks without which a text is refused: `required=["$aesgcm"]` refuses data that nobody
    encrypted. Raises ValueError for a required mark that no codec has, and for two codecs with one mark.
    """

    def __init__(self, serializer: Serializer, *codecs: Codec, required: tuple[str, ...] | list[str] = ()) -> None:
        self.serializer = serializer
        self.codecs = codecs
        self.required = frozenset(required)
        self._by_mark = {one.mark: one for one in codecs}
        if len(self._by_mark) < len(codecs):
            raise ValueError("Two codecs have the same mark: a reader could not tell their texts apart.")
        if unknown := self.required - self._by_mark.keys():
            raise ValueError(f"No codec has the required mark {min(unknown)}: there are {', '.join(self._by_mark)}.")

    def dumps(self, value: object) -> str:
        """Make the stored text of a value. Raises DataError for one that a reader would take for a codec's."""
        text = self.serializer.dumps(value)
        if (found := self._marked(text)) is not None:
            mark = found[0].mark
            raise DataError(f"A value with nothing but {mark} could not be read again. Give it another field as well.")
        for codec in self.codecs:
            body = codec.encode(text)
            text = text if body is None else json.dumps({codec.mark: body}, separators=(",", ":"))
        return text

    def loads(self, text: str) -> Any:
        """Read a value from its stored text. Raises DataError."""
        return self.serializer.loads(self.plain(text))

    def plain(self, text: str) -> str:
        """Undo the codecs: give the text of the serializer. Raises DataError."""
        missing = self.required
        for _ in range(MOST):
            found = self._marked(text)
            if found is None:
                break
            codec, body = found
            text, missing = codec.decode(body), missing - {codec.mark}
        if text and missing:
            raise DataError(f"These data have no {min(missing)}, which this app requires: another program put them.")
        return text

    def _marked(self, text: str) -> tuple[Codec, str] | None:
        """Find the codec that made a text, and what it made."""
        if not text.startswith('{"$'):
            return None
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return None
        for mark, body in data.items() if len(data) == 1 else ():
            if mark in self._by_mark and isinstance(body, str):
                return self._by_mark[mark], body
        return None


class Encrypted:
    """Encrypts with AES-GCM. `keys` has keys of 16, 24 or 32 bytes by their ids; the first one encrypts, all decrypt.

    To rotate: add the new key behind the first one everywhere, then move it to the front, and remove the old one once
    no job has it. Needs the package `cryptography`. Raises ValueError for a key of another length, or an id that is not
    made of letters, digits, `_` and `-`.
    """

    mark = "$aesgcm"

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise not_installed(error, "Encrypted needs", "cryptography", "codecs") from error
        if not keys or not all(map(KEY_ID.fullmatch, keys)):
            raise ValueError("Encrypted needs keys by ids of letters, digits, _ and -.")
        self._ciphers = {name: AESGCM(key) for name, key in keys.items()}
        self._first = next(iter(keys))

    def encode(self, text: str) -> str | None:
        """Encrypt a text; an empty one, which is no value, stays empty."""
        if not text:
            return None
        nonce = runtime.urandom(NONCE)
        made = nonce + self._ciphers[self._first].encrypt(nonce, text.encode(), self._first.encode())
        return f"{self._first}.{base64.b64encode(made).decode()}"

    def decode(self, body: str) -> str:
        """Decrypt a text. Raises DataError if the key is missing, or the text was changed."""
        from cryptography.exceptions import InvalidTag

        name, _, packed = body.partition(".")
        if name not in self._ciphers:
            raise DataError(f"These data are encrypted with the key {name!r}, which this app does not have.")
        try:
            made = base64.b64decode(packed, validate=True)
            return self._ciphers[name].decrypt(made[:NONCE], made[NONCE:], name.encode()).decode()
        except (InvalidTag, ValueError, binascii.Error) as error:
            raise DataError(f"These data do not decrypt with the key {name!r}: they were changed, or cut.") from error


class ClaimCheck:
    """Stores long texts elsewhere: in a folder, or at any URL of fsspec. The job has only the name of its text.

    `url`: the folder, which all producers and workers reach; `above`: the longest text that stays in the job, in bytes
    of UTF-8. A text is stored before its job is put, under the day and its digest, so a repetition writes the same file
    again. Nothing deletes a text with its job: let the store expire them, or call `clean`. Needs the package `fsspec`.
    """

    mark = "$claim"

    def __init__(self, url: str, above: int = 64_000) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise not_installed(error, "ClaimCheck needs", "fsspec", "codecs") from error
        self._fs, self._root = url_to_fs(url)
        self.url = url
        self.above = above

    def encode(self, text: str) -> str | None:
        """Store a text if it is long; give its name."""
        data = text.encode()
        if len(data) <= self.above:
            return None
        day = datetime.fromtimestamp(runtime.time_ns() / 1e9, UTC).date().isoformat()
        name = f"{day}/{hashlib.sha256(data).hexdigest()}"
        self._write(f"{self._root}/{name}", data)
        return name

    def _write(self, path: str, data: bytes) -> None:
        """Write a file that is whole from the moment it has its name; an object of a store always is."""
        if "file" not in self._fs.protocol:
            self._fs.pipe_file(path, data)
            return
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        beside = f"{path}.{runtime.token_hex(8)}"
        self._fs.pipe_file(beside, data)
        self._fs.mv(beside, path)

    def decode(self, body: str) -> str:
        """Read a text by its name. Raises DataError if it is gone, or is not what was stored."""
        if not CLAIM.fullmatch(body):
            raise DataError(f"{body!r} is not the name of stored data.")
        try:
            data: bytes = self._fs.cat_file(f"{self._root}/{body}")
        except FileNotFoundError as error:
            raise DataError(f"The data of this job were stored as {body} in {self.url}, and are gone.") from error
        if hashlib.sha256(data).hexdigest() != body.rpartition("/")[2]:
            raise DataError(f"{body} in {self.url} is not what was stored: its digest differs.")
        return data.decode()

    def clean(self, days: int) -> int:
        """Delete the texts that were stored more than `days` days ago; give how many days' folders are gone.

        Choose more days than a job waits, runs and is kept. It does not look for jobs that still name a text.
        """
        oldest = datetime.fromtimestamp(runtime.time_ns() / 1e9, UTC).date() - timedelta(days=days)
        if not self._fs.exists(self._root):
            return 0
        names = (str(one).rstrip("/").rpartition("/")[2] for one in self._fs.ls(self._root, detail=False))
        old = [name for name in names if _is_before(name, oldest)]
        for name in old:
            self._fs.rm(f"{self._root}/{name}", recursive=True)
        return len(old)


def _is_before(name: str, oldest: date) -> bool:
    try:
        return date.fromisoformat(name) < oldest
    except ValueError:
        return False  # a file of somebody else


def decoder(app: BaseApp) -> Callable[[str, str], str]:
    """Make a function that shows stored data as people can read them: from a job type and its text to JSON.

    It undoes the codecs that the app has; redacted arguments stay hidden. What cannot be read is given as it is.
    """

    def readable(klass: str, text: str) -> str:
        kind = app.jobs.get(klass)
        coded = kind.serializer if kind is not None else app.serializer
        if not text or not isinstance(coded, Coded):
            return text
        try:
            return redacted(coded.plain(opened(text)))
        except DataError:
            return text

    return readable

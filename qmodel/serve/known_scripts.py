"""Recognise scripts by their text: the library of this version as a script, any version of qless.lua, and the scripts
for one operation that came before it.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Final, NamedTuple

from qmodel.backends import bundle
from qmodel.dialects import qless
from qmodel.serve.resp import encode

_OWN_PREFIX: Final = re.compile(r"qless\.call\('((?:[^'\\\\]|\\\\.)*)', ARGV, (true|false)\)")
"""Where our own qless.lua has its prefix, and whether its moments are simulated; all others use the prefix `ql:`."""
_OWN_DOCUMENT: Final = re.compile(r"qless_documents\.call\('((?:[^'\\\\]|\\\\.)*)', '")
"""Where our own script of one operation has its prefix."""


class Known(NamedTuple):
    """A script that the server recognises: our own library, or one of qless with its prefix; `document` and `operation`
    for a script of one operation.
    """

    prefix: str = ""
    is_qless: bool = False
    is_simulated: bool = False
    is_reqless: bool = False
    document: str = ""
    operation: str = ""


@cache
def _own() -> str:
    return bundle.script()


def known(text: str) -> Known | None:
    """Recognise a script by its text; None if it is another one."""
    if text == _own():
        return Known()
    if not qless.recognise(text):
        return _document(text)
    found = _OWN_PREFIX.search(text) if text.startswith(bundle.QLESS_HEAD) else None
    if found is None:
        return Known("ql:", True, is_reqless="throttle.release" in text)
    return Known(re.sub(r"\\(.)", r"\1", found[1]), True, found[2] == "true", bundle.OF_REQLESS in text)


def _document(text: str) -> Known | None:
    """Recognise a script of one operation."""
    found = qless.recognise_document(text)
    if found is None:
        return None
    own = _OWN_DOCUMENT.search(text) if text.startswith(bundle.DOCUMENT_HEAD) else None
    prefix = "ql:" if own is None else re.sub(r"\\(.)", r"\1", own[1])
    return Known(prefix, True, document=found[0], operation=found[1])


def digest_of(text: str) -> str:
    """Compute the digest by which EVALSHA names a script."""
    return hashlib.sha1(encode(text)).hexdigest()

"""Recognise scripts by their text: the library of this version as a script, and any version of qless.lua."""

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


class Known(NamedTuple):
    """A script that the server recognises: our own library, or qless.lua with its prefix."""

    prefix: str = ""
    is_qless: bool = False
    is_simulated: bool = False
    is_reqless: bool = False


@cache
def _own() -> str:
    return bundle.script()


def known(text: str) -> Known | None:
    """Recognise a script by its text; None if it is another one."""
    if text == _own():
        return Known()
    if not qless.recognise(text):
        return None
    found = _OWN_PREFIX.search(text) if text.startswith(bundle.QLESS_HEAD) else None
    if found is None:
        return Known("ql:", True, is_reqless="ReqlessAPI" in text)
    return Known(re.sub(r"\\(.)", r"\1", found[1]), True, found[2] == "true", bundle.OF_REQLESS in text)


def digest_of(text: str) -> str:
    """Compute the digest by which EVALSHA names a script."""
    return hashlib.sha1(encode(text)).hexdigest()

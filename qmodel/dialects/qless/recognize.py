"""Recognise qless's scripts by their text, in any version and under any file name."""

from __future__ import annotations

import re

from qmodel.backends.bundle import DOCUMENT_HEAD, QLESS_HEAD
from qmodel.dialects.qless.documents import DOCUMENTS

_UNIFIED = re.compile(
    r"^local (?:Qless|Reqless) ?= ?\{|^local (?:QlessAPI|ReqlessAPI) ?= ?\{\}|\b(?:QlessAPI|ReqlessAPI)\[?[.'\"]", re.M
)


def recognise(script: str) -> bool:
    """Whether a script is a version of qless.lua or reqless.lua (one script for all commands), or our replacement."""
    return script.startswith(QLESS_HEAD) or ("KEYS" in script and _UNIFIED.search(script) is not None)


def recognise_document(script: str) -> tuple[str, str] | None:
    """Recognise a script for one operation, ours or one of 2012; give its document and its operation, or None."""
    ours = re.match(rf"{DOCUMENT_HEAD} (\d+) (\w+)", script)
    if ours is not None:
        return ours[1], ours[2]
    theirs = re.search(r"error\('(\w+)\(\)", script)  # each complains about its keys, in its own name
    if theirs is None or "'ql:" not in script:
        return None
    is_early = len(re.findall(r"\.\. ?id\b", script)) > len(re.findall(r"\.\. ?jid\b", script))
    document, operation = "001" if is_early else "000", theirs[1].lower()
    return (document, operation) if operation in DOCUMENTS[document] else None

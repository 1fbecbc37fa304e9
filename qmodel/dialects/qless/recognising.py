"""Which scripts are qless's: told by what stands in them, whatever their version and their file's name."""

from __future__ import annotations

import re

from qmodel.backends.bundle import QLESS_HEAD

_UNIFIED = re.compile(
    r"^local (?:Qless|Reqless) ?= ?\{|^local (?:QlessAPI|ReqlessAPI) ?= ?\{\}|\b(?:QlessAPI|ReqlessAPI)\[?[.'\"]", re.M
)


def recognise(script: str) -> bool:
    """Whether a script is a version of qless.lua or reqless.lua (one script for all commands), or ours in its place."""
    return script.startswith(QLESS_HEAD) or ("KEYS" in script and _UNIFIED.search(script) is not None)

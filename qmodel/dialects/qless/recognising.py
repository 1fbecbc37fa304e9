"""Which scripts are qless's: told by what stands in them, whatever their version and their file's name."""

from __future__ import annotations

import re

_UNIFIED = re.compile(
    r"^local (?:Qless|Reqless) ?= ?\{|^local (?:QlessAPI|ReqlessAPI) ?= ?\{\}|\b(?:QlessAPI|ReqlessAPI)\[?[.'\"]", re.M
)
OURS = "-- qless.lua, made by qmodel"
"""How our own script begins."""


def recognise(script: str) -> bool:
    """Whether a script is a version of qless.lua or reqless.lua (one script for all commands), or ours in its place."""
    return script.startswith(OURS) or ("KEYS" in script and _UNIFIED.search(script) is not None)

"""The layout of a deployment in the options of a URL: `shards=64&single=payments,mails&split=api&relay=1`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from qmodel.contract.routing import MOST_SHARDS, Layout
from qmodel.errors import ConnectError

LAYOUT: Final = ("shards", "single", "split", "relay")
"""The options of a URL that are the layout."""


def read_layout(options: Mapping[str, str]) -> Layout:
    """Read a layout from the options of a URL. Raises ConnectError if they are bad."""
    shards, others = options.get("shards", ""), sorted(options.keys() - {"shards"})
    if others and not shards:
        raise ConnectError(
            f"The URL has {', '.join(others)}, but not how many shards there are.",
            "Write shards=64 beside it, for example; or leave it out if the deployment exists.",
        )
    if not re.fullmatch("[0-9]{1,9}", shards) or not 1 <= int(shards) <= MOST_SHARDS or int(shards) & (int(shards) - 1):
        raise ConnectError(
            f"A deployment cannot have {shards[:20] or 'no'} shards.", f"Write a power of two, from 1 to {MOST_SHARDS}."
        )
    single, split = (frozenset(filter(None, options.get(name, "").split(","))) for name in ("single", "split"))
    relay = options.get("relay", "")
    if relay not in ("", "0", "1"):
        raise ConnectError(f"relay={relay} says nothing.", "Write relay=1, or leave it out.")
    return Layout(int(shards), single, split, relay == "1")


def written(layout: Layout | None) -> str:
    """Write a layout as it stands in a URL."""
    if layout is None:
        return "no shards"
    given = (("shards", str(layout.shards)), ("single", ",".join(sorted(layout.single))),
             ("split", ",".join(sorted(layout.split))), ("relay", "1" * layout.relay))  # fmt: skip
    return "&".join(f"{name}={value}" for name, value in given if value)


def differs(what: str, there: Layout | None) -> ConnectError:
    """Make the error for a URL with another layout than that of the deployment."""
    return ConnectError(
        f"{what} exists already, with another layout: {written(there)}.",
        "Open it with the same options, or without any.",
    )

"""Where jobs with made-up ids belong in a deployment.

A job is at home where its id leads. If the caller gives no id, the client makes one up that leads to the other names of
the job: its `unique`, `ordered` and `throttles`, and the jobs that it depends on. Jobs without such names go to the
shards in turn. All that are made before one `put_many` go to one shard, because one step puts them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from qmodel import runtime
from qmodel.contract.operations import Put
from qmodel.contract.routing import Layout, shard_tag, tag

_VISIBLE = re.compile(r"[!-z|~]{1,94}")
"""A tag that may be a part of a job's id of 128 characters, beside 32 others and the braces."""


class Homes:
    """Gives made-up ids a tag."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._turn = runtime.randbelow(layout.shards)

    def at_home(self, op: Put) -> Put:
        """Add a tag to the made-up id of a job."""
        layout = self._layout
        _, *names = layout.names(op)
        if not names:
            found = shard_tag(self._turn, layout.shards)
        elif _VISIBLE.fullmatch(tag(names[0])):
            found = tag(names[0])
        else:
            found = shard_tag(layout.home(names[0]), layout.shards)
        return replace(op, jid=f"{op.jid}{{{found}}}")

    def home(self, name: str) -> int:
        """Find the shard of a name."""
        return self._layout.home(name)

    def go_on(self) -> None:
        """Let the next jobs go to the next shard."""
        self._turn = (self._turn + 1) % self._layout.shards


def homes_of(backend: Any) -> Homes | None:
    """Give the homes of a backend's deployment; None for a single namespace."""
    layout = getattr(backend, "layout", None)
    return None if layout is None else Homes(layout)

"""The jobs of a flow as they are at one moment, and the edges between them.

The walk starts at one job. It goes up to the jobs that this one waited for, and down to the jobs that still wait. A job
remembers its dependencies if one of its edges has a policy or a name, as all edges of `qmodel.client.flows` have. So
the walk finds all of a flow from its last job.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from qmodel.contract import replies
from qmodel.contract.arguments import MOST, Edge

COLOURS = {
    "scheduled": "#dbe4ff", "depends": "#e9ecef", "waiting": "#fff3bf", "throttled": "#ffe8cc", "running": "#a5d8ff",
    "stalled": "#ffc9c9", "complete": "#b2f2bb", "failed": "#ffa8a8", "gone": "#ffffff",
}  # fmt: skip
"""The fill colour of a job's box by its state. The state is also written in the box."""

DASHES = {"block": "", "fail": "", "ignore": "5 4", "cancel": "2 3"}
"""The dashes of an edge's line by its policy."""


class Node(NamedTuple):
    """A job of a flow. A job that does not exist has the state `gone`."""

    jid: str
    klass: str
    state: str


class FlowJobs:
    """The jobs of a flow, and the edges between them."""

    def __init__(self, jid: str, most: int = MOST) -> None:
        self.nodes: dict[str, Node] = {}
        self.edges: dict[tuple[str, str], Edge] = {}
        self.is_whole = True
        self._most = most
        self._wanted: dict[str, None] = {jid: None}

    def wanted(self) -> tuple[str, ...]:
        """Give the ids of the next jobs to fetch; none when the walk is complete or has reached its limit."""
        room = self._most - len(self.nodes)
        if self._wanted and room <= 0:
            self.is_whole = False
            return ()
        return tuple(self._wanted)[: min(MOST, room)]

    def add(self, wanted: Iterable[str], found: Iterable[replies.Job]) -> None:
        """Add fetched jobs. Those of the wanted ids that were not found are gone."""
        there = {job.jid: job for job in found}
        for jid in wanted:
            del self._wanted[jid]
            job = there.get(jid)
            self.nodes[jid] = Node(jid, job.klass, job.state) if job is not None else Node(jid, "", "gone")
            if job is not None:
                self._link(job)

    def _link(self, job: replies.Job) -> None:
        before = dict.fromkeys(job.depends_on_jobs, Edge("")) | {edge.jid: edge for edge in job.after}
        for jid, edge in before.items():
            self.edges[jid, job.jid] = edge._replace(jid=jid)
        for jid in job.dependents:
            self.edges.setdefault((job.jid, jid), Edge(job.jid))
        for jid in (*before, *job.dependents):
            if jid not in self.nodes:
                self._wanted[jid] = None

    def layers(self) -> list[list[str]]:
        """Group the jobs into layers by the longest path to each; within a layer in the order of finding."""
        depth = self._depths()
        found: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for jid, level in depth.items():
            found[level].append(jid)
        return found

    def known(self) -> dict[tuple[str, str], Edge]:
        """Give the edges between fetched jobs."""
        return {pair: edge for pair, edge in self.edges.items() if pair[0] in self.nodes and pair[1] in self.nodes}

    def _depths(self) -> dict[str, int]:
        before: dict[str, list[str]] = {jid: [] for jid in self.nodes}
        for one, other in self.known():
            before[other].append(one)
        depth: dict[str, int] = {}
        for jid in self.nodes:
            _measure(jid, before, depth)
        return depth


def _measure(start: str, before: dict[str, list[str]], depth: dict[str, int]) -> None:
    """Find the length of the longest path to a job, and to the jobs before it. A flow has no cycle."""
    ahead = [start]
    while ahead:
        jid = ahead[-1]
        left = [one for one in before[jid] if one not in depth]
        if left:
            ahead += left
        else:
            depth[jid] = max((depth[one] + 1 for one in before[jid]), default=0)
            ahead.pop()


def label(edge: Edge) -> str:
    """Write the label of an edge: its name, and its policy unless that is the default."""
    return " ".join(one for one in (edge.name, f"({edge.on_failure})" if edge.on_failure != "block" else "") if one)

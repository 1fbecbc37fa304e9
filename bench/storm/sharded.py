"""The world of a deployment: three masters with a replica each, without lines; slots move and masters die."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import ClassVar

import redis

from bench.storm.line import Network
from bench.storm.load import NARROW
from bench.storm.world import DEADLINE, World, until
from qmodel.backends.redis.shards import prefix_of
from qmodel.client.sync import Client
from qmodel.contract.operations import ConfigSet
from qmodel.contract.routing import Layout
from tests import clusters

NAME, SHARDS = "storm", 8
TIMEOUT_MS = 2000
"""After so long a master that does not answer counts as failed."""


class Sharded(World):
    """A deployment whose clients and workers ask for confirmation, and relay dependencies between shards."""

    kind = "deployment"
    careful: ClassVar[bool] = True

    def __init__(self, program: str, folder: Path, network: Network) -> None:
        super().__init__(program, folder, network, 0)
        folder.mkdir(parents=True)
        self.layout = Layout(SHARDS, single=frozenset({NARROW}), relay=self.careful)
        self.prefixes = [prefix_of(NAME, shard, SHARDS) for shard in range(SHARDS)]
        self.cluster = clusters.Cluster(program, folder, TIMEOUT_MS)
        self.cluster.start()
        with Client(self.spaces[0]) as first:  # before the deployment is created there
            first.execute(ConfigSet("journal", 1))

    def url(self, confirm: bool = False) -> str:
        """The URL for clients."""
        relay = "relay=1" if self.careful else "relay=0"
        options = [f"shards={SHARDS}", f"single={NARROW}", relay, f"deadline={DEADLINE}", "socket_timeout=1"]
        return self.cluster.deployment(NAME, *options, *(["confirm=1"] if confirm else []))

    @property
    def direct(self) -> str:
        """The URL for the storm itself."""
        return self.url()

    @property
    def spaces(self) -> list[str]:
        """The URL of each shard."""
        return [self.cluster.url(prefix) for prefix in self.prefixes]

    def confirms(self, number: int) -> bool:
        """All do, or nobody."""
        return self.careful

    def is_healthy(self) -> bool:
        return self.cluster.is_whole()

    def heal(self) -> None:
        """Wait until all nodes serve, and the replicas have what their masters have."""
        super().heal()
        self.synced()

    def synced(self) -> float:
        """Wait until the replicas have everything from before a moment; give this moment."""
        moment, offsets = time.time(), self.cluster.offsets()
        until(lambda: self.cluster.have(offsets), "the replicas")
        return moment

    def fail_over(self, prefix: str) -> float:
        """Kill the master of a shard; start it again when another node has its place. Give the seconds until then, or
        until that one has a replica, without which nothing is confirmed.
        """
        dead, began = self.cluster.owner(prefix), time.monotonic()
        dead.kill()

        def promoted() -> bool:
            with contextlib.suppress(redis.RedisError):
                now = self.cluster.owner(prefix)
                return now is not dead and self._serves(now)
            return False

        until(promoted, "the promotion of a replica")
        away = time.monotonic() - began
        dead.start()
        if not self.careful:
            return away
        super().heal()
        return time.monotonic() - began

    def _serves(self, node: clusters.Node) -> bool:
        return node.role() == "master" and node.ask("CLUSTER INFO")["cluster_state"] == "ok"

    def close(self) -> None:
        """End all nodes."""
        self.cluster.stop()


class Unconfirmed(Sharded):
    """A deployment in which nobody asks for confirmation, and whose dependencies stay within a shard."""

    kind = "deployment-unconfirmed"
    careful = False

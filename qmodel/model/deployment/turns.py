"""Which shard is asked first for the next job."""

from __future__ import annotations

from zlib import crc32

from qmodel.contract.operations import CompleteAndPop, Operation
from qmodel.contract.routing import ROUTES


class Turns:
    """The shard that is asked first for the next job: each time another one, and the same for the same request id.

    A shard remembers what it has granted under a request id. So a pop that its caller sends again gets the same jobs,
    as long as no shard that had none before has some by then.
    """

    def __init__(self, shards: int, first: int = 0) -> None:
        self._shards = shards
        self._turn = first

    def next(self, op: Operation) -> int:
        """Give the shard that is asked first by an operation; one that takes jobs lets the next one begin further."""
        if request := getattr(op, "request", ""):
            return crc32(request.encode()) % self._shards
        if ROUTES[op.spec.name].otherwise == "turn" or type(op) is CompleteAndPop:
            self._turn = (self._turn + 1) % self._shards
        return self._turn

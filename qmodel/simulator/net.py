"""The network: connections between simulated processes, which delay, cut and lose what they carry.

What TCP promises is kept: bytes arrive in order, once, or not at all. A lost packet is therefore a connection that is
reset, or one that is silent from then on in one direction. Packets that meet a partition arrive when it ends, as the
kernel sends them again, even if the client has given up in the meantime.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from random import Random
from typing import Any, BinaryIO, NamedTuple, Protocol

from qmodel.simulator.baton import Baton, Process

PORT = 6380

EVERYBODY = ""
"""In place of a process that is parted from a server."""


class Weather(NamedTuple):
    """How bad a network is: its usual delay in seconds, the part of slow packets and their delay, the lost part."""

    delay: float = 0.0005
    slow: float = 0.02
    slowest: float = 0.02
    lose: float = 0.0


class End(Protocol):
    """What receives at one end of a connection. None of these methods may block."""

    process: Process

    def receive(self, data: bytes) -> None:
        """Take bytes."""

    def finish(self) -> None:
        """Take the end of what the other side sends."""

    def fail(self, error: OSError) -> None:
        """Take a reset."""


class Link:
    """A connection: two ends, the client's first."""

    def __init__(self, net: Net, number: int, server: Process, port: int) -> None:
        self.net = net
        self.number = number
        self.server = server
        self.port = port
        self.ends: list[End] = []
        self.closed = [False, False]
        self._silent = [False, False]
        self._last = [0.0, 0.0]

    def send(self, side: int, data: bytes) -> None:
        """Carry bytes from one side to the other."""
        net = self.net
        if self.closed[side]:
            return
        net.packets += 1
        if net.chance.random() < net.weather.lose:
            net.lost += 1
            net.faulted()
            if net.chance.random() < 0.5:
                net.baton.at(net.baton.now + net.delay(), self.reset)
                return
            self._silent[side] = True
        self._carry(side, lambda: self._arrive(1 - side, data))

    def close(self, side: int) -> None:
        """Close one side; the other one reads the end after everything that was sent before."""
        if not self.closed[side]:
            self.closed[side] = True
            self._carry(side, lambda: self._finish(1 - side))
            if all(self.closed):
                self.net.links.pop(self.number, None)

    def reset(self) -> None:
        """Break the connection for both sides."""
        for side in (0, 1):
            self._fail(side)
        self.net.links.pop(self.number, None)

    def lose_server(self, says_so: bool) -> None:
        """The server is gone. The client learns of it at once, or only when it sends to the next server."""
        self.closed[1] = True
        if says_so:
            self.net.baton.at(self.net.baton.now + self.net.delay(), self.reset)

    def _carry(self, side: int, arrive: Callable[[], None]) -> None:
        net = self.net
        if self._silent[side]:
            return
        if self.server.dead and side == 0:
            if net.listens(self.port):
                net.baton.at(net.baton.now + net.delay(), self.reset)
            return
        moment = net.baton.now + net.delay()
        moment += net.parted(self.ends[0].process, self.port)
        self._last[side] = moment = max(moment, self._last[side])
        net.baton.at(moment, arrive)

    def _arrive(self, side: int, data: bytes) -> None:
        if self.closed[side]:
            if not self.ends[side].process.dead:
                self._fail(1 - side)
            return
        self.net.note(b"%d%s" % (self.number, b"<>"[side : side + 1]), data)
        self.ends[side].receive(data)

    def _finish(self, side: int) -> None:
        if not self.closed[side]:
            self.ends[side].finish()

    def _fail(self, side: int) -> None:
        if not self.closed[side]:
            self.closed[side] = True
            self.ends[side].fail(ConnectionResetError(104, "Connection reset by peer"))


class Net:
    """All connections, and the servers that listen, each at its port. Its digest tells two runs apart."""

    def __init__(self, baton: Baton, chance: Random, weather: Weather, dump: BinaryIO | None = None) -> None:
        self.baton = baton
        self.chance = chance
        self.weather = weather
        self.links: dict[int, Link] = {}
        self.partitions: dict[tuple[str, int], float] = {}
        """Until when a process, or everybody, is parted from the server at a port; from all of them at port 0."""
        self.faulted_at = 0.0
        self.packets = self.lost = self.connections = 0
        self._listening: dict[int, tuple[Callable[[Link], End], Process]] = {}
        self._dump = dump
        self._digest = hashlib.blake2b(digest_size=16)

    def listens(self, port: int) -> bool:
        """Whether a server listens at a port."""
        return port in self._listening and not self._listening[port][1].dead

    @property
    def digest(self) -> str:
        """The digest of everything that arrived, and when."""
        return self._digest.hexdigest()

    def faulted(self, lasts: float = 0.0) -> None:
        """Note that something failed, and how long that lasts."""
        self.faulted_at = max(self.faulted_at, self.baton.now + lasts)

    def note(self, what: bytes, data: bytes) -> None:
        """Add something that happened to the digest, and to the dump."""
        line = b"%.6f %s %s\n" % (self.baton.now, what, data)
        self._digest.update(line)
        if self._dump is not None:
            self._dump.write(line)

    def delay(self) -> float:
        """Draw the delay of a packet."""
        weather, chance = self.weather, self.chance
        if chance.random() < weather.slow:
            return chance.random() * weather.slowest
        return weather.delay * (0.5 + chance.random())

    def listen(self, accept: Callable[[Link], End], server: Process, port: int = PORT) -> None:
        """Let a server accept connections, in place of an earlier one."""
        self._listening[port] = accept, server
        server.at_death.append(lambda: self._lose_server(server))

    def stop_listening(self, server: Process) -> None:
        """Refuse connections, unless another server listens in place of this one."""
        self._listening = {port: one for port, one in self._listening.items() if one[1] is not server}

    def _lose_server(self, server: Process) -> None:
        self.stop_listening(server)
        says_so = self.chance.random() < 0.7
        for link in list(self.links.values()):
            if link.server is server:
                link.lose_server(says_so)

    def cut_off(self, process: str, seconds: float, port: int = 0) -> None:
        """Part a process from the server at a port; or everybody; or from all servers."""
        self.partitions[process, port] = self.baton.now + seconds
        self.faulted(seconds)

    def cut_all(self) -> None:
        """Reset all connections."""
        self.faulted()
        for link in list(self.links.values()):
            link.reset()

    def parted(self, process: Process, port: int) -> float:
        """Give the seconds that a process is still parted from the server at a port."""
        if not self.partitions:
            return 0.0
        ends = [self.partitions.get(key, 0.0) for key in ((process.name, 0), (process.name, port), (EVERYBODY, port))]
        return max(max(ends) - self.baton.now, 0.0)

    def connect(self, make: Callable[[Link], Any], process: Process, port: int = PORT) -> Any:
        """Make a connection, with `make` for the client's end. Raises ConnectionRefusedError."""
        if not self.listens(port):
            raise ConnectionRefusedError(111, "Connection refused")
        accept, server = self._listening[port]
        self.connections += 1
        link = self.links[self.connections] = Link(self, self.connections, server, port)
        client = make(link)
        link.ends = [client, client]
        link.ends[1] = accept(link)
        process.at_death.append(lambda: link.close(0))
        return client

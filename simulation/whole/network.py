"""The network: machines by name, what is under way between them, and the faults there.

Bytes arrive in order and once, after a delay drawn per direction, split at drawn places. Across a
cut nothing arrives and neither end learns of it; when the cut is repaired, TCP goes on where it
was. If no process listens, a connection is refused. A machine without power answers nothing, and
after its next boot it knows none of the old connections. `digest` covers every arrival, with time
and names.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable
from random import Random
from struct import Struct
from typing import TYPE_CHECKING, cast

from simulation.whole.listening import SimListener
from simulation.whole.lives import CURRENT, Life
from simulation.whole.sockets import (
    AcceptedSocket,
    Address,
    End,
    Item,
    ListeningSocket,
    Watch,
)
from simulation.whole.transport import SimTransport

if TYPE_CHECKING:
    import asyncio
    import socket

    from barnabas.broker.network.listeners import Listener
    from simulation.whole.loop import VirtualLoop

_TIME = Struct(">q")
_FIRST_PORT = 32768
_PIECE_BYTES = 32 * 1024
_TORN = 1 / 16
_LATE = 1 / 256
_LATE_US = 25_000
_RETRANSMIT_US = 200_000
_SYN_RETRY_US = 1_000_000  # doubled each time, as Linux does
_SYN_ATTEMPTS = 7
_OUTSIDE = "outside"
_BACKLOG = 512


class Host:
    """A machine's part in the network."""

    __slots__ = ("ends", "is_up", "listening", "name", "next_port")

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_up = True
        self.listening: dict[int, ListeningSocket] = {}
        self.ends: dict[End, None] = {}
        self.next_port = _FIRST_PORT


class Network:
    """Implements the loop's connections (`loop.Wires`), and the faults."""

    def __init__(self, loop: VirtualLoop, seed: int) -> None:
        self._loop = loop
        self._random = Random(f"network {seed}")
        self._hosts: dict[str, Host] = {}
        self._latency_us: dict[tuple[str, str], int] = {}
        self._cuts: dict[tuple[str, str], int] = {}
        self._slow_us: dict[str, int] = {}
        self._stalled: dict[End, None] = {}
        self._listening: dict[int, ListeningSocket] = {}  # by descriptor
        self._descriptors = 0
        self._digest = hashlib.blake2b(digest_size=16)
        self.arrivals = 0
        self.arrived_bytes = 0
        loop.wires = self

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def host(self, name: str) -> Host:
        """Return the machine with this name, creating it if it does not exist."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = Host(name)
        return host

    def process(self, name: str, host: str = "") -> Life:
        """Start a new process on this machine, or on a machine with the process's name."""
        life = self._loop.life(name, host)
        self.host(life.host)
        life.at_end(lambda: self.process_died(life))
        return life

    # ---- faults ----

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass from source to target until every such cut has been undone."""
        self._cuts[source, target] = self._cuts.get((source, target), 0) + 1

    def mend(self, source: str, target: str, *, resets: float = 0.25) -> None:
        """Undo one `cut`.

        `resets`: the probability that a connection whose bytes could not pass is reset now.
        """
        left = self._cuts.get((source, target), 0) - 1
        if left > 0:
            self._cuts[source, target] = left
            return
        self._cuts.pop((source, target), None)
        for end in list(self._stalled):
            assert end.peer is not None
            if (end.host.name, end.peer.host.name) != (source, target):
                continue
            if self._random.random() < resets:
                self._break(end)
            else:
                self._go_on(end)

    def reset(self, one: str, other: str | None = None) -> None:
        """Break the connections between the two machines, or all connections of one."""
        for end in list(self.host(one).ends):
            if end.peer is not None and other in (None, end.peer.host.name):
                self._break(end)

    def slow(self, name: str, more_us: int) -> None:
        """Delay everything to and from this machine by this much; 0 ends the delay."""
        self._slow_us[name] = more_us

    def is_cut(self, source: Host, target: Host) -> bool:
        return bool(self._cuts) and (source.name, target.name) in self._cuts

    def process_died(self, life: Life) -> None:
        """Close the connections of a process that has died, as its kernel does."""
        host = self.host(life.host)
        for listening in list(host.listening.values()):
            if listening.life is life:
                listening.close()
        for end in list(host.ends):
            if end.life is life:
                end.close()

    def power_off(self, name: str) -> None:
        """Remove the machine's connections without notifying any peer."""
        host = self.host(name)
        host.is_up = False
        for listening in list(host.listening.values()):
            listening.vanish()
            self.unlisten(listening)
        for end in host.ends:
            end.vanish()
        host.ends = {}

    def power_on(self, name: str) -> None:
        """Bring the machine back without its old connections."""
        host = self.host(name)
        host.is_up = True
        for end in list(self._stalled):
            assert end.peer is not None
            if end.peer.host is host and not self.is_cut(end.host, host):
                self._go_on(end)

    def _break(self, end: End) -> None:
        for each in (end, end.peer):
            assert each is not None
            self._stalled.pop(each, None)
            each.flow.clear()
            each.flow_is_stalled = False
            if not each.is_closed:
                each.reset()

    def _go_on(self, end: End) -> None:
        self._stalled.pop(end, None)
        end.flow_is_stalled = False
        at_us = self._loop.now_us + 1 + self._random.randrange(_RETRANSMIT_US)
        end.flow_at_us = max(end.flow_at_us, at_us)
        self._schedule(end, at_us)

    # ---- flows ----

    def send(self, end: End, item: Item) -> None:
        """Send an item; it arrives later, after everything that this end has sent before."""
        random = self._random
        if isinstance(item, bytes):
            while len(item) > 1 and (len(item) > _PIECE_BYTES or random.random() < _TORN):
                size = random.randrange(1, min(len(item), _PIECE_BYTES))
                self._put(end, item[:size])
                item = item[size:]
        self._put(end, item)

    def _put(self, end: End, item: Item) -> None:
        assert end.peer is not None
        at_us = max(end.flow_at_us, self._loop.now_us + self._delay_us(end.host, end.peer.host))
        end.flow_at_us = at_us
        end.flow.append((at_us, item))
        if not (end.flow_is_due or end.flow_is_stalled):
            self._schedule(end, at_us)

    def _schedule(self, end: End, at_us: int) -> None:
        if not end.flow_is_due:
            end.flow_is_due = True
            self._loop.world_at_us(at_us, self._flow, end)

    def _flow(self, end: End) -> None:
        """Deliver the items of this flow that are due."""
        end.flow_is_due = False
        peer, flow, now_us = end.peer, end.flow, self._loop.now_us
        assert peer is not None
        if flow and (self.is_cut(end.host, peer.host) or not peer.host.is_up):
            end.flow_is_stalled = True
            self._stalled[end] = None
            return
        while flow and flow[0][0] <= now_us:
            _, item = flow.popleft()
            self._note(end, item)
            peer.arrived(item)
        if flow:
            self._schedule(end, flow[0][0])

    def _note(self, end: End, item: Item) -> None:
        self.arrivals += 1
        if isinstance(item, bytes):
            self.arrived_bytes += len(item)
        else:
            item = item.name.encode()
        self._digest.update(_TIME.pack(self._loop.now_us) + end.way + item)

    def _delay_us(self, source: Host, target: Host) -> int:
        way = (source.name, target.name)
        random = self._random
        latency_us = self._latency_us.get(way)
        if latency_us is None:
            latency_us = self._latency_us[way] = random.choice((80, 150, 300, 300, 700, 1500))
        delay_us = latency_us + int(latency_us * random.random())
        if random.random() < _LATE:
            delay_us += random.randrange(_LATE_US)
        if self._slow_us:
            delay_us += self._slow_us.get(source.name, 0) + self._slow_us.get(target.name, 0)
        return delay_us

    # ---- connecting ----

    def new_descriptor(self) -> int:
        self._descriptors += 1
        return self._descriptors

    def _here(self) -> Host:
        life = CURRENT.get()
        return self.host(_OUTSIDE if life is None else life.host)

    def bind(self, listener: Listener, backlog: int) -> list[socket.socket]:
        """Implement `broker.machine.Machine.bind` for the process that calls it, on its machine."""
        return [cast("socket.socket", self._bind(listener.port, backlog))]

    def listen(self, factory: Callable[[], asyncio.BaseProtocol], port: int) -> SimListener:
        """Implement `create_server` for the process that calls it, on its machine."""
        return SimListener(self, self._bind(port, _BACKLOG), self._attach, factory)

    def _bind(self, port: int, backlog: int) -> ListeningSocket:
        host = self._here()
        if port in host.listening:
            raise OSError(errno.EADDRINUSE, f"port {port}: address already in use")
        listening = ListeningSocket(self, host, (host.name, port), backlog)
        host.listening[port] = self._listening[listening.fileno()] = listening
        return listening

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Implement `create_connection` from the machine of the process that calls it."""
        here = self._here()
        if host not in self._hosts:
            raise OSError(errno.ENOENT, f"{host}: name or service not known")
        here.next_port += 1
        end = End(self, here, CURRENT.get(), (here.name, here.next_port))
        here.ends[end] = None
        answer: asyncio.Future[None] = self._loop.create_future()
        self._knock(end, (host, port), answer, 0)
        try:
            await answer
        except BaseException:
            end.close()
            raise
        return self._attach(end, factory)

    async def adopt(
        self, factory: Callable[[], asyncio.BaseProtocol], sock: object
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Implement `connect_accepted_socket`."""
        assert isinstance(sock, AcceptedSocket)
        return self._attach(sock.end, factory)

    def _attach(
        self, end: End, factory: Callable[[], asyncio.BaseProtocol]
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        protocol = factory()
        context = self._loop.world if end.life is None else end.life.context()
        transport = SimTransport(self._loop, end, protocol, context)
        transport.begin()
        return transport, protocol

    def _knock(self, end: End, target: Address, answer: asyncio.Future[None], attempt: int) -> None:
        """Ask for a connection, and ask again after a while, as long as no answer arrives."""
        if answer.done() or end.is_closed:
            return
        if attempt == _SYN_ATTEMPTS:
            answer.set_exception(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))
            return
        there, now_us = self.host(target[0]), self._loop.now_us
        if not self.is_cut(end.host, there) and not self.is_cut(there, end.host) and there.is_up:
            arrives_us = now_us + self._delay_us(end.host, there)
            self._loop.world_at_us(arrives_us, self._knocked, end, target, answer)
        again_us = now_us + (_SYN_RETRY_US << attempt)
        self._loop.world_at_us(again_us, self._knock, end, target, answer, attempt + 1)

    def _knocked(self, end: End, target: Address, answer: asyncio.Future[None]) -> None:
        there = self.host(target[0])
        listening = there.listening.get(target[1])
        is_lost = self.is_cut(end.host, there) or self.is_cut(there, end.host) or not there.is_up
        if is_lost or end.is_closed or end.peer is not None:
            return
        back_us = self._loop.now_us + self._delay_us(there, end.host)
        if listening is None:
            error = ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed {target!r}")
            self._loop.world_at_us(back_us, _refuse, answer, error)
        elif not listening.is_full:
            other = End(self, there, listening.life, target)
            there.ends[other] = None
            end.join(other)
            other.join(end)
            listening.knocked(other)
            self._loop.world_at_us(back_us, _accept, answer)

    # ---- listening ----

    def add_reader(self, descriptor: int, callback: Callable[[], object]) -> None:
        """Watch a descriptor; only listening sockets can be watched."""
        listening = self._listening[descriptor]
        life = CURRENT.get()
        context = self._loop.world if life is None else life.context()
        listening.watch = Watch(self._loop, listening, callback, context)
        if listening.is_waiting:
            listening.watch.soon()

    def remove_reader(self, descriptor: int) -> bool:
        listening = self._listening.get(descriptor)
        if listening is None or listening.watch is None:
            return False
        listening.watch = None
        return True

    def unlisten(self, listening: ListeningSocket) -> None:
        """Stop accepting connections."""
        if self._listening.pop(listening.fileno(), None) is not None:
            listening.host.listening.pop(listening.getsockname()[1], None)


def _refuse(answer: asyncio.Future[None], error: OSError) -> None:
    if not answer.done():
        answer.set_exception(error)


def _accept(answer: asyncio.Future[None]) -> None:
    if not answer.done():
        answer.set_result(None)

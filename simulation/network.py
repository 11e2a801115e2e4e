"""Connections between processes, with delays, cuts in one direction, resets, and answers that never
arrive.

A connection delivers in order and once, as TCP does. When it breaks, the requester learns that
there will be no answer, but not whether the request arrived: it may still arrive later, after
requests on the connection that replaced it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from simulation.world import Life, Promise, World

Reply = Callable[[Any], None]

_RETRY_MS = 40
_REFUSED_AFTER_MS = 5
_STALLS_WITHIN = 5  # requests


class Process(Protocol):
    """Anything that takes requests."""

    life: Life

    def receive(self, request: Any, reply: Reply) -> None: ...


class Network:
    """The processes and the cut directions.

    Names are numbers: broker ids, or negative numbers for clients.
    """

    __slots__ = ("_connections", "cuts", "processes", "slow", "world")

    def __init__(self, world: World) -> None:
        self.world = world
        self.processes: dict[int, Process] = {}
        self.cuts: dict[tuple[int, int], int] = {}  # how many faults cut this direction
        self.slow: dict[int, int] = {}  # ms added to everything to and from it
        self._connections: list[Connection] = []

    def connect(
        self, source: int, life: Life, target: int, *, may_be_late: bool = True
    ) -> Connection:
        """Open a connection. `may_be_late`: whether requests that were under way when the
        connection broke may still arrive.
        """
        made = Connection(self, source, life, target)
        made.may_be_late = may_be_late
        self._connections = [each for each in self._connections if not each.life.is_over]
        self._connections.append(made)
        return made

    def cut(self, source: int, target: int) -> None:
        self.cuts[source, target] = self.cuts.get((source, target), 0) + 1

    def heal(self, source: int, target: int) -> None:
        self.cuts[source, target] -= 1

    def reset(self, name: int) -> None:
        """Break every connection to and from this process."""
        for connection in self._connections:
            if name in (connection.source, connection.target):
                connection.break_off()

    def stall(self, source: int, for_ms: int) -> None:
        """Delay one of the next requests of this process on its way, and everything after it.

        Only the present connections are affected, so a client that gives one up and asks again is
        faster.
        """
        for connection in self._connections:
            if connection.source == source:
                connection.stall(self.world.random.randrange(_STALLS_WITHIN), for_ms)

    def gone(self, name: int) -> None:
        """Remove a process that has ended; its peers notice by a reset or a timeout."""
        self.processes.pop(name, None)
        for connection in self._connections:
            if connection.target == name:
                connection.break_off()

    def delay_ms(self, source: int, target: int) -> int:
        if source == target:
            return 0
        delay_ms = 1 + int(self.world.random.random() ** 3 * 12)
        if self.slow:
            delay_ms += self.slow.get(source, 0) + self.slow.get(target, 0)
        return delay_ms


class _Call:
    __slots__ = ("deadline_ms", "promise", "request")

    def __init__(self, request: Any, deadline_ms: int) -> None:
        self.request = request
        self.promise: Promise[Any] = Promise()
        self.deadline_ms = deadline_ms


class _Pipe:
    """One direction of a connection: first in, first out, and nothing arrives before it is due."""

    __slots__ = ("_deliver", "_is_retrying", "_last_due_ms", "_queue", "_stall", "_way", "network")

    def __init__(
        self, network: Network, source: int, target: int, deliver: Callable[[Any, Any], None]
    ) -> None:
        self.network = network
        self._way = (source, target)
        self._deliver = deliver
        self._queue: deque[tuple[int, Any, Any]] = deque()
        self._last_due_ms = 0
        self._is_retrying = False
        self._stall: tuple[int, int] | None = None

    def stall(self, after: int, for_ms: int) -> None:
        """Let this many more requests through before the delay."""
        self._stall = (after, for_ms)

    def send(self, first: Any, second: Any) -> None:
        world = self.network.world
        due_ms = max(self._last_due_ms, world.now_ms + self.network.delay_ms(*self._way))
        if self._stall is not None:
            after, for_ms = self._stall
            self._stall = (after - 1, for_ms) if after else None
            due_ms += 0 if after else for_ms
        self._last_due_ms = due_ms
        self._queue.append((due_ms, first, second))
        world.at(due_ms - world.now_ms, None, self._pump)

    def drop(self) -> None:
        self._queue.clear()

    def _pump(self) -> None:
        network, queue = self.network, self._queue
        now_ms = network.world.now_ms
        while queue and queue[0][0] <= now_ms:
            process = network.processes.get(self._way[1])
            is_asleep = process is not None and process.life.paused_until_ms > now_ms
            if is_asleep or network.cuts.get(self._way):
                if not self._is_retrying:
                    self._is_retrying = True
                    network.world.at(_RETRY_MS, None, self._retry)
                return
            _, first, second = queue.popleft()
            self._deliver(first, second)

    def _retry(self) -> None:
        self._is_retrying = False
        self._pump()


class Connection:
    """Carries requests in order, and answers as they come. It reopens itself after a break."""

    __slots__ = ("_is_watched", "_network", "_out", "_pending", "life", "may_be_late", "source",
                 "target")  # fmt: skip

    def __init__(self, network: Network, source: int, life: Life, target: int) -> None:
        self._network = network
        self.source = source
        self.life = life
        self.target = target
        self.may_be_late = True
        self._is_watched = False
        self._out, self._pending = self._open()

    def call(self, request: Any, timeout_ms: int) -> Promise[Any]:
        """Return the answer, or None if the connection broke before it arrived."""
        world = self._network.world
        call = _Call(request, world.now_ms + timeout_ms)
        self._pending.append(call)
        self._out.send(call, None)
        self._watch()
        return call.promise

    def stall(self, after: int, for_ms: int) -> None:
        """Let this many requests through, then delay the next one and everything after it."""
        self._out.stall(after, for_ms)

    def close(self) -> None:
        """Close the connection on the user's behalf: it breaks if anything is under way."""
        if self._pending and not self.life.is_over:
            self.break_off()

    def break_off(self) -> None:
        """Stop waiting for answers. Requests under way may still arrive."""
        pending, out = self._pending, self._out
        self._out, self._pending = self._open()
        if not self.may_be_late or self._network.world.chance(0.5):
            out.drop()
        for call in pending:
            self._network.world.at(_REFUSED_AFTER_MS, self.life, call.promise.resolve, None)
        pending.clear()

    def _open(self) -> tuple[_Pipe, deque[_Call]]:
        pending: deque[_Call] = deque()
        network, life = self._network, self.life
        peer: list[Process] = []  # the process with that name when the first request arrived

        def arrived(call: _Call, answer: Any) -> None:
            if call in pending and not life.is_over:
                pending.remove(call)
                call.promise.resolve(answer)

        back = _Pipe(network, self.target, self.source, arrived)

        def deliver(call: _Call, _: None) -> None:
            process = network.processes.get(self.target)
            if process is not None and not peer:
                peer.append(process)
            if process is not None and process is peer[0]:
                process.receive(call.request, lambda answer: back.send(call, answer))
            elif call in pending:
                self.break_off()

        return _Pipe(network, self.source, self.target, deliver), pending

    def _watch(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            wait_ms = self._pending[0].deadline_ms - self._network.world.now_ms
            self._network.world.at(max(wait_ms, 1), self.life, self._look)

    def _look(self) -> None:
        self._is_watched = False
        if not self._pending:
            return
        if self._pending[0].deadline_ms <= self._network.world.now_ms:
            self.break_off()
        else:
            self._watch()

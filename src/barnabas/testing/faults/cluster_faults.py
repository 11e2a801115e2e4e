"""Implements `cluster.faults`: faults of single brokers, and killing or isolating brokers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.cluster.store import SessionState
from barnabas.errors import ConfigError
from barnabas.testing.faults.broker_faults import Faults
from barnabas.testing.faults.isolation import Isolation, sender_of
from barnabas.testing.faults.temporary_fault import Temporary

if TYPE_CHECKING:
    from barnabas.broker.server import Server
    from barnabas.testing.embedded.cluster import Cluster


class ClusterFaults(Faults):
    """The faults of an embedded cluster.

    All methods may be called in any thread except the cluster's own.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(lambda work: cluster.thread.call(work))
        self._cluster = cluster

    def kill(self, broker_id: int) -> None:
        """Stop a broker abruptly, as `kill -9` does; `cluster.start_broker` restarts it.

        The broker hands over nothing and does not answer requests in progress. Its written data is
        kept, and its next start recovers. Its metadata session ends immediately, so the other
        brokers need not wait for `zookeeper.session.timeout.ms`. Raises ConfigError if the broker
        is not running.
        """
        self._cluster.kill_broker(broker_id)

    def pause(self, broker_id: int) -> Temporary:
        """Call `cluster.pause`; the pause lasts until `remove()`, `cluster.resume`, or the end of
        the `with` block.
        """
        self._cluster.pause(broker_id)
        return Temporary(partial(self._cluster.resume, broker_id))

    def isolate(self, broker_id: int, *, inbound: bool = True, outbound: bool = True) -> Temporary:
        """Cut a broker off until `heal`, `remove()` or the end of the `with` block.

        `inbound`: no request from a client or another broker reaches it. `outbound`: nothing that
        it sends reaches the other brokers, and its metadata session ends immediately. One of these
        alone creates a one-way partition. Open connections are closed immediately, and new ones at
        their first request, but the broker itself keeps running. Raises ConfigError.
        """
        if not inbound and not outbound:
            raise ConfigError("isolate: inbound=False and outbound=False cuts off nothing")
        self.cut_off(broker_id, inbound, outbound)
        return Temporary(partial(self.heal, broker_id))

    def cut_off(self, broker_id: int, inbound: bool, outbound: bool) -> None:
        """Isolate a broker until `heal`. Returns nothing, so that it can be called across
        processes."""
        # Call this in the caller's thread, so that the test receives the error.
        self._cluster.server(broker_id)  # raises ConfigError unless it runs
        one = frozenset({broker_id})
        self._call(partial(self._isolate, broker_id, one if inbound else one - one, outbound))

    def heal(self, broker_id: int | None = None) -> None:
        """Reconnect a broker to its clients and to the other brokers.

        None reconnects all brokers.
        """
        if self._isolation:
            self._call(partial(self._heal, broker_id))

    def clear(self) -> None:
        """Remove all rules, restore disks and clocks, and heal all brokers. Killed brokers are not
        restarted.
        """
        self.heal()
        super().clear()

    # ---- methods that run on the cluster's loop ----

    def detach(self, broker_id: int) -> None:
        one = frozenset({broker_id})
        self._isolation = Isolation(self._isolation.unreachable - one, self._isolation.mute - one)
        super().detach(broker_id)

    def _broker_ids(self) -> tuple[int, ...]:
        return tuple(self._cluster.broker_ids)

    def _isolate(self, broker_id: int, unreachable: frozenset[int], outbound: bool) -> None:
        mute = frozenset({broker_id}) if outbound else frozenset()
        before = self._isolation
        self._isolation = Isolation(before.unreachable | unreachable, before.mute | mute)
        # Block new requests before closing open connections, so that no request slips through.
        self._apply_to_all()
        for other, server in self._servers.items():
            if other != broker_id and outbound:
                self._cut(server, lambda client_id: sender_of(client_id) == broker_id)
            elif other == broker_id and unreachable:
                self._cut(server, lambda client_id: True)
        if outbound:
            # A real session would end after zookeeper.session.timeout.ms, but a test should not
            # have to wait that long.
            self._cluster.session(broker_id).expire()

    def _cut(self, server: Server, is_meant: Callable[[str | None], bool]) -> None:
        self._cluster.call_soon(server.broker_id, partial(server.parts.network.abort, is_meant))

    def _heal(self, broker_id: int | None) -> None:
        before = self._isolation
        healed = before.mute | before.unreachable if broker_id is None else {broker_id}
        self._isolation = Isolation(before.unreachable - healed, before.mute - healed)
        self._apply_to_all()
        for each in before.mute & healed:
            session = self._cluster.session(each)
            # A broker isolated only from inbound traffic still has its session.
            if session.session_state is SessionState.EXPIRED:
                session.reconnect()

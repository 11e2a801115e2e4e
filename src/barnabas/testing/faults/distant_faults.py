"""Implements `broker.faults` and `cluster.faults` for `process=True`, where rules apply in another
process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.testing.faults.broker_faults import Faults
from barnabas.testing.faults.cluster_faults import ClusterFaults
from barnabas.testing.faults.fault_link import FaultLink
from barnabas.testing.faults.request_rules import RequestRules
from barnabas.testing.faults.rule import Rule

if TYPE_CHECKING:
    from barnabas.testing.embedded.cluster import Cluster


class DistantRule(Rule):
    """A rule whose hits are counted in another process. Reading the hits requires a request to this
    process.
    """

    def __init__(self, link: FaultLink, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._link = link

    @property
    def hits(self) -> int:
        self._link.look(self)
        return super().hits

    def _wait(self, hits: int, left_s: float) -> None:
        self._link.look(self, hits, left_s)


class DistantFaults(Faults):
    """Sets faults in another process, from `begin` to `end`."""

    _link: FaultLink

    def begin(self) -> None:
        """Set the faults in a process that has just started to serve requests."""
        self._link.begin(self.rules, self._machine())

    def end(self) -> None:
        """Save the counts of a process that is about to end."""
        self._link.end(self.rules)

    def _go_through(self, link: FaultLink) -> None:
        self._link = link
        self._rules = RequestRules(self._apply, partial(DistantRule, link))

    def _apply(self) -> None:
        self._link.bring(self.rules, self._machine())


class DistantBrokerFaults(DistantFaults):
    """The faults of a broker in another process. All methods may be called in any thread."""

    def __init__(self, port: Callable[[], int | None]) -> None:
        """`port` returns the port of the `FaultControl` in the process, or None if there
        is none.
        """
        super().__init__(_nothing_is_here)
        self._go_through(FaultLink(port))


class DistantClusterFaults(DistantFaults, ClusterFaults):
    """The faults of a cluster in another process. All methods may be called in any thread."""

    def __init__(self, cluster: Cluster, port: Callable[[], int | None]) -> None:
        """`port` has the same meaning as for DistantBrokerFaults."""
        super().__init__(cluster)
        self._go_through(FaultLink(port))

    def heal(self, broker_id: int | None = None) -> None:
        # A stopped cluster needs no healing, because the isolation ended when its brokers stopped.
        if self._cluster.is_running:
            self._cluster.call_child("faults.heal", broker_id)

    def cut_off(self, broker_id: int, inbound: bool, outbound: bool) -> None:
        self._cluster.call_child("faults.cut_off", broker_id, inbound, outbound)


def _nothing_is_here(work: Callable[[], None]) -> None:
    raise AssertionError("the broker has no loop in this process")

"""A broker's own replica in a simulation: each of its steps is reported to the checkers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.partitions.replica import Replica
from barnabas.replication.partition import Advance, Effect

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import ReplicaHost
    from barnabas.replication.partition import Partition
    from barnabas.storage.log import Log
    from simulation.disk import SimLog
    from simulation.sim_broker import SimBroker


class SimReplica(Replica):
    """A replica over a log of entries."""

    __slots__ = ("broker",)

    log: SimLog  # type: ignore[assignment]  # which has what a replica uses of a log

    def __init__(
        self, broker: SimBroker, log: Log, partition: Partition, host: ReplicaHost
    ) -> None:
        super().__init__(log, partition, host)
        self.broker = broker
        broker.cluster.checks.opened(self)

    def write_staged(self) -> None:
        super().write_staged()
        count, self.log.unjudged = self.log.unjudged, 0
        if count:
            self.broker.cluster.checks.appended(self, count)

    def leads(self) -> None:
        self.broker.cluster.checks.led(self)
        super().leads()

    def carry_out(self, effects: Sequence[Effect]) -> None:
        if not effects:
            return
        checks = self.broker.cluster.checks
        for effect in effects:
            if isinstance(effect, Advance):
                checks.advanced(self)
            else:
                checks.proposed(self, effect.proposal)
        super().carry_out(effects)

    def delete_records(self) -> None:
        """Delete all records that consumers may see."""
        self.log.raise_log_start(self.high_watermark)
        self.log_start_moved()
        self.broker.cluster.checks.deleted(self)

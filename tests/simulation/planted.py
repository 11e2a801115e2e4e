"""Bugs to be found: each takes one guard out of one machine, or makes one mistake."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from barnabas.cluster.image import BrokerImage
from barnabas.controller.controller import Controller
from barnabas.controller.decision import Decision as Controlled
from barnabas.coordinator.decision import NOTHING, Decision, Now
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.offsets import Offsets
from barnabas.coordinator.transactions import Transactions
from barnabas.errors import KafkaError
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.replication.follower import Append, Fetched, FetchFrom, Follower, Step
from barnabas.replication.partition import Effect, Partition, ProposeIsr
from barnabas.types import TopicPartition
from simulation.disk import SimLog
from simulation.machines import Machines
from simulation.sim_broker import SimBroker
from simulation.sim_replica import SimReplica
from simulation.transactional import TransactionalProducer
from simulation.workload import Producer


class HastyLeader(Partition):
    """Counts a proposed ISR as if the controller had agreed to it."""

    __slots__ = ()

    def _propose(self, isr: tuple[int, ...]) -> ProposeIsr:
        proposed = super()._propose(isr)
        self.maximal_isr = isr
        return proposed


class LeaderThatGivesUp(Partition):
    """Raises an error that is not expected."""

    __slots__ = ()

    def on_appended(self, log_end_offset: int, now_ms: int = 0) -> list[Effect]:
        raise ZeroDivisionError("at the first record")


class UnfencedLeader(Partition):
    """Serves requests of another leader epoch (KIP-320)."""

    __slots__ = ()

    def check_leader_epoch(self, leader_epoch: int) -> None:
        """Any epoch is accepted."""


class ReplicaThatDoesNotWait(SimReplica):
    """Answers producers before the in-sync replicas have their records."""

    __slots__ = ()

    def wait_for(self, offset: int, *, is_strict: bool = False) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future


class ReplicaThatTrustsItsWatermark(SimReplica):
    """Cuts its log to its high watermark before it follows another leader (KIP-101)."""

    __slots__ = ()

    def on_stopped(self, reason: KafkaError | None = None) -> None:
        super().on_stopped(reason)
        if self.partition.is_leader:
            return
        gone = self.log.truncate(self.high_watermark)
        self.partition.on_truncated(self.log.log_end_offset)
        self.broker.cluster.checks.truncated(self, self.log.log_end_offset, gone)


class CarelessFollower(Follower):
    """Does not cut its log where it diverges from the leader's (KIP-101)."""

    __slots__ = ()

    def on_answer(self, sent: FetchFrom, got: Fetched) -> Step:
        step = super().on_answer(sent, got._replace(diverging=None))
        return step if got.diverging is None else Append()


class TrustingController(Controller):
    """Believes the ISR of brokers that may have lost records (KIP-966)."""

    __slots__ = ()

    def brokers_changed(self, live: Mapping[int, BrokerImage]) -> Controlled:
        return super().brokers_changed(
            {broker_id: each._replace(may_have_lost=False) for broker_id, each in live.items()}
        )


class ControllerThatSeesNoBounce(Controller):
    """Takes a broker that has registered again for the one that it knows (ABA)."""

    __slots__ = ()

    def brokers_changed(self, live: Mapping[int, BrokerImage]) -> Controlled:
        bounced = {each: live[each] for each in self.image.brokers if each in live}
        self.image = self.image._replace(brokers={**self.image.brokers, **bounced})
        return super().brokers_changed(live)


class BrokerThatIsSoonTrusted(SimBroker):
    """Warns once that it may have lost records, and at its next start no more."""

    __slots__ = ()

    def _registered(self, broker_epoch: int) -> None:
        super()._registered(broker_epoch)
        self.disk.may_have_lost = False


class BrokerThatTrustsANewDisk(SimBroker):
    """Nothing is on it, so nothing can be lost of it."""

    __slots__ = ()

    def start(self) -> None:
        if not any(log.log_end_offset for log in self.disk.logs.values()):
            self.disk.may_have_lost = False
        super().start()


class ForgetfulLog(SimLog):
    """Keeps the producers' state when it is cut."""

    __slots__ = ()

    def forget_producers(self) -> None:
        """They are remembered."""


class RenumberingProducer(Producer):
    """Gives a record a new sequence number each time it sends it."""

    __slots__ = ()

    async def send(self, name: TopicPartition, value: int) -> bool:
        done = await super().send(name, value)
        if not done:
            return await super().send(name, value)
        return done


class ForgetfulCoordinator(Transactions):
    """Takes its predecessor's decisions for done: the markers are not written."""

    __slots__ = ()

    def on_loaded(self, now: Now) -> Decision:
        super().on_loaded(now)
        return NOTHING


class ForgetfulGroups(Groups):
    """Takes no notice of the offsets that its predecessor has kept."""

    __slots__ = ()

    def on_loaded(self, now: Now) -> Decision:
        self.offsets = Offsets()
        return super().on_loaded(now)


class TrustingGroups(Groups):
    """Takes offsets from a member of any generation."""

    __slots__ = ()

    def commit(self, ticket: int, request: OffsetCommitRequest, now: Now) -> Decision:
        return self.offsets.commit(ticket, request, now.wall_ms, 4096)


class ProducerWithoutDoubts(TransactionalProducer):
    """Goes on in its epoch, whatever may still be under way (KIP-360)."""

    __slots__ = ()

    async def end_doubts(self) -> None:
        """It has none."""


PLANTED = {
    "leader": Machines(partition=HastyLeader),
    "follower": Machines(follower=CarelessFollower),
    "replica": Machines(replica=ReplicaThatDoesNotWait),
    "controller": Machines(controller=TrustingController),
    "log": Machines(log=ForgetfulLog),
    "coordinator": Machines(transactions=ForgetfulCoordinator),
    "groups": Machines(groups=ForgetfulGroups),
    "generations": Machines(groups=TrustingGroups),
    "client": Machines(producer=RenumberingProducer),
}

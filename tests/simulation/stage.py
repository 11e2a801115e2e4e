"""A cluster on which a test plays a story by hand: failures, and cuts between processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from barnabas.types import TopicPartition
from simulation.cluster import Cluster
from simulation.disk import Entry, SimLog
from simulation.machines import Machines
from simulation.options import Options
from simulation.run import what_is_missing
from simulation.sim_replica import SimReplica
from simulation.wire import AskLatest, Bounds, Fetch, FetchedPart, Produce, Produced
from simulation.workload import Counts, Producer

NAME = TopicPartition("t0", 0)
CLIENT = -1


class Stage:
    """Replicas of the one partition are on brokers 1, 2, ...; the last broker is the controller.

    Nothing is flushed and no follower lags unless the story has it.
    """

    def __init__(
        self,
        replicas: int,
        machines: Machines | None = None,
        *,
        min_isr: int = 1,
        unclean: bool = False,
        transactional: bool = False,
        isr_writers: tuple[int, ...] = (),
        seed: int = 1,
    ) -> None:
        options = Options(
            seed,
            brokers=replicas + 1,
            replication_factor=replicas,
            min_insync_replicas=min_isr,
            is_unclean_allowed=unclean,
            transactional=int(transactional),
            isr_writers=isr_writers,
            lag_time_max_ms=8000,
            flush_interval_ms=1 << 40,
        )
        self.cluster = Cluster(options, machines or Machines())
        self.controller = options.brokers
        self._values = 0
        self.cluster.start(self.controller)
        self.wait(100)
        for broker_id in range(1, options.brokers):
            self.cluster.start(broker_id)
            self.wait(100)
        self.wait(1000)
        self.cluster.create_topics()
        self.until(lambda: what_is_missing(self.cluster) is None)
        assert self.stored == (1, tuple(range(1, replicas + 1)))

    # --- time ------------------------------------------------------------------------------------

    def wait(self, ms: int) -> None:
        self.cluster.world.run_until(self.cluster.world.now_ms + ms)

    def until(self, holds: Callable[[], bool], within_ms: int = 20_000) -> None:
        """Go on until it holds."""
        world = self.cluster.world
        world.run_until(world.now_ms + within_ms, holds)
        assert holds(), what_is_missing(self.cluster)

    def until_well(self) -> None:
        """Until all replicas are in sync and have the same records."""
        self.until(lambda: what_is_missing(self.cluster) is None)

    # --- looking ---------------------------------------------------------------------------------

    @property
    def stored(self) -> tuple[int, tuple[int, ...]]:
        """The leader and the ISR in the metadata store."""
        stored = self.cluster.checks.history(NAME).stored
        assert stored is not None
        return stored.leader, stored.isr

    def hosted(self, broker_id: int) -> SimReplica:
        return self.cluster.brokers[broker_id].hosted[NAME]

    def bounds(self, broker_id: int, question: AskLatest) -> Bounds:
        return self.cluster.brokers[broker_id].serving.bounds(question)

    def log(self, broker_id: int) -> SimLog:
        """On the disk, whether the broker runs or not."""
        return self.cluster.disks[broker_id].logs[NAME]

    def values(self, broker_id: int) -> list[int]:
        return [entry.value for entry in self.log(broker_id).entries]

    def leads(self, broker_id: int) -> bool:
        broker = self.cluster.brokers.get(broker_id)
        return (
            broker is not None
            and NAME in broker.hosted
            and self.hosted(broker_id).partition.is_leader
        )

    def until_led_by(self, broker_id: int) -> None:
        self.until(lambda: self.stored[0] == broker_id and self.leads(broker_id))

    # --- what happens ----------------------------------------------------------------------------

    def cut(self, *broker_ids: int) -> None:
        """These cannot speak with any other broker; clients and the store they reach."""
        for broker_id in broker_ids:
            for other in self.cluster.disks:
                if other != broker_id:
                    self.cluster.network.cut(broker_id, other)
                    self.cluster.network.cut(other, broker_id)

    def part(self, one: int, other: int) -> None:
        """These two cannot speak with each other."""
        self.cluster.network.cut(one, other)
        self.cluster.network.cut(other, one)

    def heal(self) -> None:
        self.cluster.network.cuts.clear()

    def lose_power(self, broker_id: int, keep: int) -> None:
        """The machine goes down, and its disk has the records below `keep` only."""
        self.cluster.kill(broker_id)
        self.log(broker_id).truncate(keep)
        self.log(broker_id).has_lost = True
        self.cluster.disks[broker_id].may_have_lost = True

    def producer(self, acks: int, *, idempotent: bool = False) -> Producer:
        return Producer(self.cluster, CLIENT, acks, idempotent, Counts())

    def begin(self, producer: Producer) -> list[bool]:
        """Send the next value; the list gets the outcome."""
        self._values += 1
        outcome: list[bool] = []

        async def send(value: int) -> None:
            outcome.append(await producer.send(NAME, value))

        self.cluster.world.start(producer.life, send(self._values))
        return outcome

    def append(self, broker_id: int, request: Produce) -> list[Produced]:
        """A producer's request arrives; the list gets the answer."""
        answers: list[Produced] = []
        self.cluster.brokers[broker_id].receive(request, answers.append)
        return answers

    def fetch(self, broker_id: int, request: Fetch, *, is_first: bool = True) -> FetchedPart:
        """The answer to a follower's request for one partition, which does not wait."""
        broker = self.cluster.brokers[broker_id]
        return broker.loop.call(partial(broker.serving.fetched, is_first=is_first), request).parts[
            0
        ]

    def write(self, acks: int = -1, count: int = 1) -> Sequence[bool]:
        """Send so many values, one after the other, and wait for what comes of each."""
        outcomes = []
        for _ in range(count):
            outcome = self.begin(self.producer(acks))
            self.until(lambda outcome=outcome: bool(outcome))  # type: ignore[misc]
            outcomes += outcome
        return outcomes

    def last(self, broker_id: int) -> Entry:
        return self.log(broker_id).entries[-1]

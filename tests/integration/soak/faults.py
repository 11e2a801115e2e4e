"""What is done to three brokers and their ZooKeeper, in an order that a seed decides."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from barnabas.client import SyncAdmin
from barnabas.errors import BarnabasError
from tests.integration.soak.work import DEADLINE_S, GROUP, TRANSACTED, Work
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.cluster_load import controller_of, leader_of
from tests.kit.processes.cluster_process import SESSION_MS, ClusterProcess
from tests.kit.processes.senders import PARTITIONS
from tests.kit.processes.stepped_clock import SteppedClock
from tests.kit.waiting import wait_until

Answer = TypeVar("Answer")

_MOST_AWAY_S = 4.0
_MOST_PAUSED_S = 3.0
_SESSION_S = SESSION_MS / 1000
_MONTH_S, _HOUR_S = 30 * 86_400, 3_600
_WRONG_FOR_S = 6.0


class Faults:
    """Each is over when its method returns: every process runs again, though it may lag."""

    def __init__(
        self, cluster: ClusterProcess, clocks: Mapping[int, SteppedClock], work: Work, seed: int
    ) -> None:
        """`clocks`: of each broker."""
        self._cluster = cluster
        self._clocks = clocks
        self._work = work
        self._random = random.Random(seed)
        self.counts: dict[str, int] = {}

    def strike(self) -> str:
        """The next one; its name, when it is over."""
        names = list(_FAULTS)
        # All once, before any comes a second time as luck has it.
        left = [name for name in names if name not in self.counts] or names
        name = self._random.choice(left)
        self.counts[name] = self.counts.get(name, 0) + 1
        _FAULTS[name](self)
        return name

    def waits_for_all(self) -> bool:
        """Whether the next one comes only when all replicas are in sync again."""
        return self._random.random() < 0.6

    # ---- kill -9 ----

    def kill_leader(self) -> None:
        self._kill(self._leader())

    def kill_follower(self) -> None:
        leader = self._leader()
        self._kill(self._random.choice([key for key in self._cluster.brokers if key != leader]))

    def kill_controller(self) -> None:
        self._kill(controller_of(self._cluster))

    def kill_coordinator_of_group(self) -> None:
        def find(admin: SyncAdmin) -> int:
            return admin.describe_groups([GROUP])[GROUP].coordinator.node_id

        self._kill(self._ask(find))

    def kill_coordinator_of_transactions(self) -> None:
        name = self._random.choice(TRANSACTED)

        def find(admin: SyncAdmin) -> int:
            return admin.describe_transactions([name])[name].coordinator.node_id

        self._kill(self._ask(find))

    def kill_two(self) -> None:
        self._kill(*self._random.sample(list(self._cluster.brokers), 2))

    def kill_all(self) -> None:
        self._kill(*self._cluster.brokers)

    def kill_one_again_and_again(self) -> None:
        """It comes back before its session has ended, and before it has caught up."""
        victim = self._leader()
        for _ in range(3):
            self._kill(victim, most_away_s=0.0)

    def kill_while_zookeeper_is_away(self) -> None:
        victim = self._leader()
        self._cluster.zookeeper.kill()
        self._end(victim)
        time.sleep(self._random.uniform(0, _MOST_AWAY_S))
        self._cluster.zookeeper.start()
        self._cluster.brokers[victim].start()

    # ---- others ----

    def pause_leader(self) -> None:
        """Past the end of its session."""
        process = self._cluster.brokers[self._leader()].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(_SESSION_S + self._random.uniform(0.5, _MOST_PAUSED_S))
        finally:
            process.send_signal(signal.SIGCONT)

    def stop_one(self) -> None:
        broker = self._cluster.brokers[self._random.choice(list(self._cluster.brokers))]
        assert broker.stop() == 0
        time.sleep(self._random.uniform(0, _MOST_AWAY_S))
        broker.start()

    def restart_all_in_turn(self) -> None:
        for broker in self._cluster.brokers.values():
            assert broker.stop() == 0
            broker.start()
            self.wait_until_in_sync()

    def stop_zookeeper(self) -> None:
        zookeeper = self._cluster.zookeeper
        self._random.choice((zookeeper.stop, zookeeper.kill))()
        time.sleep(self._random.uniform(0.2, _MOST_AWAY_S))
        zookeeper.start()

    def pause_zookeeper(self) -> None:
        self._cluster.zookeeper.pause()
        try:
            time.sleep(_SESSION_S + self._random.uniform(0.2, _MOST_PAUSED_S))
        finally:
            self._cluster.zookeeper.resume()

    def set_clock_forward(self) -> None:
        """Past everybody's retention, for longer than it takes retention to look."""
        self._set_clock(_MONTH_S)

    def set_clock_back(self) -> None:
        self._set_clock(-_HOUR_S)

    def _set_clock(self, ahead_s: int) -> None:
        clock = self._clocks[self._random.choice(list(self._clocks))]
        clock.step(ahead_s)
        time.sleep(_WRONG_FOR_S)
        clock.step(0)

    def change_member_of_group(self) -> None:
        self._work.members.replace_one()

    def kill_copying(self) -> None:
        for _ in range(3):
            self._work.copying.kill()
            time.sleep(self._random.uniform(0.5, 2.0))

    # ---- what they need ----

    def wait_until_in_sync(self) -> None:
        """Every partition of the work is led, and has all its replicas."""
        size = len(self._cluster.brokers)

        def are_all_full(admin: SyncAdmin) -> bool:
            described = admin.describe_topics(self._work.topics)
            partitions = [one for topic in described for one in topic.partitions]
            return all(len(one.isr) == size and one.leader >= 0 for one in partitions)

        wait_until(lambda: self._ask(are_all_full), DEADLINE_S)

    def _leader(self) -> int:
        topic = self._random.choice(self._work.topics)
        return leader_of(self._cluster.bootstrap_servers, topic, self._random.randrange(PARTITIONS))

    def _kill(self, *victims: int, most_away_s: float = _MOST_AWAY_S) -> None:
        self._end(*victims)
        for victim in victims:
            time.sleep(self._random.uniform(0, most_away_s))
            self._cluster.brokers[victim].start()

    def _end(self, *victims: int) -> None:
        """In one moment."""
        brokers: list[BrokerProcess] = [self._cluster.brokers[victim] for victim in victims]
        for broker in brokers:
            assert broker.process is not None
            broker.process.kill()
        for broker in brokers:
            broker.kill()

    def _ask(self, what: Callable[[SyncAdmin], Answer]) -> Answer:
        """The first answer of any broker; the last fault may not be over yet."""
        answers: list[Answer] = []

        def is_answered() -> bool:
            try:
                with SyncAdmin(self._cluster.bootstrap_servers) as admin:
                    answers.append(what(admin))
            except BarnabasError:
                return False
            return True

        wait_until(is_answered, DEADLINE_S)
        return answers[0]


_FAULTS: Mapping[str, Callable[[Faults], None]] = {
    "leader killed": Faults.kill_leader,
    "follower killed": Faults.kill_follower,
    "controller killed": Faults.kill_controller,
    "group's coordinator killed": Faults.kill_coordinator_of_group,
    "transactions' coordinator killed": Faults.kill_coordinator_of_transactions,
    "two killed": Faults.kill_two,
    "all three killed": Faults.kill_all,
    "leader killed three times": Faults.kill_one_again_and_again,
    "leader killed while ZooKeeper was away": Faults.kill_while_zookeeper_is_away,
    "leader paused": Faults.pause_leader,
    "one stopped in order": Faults.stop_one,
    "all restarted in turn": Faults.restart_all_in_turn,
    "ZooKeeper stopped": Faults.stop_zookeeper,
    "ZooKeeper paused": Faults.pause_zookeeper,
    "clock of one a month ahead": Faults.set_clock_forward,
    "clock of one an hour behind": Faults.set_clock_back,
    "member of the group replaced": Faults.change_member_of_group,
    "copy job killed": Faults.kill_copying,
}

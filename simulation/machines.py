"""The classes from which a run is built; a test replaces one with a broken class, to check that the
fault is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.controller.controller import Controller
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.transactions import Transactions
from barnabas.replication.follower import Follower
from barnabas.replication.partition import Partition
from barnabas.types import TopicPartition
from simulation.disk import Disk, SimLog
from simulation.sim_broker import SimBroker
from simulation.sim_replica import SimReplica
from simulation.transactional import TransactionalProducer
from simulation.workload import Producer


class Machines(NamedTuple):
    """The real classes."""

    partition: Callable[..., Partition] = Partition
    follower: Callable[..., Follower] = Follower
    replica: Callable[..., SimReplica] = SimReplica
    controller: Callable[..., Controller] = Controller
    log: Callable[[TopicPartition, bytes, Disk], SimLog] = SimLog
    broker: Callable[..., SimBroker] = SimBroker
    producer: Callable[..., Producer] = Producer
    transactions: Callable[..., Transactions] = Transactions
    groups: Callable[..., Groups] = Groups
    transactional: Callable[..., TransactionalProducer] = TransactionalProducer
    has_late_control: bool = False
    """Whether a controller's request may arrive after later ones, over an abandoned connection.

    Within a controller epoch, UpdateMetadata and StopReplica are not fenced against it; within its
    producer's epoch, neither is a transaction's marker.
    """

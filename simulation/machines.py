"""The classes that a run is made of; a test puts a broken one in a place to see it found."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.controller.controller import Controller
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.transactions import Transactions
from barnabas.replication.follower import Follower
from barnabas.replication.partition import Partition
from simulation.disk import SimLog
from simulation.sim_broker import SimBroker
from simulation.transactional import TransactionalProducer
from simulation.workload import Producer


class Machines(NamedTuple):
    """The real ones."""

    partition: Callable[..., Partition] = Partition
    follower: Callable[..., Follower] = Follower
    controller: Callable[..., Controller] = Controller
    log: Callable[[bytes], SimLog] = SimLog
    broker: Callable[..., SimBroker] = SimBroker
    producer: Callable[..., Producer] = Producer
    transactions: Callable[..., Transactions] = Transactions
    groups: Callable[..., Groups] = Groups
    transactional: Callable[..., TransactionalProducer] = TransactionalProducer
    has_late_control: bool = False
    """Whether a request of the controller may arrive after later ones, by a connection that was
    given up: UpdateMetadata and StopReplica have no fence against it within a controller
    epoch, nor has a transaction's marker one within its producer's epoch."""

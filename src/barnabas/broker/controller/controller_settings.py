"""Defines the settings and collaborators that a controller keeps throughout all its terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.controller.broker_channels import Deliver
from barnabas.broker.controller.topic_causes import TopicCauses
from barnabas.clock import Random
from barnabas.cluster.image import ClusterImage
from barnabas.cluster.loading import LatestEpochOf
from barnabas.cluster.store import MetadataStore
from barnabas.controller.controller import Controller, Settings
from barnabas.events import EventLog
from barnabas.metrics import Counter
from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.controller.peer_connection import Peers
    from barnabas.config import BrokerConfig

NewMachine = Callable[[int, ClusterImage, Settings], Controller]
"""Creates the machine for a term. The simulator uses it to create mutants."""


class ControllerSettings(NamedTuple):
    """The broker settings that a controller uses."""

    session_timeout_ms: int = 18_000
    timeout_ms: int = 30_000
    rebalance_every_s: int = 0  # 0 means never
    max_imbalance_percent: int = 10
    machine: Settings = Settings()

    @classmethod
    def of(cls, config: BrokerConfig) -> ControllerSettings:
        rebalances = config.bool("auto.leader.rebalance.enable")
        every_s = config.int("leader.imbalance.check.interval.seconds")
        return cls(
            config.int("zookeeper.session.timeout.ms"),
            config.int("controller.socket.timeout.ms"),
            every_s if rebalances else 0,
            config.int("leader.imbalance.per.broker.percentage"),
            Settings(
                config.int("min.insync.replicas"), config.bool("unclean.leader.election.enable")
            ),
        )


class ControllerContext(NamedTuple):
    """The collaborators of this broker's controller. They are the same in every term."""

    store: MetadataStore
    view: ClusterView
    random: Random
    deliver: Deliver
    latest_epoch_of: LatestEpochOf
    peers: Peers | None
    new_machine: NewMachine
    unclean_elections: Counter
    events: EventLog
    causes: TopicCauses
    """The requests that caused this broker's topic changes."""

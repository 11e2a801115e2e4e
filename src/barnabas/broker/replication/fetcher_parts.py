"""Defines the parts of a broker that are used by its fetchers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.inter_broker.peers import Peers
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.broker.partitions.throttles import Throttles


class FetcherParts(NamedTuple):
    """The parts of a broker that all its fetchers share."""

    view: ClusterView
    config: CurrentConfig
    replicas: Replicas
    throttles: Throttles
    peers: Peers

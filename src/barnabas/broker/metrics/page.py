"""Renders the /metrics page of a broker (RE-14).

Metrics have the names by which Kafka's are known in Prometheus: those that the JMX exporter's own
example configuration for Kafka (kafka-2_0_0.yml) makes of the MBeans, so that dashboards and alerts
written for it work. All in lower case; `PerSec` becomes `_total`, of which Prometheus takes the
rate; the MBean's name stands in the help.

    kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions
        kafka_server_replicamanager_underreplicatedpartitions
    kafka.server:type=ReplicaManager,name=IsrShrinksPerSec
        kafka_server_replicamanager_isrshrinks_total

Gauges are computed here, by one walk over the hosted replicas; only events are counted where they
happen. Every broker has all metrics: those of the controller are 0 elsewhere, as in Kafka. Those of
quotas are there once there is a quota: see `quota_families`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from barnabas.controller.counts import Counts
from barnabas.errors import NotController
from barnabas.metrics import Counter, Family, Sample, text

if TYPE_CHECKING:
    from barnabas.broker.controller.runner import ControllerRunner
    from barnabas.broker.node import Node
    from barnabas.broker.partitions.alter_partition_queue import AlterPartitionQueue
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.broker.quotas.ip_quotas import IpQuotas
    from barnabas.broker.replication.fetchers import Fetchers
    from barnabas.broker.security.server_tls import ServerTls

_REPLICAS = "kafka.server:type=ReplicaManager,name="
_CONTROLLER = "kafka.controller:type=KafkaController,name="
_ELECTIONS = "kafka.controller:type=ControllerStats,name="
_FETCHERS = "kafka.server:type=FetcherLagMetrics,name="

_NOT_CONTROLLER = Counts(0, 0, 0, 0)


def page(
    node: Node,
    proposals: AlterPartitionQueue,
    fetchers: Fetchers | None,
    ip_quotas: IpQuotas | None = None,
    tls: Sequence[ServerTls] = (),
) -> bytes:
    """All metrics of a broker, at this moment; `fetchers` is None on a broker without peers, `tls`
    are its listeners that have a certificate."""
    families = _families(node, proposals, fetchers)
    if tls:
        families = chain(families, [_of_certificates(tls)])
    if ip_quotas is not None and (node.quotas.is_active or ip_quotas.is_active):
        from barnabas.broker.metrics.quota_families import quota_families  # few brokers need it

        of_quotas = quota_families(node.quotas, ip_quotas, node.clock.monotonic_ms())
        families = chain(families, of_quotas)
    return text(families).encode()


def _families(
    node: Node, proposals: AlterPartitionQueue, fetchers: Fetchers | None
) -> Iterator[Family]:
    yield from _of_replicas(node.replicas, proposals)
    yield from _of_controller(node.controller)
    yield _of_fetchers(fetchers)


# --- replicas ------------------------------------------------------------------------------------


def _of_replicas(replicas: Replicas, proposals: AlterPartitionQueue) -> Iterator[Family]:
    led = [replica for replica in replicas if replica.partition.is_leader]
    short = sum(map(_is_under_replicated, led))
    too_short = sum(not replica.partition.has_enough_in_sync() for replica in led)
    offline = len(replicas.offline)
    for name, value, sentence in (
        ("PartitionCount", len(replicas) + offline, "Replicas on this broker"),
        ("LeaderCount", len(led), "Partitions led here"),
        ("UnderReplicatedPartitions", short, "Partitions led here with replicas out of sync"),
        ("UnderMinIsrPartitionCount", too_short, "Led here, ISR below min.insync.replicas"),
        ("OfflineReplicaCount", offline, "Replicas here whose log directory has failed"),
    ):
        yield _gauge(f"{_REPLICAS}{name}", sentence, value)
    for name, counter, sentence in (
        ("IsrShrinksPerSec", proposals.isr_shrinks, "ISR shrinks of partitions led here"),
        ("IsrExpandsPerSec", proposals.isr_expands, "ISR expansions of partitions led here"),
        ("FailedIsrUpdatesPerSec", proposals.failed_updates, "ISR changes that were refused"),
    ):
        yield _counter(f"{_REPLICAS}{name}", sentence, counter)


def _is_under_replicated(replica: Replica) -> bool:
    """Replicas that a reassignment is adding do not count, as in Kafka."""
    partition = replica.partition
    wanted = len(partition.replicas)
    if replica.adding:
        wanted = len(set(partition.replicas).difference(replica.adding))
    return len(partition.isr) < wanted


# --- the controller ------------------------------------------------------------------------------


def _of_controller(controller: ControllerRunner) -> Iterator[Family]:
    try:
        counts = controller.counts
    except NotController:  # another broker is it, or this one is still loading its state
        counts = _NOT_CONTROLLER
    away = counts.preferred_imbalance
    for name, value, sentence in (
        ("ActiveControllerCount", controller.is_active, "1 on the controller, 0 elsewhere"),
        ("OfflinePartitionsCount", counts.offline_partitions, "Partitions without a leader"),
        ("PreferredReplicaImbalanceCount", away, "Partitions not led by their first replica"),
        ("GlobalTopicCount", counts.topics, "Topics of the cluster"),
        ("GlobalPartitionCount", counts.partitions, "Partitions of the cluster"),
    ):
        yield _gauge(f"{_CONTROLLER}{name}", sentence, value)
    yield _counter(
        f"{_ELECTIONS}UncleanLeaderElectionsPerSec",
        "Leaders that this controller elected from outside the ISR",
        controller.unclean_elections,
    )


# --- followers -----------------------------------------------------------------------------------


def _of_fetchers(fetchers: Fetchers | None) -> Family:
    family = _gauge(f"{_FETCHERS}ConsumerLag", "Records that a follower here has not copied yet")
    if fetchers is None:
        return family
    # The client id is that of Kafka's fetcher thread: the fetcher's number, the leader's id.
    return family._replace(
        samples=[
            Sample(
                lag.records,
                (
                    ("clientId", f"ReplicaFetcherThread-{number}-{leader_id}"),
                    ("topic", name.topic),
                    ("partition", str(name.partition)),
                ),
            )
            for leader_id, number, name, lag in fetchers.lags()
        ]
    )


# --- certificates --------------------------------------------------------------------------------


def _of_certificates(tls: Sequence[ServerTls]) -> Family:
    """Kafka has no such metric, so its name is ours."""
    return Family(
        "barnabas_certificate_days_left",
        "gauge",
        "Days until a listener's certificate expires, negative once it has",
        [Sample(each.days_left, (("listener", each.listener_name),)) for each in tls],
    )


# --- families ------------------------------------------------------------------------------------


def _gauge(bean: str, sentence: str, *values: float) -> Family:
    return Family(_name_of(bean), "gauge", f"{sentence} ({bean})", [Sample(one) for one in values])


def _counter(bean: str, sentence: str, counter: Counter) -> Family:
    name = f"{_name_of(bean.removesuffix('PerSec'))}_total"
    return Family(name, "counter", f"{sentence} ({bean})", [Sample(counter.value)])


def _name_of(bean: str) -> str:
    domain, _, properties = bean.partition(":")
    parts = (each.partition("=")[2] for each in properties.split(","))
    return "_".join((domain.replace(".", "_"), *parts)).lower()

"""Describes brokers for `/api/brokers`. Pure."""

from __future__ import annotations

from collections import Counter

from barnabas.client.admin.admin import BrokerDescription
from barnabas.client.admin.replica_admin import LogDirDescription
from barnabas.console.shapes import BrokerRow, Directory
from barnabas.console.snapshot import ClusterLook, DiskLook


def broker_rows(look: ClusterLook, disks: DiskLook) -> list[BrokerRow]:
    """Return a row for each live broker."""
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    out_of_sync: Counter[int] = Counter()
    for _, partition in look.partitions():
        leaders[partition.leader] += 1
        replicas.update(partition.replicas)
        out_of_sync.update(set(partition.replicas) - set(partition.isr))

    def row(broker: BrokerDescription) -> BrokerRow:
        own = disks.directories.get(broker.broker_id)
        directories = [_directory(each) for each in own or ()]
        return BrokerRow(
            id=broker.broker_id,
            host=broker.host,
            port=broker.port,
            rack=broker.rack,
            is_controller=broker.broker_id == look.cluster.controller_id,
            leaders=leaders[broker.broker_id],
            replicas=replicas[broker.broker_id],
            out_of_sync=out_of_sync[broker.broker_id],
            size=None if own is None else sum(each["size"] for each in directories),
            directories=directories,
        )

    return [row(broker) for broker in look.cluster.brokers]


def _directory(described: LogDirDescription) -> Directory:
    return Directory(
        path=described.path,
        error=described.error or "",
        size=sum(each.size_bytes for each in described.replicas.values()),
        total=_known(described.total_bytes),
        usable=_known(described.usable_bytes),
    )


def _known(number: int) -> int | None:
    return None if number < 0 else number

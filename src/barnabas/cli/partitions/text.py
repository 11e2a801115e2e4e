"""Formats the output of `partitions watch` without a terminal, as lines or as values for JSON.
Pure.

    Topic: t<TAB>Partition: 0<TAB>Leader: 1<TAB>LeaderEpoch: 4<TAB>Isr: 1,2<TAB>HighWatermark: 10
    <TAB>Broker: 2<TAB>LogEndOffset: 9<TAB>Lag: 1<TAB>LagSeconds: 0.5<TAB>LastEpoch: 4<TAB>in sync

An unknown value is shown as `?`, or as null in JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from barnabas.cli.partitions.watch import Change, PartitionRow, ReplicaRow

UNKNOWN = "?"


def row_lines(rows: Iterable[PartitionRow]) -> Iterator[str]:
    """Yield a line for each partition, followed by one for each replica."""
    for row in rows:
        yield (
            f"Topic: {row.name.topic}\tPartition: {row.name.partition}\t"
            f"Leader: {'none' if row.leader < 0 else row.leader}\t"
            f"LeaderEpoch: {row.leader_epoch}\tIsr: {','.join(map(str, row.isr))}\t"
            f"HighWatermark: {_number(row.high_watermark)}"
        )
        for replica in row.replicas:
            end = replica.end
            yield (
                f"\tBroker: {replica.broker_id}\t"
                f"LogEndOffset: {_number(None if end is None else end.end_offset)}\t"
                f"Lag: {_number(replica.lag_records)}\tLagSeconds: {seconds(replica.lag_ms)}\t"
                f"LastEpoch: {_number(None if end is None else end.epoch)}\t{standing(replica)}"
            )


def change_line(change: Change) -> str:
    """Return the line for a change."""
    return f"{clock(change.at_ms, with_date=True)} {change.name}: {change.text}"


def silence_line(since_ms: int) -> str:
    """Return the line shown when no broker responds."""
    return f"{clock(since_ms, with_date=True)} no broker has answered since"


def row_values(rows: Iterable[PartitionRow]) -> list[dict[str, Any]]:
    """Return the rows as values for JSON."""
    return [
        {
            "topic": row.name.topic,
            "partition": row.name.partition,
            "leader": None if row.leader < 0 else row.leader,
            "leader_epoch": row.leader_epoch,
            "isr": list(row.isr),
            "high_watermark": row.high_watermark,
            "replicas": [
                {
                    "broker": replica.broker_id,
                    "live": replica.is_live,
                    "in_sync": replica.is_in_sync,
                    "log_end_offset": None if replica.end is None else replica.end.end_offset,
                    "last_epoch": None if replica.end is None else replica.end.epoch,
                    "lag_records": replica.lag_records,
                    "lag_seconds": None if replica.lag_ms is None else replica.lag_ms / 1000,
                }
                for replica in row.replicas
            ],
        }
        for row in rows
    ]


def standing(replica: ReplicaRow) -> str:
    """Return a replica's status in its partition."""
    if replica.is_leader:
        return "leader"
    if not replica.is_live:
        return "gone"
    return "in sync" if replica.is_in_sync else "behind"


def seconds(lag_ms: int | None) -> str:
    return UNKNOWN if lag_ms is None else f"{lag_ms / 1000:.1f}"


def clock(at_ms: int, *, with_date: bool = False) -> str:
    """Return the time in UTC, as in the brokers' logs."""
    when = datetime.fromtimestamp(at_ms / 1000, UTC)
    shown = f"{when:%Y-%m-%dT%H:%M:%S}" if with_date else f"{when:%H:%M:%S}"
    return f"{shown}.{at_ms % 1000:03}Z" if with_date else shown


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)
